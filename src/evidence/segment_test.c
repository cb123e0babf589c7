/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/segment.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/event.h"
#include "tests/lab.h"
#include "tests/tap.h"

/* Lines "line <seq>", `count` from `first` on, and then `tail`. */
static void put_segment(const struct lab *l, uint64_t first, uint64_t count,
                        const char *tail)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    char path[FILE_PATH_MAX];
    struct err err = { 0 };

    for (uint64_t i = 0; i < count; i++)
        buf_printf(&text, "line %" PRIu64 "\n", first + i);
    buf_add(&text, str_from(tail));
    if (segment_path(path, l->audit, first, &err) < 0 ||
        file_put(path, buf_str(&text), 0600, &err) < 0)
        ok(false, "segment %" PRIu64 ": %s", first, err.msg);
}

static struct lab make_log(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };

    if (file_make_dirs(lab_path(&l, "segments"), 0700, &err) < 0)
        exit(99);
    return l;
}

/* Read on; returns the seq after the last good line, and the step that ended it. */
static uint64_t read_on(struct segment_reader *r, enum segment_step *step, str *line,
                        struct err *err)
{
    char expected[40];

    for (;;) {
        uint64_t seq = r->next.seq;

        if (segment_next(r, step, line, err) < 0) {
            *step = SEGMENT_END;
            return seq;
        }
        if (*step != SEGMENT_LINE)
            return seq;
        snprintf(expected, sizeof(expected), "line %" PRIu64, seq);
        if (!str_is(*line, expected) || r->next.seq != seq + 1)
            return UINT64_MAX;
    }
}

static void test_list(void)
{
    static const char *const strangers[] = {
        "segments/0.jsonl",
        "segments/0000000000000000000x.jsonl",
        "segments/00000000000000000007.jsonl.tmp",
        "segments/00000000000000000007.json",
        "segments/99999999999999999999.jsonl", /* beyond 64 bits */
        "segments/README",
    };
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct lab l = lab_make();
    struct err err = { 0 };

    ok(segment_list_read(&list, l.audit, &err) == 0 && list.count == 0,
       "no directory is an empty list: %s", err.msg);
    if (file_make_dirs(lab_path(&l, "segments"), 0700, &err) < 0)
        return;
    for (size_t i = 0; i < COUNT(strangers); i++) {
        if (file_put(lab_path(&l, strangers[i]), STR("x"), 0600, &err) < 0)
            ok(false, "%s", err.msg);
    }
    ok(segment_list_read(&list, l.audit, &err) == 0 && list.count == 0,
       "other files are passed over");
    for (int i = 40; i >= 0; i--)
        put_segment(&l, (uint64_t)i * 10, 10, "");
    ok(segment_list_read(&list, l.audit, &err) == 0 && list.count == 41, "41 segments");
    ok(list.count == 41 && list.first[0] == 0 && list.first[1] == 10 &&
           list.first[40] == 400,
       "in order");
    lab_remove(&l);
}

static void test_reading(void)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    struct lab l = make_log();
    enum segment_step step = SEGMENT_LINE;
    struct err err = { 0 };
    struct segment_place place;
    str line;

    ok(segment_open_seq(&r, l.audit, 0, &err) == 0 &&
           segment_next(&r, &step, &line, &err) == 0 && step == SEGMENT_END,
       "an empty log ends at once");
    ok(segment_open_seq(&r, l.audit, 1, &err) < 0 && err.code == ERR_NOTFOUND,
       "and has no event 1: %s", err.msg);
    put_segment(&l, 0, 10, "");
    put_segment(&l, 10, 1, "");
    put_segment(&l, 11, 9, "");
    ok(segment_open_seq(&r, l.audit, 0, &err) == 0, "opens: %s", err.msg);
    ok(read_on(&r, &step, &line, &err) == 20 && step == SEGMENT_END,
       "twenty lines over three segments");
    ok(segment_next(&r, &step, &line, &err) == 0 && step == SEGMENT_END,
       "the end stays the end");
    segment_close(&r);
    for (uint64_t i = 0; i <= 20; i++) {
        if (segment_open_seq(&r, l.audit, i, &err) < 0 || r.next.seq != i ||
            read_on(&r, &step, &line, &err) != 20)
            ok(false, "from event %" PRIu64 " on: %s", i, err.msg);
        segment_close(&r);
    }
    ok(segment_open_seq(&r, l.audit, 21, &err) < 0 && err.code == ERR_NOTFOUND,
       "not beyond the end: %s", err.msg);
    segment_close(&r);
    if (segment_open_seq(&r, l.audit, 13, &err) < 0)
        ok(false, "%s", err.msg);
    place = r.next;
    segment_close(&r);
    ok(place.segment == 11 && place.offset == 16 &&
           segment_open_at(&r, l.audit, place, &err) == 0 &&
           read_on(&r, &step, &line, &err) == 20,
       "and from an exact place");
    segment_close(&r);
    place.offset = 10000;
    ok(segment_open_at(&r, l.audit, place, &err) < 0 && err.code == ERR_DAMAGE,
       "a place behind the end: %s", err.msg);
    place.segment = 12;
    ok(segment_open_at(&r, l.audit, place, &err) < 0 && err.code == ERR_DAMAGE,
       "a place in a segment that is not there: %s", err.msg);
    lab_remove(&l);
}

static void test_a_known_place_saves_counting_where_it_still_holds(void)
{
    static const struct {
        const char *what;
        struct segment_place known;
        uint64_t seq;
    } rows[] = {
        { "the place itself", { 11, 16, 13 }, 13 },
        { "on from there", { 11, 16, 13 }, 19 },
        { "it is behind the event", { 11, 16, 13 }, 12 },
        { "its segment has not got the event", { 0, 16, 2 }, 15 },
        { "its segment is gone", { 12, 16, 14 }, 15 },
        { "the end of a segment", { 0, 80, 10 }, 10 },
        { "nothing is known", { 0, 0, 0 }, 5 },
    };
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    struct lab l = make_log();
    enum segment_step step;
    struct err err = { 0 };
    str line;

    put_segment(&l, 0, 10, "");
    put_segment(&l, 10, 1, "");
    put_segment(&l, 11, 9, "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        int opened = segment_open_near(&r, l.audit, rows[i].known, rows[i].seq, &err);

        ok(opened == 0 && r.next.seq == rows[i].seq &&
               read_on(&r, &step, &line, &err) == 20,
           "%s: %s", rows[i].what, err.msg);
        segment_close(&r);
    }
    ok(segment_open_near(&r, l.audit, (struct segment_place){ 11, 10000, 13 }, 13, &err) <
               0 &&
           err.code == ERR_DAMAGE,
       "behind the end of its segment: %s", err.msg);
    /* That the lines before are not read shows at a place that lies about its seq. */
    ok(segment_open_near(&r, l.audit, (struct segment_place){ 11, 16, 15 }, 16, &err) ==
               0 &&
           r.next.offset == 24,
       "one line is counted from there");
    segment_close(&r);
    lab_remove(&l);
}

static const struct {
    const char *what;
    uint64_t lines; /* of a first segment; the next begins with 10 */
    const char *tail;
    uint64_t end;
    enum segment_step step;
    enum err_code code;
} ends[] = {
    { "whole", 10, "", 20, SEGMENT_END, ERR_NONE },
    { "without its last line", 9, "", 9, SEGMENT_END, ERR_DAMAGE },
    { "with a torn tail", 10, "line 1", 10, SEGMENT_TAIL, ERR_NONE },
    { "with a tail in place of its last line", 9, "line 9", 9, SEGMENT_TAIL, ERR_NONE },
    { "with a line too many", 11, "", 10, SEGMENT_TAIL, ERR_NONE },
    { "empty", 0, "", 0, SEGMENT_END, ERR_DAMAGE },
};

static void test_ends(void)
{
    for (size_t i = 0; i < COUNT(ends); i++) {
        CLEANUP(segment_close) struct segment_reader r = { 0 };
        struct lab l = make_log();
        enum segment_step step = SEGMENT_LINE;
        struct err err = { 0 };
        uint64_t end;
        str line;

        put_segment(&l, 0, ends[i].lines, ends[i].tail);
        put_segment(&l, 10, 10, "");
        if (segment_open_seq(&r, l.audit, 0, &err) < 0)
            ok(false, "%s", err.msg);
        end = read_on(&r, &step, &line, &err);
        ok(end == ends[i].end && step == ends[i].step && err.code == ends[i].code,
           "a segment %s: %" PRIu64 " %s", ends[i].what, end, err.msg);
        lab_remove(&l);
    }
}

static void test_beginning(void)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    struct lab l = make_log();
    struct err err = { 0 };

    put_segment(&l, 5, 5, "");
    ok(segment_open_seq(&r, l.audit, 0, &err) < 0 && err.code == ERR_DAMAGE,
       "a log without its beginning: %s", err.msg);
    ok(symlink("00000000000000000005.jsonl",
               lab_path(&l, "segments/00000000000000000000.jsonl")) == 0 &&
           segment_open_seq(&r, l.audit, 0, &err) < 0,
       "a link is not followed: %s", err.msg);
    lab_remove(&l);
}

/* Lines at the limit, one beyond it, and enough of them to cross the window. */
static void test_long_lines(void)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    CLEANUP(buf_release) struct buf text = { .max = (size_t)8 << 20 };
    struct lab l = make_log();
    enum segment_step step = SEGMENT_END;
    char path[FILE_PATH_MAX];
    struct err err = { 0 };
    size_t good = 0;
    str line;

    for (int i = 0; i < 100; i++) {
        char *to = buf_room(&text, EVENT_LINE_MAX);

        if (!to)
            exit(99);
        memset(to, 'a' + i % 26, EVENT_LINE_MAX);
        text.n += EVENT_LINE_MAX;
        buf_add_char(&text, i == 99 ? 'x' : '\n'); /* the last is one byte too long */
    }
    buf_add_char(&text, '\n');
    if (segment_path(path, l.audit, 0, &err) < 0 ||
        file_put(path, buf_str(&text), 0600, &err) < 0 ||
        segment_open_seq(&r, l.audit, 0, &err) < 0)
        ok(false, "%s", err.msg);
    while (segment_next(&r, &step, &line, &err) == 0 && step == SEGMENT_LINE)
        good += line.n == EVENT_LINE_MAX && line.p[0] == 'a' + (int)(good % 26) &&
                line.p[line.n - 1] == line.p[0];
    ok(good == 99, "99 lines of %d bytes", EVENT_LINE_MAX);
    ok(step == SEGMENT_TAIL && r.next.seq == 99 &&
           r.next.offset == 99 * (EVENT_LINE_MAX + 1),
       "a longer one is a tail, and its place is known");
    lab_remove(&l);
}

int main(void)
{
    test_list();
    test_reading();
    test_a_known_place_saves_counting_where_it_still_holds();
    test_ends();
    test_beginning();
    test_long_lines();
    return tap_done();
}
