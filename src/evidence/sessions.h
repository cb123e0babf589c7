/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions - which sessions a log has: when, how many calls, and where their parts end.
 *
 * Made by reading the log from its beginning; memory grows with the number of sessions
 * and parts only.
 */
#ifndef EVIDENCE_SESSIONS_H
#define EVIDENCE_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/entropy.h"
#include "base/map.h"
#include "evidence/session.h"

struct err;

#define SESSIONS_MEMORY ((size_t)1 << 30) /* about 2,000,000 sessions */

/* A part that was cut, and so can be packed. */
struct sessions_part {
    struct session_cut cut;
    struct sessions_part *next;
};

struct sessions_entry {
    char id[ID_MAX];
    char writer[ID_MAX];
    str server_id;
    uint64_t first;
    uint64_t events, calls;
    int64_t started_at, ended_at;
    bool ended, complete;
    struct sessions_part *parts; /* in their order */
    struct sessions_part *last;
    uint64_t part_from;
    uint64_t part_count;
    struct sessions_entry *next;
};

/* All zero is the empty list. */
struct sessions {
    struct arena arena;
    struct sessions_entry *first, *last; /* in the order of their beginning */
    size_t count;
    struct map by_id;
};

struct sessions_options {
    const char *only; /* this session and no other; NULL for all */
    void (*on_progress)(void *ctx, uint64_t done, uint64_t total); /* may be NULL */
    void *ctx;
};

/* A line that is no event is ERR_DAMAGE; a torn tail is the end. */
MUST_CHECK int sessions_read(struct sessions *s, const char *audit_dir,
                             const struct sessions_options *options, struct err *err);
void sessions_release(struct sessions *s);

#endif
