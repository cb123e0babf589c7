/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_grammar.h"

#include "base/buf.h"
#include "tests/tap.h"

static void test_refusals_have_a_name_a_status_and_a_reason(void)
{
    static const unsigned statuses[] = { 400, 413, 414, 417, 431, 501, 503, 505 };
    size_t good = 0, all = 0;

    for (int r = HTTP_NONE + 1; r <= HTTP_NO_MEMORY; r++) {
        bool known = false;

        for (size_t i = 0; i < COUNT(statuses); i++)
            known |= http_refusal_status((enum http_refusal)r) == statuses[i];
        good += known && *http_refusal_name((enum http_refusal)r) &&
                *http_refusal_why((enum http_refusal)r);
        all++;
    }
    ok(all > 30 && good == all, "%zu refusals", all);
}

/* The classes, spelled as the standards spell them. */
static void test_classes(void)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz";
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char digits[] = "0123456789";
    static const struct {
        const char *what;
        enum http_class wanted;
        const char *marks;
        bool lower, upper, digits;
    } rows[] = {
        { "token", HTTP_TOKEN, "!#$%&'*+-.^_`|~", true, true, true },
        { "method", HTTP_CAPITAL, "-", false, true, false },
        { "path", HTTP_PATH, "!$%&'()*+,-./:;=@[]^_`{|}~", true, true, true },
        { "query", HTTP_QUERY, "!$%&'()*+,-./:;=?@[\\]^_`{|}~", true, true, true },
        { "host", HTTP_HOST_NAME, "-._", true, true, true },
        { "digit", HTTP_DIGIT, "", false, false, true },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t wrong = 0;

        for (int c = 0; c < 256; c++) {
            bool want =
                c && (strchr(rows[i].marks, c) || (rows[i].lower && strchr(lower, c)) ||
                      (rows[i].upper && strchr(upper, c)) ||
                      (rows[i].digits && strchr(digits, c)));

            wrong += http_is((char)c, rows[i].wanted) != want;
        }
        ok(wrong == 0, "the bytes of a %s", rows[i].what);
    }
    for (int c = 0; c < 256; c++) {
        bool want = c == '\t' || (c >= ' ' && c != 127);

        if (http_is((char)c, HTTP_TEXT) != want)
            ok(false, "byte %d is text: %d", c, !want);
    }
    ok(true, "the bytes of a value");
}

static void test_targets(void)
{
    static const struct {
        const char *target, *authority, *path, *query; /* NULL: none */
        enum http_refusal refusal;
    } rows[] = {
        { "/", NULL, "/", NULL, HTTP_NONE },
        { "/mcp", NULL, "/mcp", NULL, HTTP_NONE },
        { "/mcp?", NULL, "/mcp", "", HTTP_NONE },
        { "/mcp?a=b?c", NULL, "/mcp", "a=b?c", HTTP_NONE },
        { "/a%20b/%E2%82%ac", NULL, "/a%20b/%E2%82%ac", NULL, HTTP_NONE },
        { "/a?100%", NULL, "/a", "100%", HTTP_NONE },
        { "/a?{\\^}|`", NULL, "/a", "{\\^}|`", HTTP_NONE },
        { "//a", NULL, "//a", NULL, HTTP_NONE },
        { "/...", NULL, "/...", NULL, HTTP_NONE },
        { "/.well-known/x", NULL, "/.well-known/x", NULL, HTTP_NONE },
        { "/a..b/c.", NULL, "/a..b/c.", NULL, HTTP_NONE },
        { "/a?x=/../", NULL, "/a", "x=/../", HTTP_NONE },
        { "http://a", "a", "/", NULL, HTTP_NONE },
        { "http://a?q", "a", "/", "q", HTTP_NONE },
        { "HTTP://A:80/b?q", "A:80", "/b", "q", HTTP_NONE },
        { "https://[::1]:8443/", "[::1]:8443", "/", NULL, HTTP_NONE },
        { "", NULL, NULL, NULL, HTTP_TARGET },
        { "*", NULL, NULL, NULL, HTTP_TARGET },
        { "a", NULL, NULL, NULL, HTTP_TARGET },
        { "?a", NULL, NULL, NULL, HTTP_TARGET },
        { "a:80", NULL, NULL, NULL, HTTP_TARGET },
        { "http:", NULL, NULL, NULL, HTTP_TARGET },
        { "http:/a", NULL, NULL, NULL, HTTP_TARGET },
        { "http://", NULL, NULL, NULL, HTTP_TARGET },
        { "http:///a", NULL, NULL, NULL, HTTP_TARGET },
        { "http://u@a/", NULL, NULL, NULL, HTTP_TARGET },
        { "http://a:b/", NULL, NULL, NULL, HTTP_TARGET },
        { "http://a\\b/", NULL, NULL, NULL, HTTP_TARGET },
        { "ftp://a/", NULL, NULL, NULL, HTTP_TARGET },
        { "/a#b", NULL, NULL, NULL, HTTP_TARGET },
        { "/a?b#c", NULL, NULL, NULL, HTTP_TARGET },
        { "/a b", NULL, NULL, NULL, HTTP_TARGET },
        { "/a\tb", NULL, NULL, NULL, HTTP_TARGET },
        { "/\"", NULL, NULL, NULL, HTTP_TARGET },
        { "/<", NULL, NULL, NULL, HTTP_TARGET },
        { "/a\\b", NULL, NULL, NULL, HTTP_TARGET },
        { "/\xc3\xa9", NULL, NULL, NULL, HTTP_TARGET },
        { "/?\xc3\xa9", NULL, NULL, NULL, HTTP_TARGET },
        { "/\x7f", NULL, NULL, NULL, HTTP_TARGET },
        { "/%", NULL, NULL, NULL, HTTP_TARGET },
        { "/%2", NULL, NULL, NULL, HTTP_TARGET },
        { "/%zz", NULL, NULL, NULL, HTTP_TARGET },
        { "/%00", NULL, NULL, NULL, HTTP_TARGET },
        { "/.", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/..", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/../a", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/a/./b", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/a/..?q", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/a/%2e%2E/b", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/a%2f..%2fb", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "/a%5c..%5cb", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
        { "http://a/..", NULL, NULL, NULL, HTTP_DOT_SEGMENT },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_target t = { .path = STR("untouched") };
        enum http_refusal r = http_target_parse(&t, str_from(rows[i].target));
        bool good = r == HTTP_NONE ? str_is(t.path, rows[i].path) &&
                                         str_is(t.query, rows[i].query) &&
                                         str_is(t.authority, rows[i].authority) &&
                                         !t.query.p == !rows[i].query
                                   : str_is(t.path, "untouched");

        ok(r == rows[i].refusal && good, "target '%s': %s", rows[i].target,
           http_refusal_name(r));
    }
}

static void test_hosts(void)
{
    static const struct {
        const char *host, *name; /* NULL: refused */
        unsigned port;
    } rows[] = {
        { "localhost", "localhost", 0 },
        { "localhost:8080", "localhost", 8080 },
        { "a.example.", "a.example.", 0 },
        { "my_service:1", "my_service", 1 },
        { "xn--bcher-kva.example:65535", "xn--bcher-kva.example", 65535 },
        { "127.0.0.1:80", "127.0.0.1", 80 },
        { "[::1]", "::1", 0 },
        { "[::ffff:1.2.3.4]:443", "::ffff:1.2.3.4", 443 },
        { "[2001:DB8::1]", "2001:DB8::1", 0 },
        { "", NULL, 0 },
        { ":80", NULL, 0 },
        { "a:", NULL, 0 },
        { "a:0", NULL, 0 },
        { "a:080", NULL, 0 },
        { "a:65536", NULL, 0 },
        { "a:+1", NULL, 0 },
        { "a:80:80", NULL, 0 },
        { "a b", NULL, 0 },
        { "a/b", NULL, 0 },
        { "a?b", NULL, 0 },
        { "a@b", NULL, 0 },
        { "a,b", NULL, 0 },
        { "a%20b", NULL, 0 },
        { "a..b", NULL, 0 },
        { ".a", NULL, 0 },
        { ".", NULL, 0 },
        { "\xc3\xa9", NULL, 0 },
        { "::1", NULL, 0 },
        { "[::1", NULL, 0 },
        { "[::1]a", NULL, 0 },
        { "[::1]80", NULL, 0 },
        { "[::1]:", NULL, 0 },
        { "[]", NULL, 0 },
        { "[a]", NULL, 0 },
        { "[1.2.3.4]", NULL, 0 },
        { "[::1%25eth0]", NULL, 0 },
        { "[v1.x]", NULL, 0 },
        { "[1:2:3:4:5:6:7:8:9]", NULL, 0 },
        { "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", NULL, 0 },
        { "http://a", NULL, 0 },
    };
    char longest[HTTP_HOST_NAME_MAX + 1];
    uint16_t port = 7;
    str name;

    for (size_t i = 0; i < COUNT(rows); i++) {
        bool good = http_host_parse(&name, &port, str_from(rows[i].host));

        ok(good == !!rows[i].name &&
               (!good || (str_is(name, rows[i].name) && port == rows[i].port)),
           "host '%s' is %s", rows[i].host, rows[i].name ? "one" : "none");
    }
    memset(longest, 'n', sizeof(longest));
    ok(!http_host_parse(&name, &port, STR("a\0b")) &&
           !http_host_parse(&name, &port, STR("[::1\0]")),
       "a NUL is no part of a host");
    ok(http_host_parse(&name, &port, str_of(longest, HTTP_HOST_NAME_MAX)),
       "the longest host");
    ok(!http_host_parse(&name, &port, str_of(longest, HTTP_HOST_NAME_MAX + 1)),
       "one byte more");
}

static void test_words(void)
{
    char longest[HTTP_METHOD_MAX + 1];

    memset(longest, 'M', sizeof(longest));
    ok(http_method_valid(STR("GET")) && http_method_valid(STR("M-SEARCH")) &&
           http_method_valid(str_of(longest, HTTP_METHOD_MAX)),
       "methods");
    ok(!http_method_valid(STR("")) && !http_method_valid(STR("get")) &&
           !http_method_valid(STR("GE\0T")) && !http_method_valid(STR("GET ")) &&
           !http_method_valid(str_of(longest, sizeof(longest))),
       "no methods");
    ok(http_token_valid(STR("X-a_1!")) && !http_token_valid(STR("")) &&
           !http_token_valid(STR("a b")) && !http_token_valid(STR("a:")) &&
           !http_token_valid(STR("\xc3\xa9")) && !http_token_valid(STR("a\0")),
       "tokens");
    ok(http_value_valid(STR("")) && http_value_valid(STR("a \t b\xff")) &&
           !http_value_valid(STR(" a")) && http_value_valid(STR("\ta\t")) &&
           !http_value_valid(STR(" ")) && !http_value_valid(STR("a\r\nb")) &&
           !http_value_valid(STR("a\0b")) && !http_value_valid(STR("a\x7f")),
       "values");
    ok(str_is(http_trim(STR(" \t a b\t ")), "a b") && http_trim(STR(" \t ")).n == 0 &&
           http_trim(STR("")).n == 0 &&
           str_is(http_trim_spaces(STR("  \t a \t  ")), "\t a \t") &&
           http_trim_spaces(STR("  ")).n == 0,
       "trimming");
}

/* Wherever the first byte stands that is none, and whatever is around it. */
static void test_the_length_of_a_text(void)
{
    size_t wrong = 0;

    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 24; at++) {
            char s[24];

            memset(s, at % 3 == 0 ? 'a' : at % 3 == 1 ? '\xff' : '\t', sizeof(s));
            s[at] = (char)c;
            for (size_t n = 0; n <= sizeof(s); n++) {
                size_t want = n > at && !http_is((char)c, HTTP_TEXT) ? at : n;

                wrong += http_text_length(str_of(s, n)) != want;
            }
        }
    }
    ok(wrong == 0, "a text ends at the first byte that is none");
}

int main(void)
{
    test_refusals_have_a_name_a_status_and_a_reason();
    test_classes();
    test_targets();
    test_hosts();
    test_words();
    test_the_length_of_a_text();
    return tap_done();
}
