/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream - what a server over HTTP needs to know of MCP: which messages are requests,
 * which version was agreed on, what headers repeat of a body; and what a client is told
 * when an answer does not come. The transport itself knows no JSON (http_client.h).
 */
#ifndef PIPELINE_UPSTREAM_H
#define PIPELINE_UPSTREAM_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "pipeline/mirror.h"
#include "transport/http_client.h"
#include "transport/http_proxy.h"
#include "json/json.h"

struct err;
struct relay;
struct rpc;

#define UPSTREAM_VERSION_MAX 32                /* bytes of a protocol version */
#define UPSTREAM_NAME_MAX    ((size_t)8 << 10) /* of Mcp-Name, as it is sent */

struct upstream_options {
    struct url url;
    char origin[HTTP_HOST_NAME_MAX + 32]; /* "https://mcp.example.com" */
    const char *ca_file;                  /* NULL: the system's certificates */
    struct http_proxy proxy;              /* if one is used */
    struct http_own_header headers[HTTP_OWN_HEADERS];
    size_t header_count;
};

struct upstream {
    struct relay *relay;
    struct tls_trust *trust;
    struct http_client *client;
    struct mirror mirror;
    struct json json;  /* of the message at hand */
    struct buf agreed; /* version that the initialize answer named */
    struct buf stated; /* version that the last stateless request named */
    bool stateless;    /* the last request was of that kind */
    struct buf method, name, ids, cancels, key;
};

/* Nothing is connected yet. Fails when certificates cannot be read. */
MUST_CHECK int upstream_open(struct upstream **out, struct relay *r,
                             const struct upstream_options *options,
                             const struct endpoint_events *events, struct err *err);
void upstream_free(struct upstream *u); /* NULL is fine */

/* A list of tools was answered: which arguments go into headers? */
void upstream_learn(struct upstream *u, const struct rpc *m);

#endif
