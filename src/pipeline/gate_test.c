/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gate.h"

#include "tests/recording.h"
#include "tests/tap.h"
#include "transport/loop.h"

struct seen {
    char order[16];
    size_t count;
    bool empty;
};

static void on_release(void *ctx, struct held *h, const struct err *why)
{
    struct seen *seen = ctx;

    if (seen->count < sizeof(seen->order) - 1)
        seen->order[seen->count++] = why ? '!' : h->bytes.p[0];
}

static void on_empty(void *ctx)
{
    ((struct seen *)ctx)->empty = true;
}

static void hold(struct gate *g, const char *name, enum direction to, uint64_t upto)
{
    struct held *h = held_new();

    if (!h)
        exit(1);
    h->to = to;
    h->upto = upto;
    buf_add(&h->bytes, str_from(name));
    gate_hold(g, h);
}

static void test_gate(struct recording *r, struct loop *loop, bool one_by_one)
{
    struct session *s = recording_another(r, "audit");
    struct seen seen = { .count = 0 };
    const struct gate_options options = {
        loop, s, one_by_one, on_release, on_empty, &seen
    };
    struct gate g;

    gate_init(&g, &options);
    ok(gate_is_empty(&g), "empty at first");
    hold(&g, "a", TO_SERVER, 1);
    hold(&g, "bb", TO_CLIENT, 2);
    hold(&g, "c", TO_SERVER, 0);
    hold(&g, "d", TO_CLIENT, 3);
    ok(seen.count == 0 && !gate_is_empty(&g), "nothing leaves at once");
    ok(g.bytes[TO_SERVER] == 2 && g.bytes[TO_CLIENT] == 3, "what waits is counted");
    loop_run(loop);
    ok(strcmp(seen.order, "abcd") == 0, "all leave in their order: %s", seen.order);
    ok(seen.empty && gate_is_empty(&g) && g.bytes[0] == 0 && g.bytes[1] == 0,
       "and it is empty");
    hold(&g, "x", TO_SERVER, 1);
    gate_release(&g);
    loop_run(loop);
    ok(seen.count == 4, "what was given up does not leave");
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
    test_gate(&r, loop, false);
    test_gate(&r, loop, true);
    loop_free(loop);
    recording_close(&r);
    return tap_done();
}
