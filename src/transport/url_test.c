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
    return tap_done();
}
