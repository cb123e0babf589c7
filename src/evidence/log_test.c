/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "evidence/event.h"
#include "evidence/head.h"
#include "evidence/logcheck.h"
#include "evidence/origin.h"
#include "evidence/segment.h"
#include "tests/lab.h"
#include "tests/tap.h"

#define FIRST_SEGMENT "log/segments/00000000000000000000.jsonl"

/* Walk the whole log as a stranger would: seq, prev, and how many marks from 0 on are
 * there. Returns the number of events, -1 when the chain is broken. */
static int64_t walk_log(const struct lab *l, bool *marks, int64_t mark_count)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    struct digest last = { { 0 } };
    enum segment_step step;
    struct event_view v;
    struct err err = { 0 };
    int64_t mark, count = 0;
    str line;

    if (segment_open_seq(&r, lab_path(l, "log"), 0, &err) < 0)
        return -1;
    for (;; count++) {
        if (segment_next(&r, &step, &line, &err) < 0 || step == SEGMENT_TAIL)
            return -1;
        if (step == SEGMENT_END)
            return count;
        if (event_parse(&v, &json, line, &err) < 0 || v.seq != (uint64_t)count ||
            !digest_equal(&v.prev, &last)) {
            printf("# event %" PRId64 ": %s\n", count, err.msg);
            return -1;
        }
        last = tree_leaf(line);
        if (event_int(&v, "mark", &mark) && mark >= 0 && mark < mark_count)
            marks[mark] = true;
    }
}

static bool all_marked(const bool *marks, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!marks[i]) {
            printf("# event with mark %" PRId64 " is missing\n", i);
            return false;
        }
    }
    return true;
}

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

/* --- the head --- */

enum head_fault {
    HEAD_MISSING,
    HEAD_REWOUND,
    HEAD_GARBLED,
    HEAD_EMPTY,
    HEAD_SHORT,
};

static void spoil_head(const struct lab *l, enum head_fault fault, str old)
{
    const char *path = lab_path(l, "log/head");
    struct err err = { 0 };
    char noise[8192];

    memset(noise, 0xa5, sizeof(noise));
    if (fault == HEAD_MISSING)
        unlink(path);
    else if (fault == HEAD_REWOUND)
        ok(file_replace(path, old, 0600, &err) == 0, "rewound");
    else if (fault == HEAD_GARBLED)
        ok(file_replace(path, str_of(noise, sizeof(noise)), 0600, &err) == 0, "garbled");
    else
        ok(truncate(path, fault == HEAD_EMPTY ? 0 : 4096) == 0, "cut");
}

static void test_head_is_never_trusted(void)
{
    static const char *const names[] = { "missing", "rewound", "garbled", "empty",
                                         "short" };

    for (int fault = HEAD_MISSING; fault <= HEAD_SHORT; fault++) {
        struct lab l = lab_make();
        CLEANUP(buf_release) struct buf old = { 0 };
        struct err err = { 0 };
        struct log *log = lab_open(&l, &err);
        bool marks[12] = { false };

        for (int i = 0; i < 10; i++) {
            if (i == 5)
                ok(file_read(lab_path(&l, "log/head"), &old, &err) == 0, "%s", err.msg);
            ok(lab_append(log, i, NULL, &err) == 0, "append");
        }
        ok(log_close(log, &err) == 0, "close: %s", err.msg);
        spoil_head(&l, (enum head_fault)fault, buf_str(&old));
        log = lab_open(&l, &err);
        ok(log && lab_append(log, 10, NULL, &err) == 0, "%s head: goes on: %s",
           names[fault], err.msg);
        ok(log && log_close(log, &err) == 0, "close: %s", err.msg);
        ok(walk_log(&l, marks, 11) == 15 && all_marked(marks, 11),
           "%s head: nothing lost, not restarted at 0", names[fault]);
        lab_remove(&l);
    }
}

/* Removed under two running writers: they must not write two histories. */
static void test_head_removed_while_in_use(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *a = lab_open(&l, &err), *b, *c;
    bool marks[6] = { false };

    b = lab_open(&l, &err);
    ok(a && b && lab_append(a, 0, NULL, &err) == 0 && lab_append(b, 1, NULL, &err) == 0,
       "two writers: %s", err.msg);
    unlink(lab_path(&l, "log/head"));
    c = lab_open(&l, &err);
    ok(c && lab_append(c, 2, NULL, &err) == 0, "a third makes a new head: %s", err.msg);
    ok(lab_append(a, 3, NULL, &err) == 0, "the first goes on: %s", err.msg);
    ok(lab_append(b, 4, NULL, &err) == 0, "the second goes on: %s", err.msg);
    ok(lab_append(c, 5, NULL, &err) == 0, "the third goes on: %s", err.msg);
    ok(log_close(a, &err) == 0 && log_close(b, &err) == 0 && log_close(c, &err) == 0,
       "close: %s", err.msg);
    ok(walk_log(&l, marks, 6) == 12 && all_marked(marks, 6), "one history");
    lab_remove(&l);
}

/* --- torn tails and damage --- */

static void append_bytes(const char *path, str bytes)
{
    struct err err = { 0 };
    CLEANUP(file_close) int fd = file_open(path, O_WRONLY | O_APPEND, 0, &err);

    ok(fd >= 0 && file_write(fd, bytes, NULL, &err) == 0, "spoil: %s", err.msg);
}

/* A writer whose head the others no longer have, at the end of a segment that they have
 * closed. */
static void test_head_of_a_closed_segment(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = NULL;
    struct log_options small = lab_options(&l);
    bool marks[3] = { false };

    small.segment_max = 1;
    ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
    ok(unlink(lab_path(&l, "log/head")) == 0, "the head goes");
    ok(log_open(&other, &small, &err) == 0 && lab_append(other, 1, NULL, &err) == 0,
       "another makes it anew, and begins new segments: %s", err.msg);
    ok(lab_append(log, 2, NULL, &err) == 0, "the first goes on: %s", err.msg);
    ok(walk_log(&l, marks, 3) > 0 && all_marked(marks, 3), "in one history");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(log_close(other, &err) == 0, "close: %s", err.msg);
    lab_remove(&l);
}

static void test_torn_tails(void)
{
    static const struct {
        const char *what;
        const char *tail;
        size_t n;
    } cases[] = {
        { "half a line", "{\"half\":", 8 },
        { "a run of NULs", "\0\0\0\0\0\0\0\0\0\0", 10 },
        { "a whole line of rubbish", "rubbish\n", 8 },
        { "rubbish and half a line", "rubbish\n{\"v\":1", 14 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lab l = lab_make();
        struct err err = { 0 };
        struct log *log = lab_open(&l, &err);
        bool marks[3] = { false };
        CLEANUP(buf_release) struct buf kept = { 0 };

        ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
        append_bytes(lab_path(&l, FIRST_SEGMENT), str_of(cases[i].tail, cases[i].n));
        ok(lab_append(log, 1, NULL, &err) == 0, "%s: a running writer repairs it: %s",
           cases[i].what, err.msg);
        ok(log_close(log, &err) == 0, "close: %s", err.msg);
        ok(walk_log(&l, marks, 2) == 5 && all_marked(marks, 2),
           "%s: chain_start, 0, repair, 1, chain_end", cases[i].what);
        ok(file_read(lab_path(&l, "log/torn/00000000000000000002"), &kept, &err) == 0 &&
               str_equal(buf_str(&kept), str_of(cases[i].tail, cases[i].n)),
           "%s: the bytes are kept", cases[i].what);
        lab_remove(&l);
    }
}

/* The line that a killed writer had finished, but not told the head. */
static void test_whole_lines_are_adopted(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(buf_release) struct buf before = { 0 };
    bool marks[3] = { false };

    ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
    ok(file_read(lab_path(&l, "log/head"), &before, &err) == 0, "head");
    ok(lab_append(log, 1, NULL, &err) == 0, "append: %s", err.msg);
    { /* as if the head had not been moved: written in place, the mapping sees it */
        CLEANUP(file_close)
        int fd = file_open(lab_path(&l, "log/head"), O_WRONLY, 0, &err);

        ok(file_write(fd, buf_str(&before), NULL, &err) == 0, "head goes back");
    }
    ok(lab_append(log, 2, NULL, &err) == 0, "append: %s", err.msg);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(walk_log(&l, marks, 3) == 5 && all_marked(marks, 3), "no event twice, none lost");
    lab_remove(&l);
}

static void edit_segment(const struct lab *l, int fault)
{
    CLEANUP(buf_release) struct buf text = { 0 }, out = { 0 };
    struct err err = { 0 };
    str rest, line[16];
    int n = 0;

    ok(file_read(lab_path(l, FIRST_SEGMENT), &text, &err) == 0, "read");
    rest = buf_str(&text);
    while (n < 16 && str_line(&rest, &line[n]))
        n++;
    for (int i = 0; i < n; i++) {
        int from = i;

        if (fault == 0 && i >= n - 2) /* cut the tail */
            continue;
        if (fault == 1 && i == 3) /* remove a middle line */
            continue;
        if (fault == 2 && (i == 3 || i == 4)) /* swap two lines */
            from = i == 3 ? 4 : 3;
        buf_add(&out, line[from]);
        buf_add_char(&out, '\n');
        if (fault == 3 && i == 3) { /* double a line */
            buf_add(&out, line[from]);
            buf_add_char(&out, '\n');
        }
    }
    if (fault == 4)
        out.p[out.n / 2] ^= 1; /* a flipped bit */
    ok(file_replace(lab_path(l, FIRST_SEGMENT), buf_str(&out), 0600, &err) == 0,
       "edited");
}

/* Everything here lies before the signed checkpoint: refused, not repaired. The head is
 * removed too, as a thorough forger would. */
static void test_damage_is_refused(void)
{
    static const char *const faults[] = { "cut tail", "removed middle line",
                                          "swapped lines", "duplicated line",
                                          "flipped bit" };

    for (size_t i = 0; i < COUNT(faults); i++) {
        struct lab l = lab_make();
        struct err err = { 0 };
        struct log *log = lab_open(&l, &err);

        for (int m = 0; m < 8; m++)
            ok(lab_append(log, m, NULL, &err) == 0, "append");
        ok(log_close(log, &err) == 0, "close: %s", err.msg);
        edit_segment(&l, (int)i);
        unlink(lab_path(&l, "log/head"));
        /* With tiles recovery reads on from the checkpoint; without, all of it. */
        if (i > 0)
            ok(file_remove_tree(lab_path(&l, "log/tile"), &err) == 0, "no tiles");
        log = lab_open(&l, &err);
        ok(log == NULL && err.code == ERR_DAMAGE, "%s: %s", faults[i], err.msg);
        lab_remove(&l);
    }
}

/* --- the machine went down --- */

static void pretend_another_boot(const struct lab *l)
{
    static const char boot[HEAD_BOOT + 1] = "00000000-0000-0000-0000-000000000000";
    struct head h;
    struct err err = { 0 };

    ok(head_open(&h, lab_path(l, "log/head"), 0600, &err) == 0, "head: %s", err.msg);
    head_set_boot(&h, boot);
    head_close(&h);
}

/* Events that were never synced, and a page of them that never reached the disk. */
static void test_a_hole_in_a_segment(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    bool marks[50] = { false };
    CLEANUP(file_close) int fd = -1;
    char zeros[200] = { 0 };

    for (int i = 0; i < 20; i++)
        ok(lab_append(log, i, NULL, &err) == 0, "append");
    ok(log_checkpoint(log, true, &err) == 0, "signed: %s", err.msg);
    for (int i = 20; i < 40; i++)
        ok(lab_append(log, i, NULL, &err) == 0, "append");
    log_abandon(log);
    fd = file_open(lab_path(&l, FIRST_SEGMENT), O_WRONLY, 0, &err);
    ok(fd >= 0 && pwrite(fd, zeros, sizeof(zeros), 21 * 184 + 2000) == sizeof(zeros),
       "a hole");
    pretend_another_boot(&l);
    log = lab_open(&l, &err);
    ok(log && lab_append(log, 49, NULL, &err) == 0 && log_lost_total(log) > 0,
       "goes on, and knows that events are lost: %s", err.msg);
    ok(log && log_close(log, &err) == 0, "and signs: %s", err.msg);
    ok(walk_log(&l, marks, 50) > 20 && all_marked(marks, 20) && marks[49] && !marks[39],
       "what was signed is there, the rest up to the hole");
    lab_remove(&l);
}

static void test_a_hole_between_segments(void)
{
    struct lab l = lab_make();
    struct log_options o = lab_options(&l);
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct err err = { 0 };
    struct log *log = NULL;
    bool marks[60] = { false };
    char name[64];

    o.segment_max = 4096;
    ok(log_open(&log, &o, &err) == 0 && log_checkpoint(log, true, &err) == 0, "a log: %s",
       err.msg);
    for (int i = 0; i < 50; i++)
        ok(lab_append(log, i, NULL, &err) == 0, "append");
    log_abandon(log);
    ok(segment_list_read(&list, lab_path(&l, "log"), &err) == 0 && list.count > 2,
       "%zu segments", list.count);
    snprintf(name, sizeof(name), "log/segments/%020" PRIu64 ".jsonl",
             list.first[list.count - 2]);
    ok(truncate(lab_path(&l, name), 500) == 0, "the end of one but the last is gone");
    log = lab_open(&l, &err);
    ok(!log || lab_append(log, 55, NULL, &err) < 0 || log_checkpoint(log, true, &err) < 0,
       "without a crash this is damage: %s", err.msg);
    log_abandon(log);
    pretend_another_boot(&l);
    log = lab_open(&l, &err);
    ok(log && log_lost_total(log) > 0, "after one it goes on: %s", err.msg);
    ok(log && log_close(log, &err) == 0, "and signs: %s", err.msg);
    ok(walk_log(&l, marks, 60) > 10, "one chain up to the hole and from there on");
    snprintf(name, sizeof(name), "log/torn/%020" PRIu64 ".jsonl",
             list.first[list.count - 1]);
    ok(access(lab_path(&l, name), F_OK) == 0, "what was behind it is kept");
    lab_remove(&l);
}

/* --- rollback, copies, keys --- */

static int run(const char *fmt, const char *a, const char *b)
{
    char command[2048];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command, sizeof(command), fmt, a, b);
#pragma GCC diagnostic pop
    return system(command);
}

static void test_a_restored_directory_is_not_continued(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    char copy[400];

    snprintf(copy, sizeof(copy), "%s/copy", l.root);
    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(run("cp -a '%s' '%s'", l.audit, copy) == 0, "a backup");
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "it goes on: %s", err.msg);
    ok(file_remove_tree(l.audit, &err) == 0, "removed");
    ok(run("cp -a '%s' '%s'", copy, l.audit) == 0, "restored");
    log = lab_open(&l, &err);
    ok(!log && err.code == ERR_DAMAGE && strstr(err.msg, "rolled back"), "told: %s",
       err.msg);
    lab_remove(&l);
}

static void test_of_two_copies_one_is_signed(void)
{
    struct lab l = lab_make();
    struct lab other = l;
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    snprintf(other.audit, sizeof(other.audit), "%s/copy", l.root);
    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(run("cp -a '%s' '%s'", l.audit, other.audit) == 0, "copied");
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "the first goes on: %s", err.msg);
    for (int i = 0; i < 2;
         i++) { /* shorter at first, then as long with another history */
        log = lab_open(&other, &err);
        ok(!log && err.code == ERR_DAMAGE, "the copy does not: %s", err.msg);
    }
    lab_remove(&l);
}

static void test_a_foreign_checkpoint_is_refused(void)
{
    struct lab l = lab_make(), m = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    log = lab_open(&m, &err);
    ok(log && log_close(log, &err) == 0, "another: %s", err.msg);
    ok(run("cp '%s' '%s'", lab_path(&m, "log/checkpoint"),
           lab_path(&l, "log/checkpoint")) == 0,
       "a checkpoint of another log");
    log = lab_open(&l, &err);
    ok(!log && err.code == ERR_DAMAGE, "refused: %s", err.msg);
    lab_remove(&l);
    lab_remove(&m);
}

static void test_without_its_key_a_log_is_not_continued(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(file_remove_tree(l.keys.dir, &err) == 0, "the keys are gone");
    log = lab_open(&l, &err);
    ok(!log && err.code == ERR_NOTFOUND && strstr(err.msg, "not continued"), "told: %s",
       err.msg);
    lab_remove(&l);
}

/* As if the process had died with the key in `origin` and no checkpoint made yet. */
static void test_anyone_finishes_a_key_rotation(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };
    CLEANUP(buf_release) struct buf note = { 0 }, vkey = { 0 };
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };
    struct logcheck_options options = { .keys = &l.keys };
    struct logcheck found;
    struct checkpoint c;
    struct note_key key;
    struct origin o;
    struct note n;

    ok(log && log_checkpoint(log, true, &err) == 0, "a signed log: %s", err.msg);
    ok(keys_generate(&l.keys, &entropy_system, "second", &next, &err) == 0 &&
           origin_read(&o, lab_path(&l, "log"), &err) == 0 &&
           note_key_make(&key, str_from(o.name), next.secret.public_key, &err) == 0,
       "a key: %s", err.msg);
    note_key_add(&vkey, &key);
    event_init(&e, EVENT_KEY_ROTATE);
    event_add_text(&e, "vkey", buf_str(&vkey));
    ok(log_append(log, events, 1, NULL, &err) == 0, "its event: %s", err.msg);
    ok(log_checkpoint(log, true, &err) == 0 &&
           logcheck_run(&found, l.audit, &options, &err) == 0 && found.findings == 0,
       "with the event alone the log is sound, under its old key");
    ok(origin_add_key(&o, lab_path(&l, "log"), &key, 0600, &err) == 0, "the key");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(origin_checkpoint(&o, lab_path(&l, "log"), &c, &note, &err) == 0 &&
           note_parse(&n, buf_str(&note), &err) == 0 &&
           note_verify(&n, &o.keys[0], 1) == NOTE_SIGNED &&
           note_verify(&n, &o.keys[1], 1) == NOTE_SIGNED,
       "the next checkpoint carries both signatures");
    lab_remove(&l);
}

static void test_key_rotation(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };
    CLEANUP(buf_release) struct buf note = { 0 };
    struct checkpoint c;
    struct origin o;
    struct note n;

    ok(keys_generate(&l.keys, &entropy_system, "second", &next, &err) == 0, "a key: %s",
       err.msg);
    ok(log && log_rotate_key(log, &next, &err) == 0, "rotate: %s", err.msg);
    ok(origin_read(&o, lab_path(&l, "log"), &err) == 0 && o.count == 2, "two keys");
    ok(memcmp(o.keys[0].public_key, next.secret.public_key, PUBLIC_SIZE) == 0,
       "the new one first");
    ok(origin_checkpoint(&o, lab_path(&l, "log"), &c, &note, &err) == 0 &&
           note_parse(&n, buf_str(&note), &err) == 0 &&
           note_verify(&n, &o.keys[0], 1) == NOTE_SIGNED &&
           note_verify(&n, &o.keys[1], 1) == NOTE_SIGNED,
       "the next checkpoint carries both signatures");
    ok(log_rotate_key(log, &next, &err) < 0, "not twice: %s", err.msg);
    ok(lab_append(log, 1, NULL, &err) == 0 && log_close(log, &err) == 0, "close: %s",
       err.msg);
    buf_reset(&note);
    ok(origin_checkpoint(&o, lab_path(&l, "log"), &c, &note, &err) == 0 &&
           note_parse(&n, buf_str(&note), &err) == 0 &&
           note_verify(&n, &o.keys[0], 1) == NOTE_SIGNED &&
           note_verify(&n, &o.keys[1], 1) == NOTE_UNSIGNED,
       "later ones only the new one");
    lab_remove(&l);
}

static bool is_sound(const struct lab *l)
{
    const struct logcheck_options options = { .keys = &l->keys };
    struct logcheck c;
    struct err err = { 0 };

    if (logcheck_run(&c, l->audit, &options, &err) < 0) {
        printf("# %s\n", err.msg);
        return false;
    }
    if (c.findings)
        printf("# %s\n", c.finding[0].message);
    return c.findings == 0;
}

static void test_a_key_may_come_back(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer first = { 0 };
    CLEANUP(signer_release) struct signer second = { 0 };

    ok(log && log_signer(log, &first, &err) == 0 &&
           keys_generate(&l.keys, &entropy_system, "second", &second, &err) == 0,
       "two keys: %s", err.msg);
    ok(log_rotate_key(log, &second, &err) == 0 && log_rotate_key(log, &first, &err) == 0,
       "there and back: %s", err.msg);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(is_sound(&l), "the log verifies");
    lab_remove(&l);
}

static void test_a_log_is_handed_over_by_its_key(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };

    ok(log && keys_generate(&l.keys, &entropy_system, "next", &next, &err) == 0 &&
           log_rotate_key(log, &next, &err) == 0 && lab_append(log, 1, NULL, &err) == 0 &&
           log_close(log, &err) == 0,
       "rotated: %s", err.msg);
    ok(is_sound(&l), "the log verifies");
    ok(run("awk '!(/^— / && before) { print } { before = /^— / }' '%s' > '%s'",
           lab_path(&l, "log/checkpoints"), lab_path(&l, "less")) == 0 &&
           rename(lab_path(&l, "less"), lab_path(&l, "log/checkpoints")) == 0,
       "the signature of the key before goes");
    ok(!is_sound(&l), "and any key could have done that");
    lab_remove(&l);
}

static void test_who_signs_tells_what_it_mended(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);

    ok(log && other && lab_append(log, 1, NULL, &err) == 0, "two writers: %s", err.msg);
    ok(run("printf '{\"torn' >> '%s'%s", lab_path(&l, FIRST_SEGMENT), "") == 0, "torn");
    ok(log_checkpoint(other, true, &err) == 0, "one signs: %s", err.msg);
    log_abandon(other);
    ok(run("grep -q '\"type\":\"repair\"' '%s'%s", lab_path(&l, FIRST_SEGMENT), "") == 0,
       "and has told of the repair before it died");
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
    lab_remove(&l);
}

static void rotate_in_child(const struct lab *l, int number)
{
    CLEANUP(signer_release) struct signer next = { 0 };
    struct err err = { 0 };
    struct log *log = lab_open(l, &err);
    char id[16];

    snprintf(id, sizeof(id), "key%d", number);
    if (!log || keys_generate(&l->keys, &entropy_system, id, &next, &err) < 0 ||
        log_rotate_key(log, &next, &err) < 0 || log_close(log, &err) < 0) {
        printf("# rotation %d: %s\n", number, err.msg);
        fflush(stdout);
        _exit(1);
    }
    _exit(0);
}

static void test_rotations_at_once(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    struct origin o;
    int status, failed = 0;

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    fflush(stdout);
    for (int i = 0; i < 4; i++) {
        if (fork() == 0)
            rotate_in_child(&l, i);
    }
    while (wait(&status) > 0)
        failed += status != 0;
    ok(failed == 0, "each of four rotates");
    ok(origin_read(&o, lab_path(&l, "log"), &err) == 0 && o.count == 5,
       "and none forgets another's key: %zu", o.count);
    ok(is_sound(&l), "the log verifies");
    lab_remove(&l);
}

static void test_recovery_after_anothers_rotation(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };

    ok(log && other && keys_generate(&l.keys, &entropy_system, "next", &next, &err) == 0,
       "two writers: %s", err.msg);
    ok(log_rotate_key(other, &next, &err) == 0 && lab_append(other, 1, NULL, &err) == 0 &&
           log_close(other, &err) == 0,
       "the other rotates, signs with the new key alone, and leaves: %s", err.msg);
    ok(run("printf '{\"torn' >> '%s'%s", lab_path(&l, FIRST_SEGMENT), "") == 0, "torn");
    ok(lab_append(log, 2, NULL, &err) == 0, "the first goes on: %s", err.msg);
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
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

static void test_removed_under_us(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    ok(log && lab_append(log, 0, NULL, &err) == 0, "append: %s", err.msg);
    ok(file_remove_tree(l.audit, &err) == 0, "the directory goes");
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
    test_head_is_never_trusted();
    test_head_removed_while_in_use();
    test_head_of_a_closed_segment();
    test_torn_tails();
    test_whole_lines_are_adopted();
    test_damage_is_refused();
    test_a_hole_in_a_segment();
    test_a_hole_between_segments();
    test_a_restored_directory_is_not_continued();
    test_of_two_copies_one_is_signed();
    test_a_foreign_checkpoint_is_refused();
    test_without_its_key_a_log_is_not_continued();
    test_key_rotation();
    test_anyone_finishes_a_key_rotation();
    test_a_key_may_come_back();
    test_a_log_is_handed_over_by_its_key();
    test_who_signs_tells_what_it_mended();
    test_rotations_at_once();
    test_recovery_after_anothers_rotation();
    test_a_gap_holds_any_reason();
    test_sync_with_a_garbled_head();
    test_full_disk_leaves_a_gap();
    test_removed_under_us();
    test_missing_lock_is_not_replaced();
    test_another_users_directory_is_refused();
    test_batch_limits();
    return tap_done();
}
