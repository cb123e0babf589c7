/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead - finish what writers left open when they died.
 *
 * A writer is dead when the lock of its entry in live/ can be taken. Whoever holds that
 * lock writes for it: call_lost (recorder_lost) and the receipts of its open calls,
 * session_end with complete false, session_metadata, chain_end{for}, and the packs. What
 * is left of packs that were being built is removed.
 *
 * The log says how far an earlier attempt came: run again after a death in the middle, it
 * goes on there, and no receipt is written twice.
 */
#ifndef EVIDENCE_DEAD_H
#define EVIDENCE_DEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "evidence/log.h"
#include "evidence/pack.h"

struct err;

#define DEAD_CUTS_MAX 100000 /* parts of one session */

struct dead_options {
    bool no_packs; /* write the log's part only */

    /* A pack was made or found; a session could not be finished. Either may be NULL. */
    void (*packed)(void *ctx, const struct pack_result *pack);
    void (*failed)(void *ctx, const char *writer, const char *why);
    void *ctx;
};

struct dead_result {
    uint64_t writers;  /* taken over and buried */
    uint64_t sessions; /* of theirs that were open */
    uint64_t lost;     /* calls without an answer */
    uint64_t packs;    /* made by this call */
    uint64_t left;     /* writers that could not be finished; they stay in live/ */
};

/* All dead writers of the log. One that cannot be finished does not stop the others. */
MUST_CHECK int dead_recover(struct log *log, const struct dead_options *options,
                            struct dead_result *result, struct err *err);

#endif
