/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the time of day, as a parameter: milliseconds since 1970 UTC.
 *
 * Nothing below cli/ reads the system's clock by itself. Whoever needs the time is
 * handed a clock, so that tests are exact.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct clock {
    int64_t (*now)(void *ctx);
    void *ctx;
};

extern const struct clock clock_system;

static inline int64_t clock_now(const struct clock *c)
{
    return c->now(c->ctx);
}

#define CLOCK_TEXT 24 /* "2026-03-15T11:30:00.000Z" */

/* Years 0000 to 9999; writes CLOCK_TEXT bytes and no NUL. */
void clock_format(char out[static CLOCK_TEXT], int64_t ms);

#define CLOCK_STAMP 16 /* "20260315T113000Z", for file names */

void clock_stamp(char out[static CLOCK_STAMP], int64_t ms);

/* Strict RFC 3339: capital T and Z, or an offset; fraction of any length. */
bool clock_parse(int64_t *ms, str text);

#endif
