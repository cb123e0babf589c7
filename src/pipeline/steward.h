/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steward - what a log needs while it is written to, whoever's sessions these are:
 * checkpoints, and an end for the sessions that dead recorders left.
 *
 * All that waits for the disk is done by workers; here is only asked for.
 */
#ifndef PIPELINE_STEWARD_H
#define PIPELINE_STEWARD_H

#include <stdbool.h>

#include "evidence/leaves.h"
#include "evidence/log.h"
#include "evidence/pack.h"

struct loop;

#define STEWARD_DEAD_WAIT 2000 /* ms that an end should wait for a recovery */

/* So many events are signed without waiting for the second to end, while the log still
 * has their hashes at hand. */
#define STEWARD_EVENTS (LEAVES_MAX / 4 * 3)

struct steward_options {
    struct loop *loop;
    struct log *log; /* borrowed, as all of these */

    /* From any thread; either may be NULL. */
    void (*say)(void *ctx, const char *sentence);
    void (*packed)(void *ctx, const struct pack_result *pack);
    void *hook_ctx;
    void (*recovered)(void *ctx); /* from the loop: the recovery is done; or NULL */
    void *recovered_ctx;
};

struct steward {
    struct steward_options options;
    bool news; /* since the last checkpoint */
    bool checkpointing;
    bool failed;       /* the last one: the next waits for its second */
    uint64_t asked_at; /* what we had written when it was asked for */
    bool asked;        /* to recover: once */
    bool recovering;
};

void steward_init(struct steward *s, const struct steward_options *options);

/* Events were written. */
static inline void steward_note(struct steward *s)
{
    s->news = true;
}

/* About once a second: sign what is new. */
void steward_tick(struct steward *s);

/* A message went its way: sign, if much is new. */
void steward_look(struct steward *s);

/* Finish in the background what dead recorders left; the first call counts. */
void steward_recover(struct steward *s);

static inline bool steward_is_busy(const struct steward *s)
{
    return s->checkpointing || s->recovering;
}

#endif
