/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live - which writers are alive, and what a dead one left open.
 *
 * <audit directory>/live/<writer> is flocked by its process for as long as that lives;
 * the kernel lets go of it however the process ends. One JSON line for the writer, one
 * per session begun, one per session ended:
 *
 *     {"from":120,"writer":"w_0123456789abcdef"}
 *     {"first":121,"receipts":"session_20260315T113000Z_89abcdef.jsonl","session":"mcp_…"}
 *     {"ended":"mcp_…"}
 */
#ifndef EVIDENCE_LIVE_H
#define EVIDENCE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/entropy.h"
#include "base/file.h"

struct err;

#define LIVE_WRITERS_MAX  10000
#define LIVE_SESSIONS_MAX 100000
#define LIVE_NAME_MAX     40 /* a receipts file's name with its NUL */

/* Our own entry. */
struct live {
    char path[FILE_PATH_MAX];
    int fd;
};

/* Appear in live/ as `writer`, locked. `from`: events of ours have this seq or a higher.
 */
MUST_CHECK int live_open(struct live *l, const char *audit_dir, const char *writer,
                         uint64_t from, struct err *err);
MUST_CHECK int live_begin_session(struct live *l, const char *session, uint64_t first,
                                  const char *receipts, struct err *err);
MUST_CHECK int live_end_session(struct live *l, const char *session, struct err *err);
void live_close(struct live *l);   /* a clean end: the entry goes */
void live_abandon(struct live *l); /* as if we had died: it stays */

/* Who is there. */
struct live_list {
    struct {
        char writer[ID_MAX];
        bool alive;
    } * entry;
    size_t count;
};

MUST_CHECK int live_list(struct live_list *out, const char *audit_dir, struct err *err);
void live_list_release(struct live_list *l);

/* What a writer had open. */
struct live_session {
    char id[ID_MAX];
    uint64_t first; /* seq of its session_start, or lower */
    char receipts[LIVE_NAME_MAX];
};

struct live_dead {
    char writer[ID_MAX];
    char path[FILE_PATH_MAX];
    int fd; /* holds its lock: nobody else recovers it meanwhile */
    uint64_t from;
    struct live_session *session; /* those without an "ended" line */
    size_t count, cap;
};

/* Take over a dead writer's entry. *taken is false when it is alive, gone, or in other
 * hands. A garbled line is passed over: the log itself is the truth. */
MUST_CHECK int live_take(struct live_dead *d, bool *taken, const char *audit_dir,
                         const char *writer, struct err *err);
MUST_CHECK int live_bury(struct live_dead *d,
                         struct err *err); /* done: remove the entry */
void live_dead_release(struct live_dead *d);

#endif
