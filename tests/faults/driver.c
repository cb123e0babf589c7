/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that the fault tests disturb: it writes to a log below ROOT (keys in
 * ROOT/home, the log in ROOT/audit) and says at once what it was promised.
 *
 *     driver append ROOT COUNT [name=value…]   append marked events one by one
 *     driver grow ROOT COUNT                   append many in large batches
 *     driver check ROOT                        verify the log, list every mark in it
 *     driver parse ROOT                        only read and parse every line
 *
 *     first=N        the first mark                  every=N     checkpoint every N
 * events segment=BYTES  size of a segment               hold=1      wait for stdin before
 *     rotate=N       new key after the Nth event                 closing
 *     durability=write|group|strict
 *
 * append prints `ack MARK` once the log has promised it, `lost MARK why` or `unsettled
 * MARK why` when it has not; then `total N`, all that was lost. Exit: 0 well, 2 something
 * was refused or lost, 3 the log could not be opened.
 *
 * check prints `mark N` for each marked event, `gap N`, `repairs N`, `events N` and
 * `finding CODE what`. Exit: 0 sound, 2 findings, 3 no log.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "evidence/log.h"
#include "evidence/logcheck.h"
#include "evidence/segment.h"
#include "tests/faults/say.h"

#define GROW_BATCH 3000 /* events under one lock: below LOG_BATCH_MAX */

struct plan {
    char audit[FILE_PATH_MAX];
    struct keys keys;
    int64_t count, first, every, rotate;
    bool hold;
    struct log_options log;
};

static void tell(void *ctx, const char *sentence)
{
    (void)ctx;
    say("says %s\n", sentence);
}

static int die(const char *what, const struct err *err)
{
    say("%s %s\n", what, err->msg);
    return 3;
}

static bool set_durability(struct plan *p, const char *value)
{
    static const char *const names[] = { "write", "group", "strict" };

    for (unsigned i = 0; i < COUNT(names); i++) {
        if (strcmp(value, names[i]) == 0) {
            p->log.durability = (enum log_durability)i;
            return true;
        }
    }
    return false;
}

static bool set(struct plan *p, const char *arg)
{
    const char *value = strchr(arg, '=');
    long long n;

    if (!value++)
        return false;
    if (strncmp(arg, "durability=", 11) == 0)
        return set_durability(p, value);
    n = strtoll(value, NULL, 10);
    if (strncmp(arg, "first=", 6) == 0)
        p->first = n;
    else if (strncmp(arg, "every=", 6) == 0)
        p->every = n;
    else if (strncmp(arg, "segment=", 8) == 0)
        p->log.segment_max = (uint64_t)n;
    else if (strncmp(arg, "rotate=", 7) == 0)
        p->rotate = n;
    else if (strncmp(arg, "hold=", 5) == 0)
        p->hold = n != 0;
    else
        return false;
    return true;
}

/* --- append --- */

static int append_one(struct log *log, int64_t mark, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };
    uint64_t upto;

    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", mark);
    if (log_append(log, events, 1, &upto, err) < 0) {
        say("lost %" PRId64 " %s\n", mark, err->msg);
        return -1;
    }
    if (log_settle(log, upto, err) < 0) {
        say("unsettled %" PRId64 " %s\n", mark, err->msg);
        return -1;
    }
    say("ack %" PRId64 "\n", mark);
    return 0;
}

static int rotate_key(const struct plan *p, struct log *log, struct err *err)
{
    CLEANUP(signer_release) struct signer next = { 0 };

    if (keys_generate(&p->keys, &entropy_system, "next", &next, err) < 0)
        return -1;
    return log_rotate_key(log, &next, err);
}

static int append_all(const struct plan *p, struct log *log)
{
    int status = 0;
    struct err err;

    for (int64_t i = 0; i < p->count; i++) {
        if (append_one(log, p->first + i, &err) < 0)
            status = 2;
        if (p->every && i % p->every == p->every - 1 &&
            log_checkpoint(log, true, &err) < 0) {
            say("unsigned %s\n", err.msg);
            status = 2;
        }
        if (i + 1 == p->rotate && rotate_key(p, log, &err) < 0) {
            say("unrotated %s\n", err.msg);
            status = 2;
        }
    }
    return status;
}

static void wait_for_stdin(void)
{
    char byte;

    say("ready\n");
    if (read(STDIN_FILENO, &byte, 1) < 0)
        exit(4);
}

static int append(const struct plan *p)
{
    struct log *log;
    struct err err;
    int status;

    if (log_open(&log, &p->log, &err) < 0)
        return die("closed", &err);
    status = append_all(p, log);
    say("total %" PRIu64 "\n", log_lost_total(log));
    if (p->hold)
        wait_for_stdin();
    if (log_close(log, &err) < 0) {
        say("unclosed %s\n", err.msg);
        status = 2;
    }
    return status;
}

/* --- grow --- */

static int put_batch(struct log *log, int64_t from, int64_t count, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };

    if (log_begin(log, err) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        event_init(&e, EVENT_HEARTBEAT);
        event_add_int(&e, "mark", from + i);
        if (log_put(log, &e, NULL, err) < 0) {
            log_abort(log);
            return -1;
        }
    }
    return log_commit(log, NULL, err);
}

static int grow(const struct plan *p)
{
    struct log *log;
    struct err err;

    if (log_open(&log, &p->log, &err) < 0)
        return die("closed", &err);
    for (int64_t done = 0; done < p->count;) {
        int64_t n = p->count - done < GROW_BATCH ? p->count - done : GROW_BATCH;

        if (put_batch(log, p->first + done, n, &err) < 0)
            return die("lost", &err);
        done += n;
    }
    return log_close(log, &err) < 0 ? die("unclosed", &err) : 0;
}

/* --- check --- */

static void list_mark(const struct event_view *v, bool list)
{
    int64_t mark;

    if (!list)
        return;

    if (v->type == EVENT_HEARTBEAT && event_int(v, "mark", &mark))
        printf("mark %" PRId64 "\n", mark);
}

static int read_lines(const struct plan *p, bool list, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    enum segment_step step;
    struct event_view v;
    char dir[FILE_PATH_MAX];
    str line;

    if (path_join(dir, p->audit, "log", err) < 0 || segment_open_seq(&r, dir, 0, err) < 0)
        return -1;
    for (;;) {
        if (segment_next(&r, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return 0;
        if (event_parse(&v, &json, line, err) < 0)
            return -1;
        list_mark(&v, list);
    }
}

static int check(const struct plan *p)
{
    struct logcheck_options options = { .keys = &p->keys };
    struct logcheck found;
    struct err err;

    if (logcheck_run(&found, p->audit, &options, &err) < 0)
        return die("unchecked", &err);
    if (read_lines(p, true, &err) < 0)
        printf("finding MARKS %s\n", err.msg);
    printf("events %" PRIu64 "\ngap %" PRIu64 "\nrepairs %" PRIu64 "\n", found.events,
           found.lost, found.repairs);
    for (unsigned i = 0; i < found.findings && i < LOGCHECK_FINDINGS_MAX; i++)
        printf("finding %s %s\n", logcheck_code_name(found.finding[i].code),
               found.finding[i].message);
    return found.findings ? 2 : 0;
}

static int make_plan(struct plan *p, int argc, char **argv, struct err *err)
{
    char home[FILE_PATH_MAX];

    if (path_join(home, argv[2], "home", err) < 0 ||
        path_join(p->audit, argv[2], "audit", err) < 0 ||
        keys_open(&p->keys, home, err) < 0)
        return -1;
    p->log = (struct log_options){ .dir = p->audit,
                                   .keys = &p->keys,
                                   .clock = &clock_system,
                                   .entropy = &entropy_system,
                                   .group = (gid_t)-1,
                                   .say = tell };
    p->count = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;
    for (int i = 4; i < argc; i++) {
        if (!set(p, argv[i]))
            return err_set(err, ERR_REFUSED, "what is '%s'?", argv[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct plan p;
    struct err err;

    if (argc < 3)
        return 3;
    if (make_plan(&p, argc, argv, &err) < 0)
        return die("unplanned", &err);
    if (strcmp(argv[1], "append") == 0)
        return append(&p);
    if (strcmp(argv[1], "grow") == 0)
        return grow(&p);
    if (strcmp(argv[1], "check") == 0)
        return check(&p);
    if (strcmp(argv[1], "parse") == 0)
        return read_lines(&p, false, &err) < 0 ? die("unread", &err) : 0;
    return 3;
}
