/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entropy - random bytes, as a parameter, and the identifiers made of them.
 */
#ifndef BASE_ENTROPY_H
#define BASE_ENTROPY_H

#include <stddef.h>

#include "base/attr.h"

struct err;
struct entropy_ahead;

struct entropy {
    int (*fill)(void *ctx, void *out, size_t n, struct err *err);
    void *ctx;
};

extern const struct entropy entropy_system; /* getrandom(2) */

MUST_CHECK int entropy_fill(const struct entropy *e, void *out, size_t n,
                            struct err *err);

/*
 * Random bytes ahead, so that not every id costs a system call. For names only: what was
 * given out is wiped, but what is ahead lies in memory. A fork of the process does not
 * inherit it. Not for two threads at once.
 */
struct entropy_pool {
    const struct entropy *source;
    struct entropy_ahead *ahead; /* NULL: none, the source is asked each time */
};

/* `source` is borrowed. Cannot fail: without memory there is nothing ahead. */
void entropy_pool_init(struct entropy_pool *p, const struct entropy *source);
void entropy_pool_release(struct entropy_pool *p); /* safe on a zeroed one */
struct entropy entropy_pool_entropy(struct entropy_pool *p);

#define ID_HEX 16 /* random digits of an id */
#define ID_MAX 24 /* any of our ids with its NUL: "mcp_" + 16 hex */

/* prefix + 16 random hex digits + NUL, e.g. "inv_0123456789abcdef". */
MUST_CHECK int entropy_id(const struct entropy *e, char out[static ID_MAX],
                          const char *prefix, struct err *err);

#endif
