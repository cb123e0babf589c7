/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str - borrowed bytes: a pointer and a length, passed by value.
 *
 * A str owns nothing and need not end in NUL. The empty str may have a NULL pointer.
 * Everything that comes from outside travels as a str, never as a C string.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct {
    const char *p;
    size_t n;
} str;

#define STR(literal) ((str){ "" literal, sizeof(literal) - 1 })
#define STR_FMT      "%.*s"
#define STR_ARG(s)   (int)(s).n, (s).p /* only for text that we made ourselves */

static inline str str_from(const char *c)
{
    return (str){ c, c ? strlen(c) : 0 };
}

static inline str str_of(const void *p, size_t n)
{
    return (str){ (const char *)p, n };
}

static inline bool str_equal(str a, str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(str a, const char *c)
{
    return str_equal(a, str_from(c));
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Equal but for the case of ASCII letters, whatever the locale. */
static inline bool str_equal_nocase(str a, str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (a.p[i] != b.p[i] && ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    }
    return true;
}

static inline bool str_starts(str s, str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool str_ends(str s, str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

/* The bytes from `from` on; empty when `from` is past the end. */
static inline str str_skip(str s, size_t from)
{
    return from >= s.n ? (str){ NULL, 0 } : (str){ s.p + from, s.n - from };
}

static inline str str_first(str s, size_t n)
{
    return (str){ s.p, n < s.n ? n : s.n };
}

/* Copy to where there is room, and return what follows it. Most of what we put together
 * is short: no call for that. */
static inline char *str_put(char *to, str s)
{
    size_t n = s.n;

    if (n > 32) {
        memcpy(to, s.p, n);
    } else if (n >= 16) {
        memcpy(to, s.p, 16);
        memcpy(to + n - 16, s.p + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, s.p, 8);
        memcpy(to + n - 8, s.p + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, s.p, 4);
        memcpy(to + n - 4, s.p + n - 4, 4);
    } else if (n) {
        to[0] = s.p[0];
        to[n / 2] = s.p[n / 2];
        to[n - 1] = s.p[n - 1];
    }
    return to + n;
}

/* Take the next line off `*rest`, without its '\n'. False when nothing is left or
 * when the last line has no '\n' (then *rest holds that tail). */
static inline bool str_line(str *rest, str *line)
{
    const char *nl = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;

    if (!nl)
        return false;
    *line = (str){ rest->p, (size_t)(nl - rest->p) };
    *rest = str_skip(*rest, line->n + 1);
    return true;
}

/* What the noun behind a number ends with: "%u event%s". */
static inline const char *plural(unsigned long long n)
{
    return n == 1 ? "" : "s";
}

#endif
