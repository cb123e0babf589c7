/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include "base/codec.h"
#include "base/err.h"

static int fail(const char *text, const char *why, struct err *err)
{
    return err_set(err, ERR_FORMAT, "'%s' is no address to listen on: %s", text, why);
}

/* "host:port" into its halves, at the last colon; brackets come off. */
static const char *split(str text, str *host, str *port)
{
    const char *colon = text.n ? memrchr(text.p, ':', text.n) : NULL;

    if (memmem(text.p ? text.p : "", text.n, "://", 3))
        return "it is a URL; give host and port only, as in '127.0.0.1:8080'";
    if (!colon || str_ends(text, STR("]")))
        return "there is no port behind it, as in '127.0.0.1:8080'";
    *host = str_first(text, (size_t)(colon - text.p));
    *port = str_skip(text, host->n + 1);
    if (host->n == 0)
        return "there is no host before the port; '127.0.0.1:…' is this machine only, "
               "'0.0.0.0:…' is every address of it";
    if (str_starts(*host, STR("["))) {
        if (!str_ends(*host, STR("]")))
            return "a bracket is not closed";
        *host = str_first(str_skip(*host, 1), host->n - 2);
        return memchr(host->p ? host->p : "", ':', host->n)
                   ? NULL
                   : "there is no IPv6 address in the brackets";
    }
    if (memchr(host->p, ':', host->n))
        return "an IPv6 address stands in brackets, as in '[::1]:8080'";
    return NULL;
}

static bool is_v6(const char *host)
{
    struct in6_addr ignored;

    return inet_pton(AF_INET6, host, &ignored) == 1;
}

/* A name of digits and dots only is meant to be an address, and must be one. */
static bool is_bad_v4(str host, const char *text)
{
    struct in_addr ignored;

    for (size_t i = 0; i < host.n; i++) {
        if (!http_is(host.p[i], HTTP_DIGIT) && host.p[i] != '.')
            return false;
    }
    return inet_pton(AF_INET, text, &ignored) != 1;
}

int listen_address_parse(struct listen_address *a, const char *text, struct err *err)
{
    struct listen_address out = { 0 };
    str host = { 0 }, port = { 0 };
    const char *why = split(str_from(text), &host, &port);
    uint64_t number = 0;

    if (why)
        return fail(text, why, err);
    if (host.n > HTTP_HOST_NAME_MAX)
        return fail(text, "the host is too long", err);
    memcpy(out.host, host.p, host.n);
    if (memchr(host.p, ':', host.n) ? !is_v6(out.host) : !http_all(host, HTTP_HOST_NAME))
        return fail(text, "the host is neither a name nor an address", err);
    if (is_bad_v4(host, out.host))
        return fail(text, "the host is neither a name nor an address", err);
    if (!http_all(port, HTTP_DIGIT) || !u64_parse(&number, port) || number > UINT16_MAX)
        return fail(text, "the port is not a number from 0 to 65535", err);
    out.port = (uint16_t)number;
    *a = out;
    return 0;
}

bool listen_host_is_loopback(const char *host)
{
    struct in_addr in4;
    struct in6_addr in6;

    if (inet_pton(AF_INET, host, &in4) == 1)
        return (ntohl(in4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &in6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&in6);
    return str_equal_nocase(str_from(host), STR("localhost"));
}

int listen_host_look_up(struct addrinfo *lists[static 2], const char *host,
                        struct err *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    bool local = str_equal_nocase(str_from(host), STR("localhost"));
    int code = getaddrinfo(local ? "127.0.0.1" : host, NULL, &hints, &lists[0]);

    if (code != 0) {
        lists[0] = NULL;
        return err_set(err, ERR_NOTFOUND,
                       "cannot listen on '%s': no address is found for that name (%s)",
                       host, gai_strerror(code));
    }
    if (local && getaddrinfo("::1", NULL, &hints, &lists[1]) != 0)
        lists[1] = NULL;
    return 0;
}

void listen_host_free(struct addrinfo *const lists[static 2])
{
    for (size_t i = 0; i < 2; i++) {
        if (lists[i])
            freeaddrinfo(lists[i]);
    }
}

int listen_host_check(const char *host, struct err *err)
{
    struct addrinfo *lists[2] = { NULL, NULL };

    if (listen_host_look_up(lists, host, err) < 0)
        return -1;
    listen_host_free(lists);
    return 0;
}
