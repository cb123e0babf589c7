/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gate.h"

#include <stdlib.h>

#include "base/err.h"
#include "transport/loop.h"

struct held *held_new(void)
{
    return calloc(1, sizeof(struct held));
}

void held_free(struct held *h)
{
    if (!h)
        return;
    buf_release(&h->bytes);
    buf_release(&h->label);
    buf_release(&h->refusal);
    tap_sent_release(&h->sent);
    free(h);
}

void gate_init(struct gate *g, const struct gate_options *options)
{
    *g = (struct gate){ .options = *options };
    g->last = &g->first;
}

void gate_release(struct gate *g)
{
    while (g->first) {
        struct held *next = g->first->next;

        held_free(g->first);
        g->first = next;
    }
    g->last = &g->first;
}

static struct held *take_first(struct gate *g)
{
    struct held *h = g->first;

    g->first = h->next;
    if (!g->first)
        g->last = &g->first;
    g->bytes[h->to] -= h->bytes.n;
    return h;
}

static void let_go(struct gate *g, const struct err *why)
{
    struct held *h = take_first(g);

    g->options.release(g->options.ctx, h, why);
    held_free(h);
}

/* --- syncing --- */

struct job {
    struct gate *gate;
    struct session_wait wait;
    struct err err;
    int result;
};

static void run_sync(void *ctx)
{
    struct job *job = ctx;

    job->result = session_wait(&job->wait, &job->err);
}

static void go_on(struct gate *g);

/* Everything up to the size that was waited for may go, or has failed. */
static void sync_done(void *ctx)
{
    struct job *job = ctx;
    struct gate *g = job->gate;
    uint64_t upto = job->wait.upto;

    g->syncing = false;
    session_wait_end(g->options.session, &job->wait, job->result);
    while (g->first && g->first->upto <= upto) {
        const struct err *why = job->result < 0 && g->first->upto ? &job->err : NULL;

        let_go(g, why);
    }
    free(job);
    go_on(g);
}

/* What this sync is for: the first, or all that are here. */
static uint64_t next_size(const struct gate *g)
{
    uint64_t upto = g->first->upto;

    if (g->options.one_by_one)
        return upto;
    for (const struct held *h = g->first; h; h = h->next) {
        if (h->upto > upto)
            upto = h->upto;
    }
    return upto;
}

static void begin_sync(struct gate *g)
{
    struct err err = { .code = ERR_NONE };
    struct job *job = calloc(1, sizeof(*job));

    if (job) {
        job->gate = g;
        session_wait_begin(g->options.session, next_size(g), &job->wait);
        if (loop_work(g->options.loop, run_sync, sync_done, job, &err) == 0) {
            g->syncing = true;
            return;
        }
        session_wait_end(g->options.session, &job->wait, -1);
        free(job);
    } else {
        err_set(&err, ERR_NOMEM, "no memory to wait for the disk");
    }
    let_go(g, &err);
}

static void go_on(struct gate *g)
{
    while (g->first && !g->syncing) {
        if (g->first->upto == 0)
            let_go(g, NULL);
        else
            begin_sync(g);
    }
    if (gate_is_empty(g))
        g->options.empty(g->options.ctx);
}

void gate_hold(struct gate *g, struct held *held)
{
    held->next = NULL;
    *g->last = held;
    g->last = &held->next;
    g->bytes[held->to] += held->bytes.n;
    go_on(g);
}
