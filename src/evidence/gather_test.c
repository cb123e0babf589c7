/* SPDX-License-Identifier: Apache-2.0 */
/* What several sessions record at once is one write. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence/pack.h"
#include "evidence/session.h"
#include "tests/recording.h"
#include "tests/tap.h"

#define SEGMENT "log/segments/00000000000000000000.jsonl"

/* Two sessions of a log, and how often each was told that it was undone. */
struct two {
    struct recording r;
    struct session *s[2];
    int undone[2];
};

static void on_undone(void *ctx)
{
    ++*(int *)ctx;
}

static void open_two(struct two *t)
{
    *t = (struct two){ 0 };
    t->s[0] = recording_session(&t->r, "audit");
    t->s[1] = recording_another(&t->r, "audit");
}

static void gather(struct two *t)
{
    if (!log_is_held(t->r.log))
        log_hold(t->r.log);
    for (int i = 0; i < 2; i++)
        session_gather(t->s[i], on_undone, &t->undone[i]);
}

static void call(struct two *t, int which)
{
    struct open_call *c =
        recording_call(&t->r, t->s[which], STR("1"), STR("t"), STR("1"));

    ok(recording_answer(&t->r, t->s[which], c, false, STR("2")), "a call of session %d",
       which);
    session_release(t->s[which], c);
}

static off_t bytes(const struct two *t, const char *name)
{
    char path[200];
    struct stat st = { 0 };

    snprintf(path, sizeof(path), "%s/%s", t->r.dir, name);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static off_t lines(const struct two *t, int which)
{
    char name[100];

    snprintf(name, sizeof(name), "receipts/%s", session_receipts(t->s[which]));
    return bytes(t, name);
}

/* The log is sound, and so is the pack of each session. */
static void judge(struct two *t, uint64_t receipts, bool complete)
{
    static const struct session_ending well = { "client_eof", true, "shutdown", NULL };
    struct err err = { 0 };

    ok(session_write(t->s[0], &err) == 0, "what is left is written");
    log_let_go(t->r.log);
    for (int i = 0; i < 2; i++) {
        struct pack_request request = { .session = session_id(t->s[i]),
                                        .receipts = session_receipts(t->s[i]),
                                        .first = session_history(t->s[i])->first };
        struct pack_result pack;
        bool packable = false;

        ok(session_end(t->s[i], &well, &request.cut, &packable, &err) == 0 && packable,
           "session %d ends: %s", i, err.msg);
        ok(session_history(t->s[i])->counts.receipts == receipts + 1 && /* and its own */
               session_history(t->s[i])->complete == complete,
           "with its receipts: %d", (int)session_history(t->s[i])->counts.receipts);
        ok(pack_build(t->r.log, &request, &pack, &err) == 0, "its pack is sound: %s",
           err.msg); /* it is verified before it gets its name */
        session_free(t->s[i]);
    }
    recording_close(&t->r);
}

static void test_one_write_for_all(void)
{
    struct two t;
    struct err err = { 0 };
    off_t before;

    open_two(&t);
    before = bytes(&t, SEGMENT);
    gather(&t);
    call(&t, 0);
    call(&t, 1);
    call(&t, 0);
    call(&t, 1);
    ok(bytes(&t, SEGMENT) == before && lines(&t, 0) + lines(&t, 1) == 0,
       "nothing is written yet");
    ok(session_write(t.s[1], &err) == 0 && bytes(&t, SEGMENT) > before,
       "one of them writes");
    ok(lines(&t, 0) > 0 && lines(&t, 1) > 0 && !session_is_gathering(t.s[0]),
       "what both of them have");
    before = bytes(&t, SEGMENT);
    ok(session_write(t.s[0], &err) == 0 && bytes(&t, SEGMENT) == before,
       "the other one need not");
    ok(t.undone[0] + t.undone[1] == 0, "nothing was undone");
    judge(&t, 2, true);
}

/* Receipts stand before their events, also when somebody else writes. */
static void test_others_write_it_before(void)
{
    struct two t;
    struct session *third;
    off_t before;

    open_two(&t);
    gather(&t);
    before = bytes(&t, SEGMENT);
    call(&t, 0);
    third = recording_another(&t.r, "audit");
    ok(lines(&t, 0) > 0 && bytes(&t, SEGMENT) > before, "a session begins: %s",
       "what was gathered is written before");
    ok(!session_is_gathering(t.s[0]) && !session_is_gathering(t.s[1]),
       "and nobody gathers any more");
    session_free(third);
    call(&t, 0);
    gather(&t);
    call(&t, 1);
    session_free(recording_another(&t.r, "audit"));
    gather(&t);
    call(&t, 1);
    ok(session_write(t.s[0], &(struct err){ 0 }) == 0, "then again");
    judge(&t, 2, true);
}

static void limit_files(rlim_t size)
{
    const struct rlimit limit = { size, RLIM_INFINITY };

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        abort();
}

static void lose_both(struct two *t)
{
    struct err err[2] = { 0 };

    ok(session_write(t->s[0], &err[0]) < 0 && session_write(t->s[1], &err[1]) < 0,
       "it cannot be written: %s", err[1].msg);
    ok(strcmp(err[0].msg, err[1].msg) == 0 && t->undone[0] == 1 && t->undone[1] == 1,
       "which both are told");
    ok(session_write(t->s[0], err) == 0 && session_write(t->s[1], err) == 0, "once");
    limit_files(RLIM_INFINITY);
}

static void test_all_or_nothing(void)
{
    struct two t;
    off_t before;

    open_two(&t);
    before = bytes(&t, SEGMENT);
    gather(&t);
    call(&t, 0);
    call(&t, 1);
    limit_files((rlim_t)before + 100);
    lose_both(&t);
    ok(bytes(&t, SEGMENT) == before && lines(&t, 0) + lines(&t, 1) == 0,
       "nothing of it stands anywhere");
    ok(session_history(t.s[0])->counts.receipts == 0 && log_lost_total(t.r.log) > 0,
       "and it is counted as lost");
    gather(&t);
    call(&t, 0);
    call(&t, 1);
    judge(&t, 1, false);
}

/* A receipt that cannot be written takes the batch with it: its events cannot stand. */
static void test_a_receipts_file_fails(void)
{
    struct two t;
    char path[200];
    off_t before;

    for (int which = 0; which < 2; which++) {
        open_two(&t);
        before = bytes(&t, SEGMENT);
        gather(&t);
        call(&t, 0);
        call(&t, 1);
        snprintf(path, sizeof(path), "%s/receipts/%s", t.r.dir,
                 session_receipts(t.s[which]));
        ok(truncate(path, 1 << 20) == 0, "the file of session %d is full", which);
        limit_files(1 << 20);
        lose_both(&t);
        ok(bytes(&t, SEGMENT) == before && lines(&t, !which) == 0,
           "nothing stands of the other one either");
        ok(truncate(path, 0) == 0, "there is room again");
        call(&t, 0);
        call(&t, 1);
        judge(&t, 1, false);
    }
}

/* Whoever lets the log go need not know that others gather. */
static void test_the_log_is_let_go(void)
{
    struct two t;
    off_t before;

    open_two(&t);
    before = bytes(&t, SEGMENT);
    gather(&t);
    log_let_go(t.r.log);
    ok(!session_is_gathering(t.s[0]) && !session_is_gathering(t.s[1]),
       "the log is let go: nobody gathers any more");
    gather(&t);
    call(&t, 0);
    log_let_go(t.r.log);
    ok(lines(&t, 0) > 0 && bytes(&t, SEGMENT) > before,
       "what was gathered is written before");
    ok(session_write(t.s[0], &(struct err){ 0 }) == 0, "which was well");
    call(&t, 1);
    judge(&t, 1, true);
}

static void test_a_session_that_is_freed(void)
{
    struct two t;
    off_t before;

    open_two(&t);
    before = bytes(&t, SEGMENT);
    gather(&t);
    call(&t, 0);
    call(&t, 1);
    session_free(t.s[1]);
    ok(bytes(&t, SEGMENT) > before, "what it has is written, and the other's with it");
    t.s[1] = recording_another(&t.r, "audit");
    call(&t, 1);
    judge(&t, 1, true);
}

int main(void)
{
    test_one_write_for_all();
    test_others_write_it_before();
    test_all_or_nothing();
    test_a_receipts_file_fails();
    test_the_log_is_let_go();
    test_a_session_that_is_freed();
    return tap_done();
}
