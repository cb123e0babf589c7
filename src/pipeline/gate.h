/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - where messages wait until their evidence is on disk (--durability group and
 * strict). They leave in the order in which they came, whichever way they go; while one
 * sync is under way the next messages gather, and share the next sync (`group`), or get
 * one each (`strict`). The loop never waits.
 */
#ifndef PIPELINE_GATE_H
#define PIPELINE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "evidence/session.h"
#include "pipeline/tap.h"

struct err;
struct exchange;
struct loop;

/* A message, or a piece of one, that waits. The gate owns it and what it holds. */
struct held {
    struct held *next;
    enum direction to;
    struct exchange *exchange;
    struct buf bytes;
    struct buf label; /* of the transport: endpoint.h */
    bool end;
    bool mark;            /* no message: what came before it in the exchange is out */
    bool own;             /* said by us: one message a line, each an answer */
    unsigned answered;    /* requests of the exchange that it answers */
    uint64_t upto;        /* the log's size that must be on disk; 0: only its turn */
    bool refuse;          /* it must not go on should that fail… */
    struct buf refusal;   /* …and this is for the client then; may be empty */
    struct tap_sent sent; /* to be said when it has gone on */
};

struct held *held_new(void); /* all zero; NULL without memory */
void held_free(struct held *h);

struct gate_options {
    struct loop *loop;
    struct session *session;
    bool one_by_one; /* strict */

    /* It is this one's turn; `why` says that its evidence is not on disk, NULL that it
     * is. `held` is freed afterwards. */
    void (*release)(void *ctx, struct held *held, const struct err *why);
    void (*empty)(void *ctx); /* nothing waits any more */
    void *ctx;
};

struct gate {
    struct gate_options options;
    struct held *first, **last;
    size_t bytes[2]; /* that wait, by direction */
    bool syncing;
};

void gate_init(struct gate *g, const struct gate_options *options);
void gate_release(struct gate *g);

/* Takes `held` over. The hooks may be called in here. */
void gate_hold(struct gate *g, struct held *held);

static inline bool gate_is_empty(const struct gate *g)
{
    return g->first == NULL && !g->syncing;
}

#endif
