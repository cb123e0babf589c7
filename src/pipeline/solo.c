/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/solo.h"

#include <signal.h>
#include <stdlib.h>

#include "base/err.h"
#include "pipeline/steward.h"
#include "transport/loop.h"

#define TICK 1000 /* ms: timeouts of calls, checkpoints, heartbeats */

struct solo {
    struct loop *loop;
    struct loop_timer *tick, *dead;
    struct loop_signal *signals[3];
    struct steward steward;
    struct relay *relay;
    bool interrupted;
    bool sealed; /* the session's own evidence is complete */
};

static void stop(void *ctx)
{
    struct solo *s = ctx;

    loop_stop(s->loop);
}

static void on_recovered(void *ctx)
{
    struct solo *s = ctx;

    if (s->sealed)
        loop_stop(s->loop);
}

static void on_signal(void *ctx, int number)
{
    struct solo *s = ctx;

    s->interrupted = s->interrupted || number == SIGINT;
    if (s->relay && !s->sealed)
        relay_signal(s->relay, number);
}

static void on_tick(void *ctx)
{
    struct solo *s = ctx;

    relay_tick(s->relay);
    steward_tick(&s->steward);
}

static int open_loop(struct solo *s, struct err *err)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

    if (loop_new(&s->loop, err) < 0 ||
        loop_timer_new(&s->tick, s->loop, on_tick, s, err) < 0 ||
        loop_timer_new(&s->dead, s->loop, stop, s, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (loop_signal_new(&s->signals[i], s->loop, numbers[i], on_signal, s, err) < 0)
            return -1;
    }
    return 0;
}

static void close_loop(struct solo *s)
{
    loop_timer_free(s->tick);
    loop_timer_free(s->dead);
    for (size_t i = 0; i < sizeof(s->signals) / sizeof(s->signals[0]); i++)
        loop_signal_free(s->signals[i]);
    loop_free(s->loop);
}

/* Others' sessions are finished with what time our own end leaves. */
static void wait_for_recovery(struct solo *s, struct solo_outcome *out)
{
    s->sealed = true;
    loop_timer_stop(s->tick);
    loop_timer_set(s->dead, STEWARD_DEAD_WAIT, false);
    if (s->steward.recovering)
        loop_run(s->loop);
    out->abandoned = s->steward.recovering;
}

static int run(struct solo *s, const struct relay_options *o, struct solo_outcome *out,
               struct err *err)
{
    const struct steward_options steward = { .loop = s->loop,
                                             .log = o->log,
                                             .say = o->say,
                                             .packed = o->packed,
                                             .hook_ctx = o->say_ctx,
                                             .recovered = on_recovered,
                                             .recovered_ctx = s };
    const struct relay_start start = {
        .loop = s->loop, .steward = &s->steward, .over = stop, .ctx = s
    };
    int sealed;

    steward_init(&s->steward, &steward);
    if (relay_open(&s->relay, o, &start, err) < 0)
        return -1;
    out->started = true;
    loop_timer_set(s->tick, TICK, true);
    loop_run(s->loop);
    relay_close(s->relay);
    sealed = relay_seal(s->relay, &out->session, err);
    out->evidence_lost = log_lost_total(o->log) > 0;
    wait_for_recovery(s, out);
    out->interrupted = s->interrupted;
    return sealed;
}

int solo_run(const struct relay_options *options, struct solo_outcome *outcome,
             struct err *err)
{
    struct solo *s = calloc(1, sizeof(*s)); /* a worker may outlive this call */
    int result;

    *outcome = (struct solo_outcome){ .started = false };
    if (!s)
        return err_set(err, ERR_NOMEM, "no memory for a session");
    result = open_loop(s, err) < 0 ? -1 : run(s, options, outcome, err);
    if (outcome->abandoned)
        return result;
    relay_free(s->relay);
    close_loop(s);
    free(s);
    return result;
}
