/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logcheck - is the whole log what was written and signed? Behind `assay log verify`.
 *
 * Reads every event once, in memory that does not grow with their number, and checks:
 * canonical form, seq, prev, sessions without holes, every signed checkpoint against the
 * root at its size, the derived tiles, and that nothing that we signed is missing. Needs
 * no key and no writer; takes no lock, so a log that grows meanwhile is checked as it
 * was.
 */
#ifndef EVIDENCE_LOGCHECK_H
#define EVIDENCE_LOGCHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "evidence/checkpoint.h"
#include "evidence/keys.h"

struct err;

#define LOGCHECK_FINDINGS_MAX 64 /* kept; more are only counted */

#define LOGCHECK_CODES(X)                                                                \
    X(LINE)       /* a line is not an event */                                           \
    X(ORDER)      /* an event is missing, doubled or out of place */                     \
    X(CHAIN)      /* an event does not continue the one before */                        \
    X(SESSION)    /* a session's events are not numbered without a hole */               \
    X(SEGMENT)    /* segments do not follow each other */                                \
    X(CHECKPOINT) /* a checkpoint is malformed, of another log, or not ours */           \
    X(ROOT)       /* a signed root is not the root of these events */                    \
    X(UNSIGNED)   /* no signature covers these events: anyone may have written them */   \
    X(PENDING)    /* the last events are not signed, and should be by now */             \
    X(MISSING)    /* `checkpoint` or `checkpoints` is not there, the other is */         \
    X(SHORT)      /* fewer events than were signed */                                    \
    X(ROLLBACK)   /* fewer or other events than this machine remembers signing */        \
    X(TILE)       /* a derived tile differs: `assay log rebuild` mends it */             \
    X(HEAD)       /* the derived head differs: the next writer mends it */               \
    X(TORN)       /* the tail is torn: the next writer repairs it and says so */         \
    X(PAYLOAD)    /* a kept payload is not the one whose digest was recorded */

enum logcheck_code {
#define X(name) LOGCHECK_##name,
    LOGCHECK_CODES(X)
#undef X
};

const char *logcheck_code_name(enum logcheck_code code); /* "LOG_CHAIN" */

struct logcheck_finding {
    enum logcheck_code code;
    uint64_t seq; /* where, as far as that means something */
    char message[400];
};

struct logcheck {
    char origin[NOTE_NAME_MAX + 1];
    uint8_t public_key[PUBLIC_SIZE]; /* that signs it now */
    uint64_t events, bytes, segments, sessions;
    uint64_t checkpoints;
    uint64_t signed_size; /* of the newest good checkpoint */
    uint64_t gaps, lost, repairs;
    uint64_t payloads;  /* compared, and what was recorded */
    uint64_t forgotten; /* sessions whose payloads were deleted, with an event */
    bool remembered;    /* this machine remembers signing this log */
    struct logcheck_finding finding[LOGCHECK_FINDINGS_MAX];
    unsigned findings; /* may be more than are kept */
    unsigned serious;  /* of them, those that mending does not end */
};

enum logcheck_verdict {
    LOGCHECK_SOUND,
    LOGCHECK_MENDABLE, /* all that was signed is there; derived files or the tail are not
                          as they should be, and mending them loses nothing */
    LOGCHECK_DAMAGED,
};

enum logcheck_verdict logcheck_verdict_of(const struct logcheck *c);

struct logcheck_options {
    const struct keys *keys; /* for what this machine remembers; NULL: do not look */
    const struct clock
        *clock;         /* to see what should be signed by now; NULL: do not look */
    bool investigation; /* compare kept payloads with their events */
    str pepper;         /* for keyed digests of payloads; empty without */

    /* Called now and then; `total` is bytes to read. May be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
};

/* 0 with the answer in *out, or -1 when this is no log or
 * cannot be read. */
MUST_CHECK int logcheck_run(struct logcheck *out, const char *audit_dir,
                            const struct logcheck_options *options, struct err *err);

#endif
