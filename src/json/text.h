/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - the contents of a JSON string: scanned, decoded and compared where they lie.
 *
 * For json.c and jcs.c. Nothing here copies a string: comparing and hashing decode one
 * byte at a time when there are escapes, and go over the source bytes when there are
 * none.
 */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/str.h"
#include "json/json.h"

/* What stands between the quotes; `escaped`: with at least one backslash. */
struct text {
    str raw;
    bool escaped;
};

static inline struct text text_of(const struct json *j, uint32_t node)
{
    const struct json_node *n = &j->nodes[node];

    return (struct text){ str_of(j->text.p + n->start + 1, n->end - n->start - 2),
                          (n->flags & JSON_ESCAPED) != 0 };
}

/* text_scan() from here on, for contents beyond ASCII and for the last bytes. */
const char *text_scan_slow(const char *at, const char *end);

#if defined(__SSE2__)

/* One bit for each byte that ends a plain run: '"', '\' and the control characters. */
static inline unsigned text_stops(__m128i v)
{
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
}

static inline __m128i text_load(const char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Up to sixteen bytes in a block that else has plain ones. */
static inline __m128i text_load_short(const char *at, size_t n)
{
    uint64_t low = 0x3030303030303030u, high = low;
    uint32_t a, b;

    if (n >= 8) {
        memcpy(&low, at, 8);
        memcpy(&high, at + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&a, at, 4);
        memcpy(&b, at + n - 4, 4);
        low = (uint64_t)a << 32 | b;
    } else if (n) {
        low = (uint64_t)(unsigned char)at[0] << 16 |
              (uint64_t)(unsigned char)at[n / 2] << 8 | (unsigned char)at[n - 1] |
              0x3030303030000000u;
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

/* Where a byte is not plain ASCII, as it would stand between quotes. */
static inline __m128i text_oddities(__m128i v)
{
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));

    return _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)),
                        _mm_or_si128(quote, slash)); /* signed: from 0x80 on below 0 */
}

/* Is all of it plain ASCII? */
static inline bool text_is_plain(str s)
{
    __m128i v = s.n >= 16 ? text_load(s.p + s.n - 16) : text_load_short(s.p, s.n);
    __m128i odd = text_oddities(v);

    for (size_t at = 0; s.n - at > 16; at += 16)
        odd = _mm_or_si128(odd, text_oddities(text_load(s.p + at)));
    return _mm_movemask_epi8(odd) == 0;
}

/* str_put() of what is plain. NULL when it is not: what stands there then is void. */
static inline char *text_put_plain(char *to, str s)
{
    __m128i v = s.n >= 16 ? text_load(s.p + s.n - 16) : text_load_short(s.p, s.n);
    __m128i odd = text_oddities(v);

    for (size_t at = 0; s.n - at > 16; at += 16) {
        __m128i block = text_load(s.p + at);

        odd = _mm_or_si128(odd, text_oddities(block));
        _mm_storeu_si128((__m128i *)(void *)(to + at), block);
    }
    if (_mm_movemask_epi8(odd))
        return NULL;
    if (s.n < 16)
        return str_put(to, s);
    _mm_storeu_si128((__m128i *)(void *)(to + s.n - 16), v);
    return to + s.n;
}

/* The first byte in [at, end) that is not plain string contents: a quote, a backslash, a
 * control character or the start of bad UTF-8; `end` when there is none. */
static inline const char *text_scan(const char *at, const char *end)
{
    while (end - at >= 16) {
        __m128i v = text_load(at);
        unsigned stops = text_stops(v);
        unsigned high = (unsigned)_mm_movemask_epi8(v);

        if ((stops | high) == 0) {
            at += 16;
            continue;
        }
        if (stops && (high & (stops ^ (stops - 1))) == 0)
            return at + __builtin_ctz(stops);
        break;
    }
    return at == end ? end : text_scan_slow(at, end);
}

#else

static inline bool text_is_plain(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] >= 0x80 ||
            s.p[i] == '"' || s.p[i] == '\\')
            return false;
    }
    return true;
}

static inline char *text_put_plain(char *to, str s)
{
    return text_is_plain(s) ? str_put(to, s) : NULL;
}

static inline const char *text_scan(const char *at, const char *end)
{
    return text_scan_slow(at, end);
}

#endif

/* Decode the escape at the start of s; returns its length, 0 when it is none. A pair of
 * surrogates is one escape of 12 bytes; a lone one gives its own value. */
size_t text_escape(str s, uint32_t *code_point);

static inline bool text_is_surrogate(uint32_t code_point)
{
    return (code_point & 0xfffff800u) == 0xd800u;
}

/* As sorted in a canonical object: decoded, by UTF-16 code units. <0, 0, >0. */
int text_compare(struct text a, struct text b);

/* Equal exactly when the decoded contents are equal. */
bool text_equal(struct text a, struct text b);

uint64_t text_decoded_key(struct text t); /* for text_key() */

static inline uint64_t text_big_endian(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

/* The order of the first eight decoded bytes: key(a) < key(b) implies a < b. */
static inline uint64_t text_key(struct text t)
{
    size_t n = t.raw.n < 8 ? t.raw.n : 8;
    uint64_t key = 0;

    if (n >= 4)
        key = text_big_endian(t.raw.p) << 32 | text_big_endian(t.raw.p + n - 4)
                                                   << 8 * (8 - n);
    else
        for (size_t i = 0; i < n; i++)
            key |= (uint64_t)(unsigned char)t.raw.p[i] << (56 - 8 * i);
    if (t.escaped || key & 0x8080808080808080u)
        return text_decoded_key(t);
    return key;
}

/* Of the decoded contents. Anyone can make collisions: fall back to text_compare(). */
uint32_t text_hash(struct text t);

#endif
