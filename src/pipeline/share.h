/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share - one stdio server for many: each member has an endpoint of its own, and requests
 * of one member may come from many clients (HTTP exchanges). Their ids, progress tokens
 * and subscription ids are rewritten on the way to the server, so that no two are alike,
 * and put back on the way home; no other byte of a message is changed, but that a message
 * becomes one line.
 *
 * A server that dies is started again, after a pause that grows; what was open is told
 * to whom it concerns (`lost`). Messages that are sent meanwhile wait. If it had been
 * initialised, that is done again, and resources that members subscribed to are
 * subscribed to again.
 */
#ifndef PIPELINE_SHARE_H
#define PIPELINE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"
#include "transport/endpoint.h"

struct err;
struct loop;
struct share;

#define SHARE_PAUSE_MIN 250   /* ms before the first restart; doubles… */
#define SHARE_PAUSE_MAX 30000 /* …up to this */
#define SHARE_STEADY    10000 /* ms that a server must have run for it to begin anew */

#define SHARE_HELD_MAX      ((size_t)1 << 20) /* bytes that wait while it is not there */
#define SHARE_OPEN_MAX      65536             /* requests that wait for their answer */
#define SHARE_ASKED_MAX     1024 /* requests of the server that wait for theirs */
#define SHARE_BATCH_MAX     1024 /* messages of one batch to the server */
#define SHARE_SUBSCRIBE_MAX 1024 /* resources that one member is subscribed to */

/* A member that does not read holds up the server when more than so many bytes wait for
 * it, and is cut off (on_ended) when that has lasted for so many ms. */
#define SHARE_QUEUE_MAX ((size_t)4 << 20)
#define SHARE_STALL_MAX 10000

struct share_options {
    struct loop *loop;
    char *const *argv; /* borrowed, as long as the share lives */
    void (*say)(void *ctx, const char *sentence);
    void *ctx;
};

/* The server runs when this returns 0. */
MUST_CHECK int share_open(struct share **out, const struct share_options *options,
                          struct err *err);
void share_free(struct share *s); /* kills the server's group; no member is left. From
                                     `gone`, too, but from nothing else of ours */

/* Ask the server to go (EOF, then SIGTERM, then SIGKILL); `gone` is called once, from the
 * loop, when it is. Members must have left. */
void share_finish(struct share *s, void (*gone)(void *ctx), void *ctx);

/* How a life of the server ended. */
struct share_end {
    const char *reason; /* "exit", "signal"; "closed": it lives, but says no more */
    unsigned status;    /* of the exit, or the signal's number */
};

struct share_member_options {
    const struct endpoint_events *events;

    /* This request of the member's (its id as the member wrote it) will not be answered.
     * From the loop. */
    void (*lost)(void *ctx, struct exchange *x, str id, const struct err *why);

    /* The server has ended, and is started again; NULL: it does not matter. After the
     * losses. From the loop. */
    void (*ended)(void *ctx, const struct share_end *end);
    void *ctx; /* of all */
};

/* A member's endpoint. Messages are sent whole; one that is no JSON is not sent on, nor
 * is the cancelling of what is not open, nor an answer to what was not asked: `send`
 * fails then, and nothing else is wrong. What the server says goes: an answer to whom it
 * answers, with the exchange that asked; progress to whose token it is, with that
 * request's exchange; a request of the server to the member whose request is the newest
 * that is open, with its exchange, else to the newest member (its answer finds the way
 * back; without any member it is refused); subscription notifications by their
 * subscription id; resources/updated to members that subscribed to that URI or one above
 * it; everything else to all members. A batch whose elements go different ways becomes
 * several. `queued` is what the server has not taken from all members. `close` leaves:
 * what is open is cancelled at the server, and answered to nobody. `finish` makes
 * on_ended follow, when nothing of the member's is open any more (again: at once).
 * on_gone is never called. */
MUST_CHECK int share_join(struct share *s, const struct share_member_options *options,
                          struct endpoint **out, struct err *err);

/* The client of this exchange is gone: the server is sent notifications/cancelled for
 * each of its requests that is open. What it answers all the same, or has answered, comes
 * to the member as before: it is evidence, though nobody waits for it. */
void share_cancel_exchange(struct endpoint *member, const struct exchange *x);

#endif
