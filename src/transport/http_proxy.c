/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/codec.h"
#include "base/err.h"
#include "transport/http_encode.h"

#define SHOWN 200 /* bytes of what a proxy says that a person is shown */

/* --- who needs none --- */

/* 4 or 16, the bytes of an address; 0: it is none. */
static size_t address_of(uint8_t out[static 16], str text)
{
    char copy[INET6_ADDRSTRLEN];

    if (text.n >= sizeof(copy) || text.n == 0 || memchr(text.p, '\0', text.n))
        return 0;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (inet_pton(AF_INET, copy, out) == 1)
        return 4;
    return inet_pton(AF_INET6, copy, out) == 1 ? 16 : 0;
}

/* "example.com" and ".example.com" name it and what is below it. */
static bool is_below(str host, str name)
{
    if (str_starts(name, STR(".")))
        name = str_skip(name, 1);
    if (name.n == 0 || host.n < name.n ||
        !str_equal_nocase(str_skip(host, host.n - name.n), name))
        return false;
    return host.n == name.n || host.p[host.n - name.n - 1] == '.';
}

/* "10.0.0.0/8": are its first bits those of an address of n bytes? As in curl, 0 bits are
 * no network. */
static bool is_within(const uint8_t address[static 16], size_t n, str network)
{
    const char *slash = memchr(network.p, '/', network.n);
    str name = str_first(network, slash ? (size_t)(slash - network.p) : network.n);
    uint8_t wanted[16];
    uint64_t bits = 0;
    size_t whole;

    if (!slash || address_of(wanted, name) != n ||
        !u64_parse(&bits, str_skip(network, name.n + 1)) || bits == 0 || bits > 8 * n)
        return false;
    whole = bits / 8;
    return memcmp(wanted, address, whole) == 0 &&
           (bits % 8 == 0 || (wanted[whole] ^ address[whole]) >> (8 - bits % 8) == 0);
}

static bool is_named(str word, const struct url *to)
{
    uint8_t wanted[16], mine[16];
    str host = str_from(to->host), name = word;
    uint16_t port = 0;
    size_t n = address_of(mine, host);

    if (str_is(word, "*") || (n && is_within(mine, n, word)))
        return true;
    if (!address_of(wanted, word)) { /* ::1 needs no brackets where there is no port */
        bool dot = str_starts(word, STR("."));

        if (!http_host_parse(&name, &port, dot ? str_skip(word, 1) : word))
            return false;
    }
    if (port && port != to->port)
        return false;
    if (n)
        return address_of(wanted, name) == n && memcmp(wanted, mine, n) == 0;
    if (str_ends(host, STR(".")))
        host.n--;
    return is_below(host, name);
}

bool http_proxy_is_exempt(str list, const struct url *to)
{
    while (list.n) {
        size_t n = 0;

        while (n < list.n && !memchr(", \t", list.p[n], 3))
            n++;
        if (n && is_named(str_first(list, n), to))
            return true;
        list = str_skip(list, n + 1);
    }
    return false;
}

/* --- the proxy --- */

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A name and password must not bring control characters in, escaped or not. */
static bool add_decoded(struct buf *out, str text)
{
    while (text.n) {
        unsigned char c = (unsigned char)text.p[0];
        size_t n = 1;

        if (c == '%') {
            int high = text.n > 2 ? hex_digit(text.p[1]) : -1;
            int low = text.n > 2 ? hex_digit(text.p[2]) : -1;

            if (high < 0 || low < 0)
                return false;
            c = (unsigned char)(high << 4 | low);
            n = 3;
        }
        if (c < ' ' || c == 0x7f)
            return false;
        buf_add_char(out, (char)c);
        text = str_skip(text, n);
    }
    return true;
}

static void wipe(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    buf_release(b);
}

static bool take_user(struct http_proxy *p, str given)
{
    CLEANUP(wipe) struct buf plain = { 0 }, coded = { 0 };
    const char *colon = memchr(given.p, ':', given.n);
    str user = colon ? str_first(given, (size_t)(colon - given.p)) : given;

    if (given.n > HTTP_PROXY_USER_MAX || !buf_room(&plain, HTTP_PROXY_USER_MAX + 1) ||
        !buf_room(&coded, sizeof(p->authorization)) || !add_decoded(&plain, user) ||
        memchr(buf_cstr(&plain), ':', plain.n))
        return false;
    buf_add_char(&plain, ':');
    if (!add_decoded(&plain, str_skip(given, user.n + 1)))
        return false;
    base64_add(&coded, plain.p, plain.n);
    snprintf(p->authorization, sizeof(p->authorization), "Basic %s", buf_cstr(&coded));
    return !plain.failed && !coded.failed;
}

static int take_url(struct http_proxy *p, const char *name, str text, struct err *err)
{
    CLEANUP(wipe) struct buf clean = { 0 };
    str scheme = STR("http://"), rest = str_skip(text, scheme.n), place, user;
    struct err why = { 0 };
    size_t n = 0, at = 0;

    if (!str_equal_nocase(str_first(text, scheme.n), scheme))
        return err_set(err, ERR_FORMAT,
                       "the proxy in %s does not begin with 'http://': others are not "
                       "supported",
                       name);
    while (n < rest.n && !memchr("/?#", rest.p[n], 3)) {
        if (rest.p[n++] == '@')
            at = n; /* the last one: a password may have one */
    }
    user = str_first(rest, at ? at - 1 : 0);
    place = str_skip(rest, at);
    if (at && !take_user(p, user))
        return err_set(err, ERR_FORMAT,
                       "the proxy in %s has a user name or password "
                       "that cannot be sent",
                       name);
    buf_add(&clean, scheme);
    buf_add(&clean, place);
    if (url_parse(&p->url, buf_cstr(&clean), &why) < 0)
        return err_set(err, why.code, "the proxy in %s: %s", name, why.msg);
    if (strcmp(p->url.target, "/") != 0)
        return err_set(err, ERR_FORMAT, "the proxy in %s has a path", name);
    p->used = true;
    return 0;
}

/* The first of them that is not empty, or NULL. */
static const char *first_of(const char *const names[3], char *(*get)(const char *name),
                            str *value)
{
    for (size_t i = 0; i < 3 && names[i]; i++) {
        *value = str_from(get(names[i]));
        if (value->n)
            return names[i];
    }
    return NULL;
}

int http_proxy_find(struct http_proxy *out, const struct url *to,
                    char *(*get)(const char *name), struct err *err)
{
    static const char *const plain[3] = { "http_proxy", "all_proxy", "ALL_PROXY" };
    static const char *const safe[3] = { "https_proxy", "HTTPS_PROXY", NULL };
    static const char *const all[3] = { "all_proxy", "ALL_PROXY", NULL };
    static const char *const none[3] = { "no_proxy", "NO_PROXY", NULL };
    str value = { NULL, 0 }, exempt = { NULL, 0 };
    const char *name = first_of(to->tls ? safe : plain, get, &value);

    *out = (struct http_proxy){ .used = false };
    if (!name && to->tls)
        name = first_of(all, get, &value);
    if (!name || (first_of(none, get, &exempt) && http_proxy_is_exempt(exempt, to)))
        return 0;
    if (take_url(out, name, value, err) == 0)
        return 0;
    http_proxy_release(out);
    return -1;
}

void http_proxy_release(struct http_proxy *p)
{
    explicit_bzero(p->authorization, sizeof(p->authorization));
    p->used = false;
}

/* --- connections through it --- */

int http_proxy_put_connect(struct buf *out, const struct http_proxy *p, const char *host,
                           uint16_t port, struct err *err)
{
    char place[HTTP_HOST_NAME_MAX + 16];
    bool v6 = strchr(host, ':') != NULL;

    snprintf(place, sizeof(place), "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", port);
    buf_printf(out, "CONNECT %s HTTP/1.1\r\n", place);
    if (http_put_header(out, STR("Host"), str_from(place), err) < 0 ||
        (p->authorization[0] && http_put_header(out, STR("Proxy-Authorization"),
                                                str_from(p->authorization), err) < 0))
        return -1;
    http_put_end(out);
    return buf_check(out, "the request to the proxy", err);
}

int http_proxy_check(const struct http_head *answer, struct err *err)
{
    str asked = http_head_find(answer, "Proxy-Authenticate", NULL);

    if (answer->status / 100 == 2)
        return 0;
    if (asked.p)
        return err_set(err, ERR_REFUSED,
                       "it answers with status %u, Proxy-Authenticate: %.*s",
                       answer->status, (int)str_first(asked, SHOWN).n, asked.p);
    return err_set(err, ERR_REFUSED, "it answers with status %u", answer->status);
}
