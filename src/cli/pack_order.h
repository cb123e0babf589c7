/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_order - packs in the order in which their sessions were cut into parts.
 *
 * Whoever names all parts of a session may name them in any order, and other packs
 * between them. Parts of one session come together, where its first one was named.
 */
#ifndef CLI_PACK_ORDER_H
#define CLI_PACK_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "evidence/packlog.h"

struct ordered_pack {
    const char *dir;
    bool has_place; /* it says which part of which session it is */
    struct packlog_place place;
    size_t given; /* its number among those that were given */
    size_t group; /* `given` of the first one of its session */
    bool follows; /* the one before it in this order is the part before */
};

/* Look into every pack and put them in order. */
void pack_order(struct ordered_pack *packs, size_t count);

/* How many packs, from packs[0] on, belong to one session. */
size_t pack_group(const struct ordered_pack *packs, size_t count);

/* Append which parts of the session of packs[0] to packs[count - 1] are not among them:
 * "part 2, and those after part 3"; nothing when all are there. */
void pack_add_missing(struct buf *out, const struct ordered_pack *packs, size_t count);

#endif
