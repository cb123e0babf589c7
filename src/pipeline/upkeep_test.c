/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/upkeep.h"

#include <unistd.h>

#include "tests/recording.h"
#include "tests/tap.h"
#include "transport/loop.h"

static uint64_t events(const struct session *s)
{
    return session_history(s)->counts.events;
}

static void test_heartbeats_and_checkpoints(struct recording *r, struct loop *loop)
{
    struct session *s = recording_another(r, "audit");
    const struct upkeep_options options = { .loop = loop, .log = r->log, .session = s };
    uint64_t before = events(s);
    char path[FILE_PATH_MAX];
    struct upkeep u;

    upkeep_init(&u, &options, 1000);
    upkeep_tick(&u, 1000 + UPKEEP_HEARTBEAT - 1);
    loop_run(loop);
    ok(events(s) == before, "no heartbeat before its time");
    upkeep_tick(&u, 1000 + UPKEEP_HEARTBEAT);
    ok(events(s) == before + 1, "a heartbeat after %d ms of silence", UPKEEP_HEARTBEAT);
    ok(u.checkpointing, "and a checkpoint behind it");
    loop_run(loop);
    snprintf(path, sizeof(path), "%s/log/checkpoint", r->dir);
    ok(!u.checkpointing && access(path, F_OK) == 0, "which was signed");
    upkeep_tick(&u, 1000 + UPKEEP_HEARTBEAT + 1000);
    ok(events(s) == before + 1 && !u.checkpointing, "nothing new: nothing to sign");
    upkeep_event(&u, 90000);
    upkeep_tick(&u, 90000 + UPKEEP_HEARTBEAT - 1);
    ok(events(s) == before + 1, "a message puts it off");
    loop_run(loop);
    session_free(s);
}

int main(void)
{
    struct recording r;
    struct loop *loop;
    struct err err;

    recording_open(&r);
    if (loop_new(&loop, &err) < 0)
        return 1;
    test_heartbeats_and_checkpoints(&r, loop);
    loop_free(loop);
    recording_close(&r);
    return tap_done();
}
