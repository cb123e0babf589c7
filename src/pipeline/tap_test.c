/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tap.h"

#include "tests/recording.h"
#include "tests/tap.h"

static void on_timeout(void *ctx, str id)
{
    (void)id;
    ++*(int *)ctx;
}

static struct tap begin(struct session *s, uint64_t call_timeout, int *timed_out)
{
    const struct tap_options options = { .session = s,
                                         .call_timeout = call_timeout,
                                         .seed = 7,
                                         .on_timeout = on_timeout,
                                         .ctx = timed_out };
    struct tap t;

    tap_init(&t, &options);
    return t;
}

static bool receive(struct tap *t, enum direction d, const char *text)
{
    struct err err = { 0 };

    return tap_receive(t, d, str_from(text), NULL, 0, &err) == 0;
}

static bool ask(struct tap *t, int id)
{
    char text[160];

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
             "\"params\":{\"name\":\"t\"}}\n",
             id);
    return receive(t, TO_SERVER, text);
}

static uint64_t lost(const struct session *s)
{
    return session_history(s)->counts.lost;
}

/* As many requests as may wait; the log's lock is kept, for speed. */
static bool fill(struct recording *r, struct tap *t)
{
    bool good = true;

    log_hold(r->log);
    for (int i = 0; i < CORRELATE_MAX; i++)
        good = ask(t, i) && good;
    log_let_go(r->log);
    return good;
}

static void test_a_cancelled_call_makes_room(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);

    ok(fill(r, &t) && tap_open_calls(&t) == CORRELATE_MAX, "%d calls wait",
       CORRELATE_MAX);
    ok(!ask(&t, -1), "one more is not told apart");
    ok(receive(&t, TO_SERVER,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
               "\"params\":{\"requestId\":5}}\n"),
       "one is cancelled");
    ok(tap_open_calls(&t) == CORRELATE_MAX - 1, "and is not awaited any more");
    ok(ask(&t, -1), "it makes room");
    ok(tap_open_calls(&t) == CORRELATE_MAX, "the new one is awaited: %llu",
       (unsigned long long)tap_open_calls(&t));
    ok(lost(s) == 1, "the cancelled one has its receipt: %llu",
       (unsigned long long)lost(s));
    ok(receive(&t, TO_CLIENT, "{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{}}\n") &&
           tap_open_calls(&t) == CORRELATE_MAX - 1,
       "the new one is answered");
    tap_release(&t);
    session_free(s);
}

static void test_a_call_that_timed_out_makes_room(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    int timed_out = 0;
    struct tap t = begin(s, 1000, &timed_out);

    fill(r, &t);
    tap_tick(&t, 1001);
    ok(timed_out == CORRELATE_MAX && tap_open_calls(&t) == 0, "all are timed out: %d",
       timed_out);
    ok(ask(&t, -1) && tap_open_calls(&t) == 1, "and the next one finds room");
    tap_release(&t);
    session_free(s);
}

int main(void)
{
    struct recording r;

    recording_open(&r);
    test_a_cancelled_call_makes_room(&r);
    test_a_call_that_timed_out_makes_room(&r);
    recording_close(&r);
    return tap_done();
}
