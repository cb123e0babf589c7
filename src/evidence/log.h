/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - the audit log: one append-only, hash-chained, signed history per audit directory,
 * written by many processes and threads at once.
 *
 *     log_begin   take the lock, see where the log ends (and recover if it must)
 *     log_put     compose an event at the next seq; as many as wanted
 *     log_commit  one write, move the head, let go of the lock
 *
 * or log_append() for all three. Nothing here waits for the disk: log_commit returns the
 * size to wait for, and log_settle()/log_sync() wait. After a failure nothing of the
 * batch stands in the log, the loss is counted, and the next log_begin() that works
 * writes a `gap` event before anything else of this writer.
 *
 * Threads may share a struct log; log_begin() to log_commit() is one thread's business.
 */
#ifndef EVIDENCE_LOG_H
#define EVIDENCE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/entropy.h"
#include "base/file.h"
#include "evidence/event.h"
#include "evidence/keys.h"
#include "evidence/note.h"
#include "evidence/tree.h"

struct err;
struct log;

#define LOG_SEGMENT_MAX                                                                  \
    ((uint64_t)64 << 20)    /* then the next event opens a new segment                   \
                             */
#define LOG_LOCK_WAIT  2000 /* ms; beyond it is an evidence failure */
#define LOG_STUCK_WAIT 20   /* the same after one, until the lock was to be had again */
#define LOG_LOOK_AFTER 50   /* ms between two looks at files that are ours alone */
#define LOG_BATCH_MAX  ((size_t)1 << 20) /* bytes of one log_begin…log_commit */
#define LOG_KEYS_MAX   16                /* keys in `origin`: the active and older ones */

enum log_durability {
    LOG_WRITE,  /* in the kernel: survives our death */
    LOG_GROUP,  /* fdatasync, many waiters share one */
    LOG_STRICT, /* fdatasync for each */
};

enum log_on_failure {
    LOG_PASS,  /* traffic goes on, the gap is recorded */
    LOG_BLOCK, /* traffic is refused */
};

struct log_options {
    const char *dir; /* the audit directory; made if it is not there */
    const struct keys *keys;
    const struct clock *clock;
    const struct entropy *entropy;
    enum log_durability durability;
    enum log_on_failure on_failure;
    const char *pepper_check; /* NULL without a pepper */
    gid_t group;              /* auditors' group on log/; (gid_t)-1 for none */
    uint64_t segment_max;     /* 0: LOG_SEGMENT_MAX; for tests */

    /* What the person should know (a key was made, a tail was repaired); may be NULL. */
    void (*say)(void *ctx, const char *sentence);
    void *say_ctx;
};

/* Open for writing: make what is missing (origin and key on the first start), register
 * as a living writer, append chain_start. Refuses a directory of another user, a log that
 * was rolled back or damaged, and a log whose key is not here. */
MUST_CHECK int log_open(struct log **out, const struct log_options *options,
                        struct err *err);

/* Append chain_end, sync, sign a last checkpoint, leave; `say` is told of what was lost
 * and could not be said in the log. Frees `log` whatever happens. */
int log_close(struct log *log, struct err *err);

/* Free without a word in the log: as if the process had died. For children and tests. */
void log_abandon(struct log *log);

const char *log_dir(const struct log *log);    /* the audit directory */
const char *log_writer(const struct log *log); /* w_<16 hex> */
uint64_t log_written(const struct log *log);   /* events of ours; from any thread */
const char *log_origin(const struct log *log); /* assay.local/<16 hex> */
const struct clock *log_clock(const struct log *log);
const struct entropy *log_entropy(const struct log *log);
enum log_durability log_durability_of(const struct log *log);
enum log_on_failure log_on_failure_of(const struct log *log);

MUST_CHECK int log_begin(struct log *log, struct err *err);
MUST_CHECK int log_begin_more(struct log *log, struct err *err); /* see log_gather() */

/* Where the next log_put() will stand. Between log_begin and log_commit. */
uint64_t log_next(const struct log *log);

/* The time that every event of this batch carries: read once, by log_begin(), so that a
 * receipt can state the time of the event that will hold its hash. */
int64_t log_time(const struct log *log);

/* *seq (may be NULL) is where it stands. On failure the batch so far is kept. */
MUST_CHECK int log_put(struct log *log, const struct event *e, uint64_t *seq,
                       struct err *err);

/* *upto (may be NULL) is the size of the log that holds this batch. */
MUST_CHECK int log_commit(struct log *log, uint64_t *upto, struct err *err);
void log_abort(struct log *log); /* forget the batch, let go of the lock */

/* Between these two, what this thread commits is written as ever, but the lock is kept
 * from one batch to the next: for what came at once and takes no time. One log at a time;
 * nothing that waits (for the disk, for others) in between. When others do not give the
 * lock away, the first batch waits LOG_LOCK_WAIT for it, those behind it do not. */
void log_hold(struct log *log);
void log_let_go(struct log *log); /* safe without log_hold() */

/* While it is held: instead of log_commit(), leave the batch to be written together with
 * those that follow, by log_write(). *upto as there. When that write fails, nothing of
 * them all stands in the log, and the loss is counted. */
void log_gather(struct log *log, uint64_t *upto);

/* Whoever gathers sets this first. It is told when somebody begins a batch that will not
 * be gathered, or lets the log go, and writes all it has (receipts stand before their
 * events) and ends with log_write() or log_drop(). Batches to be gathered begin with
 * log_begin_more(), which tells nobody. NULL: nothing waits. */
void log_set_gatherer(struct log *log, void (*write)(void *ctx), void *ctx);
void *log_gatherer(const struct log *log); /* its ctx */
bool log_is_held(const struct log *log);   /* by this thread, with log_hold() */

MUST_CHECK int log_write(struct log *log, struct err *err);
void log_drop(struct log *log, const char *reason); /* it is lost for that reason */
size_t log_gathered(const struct log *log);         /* bytes that wait */

/* Evidence of `events` events could not be written: remembered until a `gap` can be.
 * log_append and log_commit do this themselves when they fail; for failures around them.
 */
COLD void log_lost(struct log *log, uint64_t events, const char *reason);
uint64_t log_lost_total(const struct log *log); /* over the life of this writer */

MUST_CHECK int log_append(struct log *log, const struct event *const *events,
                          size_t count, uint64_t *upto, struct err *err);

/* Block until the first `upto` events are on disk. One fdatasync serves all waiters, of
 * all threads and processes. A failed fdatasync closes the segment: what was not on disk
 * is written anew into the next one, and a `repair` event says so. */
MUST_CHECK int log_sync(struct log *log, uint64_t upto, struct err *err);

/* Do what the durability mode promises for the first `upto` events. */
MUST_CHECK int log_settle(struct log *log, uint64_t upto, struct err *err);

/* Sync, extend the tiles and sign a checkpoint of the present size, unless nothing is
 * new. `wait` false: return at once (0) when another process is at it. */
MUST_CHECK int log_checkpoint(struct log *log, bool wait, struct err *err);

/* `assay key rotate --log`: append key_rotate, put the new key first in `origin`, sign
 * the next checkpoint with both. */
MUST_CHECK int log_rotate_key(struct log *log, const struct signer *next,
                              struct err *err);

/* `assay log rebuild`: make anew what is derived (head, tiles, missing lock files) from
 * the segments and the signed checkpoints. Adds no event and needs no key. *events is how
 * many the log has. When the events are not those that were signed, the tiles stay. */
MUST_CHECK int log_rebuild(const struct log_options *options, uint64_t *events,
                           struct err *err);

/* The key that signs this log and its packs, as it is now in `origin`. */
MUST_CHECK int log_signer(struct log *log, struct signer *out, struct err *err);

/* List a session in live/<writer>, so that others can finish it should we die. */
MUST_CHECK int log_note_session(struct log *log, const char *session, uint64_t first_seq,
                                const char *receipts_file, struct err *err);
MUST_CHECK int log_forget_session(struct log *log, const char *session, struct err *err);

#endif
