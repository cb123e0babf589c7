/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/idn.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/utf8.h"

#define LABEL_MAX 128 /* code points of one label */
#define IGNORED   UINT32_MAX

/* Runs of characters that stand for the letters or digits from `first` on. */
static const struct {
    uint32_t from, to, first;
} runs[] = {
    { 0xff10, 0xff19, '0' },   { 0xff21, 0xff3a, 'a' },   { 0xff41, 0xff5a, 'a' },
    { 0x2460, 0x2468, '1' },   { 0x24ea, 0x24ea, '0' },   { 0x24b6, 0x24cf, 'a' },
    { 0x24d0, 0x24e9, 'a' },   { 0x2070, 0x2070, '0' },   { 0x2074, 0x2079, '4' },
    { 0x2080, 0x2089, '0' },   { 0x00b2, 0x00b3, '2' },   { 0x00b9, 0x00b9, '1' },
    { 0x1fbf0, 0x1fbf9, '0' }, { 0x1f130, 0x1f149, 'a' },
};

/* Alone in their place. The long s, the Kelvin sign and their like among them. */
static const struct {
    uint32_t from;
    char to;
} single[] = {
    { 0x3002, '.' }, { 0xff0e, '.' }, { 0xff61, '.' }, { 0xff0d, '-' }, { 0xff05, '%' },
    { 0xff1a, ':' }, { 0xff0f, '/' }, { 0xff20, '@' }, { 0x00aa, 'a' }, { 0x00ba, 'o' },
    { 0x017f, 's' }, { 0x212a, 'k' }, { 0x2071, 'i' }, { 0x207f, 'n' }, { 0x2102, 'c' },
    { 0x210a, 'g' }, { 0x210b, 'h' }, { 0x210c, 'h' }, { 0x210d, 'h' }, { 0x210e, 'h' },
    { 0x2110, 'i' }, { 0x2111, 'i' }, { 0x2112, 'l' }, { 0x2113, 'l' }, { 0x2115, 'n' },
    { 0x2119, 'p' }, { 0x211a, 'q' }, { 0x211b, 'r' }, { 0x211c, 'r' }, { 0x211d, 'r' },
    { 0x2124, 'z' }, { 0x2128, 'z' }, { 0x212c, 'b' }, { 0x212d, 'c' }, { 0x212f, 'e' },
    { 0x2130, 'e' }, { 0x2131, 'f' }, { 0x2133, 'm' }, { 0x2134, 'o' }, { 0x2139, 'i' },
    { 0x2145, 'd' }, { 0x2146, 'd' }, { 0x2147, 'e' }, { 0x2148, 'i' }, { 0x2149, 'j' },
    { 0x2160, 'i' }, { 0x2164, 'v' }, { 0x2169, 'x' }, { 0x216c, 'l' }, { 0x216d, 'c' },
    { 0x216e, 'd' }, { 0x216f, 'm' }, { 0x2170, 'i' }, { 0x2174, 'v' }, { 0x2179, 'x' },
    { 0x217c, 'l' }, { 0x217d, 'c' }, { 0x217e, 'd' }, { 0x217f, 'm' }, { 0x02b0, 'h' },
    { 0x02b2, 'j' }, { 0x02b3, 'r' }, { 0x02b7, 'w' }, { 0x02b8, 'y' }, { 0x02e1, 'l' },
    { 0x02e2, 's' }, { 0x02e3, 'x' }, { 0x1d62, 'i' }, { 0x1d63, 'r' }, { 0x1d64, 'u' },
    { 0x1d65, 'v' }, { 0x2090, 'a' }, { 0x2091, 'e' }, { 0x2092, 'o' }, { 0x2093, 'x' },
    { 0x2095, 'h' }, { 0x2096, 'k' }, { 0x2097, 'l' }, { 0x2098, 'm' }, { 0x2099, 'n' },
    { 0x209a, 'p' }, { 0x209b, 's' }, { 0x209c, 't' },
};

static bool is_ignored(uint32_t c)
{
    return c == 0xad || c == 0x34f || c == 0x180b || c == 0x180c || c == 0x180d ||
           c == 0x200b || c == 0x2060 || c == 0x2064 || c == 0xfeff ||
           (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0100 && c <= 0xe01ef) ||
           c == 0x200c || c == 0x200d;
}

/* Mathematical letters and digits: 13 alphabets of 26 + 26, then 5 times ten digits. */
static uint32_t map_mathematical(uint32_t c)
{
    if (c >= 0x1d400 && c <= 0x1d6a3)
        return 'a' + (c - 0x1d400) % 26;
    if (c >= 0x1d7ce && c <= 0x1d7ff)
        return '0' + (c - 0x1d7ce) % 10;
    return c;
}

static uint32_t lower(uint32_t c)
{
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
        (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
        return c + 32;
    if (c >= 0x400 && c <= 0x40f)
        return c + 80;
    if ((c >= 0x100 && c <= 0x12f) || (c >= 0x132 && c <= 0x137) ||
        (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481))
        return c | 1;
    return c;
}

static uint32_t map(uint32_t c)
{
    if (c < 0x80)
        return lower(c);
    if (is_ignored(c))
        return IGNORED;
    for (size_t i = 0; i < COUNT(runs); i++) {
        if (c >= runs[i].from && c <= runs[i].to)
            return runs[i].first + (c - runs[i].from);
    }
    for (size_t i = 0; i < COUNT(single); i++) {
        if (c == single[i].from)
            return (unsigned char)single[i].to;
    }
    return lower(map_mathematical(c));
}

/* --- RFC 3492, the encoder --- */

static uint32_t adapt(uint32_t delta, uint32_t count, bool first)
{
    uint32_t k = 0;

    delta = first ? delta / 700 : delta / 2;
    delta += delta / count;
    for (; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

static char letter(uint32_t digit)
{
    return (char)(digit < 26 ? 'a' + digit : '0' + (digit - 26));
}

/* A number of variable length; false when there is no room. */
static bool put_delta(char *out, size_t *n, uint32_t delta, uint32_t bias)
{
    for (uint32_t k = 36;; k += 36) {
        uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;

        if (*n + 1 >= IDN_MAX)
            return false;
        if (delta < t)
            break;
        out[(*n)++] = letter(t + (delta - t) % (36 - t));
        delta = (delta - t) / (36 - t);
    }
    out[(*n)++] = letter(delta);
    return true;
}

static uint32_t next_larger(const uint32_t *label, size_t count, uint32_t from)
{
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < count; i++) {
        if (label[i] >= from && label[i] < least)
            least = label[i];
    }
    return least;
}

/* With a label of at most LABEL_MAX code points nothing here overflows. */
static bool encode(char *out, size_t *n, const uint32_t *label, size_t count,
                   uint32_t basic)
{
    uint32_t code = 0x80, delta = 0, bias = 72, done = basic;

    while (done < count) {
        uint32_t next = next_larger(label, count, code);

        delta += (next - code) * (done + 1);
        code = next;
        for (size_t i = 0; i < count; i++) {
            delta += label[i] < code;
            if (label[i] != code)
                continue;
            if (!put_delta(out, n, delta, bias))
                return false;
            bias = adapt(delta, done + 1, done == basic);
            delta = 0;
            done++;
        }
        delta++;
        code++;
    }
    return true;
}

static bool put_label(char *out, size_t *n, const uint32_t *label, size_t count)
{
    size_t prefix = *n;
    uint32_t basic = 0;

    for (size_t i = 0; i < count; i++)
        basic += label[i] < 0x80;
    if (*n + count + 8 >= IDN_MAX)
        return false;
    if (basic < count) {
        memcpy(out + prefix, "xn--", 4);
        *n += 4;
    }
    for (size_t i = 0; i < count; i++) {
        if (label[i] < 0x80)
            out[(*n)++] = (char)label[i];
    }
    if (basic == count)
        return true;
    if (basic)
        out[(*n)++] = '-';
    return encode(out, n, label, count, basic);
}

size_t idn_to_ascii(char out[static IDN_MAX], str host)
{
    uint32_t UNINITIALIZED label[LABEL_MAX], c = 0;
    size_t count = 0, n = 0;

    if (host.n >= IDN_MAX)
        return SIZE_MAX;
    while (host.n) {
        size_t used = utf8_next(host, &c);

        if (used == 0)
            return SIZE_MAX;
        host = str_skip(host, used);
        c = map(c);
        if (c == IGNORED)
            continue;
        if (c != '.') {
            if (count == LABEL_MAX)
                return SIZE_MAX;
            label[count++] = c;
            continue;
        }
        if (!put_label(out, &n, label, count))
            return SIZE_MAX;
        count = 0;
        out[n++] = '.';
    }
    return put_label(out, &n, label, count) ? n : SIZE_MAX;
}
