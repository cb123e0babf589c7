/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client - an endpoint that is a Streamable HTTP server somewhere else: each message
 * is POSTed, and what comes back (one JSON text, or a stream of events) is delivered as
 * messages, without line ends of ours.
 *
 * A server that refuses the first of them is asked whether it is one of the transport
 * before (HTTP+SSE); if so, messages are POSTed where it says, and all answers come on
 * one stream, whose end is on_ended.
 *
 * It knows no JSON. What it must know of a message, and what has to be done with an
 * answer that does not come, is its owner's: see struct http_client_hooks.
 *
 * A request never waits behind an open stream: each exchange has a connection of its own
 * while it lasts, and idle ones are used again. Order: what follows a message that wants
 * no answer waits until that is acknowledged (HTTP_ACK_WAIT at most); what follows the
 * opening of a session waits for its answer. A message longer than HTTP_HOLD is delivered
 * as it comes, and those of other exchanges wait for its end.
 *
 * A redirect is followed once, if it keeps the method (307, 308) and stays within the
 * origin. Nothing else is sent twice, except what its owner calls repeatable when an idle
 * connection turned out to be closed.
 */
#ifndef TRANSPORT_HTTP_CLIENT_H
#define TRANSPORT_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/str.h"
#include "transport/endpoint.h"
#include "transport/url.h"

struct err;
struct http_client;
struct http_proxy;
struct loop;
struct tls_trust;

#define HTTP_HOLD        ((size_t)64 << 10) /* of a message, before it is delivered */
#define HTTP_ERROR_MAX   ((size_t)64 << 10) /* of the body of a refusal */
#define HTTP_CONNS_MAX   256                /* connections at once; more messages wait */
#define HTTP_IDLE_MAX    8                  /* idle ones */
#define HTTP_SESSION_MAX ((size_t)4 << 10)  /* of a session's id */
#define HTTP_ACK_WAIT    5000               /* ms */
#define HTTP_RESUMES_MAX                                                                 \
    5 /* attempts in a row to go on with a stream, without an event */
#define HTTP_RETRY_DEFAULT 1000 /* ms before one, unless the server says otherwise */
#define HTTP_RETRY_MAX     30000
#define HTTP_ENDPOINT_WAIT 10000 /* ms for an older server to say where POSTs go */
#define HTTP_OWN_HEADERS   64    /* of --header */

struct http_own_header {
    str name, value;
};

/* What a message is. Texts are borrowed until the next call; NULL pointer: none. */
struct http_facts {
    bool wants_answer;  /* there is a request in it */
    bool opens_session; /* its answer's Mcp-Session-Id is the session's */
    bool opens_stream;  /* when it is taken, the server may speak by itself */
    bool endless;       /* its answer does not end by itself */
    bool stateless;     /* no session; who closes the stream of an answer cancels it */
    bool repeatable;    /* nothing happens twice when it is sent twice */
    str version;        /* MCP-Protocol-Version */
    str method, name;   /* Mcp-Method, Mcp-Name */
    const struct http_own_header *mirrored; /* and these */
    size_t mirrored_count;
    str ids;     /* of its requests: a text that is handed back */
    str cancels; /* the `ids` of the message whose answer is not wanted any more */
};

/* Called from the loop or inside send(); all but `cut` and `lost` must not call back. */
struct http_client_hooks {
    /* An empty message: what we send ourselves. */
    void (*describe)(void *ctx, str message, struct http_facts *out);
    bool (*awaits)(void *ctx, str ids); /* is one of them not answered yet? */

    /* Those of them that are not answered will not be. */
    void (*lost)(void *ctx, str ids, const struct err *why);

    /* The body of a refusal (status 4xx, 5xx): is it to be delivered? */
    bool (*is_message)(void *ctx, str body);

    /* A message out of the answer to what opens a session; before it is delivered. */
    void (*opened)(void *ctx, str message);

    /* The server speaks this transport (as receipts have it) instead of Streamable HTTP;
     * before anything is sent by it. */
    void (*found)(void *ctx, const char *transport);

    /* The message that is being delivered has no end. */
    void (*cut)(void *ctx, const struct err *why);
    void (*say)(void *ctx, const char *sentence); /* for a person */
};

/* False for those that are ours to set: docs/http.md has the list. */
bool http_client_may_set(str name);

struct http_client_options {
    struct loop *loop;
    const struct url *url;          /* borrowed, as is all here */
    struct tls_trust *trust;        /* for https */
    const struct http_proxy *proxy; /* NULL: none */
    const struct http_own_header *headers;
    size_t header_count;
    const struct http_client_hooks *hooks;
    const struct endpoint_events *events;
    void *ctx; /* of hooks and events */
};

/* *out is its endpoint; nothing is connected yet. `finish`: what is under way is waited
 * for, the session is deleted, then on_ended; called again, it waits for nothing but the
 * deletion. */
MUST_CHECK int http_client_open(struct http_client **out,
                                const struct http_client_options *options,
                                struct err *err);
struct endpoint *http_client_endpoint(struct http_client *c);

/* Is a message not sent yet, or its answer not here? */
bool http_client_is_busy(const struct http_client *c);

void http_client_free(struct http_client *c); /* closes; NULL is fine */

#endif
