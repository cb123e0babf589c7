/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/url.h"

#include <stdio.h>

#include "base/err.h"
#include "tests/tap.h"

static const struct {
    const char *text;
    bool tls;
    const char *host;
    unsigned port;
    const char *authority, *target;
} good[] = {
    { "http://example.com", false, "example.com", 80, "example.com", "/" },
    { "https://example.com/mcp", true, "example.com", 443, "example.com", "/mcp" },
    { "HTTPS://Example.com:443/", true, "Example.com", 443, "Example.com", "/" },
    { "https://example.com:80/", true, "example.com", 80, "example.com:80", "/" },
    { "http://127.0.0.1:3001/mcp?a=b&c", false, "127.0.0.1", 3001, "127.0.0.1:3001",
      "/mcp?a=b&c" },
    { "http://[::1]:8080/a/b", false, "::1", 8080, "[::1]:8080", "/a/b" },
    { "http://[fe80::1]/", false, "fe80::1", 80, "[fe80::1]", "/" },
    { "http://h?q", false, "h", 80, "h", "/?q" },
    { "http://h/%41", false, "h", 80, "h", "/%41" },
};

static const char *const bad[] = {
    "",
    "h",
    "/mcp",
    "ftp://h/",
    "http:/h/",
    "http://",
    "http:///mcp",
    "http://h:0/",
    "http://h:65536/",
    "http://h:x/",
    "http://u@h/",
    "http://u:p@h/",
    "http://h/#f",
    "http://h/a b",
    "http://h/../x",
    "http://h/%0",
    "http://h/\r\nX: y",
    "http://h\\x/",
    "http://[::1/",
    "http://[zz]/",
    "http://a..b/",
};

static void test_references(void)
{
    static const struct {
        const char *base, *reference, *target; /* NULL: refused */
    } cases[] = {
        { "http://h/a/sse", "/m?s=1", "/m?s=1" },
        { "http://h/a/sse", "m?s=1", "/a/m?s=1" },
        { "http://h/a/sse?q=/x/y", "m", "/a/m" },
        { "http://h/a/sse?q", "?s=1", "/a/sse?s=1" },
        { "http://h/a/b/", "./m", "/a/b/m" },
        { "http://h/a/b/c", "../m", "/a/m" },
        { "http://h/a/b/c", "../../../m", "/m" },
        { "http://h", "m", "/m" },
        { "http://h/a", "http://H:80/m", "/m" },
        { "https://h/a", "https://h:443/m", "/m" },
        { "https://h/a", "//h/m", "/m" },
        { "http://[::1]:8080/a", "m", "/m" },
        { "http://h:81/a", "//h/m", NULL },
        { "http://h/a", "https://h/m", NULL },
        { "http://h/a", "http://h.example/m", NULL },
        { "http://h/a", "//u@h/m", NULL },
        { "http://h/a", "mailto:x", NULL },
        { "http://h/a", "m\nX: y", NULL },
        { "http://h/a", "a/../m", NULL },
        { "http://h/a", "..", NULL },
        { "http://h/a", "#f", NULL },
        { "http://h/a", "", NULL },
    };
    struct url base, u;
    struct err err = { 0 };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bool found = url_parse(&base, cases[i].base, &err) == 0 &&
                     url_resolve(&u, &base, str_from(cases[i].reference), &err) == 0;

        ok(cases[i].target ? found && strcmp(u.target, cases[i].target) == 0 : !found,
           "'%s' at %s", i == 17 ? "two lines" : cases[i].reference, cases[i].base);
    }
    ok(url_parse(&base, "http://h/", &err) == 0 &&
           url_resolve(&u, &base, str_of("/a\0b", 4), &err) < 0,
       "a NUL in a reference: %s", err.msg);
}

static void test_a_url_of_the_longest_length(void)
{
    char text[URL_MAX + 2];
    struct err err = { 0 };
    struct url u;

    memset(text, 'a', sizeof(text));
    memcpy(text, "http://h/", 9);
    text[URL_MAX] = '\0';
    ok(url_parse(&u, text, &err) == 0, "a URL of URL_MAX bytes is one");
    text[URL_MAX] = 'a';
    text[URL_MAX + 1] = '\0';
    ok(url_parse(&u, text, &err) < 0 && err.code == ERR_LIMIT, "one more is too long");
}

int main(void)
{
    struct err err = { 0 };
    struct url u;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ok(url_parse(&u, good[i].text, &err) == 0 && u.tls == good[i].tls &&
               u.port == good[i].port && strcmp(u.host, good[i].host) == 0 &&
               strcmp(u.authority, good[i].authority) == 0 &&
               strcmp(u.target, good[i].target) == 0,
           "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err = (struct err){ 0 };
        ok(url_parse(&u, bad[i], &err) < 0 && err.code != ERR_NONE, "number %zu is none",
           i);
    }
    test_a_url_of_the_longest_length();
    test_references();
    return tap_done();
}
