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
    test_recovery_once(&r, loop);
    loop_free(loop);
    recording_close(&r);
    return tap_done();
}
