/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map - from a 64-bit key to a pointer.
 *
 * For identifiers of our own making: their 16 random hex digits are the key, so nobody
 * outside chooses where things land. Never key it with bytes of a peer.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct err;

#define MAP_MAX ((size_t)1 << 28) /* entries */

struct map_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

/* All zero is the empty map. */
struct map {
    struct map_slot *slots;
    size_t count;
    size_t cap; /* 0 or a power of two */
};

void map_release(struct map *m); /* not what the pointers point to */

void *map_get(const struct map *m, uint64_t key); /* NULL when absent */

/* Put or replace; `value` is not NULL. ERR_NOMEM, ERR_LIMIT. */
MUST_CHECK int map_put(struct map *m, uint64_t key, void *value, struct err *err);

/* Remove it and return what was there; NULL when absent. */
void *map_take(struct map *m, uint64_t key);

/* Walk all entries, in no order: for (size_t i = 0; (v = map_next(m, &i));) */
void *map_next(const struct map *m, size_t *at);

#endif
