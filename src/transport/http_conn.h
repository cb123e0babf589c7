/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_conn - a client's HTTP/1.1 connection: one request at a time, its response handed
 * on as it comes.
 */
#ifndef TRANSPORT_HTTP_CONN_H
#define TRANSPORT_HTTP_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "transport/http_body.h"
#include "transport/http_head.h"
#include "transport/link.h"

struct err;

#define HTTP_INTERIM_MAX 16    /* 1xx heads before the response */
#define HTTP_IDLE_WAIT   1500  /* ms for an idle one, unless the server says more */
#define HTTP_IDLE_LIMIT  60000 /* …at most */

/* Of a request that was made; called from the loop. After on_done and on_fail none. */
struct http_conn_events {
    void (*on_head)(void *ctx, const struct http_head *head);
    void (*on_body)(void *ctx, str bytes);
    void (*on_done)(void *ctx);

    /* `unheard`: an idle connection was closed instead of answering; the server may not
     * have seen the request. */
    void (*on_fail)(void *ctx, const struct err *why, bool unheard);
    void (*on_drained)(void *ctx); /* the request is out */
};

struct http_conn {
    struct http_conn *next; /* its owner's list */
    struct link link;
    const struct http_conn_events *events;
    void *ctx;        /* of the present request; NULL: idle or closed */
    struct buf first; /* what to send when it is open */
    bool used;        /* a response came before */
    bool heard;       /* a byte of the present response has come */
    bool has_head, closed, reading;
    bool keep_alive; /* as the present head says */
    unsigned interim;
    struct http_head *head; /* NULL: nothing more is read of it */
    struct http_body body;
    uint64_t idle_wait, idle_until; /* ms; loop time */
};

/* It is being opened; NULL on failure. */
struct http_conn *http_conn_new(const struct link_options *options, struct err *err);

/* The whole request, head and body; the connection is idle or new. */
MUST_CHECK int http_conn_request(struct http_conn *c, str head, str body,
                                 const struct http_conn_events *events, void *ctx,
                                 struct err *err);

bool http_conn_is_idle(const struct http_conn *c); /* open, and ready for another one */
void http_conn_read(struct http_conn *c, bool on);
size_t http_conn_queued(const struct http_conn *c);

/* At once; nothing is called any more. */
void http_conn_close(struct http_conn *c);

/* After that: may the memory go, outside of its callbacks? */
bool http_conn_is_over(const struct http_conn *c);
void http_conn_free(struct http_conn *c); /* closes it, if need be */

#endif
