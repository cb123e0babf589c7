/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/steward.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/dead.h"
#include "transport/loop.h"

void steward_init(struct steward *s, const struct steward_options *options)
{
    *s = (struct steward){ .options = *options, .asked_at = log_written(options->log) };
}

static void say(const struct steward *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(const struct steward *s, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!s->options.say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    s->options.say(s->options.hook_ctx, sentence);
}

/* What a worker does, and what came of it. */
struct job {
    struct steward *steward;
    struct err err;
    int result;
};

static bool start(struct steward *s, void (*run)(void *), void (*done)(void *))
{
    struct job *job = calloc(1, sizeof(*job));
    struct err err;

    if (!job)
        return false;
    job->steward = s;
    if (loop_work(s->options.loop, run, done, job, &err) == 0)
        return true;
    free(job);
    return false;
}

/* --- checkpoints --- */

static void run_checkpoint(void *ctx)
{
    struct job *job = ctx;

    job->result = log_checkpoint(job->steward->options.log, false, &job->err);
}

static void checkpoint_done(void *ctx)
{
    struct job *job = ctx;

    job->steward->checkpointing = false;
    job->steward->failed = job->result < 0;
    if (job->result < 0)
        say(job->steward, "%s", job->err.msg);
    free(job);
}

void steward_tick(struct steward *s)
{
    if (s->checkpointing || !s->news)
        return;
    s->asked_at = log_written(s->options.log);
    s->checkpointing = start(s, run_checkpoint, checkpoint_done);
    s->news = !s->checkpointing;
}

void steward_look(struct steward *s)
{
    if (s->checkpointing || s->failed ||
        log_written(s->options.log) - s->asked_at < STEWARD_EVENTS)
        return;
    s->news = true;
    steward_tick(s);
}

/* --- the dead --- */

static void dead_packed(void *ctx, const struct pack_result *pack)
{
    const struct steward *s = ctx;

    if (!pack->existed && s->options.packed)
        s->options.packed(s->options.hook_ctx, pack);
}

static void dead_failed(void *ctx, const char *writer, const char *why)
{
    say(ctx, "what recorder %s left could not be finished: %s", writer, why);
}

static void run_recovery(void *ctx)
{
    struct job *job = ctx;
    const struct dead_options options = { .packed = dead_packed,
                                          .failed = dead_failed,
                                          .ctx = job->steward };
    struct dead_result result;

    job->result = dead_recover(job->steward->options.log, &options, &result, &job->err);
    if (job->result == 0 && result.sessions)
        say(job->steward,
            "finished %llu session%s that recorders had left when they died",
            (unsigned long long)result.sessions, plural(result.sessions));
}

static void recovery_done(void *ctx)
{
    struct job *job = ctx;
    struct steward *s = job->steward;

    s->recovering = false;
    if (job->result < 0)
        say(s, "cannot look for dead recorders: %s", job->err.msg);
    free(job);
    if (s->options.recovered)
        s->options.recovered(s->options.recovered_ctx);
}

void steward_recover(struct steward *s)
{
    if (s->asked)
        return;
    s->asked = true;
    s->recovering = start(s, run_recovery, recovery_done);
}
