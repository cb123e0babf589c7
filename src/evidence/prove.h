/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove - C2SP proofs from the tiles of a log, in logarithmic time. Needs no key.
 */
#ifndef EVIDENCE_PROVE_H
#define EVIDENCE_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "evidence/checkpoint.h"
#include "evidence/tree.h"

struct err;

/* A proof and what it is about. `note` is the signed checkpoint of `size`; empty when
 * no checkpoint of exactly that size was signed. */
struct proven {
    uint64_t index; /* of an inclusion; the old size of a consistency */
    uint64_t size;
    struct digest old_root, root; /* old_root: of a consistency */
    struct proof proof;
    struct buf note;
};

/* Event `seq` stands in the newest signed checkpoint. */
MUST_CHECK int prove_inclusion(struct proven *out, const char *audit_dir, uint64_t seq,
                               struct err *err);

/* The first `from` events are the beginning of the first `to`; 0 < from <= to <= newest
 * checkpoint. `to` 0: the newest. */
MUST_CHECK int prove_consistency(struct proven *out, const char *audit_dir, uint64_t from,
                                 uint64_t to, struct err *err);
void proven_release(struct proven *p);

/* The C2SP texts: tlog-proof for an inclusion; for a consistency the body of tlog-witness
 * add-checkpoint ("old <size>", hashes, blank line, checkpoint; an unsigned checkpoint
 * text when there is no note). */
void proven_add_inclusion(struct buf *out, const struct proven *p);
void proven_add_consistency(struct buf *out, const struct proven *p, const char *origin);

#endif
