/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "evidence/event.h"
#include "evidence/head.h"
#include "evidence/logcheck.h"
#include "evidence/origin.h"
#include "evidence/segment.h"
#include "tests/logwalk.h"

static void test_open_append_close(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    struct checkpoint c;
    struct origin o;
    uint64_t upto = 0;
    bool marks[3] = { false };

    ok(log != NULL, "a log opens in an empty place: %s", err.msg);
    for (int i = 0; i < 3; i++)
        ok(lab_append(log, i, &upto, &err) == 0, "append %d: %s", i, err.msg);
    ok(upto == 4, "chain_start and three events");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 3) == 5 && all_marked(marks, 3), "five events, chained");
    ok(origin_read(&o, lab_path(&l, "log"), &err) == 0 &&
           origin_checkpoint(&o, lab_path(&l, "log"), &c, NULL, &err) == 0,
       "the checkpoint verifies: %s", err.msg);
    ok(c.size == 5, "and covers all of it");
    ok(access(lab_path(&l, "live"), F_OK) == 0 && rmdir(lab_path(&l, "live")) == 0,
       "nobody is left in live/");
    lab_remove(&l);
}

static void test_it_goes_on_where_it_ended(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    bool marks[20] = { false };
    int64_t mark = 0;

    for (int round = 0; round < 5; round++) {
        struct log *log = lab_open(&l, &err);

        for (int i = 0; log && i < 4; i++)
            ok(lab_append(log, mark++, NULL, &err) == 0, "append %s", err.msg);
        ok(log && log_close(log, &err) == 0, "round %d: %s", round, err.msg);
    }
    ok(walk_log(&l, marks, 20) == 30 && all_marked(marks, 20), "one chain over restarts");
    lab_remove(&l);
}

static void test_rotation(void)
{
    struct lab l = lab_make();
    struct log_options o = lab_options(&l);
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct err err = { 0 };
    struct log *log = NULL;
    bool marks[200] = { false };

    o.segment_max = 4096;
    ok(log_open(&log, &o, &err) == 0, "open: %s", err.msg);
    for (int i = 0; i < 200; i++) {
        if (lab_append(log, i, NULL, &err) < 0)
            ok(false, "append %d: %s", i, err.msg);
        if (i % 50 == 0)
            ok(log_checkpoint(log, true, &err) == 0, "checkpoint: %s", err.msg);
    }
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 200) == 202 && all_marked(marks, 200), "chain over segments");
    ok(segment_list_read(&list, lab_path(&l, "log"), &err) == 0 && list.count > 5,
       "%zu segments", list.count);
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "opens again: %s", err.msg);
    lab_remove(&l);
}

/* --- threads and processes --- */

#define THREADS    8
#define PER_THREAD 500

struct share {
    struct log *log;
    int64_t first_mark;
    bool sync;
    int failures;
};

static void *append_many(void *ctx)
{
    struct share *s = ctx;

    for (int i = 0; i < PER_THREAD; i++) {
        struct err err = { 0 };
        uint64_t upto;

        if (lab_append(s->log, s->first_mark + i, &upto, &err) < 0 ||
            (s->sync && i % 50 == 0 && log_sync(s->log, upto, &err) < 0) ||
            (i % 100 == 0 && log_checkpoint(s->log, false, &err) < 0)) {
            printf("# %s\n", err.msg);
            s->failures++;
        }
    }
    return NULL;
}

static void test_threads_share_a_log(void)
{
    static bool marks[THREADS * PER_THREAD];
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    struct share share[THREADS];
    pthread_t thread[THREADS];
    int failures = 0;

    for (int i = 0; i < THREADS; i++) {
        share[i] = (struct share){ log, (int64_t)i * PER_THREAD, i % 2 == 0, 0 };
        pthread_create(&thread[i], NULL, append_many, &share[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        failures += share[i].failures;
    }
    ok(failures == 0, "8 threads append, sync and sign without a failure");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, COUNT(marks)) == (int64_t)COUNT(marks) + 2 &&
           all_marked(marks, COUNT(marks)),
       "no gap, no fork, all there");
    lab_remove(&l);
}

static void be_a_process(const struct lab *l, int64_t first_mark, int64_t count)
{
    struct err err = { 0 };
    struct log *log = lab_open(l, &err);

    for (int64_t i = 0; log && i < count; i++) {
        if (lab_append(log, first_mark + i, NULL, &err) < 0 ||
            (i % 500 == 0 && log_checkpoint(log, false, &err) < 0)) {
            printf("# %s\n", err.msg);
            _exit(1);
        }
    }
    if (!log || log_close(log, &err) < 0) {
        printf("# %s\n", err.msg);
        _exit(1);
    }
    _exit(0);
}

/* Eight first starts at once, then all append. */
static void test_processes_share_a_log(int64_t per_process)
{
    struct lab l = lab_make();
    int64_t total = 8 * per_process;
    bool *marks = calloc((size_t)total, sizeof(*marks));
    int failures = 0, status;

    fflush(stdout);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0)
            be_a_process(&l, i * per_process, per_process);
    }
    while (wait(&status) > 0)
        failures += status != 0;
    ok(failures == 0, "eight first starts at once, %" PRId64 " events each", per_process);
    ok(walk_log(&l, marks, total) == total + 16 && all_marked(marks, total),
       "no gap, no fork, all there");
    free(marks);
    lab_remove(&l);
}

/* One writer is killed in the middle of its work; the others do not notice. */
static void test_a_killed_writer_harms_nobody(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log;
    bool marks[2000] = { false };
    int status, failures = 0;
    pid_t victim, other;

    fflush(stdout);
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    fflush(stdout);
    victim = fork();
    if (victim == 0)
        be_a_process(&l, 1000000, 1000000);
    other = fork();
    if (other == 0)
        be_a_process(&l, 0, 2000);
    usleep(30000);
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    waitpid(other, &status, 0);
    failures += status != 0;
    ok(failures == 0, "the other writer finished");
    ok(walk_log(&l, marks, 2000) > 2000 && all_marked(marks, 2000), "all of its events");
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "and the log goes on: %s", err.msg);
    lab_remove(&l);
}

static void test_a_stopped_process_does_not_freeze_the_others(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    int pipes[2], status;
    bool marks[3] = { false };
    char byte = 0;
    pid_t holder;

    ok(log && pipe(pipes) == 0, "open: %s", err.msg);
    fflush(stdout);
    holder = fork();
    if (holder == 0) {
        struct log *own = lab_open(&l, &err);

        if (own && log_begin(own, &err) == 0 && write(pipes[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    ok(read(pipes[0], &byte, 1) == 1, "another process stands inside the lock");
    kill(holder, SIGSTOP);
    ok(lab_append(log, 0, NULL, &err) < 0 && err.code == ERR_TIMEOUT, "told: %s",
       err.msg);
    ok(strstr(err.msg, "has held the lock") != NULL, "in plain words");
    kill(holder, SIGKILL);
    waitpid(holder, &status, 0);
    ok(lab_append(log, 1, NULL, &err) == 0, "afterwards it works again: %s", err.msg);
    ok(log_lost_total(log) == 1, "one event is known to be lost");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 2) > 0 && !marks[0] && marks[1], "the log says the same");
    lab_remove(&l);
}

/* --- failure --- */

static void test_a_gap_holds_any_reason(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    char reason[300];

    for (size_t i = 0; i + 1 < sizeof(reason); i++)
        reason[i] = i % 2 ? '\xc3' : '\xa4'; /* not UTF-8 at its beginning… */
    reason[sizeof(reason) - 1] = '\0';
    for (int i = 0; i < 3; i++) { /* …and cut in the middle of a character */
        ok(log != NULL, "open: %s", err.msg);
        log_lost(log, 1, reason + i);
        ok(lab_append(log, i, NULL, &err) == 0, "append: %s", err.msg);
    }
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
    lab_remove(&l);
}

static void write_head(const struct lab *l, off_t at, const void *bytes, size_t n)
{
    int fd = open(lab_path(l, "log/head"), O_RDWR);

    ok(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n, "the head is garbled");
    close(fd);
}

static void test_sync_with_a_garbled_head(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    static const char zeros[4096];
    uint64_t upto = 0;

    ok(log && lab_append(log, 1, &upto, &err) == 0, "append: %s", err.msg);
    write_head(&l, 0, zeros, sizeof(zeros));
    alarm(20);
    ok(log_sync(log, upto, &err) == 0, "sync ends: %s", err.msg);
    ok(log_sync(log, upto + 1, &err) < 0, "but not for what was never written: %s",
       err.msg);
    alarm(0);
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
    lab_remove(&l);
}

static void test_full_disk_leaves_a_gap(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log;
    bool marks[3] = { false };
    int failures = 0;

    if (mkdir(l.audit, 0700) < 0 ||
        run("mount -t tmpfs -o size=256k,mode=0700 tmpfs '%s' 2>/dev/null%s", l.audit,
            "")) {
        tap_skip("a full disk", "cannot mount a small tmpfs here");
        lab_remove(&l);
        return;
    }
    log = lab_open(&l, &err);
    ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
    ok(run("dd if=/dev/zero of='%s/fill' bs=1k 2>/dev/null%s", l.audit, "") != 0, "full");
    for (int i = 0; i < 100; i++)
        failures += lab_append(log, 1, NULL, &err) < 0;
    ok(failures > 50 && strstr(err.msg, "No space"), "told: %s", err.msg);
    unlink(lab_path(&l, "fill"));
    ok(lab_append(log, 2, NULL, &err) == 0, "with room again it works: %s", err.msg);
    ok(log_lost_total(log) == (uint64_t)failures, "and knows what was lost");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 3) > 0 && marks[0] && marks[2], "the chain holds");
    ok(run("grep -q '\"lost\":[1-9].*\"type\":\"gap\"' '%s'%s",
           lab_path(&l, FIRST_SEGMENT), "") == 0,
       "a gap event tells it");
    ok(run("umount '%s'%s", l.audit, "") == 0, "unmounted");
    lab_remove(&l);
}

static void hear(void *ctx, const char *sentence)
{
    snprintf(ctx, 256, "%s", sentence);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        limit.rlim_cur = bytes;
        setrlimit(RLIMIT_FSIZE, &limit);
    }
}

static void test_what_the_log_cannot_say_is_said(void)
{
    struct lab l = lab_make();
    struct log_options o = lab_options(&l);
    char said[256] = "";
    struct err err = { 0 };
    struct log *log = NULL;

    o.say = hear;
    o.say_ctx = said;
    ok(log_open(&log, &o, &err) == 0 && lab_append(log, 0, NULL, &err) == 0, "append: %s",
       err.msg);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(16); /* every file is longer by now */
    ok(lab_append(log, 1, NULL, &err) < 0 && lab_append(log, 2, NULL, &err) < 0,
       "no more can be written: %s", err.msg);
    ok(log_close(log, &err) < 0, "not even the end: %s", err.msg);
    limit_files(RLIM_INFINITY);
    ok(strstr(said, "evidence of 3 events was lost") &&
           strstr(said, "the log does not say so"),
       "it is told: %s", said);
    lab_remove(&l);
}

/* Told at once to whoever blocks, and soon to the others. */
static void test_removed_under_us(enum log_on_failure when)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log_options o = lab_options(&l);
    struct log *log = NULL;

    o.on_failure = when;
    ok(log_open(&log, &o, &err) == 0 && lab_append(log, 0, NULL, &err) == 0, "append: %s",
       err.msg);
    ok(file_remove_tree(l.audit, &err) == 0, "the directory goes");
    if (when == LOG_PASS)
        usleep((LOG_LOOK_AFTER + 20) * 1000);
    ok(lab_append(log, 1, NULL, &err) < 0, "told: %s", err.msg);
    ok(access(l.audit, F_OK) < 0, "no new log in its place");
    ok(log_close(log, &err) < 0, "closing says it too: %s", err.msg);
    lab_remove(&l);
}

static void test_missing_lock_is_not_replaced(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other;

    ok(log && unlink(lab_path(&l, "log/lock")) == 0, "the lock file goes");
    other = lab_open(&l, &err);
    ok(!other && err.code == ERR_DAMAGE, "a second process is refused: %s", err.msg);
    usleep((LOG_LOOK_AFTER + 20) * 1000);
    ok(lab_append(log, 1, NULL, &err) < 0, "the first writes no more: %s", err.msg);
    ok(log_close(log, &err) < 0, "and does not sign: %s", err.msg);
    lab_remove(&l);
}

static void test_another_users_directory_is_refused(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log;

    if (geteuid() != 0) {
        tap_skip("another user's directory", "only root can make one");
    } else {
        ok(mkdir(l.audit, 0700) == 0 && chown(l.audit, 12345, (gid_t)-1) == 0, "theirs");
        log = lab_open(&l, &err);
        ok(!log && strstr(err.msg, "belongs to another user"), "refused: %s", err.msg);
    }
    lab_remove(&l);
}

static void test_batch_limits(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(event_release) struct event e = { 0 };
    static char text[EVENT_LINE_MAX];
    int put = 0;

    memset(text, 'x', sizeof(text));
    event_init(&e, EVENT_HEARTBEAT);
    event_add_text(&e, "text", str_of(text, 16000));
    ok(log && log_begin(log, &err) == 0, "begin: %s", err.msg);
    while (log_put(log, &e, NULL, &err) == 0)
        put++;
    ok(err.code == ERR_LIMIT && put > 60, "a batch ends after %d events: %s", put,
       err.msg);
    ok(log_commit(log, NULL, &err) == 0, "and what was put is written: %s", err.msg);
    event_init(&e, EVENT_HEARTBEAT);
    event_add_text(&e, "text", str_of(text, sizeof(text) - 10));
    ok(log_begin(log, &err) == 0 && log_put(log, &e, NULL, &err) < 0,
       "too long a line: %s", err.msg);
    log_abort(log);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, NULL, 0) == put + 2, "the chain holds");
    lab_remove(&l);
}

int main(void)
{
    test_open_append_close();
    test_it_goes_on_where_it_ended();
    test_rotation();
    test_threads_share_a_log();
    test_processes_share_a_log(500);
    test_a_killed_writer_harms_nobody();
    test_a_stopped_process_does_not_freeze_the_others();
    test_a_gap_holds_any_reason();
    test_sync_with_a_garbled_head();
    test_full_disk_leaves_a_gap();
    test_what_the_log_cannot_say_is_said();
    test_removed_under_us(LOG_PASS);
    test_removed_under_us(LOG_BLOCK);
    test_missing_lock_is_not_replaced();
    test_another_users_directory_is_refused();
    test_batch_limits();
    return tap_done();
}
