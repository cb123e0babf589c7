/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lab - a place for one test: a temporary directory with a home for keys in it, a clock
 * and randomness that repeat themselves, and a log opened there.
 */
#ifndef TESTS_LAB_H
#define TESTS_LAB_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "evidence/latch.h"
#include "evidence/log.h"

struct lab {
    char root[256];
    char audit[300];
    struct keys keys;
};

static inline struct lab lab_make(void)
{
    struct lab l = { 0 };
    const char *tmp = getenv("TMPDIR");
    struct err err = { 0 };
    char home[300];

    snprintf(l.root, sizeof(l.root), "%s/assay-lab-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(l.root)) {
        perror("mkdtemp");
        exit(99);
    }
    snprintf(home, sizeof(home), "%s/home", l.root);
    snprintf(l.audit, sizeof(l.audit), "%s/audit", l.root);
    if (keys_open(&l.keys, home, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        exit(99);
    }
    return l;
}

static inline void lab_remove(struct lab *l)
{
    struct err err = { 0 };

    if (file_remove_tree(l->root, &err) < 0)
        fprintf(stderr, "# %s\n", err.msg);
}

static inline void lab_say(void *ctx, const char *sentence)
{
    (void)ctx;
    printf("# %s\n", sentence);
}

static inline struct log_options lab_options(const struct lab *l)
{
    return (struct log_options){ .dir = l->audit,
                                 .keys = &l->keys,
                                 .clock = &clock_system,
                                 .entropy = &entropy_system,
                                 .group = (gid_t)-1,
                                 .say = lab_say };
}

static inline struct log *lab_open(const struct lab *l, struct err *err)
{
    struct log_options o = lab_options(l);
    struct log *log = NULL;

    return log_open(&log, &o, err) < 0 ? NULL : log;
}

/* One small event: a heartbeat with a number that tells it apart. */
static inline int lab_append(struct log *log, int64_t mark, uint64_t *upto,
                             struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };

    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", mark);
    return log_append(log, events, 1, upto, err);
}

/* A path below the audit directory; four at a time. */
static inline const char *lab_path(const struct lab *l, const char *name)
{
    static char paths[4][600];
    static unsigned next;
    char *p = paths[next++ % 4];

    snprintf(p, sizeof(paths[0]), "%s/%s", l->audit, name);
    return p;
}

/* As if another process had had the lock: whoever writes next looks at the files. */
static inline void lab_pass_lock(const struct lab *l)
{
    CLEANUP(file_close) int fd = open(lab_path(l, "log/lock"), O_RDWR | O_CLOEXEC);
    struct latch latch = { 0 };
    struct err err = { 0 };

    if (latch_open(&latch, fd, &err) < 0 || latch_try(&latch) == LATCH_BUSY) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    latch_free(&latch);
    latch_close(&latch);
}

#endif
