/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idset - have we seen this id before? Sixteen bytes of memory per id and some room.
 *
 * Ids are kept as the first half of their SHA-256, so that a stranger can neither make
 * the table slow nor make two ids look alike.
 */
#ifndef EVIDENCE_IDSET_H
#define EVIDENCE_IDSET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "evidence/crypto.h"

struct err;

#define IDSET_MAX ((size_t)1 << 27) /* ids; their table takes 4 GiB */

struct idset_key {
    uint64_t half[2]; /* both zero: a free place */
};

/* All zero is the empty set. */
struct idset {
    struct idset_key *places;
    size_t cap; /* a power of two */
    size_t count;
};

void idset_release(struct idset *s);

/* Add an id, given as its digest; *seen tells whether it was there already. */
MUST_CHECK int idset_add(struct idset *s, const struct digest *id, bool *seen,
                         struct err *err);

#endif
