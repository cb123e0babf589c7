/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_internal - what log.c, loglock.c, recover.c, sync.c, extend.c and publish.c share.
 * Nobody else includes it.
 *
 * Locks, always taken in this order: publish_mutex, log/checkpoint.lock, sync_mutex,
 * mutex, log/lock, loss_mutex.
 */
#ifndef EVIDENCE_LOG_INTERNAL_H
#define EVIDENCE_LOG_INTERNAL_H

#include <pthread.h>
#include <sys/stat.h>

#include "evidence/head.h"
#include "evidence/latch.h"
#include "evidence/leaves.h"
#include "evidence/live.h"
#include "evidence/log.h"
#include "evidence/origin.h"

#define REPAIRS_MAX 4

/* Whoever begins a new segment marks the old one, so that those who have it open see it
 * with the look that they take at it anyway. For a regular file it means nothing else.
 * Whether the file system keeps it is tried on log/lock. */
#define LOG_CLOSED S_ISVTX

/* A `repair` event that is still to be written. */
struct repair {
    uint64_t offset;
    uint64_t bytes;
    struct digest sha256;
    const char *reason;
};

/* Evidence that could not be written and has no `gap` event yet. */
struct loss {
    uint64_t events;
    int64_t from, to; /* ms */
    char reason[128];
};

struct log {
    char dir[FILE_PATH_MAX];     /* the audit directory */
    char log_dir[FILE_PATH_MAX]; /* its log/ */
    char writer[ID_MAX];
    struct keys keys;
    struct clock clock;
    struct entropy entropy;
    enum log_durability durability;
    enum log_on_failure on_failure;
    const char *pepper_check;
    uint64_t segment_max;
    gid_t group;
    mode_t dir_mode, file_mode;
    void (*say)(void *ctx, const char *sentence);
    void *say_ctx;

    char boot[HEAD_BOOT]; /* the kernel's boot_id; zeros when it has none */
    bool crashed; /* log_recover(): the machine went down since the head was written */
    bool mending; /* log_rebuild(): trust no head, cut nothing */

    struct origin origin; /* name fixed; keys as last read by publish.c */
    struct live live;
    int lock_fd;
    struct latch latch; /* in that file; closed where it is locked by flock(2) */
    char lock_path[FILE_PATH_MAX];
    struct stat lock_id; /* of lock_fd */
    bool can_mark;       /* LOG_CLOSED is kept here */
    int checkpoint_fd;
    struct head head;

    pthread_mutex_t mutex; /* log_begin() to log_commit() */
    bool locked;           /* we hold log/lock */
    bool stuck;            /* who has it did not give it away the last time */
    bool current;         /* `state` is the end of the log, if nobody else had the lock */
    int64_t looked;       /* monotonic ms: when lock_path was last looked at */
    int segment_fd;       /* open for appending */
    uint64_t segment;     /* its first seq */
    bool segment_is_last; /* as far as was asked; see segment_agrees() */
    struct head_state state;  /* the end of the log at log_begin() */
    struct head_state next;   /* with the batch */
    struct leaves leaves;     /* of what we wrote */
    _Atomic uint64_t written; /* log_written() */
    struct buf batch;
    int64_t time; /* of the batch, ms */
    uint64_t batch_events;
    struct repair repairs[REPAIRS_MAX];
    unsigned repair_count;
    struct loss gap; /* the loss that the batch's `gap` events tell */
    struct {
        bool some;
        size_t bytes; /* of the batch */
        uint64_t events, gap_events;
        struct head_state next;
    } gathered; /* batches that wait at the front of this one */
    struct {
        void (*write)(void *ctx);
        void *ctx;
    } gatherer; /* of the thread that holds the log */

    pthread_mutex_t loss_mutex;
    struct loss loss;
    _Atomic uint64_t lost_total; /* read without loss_mutex */
    uint64_t told_total;         /* of that, `gap` events in the log tell */

    pthread_mutex_t sync_mutex;
    pthread_cond_t sync_done;
    bool syncing;
    int sync_fd; /* of our own, opened early: an error is told once per descriptor */
    uint64_t sync_segment;

    pthread_mutex_t publish_mutex;
};

/* loglock.c */
MUST_CHECK int log_lock(struct log *log, struct err *err);
void log_unlock(struct log *log);
int64_t log_monotonic(void); /* ms */

/* log.c */
MUST_CHECK int log_load(struct log *log, struct err *err); /* state, under the lock */
MUST_CHECK int log_open_segment(struct log *log, uint64_t first, bool create,
                                struct err *err);
COLD void log_tell(const struct log *log, const char *fmt, ...) PRINTF_LIKE(2, 3);
MUST_CHECK int log_add_repair(struct log *log, const struct repair *r, struct err *err);

/* logopen.c: open what is there, for mending: no key, no writer, no event. */
MUST_CHECK int log_open_to_mend(struct log **out, const struct log_options *options,
                                struct err *err);

/* recover.c: find the true end of the log, under the lock; never restarts at 0. */
COLD MUST_CHECK int log_recover(struct log *log, struct err *err);

/* Does the line before that place have that hash? */
bool log_ends_so(const struct log *log, const struct head_state *s);

/* Once log/lock is open: what log_check_place() compares with. */
MUST_CHECK int log_know_lock(struct log *log, struct err *err);

/* Is log/lock still the file that we hold open? ERR_DAMAGE when not. */
MUST_CHECK int log_check_place(const struct log *log, struct err *err);

/* sync.c: write anew what a failed fdatasync may have lost, under the lock. */
COLD MUST_CHECK int log_reseat(struct log *log, struct err *err);

#endif
