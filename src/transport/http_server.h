/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server - the serving side of HTTP/1.1: it listens, reads requests strictly, hands
 * each one to its owner when it is whole, and writes what the owner answers. It knows no
 * paths and no JSON.
 *
 * One request at a time per connection; what is pipelined waits. A request that is no
 * HTTP is answered by status, and the connection is closed; the body of that answer is
 * the owner's (`refusal`). So is one without TLS where there should be. Every wait has an
 * end: see the limits. Nothing is called back inside a call of the owner's.
 *
 * Whoever asks may close the direction that it writes to, and still gets its answer: TCP
 * does not tell that from going away. So the end of what a client sends means that it is
 * gone only while an answer of unknown length is open (begun before that end came): such
 * a stream would have nobody. Before, a client that left is found out by writing to it, a
 * second later at most.
 */
#ifndef TRANSPORT_HTTP_SERVER_H
#define TRANSPORT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "transport/http_head.h"

struct clock;
struct err;
struct http_request;
struct http_server;
struct loop;
struct tls_identity;

#define HTTP_SERVER_CONNS_MAX    10000               /* others wait to be accepted */
#define HTTP_SERVER_BODY_MAX     ((size_t)64 << 20)  /* of one request: 413 */
#define HTTP_SERVER_BODIES_MAX   ((size_t)256 << 20) /* of all that are held: 503 */
#define HTTP_SERVER_PIPELINE_MAX ((size_t)16 << 10)  /* waiting bytes: reading stops */
#define HTTP_SERVER_PASS_MAX     ((size_t)64 << 10)  /* of a body that nobody wants */
#define HTTP_SERVER_ADDRESSES    8                   /* of the host: listened on */

/* ms from a request's first byte (or the connection's beginning, TLS and all) to the end
 * of its head: closed, 408 when a byte has come */
#define HTTP_SERVER_HEAD_WAIT 10000

/* ms in which at least HTTP_SERVER_BODY_RATE bytes of a body must come: 408 */
#define HTTP_SERVER_BODY_WAIT 30000
#define HTTP_SERVER_BODY_RATE 1024

#define HTTP_SERVER_IDLE_WAIT   120000 /* ms between requests */
#define HTTP_SERVER_STALL_WAIT  60000  /* ms in which nothing queued is taken: closed */
#define HTTP_SERVER_LINGER_WAIT 3000   /* ms that a closed client is still listened to */
#define HTTP_SERVER_ACCEPT_WAIT 1000   /* ms of pause when no descriptor is left */
#define HTTP_SERVER_SAY_WAIT    10000 /* ms until the next client without TLS is told of */

/* Called from the loop. Each may be NULL but on_request and on_gone. */
struct http_server_events {
    /* The head is here and the body is not yet: false when the owner has answered (with
     * http_reply); then the body is passed over, or the connection closed behind the
     * answer where that would take long. 100-continue is sent after true. */
    bool (*on_head)(void *ctx, struct http_request *r);

    /* It is whole: r->body. The owner answers now or later. */
    void (*on_request)(void *ctx, struct http_request *r);

    /* Whoever asked is gone before the answer was whole; `r` is invalid afterwards. Also
     * for a request that on_request never saw, if on_head did. */
    void (*on_gone)(void *ctx, struct http_request *r);

    /* What was queued of the answer is out. */
    void (*on_drained)(void *ctx, struct http_request *r);

    /* A request that is refused by us: add the content type's header line and the body
     * for this status and sentence. `head` is NULL when it could not be read. */
    void (*refusal)(void *ctx, const struct http_head *head, unsigned status,
                    const char *why, struct buf *headers, struct buf *body);

    void (*say)(void *ctx, const char *sentence); /* for a person; rarely */
};

struct http_request {
    const struct http_head
        *head;   /* until the answer is whole, or http_request_forget() */
    str body;    /* whole; valid until the same, or http_request_drop_body() */
    void *owner; /* the owner's own; NULL at first */

    /* Set by the owner: whoever says no more is gone. Else he may wait for his answer,
     * as long as it is not a stream that has begun. */
    bool ends_with_client;
};

/* Other limits than those above, each of them: for tests. */
struct http_server_limits {
    uint64_t head_wait, body_wait, idle_wait, stall_wait, linger_wait; /* ms */
    size_t conns_max, body_max, bodies_max;
};

struct http_server_options {
    struct loop *loop;
    const struct clock *clock; /* for Date; NULL: without one */
    const char *host; /* an address ("127.0.0.1", "::1") or a name, of which every address
                         is listened on */
    uint16_t port;    /* 0: any */
    struct tls_identity *identity; /* NULL: plain */
    const struct http_server_events *events;
    void *ctx;
    const struct http_server_limits *limits; /* NULL: those above */
};

/* A name is looked up before this returns. SIGPIPE must be ignored. */
MUST_CHECK int http_server_open(struct http_server **out,
                                const struct http_server_options *options,
                                struct err *err);
uint16_t http_server_port(const struct http_server *s);

/* No new connections; idle ones are closed, the others after their answer. */
void http_server_finish(struct http_server *s);
size_t http_server_open_requests(const struct http_server *s);
size_t http_server_connections(const struct http_server *s);

/* Closes all at once, and nothing is called any more; NULL is fine; outside of its
 * callbacks. */
void http_server_free(struct http_server *s);

/* The peer's address without its port ("127.0.0.1", "::1"). */
const char *http_request_peer(const struct http_request *r);

/* Free what is held of the request itself, when the owner needs it no more: a stream
 * that idles should cost little. `head` and `body` are empty afterwards. */
void http_request_forget(struct http_request *r);
void http_request_drop_body(struct http_request *r);

/* --- answering ---
 *
 * `headers` are whole lines as http_put_header() writes them; Content-Length,
 * Transfer-Encoding, Connection and Date are added here. To HEAD, 204 and 304 no body is
 * sent. After http_reply, _end and _abort the request is gone: no hook is called. */

/* All at once. */
void http_reply(struct http_request *r, unsigned status, str headers, str body);

#define HTTP_REPLY_CHUNKED UINT64_MAX /* length is not known (HTTP/1.0: until close) */

/* In pieces: begin, add…, end. With a length, exactly so many bytes must be added: what
 * is more is left out, and an end before is an abort. What is small leaves at the end of
 * the loop's turn, in one write. */
void http_reply_begin(struct http_request *r, unsigned status, str headers,
                      uint64_t length);
void http_reply_add(struct http_request *r, str bytes);
void http_reply_end(struct http_request *r);

/* Not whole: the connection is cut, so that the other side knows. */
void http_reply_abort(struct http_request *r);
bool http_reply_has_begun(const struct http_request *r);
size_t http_reply_queued(const struct http_request *r); /* bytes not taken yet */

#endif
