/* SPDX-License-Identifier: Apache-2.0 */
/* The lock that is kept from batch to batch, and batches that are written together. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "evidence/event.h"
#include "evidence/latch.h"
#include "evidence/log.h"
#include "tests/logwalk.h"

static bool is_locked(const struct lab *l)
{
    int fd = open(lab_path(l, "log/lock"), O_RDWR | O_CLOEXEC);
    struct latch latch = { 0 };
    struct err err;
    bool locked;

    if (latch_open(&latch, fd, &err) < 0)
        abort();
    locked = latch_try(&latch) == LATCH_BUSY;
    if (!locked)
        latch_free(&latch);
    latch_close(&latch);
    close(fd);
    return locked;
}

static void test_hold_keeps_the_lock(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    bool marks[5] = { false };

    ok(log && !is_locked(&l), "nobody holds a log that is only open");
    log_let_go(log);
    log_hold(log);
    ok(!is_locked(&l), "to hold it takes nothing yet");
    ok(lab_append(log, 0, NULL, &err) == 0 && is_locked(&l), "the first batch takes it");
    ok(lab_append(log, 1, NULL, &err) == 0 && is_locked(&l), "the second keeps it");
    if (log_begin(log, &err) < 0)
        ok(false, "begin: %s", err.msg);
    log_abort(log);
    ok(is_locked(&l), "so does one that is given up");
    ok(lab_append(log, 2, NULL, &err) == 0, "and the next goes on: %s", err.msg);
    log_let_go(log);
    ok(!is_locked(&l), "let go");
    log_let_go(log);
    ok(lab_append(log, 3, NULL, &err) == 0 && !is_locked(&l), "then as ever");
    log_hold(log);
    log_let_go(log);
    ok(!is_locked(&l) && lab_append(log, 4, NULL, &err) == 0, "held for nothing");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 5) == 7 && all_marked(marks, 5), "one chain");
    lab_remove(&l);
}

struct waiter {
    struct log *log;
    _Atomic bool done;
    int result;
};

static void *wait_and_append(void *ctx)
{
    struct waiter *w = ctx;
    struct err err = { 0 };

    w->result = lab_append(w->log, 1, NULL, &err);
    w->done = true;
    return NULL;
}

static void test_others_wait_while_it_is_held(void)
{
    const struct timespec moment = { 0, 50000000 };
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);
    struct waiter thread = { .log = log }, process = { .log = other };
    bool marks[3] = { false };
    pthread_t a, b;

    log_hold(log);
    ok(lab_append(log, 0, NULL, &err) == 0, "held: %s", err.msg);
    pthread_create(&a, NULL, wait_and_append, &thread);
    pthread_create(&b, NULL, wait_and_append, &process);
    nanosleep(&moment, NULL);
    ok(!thread.done && !process.done, "another thread waits, and another writer");
    ok(lab_append(log, 2, NULL, &err) == 0, "while we go on");
    log_let_go(log);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    ok(thread.result == 0 && process.result == 0, "then they write");
    ok(lab_append(log, 2, NULL, &err) == 0, "and we see what they wrote: %s", err.msg);
    ok(log_close(other, &err) == 0 && log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 3) == 9 && all_marked(marks, 3), "one chain");
    lab_remove(&l);
}

/* --- batches that are written together --- */

static int writes, failures; /* of the gatherer */

static void write_gathered(void *ctx)
{
    struct err ignored;

    writes++;
    failures += log_write(ctx, &ignored) < 0;
}

static bool gather(struct log *log, int mark, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };

    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", mark);
    log_set_gatherer(log, write_gathered, log);
    if (log_begin_more(log, err) < 0)
        return false;
    if (log_put(log, &e, NULL, err) < 0) {
        log_abort(log);
        return false;
    }
    log_gather(log, NULL);
    return true;
}

static off_t segment_bytes(const struct lab *l)
{
    struct stat st = { 0 };

    return stat(lab_path(l, FIRST_SEGMENT), &st) == 0 ? st.st_size : -1;
}

static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };

    signal(SIGXFSZ, SIG_IGN);
    ok(setrlimit(RLIMIT_FSIZE, &limit) == 0, "files are limited");
}

static void test_gathered_batches_are_one(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    off_t before = segment_bytes(&l);
    bool marks[5] = { false };

    log_hold(log);
    ok(gather(log, 0, &err) && gather(log, 1, &err) && log_gathered(log) > 0, "two wait");
    ok(log_begin_more(log, &err) == 0, "one more");
    log_abort(log);
    ok(segment_bytes(&l) == before && is_locked(&l), "is given up; nothing is written");
    ok(log_write(log, &err) == 0 && log_gathered(log) == 0, "then they are");
    ok(segment_bytes(&l) > before && log_write(log, &err) == 0, "once");
    writes = failures = 0;
    ok(gather(log, 2, &err) && lab_append(log, 3, NULL, &err) == 0,
       "a batch that is not gathered");
    ok(log_gathered(log) == 0 && writes == 1 && failures == 0,
       "is written behind what was");
    ok(gather(log, 4, &err), "a last one");
    log_drop(log, "for a test");
    log_let_go(log);
    ok(log_lost_total(log) == 1, "is dropped");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 5) == 7 && all_marked(marks, 4) && !marks[4],
       "one chain, with a gap at its end");
    lab_remove(&l);
}

static void test_gathered_batches_are_lost_together(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    off_t before = segment_bytes(&l);
    bool marks[6] = { false };

    log_hold(log);
    limit_files((rlim_t)before + 300);
    ok(gather(log, 0, &err) && gather(log, 1, &err), "two wait");
    ok(log_write(log, &err) < 0 && segment_bytes(&l) == before, "and fail: %s", err.msg);
    ok(log_lost_total(log) == 2 && log_write(log, &err) == 0, "both, and once");
    failures = 0;
    ok(gather(log, 2, &err) && gather(log, 2, &err), "two more");
    ok(lab_append(log, 3, NULL, &err) < 0 && failures == 1,
       "fail before another, which fails: %s", err.msg);
    ok(log_lost_total(log) == 5, "all are counted");
    limit_files(RLIM_INFINITY);
    ok(gather(log, 4, &err), "there is room again");
    log_lost(log, 1, "for a test");
    ok(gather(log, 5, &err) && log_write(log, &err) == 0, "a loss between two");
    log_let_go(log);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 6) == 6 && marks[4] && marks[5] && !marks[0] && !marks[2],
       "one chain");
    ok(run("grep -c '\"lost\":5.*\"type\":\"gap\"' '%s'%s", lab_path(&l, FIRST_SEGMENT),
           "|grep -qx 1") == 0 &&
           run("grep -c '\"lost\":1.*\"type\":\"gap\"' '%s'%s",
               lab_path(&l, FIRST_SEGMENT), "|grep -qx 1") == 0,
       "and each loss is told before what follows it");
    lab_remove(&l);
}

/* The events that were gathered open the next segment together. */
static void test_gathered_batches_rotate(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log_options o = lab_options(&l);
    struct log *log = NULL;
    bool marks[40] = { false }, good = true;

    o.segment_max = 2000;
    ok(log_open(&log, &o, &err) == 0, "open: %s", err.msg);
    log_hold(log);
    for (int i = 0; i < 40; i++) {
        good = gather(log, i, &err) && good;
        if (i % 10 == 9)
            good = log_write(log, &err) == 0 && good;
    }
    log_let_go(log);
    ok(good && log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 40) == 42 && all_marked(marks, 40), "one chain");
    lab_remove(&l);
}

/* --- the kinds of lock files --- */

/* A writer dies with the lock in its hand, and half a line in the segment. */
static void test_dead_holder(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    bool marks[2] = { false };
    pid_t pid;
    int status;

    ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
    pid = fork();
    if (pid == 0) {
        struct log *other = lab_open(&l, &err);

        if (!other || log_begin(other, &err) < 0)
            _exit(1);
        if (write(open(lab_path(&l, FIRST_SEGMENT), O_WRONLY | O_APPEND), "{\"ha", 4) !=
            4)
            _exit(1);
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status) && is_locked(&l), "it dies, and the lock is taken");
    ok(lab_append(log, 1, NULL, &err) == 0, "we take it away: %s", err.msg);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 2) == 6 && all_marked(marks, 2),
       "two chain_starts, 0, repair, 1, chain_end");
    lab_remove(&l);
}

/* Two processes that take each other for one would write the same places. */
static void test_fork_must_open_it_itself(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    bool marks[2] = { false };
    pid_t pid;
    int status;

    ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
    pid = fork();
    if (pid == 0)
        _exit(lab_append(log, 1, NULL, &err) < 0 && err.code == ERR_REFUSED ? 0 : 1);
    waitpid(pid, &status, 0);
    ok(status == 0, "a fork is refused");
    ok(lab_append(log, 1, NULL, &err) == 0, "the first process is not: %s", err.msg);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 2) == 4 && all_marked(marks, 2), "one chain");
    lab_remove(&l);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void test_stopped_holder(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);
    int64_t began;
    char whom[32];

    snprintf(whom, sizeof(whom), "process %d ", (int)getpid());
    ok(log_begin(other, &err) == 0, "another has it: %s", err.msg);
    ok(lab_append(log, 0, NULL, &err) < 0 && err.code == ERR_TIMEOUT &&
           strncmp(err.msg, whom, strlen(whom)) == 0,
       "for too long: %s", err.msg);
    began = now_ms();
    ok(lab_append(log, 0, NULL, &err) < 0 && strstr(err.msg, "still") &&
           now_ms() - began < LOG_LOCK_WAIT / 2,
       "nobody waits as long again: %s", err.msg);
    log_abort(other);
    ok(lab_append(log, 1, NULL, &err) == 0, "until it lets go");
    ok(log_begin(other, &err) == 0, "and takes it again");
    began = now_ms();
    ok(lab_append(log, 0, NULL, &err) < 0 && now_ms() - began >= LOG_LOCK_WAIT / 2,
       "then one waits: %s", err.msg);
    log_abort(other);
    ok(log_close(other, &err) == 0 && log_close(log, &err) == 0, "close: %s", err.msg);
    lab_remove(&l);
}

static pid_t start_holder(const struct lab *l)
{
    struct err err = { 0 };
    int go[2];
    char byte;
    pid_t pid;

    ok(pipe(go) == 0, "a pipe");
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        struct log *log = lab_open(l, &err);

        if (log && log_begin(log, &err) == 0 && write(go[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    ok(read(go[0], &byte, 1) == 1, "another process has the lock");
    close(go[0]);
    close(go[1]);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A short wait must do on a processor that has other things to do. */
static void test_dead_holder_on_a_busy_machine(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    pid_t holder = start_holder(&l), hog;
    cpu_set_t all, one;

    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ok(sched_getaffinity(0, sizeof(all), &all) == 0 &&
           sched_setaffinity(0, sizeof(one), &one) == 0,
       "one processor");
    ok(lab_append(log, 0, NULL, &err) < 0 && err.code == ERR_TIMEOUT, "stuck: %s",
       err.msg);
    hog = fork();
    if (hog == 0) {
        for (volatile unsigned busy = 0;; busy++)
            continue;
    }
    end_child(holder);
    ok(lab_append(log, 1, NULL, &err) == 0, "the lock of the dead is taken away: %s",
       err.msg);
    end_child(hog);
    sched_setaffinity(0, sizeof(all), &all);
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
    lab_remove(&l);
}

/* Many messages of a turn must not wait for it one after the other. */
static void test_one_wait_while_it_is_held(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);
    int64_t began;

    ok(log_begin(other, &err) == 0, "another has it: %s", err.msg);
    log_hold(log);
    ok(lab_append(log, 0, NULL, &err) < 0 && err.code == ERR_TIMEOUT, "one waits: %s",
       err.msg);
    began = now_ms();
    for (int i = 0; i < 3; i++)
        ok(lab_append(log, 0, NULL, &err) < 0 && err.code == ERR_TIMEOUT,
           "one more does not: %s", err.msg);
    ok(now_ms() - began < LOG_LOCK_WAIT && log_lost_total(log) == 4, "all are counted");
    log_let_go(log);
    log_abort(other);
    log_hold(log);
    ok(lab_append(log, 1, NULL, &err) == 0, "the next time it is tried again: %s",
       err.msg);
    log_let_go(log);
    ok(log_close(other, &err) == 0 && log_close(log, &err) == 0, "close: %s", err.msg);
    lab_remove(&l);
}

/* As on a file system that other machines may have, too. */
static void test_empty_lock_file_is_flocked(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other;
    bool marks[4] = { false };
    int fd;

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    fd = open(lab_path(&l, "log/lock"), O_RDWR | O_CLOEXEC);
    ok(ftruncate(fd, 0) == 0, "its lock file is emptied");
    log = lab_open(&l, &err);
    other = lab_open(&l, &err);
    ok(log && other, "two writers: %s", err.msg);
    ok(lab_append(log, 0, NULL, &err) == 0 && lab_append(other, 1, NULL, &err) == 0 &&
           lab_append(log, 2, NULL, &err) == 0,
       "take turns: %s", err.msg);
    ok(log_begin(other, &err) == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0, "with flock");
    log_abort(other);
    ok(flock(fd, LOCK_EX | LOCK_NB) == 0 && lab_append(log, 3, NULL, &err) < 0 &&
           err.code == ERR_TIMEOUT,
       "and wait for it: %s", err.msg);
    flock(fd, LOCK_UN);
    ok(lab_append(log, 3, NULL, &err) == 0, "then go on: %s", err.msg);
    ok(log_close(other, &err) == 0 && log_close(log, &err) == 0, "close: %s", err.msg);
    ok(lseek(fd, 0, SEEK_END) == 0, "the file stays as it was");
    ok(walk_log(&l, marks, 4) > 0 && all_marked(marks, 4), "one chain");
    close(fd);
    lab_remove(&l);
}

static void test_garbled_lock_file_is_refused(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    struct log_options o = lab_options(&l);
    uint64_t events;

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    append_bytes(lab_path(&l, "log/lock"), STR("x"));
    ok(!lab_open(&l, &err) && strstr(err.msg, "log rebuild"), "refused: %s", err.msg);
    ok(log_rebuild(&o, &events, &err) == 0, "mended: %s", err.msg);
    log = lab_open(&l, &err);
    ok(log && !is_locked(&l) && log_close(log, &err) == 0, "and used: %s", err.msg);
    lab_remove(&l);
}

/* Who began the log died, or had no room, before anything else was written. */
static void test_half_made_lock_file_of_a_new_log(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log;

    ok(file_make_dirs(lab_path(&l, "log"), 0700, &err) == 0 &&
           file_put(lab_path(&l, "log/lock"), STR("assayX"), 0600, &err) == 0,
       "a beginning: %s", err.msg);
    ok(!lab_open(&l, &err) && strstr(err.msg, "something else"), "another's file: %s",
       err.msg);
    ok(truncate(lab_path(&l, "log/lock"), 5) == 0, "half of ours");
    log = lab_open(&l, &err);
    ok(log && !is_locked(&l) && log_close(log, &err) == 0, "is made whole: %s", err.msg);
    ok(truncate(lab_path(&l, "log/lock"), 5) == 0 && !lab_open(&l, &err) &&
           err.code == ERR_DAMAGE,
       "but not when there is a log: %s", err.msg);
    lab_remove(&l);
}

int main(void)
{
    test_dead_holder();
    test_fork_must_open_it_itself();
    test_stopped_holder();
    test_dead_holder_on_a_busy_machine();
    test_one_wait_while_it_is_held();
    test_empty_lock_file_is_flocked();
    test_garbled_lock_file_is_refused();
    test_half_made_lock_file_of_a_new_log();
    test_hold_keeps_the_lock();
    test_others_wait_while_it_is_held();
    test_gathered_batches_are_one();
    test_gathered_batches_are_lost_together();
    test_gathered_batches_rotate();
    return tap_done();
}
