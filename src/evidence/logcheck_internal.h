/* SPDX-License-Identifier: Apache-2.0 */
/* logcheck_internal - what logcheck.c and logcheck_end.c share. Nobody else includes it.
 */
#ifndef EVIDENCE_LOGCHECK_INTERNAL_H
#define EVIDENCE_LOGCHECK_INTERNAL_H

#include "base/map.h"
#include "evidence/investigation.h"
#include "evidence/logcheck.h"
#include "evidence/origin.h"
#include "evidence/tile.h"
#include "evidence/tree.h"

/* One check on its way through the log. */
struct walk {
    struct logcheck *out;
    const struct logcheck_options *options;
    char log_dir[FILE_PATH_MAX];
    char tile_dir[FILE_PATH_MAX];
    struct origin origin;
    struct checkpoint newest;
    struct checkpoint remembered;
    struct mapping list; /* the file `checkpoints` */
    str rest;            /* of it, not yet read */
    bool have_next;      /* the next checkpoint to compare with */
    struct checkpoint next;
    struct range range;
    struct digest last;
    int64_t last_ts;
    struct map sessions; /* id → next n, plus one */
    struct tile_writer tiles;
    bool tiles_bad;
    bool key_known[ORIGIN_KEYS_MAX]; /* by the first chain_start or a key_rotate */
    bool started;                    /* a chain_start was seen */
    uint64_t total;
    struct investigation_check payloads;
};

#define TAIL_LOOKS 5 /* at what a writer may be in the middle of */

void logcheck_find(struct walk *w, enum logcheck_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Advance to the next good checkpoint of the list. */
void logcheck_next_checkpoint(struct walk *w);

/* logcheck_end.c: all events are read; what should be there besides, and is not. */
void logcheck_end(struct walk *w);

#endif
