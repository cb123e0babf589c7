/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tap.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "evidence/pack.h"
#include "tests/recording.h"
#include "tests/tap.h"

static void on_timeout(void *ctx, str id, struct exchange *x, const char *receipt)
{
    (void)id;
    (void)x;
    (void)receipt;
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

static const char *call_text(char text[static 160], int id)
{
    snprintf(text, 160,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
             "\"params\":{\"name\":\"t\"}}\n",
             id);
    return text;
}

static bool ask(struct tap *t, int id)
{
    char text[160];

    return receive(t, TO_SERVER, call_text(text, id));
}

static uint64_t lost(const struct session *s)
{
    return session_history(s)->counts.lost;
}

static void refuse_all(void *ctx, const struct tap *t, const struct rpc *m,
                       struct tap_verdict *out)
{
    (void)ctx;
    (void)t;
    (void)m;
    *out = (struct tap_verdict){ true, NULL, -31001, STR("denylist"), STR("no") };
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

/* Calls whose answers are awaited. */
static uint64_t open_calls(const struct tap *t)
{
    uint64_t n = 0;

    for (const struct pending *p = t->asked[TO_SERVER].oldest; p; p = p->newer)
        n += p->call && !p->cancelled && !p->answered;
    return n;
}

static void test_a_cancelled_call_makes_room(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);

    ok(fill(r, &t) && open_calls(&t) == CORRELATE_MAX, "%d calls wait", CORRELATE_MAX);
    ok(!ask(&t, -1), "one more is not told apart");
    ok(receive(&t, TO_SERVER,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
               "\"params\":{\"requestId\":5}}\n"),
       "one is cancelled");
    ok(open_calls(&t) == CORRELATE_MAX - 1, "and is not awaited any more");
    ok(ask(&t, -1), "it makes room");
    ok(open_calls(&t) == CORRELATE_MAX, "the new one is awaited: %llu",
       (unsigned long long)open_calls(&t));
    ok(lost(s) == 1, "the cancelled one has its receipt: %llu",
       (unsigned long long)lost(s));
    ok(receive(&t, TO_CLIENT, "{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{}}\n") &&
           open_calls(&t) == CORRELATE_MAX - 1,
       "the new one is answered");
    tap_release(&t);
    session_free(s);
}

static void test_what_is_awaited(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);

    ok(!tap_is_asked(&t), "nothing was asked");
    ok(receive(&t, TO_SERVER,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\"}\n") &&
           !tap_is_asked(&t),
       "news that have no end are not awaited");
    ok(receive(&t, TO_SERVER, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\"}\n") &&
           tap_is_asked(&t),
       "an answer is, to whatever request");
    ok(receive(&t, TO_CLIENT, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n") &&
           !tap_is_asked(&t),
       "until it comes");
    ok(receive(&t, TO_SERVER, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\"}\n") &&
           receive(&t, TO_SERVER,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                   "\"params\":{\"requestId\":3}}\n") &&
           !tap_is_asked(&t),
       "or is not wanted any more");
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
    ok(timed_out == CORRELATE_MAX && open_calls(&t) == 0 && !tap_is_asked(&t),
       "all are timed out: %d", timed_out);
    ok(ask(&t, -1) && open_calls(&t) == 1, "and the next one finds room");
    tap_release(&t);
    session_free(s);
}

/* --- calls that are refused --- */

static bool ask_both(struct tap *t)
{
    return receive(t, TO_SERVER,
                   "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                   "\"params\":{\"name\":\"a\"}},"
                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
                   "\"params\":{\"name\":\"b\"}}]\n");
}

static rlim_t log_bytes(const struct recording *r)
{
    char path[FILE_PATH_MAX];
    struct stat st = { 0 };

    snprintf(path, sizeof(path), "%s/log/segments/00000000000000000000.jsonl", r->dir);
    ok(stat(path, &st) == 0, "the segment is there");
    return (rlim_t)st.st_size;
}

static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };

    signal(SIGXFSZ, SIG_IGN);
    ok(setrlimit(RLIMIT_FSIZE, &limit) == 0, "files may have %llu bytes",
       (unsigned long long)bytes);
}

static void test_refused_calls_are_denied(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    const struct receipt_counts *c = &session_history(s)->counts;
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    rlim_t before = log_bytes(r), one;

    ok(ask_both(&t) && open_calls(&t) == 2, "two calls");
    one = (log_bytes(r) - before) / 2;
    tap_refused(&t);
    ok(c->denied == 2 && c->receipts == 2, "are refused: denied at once");
    ok(open_calls(&t) == 0 && history_open_calls(session_history(s)) == 0,
       "nothing is open");
    limit_files(log_bytes(r) + one + one / 2);
    ok(!ask_both(&t) && c->calls == 3, "there is room for the first of two");
    tap_refused(&t);
    ok(c->denied == 2 && open_calls(&t) == 0, "it is refused: nothing can be said");
    limit_files(RLIM_INFINITY);
    ok(log_lost_total(r->log) == 1, "only the second one is lost");
    ok(receive(&t, TO_SERVER, "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n"),
       "the log can be written again");
    ok(c->denied == 3 && c->receipts == 3 && c->lost == 0, "now it is denied");
    tap_settle(&t);
    ok(c->denied == 3, "once");
    tap_release(&t);
    session_free(s);
}

static void test_denials_are_told_later(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    const struct receipt_counts *c = &session_history(s)->counts;
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    rlim_t before = log_bytes(r), one;

    ok(ask(&t, 1) && open_calls(&t) == 1, "a call");
    one = log_bytes(r) - before;
    t.options.judge = refuse_all;
    limit_files(log_bytes(r) + one + one / 2);
    ok(!ask(&t, 2) && c->calls == 2 && c->denied == 0,
       "a judge refuses one, and there is only room for the request");
    limit_files(RLIM_INFINITY);
    t.options.judge = NULL;
    ok(receive(&t, TO_SERVER, "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n"),
       "the log can be written again");
    ok(c->denied == 1 && c->receipts == 1 && c->lost == 0, "now it is denied");
    tap_release(&t);
    session_free(s);
}

static void test_what_is_refused_last_is_denied_at_the_end(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    const struct receipt_counts *c = &session_history(s)->counts;
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    struct tap_sent sent;
    struct err err;

    ok(ask_both(&t) && tap_take_sent(&t, &sent, &err) == 0, "two calls that wait");
    t.failing = true; /* as after a message between */
    tap_refuse_sent(&t, &sent, TO_SERVER);
    ok(c->denied == 0 && open_calls(&t) == 0, "are refused");
    tap_settle(&t);
    ok(c->denied == 2 && c->receipts == 2 && c->lost == 0, "and denied at the end");
    tap_release(&t);
    session_free(s);
}

/* --- answers that nobody waits for --- */

static struct exchange *exchange_of(uintptr_t number)
{
    return (struct exchange *)number; /* a handle, never looked into */
}

static bool receive_in(struct tap *t, enum direction d, const char *text, uintptr_t x)
{
    struct err err;

    return tap_receive(t, d, str_from(text), exchange_of(x), 0, &err) == 0;
}

static bool is_known(const struct session *s, const char *call)
{
    return history_call(session_history(s), str_from(call)) != NULL;
}

static void test_a_call_whose_client_went_is_answered(struct recording *r)
{
    static const char done[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    struct session *s = recording_another(r, "audit");
    const struct receipt_counts *c = &session_history(s)->counts;
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    struct tap_sent sent;
    struct err err;
    char text[160], first[ID_MAX], second[ID_MAX];
    uint64_t events;

    ok(receive_in(&t, TO_SERVER, call_text(text, 1), 1) &&
           receive_in(&t, TO_SERVER, call_text(text, 1), 2),
       "two calls with one id, of two clients");
    snprintf(first, sizeof(first), "%s", t.asked[TO_SERVER].oldest->call->call.id);
    snprintf(second, sizeof(second), "%s", t.asked[TO_SERVER].newest->call->call.id);
    events = c->events;
    tap_cancel(&t, exchange_of(1), 0);
    ok(c->events == events + 1 && open_calls(&t) == 1, "one goes: that is an event");
    ok(t.asked[TO_SERVER].oldest->call->call.cancelled, "by which its call is cancelled");
    t.own = true;
    ok(receive_in(&t, TO_CLIENT, done, 1) && c->receipts == 1 && c->lost == 0,
       "its answer counts");
    ok(is_known(s, first), "it may still be told that it went on");
    tap_unheard(&t);
    ok(!is_known(s, first) && is_known(s, second), "it did not: the call is over");
    ok(receive_in(&t, TO_CLIENT, done, 1) && c->receipts == 1, "the other's is another");
    ok(receive_in(&t, TO_CLIENT, done, 2) && c->receipts == 2, "which is answered, too");
    ok(tap_take_sent(&t, &sent, &err) == 0, "and waits");
    tap_drop_sent(&t, &sent);
    ok(!is_known(s, second) && sent.count == 0, "and does not go on");
    tap_release(&t);
    session_free(s);
}

/* --- messages that came at once --- */

/* It comes and goes on. */
static bool pass(struct tap *t, enum direction d, const char *text)
{
    if (!receive(t, d, text))
        return false;
    tap_forwarded(t);
    return true;
}

static bool answer(struct tap *t, int id)
{
    char text[160];

    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n", id);
    return pass(t, TO_CLIENT, text);
}

static bool ask_on(struct tap *t, int id)
{
    char text[160];

    return pass(t, TO_SERVER, call_text(text, id));
}

static off_t receipt_bytes(const struct recording *r, const struct session *s)
{
    char path[FILE_PATH_MAX];
    struct stat st = { 0 };

    snprintf(path, sizeof(path), "%s/receipts/%s", r->dir, session_receipts(s));
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The end of a session, and its pack, which is verified when it is made: numbers, counts,
 * receipts and their events fit together. */
static void end_and_pack(struct recording *r, struct session *s, uint64_t receipts)
{
    const struct session_ending ending = { "client_eof", true, "client_gone", NULL };
    struct pack_request request = { .session = session_id(s),
                                    .receipts = session_receipts(s),
                                    .first = session_history(s)->first };
    struct pack_result result;
    struct err err = { 0 };
    bool packable = false;

    ok(session_end(s, &ending, &request.cut, &packable, &err) == 0 && packable,
       "the session ends: %s", err.msg);
    ok(pack_build(r->log, &request, &result, &err) == 0, "its pack verifies: %s",
       err.msg);
    ok(result.receipts == receipts + 1 && result.rebuilt == 0,
       "with %llu receipts and the session's", (unsigned long long)receipts);
}

static void test_gathered_messages_are_written_together(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    const struct receipt_counts *c = &session_history(s)->counts;
    struct err err = { 0 };
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    rlim_t before = log_bytes(r);

    log_hold(r->log);
    tap_gather(&t);
    ok(ask_on(&t, 1) && ask_on(&t, 2) && answer(&t, 1) && ask_on(&t, 3), "they come");
    ok(tap_is_gathering(&t) && log_bytes(r) == before && receipt_bytes(r, s) == 0,
       "nothing is written yet");
    ok(tap_write(&t, &err) == 0 && !tap_is_gathering(&t), "then it is: %s", err.msg);
    log_let_go(r->log);
    ok(log_bytes(r) > before && receipt_bytes(r, s) > 0, "all at once");
    ok(c->calls == 3 && c->receipts == 1 && open_calls(&t) == 2, "and counted");
    ok(answer(&t, 2) && answer(&t, 3) && c->receipts == 3, "the rest as ever");
    tap_release(&t);
    end_and_pack(r, s, 3);
    session_free(s);
}

static void test_gathered_messages_fail_together(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    const struct receipt_counts *c = &session_history(s)->counts;
    struct err err = { 0 };
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    uint64_t lost_before = log_lost_total(r->log), events;
    off_t receipts;
    rlim_t bytes;

    ok(ask_on(&t, 1) && ask_on(&t, 2) && ask_on(&t, 3) && answer(&t, 3), "before");
    bytes = log_bytes(r);
    receipts = receipt_bytes(r, s);
    events = c->events;
    log_hold(r->log);
    tap_gather(&t);
    ok(answer(&t, 1) && ask_on(&t, 4) && ask_on(&t, 5) && answer(&t, 4) &&
           pass(&t, TO_SERVER,
                "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\","
                "\"params\":{\"name\":\"t\"}}\n"),
       "an answer, two calls, one answered, and one without an id");
    limit_files(bytes + 100);
    ok(tap_write(&t, &err) < 0, "there is no room: %s", err.msg);
    limit_files(RLIM_INFINITY);
    ok(log_bytes(r) == bytes && receipt_bytes(r, s) == receipts, "nothing of it stands");
    ok(c->events == events && c->calls == 3 && c->receipts == 1, "nor is it counted");
    ok(open_calls(&t) == 1 && history_open_calls(session_history(s)) == 2,
       "one is awaited, and one more is open");
    ok(log_lost_total(r->log) - lost_before >= 9, "all of it is lost");
    ok(answer(&t, 5), "an answer to a call that nobody knows of");
    ok(answer(&t, 2) && c->receipts == 2, "the one that is awaited is answered");
    tap_gather(&t);
    ok(ask_on(&t, 6) && tap_write(&t, &err) == 0 && answer(&t, 6), "the log works again");
    log_let_go(r->log);
    tap_release(&t);
    end_and_pack(r, s, 4); /* with that of the call whose answer was lost */
    session_free(s);
}

static void test_what_waits_is_bounded(struct recording *r)
{
    struct session *s = recording_another(r, "audit");
    struct err err = { 0 };
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    rlim_t before = log_bytes(r);
    bool good = true;

    log_hold(r->log);
    tap_gather(&t);
    for (int i = 0; i < 1000; i++)
        good = ask_on(&t, i) && good;
    ok(good && log_bytes(r) > before && tap_is_gathering(&t),
       "of many some are written before");
    before = log_bytes(r);
    ok(ask_both(&t) && !tap_is_gathering(&t) && log_bytes(r) > before,
       "a batch does not wait");
    ok(tap_write(&t, &err) == 0, "no more to write");
    log_let_go(r->log);
    ok(open_calls(&t) == 1002, "all are awaited");
    tap_release(&t);
    end_and_pack(r, s, 1002);
    session_free(s);
}

/* Which tool a call names is read from the index that counts. */
static void test_an_index_that_was_given_is_used(struct recording *r)
{
    static const char call[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                               "\"params\":{\"name\":\"t\"}}";
    struct session *s = recording_another(r, "audit");
    struct json given = { 0 };
    int timed_out = 0;
    struct tap t = begin(s, 0, &timed_out);
    struct err err = { 0 };
    struct json_node *nodes;

    t.given = &given;
    ok(json_parse(&given, str_from(call), NULL, &err) == 0, "a message has an index");
    nodes = given.nodes;
    ok(receive(&t, TO_SERVER, call) && t.json.nodes == nodes && given.nodes != nodes &&
           open_calls(&t) == 1,
       "it is taken, and another one is left for it");
    ok(json_parse(&given, STR("{}"), NULL, &err) == 0 &&
           receive(&t, TO_CLIENT, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}") &&
           open_calls(&t) == 0,
       "one of another message is not");
    ok(str_is(given.text, "{}"), "and stays where it is");
    json_release(&given);
    tap_release(&t);
    session_free(s);
}

int main(void)
{
    struct recording r;

    recording_open(&r);
    test_gathered_messages_are_written_together(&r);
    test_what_waits_is_bounded(&r);
    test_gathered_messages_fail_together(&r);
    recording_close(&r);
    recording_open(&r);
    test_an_index_that_was_given_is_used(&r);
    test_refused_calls_are_denied(&r);
    test_denials_are_told_later(&r);
    test_what_is_refused_last_is_denied_at_the_end(&r);
    test_a_cancelled_call_makes_room(&r);
    test_a_call_whose_client_went_is_answered(&r);
    test_what_is_awaited(&r);
    test_a_call_that_timed_out_makes_room(&r);
    recording_close(&r);
    return tap_done();
}
