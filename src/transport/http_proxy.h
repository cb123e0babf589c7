/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_proxy - the HTTP proxy that leads to a server, as the environment names it, read
 * as curl reads it:
 *
 *     https_proxy, HTTPS_PROXY   for https; else all_proxy, ALL_PROXY
 *     http_proxy                 for http (HTTP_PROXY is what a CGI client may set); else
 *                                all_proxy, ALL_PROXY
 *     no_proxy, NO_PROXY         hosts without one, separated by commas or spaces: "*",
 *                                a name (and all below it) or an address, with a port
 *                                or not; a network ("10.0.0.0/8", "fd00::/8")
 *
 * An empty value is as good as none. The proxy is http://[user:password@]host[:port].
 */
#ifndef TRANSPORT_HTTP_PROXY_H
#define TRANSPORT_HTTP_PROXY_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "transport/http_head.h"
#include "transport/url.h"

struct err;

#define HTTP_PROXY_USER_MAX 512 /* bytes of user and password, as in the URL */

struct http_proxy {
    bool used;
    struct url url;
    char authorization[HTTP_PROXY_USER_MAX * 4 / 3 + 16]; /* "Basic …", or "" */
};

/* `get` is getenv(), or what stands for it. A sentence of an error names the variable,
 * never its value. */
MUST_CHECK int http_proxy_find(struct http_proxy *out, const struct url *to,
                               char *(*get)(const char *name), struct err *err);
void http_proxy_release(struct http_proxy *p); /* wipes it */

/* Does this no_proxy name the server? */
bool http_proxy_is_exempt(str list, const struct url *to);

/* The request for a connection to that host, and is its answer (a head that is done) a
 * yes? The sentence of a no has the status. */
MUST_CHECK int http_proxy_put_connect(struct buf *out, const struct http_proxy *p,
                                      const char *host, uint16_t port, struct err *err);
MUST_CHECK int http_proxy_check(const struct http_head *answer, struct err *err);

#endif
