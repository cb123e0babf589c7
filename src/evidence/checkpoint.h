/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint - C2SP tlog-checkpoint: "this log has this many events and this root",
 * as the text of a signed note.
 *
 *     <origin>\n<size, decimal>\n<base64 of the root>\n
 */
#ifndef EVIDENCE_CHECKPOINT_H
#define EVIDENCE_CHECKPOINT_H

#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "evidence/crypto.h"
#include "evidence/note.h"

struct err;

#define CHECKPOINT_SIZE_MAX INT64_MAX /* what other implementations can count to */

struct checkpoint {
    char origin[NOTE_NAME_MAX + 1];
    uint64_t size;
    struct digest root;
};

/* Extension lines are accepted and ignored. An empty tree has the root of no bytes. The
 * origin is any line of up to NOTE_NAME_MAX bytes: compare it with the one you expect. */
MUST_CHECK int checkpoint_parse(struct checkpoint *c, str text, struct err *err);
void checkpoint_add(struct buf *out, const struct checkpoint *c);

/* Parse a signed note and its checkpoint, and verify it. On NOTE_SIGNED *c is the
 * checkpoint; otherwise *verdict says why not. Fails only on bad form. */
MUST_CHECK int checkpoint_open(struct checkpoint *c, enum note_verdict *verdict,
                               str bytes, const struct note_key *keys, size_t count,
                               struct err *err);

#endif
