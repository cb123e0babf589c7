/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers - threads for work that may block: a few at most, and none when there is
 * nothing to do. As long as a process has a second thread, each of its system calls costs
 * more, and most of ours would only sleep.
 *
 * workers_add() and workers_done() are for one thread, the owner's. `wake` is called from
 * any, and only says that workers_done() has something.
 */
#ifndef TRANSPORT_WORKERS_H
#define TRANSPORT_WORKERS_H

#include <pthread.h>

#include "base/attr.h"

struct err;

#define WORKERS_MAX 4 /* at once; more work waits */

/* Its owner keeps it until it is done. */
struct work {
    void (*run)(void *ctx); /* on a worker */
    void *ctx;
    struct work *next;
};

struct workers {
    pthread_mutex_t mutex;
    pthread_cond_t left; /* one of them */
    struct work *first, **last;
    struct work *done, **done_last; /* in the order of their ends */
    unsigned count;
    void (*wake)(void *ctx);
    void *ctx;
};

void workers_init(struct workers *w, void (*wake)(void *ctx), void *ctx);

/* Waits for those that work; what they did is forgotten. */
void workers_release(struct workers *w);

MUST_CHECK int workers_add(struct workers *w, struct work *work, struct err *err);
struct work *workers_done(struct workers *w); /* one that is, or NULL */

#endif
