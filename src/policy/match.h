/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match - which of many names and globs fits a name, first come first.
 *
 * Exact names are found by hash. A glob is tried only when the name begins with what
 * stands before its first wildcard, or, where nothing does, ends with what stands behind
 * its last; these are found by hash, too. So the time hardly grows with the number of
 * rules. The names are the operator's: nobody else makes collisions.
 */
#ifndef POLICY_MATCH_H
#define POLICY_MATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

#define MATCH_NONE SIZE_MAX

struct match_entry;

/* Entries with the same hash of the same kind of key. */
struct match_table {
    struct match_entry **slots; /* NULL where nothing is */
    size_t cap;                 /* 0 or a power of two */
    uint8_t *lengths;           /* lengths[n] is 1 when a key has n bytes */
    size_t longest;
};

/* All zero matches nothing. */
struct match {
    struct match_table exact, prefix, suffix;
    struct match_entry *rest; /* globs with wildcards at both ends */
};

/* `names` are borrowed; memory comes from the arena (arena.failed says if it did not). */
void match_build(struct match *m, const str *names, size_t count, struct arena *arena);

/* The least index, not below `from`, whose name or glob matches; MATCH_NONE. */
size_t match_find(const struct match *m, str name, size_t from);

#endif
