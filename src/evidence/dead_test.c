/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/dead.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/segment.h"
#include "tests/packing.h"
#include "tests/recording.h"
#include "tests/tap.h"

/* What the log says about one session and its writer. */
struct told {
    unsigned starts, ends, lost, receipts, chain_ends;
    bool complete, recovered_by;
};

static struct told read_told(const struct recording *r, const char *session,
                             const char *writer)
{
    CLEANUP(segment_close) struct segment_reader reader = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    struct told t = { 0 };
    char path[FILE_PATH_MAX];
    struct err err = { 0 };
    enum segment_step step;
    str line;

    if (path_join(path, r->dir, "log", &err) < 0 ||
        segment_open_seq(&reader, path, 0, &err) < 0)
        return t;
    while (segment_next(&reader, &step, &line, &err) == 0 && step == SEGMENT_LINE) {
        struct event_view v;

        if (event_parse(&v, &json, line, &err) < 0)
            break;
        t.chain_ends +=
            v.type == EVENT_CHAIN_END && str_is(event_text(&v, "for"), writer);
        if (!str_is(v.session, session))
            continue;
        t.starts += v.type == EVENT_SESSION_START;
        t.ends += v.type == EVENT_SESSION_END;
        t.lost += v.type == EVENT_CALL_LOST;
        t.receipts += v.type == EVENT_RECEIPT;
        if (v.type == EVENT_SESSION_END) {
            event_bool(&v, "complete", &t.complete);
            t.recovered_by = event_text(&v, "by").n > 0;
        }
    }
    return t;
}

static unsigned sound_packs(const struct recording *r)
{
    char packs[FILE_PATH_MAX], path[FILE_PATH_MAX];
    struct err err = { 0 };
    const struct dirent *d;
    unsigned sound = 0;
    DIR *list;

    if (path_join(packs, r->dir, PACKS_DIR, &err) < 0)
        return 0;
    list = opendir(packs);
    while (list && (d = readdir(list))) {
        if (strncmp(d->d_name, "proof_pack_", 11) == 0 &&
            path_join(path, packs, d->d_name, &err) == 0)
            sound += is_sound(path);
    }
    if (list)
        closedir(list);
    return sound;
}

static unsigned stagings(const struct recording *r)
{
    char packs[FILE_PATH_MAX];
    struct err err;

    return path_join(packs, r->dir, PACKS_DIR, &err) < 0
               ? 99
               : count_entries(packs, ".staging_");
}

/* A writer dies with two calls open and one answered. */
static void leave_orphan(struct recording *r, char session[static ID_MAX],
                         char writer[static ID_MAX])
{
    struct session *s = recording_session(r, "audit");
    struct open_call *c = recording_call(r, s, STR("1"), STR("done"), STR("{\"x\":1}"));

    recording_answer(r, s, c, false, STR("[1]"));
    recording_call(r, s, STR("2"), STR("open"), STR("{}"));
    recording_call(r, s, STR("3"), STR("open"), (str){ NULL, 0 });
    snprintf(session, ID_MAX, "%s", session_id(s));
    snprintf(writer, ID_MAX, "%s", log_writer(r->log));
    session_free(s);
    log_abandon(r->log);
}

static void say_failure(void *ctx, const char *writer, const char *why)
{
    (void)ctx;
    printf("# %s: %s\n", writer, why);
}

static void test_a_dead_session_is_finished_once(void)
{
    const struct dead_options options = { .failed = say_failure };
    struct recording r;
    char session[ID_MAX], writer[ID_MAX];
    struct dead_result result;
    struct err err = { 0 };
    struct told t;

    leave_orphan(&r, session, writer);
    recording_log(&r);
    ok(dead_recover(r.log, &options, &result, &err) == 0, "recovered: %s", err.msg);
    ok(result.writers == 1 && result.sessions == 1 && result.lost == 2 &&
           result.packs == 1 && result.left == 0,
       "one writer, one session, two calls lost, one pack");
    t = read_told(&r, session, writer);
    ok(t.ends == 1 && t.lost == 2 && t.receipts == 4 && t.chain_ends == 1,
       "the log has three receipts, the metadata, session_end and chain_end");
    ok(!t.complete && t.recovered_by, "it says that the session is not complete, and who "
                                      "finished it");
    ok(sound_packs(&r) == 1, "the pack verifies");
    ok(dead_recover(r.log, &options, &result, &err) == 0 && result.writers == 0,
       "a second time there is nothing to do");
    t = read_told(&r, session, writer);
    ok(t.receipts == 4 && t.chain_ends == 1, "and nothing is done");
    recording_close(&r);
}

static void test_one_that_cannot_be_packed_keeps_nobody(void)
{
    const struct dead_options options = { .failed = say_failure };
    char receipts[FILE_PATH_MAX];
    struct dead_result result;
    struct err err = { 0 };
    struct session *s[3];
    struct recording r;

    for (int i = 0; i < 3; i++) {
        struct open_call *c;

        s[i] = i ? recording_another(&r, "audit") : recording_session(&r, "audit");
        c = recording_call(&r, s[i], STR("1"), STR("done"), STR("{}"));
        recording_answer(&r, s[i], c, false, STR("[1]"));
    }
    snprintf(receipts, sizeof(receipts), "%s/receipts/%s", r.dir, session_receipts(s[0]));
    for (int i = 0; i < 3; i++)
        session_free(s[i]);
    log_abandon(r.log);
    ok(unlink(receipts) == 0 && mkdir(receipts, 0700) == 0, "a receipts file is none");
    recording_log(&r);
    ok(dead_recover(r.log, &options, &result, &err) == 0, "recovered: %s", err.msg);
    ok(result.left == 1 && result.writers == 0 && sound_packs(&r) == 2,
       "the others have their packs; the writer waits");
    ok(rmdir(receipts) == 0, "the file can be made again");
    ok(dead_recover(r.log, &options, &result, &err) == 0 && result.left == 0 &&
           result.writers == 1 && sound_packs(&r) == 3,
       "the next time the last one has its pack, too");
    recording_close(&r);
}

static void test_the_living_are_left_alone(void)
{
    const struct dead_options options = { .failed = say_failure };
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct log *mine = r.log;
    struct dead_result result;
    struct err err = { 0 };

    recording_call(&r, s, STR("1"), STR("open"), (str){ NULL, 0 });
    recording_log(&r);
    ok(dead_recover(r.log, &options, &result, &err) == 0 && result.writers == 0,
       "a living writer keeps its session");
    session_free(s);
    log_abandon(mine);
    recording_close(&r);
}

static void test_parts_of_a_dead_session_are_chained(void)
{
    const struct dead_options options = { .failed = say_failure };
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct open_call *c = recording_call(&r, s, STR("1"), STR("a"), (str){ NULL, 0 });
    struct dead_result result;
    struct session_cut cut;
    struct err err = { 0 };

    recording_answer(&r, s, c, false, (str){ NULL, 0 });
    ok(session_part(s, NULL, &cut, &err) == 0, "a part is cut, then the writer dies");
    recording_call(&r, s, STR("2"), STR("b"), (str){ NULL, 0 });
    session_free(s);
    log_abandon(r.log);
    recording_log(&r);
    ok(dead_recover(r.log, &options, &result, &err) == 0 && result.packs == 2,
       "both parts get their pack");
    ok(sound_packs(&r) == 2, "both verify");
    recording_close(&r);
}

static void nap(long microseconds)
{
    struct timespec t = { 0, microseconds * 1000 };

    nanosleep(&t, NULL);
}

static void recover_in_child(struct recording *r)
{
    const struct dead_options options = { 0 };
    struct dead_result result;
    struct err err = { 0 };

    recording_log(r);
    _exit(dead_recover(r->log, &options, &result, &err) < 0);
}

/* Recovery is killed again and again, a little later every time. */
static void test_recovery_may_die_at_any_moment(void)
{
    const struct dead_options options = { .failed = say_failure };
    struct recording r;
    char session[ID_MAX], writer[ID_MAX];
    struct dead_result result;
    struct err err = { 0 };
    unsigned killed = 0;
    struct told t;

    leave_orphan(&r, session, writer);
    for (long round = 0; round < 40; round++) {
        pid_t child = fork();
        int status = 0;

        if (child == 0)
            recover_in_child(&r);
        nap(500 + round * 250);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        killed += WIFSIGNALED(status);
    }
    recording_log(&r);
    ok(dead_recover(r.log, &options, &result, &err) == 0 && result.left == 0,
       "after %u deaths: %s", killed, err.msg);
    t = read_told(&r, session, writer);
    ok(t.starts == 1 && t.ends == 1 && t.lost == 2 && t.receipts == 4,
       "one session_end, two calls lost, four receipts (%u %u %u)", t.ends, t.lost,
       t.receipts);
    ok(t.chain_ends == 1, "one chain_end for the first writer");
    ok(sound_packs(&r) == 1, "one pack, and it verifies");
    ok(stagings(&r) == 0, "and nothing of those that were not finished");
    recording_close(&r);
}

int main(void)
{
    test_a_dead_session_is_finished_once();
    test_one_that_cannot_be_packed_keeps_nobody();
    test_the_living_are_left_alone();
    test_parts_of_a_dead_session_are_chained();
    test_recovery_may_die_at_any_moment();
    return tap_done();
}
