/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - memory with one lifetime: allocate freely, release all at once.
 *
 * A function that takes an arena returns memory that lives exactly as long as that
 * arena. Allocation never aborts: past `limit`, or when malloc fails, arena_alloc()
 * returns NULL and the arena stays failed until reset, so a parser may check once,
 * at the end. Under AddressSanitizer every allocation is a malloc of its own, so
 * that a use after reset is found.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    char *at;                   /* next free byte in the newest block */
    char *end;
    size_t used; /* bytes taken from malloc so far */
    size_t limit;
    bool failed;
};

void arena_init(struct arena *a, size_t limit);
void arena_reset(struct arena *a);   /* keeps one block for the next use */
void arena_release(struct arena *a); /* safe on a zeroed or released arena */

void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned for any type */
str arena_dup(struct arena *a, str s);           /* {NULL, 0} when it failed */

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))

#endif
