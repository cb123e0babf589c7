/* SPDX-License-Identifier: Apache-2.0 */
/* http_client_internal - what http_client.c, http_request.c, http_exchange.c and
 * http_legacy.c share. Nobody else includes it. */
#ifndef TRANSPORT_HTTP_CLIENT_INTERNAL_H
#define TRANSPORT_HTTP_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "transport/http_client.h"
#include "transport/http_conn.h"
#include "transport/loop.h"
#include "transport/sse.h"

enum exchange_kind {
    EXCHANGE_POST,
    EXCHANGE_LISTEN, /* GET: the server speaks by itself */
    EXCHANGE_DELETE,
    EXCHANGE_STREAM, /* GET: the session of an older server, with all that it says */
};

enum exchange_state {
    EXCHANGE_QUEUED,
    EXCHANGE_RUNNING,
    EXCHANGE_RESTING,  /* until it goes on with its stream */
    EXCHANGE_AWAITING, /* its answer, on the stream of an older server */
    EXCHANGE_DEAD,     /* to be freed */
};

enum exchange_content {
    CONTENT_NONE, /* passed over */
    CONTENT_JSON,
    CONTENT_EVENTS,
    CONTENT_REFUSAL, /* of a refusal: held until its end */
};

struct exchange {
    struct exchange *next;
    struct http_client *client;
    enum exchange_kind kind;
    enum exchange_state state;
    struct buf body, ids;
    struct buf target; /* that it was redirected to; empty: it was not */
    bool wants_answer, opens_session, opens_stream, endless, stateless, repeatable;
    bool answered;
    bool repeated; /* it has been sent twice */

    struct http_conn *conn;
    unsigned status;
    enum exchange_content content;
    struct buf message; /* the beginning of the present one, or all of it */
    bool message_ended; /* it is whole, and waits for its turn */
    bool speaking;      /* its beginning is delivered */
    bool blocked;       /* another one speaks */
    struct buf waiting; /* what came since */
    bool ended;         /* and so did the body */
    struct err why;     /* how, unless its code is ERR_NONE */

    struct sse sse;
    struct buf last_id; /* of an event; empty: the stream cannot be gone on with */
    uint32_t retry;     /* ms */
    unsigned resumes;   /* in a row, without an event */
    struct loop_timer *timer;
};

/* What the server is. Only ever moves down this list. */
enum server_kind {
    SERVER_UNKNOWN, /* nothing was answered yet */
    SERVER_ASKED,   /* it refused a POST: is it an older one? */
    SERVER_NEW,     /* Streamable HTTP */
    SERVER_OLD,     /* HTTP+SSE */
};

struct http_client {
    struct endpoint endpoint;
    struct http_client_options options;
    struct resolver *resolver;
    struct exchange *exchanges; /* in the order in which they were made */
    struct http_conn *conns;
    size_t conn_count;
    struct exchange *speaker;
    const struct exchange *first; /* what follows waits for this one */
    struct loop_timer *ack, *soon;
    enum server_kind server;
    struct url place; /* of an older server: where POSTs go */
    struct err why;   /* how it ended, unless its code is ERR_NONE */
    struct buf session;
    bool stateless; /* as the last message was */
    bool paused, listening, finishing, giving_up, deleting, ended, said_ended;
};

/* --- http_client.c --- */

void client_run(struct http_client *c, struct exchange *x); /* send it, now */
void client_soon(struct http_client *c); /* go on with what can go on, from the loop */
struct exchange *client_add(struct http_client *c, enum exchange_kind kind);
void client_kill(struct exchange *x); /* no more of it; freed later */
void client_say(const struct http_client *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- http_request.c --- */

struct url exchange_url(const struct exchange *x); /* where it goes */

MUST_CHECK int exchange_put_head(struct buf *out, const struct exchange *x,
                                 const struct http_facts *f, struct err *err);

/* --- http_legacy.c: HTTP+SSE, the transport of 2024-11-05 --- */

/* Does this refusal leave it open whether the server is an older one? */
bool legacy_may_be(const struct exchange *x);

/* Ask; the message waits. */
void legacy_ask(struct exchange *x, const struct err *why);

bool legacy_is_asking(const struct exchange *x); /* is it the question? */
void legacy_take_endpoint(struct exchange *x);   /* an event of its answer */
void legacy_stream_ended(struct exchange *x, const struct err *why);
void legacy_forget_headers(struct http_facts *f); /* those that it knows nothing of */

/* --- http_exchange.c: what comes back --- */

extern const struct http_conn_events exchange_events;

void exchange_fail(struct exchange *x, const struct err *why);
void exchange_unblock(struct exchange *x); /* nobody speaks now */

#endif
