/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define BLOCK_MIN 0 /* a malloc of its own for each allocation */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCK_MIN 0
#endif
#endif
#ifndef BLOCK_MIN
#define BLOCK_MIN 8192
#endif

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *a, size_t limit)
{
    *a = (struct arena){ .limit = limit };
}

static void free_blocks(struct arena_block *b)
{
    while (b) {
        struct arena_block *next = b->next;

        free(b);
        b = next;
    }
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = BLOCK_MIN ? a->blocks : NULL;

    free_blocks(keep ? keep->next : a->blocks);
    *a = (struct arena){ .blocks = keep, .limit = a->limit };
    if (!keep)
        return;
    keep->next = NULL;
    a->used = keep->size;
    a->at = keep->bytes;
    a->end = keep->bytes + keep->size;
}

void arena_release(struct arena *a)
{
    free_blocks(a->blocks);
    *a = (struct arena){ .limit = a->limit };
}

static bool add_block(struct arena *a, size_t need)
{
    size_t size = need > BLOCK_MIN ? need : BLOCK_MIN;
    struct arena_block *b;

    if (size > a->limit - a->used)
        size = need;
    if (size > a->limit - a->used)
        return false;
    b = malloc(sizeof(*b) + size);
    if (!b)
        return false;
    b->next = a->blocks;
    b->size = size;
    a->blocks = b;
    a->used += size;
    a->at = b->bytes;
    a->end = b->bytes + size;
    return true;
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    size_t need = size ? (size + align - 1) / align * align : align;
    void *p;

    if (a->failed || need < size)
        goto failed;
    if ((size_t)(a->end - a->at) < need && !add_block(a, need))
        goto failed;
    p = a->at;
    a->at += need;
    memset(p, 0, size);
    return p;
failed:
    a->failed = true;
    return NULL;
}

str arena_dup(struct arena *a, str s)
{
    char *p = arena_alloc(a, s.n ? s.n : 1);

    if (!p)
        return (str){ NULL, 0 };
    if (s.n)
        memcpy(p, s.p, s.n);
    return (str){ p, s.n };
}
