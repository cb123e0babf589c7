/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packreceipt - the receipts of a pack beside its events: the k-th `receipt` event speaks
 * of the k-th line, its hash is that line's, and the line is what the events before it
 * give.
 */
#ifndef EVIDENCE_PACKRECEIPT_H
#define EVIDENCE_PACKRECEIPT_H

#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "evidence/event.h"
#include "evidence/history.h"
#include "evidence/receipt.h"
#include "evidence/verify.h"
#include "json/json.h"

struct err;

struct packreceipts {
    struct verify *v;
    str rest;                  /* lines not yet compared */
    const char *previous_root; /* of the part before, hex; NULL: not known */
    uint64_t seen;             /* receipts compared so far */
    uint64_t metadata;         /* `seen` after the last session_metadata */
    uint64_t log_from, log_to; /* of it */
    uint64_t rebuilt;          /* receipts made from events after their line was lost */
    uint64_t unchecked;        /* of those: begun before a part that stands alone */
    bool version_known;
    bool late; /* nothing before this part is known */
    struct json json;
    struct receipt_line line; /* computed anew */
    struct buf arguments, result, id, parent, root;
};

void packreceipts_init(struct packreceipts *p, struct verify *v, str lines,
                       const char *previous_root);
void packreceipts_release(struct packreceipts *p);

/* A later part alone, at its first event `e`: fill an empty history with what the last
 * line says of the session and of what stood before this part. The line counts for
 * nothing until its own event has vouched for it. When it does not say anything, `h`
 * begins with nothing. */
MUST_CHECK int packreceipts_begin_late(struct packreceipts *p, struct history *h,
                                       const struct event_view *e, uint64_t *part,
                                       struct err *err);

/* Compare the next line with this `receipt` event and, unless `h` is NULL, with what `h`
 * (everything before the event) gives. Fails only for want of memory. */
MUST_CHECK int packreceipt_check(struct packreceipts *p, struct history *h,
                                 const struct event_view *e, struct err *err);

/* All events are read: lines that are left have none. */
void packreceipts_finish(struct packreceipts *p);

#endif
