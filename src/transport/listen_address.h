/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen_address - where to listen: "127.0.0.1:8080", "[::1]:0", "localhost:80".
 *
 * Both halves must be said. A port alone would be every address of the machine to some
 * and its own to others; who means all of them says 0.0.0.0 or [::].
 */
#ifndef TRANSPORT_LISTEN_ADDRESS_H
#define TRANSPORT_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "transport/http_grammar.h"

struct err;

struct listen_address {
    char host[HTTP_HOST_NAME_MAX + 1]; /* an IPv6 address without its brackets */
    uint16_t port;                     /* 0: any that is free */
};

MUST_CHECK int listen_address_parse(struct listen_address *a, const char *text,
                                    struct err *err);

/* Only this machine reaches it: 127.0.0.0/8, ::1 or "localhost". Any other name may be
 * anything. */
bool listen_host_is_loopback(const char *host);

/* The addresses of a host to listen on, in one or two lists; "localhost" is both
 * addresses of this machine to itself (RFC 6761), whatever its files say of the name. It
 * may ask the network. */
struct addrinfo;
MUST_CHECK int listen_host_look_up(struct addrinfo *lists[static 2], const char *host,
                                   struct err *err);
void listen_host_free(struct addrinfo *const lists[static 2]);

/* Is there one? */
MUST_CHECK int listen_host_check(const char *host, struct err *err);

#endif
