/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/upkeep.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "transport/loop.h"

void upkeep_init(struct upkeep *u, const struct upkeep_options *options, uint64_t now)
{
    *u = (struct upkeep){ .options = *options, .last_event = now, .part_began = now };
}

void upkeep_release(struct upkeep *u)
{
    if (u->part)
        pack_past_release(&u->part->past);
    free(u->part);
    u->part = NULL;
}

static void say(const struct upkeep *u, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(const struct upkeep *u, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!u->options.say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    u->options.say(u->options.hook_ctx, sentence);
}

static const struct receipt_counts *counts(const struct upkeep *u)
{
    return &session_history(u->options.session)->counts;
}

/* What a worker does, and what came of it. */
struct job {
    struct upkeep *u;
    struct pack_result pack;
    struct err err;
    int result;
};

static bool start(struct upkeep *u, void (*run)(void *), void (*done)(void *))
{
    struct job *job = calloc(1, sizeof(*job));
    struct err err;

    if (!job)
        return false;
    job->u = u;
    if (loop_work(u->options.loop, run, done, job, &err) == 0)
        return true;
    free(job);
    return false;
}

/* --- heartbeats --- */

static void heartbeat(struct upkeep *u, uint64_t now)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct err err;

    event_init(&e, EVENT_HEARTBEAT);
    if (session_put(u->options.session, &e, NULL, &err) < 0)
        say(u, "%s", err.msg);
    u->last_event = now;
}

/* --- parts --- */

static void run_pack(void *ctx)
{
    struct job *job = ctx;

    job->result =
        pack_build(job->u->options.log, &job->u->part->request, &job->pack, &job->err);
}

static void note_pack(struct upkeep *u, const struct pack_result *pack)
{
    u->cut = false;
    snprintf(u->part->root, sizeof(u->part->root), "%s", pack->root);
    if (u->options.packed)
        u->options.packed(u->options.hook_ctx, pack);
}

static void pack_done(void *ctx)
{
    struct job *job = ctx;
    struct upkeep *u = job->u;

    u->packing = false;
    if (job->result == 0)
        note_pack(u, &job->pack);
    else
        say(u, "the pack of part %llu: %s", (unsigned long long)u->part->request.cut.part,
            job->err.msg);
    free(job);
    if (u->options.idle)
        u->options.idle(u->options.idle_ctx);
}

static const char *root_of(const struct upkeep *u)
{
    return u->part && u->part->root[0] ? u->part->root : NULL;
}

static void begin_pack(struct upkeep *u)
{
    u->packing = start(u, run_pack, pack_done);
}

static void cut_part(struct upkeep *u, uint64_t now)
{
    struct session *s = u->options.session;
    struct err err;

    if (session_write(s, &err) < 0)
        say(u, "%s", err.msg);
    log_let_go(u->options.log); /* what follows may wait for the disk */
    u->part_began = now;        /* also after a failure: not again at once */
    if (!u->part && !(u->part = calloc(1, sizeof(*u->part)))) {
        say(u, "no memory for a part");
        return;
    }
    u->part->request = (struct pack_request){ .session = session_id(s),
                                              .receipts = session_receipts(s),
                                              .first = session_history(s)->first,
                                              .past = &u->part->past };
    if (session_part(s, root_of(u), &u->part->request.cut, &err) < 0) {
        say(u, "%s", err.msg);
        return;
    }
    u->receipts_at_part = counts(u)->receipts;
    u->cut = true;
    begin_pack(u);
}

/* The next part needs the root of this one: one pack at a time, and one that failed is
 * tried again before anything else is cut. */
static void look_at_part(struct upkeep *u, uint64_t now)
{
    const struct upkeep_options *o = &u->options;
    uint64_t receipts = counts(u)->receipts - u->receipts_at_part;

    if (u->cut || receipts == 0)
        return;
    if ((o->pack_receipts && receipts >= o->pack_receipts) ||
        (o->pack_ms && now - u->part_began >= o->pack_ms))
        cut_part(u, now);
}

struct pack_past *upkeep_past(struct upkeep *u)
{
    return u->part ? &u->part->past : NULL;
}

int upkeep_last_part(struct upkeep *u, const char **root, struct err *err)
{
    struct pack_result pack;

    if (u->cut) {
        if (pack_build(u->options.log, &u->part->request, &pack, err) < 0)
            return -1;
        note_pack(u, &pack);
    }
    *root = root_of(u);
    return 0;
}

/* --- time --- */

void upkeep_event(struct upkeep *u, uint64_t now)
{
    u->last_event = now;
    if (u->options.pack_receipts)
        look_at_part(u, now);
}

void upkeep_tick(struct upkeep *u, uint64_t now)
{
    if (now - u->last_event >= UPKEEP_HEARTBEAT)
        heartbeat(u, now);
    if (u->cut && !u->packing)
        begin_pack(u);
    look_at_part(u, now);
}
