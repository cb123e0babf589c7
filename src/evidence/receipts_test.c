/* SPDX-License-Identifier: Apache-2.0 */
/* When a line stands in the file, and when it may wait. */
#include "evidence/receipts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/pack.h"
#include "tests/recording.h"
#include "tests/tap.h"

#define NOTHING ((str){ NULL, 0 })

static long size_of(const struct recording *r, const struct session *s)
{
    char path[FILE_PATH_MAX];
    struct stat st;

    snprintf(path, sizeof(path), "%s/receipts/%s", r->dir, session_receipts(s));
    return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

/* How many lines are receipts. */
static size_t lines_of(const struct recording *r, const char *name)
{
    CLEANUP(receipts_index_release) struct receipts_index index = { 0 };
    struct err err = { 0 };

    ok(receipts_index_read(&index, r->dir, name, &err) == 0, "its receipts can be read");
    return index.entries.count;
}

static struct session *flushed(struct recording *r)
{
    const struct session_options options = { .log = r->log,
                                             .server_id = "test-server",
                                             .transport = "stdio",
                                             .client_transport = "stdio",
                                             .profile = "audit",
                                             .flushed = true };
    struct session *s = NULL;
    struct err err = { 0 };

    ok(session_open(&s, &options, &err) == 0, "a session whose lines may wait");
    return s;
}

static bool call_and_answer(struct recording *r, struct session *s, str arguments,
                            str result)
{
    struct open_call *call = recording_call(r, s, STR("1"), STR("t"), arguments);
    bool good = recording_answer(r, s, call, false, result);

    session_release(s, call);
    return good;
}

static void test_a_line_waits_for_the_flush(void)
{
    struct recording r;
    struct session *s;
    struct err err = { 0 };

    recording_open(&r);
    s = flushed(&r);
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && size_of(&r, s) == 0, "it waits");
    ok(session_history(s)->counts.receipts == 1, "its event does not");
    ok(session_flush(s, &err) == 0 && lines_of(&r, session_receipts(s)) == 1,
       "then it stands there");
    ok(call_and_answer(&r, s, NOTHING, NOTHING), "one more");
    session_trim(s);
    ok(lines_of(&r, session_receipts(s)) == 2, "who idles keeps none");
    session_free(s);
    recording_close(&r);
}

static void test_so_much_waits_and_no_more(void)
{
    struct recording r;
    struct session *s;
    long line;
    int waiting = 1;

    recording_open(&r);
    s = flushed(&r);
    ok(call_and_answer(&r, s, NOTHING, STR("{}")), "its length");
    line = size_of(&r, s);
    ok(line > 0, "a line with content does not wait");
    while (call_and_answer(&r, s, NOTHING, NOTHING) && size_of(&r, s) == line)
        waiting++;
    ok(waiting > 2 && (waiting - 1) * line < (long)RECEIPTS_LATE_MAX + line,
       "%d wait for the next", waiting - 1);
    ok(lines_of(&r, session_receipts(s)) == (size_t)waiting + 1, "which writes them all");
    session_free(s);
    recording_close(&r);
}

static void test_what_must_not_wait(void)
{
    struct recording r;
    struct session *s;
    struct open_call *call;
    struct err err = { 0 };

    recording_open(&r);
    s = flushed(&r);
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && size_of(&r, s) == 0, "one waits");
    ok(call_and_answer(&r, s, STR("{\"a\":1}"), NOTHING) &&
           lines_of(&r, session_receipts(s)) == 2,
       "stored arguments stand there at once, behind it");
    call = recording_call(&r, s, STR("2"), STR("t"), NOTHING);
    ok(session_lose(s, call, "call_timeout", NULL, &err) == 0 &&
           lines_of(&r, session_receipts(s)) == 3,
       "what was not answered, too");
    session_free(s);
    s = recording_another(&r, "audit");
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && size_of(&r, s) > 0,
       "nor does it where nobody flushes");
    session_free(s);
    recording_close(&r);
}

static void test_nothing_waits_where_the_policy_is_to_block_or_to_sync(void)
{
    static const struct {
        enum log_durability durability;
        enum log_on_failure on_failure;
    } cases[] = { { LOG_WRITE, LOG_BLOCK }, { LOG_GROUP, LOG_PASS } };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recording r;
        struct session *s;
        struct err err = { 0 };

        recording_open(&r);
        ok(log_close(r.log, &err) == 0 &&
               log_open(&r.log,
                        &(struct log_options){ .dir = r.dir,
                                               .keys = &r.keys,
                                               .clock = &r.clock,
                                               .entropy = &entropy_system,
                                               .durability = cases[i].durability,
                                               .on_failure = cases[i].on_failure,
                                               .group = (gid_t)-1 },
                        &err) == 0,
           "the log again: %s", err.msg);
        s = flushed(&r);
        ok(call_and_answer(&r, s, NOTHING, NOTHING) && size_of(&r, s) > 0, "at once");
        session_free(s);
        recording_close(&r);
    }
}

static void ignore(void *ctx)
{
    (void)ctx;
}

static void test_gathered_lines_wait_too(void)
{
    struct recording r;
    struct session *s;
    struct err err = { 0 };
    struct open_call *call;

    recording_open(&r);
    s = flushed(&r);
    ok(call_and_answer(&r, s, NOTHING, NOTHING), "one before");
    log_hold(r.log);
    session_gather(s, ignore, NULL);
    ok(call_and_answer(&r, s, NOTHING, NOTHING), "one that is gathered");
    ok(session_write(s, &err) == 0 && size_of(&r, s) == 0, "its events are written");
    session_gather(s, ignore, NULL);
    ok(call_and_answer(&r, s, NOTHING, NOTHING), "another one");
    call = recording_call(&r, s, STR("2"), STR("t"), STR("{}"));
    ok(recording_answer(&r, s, call, false, NOTHING) && size_of(&r, s) == 0 &&
           session_write(s, &err) == 0,
       "and one that must not wait");
    ok(lines_of(&r, session_receipts(s)) == 4, "they are written before its events");
    session_gather(s, ignore, NULL);
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && session_flush(s, &err) == 0 &&
           lines_of(&r, session_receipts(s)) == 4,
       "a flush while it gathers");
    ok(session_write(s, &err) == 0 && lines_of(&r, session_receipts(s)) == 5,
       "comes with the write");
    log_let_go(r.log);
    session_free(s);
    recording_close(&r);
}

/* Whatever is written to its file from now on fails: it is open for reading only. */
static void close_of(const struct recording *r, const struct session *s,
                     char path[static FILE_PATH_MAX])
{
    char name[64], at[FILE_PATH_MAX];
    int fd;

    snprintf(path, FILE_PATH_MAX, "%s/receipts/%s", r->dir, session_receipts(s));
    for (int i = 3; i < 256; i++) {
        ssize_t n;

        snprintf(name, sizeof(name), "/proc/self/fd/%d", i);
        n = readlink(name, at, sizeof(at) - 1);
        if (n < 0 || !str_ends(str_of(at, (size_t)n), str_from(session_receipts(s))))
            continue;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ok(fd >= 0 && dup2(fd, i) == i, "its file takes nothing any more");
        close(fd);
    }
}

/* No file may grow beyond this; `limit` 0: any may. */
static void cap(long limit)
{
    struct rlimit now;

    getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = limit ? (rlim_t)limit : now.rlim_max;
    setrlimit(RLIMIT_FSIZE, &now);
}

static void test_a_flush_that_fails_loses_nothing(void)
{
    struct recording r;
    struct session *s;
    struct session_cut cut;
    struct err err = { 0 };
    bool packable = false;
    long before;

    recording_open(&r);
    s = flushed(&r);
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && session_flush(s, &err) == 0, "one");
    before = size_of(&r, s);
    ok(call_and_answer(&r, s, NOTHING, NOTHING), "another one");
    cap(before + 10);
    ok(session_flush(s, &err) < 0 && size_of(&r, s) == before, "no room: %s", err.msg);
    session_trim(s); /* does nothing, then */
    cap(0);
    ok(session_end(s, &(struct session_ending){ "client_eof", true, "shutdown", NULL },
                   &cut, &packable, &err) == 0 &&
           session_history(s)->complete && lines_of(&r, session_receipts(s)) == 3,
       "the end writes it, and the session is complete");
    session_free(s);
    recording_close(&r);
}

/* The log has room, their file has none. */
static void test_lines_that_cannot_be_written_stop_no_event(void)
{
    struct recording r;
    struct session *s;
    struct err err = { 0 };
    char path[FILE_PATH_MAX];

    recording_open(&r);
    s = flushed(&r);
    ok(call_and_answer(&r, s, NOTHING, NOTHING), "a call");
    close_of(&r, s, path);
    ok(session_flush(s, &err) < 0, "its line cannot be written: %s", err.msg);
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && log_lost_total(r.log) == 0,
       "the next one is recorded all the same");
    log_hold(r.log);
    session_gather(s, ignore, NULL);
    ok(call_and_answer(&r, s, NOTHING, NOTHING) && session_flush(s, &err) == 0 &&
           session_write(s, &err) == 0 && log_lost_total(r.log) == 0,
       "also what is gathered");
    log_let_go(r.log);
    session_free(s);
    recording_close(&r);
}

static void test_lines_of_the_dead_are_put_in(void)
{
    struct recording r;
    struct session *s;
    struct pack_result made;
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;
    char path[FILE_PATH_MAX];

    recording_open(&r);
    s = flushed(&r);
    for (int i = 0; i < 3; i++)
        ok(call_and_answer(&r, s, NOTHING, NOTHING), "a call");
    ok(session_end(s, &(struct session_ending){ "client_eof", true, "shutdown", NULL },
                   &cut, &packable, &err) == 0,
       "the end");
    snprintf(path, sizeof(path), "%s/receipts/%s", r.dir, session_receipts(s));
    ok(truncate(path, 0) == 0, "without its lines");
    ok(pack_build(r.log,
                  &(struct pack_request){ .session = session_id(s),
                                          .receipts = session_receipts(s),
                                          .first = session_history(s)->first,
                                          .cut = cut,
                                          .restore = true },
                  &made, &err) == 0 &&
           made.rebuilt == 4 && made.content_lost == 0,
       "all are made anew: %s", err.msg);
    ok(lines_of(&r, session_receipts(s)) == 4, "and stand in the file again");
    session_free(s);
    recording_close(&r);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    test_a_line_waits_for_the_flush();
    test_so_much_waits_and_no_more();
    test_what_must_not_wait();
    test_nothing_waits_where_the_policy_is_to_block_or_to_sync();
    test_gathered_lines_wait_too();
    test_a_flush_that_fails_loses_nothing();
    test_lines_that_cannot_be_written_stop_no_event();
    test_lines_of_the_dead_are_put_in();
    return tap_done();
}
