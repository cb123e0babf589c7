/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/listen_address.h"

#include "base/err.h"
#include "tests/tap.h"

static const struct {
    const char *text, *host;
    unsigned port;
} good[] = {
    { "127.0.0.1:8080", "127.0.0.1", 8080 },
    { "[::1]:0", "::1", 0 },
    { "[::]:1", "::", 1 },
    { "localhost:80", "localhost", 80 },
    { "0.0.0.0:65535", "0.0.0.0", 65535 },
    { "my-host.example:443", "my-host.example", 443 },
};

static const struct {
    const char *text, *why;
} bad[] = {
    { "", "no port" },
    { "8080", "no port" },
    { "127.0.0.1", "no port" },
    { "[::1]", "no port" },
    { ":8080", "no host" },
    { "127.0.0.1:", "the port is not a number" },
    { "127.0.0.1:65536", "the port is not a number" },
    { "127.0.0.1:99999999999999999999", "the port is not a number" },
    { "127.0.0.1:-1", "the port is not a number" },
    { "127.0.0.1:+1", "the port is not a number" },
    { "127.0.0.1:80 ", "the port is not a number" },
    { "http://127.0.0.1:8080", "it is a URL" },
    { "http://localhost", "it is a URL" },
    { "https://[::1]:80/mcp", "it is a URL" },
    { "tcp://:80", "it is a URL" },
    { "::1:80", "in brackets" },
    { "[::1:80", "not closed" },
    { "[]:80", "no IPv6 address" },
    { "[127.0.0.1]:80", "no IPv6 address" },
    { "[::x]:80", "neither a name nor an address" },
    { "[fe80::1%eth0]:80", "neither a name nor an address" },
    { "a b:80", "neither a name nor an address" },
    { "a/b:80", "neither a name nor an address" },
    { "127.0.0.256:80", "neither a name nor an address" },
    { "127.1:80", "neither a name nor an address" },
};

static void test_long_hosts(void)
{
    char text[HTTP_HOST_NAME_MAX + 8] = { 0 };
    struct listen_address a;
    struct err err = { 0 };

    memset(text, 'a', HTTP_HOST_NAME_MAX);
    memcpy(text + HTTP_HOST_NAME_MAX, ":1", 3);
    ok(listen_address_parse(&a, text, &err) == 0 && strlen(a.host) == HTTP_HOST_NAME_MAX,
       "the longest host");
    text[HTTP_HOST_NAME_MAX] = 'a';
    memcpy(text + HTTP_HOST_NAME_MAX + 1, ":1", 3);
    ok(listen_address_parse(&a, text, &err) < 0 && strstr(err.msg, "too long"),
       "one longer");
}

int main(void)
{
    static const char *const here[] = { "127.0.0.1", "127.255.0.9", "::1", "localhost",
                                        "LocalHost" };
    static const char *const elsewhere[] = {
        "0.0.0.0",   "::",  "128.0.0.1",        "localhost.example",
        "126.0.0.1", "::2", "::ffff:192.0.2.1", ""
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        struct listen_address a = { 0 };
        struct err err = { 0 };

        ok(listen_address_parse(&a, good[i].text, &err) == 0 &&
               str_is(str_from(a.host), good[i].host) && a.port == good[i].port,
           "'%s' %s", good[i].text, err.msg);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct listen_address a = { .port = 7 };
        struct err err = { 0 };

        ok(listen_address_parse(&a, bad[i].text, &err) < 0 && err.code == ERR_FORMAT &&
               strstr(err.msg, bad[i].why) && a.port == 7,
           "refused: %s", err.msg);
    }
    test_long_hosts();
    for (size_t i = 0; i < COUNT(here); i++)
        ok(listen_host_is_loopback(here[i]), "'%s' is this machine only", here[i]);
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        ok(!listen_host_is_loopback(elsewhere[i]), "'%s' is not", elsewhere[i]);
    return tap_done();
}
