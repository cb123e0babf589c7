/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/glob.h"

#include "base/utf8.h"

/* One character off the front; bytes that are no UTF-8 count one by one, and apart from
 * every code point. */
static uint32_t take(str *s)
{
    uint32_t c = 0;
    size_t n = utf8_next(*s, &c);

    if (n == 0) {
        c = 0x110000u + (unsigned char)s->p[0];
        n = 1;
    }
    *s = str_skip(*s, n);
    return c;
}

/* The length of the set at the start of `p`, brackets included; 0 when it has no end. */
static size_t set_length(str p)
{
    size_t i = 1;

    if (i < p.n && p.p[i] == '!')
        i++;
    if (i < p.n && p.p[i] == ']') /* first in the set: a member */
        i++;
    while (i < p.n && p.p[i] != ']')
        i++;
    return i < p.n ? i + 1 : 0;
}

/* `set` is what stands between the brackets. */
static bool set_has(str set, uint32_t c)
{
    bool negated = set.n && set.p[0] == '!', found = false;

    if (negated)
        set = str_skip(set, 1);
    while (set.n) {
        uint32_t low = take(&set), high = low;

        if (set.n > 1 && set.p[0] == '-') {
            set = str_skip(set, 1);
            high = take(&set);
        }
        found = found || (low <= c && c <= high);
    }
    return found != negated;
}

/* One character of the text against one element of the pattern that is no star. Both
 * move on when they fit. */
static bool step(str *pattern, str *text)
{
    str p = *pattern, t = *text;
    size_t n;

    if (p.n == 0 || t.n == 0)
        return false;
    if (p.p[0] == '[' && (n = set_length(p)) > 0) {
        if (!set_has(str_of(p.p + 1, n - 2), take(&t)))
            return false;
        p = str_skip(p, n);
    } else if (p.p[0] == '?') {
        take(&t);
        p = str_skip(p, 1);
    } else if (p.p[0] == t.p[0]) {
        p = str_skip(p, 1);
        t = str_skip(t, 1);
    } else {
        return false;
    }
    *pattern = p;
    *text = t;
    return true;
}

/* Only the last star is ever tried again: an earlier one cannot do better. */
bool glob_match(str pattern, str text)
{
    str star = { NULL, 0 }, from = { NULL, 0 };
    bool has_star = false;

    for (;;) {
        if (pattern.n && pattern.p[0] == '*') {
            pattern = str_skip(pattern, 1);
            star = pattern;
            from = text;
            has_star = true;
        } else if (pattern.n == 0 && text.n == 0) {
            return true;
        } else if (step(&pattern, &text)) {
            continue;
        } else if (has_star && from.n) {
            take(&from);
            pattern = star;
            text = from;
        } else {
            return false;
        }
    }
}

bool glob_valid(str pattern)
{
    for (size_t i = 0, n; i < pattern.n; i += n) {
        n = pattern.p[i] == '[' ? set_length(str_skip(pattern, i)) : 1;
        if (n == 0)
            return false;
    }
    return true;
}

static bool is_wild(char c)
{
    return c == '*' || c == '?' || c == '[';
}

size_t glob_literal(str pattern)
{
    size_t i = 0;

    while (i < pattern.n && !is_wild(pattern.p[i]))
        i++;
    return i;
}

/* A ']' may end a set, so that is where it stops, too. */
size_t glob_literal_end(str pattern)
{
    size_t i = pattern.n;

    while (i > 0 && !is_wild(pattern.p[i - 1]) && pattern.p[i - 1] != ']')
        i--;
    return pattern.n - i;
}
