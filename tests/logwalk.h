/* SPDX-License-Identifier: Apache-2.0 */
/* logwalk - reading a log as a stranger would, and spoiling it; for the log's tests. */
#ifndef TESTS_LOGWALK_H
#define TESTS_LOGWALK_H

#include <fcntl.h>
#include <inttypes.h>

#include "evidence/event.h"
#include "evidence/logcheck.h"
#include "evidence/segment.h"
#include "tests/lab.h"
#include "tests/tap.h"

#define FIRST_SEGMENT "log/segments/00000000000000000000.jsonl"

/* Walk the whole log as a stranger would: seq, prev, and how many marks from 0 on are
 * there. Returns the number of events, -1 when the chain is broken. */
static inline int64_t walk_log(const struct lab *l, bool *marks, int64_t mark_count)
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

static inline bool all_marked(const bool *marks, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!marks[i]) {
            printf("# event with mark %" PRId64 " is missing\n", i);
            return false;
        }
    }
    return true;
}

static inline void append_bytes(const char *path, str bytes)
{
    struct err err = { 0 };
    CLEANUP(file_close) int fd = file_open(path, O_WRONLY | O_APPEND, 0, &err);

    ok(fd >= 0 && file_write(fd, bytes, NULL, &err) == 0, "spoil: %s", err.msg);
}

/* A shell command with two paths in it. */
static inline int run(const char *fmt, const char *a, const char *b)
{
    char command[2048];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command, sizeof(command), fmt, a, b);
#pragma GCC diagnostic pop
    return system(command);
}

static inline bool is_sound(const struct lab *l)
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

#endif
