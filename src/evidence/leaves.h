/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaves - the hashes of the events that this process wrote last, for its next
 * checkpoint: what is here need not be read back and hashed once more.
 *
 * An event is taken in only behind the one that its `prev` names; another one begins
 * anew, with what it names. So what is here is one stretch of one history, whatever other
 * processes wrote in between and whatever was taken back. Where it does not reach far
 * enough, the log is read.
 *
 * The log's mutex guards it. What is lent may be read without.
 */
#ifndef EVIDENCE_LEAVES_H
#define EVIDENCE_LEAVES_H

#include <stdbool.h>
#include <stdint.h>

#include "evidence/crypto.h"

#define LEAVES_MAX 16384 /* 512 KiB; the oldest give way */

/* Zero is empty. */
struct leaves {
    struct digest *ring; /* LEAVES_MAX of them, at seq % LEAVES_MAX */
    uint64_t first, end; /* events [first, end) are here */
    uint64_t lent;       /* those below may not be overwritten; 0: none is lent */
};

void leaves_release(struct leaves *l);

/* Event `seq` was composed, and its line names `prev`. Without memory nothing is kept. */
void leaves_put(struct leaves *l, uint64_t seq, const struct digest *prev,
                const struct digest *leaf);

/* Lend all up to `upto`, if `last` is the hash of the event before that. False: it is not
 * here. `first` does not move until they are given back. */
bool leaves_lend(struct leaves *l, uint64_t upto, const struct digest *last);

/* Nothing is lent any more, and of what lies before `upto` only the last one is needed.
 */
void leaves_give_back(struct leaves *l, uint64_t upto);

static inline const struct digest *leaves_at(const struct leaves *l, uint64_t seq)
{
    return &l->ring[seq % LEAVES_MAX];
}

#endif
