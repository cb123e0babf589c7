/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packparts - the files of a pack that come out of the log: events, receipts, checkpoint
 * and proof. For pack.c.
 */
#ifndef EVIDENCE_PACKPARTS_H
#define EVIDENCE_PACKPARTS_H

#include "base/err.h"
#include "evidence/checkpoint.h"
#include "evidence/history.h"
#include "evidence/pack.h"
#include "evidence/staging.h"

/* What the files say together. All zero is nothing. */
struct parts {
    struct history *history;   /* of the session up to the end of the part… */
    struct history own;        /* …where nobody else keeps it */
    struct segment_place next; /* where the log goes on */
    uint64_t *seqs;            /* of the events in the pack */
    struct digest *leaves;
    size_t count, cap;
    uint64_t receipts, rebuilt, content_lost;
    struct digest head; /* hash of the last receipt */
    int64_t start, end; /* smallest and largest time of a receipt */
};

void parts_release(struct parts *p);

/* One pack's events and receipts, while they are collected. */
struct collection {
    const struct pack_request *request;
    struct staging *staging;
    struct parts parts;
    struct err err;
    int result; /* -1: `err` says why */
};

/* Has the pack of the part before read all that stands before this one? */
bool parts_have_past(const struct pack_request *r);

/* Write log_events.jsonl and receipt_pack.jsonl of each, in one reading of the log. Fails
 * when that cannot be read: then all of them have failed. */
MUST_CHECK int parts_collect(struct collection *const *list, size_t count,
                             const char *audit_dir, struct err *err);

/* Write log_checkpoint and log_proof.json of those that have not failed. Fails when the
 * tree cannot be read: then all of them have. */
MUST_CHECK int parts_prove(struct collection *const *list, size_t count,
                           const char *audit_dir, const struct checkpoint *checkpoint,
                           str note, struct err *err);

#endif
