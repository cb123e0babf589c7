/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: Lemire, "Number parsing at a gigabyte per second" (2021), with strtod() for
 * what it leaves undecided. Writing: Giulietti, "The Schubfach way to render doubles"
 * (2020). Both stand on one table of 128-bit powers of ten.
 */
#include "json/number.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct power {
    uint64_t high;
    uint64_t low;
};

#include "json/powers.inc"

__extension__ typedef unsigned __int128 wide;

#define DIGITS_EXACT 19  /* fit 64 bits */
#define DIGITS_ASIDE 15  /* a decimal of so many digits survives a double */
#define DIGITS_ALL   768 /* a double's border has no more; the rest is "and something" */
#define FRACTION     52
#define HIDDEN       ((uint64_t)1 << FRACTION)
#define BIAS         1023
#define EXPONENT_MAX 0x7ff

/* digits × 10^exponent, where `digits` are the first 19 significant ones. */
struct decimal {
    bool negative;
    uint64_t digits;
    int count;        /* significant digits in the text, saturated */
    bool cut;         /* non-zero ones came after `digits` */
    int64_t exponent; /* of the last digit in `digits` */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_exponent(str s)
{
    const int64_t enough = (int64_t)1 << 40; /* beyond any number of digits */
    bool negative = s.n && s.p[0] == '-';
    int64_t e = 0;

    for (size_t i = s.n && !is_digit(s.p[0]); i < s.n && e < enough; i++)
        e = e * 10 + (s.p[i] - '0');
    return negative ? -e : e;
}

static inline void take_digit(struct decimal *d, char c, bool after_point)
{
    if (d->count < DIGITS_EXACT) {
        d->digits = d->digits * 10 + (uint64_t)(c - '0');
        d->count += d->digits != 0;
        d->exponent -= after_point;
    } else {
        d->count = DIGITS_EXACT + 1;
        d->cut |= c != '0';
        d->exponent += !after_point;
    }
}

/* Eight digits at once; false when there are not eight. */
static inline bool eight_digits(const char *p, uint64_t *value)
{
    uint64_t w;

    memcpy(&w, p, 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    if ((w & (w + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) != 0x3030303030303030u)
        return false;
    w = (w & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;     /* tens and ones: 10 × 256 + 1 */
    w = (w & 0x00ff00ff00ff00ffu) * 6553601 >> 16; /* 100 × 65536 + 1 */
    *value = (w & 0x0000ffff0000ffffu) * 42949672960001u >> 32; /* 10000 × 2^32 + 1 */
    return true;
}

/* Digits from raw.p[i] on; returns where they end. */
static inline size_t take_digits(struct decimal *d, str raw, size_t i, bool after_point)
{
    uint64_t eight;

    while (i < raw.n && is_digit(raw.p[i])) {
        if (d->digits && d->count <= DIGITS_EXACT - 8 && raw.n - i >= 8 &&
            eight_digits(raw.p + i, &eight)) {
            d->digits = d->digits * 100000000 + eight;
            d->count += 8;
            d->exponent -= after_point ? 8 : 0;
            i += 8;
        } else {
            take_digit(d, raw.p[i++], after_point);
        }
    }
    return i;
}

/* Only what a JSON parser accepted comes here. */
static struct decimal read_decimal(str raw)
{
    struct decimal d = { .negative = raw.n && raw.p[0] == '-' };
    size_t i = take_digits(&d, raw, d.negative, false);

    if (i < raw.n && raw.p[i] == '.')
        i = take_digits(&d, raw, i + 1, true);
    if (i < raw.n)
        d.exponent += read_exponent(str_skip(raw, i + 1));
    return d;
}

static double make_double(bool negative, uint64_t bits)
{
    double value;

    bits |= (uint64_t)negative << 63;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Round to 53 bits; `exponent` <= 0 means a subnormal. */
static uint64_t round_up(uint64_t mantissa, int exponent)
{
    if (exponent <= 0) {
        if (exponent < -62)
            return 0;
        mantissa >>= 1 - exponent;
        return (mantissa + (mantissa & 1)) >> 1; /* a carry makes the smallest normal */
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa == HIDDEN << 1) {
        mantissa = HIDDEN;
        exponent++;
    }
    if (exponent >= EXPONENT_MAX)
        return (uint64_t)EXPONENT_MAX << FRACTION;
    return (mantissa & (HIDDEN - 1)) | (uint64_t)exponent << FRACTION;
}

/* digits × 10^q as the bits of the nearest double; false when 128 bits do not tell. */
static bool nearest(uint64_t digits, int q, uint64_t *bits)
{
    const struct power *power = &powers[q - POWERS_FIRST];
    int zeros = __builtin_clzll(digits);
    wide product = (wide)(digits << zeros) * power->high;
    uint64_t high, low, mantissa;
    int top, shift, exponent;

    if (((uint64_t)(product >> 64) & 0x1ff) == 0x1ff)
        product += (uint64_t)((wide)(digits << zeros) * power->low >> 64);
    high = (uint64_t)(product >> 64);
    low = (uint64_t)product;
    if (low == UINT64_MAX && (q < -27 || q > 55))
        return false;
    top = (int)(high >> 63);
    shift = top + 64 - FRACTION - 3;
    mantissa = high >> shift;
    exponent = (int)(217706 * (int64_t)q >> 16) + 63 + top - zeros + BIAS;
    if (exponent > 0 && low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 &&
        mantissa << shift == high)
        mantissa &= ~(uint64_t)1; /* exactly between two: to the even one */
    *bits = round_up(mantissa, exponent);
    return true;
}

/* Without a decimal point, strtod() has no locale to obey. */
static double exact(str raw)
{
    char text[DIGITS_ALL + 32];
    size_t n = 0;
    int64_t exponent = 0;
    bool after_point = false, cut = false;
    size_t i = raw.p[0] == '-';

    for (; i < raw.n && raw.p[i] != 'e' && raw.p[i] != 'E'; i++) {
        if (raw.p[i] == '.') {
            after_point = true;
        } else if (n < DIGITS_ALL) {
            text[n] = raw.p[i];
            n += n || raw.p[i] != '0';
            exponent -= after_point;
        } else {
            cut |= raw.p[i] != '0';
            exponent += !after_point;
        }
    }
    if (cut) {
        text[n++] = '1'; /* and something */
        exponent--;
    }
    exponent += i < raw.n ? read_exponent(str_skip(raw, i + 1)) : 0;
    snprintf(text + n, sizeof(text) - n, "e%lld", (long long)exponent);
    return raw.p[0] == '-' ? -strtod(text, NULL) : strtod(text, NULL);
}

/* `d` is what read_decimal() made of `raw`. */
static bool round_decimal(double *out, const struct decimal *d, str raw)
{
    uint64_t bits, next;

    if (d->digits == 0 || d->exponent < POWERS_FIRST) {
        *out = make_double(d->negative, 0); /* 19 digits × 10^-343 round to zero */
        return true;
    }
    if (d->exponent > 308)
        return false;
    if (!nearest(d->digits, (int)d->exponent, &bits) ||
        (d->cut && (!nearest(d->digits + 1, (int)d->exponent, &next) || next != bits))) {
        double value = exact(raw);

        if (isinf(value))
            return false;
        *out = value;
        return true;
    }
    if (bits >> FRACTION == EXPONENT_MAX)
        return false;
    *out = make_double(d->negative, bits);
    return true;
}

bool number_parse(double *out, str raw)
{
    struct decimal d = read_decimal(raw);

    return round_decimal(out, &d, raw);
}

/* digits × 10^exponent with no more digits than needed. */
struct shortest {
    uint64_t digits;
    int exponent;
};

/* The upper 64 bits of a 192-bit product; the last bit says whether more follows. */
static uint64_t multiply_odd(struct power g, uint64_t c)
{
    wide low = (wide)g.low * c;
    wide high = (wide)g.high * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* Schubfach wants powers rounded up that the table rounds down. */
static struct power power_above(int q)
{
    struct power g = powers[q - POWERS_FIRST];

    if ((q > 55 || q < -27) && ++g.low == 0)
        g.high++;
    return g;
}

/* value = c × 2^q. `narrow`: the next double below is only half as far away. */
static struct shortest schubfach(uint64_t c, int q, bool narrow)
{
    int k = (int)(((int64_t)q * 1262611 - (narrow ? 524031 : 0)) >> 22);
    int h = q + (int)((int64_t)-k * 1741647 >> 19) + 1;
    struct power g = power_above(-k);
    uint64_t odd = c & 1; /* the borders belong to even values */
    uint64_t lower = multiply_odd(g, (4 * c - 2 + narrow) << h) + odd;
    uint64_t middle = multiply_odd(g, 4 * c << h);
    uint64_t upper = multiply_odd(g, (4 * c + 2) << h) - odd;
    uint64_t s = middle / 4;
    bool down, up;

    if (s >= 10) {
        uint64_t tens = s / 10;

        down = lower <= 40 * tens;
        up = 40 * tens + 40 <= upper;
        if (down != up)
            return (struct shortest){ tens + up, k + 1 };
    }
    down = lower <= 4 * s;
    up = 4 * s + 4 <= upper;
    if (down == up)
        up = middle > 4 * s + 2 || (middle == 4 * s + 2 && s & 1);
    return (struct shortest){ s + up, k };
}

static struct shortest shorten(uint64_t bits)
{
    uint64_t fraction = bits & (HIDDEN - 1);
    int exponent = (int)(bits >> FRACTION & EXPONENT_MAX);
    uint64_t c = exponent ? fraction | HIDDEN : fraction;
    int q = (exponent ? exponent : 1) - BIAS - FRACTION;

    if (q <= 0 && q > -FRACTION - 1 && (c & (((uint64_t)1 << -q) - 1)) == 0)
        return (struct shortest){ c >> -q, 0 }; /* a whole number below 2^53 */
    return schubfach(c, q, fraction == 0 && exponent > 1);
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static inline char *put_pair(char *end, uint32_t value)
{
    memcpy(end - 2, pairs + 2 * value, 2);
    return end - 2;
}

/* Decimal digits, right-aligned in front of `end`. Returns where they start. */
static inline char *put_digits(char *end, uint64_t value)
{
    uint32_t rest;

    while (value >= 100000000) {
        rest = (uint32_t)(value % 100000000);
        value /= 100000000;
        for (int i = 0; i < 4; i++) {
            end = put_pair(end, rest % 100);
            rest /= 100;
        }
    }
    for (rest = (uint32_t)value; rest >= 100; rest /= 100)
        end = put_pair(end, rest % 100);
    if (rest >= 10)
        return put_pair(end, rest);
    *--end = (char)('0' + rest);
    return end;
}

static size_t put_exponent(char *out, int exponent, bool capital_e)
{
    unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);
    char digits[4];
    char *first = put_digits(digits + sizeof(digits), size);
    size_t n = 0, count = (size_t)(digits + sizeof(digits) - first);

    out[n++] = capital_e ? 'E' : 'e';
    if (exponent < 0 || !capital_e)
        out[n++] = exponent < 0 ? '-' : '+';
    memcpy(out + n, first, count);
    return n + count;
}

/* ECMAScript's Number::toString: n digits, the decimal point after `point` of them. */
static size_t lay_out(char *out, const char *digits, int n, int point, bool capital_e)
{
    size_t at = 0;

    if (n <= point && point <= 21) {
        memcpy(out, digits, (size_t)n);
        memset(out + n, '0', (size_t)(point - n));
        return (size_t)point;
    }
    if (0 < point && point <= 21) {
        memcpy(out, digits, (size_t)point);
        out[point] = '.';
        memcpy(out + point + 1, digits + point, (size_t)(n - point));
        return (size_t)n + 1;
    }
    if (-6 < point && point <= 0) {
        memcpy(out, "0.00000", 7);
        memcpy(out + 2 - point, digits, (size_t)n);
        return (size_t)(2 - point + n);
    }
    out[at++] = digits[0];
    if (n > 1) {
        out[at++] = '.';
        memcpy(out + at, digits + 1, (size_t)n - 1);
        at += (size_t)n - 1;
    }
    return at + put_exponent(out + at, point - 1, capital_e);
}

static size_t print(char *out, bool negative, struct shortest s, bool capital_e)
{
    char digits[20];
    char *end = digits + sizeof(digits);
    char *first = put_digits(end, s.digits);
    int point = (int)(end - first) + s.exponent;

    while (end - first > 1 && end[-1] == '0')
        end--;
    *out = '-';
    return (size_t)negative +
           lay_out(out + negative, first, (int)(end - first), point, capital_e);
}

size_t number_format(char out[static NUMBER_TEXT_MAX], double value, bool capital_e)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (bits << 1 == 0) {
        out[0] = '0';
        return 1;
    }
    return print(out, bits >> 63, shorten(bits), capital_e);
}

static bool is_small_integer(str raw)
{
    size_t i = raw.p[0] == '-';

    if (raw.n - i > DIGITS_ASIDE || raw.p[i] == '0')
        return false;
    while (i < raw.n && is_digit(raw.p[i]))
        i++;
    return i == raw.n;
}

size_t number_canonical(char out[static NUMBER_TEXT_MAX], str raw, bool capital_e)
{
    struct decimal d;
    double value;

    if (is_small_integer(raw)) {
        memcpy(out, raw.p, raw.n);
        return raw.n;
    }
    d = read_decimal(raw);
    if (d.digits == 0) {
        out[0] = '0';
        return 1;
    }
    /* Two decimals of 15 digits are never the same double: this one is the shortest. */
    if (d.count <= DIGITS_ASIDE && d.exponent > -290 && d.exponent < 290)
        return print(out, d.negative, (struct shortest){ d.digits, (int)d.exponent },
                     capital_e);
    return round_decimal(&value, &d, raw) ? number_format(out, value, capital_e) : 0;
}
