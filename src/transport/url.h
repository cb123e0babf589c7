/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url - where a server is: http and https URLs, read as strictly as requests are.
 *
 * No user name or password (they would end up in process lists and logs; a header does
 * the same better), no fragment, nothing that is repaired.
 */
#ifndef TRANSPORT_URL_H
#define TRANSPORT_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"
#include "transport/http_grammar.h"

struct err;

#define URL_MAX ((size_t)8 << 10)

struct url {
    bool tls;
    char host[HTTP_HOST_NAME_MAX + 1]; /* an IPv6 address without its brackets */
    uint16_t port;
    char authority[HTTP_HOST_NAME_MAX + 16]; /* as Host says it: no port where it is the
                                                scheme's own */
    char target[URL_MAX + 2];                /* path and query */
};

MUST_CHECK int url_parse(struct url *u, const char *text, struct err *err);

/* What a server means by `reference` (RFC 3986: a URL, //host/path, /path, ?query, path)
 * where `base` is. One of another origin is ERR_REFUSED. */
MUST_CHECK int url_resolve(struct url *u, const struct url *base, str reference,
                           struct err *err);

#endif
