/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint - one side of a session: it delivers messages as spans of bytes and takes
 * messages the same way. It frames and nothing more: no JSON, no decision.
 *
 * A message is a run of spans; the last one has `end` set (and may be empty). On stdio
 * the bytes include the line's end, so that what is sent on is what came. `exchange` is
 * the transport's own handle of what a message belongs to (an HTTP request, a stream of
 * events); it is NULL on stdio, and whoever answers hands it back. A transport with
 * messages that need no line end delivers them without one, and takes them with or
 * without; what it must know of a message that only JSON tells, it asks its owner
 * (http_client.h).
 */
#ifndef TRANSPORT_ENDPOINT_H
#define TRANSPORT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/str.h"

struct buf;
struct err;
struct endpoint;
struct exchange;

/* Called from the loop, never inside a call of ours. */
struct endpoint_events {
    void (*on_span)(void *ctx, struct exchange *x, str bytes, bool end);
    void (*on_ended)(void *ctx, const struct err *why); /* no more comes; NULL: orderly */
    void (*on_drained)(void *ctx);                      /* all that was sent is out */
    void (*on_gone)(void *ctx, const struct err *why);  /* nothing can be sent any more */
    void (*on_many)(void *ctx, bool begin); /* around spans that came at once; or NULL */
};

/* One const instance per transport. */
struct endpoint_type {
    const char *name; /* "stdio", as receipts have it */
    bool is_lines;    /* a message ends in a line end, and has none inside */
    void (*read)(struct endpoint *e, bool on);
    int (*send)(struct endpoint *e, struct exchange *x, str bytes, bool end,
                struct err *err);               /* copies what it cannot send at once */
    void (*cork)(struct endpoint *e, bool on);  /* gather what is sent until `off` */
    bool corks;                                 /* and nothing leaves before */
    size_t (*queued)(const struct endpoint *e); /* bytes not yet taken */
    void (*finish)(struct endpoint *e); /* we send no more: EOF, after the queue. Again:
                                           what is still awaited is given up */
    void (*close)(struct endpoint *e);  /* at once */

    /* For a transport whose messages belong to exchanges; NULL: a message is a line.
     *
     * The message whose end is sent next answers so many requests of the exchange. */
    void (*answers)(struct endpoint *e, struct exchange *x, unsigned requests);

    /* May the beginning of a message be sent to the exchange (NULL: to any), before it is
     * known whom it answers? */
    bool (*may_begin)(const struct endpoint *e, const struct exchange *x);

    /* The message whose beginning was sent has no end. */
    void (*cut)(struct endpoint *e, struct exchange *x);

    /* Does what comes in the exchange answer only what was asked in it? Ids of others may
     * be alike. Left out: it may answer anything. */
    bool (*is_own)(const struct endpoint *e, const struct exchange *x);

    /* Everything that came in the exchange has gone on: see relay_defers(). */
    void (*settled)(struct endpoint *e, const struct exchange *x);

    /* What the transport knows of the message of the exchange that goes next (an event's
     * id); for whoever keeps the message for a while. */
    void (*take_label)(struct endpoint *e, struct exchange *x, struct buf *out);
    void (*give_label)(struct endpoint *e, struct exchange *x, str label);
};

struct endpoint {
    const struct endpoint_type *type;
    const struct endpoint_events *events;
    void *ctx;
};

#endif
