/* SPDX-License-Identifier: Apache-2.0 */
#include "json/text.h"

#include <string.h>

#include "base/utf8.h"

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Byte by byte: finds the exact place of what the blocks below only notice. */
static const char *scan_bytes(const char *at, const char *end)
{
    uint32_t c;

    while (at < end) {
        size_t n = 1;

        if ((unsigned char)*at >= 0x80)
            n = utf8_next(str_of(at, (size_t)(end - at)), &c);
        else if (!is_plain((unsigned char)*at))
            return at;
        if (n == 0)
            return at;
        at += n;
    }
    return at;
}

#if defined(__SSE2__)

static unsigned mask_less(__m128i v, int limit)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmplt_epi8(v, _mm_set1_epi8((char)limit)));
}

static unsigned mask_equal(__m128i v, int byte)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)byte)));
}

/* Second bytes that RFC 3629 forbids after E0, ED, F0 and F4. */
static unsigned bad_seconds(__m128i v)
{
    unsigned below_a0 = mask_less(v, 0xa0 - 256);
    unsigned below_90 = mask_less(v, 0x90 - 256);

    return (mask_equal(v, 0xe0) << 1 & below_a0) |
           (mask_equal(v, 0xed) << 1 & ~below_a0) |
           (mask_equal(v, 0xf0) << 1 & below_90) | (mask_equal(v, 0xf4) << 1 & ~below_90);
}

/* How many bytes of a block that starts a sequence are good contents, up to a stop or to
 * a sequence that the block cuts; 0 when something in it is bad. Bytes as signed
 * numbers: 80..BF are the smallest, then C0..FF, then ASCII. */
static unsigned check_block(__m128i v, unsigned stops)
{
    unsigned high = (unsigned)_mm_movemask_epi8(v);
    unsigned follow = mask_less(v, 0xc0 - 256);
    unsigned lead = high & ~follow;
    unsigned three = high & ~mask_less(v, 0xe0 - 256); /* of three bytes or more */
    unsigned four = high & ~mask_less(v, 0xf0 - 256);
    unsigned wanted = lead << 1 | three << 2 | four << 3;
    unsigned bad = lead & (mask_less(v, 0xc2 - 256) | ~mask_less(v, 0xf5 - 256));
    unsigned n = 16;

    if (stops)
        n = (unsigned)__builtin_ctz(stops);
    else if (wanted >> 16)
        n = 31 - (unsigned)__builtin_clz(lead);
    bad |= wanted ^ follow;
    if (three)
        bad |= bad_seconds(v);
    /* Byte n ends what came before it, too: nothing may still be wanted there. */
    return bad & 0xffff & ((2u << n) - 1) ? 0 : n;
}

/* Fewer bytes than a block, copied into one that ends in plain ones. */
static const char *scan_tail(const char *at, const char *end)
{
    char block[16] = "0123456789abcdef";
    size_t n = (size_t)(end - at);
    __m128i v;

    if (n & 8)
        memcpy(block, at, 8);
    for (size_t i = n & 8; i < n; i++)
        block[i] = at[i];
    v = text_load(block);
    return text_stops(v) | (unsigned)_mm_movemask_epi8(v) ? scan_bytes(at, end) : end;
}

const char *text_scan_slow(const char *at, const char *end)
{
    while (end - at >= 16) {
        __m128i v = text_load(at);
        unsigned stops = text_stops(v);
        unsigned n = check_block(v, stops);

        at += n;
        if (stops || n == 0)
            return scan_bytes(at, end); /* the rest is one byte, or wrong */
    }
    return scan_tail(at, end);
}

#else

const char *text_scan_slow(const char *at, const char *end)
{
    return scan_bytes(at, end);
}

#endif

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "\uXXXX" at the start of s. */
static bool hex_escape(str s, uint32_t *unit)
{
    uint32_t u = 0;

    if (s.n < 6 || s.p[0] != '\\' || s.p[1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        int v = hex_value(s.p[i]);

        if (v < 0)
            return false;
        u = u << 4 | (uint32_t)v;
    }
    *unit = u;
    return true;
}

static size_t unicode_escape(str s, uint32_t *code_point)
{
    uint32_t first, second;

    if (!hex_escape(s, &first))
        return 0;
    *code_point = first;
    if (first < 0xd800 || first > 0xdbff || !hex_escape(str_skip(s, 6), &second) ||
        second < 0xdc00 || second > 0xdfff)
        return 6;
    *code_point = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    return 12;
}

size_t text_escape(str s, uint32_t *code_point)
{
    static const char short_forms[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'
    };
    char c;

    if (s.n < 2 || s.p[0] != '\\')
        return 0;
    c = short_forms[(unsigned char)s.p[1]];
    if (c == 0)
        return unicode_escape(s, code_point);
    *code_point = (unsigned char)c;
    return 2;
}

/* Decoded bytes, one at a time. */
struct reader {
    str rest;
    char held[4]; /* the last escape */
    size_t held_n;
    size_t held_at;
};

static int next_byte(struct reader *r)
{
    uint32_t c = 0;
    size_t n;

    if (r->held_at < r->held_n)
        return (unsigned char)r->held[r->held_at++];
    if (r->rest.n == 0)
        return -1;
    if (r->rest.p[0] != '\\') {
        n = (unsigned char)r->rest.p[0];
        r->rest = str_skip(r->rest, 1);
        return (int)n;
    }
    n = text_escape(r->rest, &c);
    r->rest = str_skip(r->rest, n ? n : r->rest.n);
    r->held_n = utf8_put(r->held, c);
    r->held_at = 1;
    return (unsigned char)r->held[0];
}

/* UTF-16 puts U+E000..U+FFFF (EE, EF) after everything that takes four bytes. */
static int utf16_rank(int byte)
{
    return byte == 0xee || byte == 0xef ? byte + 0x10 : byte;
}

static int compare_decoded(struct text a, struct text b)
{
    struct reader ra = { .rest = a.raw }, rb = { .rest = b.raw };
    int ca, cb;

    do {
        ca = next_byte(&ra);
        cb = next_byte(&rb);
    } while (ca == cb && ca >= 0);
    return utf16_rank(ca) - utf16_rank(cb);
}

static size_t common_length(const char *a, const char *b, size_t n)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        if (memcmp(a + i, b + i, 8) != 0)
            break;
    }
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

int text_compare(struct text a, struct text b)
{
    size_t n = a.raw.n < b.raw.n ? a.raw.n : b.raw.n;
    size_t i;

    if (a.escaped || b.escaped)
        return compare_decoded(a, b);
    i = common_length(a.raw.p, b.raw.p, n);
    if (i == n)
        return (a.raw.n > n) - (b.raw.n > n);
    return utf16_rank((unsigned char)a.raw.p[i]) - utf16_rank((unsigned char)b.raw.p[i]);
}

bool text_equal(struct text a, struct text b)
{
    if (a.escaped || b.escaped)
        return compare_decoded(a, b) == 0;
    return str_equal(a.raw, b.raw);
}

uint64_t text_decoded_key(struct text t)
{
    struct reader r = { .rest = t.raw };
    uint64_t key = 0;

    for (int shift = 56; shift >= 0; shift -= 8) {
        int c = next_byte(&r);

        if (c < 0)
            break;
        key |= (uint64_t)utf16_rank(c) << shift;
    }
    return key;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static uint64_t hash_decoded(struct text t)
{
    struct reader r = { .rest = t.raw };
    uint64_t h = 0, word = 0;
    size_t n = 0;
    int c;

    while ((c = next_byte(&r)) >= 0) {
        word |= (uint64_t)c << 8 * (n++ & 7);
        if ((n & 7) == 0) {
            h = mix(h, word);
            word = 0;
        }
    }
    return mix(mix(h, word), n);
}

uint32_t text_hash(struct text t)
{
    uint64_t h = 0, word = 0;
    size_t i = 0;

    if (t.escaped)
        return (uint32_t)hash_decoded(t);
    for (; t.raw.n - i >= 8; i += 8) {
        word = 0;
        for (size_t k = 0; k < 8; k++)
            word |= (uint64_t)(unsigned char)t.raw.p[i + k] << 8 * k;
        h = mix(h, word);
    }
    word = 0;
    for (size_t k = i; k < t.raw.n; k++)
        word |= (uint64_t)(unsigned char)t.raw.p[k] << 8 * (k - i);
    return (uint32_t)mix(mix(h, word), t.raw.n);
}
