/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_proxy.h"

#include <stdio.h>

#include "base/err.h"
#include "tests/tap.h"

/* The environment: one variable. */
static const char *variable;
static char content[HTTP_PROXY_USER_MAX + 64];

static char *look_up(const char *name)
{
    return strcmp(name, variable) == 0 ? content : NULL;
}

static void test_who_is_exempt(void)
{
    static const struct {
        const char *url, *list;
        bool exempt;
    } cases[] = {
        { "http://a.example/", "", false },
        { "http://a.example/", "*", true },
        { "http://a.example/", "a.example", true },
        { "http://A.Example/", "a.EXAMPLE", true },
        { "http://a.example./", "a.example", true },
        { "http://a.example/", "example", true },
        { "http://a.example/", ".example", true },
        { "http://a.example/", ".a.example", true },
        { "http://a.example/", "b.a.example", false },
        { "http://a.example/", "xample", false },
        { "http://a.example/", ",, b , a.example\t", true },
        { "http://a.example/", "b,c;a.example", false },
        { "http://a.example/", "a.example:80", true },
        { "http://a.example/", "a.example:81", false },
        { "https://a.example/", "a.example:443", true },
        { "http://a.example:81/", "example:81", true },
        { "http://127.0.0.1/", "127.0.0.1", true },
        { "http://127.0.0.1:9/", "127.0.0.1:9", true },
        { "http://127.0.0.1/", "0.0.1", false },
        { "http://127.0.0.1/", ".1", false },
        { "http://[::1]/", "::1", true },
        { "http://[::1]/", "[::1]", true },
        { "http://[::1]:8/", "[0:0::1]:8", true },
        { "http://[::1]:8/", "[::1]:9", false },
        { "http://[::1]/", "::2", false },
        { "http://a.example/", ".", false },
        { "http://a.example/", ":80", false },
        { "http://a.example/", "a.example:", false },
        /* networks; those of IPv4 as curl 7.88 has it */
        { "http://127.9.9.9/", "127.0.0.0/8", true },
        { "http://128.0.0.1/", "127.0.0.0/8", false },
        { "http://10.127.255.255/", "b, 10.0.0.0/9", true },
        { "http://10.128.0.0/", "10.0.0.0/9", false },
        { "http://127.0.0.1/", "127.0.0.2/31", false },
        { "http://127.0.0.2/", "127.0.0.2/31", true },
        { "http://127.0.0.3/", "127.0.0.2/31", true },
        { "http://127.0.0.4/", "127.0.0.2/31", false },
        { "http://127.0.0.1/", "127.0.0.255/24", true },
        { "http://127.0.0.1/", "127.0.0.1/32", true },
        { "http://127.0.0.1/", "127.0.0.0/33", false },
        { "http://127.0.0.1/", "0.0.0.0/0", false },
        { "http://127.0.0.1/", "127.0.0.0/-1", false },
        { "http://127.0.0.1/", "127.0.0.0/8x", false },
        { "http://127.0.0.1/", "127.0.0.0/99999999999999999999", false },
        { "http://127.0.0.1/", "/8", false },
        { "http://127.0.0.1/", "::/8", false },
        { "http://[fdff:1::1]/", "fd00::/8", true },
        { "http://[fe00::1]/", "fd00::/8", false },
        { "http://[fd7f::1]/", "fd00::/9", true },
        { "http://[fd80::1]/", "fd00::/9", false },
        { "http://[::1]/", "::/127", true },
        { "http://[::2]/", "::/127", false },
        { "http://[::1]/", "::1/128", true },
        { "http://[::1]/", "::1/129", false },
        { "http://[::1]/", "0.0.0.0/1", false },
        { "http://a.example/", "a.example/8", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err = { 0 };
        struct url u;

        ok(url_parse(&u, cases[i].url, &err) == 0 &&
               http_proxy_is_exempt(str_from(cases[i].list), &u) == cases[i].exempt,
           "%s, number %zu of no_proxy", cases[i].url, i);
    }
}

static void test_a_user_of_the_longest_length(void)
{
    struct http_proxy p;
    struct err err = { 0 };
    struct url to;

    variable = "http_proxy";
    for (int more = 0; more < 2; more++) {
        memset(content, 'u', sizeof(content));
        memcpy(content, "http://", 7);
        memcpy(content + 7 + HTTP_PROXY_USER_MAX + more, "@p", 3);
        ok(url_parse(&to, "http://h/", &err) == 0 &&
               (http_proxy_find(&p, &to, look_up, &err) == 0) == !more &&
               (p.authorization[0] != '\0') == !more,
           "a user of HTTP_PROXY_USER_MAX%s bytes", more ? " + 1" : "");
    }
}

/* base64 by coreutils. */
static void test_users(void)
{
    static const struct {
        const char *url, *authorization; /* NULL: refused */
    } cases[] = {
        { "http://p:3128", "" },
        { "HTTP://p:3128/", "" },
        { "http://u:p@p", "Basic dTpw" },
        { "http://u@p", "Basic dTo=" },
        { "http://@p", "Basic Og==" },
        { "http://u%40x:a@b:c@p", "Basic dUB4OmFAYjpj" },
        { "http://a%3ab:c@p", NULL },
        { "http://a:%00@p", NULL },
        { "http://a:%4@p", NULL },
        { "http://a:b@", NULL },
        { "p", NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_proxy p;
        struct err err = { 0 };
        struct url to;
        bool good;

        variable = "https_proxy";
        snprintf(content, sizeof(content), "%s", cases[i].url);
        good = url_parse(&to, "https://h/", &err) == 0 &&
               http_proxy_find(&p, &to, look_up, &err) == 0;
        ok(cases[i].authorization
               ? good && p.used && !strcmp(p.authorization, cases[i].authorization)
               : !good && !p.used && !p.authorization[0],
           "proxy number %zu: %s", i, good ? "taken" : err.msg);
        http_proxy_release(&p);
    }
}

static void test_the_request_for_a_tunnel(void)
{
    CLEANUP(buf_release) struct buf out = { 0 };
    const struct http_proxy p = { .used = true, .authorization = "Basic dTpw" };
    struct err err = { 0 };

    ok(http_proxy_put_connect(&out, &p, "::1", 443, &err) == 0 &&
           str_is(buf_str(&out), "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n"
                                 "Proxy-Authorization: Basic dTpw\r\n\r\n"),
       "CONNECT to an address");
}

int main(void)
{
    test_who_is_exempt();
    test_users();
    test_a_user_of_the_longest_length();
    test_the_request_for_a_tunnel();
    return tap_done();
}
