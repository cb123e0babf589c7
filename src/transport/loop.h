/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop - the one event loop of the process: descriptors, timers, signals, and work that
 * may block. The only module that includes libuv.
 *
 * Everything is called from the loop's thread, except the `run` half of loop_work().
 * Nothing calls back inside the call that asked for it. Handles are freed by their owner;
 * after that nothing of theirs is called any more.
 */
#ifndef TRANSPORT_LOOP_H
#define TRANSPORT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct err;
struct loop;
struct loop_watch;
struct loop_chore;
struct loop_timer;
struct loop_signal;
struct volley;

MUST_CHECK int loop_new(struct loop **out, struct err *err);
void loop_free(struct loop *l); /* every handle is freed before; NULL is fine */

void loop_run(struct loop *l);  /* until loop_stop(), or nothing is left to wait for */
void loop_stop(struct loop *l); /* after the present callbacks */

uint64_t loop_now(struct loop *l); /* ms, monotonic, of this turn */

enum loop_events {
    LOOP_READABLE = 1,
    LOOP_WRITABLE = 2,
};

/* Watch a descriptor; a regular file counts as always ready. Begins with no events. */
MUST_CHECK int loop_watch_new(struct loop_watch **out, struct loop *l, int fd,
                              void (*on_ready)(void *ctx, unsigned events), void *ctx,
                              struct err *err);
void loop_watch_set(struct loop_watch *w, unsigned events); /* 0: none */
void loop_watch_free(struct loop_watch *w);                 /* the fd stays open */

/* Something to be done once before the loop waits again: behind everything that is ready
 * now, also what is ready because of it. Its owner keeps it where it is, and cancels it
 * before it goes. */
struct loop_chore {
    void (*run)(void *ctx);
    void *ctx;
    bool first;                    /* before all that are not */
    struct loop_chore *next, **at; /* `at` is NULL: it is not due */
};

void loop_chore_set(struct loop *l, struct loop_chore *c);
void loop_chore_cancel(struct loop *l, struct loop_chore *c);

/* Those that are due and do not come first, in their order; NULL: none. */
const struct loop_chore *loop_chores(const struct loop *l);

/* Of this loop, for volley_fire(). */
struct volley **loop_volley(struct loop *l);

/* Is one due that comes first? Then what it is to precede must wait. */
bool loop_has_first_chore(const struct loop *l);

static inline bool loop_chore_is_set(const struct loop_chore *c)
{
    return c->at != NULL;
}

MUST_CHECK int loop_timer_new(struct loop_timer **out, struct loop *l,
                              void (*on_time)(void *ctx), void *ctx, struct err *err);
void loop_timer_set(struct loop_timer *t, uint64_t ms, bool repeat);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_is_set(const struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

/* Behind its end a signal is held back in this thread: what a program does then is short,
 * and should not be cut off by the word that ended the loop, said once more. */
MUST_CHECK int loop_signal_new(struct loop_signal **out, struct loop *l, int number,
                               void (*on_signal)(void *ctx, int number), void *ctx,
                               struct err *err);
void loop_signal_free(struct loop_signal *s);

/* Call run(ctx) on a worker thread, then done(ctx) here. */
MUST_CHECK int loop_work(struct loop *l, void (*run)(void *ctx), void (*done)(void *ctx),
                         void *ctx, struct err *err);

#endif
