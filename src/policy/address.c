/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/address.h"

#include <arpa/inet.h>
#include <stddef.h>

#include "base/attr.h"

#define PARTS_MAX 4

/* --- ranges --- */

struct range {
    uint8_t bytes[16];
    uint8_t bits;
    const char *what;
};

/* IANA's special-purpose registry: what is not reachable from everywhere. */
static const struct range ranges4[] = {
    { { 0 }, 8, "an unspecified address (0.0.0.0/8)" },
    { { 10 }, 8, "a private address (10.0.0.0/8)" },
    { { 100, 64 }, 10, "a carrier's shared address (100.64.0.0/10)" },
    { { 127 }, 8, "a loopback address (127.0.0.0/8)" },
    { { 169, 254 }, 16, "a link-local address (169.254.0.0/16)" },
    { { 172, 16 }, 12, "a private address (172.16.0.0/12)" },
    { { 192, 0, 0 }, 24, "an address for protocols (192.0.0.0/24)" },
    { { 192, 0, 2 }, 24, "a documentation address (192.0.2.0/24)" },
    { { 192, 88, 99 }, 24, "a 6to4 relay's address (192.88.99.0/24)" },
    { { 192, 168 }, 16, "a private address (192.168.0.0/16)" },
    { { 198, 18 }, 15, "a benchmark address (198.18.0.0/15)" },
    { { 198, 51, 100 }, 24, "a documentation address (198.51.100.0/24)" },
    { { 203, 0, 113 }, 24, "a documentation address (203.0.113.0/24)" },
    { { 224 }, 4, "a multicast address (224.0.0.0/4)" },
    { { 240 }, 4, "a reserved address (240.0.0.0/4)" },
};

static const struct range ranges6[] = {
    { { [15] = 0 }, 128, "an unspecified address (::)" },
    { { [15] = 1 }, 128, "a loopback address (::1)" },
    { { 0xfc }, 7, "a private address (fc00::/7)" },
    { { 0xfe, 0x80 }, 10, "a link-local address (fe80::/10)" },
    { { 0xfe, 0xc0 }, 10, "a site-local address (fec0::/10)" },
    { { 0xff }, 8, "a multicast address (ff00::/8)" },
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32, "a documentation address (2001:db8::/32)" },
    { { 0x20, 0x01, 0 }, 23, "an address for protocols (2001::/23)" },
    { { 0x3f, 0xff }, 20, "a documentation address (3fff::/20)" },
};

static const struct range global6 = { { 0x20 }, 3, NULL };

static bool in_range(const uint8_t *bytes, const struct range *r)
{
    size_t whole = r->bits / 8;
    unsigned left = r->bits % 8u;

    if (memcmp(bytes, r->bytes, whole) != 0)
        return false;
    return left == 0 || (bytes[whole] ^ r->bytes[whole]) >> (8 - left) == 0;
}

static const char *private4(const uint8_t *bytes)
{
    for (size_t i = 0; i < COUNT(ranges4); i++) {
        if (in_range(bytes, &ranges4[i]))
            return ranges4[i].what;
    }
    return NULL;
}

/* Forms of IPv6 that lead to an IPv4 address, and where it stands in them. */
static const struct {
    struct range range;
    size_t at;
} carriers[] = {
    { { { [10] = 0xff, [11] = 0xff }, 96, NULL }, 12 }, /* mapped */
    { { { 0x00, 0x64, 0xff, 0x9b }, 96, NULL }, 12 },   /* NAT64 */
    { { { 0x20, 0x02 }, 16, NULL }, 2 },                /* 6to4 */
};

static const char *private6(const uint8_t *bytes)
{
    for (size_t i = 0; i < COUNT(carriers); i++) {
        if (in_range(bytes, &carriers[i].range))
            return private4(bytes + carriers[i].at);
    }
    for (size_t i = 0; i < COUNT(ranges6); i++) {
        if (in_range(bytes, &ranges6[i]))
            return ranges6[i].what;
    }
    return in_range(bytes, &global6) ? NULL : "a reserved address (outside of 2000::/3)";
}

const char *address_private(const struct address *a)
{
    return a->v6 ? private6(a->bytes) : private4(a->bytes);
}

/* --- spellings of IPv4 --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(str part)
{
    return part.n >= 2 && part.p[0] == '0' && (part.p[1] | 0x20) == 'x';
}

/* Does a host that ends so mean an address (WHATWG: ends in a number)? */
static bool is_numeric(str part)
{
    size_t i = is_hex(part) ? 2 : 0;
    bool hex = i > 0;

    if (part.n == 0)
        return false;
    for (; i < part.n; i++) {
        if (hex ? hex_value(part.p[i]) < 0 : !is_digit(part.p[i]))
            return false;
    }
    return true;
}

/* One part, read as C reads it or, `decimal`, as a number with zeros before it. */
static bool read_part(str part, bool decimal, uint64_t *value)
{
    unsigned base = 10;
    uint64_t v = 0;
    size_t i = 0;

    if (!is_numeric(part))
        return false;
    if (is_hex(part)) {
        base = 16;
        i = 2;
    } else if (part.n > 1 && part.p[0] == '0' && !decimal) {
        base = 8;
    }
    for (; i < part.n; i++) {
        unsigned d = (unsigned)hex_value(part.p[i]);

        if (d >= base || v > UINT32_MAX)
            return false;
        v = v * base + d;
    }
    *value = v;
    return true;
}

/* Put the parts together; the last fills what is left, as inet_aton() has it. Bit i of
 * `decimal` is how part i is read. */
static bool combine(const str *parts, size_t count, unsigned decimal,
                    uint8_t out[static 4])
{
    uint64_t all = 0, v = 0;

    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        uint64_t max = last ? UINT32_MAX >> 8 * (count - 1) : 255;

        if (!read_part(parts[i], decimal >> i & 1, &v) || v > max)
            return false;
        all |= last ? v : v << 8 * (3 - i);
    }
    for (size_t i = 0; i < 4; i++)
        out[i] = (uint8_t)(all >> 8 * (3 - i));
    return true;
}

/* The parts between the dots; 0 when there are too many. */
static size_t split(str host, str parts[static PARTS_MAX])
{
    size_t count = 0;

    for (;;) {
        const char *dot = host.n ? memchr(host.p, '.', host.n) : NULL;
        size_t n = dot ? (size_t)(dot - host.p) : host.n;

        if (count == PARTS_MAX)
            return 0;
        parts[count++] = str_first(host, n);
        if (!dot)
            return count;
        host = str_of(dot + 1, host.n - n - 1);
    }
}

/* Which parts are read in two ways: a bit for each. */
static unsigned ambiguous(const str *parts, size_t count)
{
    unsigned mask = 0;

    for (size_t i = 0; i < count; i++) {
        if (parts[i].n > 1 && parts[i].p[0] == '0' && !is_hex(parts[i]))
            mask |= 1u << i;
    }
    return mask;
}

/* Every reading of the parts; one that nobody can read does not count. */
static enum address_spelling worst(const str *parts, size_t count, const char **what)
{
    enum address_spelling result = ADDRESS_BROKEN;
    unsigned mask = ambiguous(parts, count);

    for (unsigned decimal = 0; decimal <= mask; decimal++) {
        uint8_t bytes[4];

        if ((decimal & ~mask) || !combine(parts, count, decimal, bytes))
            continue;
        *what = private4(bytes);
        if (*what)
            return ADDRESS_PRIVATE;
        result = ADDRESS_PUBLIC;
    }
    return result;
}

static str last_label(str host)
{
    size_t i = host.n;

    while (i > 0 && host.p[i - 1] != '.')
        i--;
    return str_skip(host, i);
}

static enum address_spelling read4(str host, const char **what)
{
    str parts[PARTS_MAX];
    size_t count;

    if (!is_numeric(last_label(host)))
        return ADDRESS_NONE;
    count = split(host, parts);
    return count ? worst(parts, count, what) : ADDRESS_BROKEN;
}

/* --- spellings of IPv6 --- */

static enum address_spelling read6(str text, const char **what)
{
    const char *zone = text.n ? memchr(text.p, '%', text.n) : NULL;
    char copy[INET6_ADDRSTRLEN + 16];
    uint8_t bytes[16];

    if (zone)
        text = str_first(text, (size_t)(zone - text.p));
    if (text.n >= sizeof(copy) || (text.n && memchr(text.p, '\0', text.n)))
        return ADDRESS_BROKEN;
    if (text.n)
        memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (inet_pton(AF_INET6, copy, bytes) != 1)
        return ADDRESS_BROKEN;
    *what = private6(bytes);
    return *what ? ADDRESS_PRIVATE : ADDRESS_PUBLIC;
}

enum address_spelling address_read(str host, const char **what)
{
    while (host.n && host.p[host.n - 1] == '.')
        host.n--;
    if (host.n == 0 || host.n > ADDRESS_TEXT_MAX)
        return ADDRESS_NONE;
    if (host.p[0] == '[')
        return host.p[host.n - 1] == ']' ? read6(str_of(host.p + 1, host.n - 2), what)
                                         : ADDRESS_BROKEN;
    if (memchr(host.p, ':', host.n)) {
        enum address_spelling s = read6(host, what);

        return s == ADDRESS_BROKEN ? ADDRESS_NONE : s;
    }
    return read4(host, what);
}
