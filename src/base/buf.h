/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf - a growing byte buffer with a maximum.
 *
 * A buffer that would pass `max`, or for which malloc says no, becomes `failed` and
 * ignores everything after: append twenty things, look at buf.failed once. A zeroed
 * buf is empty and has the maximum BUF_MAX_DEFAULT.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/sink.h"
#include "base/str.h"

struct err;

#define BUF_MAX_DEFAULT ((size_t)1 << 20)
#define BUF_MAX         ((size_t)UINT32_MAX - 1) /* of any, whatever its maximum says */

struct buf {
    char *p;
    size_t n;
    size_t max; /* 0 means BUF_MAX_DEFAULT */
    uint32_t cap;
    bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* frees; safe on a zeroed or released buf */
void buf_reset(struct buf *b);   /* empties, keeps the memory, clears `failed` */

COLD char *buf_make_room(struct buf *b, size_t n); /* for buf_room() */

/* Make room for n more bytes and return where they start; NULL when failed. The
 * caller writes up to n bytes there and then adds what it wrote to b->n. Most of what is
 * added is a few bytes that fit: `cap` is never beyond `max` + 1. */
static inline char *buf_room(struct buf *b, size_t n)
{
    if (b->failed || b->cap - b->n <= n)
        return buf_make_room(b, n);
    return b->p + b->n;
}

static inline void buf_add(struct buf *b, str bytes)
{
    char *to = buf_room(b, bytes.n);

    if (to)
        b->n = (size_t)(str_put(to, bytes) - b->p);
}

static inline void buf_add_char(struct buf *b, char c)
{
    buf_add(b, (str){ &c, 1 });
}

void buf_add_u64(struct buf *b, uint64_t value); /* decimal */
void buf_add_i64(struct buf *b, int64_t value);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The contents as a C string (adds a NUL past the end); "" when failed or empty. */
const char *buf_cstr(struct buf *b);

static inline str buf_str(const struct buf *b)
{
    return (str){ b->p, b->n };
}

/* A sink that appends to b. */
struct sink buf_sink(struct buf *b);

/* 0, or -1 with ERR_LIMIT when b failed: "<what> is larger than <max> bytes". */
MUST_CHECK int buf_check(const struct buf *b, const char *what, struct err *err);

#endif
