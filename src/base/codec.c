/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static const char hex_digits[] = "0123456789abcdef";
static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#if defined(__SSE2__)

/* The digits of sixteen values of four bits. */
static __m128i digits_of(__m128i v)
{
    __m128i letters = _mm_cmpgt_epi8(v, _mm_set1_epi8(9));

    return _mm_add_epi8(_mm_add_epi8(v, _mm_set1_epi8('0')),
                        _mm_and_si128(letters, _mm_set1_epi8('a' - '0' - 10)));
}

static void encode_eight(char *out, const uint8_t *bytes)
{
    __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)bytes);

    v = _mm_unpacklo_epi8(_mm_srli_epi16(v, 4), v);
    v = digits_of(_mm_and_si128(v, _mm_set1_epi8(15)));
    _mm_storeu_si128((__m128i *)(void *)out, v);
}

static void encode_sixteen(char *out, const uint8_t *bytes)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128i low_bits = _mm_set1_epi8(15);
    __m128i high = digits_of(_mm_and_si128(_mm_srli_epi16(v, 4), low_bits));
    __m128i low = digits_of(_mm_and_si128(v, low_bits));

    _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi8(high, low));
    _mm_storeu_si128((__m128i *)(void *)(out + 16), _mm_unpackhi_epi8(high, low));
}

#endif

void hex_encode(char *out, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    size_t i = 0;

#if defined(__SSE2__)
    for (; n - i >= 16; i += 16) /* a digest is two of these */
        encode_sixteen(out + 2 * i, b + i);
    if (n - i >= 8) { /* an id is one */
        encode_eight(out + 2 * i, b + i);
        i += 8;
    }
#endif
    for (; i < n; i++) {
        out[2 * i] = hex_digits[b[i] >> 4];
        out[2 * i + 1] = hex_digits[b[i] & 15];
    }
}

void hex_add(struct buf *b, const void *bytes, size_t n)
{
    char *to = buf_room(b, 2 * n);

    if (!to)
        return;
    hex_encode(to, bytes, n);
    b->n += 2 * n;
}

/* Value plus one of every lower-case hex digit; 0 for all other bytes. */
static const uint8_t hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
    ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

static int hex_value(char c)
{
    return (int)hex_values[(uint8_t)c] - 1;
}

bool hex_decode(void *out, size_t n, str text)
{
    uint8_t *b = out;

    if (text.n != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = hex_value(text.p[2 * i]);
        int low = hex_value(text.p[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        b[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void base64_add(struct buf *b, const void *bytes, size_t n)
{
    const uint8_t *in = bytes;
    char *to = buf_room(b, (n + 2) / 3 * 4);

    if (!to)
        return;
    b->n += (n + 2) / 3 * 4;
    for (; n > 0; to += 4) {
        size_t take = n < 3 ? n : 3;
        uint32_t bits = (uint32_t)in[0] << 16 | (take > 1 ? (uint32_t)in[1] << 8 : 0) |
                        (take > 2 ? in[2] : 0);

        to[0] = base64_digits[bits >> 18];
        to[1] = base64_digits[bits >> 12 & 63];
        to[2] = take > 1 ? base64_digits[bits >> 6 & 63] : '=';
        to[3] = take > 2 ? base64_digits[bits & 63] : '=';
        in += take;
        n -= take;
    }
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* One group of four characters: returns its 1 to 3 bytes, 0 when it is not one. */
static size_t decode_group(uint8_t out[3], const char *in, bool last)
{
    size_t chars = 4;
    uint32_t bits = 0;

    if (last && in[3] == '=')
        chars = in[2] == '=' ? 2 : 3;
    for (size_t i = 0; i < 4; i++) {
        int value = i < chars ? base64_value(in[i]) : 0;

        if (value < 0)
            return 0;
        bits = bits << 6 | (uint32_t)value;
    }
    if ((chars == 2 && (bits & 0xffff)) || (chars == 3 && (bits & 0xff)))
        return 0;
    out[0] = (uint8_t)(bits >> 16);
    out[1] = (uint8_t)(bits >> 8);
    out[2] = (uint8_t)bits;
    return chars - 1;
}

bool base64_decode(void *out, size_t max, size_t *n, str text)
{
    uint8_t *to = out;
    size_t done = 0;

    if (text.n % 4)
        return false;
    for (size_t i = 0; i < text.n; i += 4) {
        uint8_t group[3];
        size_t got = decode_group(group, text.p + i, i + 4 == text.n);

        if (got == 0 || got > max - done)
            return false;
        memcpy(to + done, group, got);
        done += got;
    }
    *n = done;
    return true;
}

bool base64_length(size_t *n, str text)
{
    size_t total = 0;

    if (text.n % 4)
        return false;
    for (size_t i = 0; i < text.n; i += 4) {
        uint8_t group[3];
        size_t got = decode_group(group, text.p + i, i + 4 == text.n);

        if (got == 0)
            return false;
        total += got;
    }
    *n = total;
    return true;
}

bool base64_decode_exact(void *out, size_t n, str text)
{
    size_t got;

    return text.n == (n + 2) / 3 * 4 && base64_decode(out, n, &got, text) && got == n;
}

bool u64_parse(uint64_t *out, str text)
{
    uint64_t value = 0;

    if (text.n == 0 || text.n > 20 || (text.n > 1 && text.p[0] == '0'))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)(text.p[i] - '0');

        if (digit > 9 || (i >= 19 && value > (UINT64_MAX - digit) / 10))
            return false; /* nineteen digits are never too large */
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static inline char *put_pair(char *to, unsigned value)
{
    memcpy(to, pairs + 2 * (size_t)value, 2);
    return to + 2;
}

/* One digit or two. */
static inline char *put_first(char *to, unsigned value)
{
    if (value >= 10)
        return put_pair(to, value);
    *to = (char)('0' + value);
    return to + 1;
}

static inline char *put_small(char *to, unsigned value)
{
    return value >= 100 ? put_pair(put_first(to, value / 100), value % 100)
                        : put_first(to, value);
}

size_t u64_format(char out[static U64_DIGITS], uint64_t value)
{
    unsigned rest = (unsigned)(value % 10000);
    size_t n;

    if (value < 10000)
        return (size_t)(put_small(out, rest) - out);
    n = u64_format(out, value / 10000);
    put_pair(put_pair(out + n, rest / 100), rest % 100);
    return n + 4;
}
