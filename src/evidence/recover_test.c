/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends when its writer or its machine did not end well: log_recover(). */
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
#include "tests/logwalk.h"

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
        lab_pass_lock(&l);
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

int main(void)
{
    test_head_is_never_trusted();
    test_head_removed_while_in_use();
    test_head_of_a_closed_segment();
    test_torn_tails();
    test_whole_lines_are_adopted();
    test_damage_is_refused();
    test_a_hole_in_a_segment();
    test_a_hole_between_segments();
    return tap_done();
}
