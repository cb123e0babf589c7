/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entropy - random bytes, as a parameter, and the identifiers made of them.
 */
#ifndef BASE_ENTROPY_H
#define BASE_ENTROPY_H

#include <stddef.h>

#include "base/attr.h"

struct err;

struct entropy {
    int (*fill)(void *ctx, void *out, size_t n, struct err *err);
    void *ctx;
};

extern const struct entropy entropy_system; /* getrandom(2) */

MUST_CHECK int entropy_fill(const struct entropy *e, void *out, size_t n,
                            struct err *err);

#define ID_HEX 16 /* random digits of an id */
#define ID_MAX 24 /* any of our ids with its NUL: "mcp_" + 16 hex */

/* prefix + 16 random hex digits + NUL, e.g. "inv_0123456789abcdef". */
MUST_CHECK int entropy_id(const struct entropy *e, char out[static ID_MAX],
                          const char *prefix, struct err *err);

#endif
