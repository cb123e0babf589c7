/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - what servers cut off the ends of a text, and leave out of a URL, before they
 * read it.
 */
#ifndef POLICY_SPACE_H
#define POLICY_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/utf8.h"

/* All that trim() or strip() of some language takes for white space: the controls and the
 * space, what Unicode calls so, the byte order mark, and two that once were among them.
 */
static inline bool space_is(uint32_t c)
{
    return c <= ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || c == 0x180e ||
           (c >= 0x2000 && c <= 0x200b) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000 || c == 0xfeff;
}

static inline str space_trim_start(str s)
{
    uint32_t c = 0;
    size_t n;

    while ((n = utf8_next(s, &c)) > 0 && space_is(c))
        s = str_skip(s, n);
    return s;
}

static inline str space_trim_end(str s)
{
    while (s.n) {
        size_t n = 1;
        uint32_t c = 0;

        while (n < s.n && n < 3 && ((unsigned char)s.p[s.n - n] & 0xc0) == 0x80)
            n++;
        if (utf8_next(str_skip(s, s.n - n), &c) != n || !space_is(c))
            break;
        s.n -= n;
    }
    return s;
}

static inline str space_trim(str s)
{
    return space_trim_end(space_trim_start(s));
}

/* Browsers leave these out of a URL, wherever they stand. */
static inline bool space_is_break(char c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

static inline bool space_has_break(str s)
{
    return s.n &&
           (memchr(s.p, '\n', s.n) || memchr(s.p, '\t', s.n) || memchr(s.p, '\r', s.n));
}

/* Into `out`, which has room for s.n bytes; returns the length. */
static inline size_t space_drop_breaks(char *out, str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (!space_is_break(s.p[i]))
            out[n++] = s.p[i];
    }
    return n;
}

#endif
