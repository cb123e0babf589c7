/* SPDX-License-Identifier: Apache-2.0 */
/* front_errand - what is asked of a server over HTTP for a client over HTTP; shared by
 * front_far.c and front_errand.c. Nobody else includes it. */
#ifndef PIPELINE_FRONT_ERRAND_H
#define PIPELINE_FRONT_ERRAND_H

#include "pipeline/front_internal.h"
#include "pipeline/oauth.h"
#include "pipeline/upstream.h"
#include "transport/http_conn.h"

enum errand_content {
    CONTENT_RAW,    /* passed on, and not looked at */
    CONTENT_JSON,   /* a message */
    CONTENT_EVENTS, /* many */
    CONTENT_ACCESS, /* who grants access: held whole, since it names a place */
};

/* A request to the server, made for one of a client's. */
struct errand {
    struct errand *next, *before; /* of its seat's */
    struct seat *seat;
    struct exchange *exchange;
    enum visit_kind kind;
    bool is_delete, is_initialize, stateless;
    bool is_access;  /* asked who grants access to what */
    bool repeatable; /* nothing happens twice when it is sent twice */
    bool repeated;
    bool dead;      /* to be freed */
    bool resumable; /* the client can ask for the rest of the stream */
    bool sending;   /* the request, of `size` bytes, is not out */
    bool stalled;   /* the client does not read what comes back */
    bool deferred;  /* it is over, and what came of it waits for the disk */
    bool failed;    /* …and has no good end, because of `why` */
    bool speaking;  /* the beginning of `message` is delivered */
    size_t size;
    struct err *why;    /* NULL: there was no memory for it */
    struct buf request; /* head and body, while it may have to be sent again */
    struct http_conn *conn;

    unsigned status;
    enum errand_content content;
    struct buf headers; /* of the answer */
    uint64_t length;    /* of its body; HTTP_REPLY_CHUNKED: not known */
    struct buf message; /* the beginning of the present one */
    struct sse sse;
};

/* --- front_errand.c: what comes back --- */

extern const struct http_conn_events errand_events;

void errand_end(struct errand *x);
void errand_note_sending(struct errand *x, bool sending);
void errand_conclude(struct errand *x, const struct err *why); /* NULL: it went well */

/* --- front_far.c: what goes there --- */

/* The connection is of no use for an errand any more; for others, if it is `good`. */
void far_release(struct front *f, struct http_conn *conn, bool good);

MUST_CHECK int errand_start(struct errand *x, str request, struct err *err);

/* The two names of the place that a client asked for; ours is put into *origin. */
struct oauth_places far_places(const struct front *f, const struct http_head *asked,
                               struct buf *origin);

/* May header number i go on, or is it of that connection alone? */
bool errand_passes(const struct http_head *h, size_t i);

#endif
