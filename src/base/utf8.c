/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

static bool continues(str s, size_t n)
{
    if (s.n < n)
        return false;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return false;
    }
    return true;
}

static size_t sequence_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

size_t utf8_next(str s, uint32_t *code_point)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = s.n ? sequence_length((unsigned char)s.p[0]) : 0;
    uint32_t c;

    if (n == 0 || !continues(s, n))
        return 0;
    c = (unsigned char)s.p[0] & (n == 1 ? 0x7f : 0xff >> (n + 1));
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
    if (c < smallest[n] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        return 0;
    *code_point = c;
    return n;
}

size_t utf8_put(char out[static 4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

void utf8_add(struct buf *out, uint32_t code_point)
{
    char bytes[4];
    size_t n = utf8_put(bytes, code_point);

    for (size_t i = 0; i < n; i++)
        buf_add_char(out, bytes[i]);
}

/* Bytes at the front that are ASCII, eight at a time. */
static size_t ascii_length(str s)
{
    size_t n = 0;
    uint64_t word;

    for (; s.n - n >= sizeof(word); n += sizeof(word)) {
        memcpy(&word, s.p + n, sizeof(word));
        if (word & 0x8080808080808080u)
            break;
    }
    while (n < s.n && (unsigned char)s.p[n] < 0x80)
        n++;
    return n;
}

bool utf8_valid(str s)
{
    uint32_t c;

    while (s.n) {
        size_t n = ascii_length(s);

        if (n == 0)
            n = utf8_next(s, &c);
        if (n == 0)
            return false;
        s = str_skip(s, n);
    }
    return true;
}
