/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/upkeep.h"

#include "tests/recording.h"
#include "tests/tap.h"
#include "transport/loop.h"

static uint64_t events(const struct session *s)
{
    return session_history(s)->counts.events;
}

static void test_heartbeats(struct recording *r, struct loop *loop)
{
    struct session *s = recording_another(r, "audit");
    const struct upkeep_options options = { .loop = loop, .log = r->log, .session = s };
    uint64_t before = events(s);
    struct upkeep u;

    upkeep_init(&u, &options, 1000);
    upkeep_tick(&u, 1000 + UPKEEP_HEARTBEAT - 1);
    ok(events(s) == before, "no heartbeat before its time");
    upkeep_tick(&u, 1000 + UPKEEP_HEARTBEAT);
    ok(events(s) == before + 1, "a heartbeat after %d ms of silence", UPKEEP_HEARTBEAT);
    upkeep_tick(&u, 1000 + UPKEEP_HEARTBEAT + 1000);
    ok(events(s) == before + 1, "and not another one");
    upkeep_event(&u, 90000);
    upkeep_tick(&u, 90000 + UPKEEP_HEARTBEAT - 1);
    ok(events(s) == before + 1, "a message puts it off");
    session_free(s);
}

/* --- parts --- */

static void on_packed(void *ctx, const struct pack_result *pack)
{
    (void)pack;
    ++*(int *)ctx;
}

static void record_call(struct recording *r, struct session *s)
{
    struct open_call *call = recording_call(r, s, STR("1"), STR("t"), (str){ NULL, 0 });

    ok(recording_answer(r, s, call, false, (str){ NULL, 0 }), "a call");
    session_release(s, call);
}

static void tick(struct upkeep *u, struct loop *loop, uint64_t now)
{
    upkeep_tick(u, now);
    loop_run(loop);
}

static void test_parts_by_minutes(struct recording *r, struct loop *loop)
{
    struct session *s = recording_another(r, "audit");
    int packs = 0;
    const struct upkeep_options options = { .loop = loop,
                                            .log = r->log,
                                            .session = s,
                                            .pack_ms = 60000,
                                            .packed = on_packed,
                                            .hook_ctx = &packs };
    const char *root = "";
    struct upkeep u;
    struct err err = { 0 };

    upkeep_init(&u, &options, 1000);
    tick(&u, loop, 1000 + 60000);
    ok(packs == 0, "no part without a receipt");
    record_call(r, s);
    tick(&u, loop, 1000 + 59999);
    ok(packs == 0, "none before its time");
    tick(&u, loop, 1000 + 60001);
    ok(packs == 1 && session_history(s)->part == 2, "a part after a minute");
    record_call(r, s);
    tick(&u, loop, 1000 + 60001 + 59999);
    ok(packs == 1, "the next minute begins with the part");
    tick(&u, loop, 1000 + 60001 + 60000);
    ok(packs == 2 && session_history(s)->part == 3, "and ends one, too");
    tick(&u, loop, 1000 + 60001 + 180000);
    ok(packs == 2, "nothing new: no part");
    ok(upkeep_last_part(&u, &root, &err) == 0 && root && root[0],
       "the last part is known to the next");
    upkeep_release(&u);
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
    test_heartbeats(&r, loop);
    test_parts_by_minutes(&r, loop);
    loop_free(loop);
    recording_close(&r);
    return tap_done();
}
