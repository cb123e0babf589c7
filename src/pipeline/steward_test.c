/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/steward.h"

#include <unistd.h>

#include "tests/recording.h"
#include "tests/tap.h"
#include "transport/loop.h"

static void test_checkpoints(struct recording *r, struct loop *loop)
{
    const struct steward_options options = { .loop = loop, .log = r->log };
    char path[FILE_PATH_MAX];
    struct steward s;

    steward_init(&s, &options);
    steward_tick(&s);
    ok(!s.checkpointing, "nothing new: nothing to sign");
    steward_note(&s);
    steward_tick(&s);
    ok(s.checkpointing, "what is new is to be signed");
    steward_note(&s);
    steward_tick(&s);
    ok(s.news, "what comes meanwhile waits for the next one");
    loop_run(loop);
    snprintf(path, sizeof(path), "%s/log/checkpoint", r->dir);
    ok(!s.checkpointing && access(path, F_OK) == 0, "the checkpoint is there");
    steward_tick(&s);
    ok(s.checkpointing && !s.news, "and the next one is made");
    loop_run(loop);
}

static bool append(struct log *log, uint64_t upto)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };
    struct err err;

    event_init(&e, EVENT_HEARTBEAT);
    while (log_written(log) < upto) {
        if (log_append(log, events, 1, NULL, &err) < 0)
            return false;
    }
    return true;
}

static void test_many_events(struct recording *r, struct loop *loop)
{
    const struct steward_options options = { .loop = loop, .log = r->log };
    uint64_t from = log_written(r->log);
    struct steward s;

    steward_init(&s, &options);
    ok(append(r->log, from + STEWARD_EVENTS - 1), "many events");
    steward_look(&s);
    ok(!s.checkpointing, "one fewer than %d wait for their second", STEWARD_EVENTS);
    ok(append(r->log, from + STEWARD_EVENTS), "one more");
    steward_look(&s);
    ok(s.checkpointing, "are signed at once");
    loop_run(loop);
    steward_look(&s);
    ok(!s.checkpointing, "and once");
    s.failed = true;
    ok(append(r->log, from + 2 * STEWARD_EVENTS), "as many again");
    steward_look(&s);
    ok(!s.checkpointing, "after a failure they wait");
}

static void on_recovered(void *ctx)
{
    ++*(int *)ctx;
}

static void test_recovery_once(struct recording *r, struct loop *loop)
{
    int times = 0;
    const struct steward_options options = {
        .loop = loop, .log = r->log, .recovered = on_recovered, .recovered_ctx = &times
    };
    struct steward s;

    steward_init(&s, &options);
    steward_recover(&s);
    steward_recover(&s);
    ok(s.recovering && steward_is_busy(&s), "the dead are looked for");
    loop_run(loop);
    ok(times == 1 && !steward_is_busy(&s), "once, and that is told");
}

int main(void)
{
    struct recording r;
    struct loop *loop;
    struct err err;

    recording_open(&r);
    if (loop_new(&loop, &err) < 0)
        return 1;
    test_checkpoints(&r, loop);
    test_many_events(&r, loop);
    test_recovery_once(&r, loop);
    loop_free(loop);
    recording_close(&r);
    return tap_done();
}
