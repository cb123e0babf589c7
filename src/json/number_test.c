/* SPDX-License-Identifier: Apache-2.0 */
#include "json/number.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/guard.h"
#include "tests/tap.h"

/* Computed by Node: the bits of Number(text), and String(Number(text)). */
static const struct {
    char text[64];
    uint64_t bits;
    char shortest[NUMBER_TEXT_MAX];
} cases[] = {
    { "0", 0x0000000000000000, "0" },
    { "-0", 0x8000000000000000, "0" },
    { "0.0", 0x0000000000000000, "0" },
    { "-0.0", 0x8000000000000000, "0" },
    { "0e99999999999", 0x0000000000000000, "0" },
    { "-0e-5", 0x8000000000000000, "0" },
    { "1", 0x3ff0000000000000, "1" },
    { "-1", 0xbff0000000000000, "-1" },
    { "10", 0x4024000000000000, "10" },
    { "100", 0x4059000000000000, "100" },
    { "123456789012345", 0x42dc12218377de40, "123456789012345" },
    { "1234567890123456", 0x43118b54f22aeb00, "1234567890123456" },
    { "12345678901234567", 0x4345ee2a2eb5a5c4, "12345678901234568" },
    { "9007199254740991", 0x433fffffffffffff, "9007199254740991" },
    { "9007199254740993", 0x4340000000000000, "9007199254740992" },
    { "-9007199254740993", 0xc340000000000000, "-9007199254740992" },
    { "18446744073709551616", 0x43f0000000000000, "18446744073709552000" },
    { "1e20", 0x4415af1d78b58c40, "100000000000000000000" },
    { "1e21", 0x444b1ae4d6e2ef50, "1e+21" },
    { "-1e21", 0xc44b1ae4d6e2ef50, "-1e+21" },
    { "123e18", 0x441aabdf2145b430, "123000000000000000000" },
    { "123e19", 0x4450ab6b74cb909e, "1.23e+21" },
    { "1E+2", 0x4059000000000000, "100" },
    { "1.0", 0x3ff0000000000000, "1" },
    { "1.50", 0x3ff8000000000000, "1.5" },
    { "1.5e3", 0x4097700000000000, "1500" },
    { "150e-2", 0x3ff8000000000000, "1.5" },
    { "0.000001", 0x3eb0c6f7a0b5ed8d, "0.000001" },
    { "0.0000001", 0x3e7ad7f29abcaf48, "1e-7" },
    { "1e-6", 0x3eb0c6f7a0b5ed8d, "0.000001" },
    { "1e-7", 0x3e7ad7f29abcaf48, "1e-7" },
    { "1.25e-7", 0x3e80c6f7a0b5ed8d, "1.25e-7" },
    { "333333333.33333329", 0x41b3de4355555555, "333333333.3333333" },
    { "4.50", 0x4012000000000000, "4.5" },
    { "2e-3", 0x3f60624dd2f1a9fc, "0.002" },
    { "0.000000000000000000000000001", 0x3a53ce9a36f23c10, "1e-27" },
    { "1e23", 0x44b52d02c7e14af6, "1e+23" },
    { "9e22", 0x44b30ee8e7179044, "9e+22" },
    { "5e-324", 0x0000000000000001, "5e-324" },
    { "4.9e-324", 0x0000000000000001, "5e-324" },
    { "2.4703282292062328e-324", 0x0000000000000001, "5e-324" },
    { "2.4703282292062327e-324", 0x0000000000000000, "0" },
    { "1e-400", 0x0000000000000000, "0" },
    { "2.2250738585072014e-308", 0x0010000000000000, "2.2250738585072014e-308" },
    { "2.2250738585072011e-308", 0x000fffffffffffff, "2.225073858507201e-308" },
    { "2.225073858507201e-308", 0x000fffffffffffff, "2.225073858507201e-308" },
    { "1.7976931348623157e308", 0x7fefffffffffffff, "1.7976931348623157e+308" },
    { "1.7976931348623158e308", 0x7fefffffffffffff, "1.7976931348623157e+308" },
    { "7.120236347223045e-307", 0x0060000000000000, "7.120236347223045e-307" },
    { "9.5367431640625e-7", 0x3eb0000000000000, "9.5367431640625e-7" },
    { "4.35", 0x4011666666666666, "4.35" },
    { "0.1", 0x3fb999999999999a, "0.1" },
    { "0.30000000000000004", 0x3fd3333333333334, "0.30000000000000004" },
    { "1e15", 0x430c6bf526340000, "1000000000000000" },
    { "1e16", 0x4341c37937e08000, "10000000000000000" },
    { "123456.789e-10", 0x3ee9e409301b5a02, "0.0000123456789" },
    { "100000000000000000000000", 0x44b52d02c7e14af6, "1e+23" },
    { "0.1e1", 0x3ff0000000000000, "1" },
    { "1000000000000000e-15", 0x3ff0000000000000, "1" },
    { "9.999999999999999e20", 0x444b1ae4d6e2ef4f, "999999999999999900000" },
    { "999999999999999900000", 0x444b1ae4d6e2ef4f, "999999999999999900000" },
    { "1e300", 0x7e37e43c8800759c, "1e+300" },
    { "1e-300", 0x01a56e1fc2f8f359, "1e-300" },
    { "8.41e21", 0x447c7e83209e90b2, "8.41e+21" },
    { "2.0e21", 0x445b1ae4d6e2ef50, "2e+21" },
    { "-1e-7", 0xbe7ad7f29abcaf48, "-1e-7" },
    { "0.00001234", 0x3ee9e0fcaf9380fc, "0.00001234" },
    { "1.00000000000000000000000000000000000001", 0x3ff0000000000000, "1" },
    { "9007199254740992.9999999999999999999999999999", 0x4340000000000000,
      "9007199254740992" },
    { "9007199254740993.00000000000000000000000000000000000000000001", 0x4340000000000001,
      "9007199254740994" },
    { "0.1000000000000000055511151231257827021181583404541015625", 0x3fb999999999999a,
      "0.1" },
    { "1e22", 0x4480f0cf064dd592, "1e+22" },
    { "1e-22", 0x3b5e392010175ee6, "1e-22" },
    { "5e-7", 0x3ea0c6f7a0b5ed8d, "5e-7" },
    { "12e-8", 0x3e801b2b29a4692b, "1.2e-7" },
};

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void test_reads_and_writes_as_node(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[NUMBER_TEXT_MAX], quick[NUMBER_TEXT_MAX];
        double value = (double)NAN;
        struct guard g;
        size_t n, q;

        guard_init(&g, str_from(cases[i].text));
        ok(number_parse(&value, g.bytes) && bits_of(value) == cases[i].bits,
           "%s means %016llx", cases[i].text, (unsigned long long)cases[i].bits);
        n = number_format(text, value, false);
        ok(str_is(str_of(text, n), cases[i].shortest), "%s is written %s", cases[i].text,
           cases[i].shortest);
        q = number_canonical(quick, g.bytes, false);
        ok(str_is(str_of(quick, q), cases[i].shortest), "%s: the quick way agrees",
           cases[i].text);
        guard_release(&g);
    }
}

static void test_packs_write_a_capital_e(void)
{
    static const struct {
        char text[32], want[NUMBER_TEXT_MAX];
    } rows[] = {
        { "1e21", "1E21" },
        { "1e-7", "1E-7" },
        { "1e20", "100000000000000000000" },
        { "-2.5e-10", "-2.5E-10" },
        { "1.7976931348623157e308", "1.7976931348623157E308" },
        { "0.000001", "0.000001" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[NUMBER_TEXT_MAX];
        size_t n = number_canonical(text, str_from(rows[i].text), true);

        ok(str_is(str_of(text, n), rows[i].want), "%s is %s in a pack", rows[i].text,
           rows[i].want);
    }
}

static void test_beyond_a_double_is_refused(void)
{
    static const char rows[][320] = {
        "1e309",
        "-1e309",
        "1.7976931348623159e308",
        "1e999999999999999999999",
        /* halfway between the largest double and 2^1024: rounds up */
        "1797693134862315807937289714053034150799341327100378269361737789804449682927"
        "6475094664901797758720709633028641669288791094655554785194040263065748867150"
        "5820681908902000708383676273854845817711531764475730270069855571366959622842"
        "9148198608349364752927190741684443655107043427115596995080930428801779041744"
        "97792",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[NUMBER_TEXT_MAX];
        double value = 42;

        ok(!number_parse(&value, str_from(rows[i])) && value == 42,
           "%.30s has no double, and the output is untouched", rows[i]);
        ok(number_canonical(text, str_from(rows[i]), false) == 0,
           "%.30s has no canonical text", rows[i]);
    }
}

/* The border between 1 and its successor, exactly and one digit beyond the 768th. */
static void test_far_digits_decide_a_tie(void)
{
    static const char half[] = "1.00000000000000011102230246251565404236316680908203125";
    char text[1200];
    double value = 0;
    size_t n = sizeof(half) - 1;

    memset(text, '0', sizeof(text));
    memcpy(text, half, n);
    ok(number_parse(&value, str_of(text, sizeof(text))) && value == 1.0,
       "a tie with many zeros goes to the even side");
    text[sizeof(text) - 1] = '1';
    ok(number_parse(&value, str_of(text, sizeof(text))) && value == 0x1.0000000000001p0,
       "a last digit past the tie goes up");
}

static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1du;
}

/* One in three is a border between two doubles, where rounding errs. */
static void random_text(char text[static 1100], uint64_t *state)
{
    uint64_t kind = random_bits(state) % 3, bits = random_bits(state);
    uint64_t above = bits + 1;
    double value, next;

    memcpy(&value, &bits, sizeof(value));
    memcpy(&next, &above, sizeof(next));
    if (kind == 0 && isfinite(value) && isfinite(next)) {
        long double border = ((long double)value + (long double)next) / 2;

        snprintf(text, 1100, "%.*Le", (int)(random_bits(state) % 40), border);
    } else if (kind == 1) {
        snprintf(text, 1100, "%llu.%llue%d", (unsigned long long)random_bits(state),
                 (unsigned long long)random_bits(state),
                 (int)(random_bits(state) % 700) - 360);
    } else {
        snprintf(text, 1100, "%llue%d", (unsigned long long)bits >> bits % 60,
                 (int)(random_bits(state) % 700) - 360);
    }
}

static void test_reads_as_the_c_library(void)
{
    uint64_t state = 20261115;
    long wrong = 0, refused = 0;
    char text[1100];

    for (long i = 0; i < 300000; i++) {
        double want, got = 0;

        random_text(text, &state);
        want = strtod(text, NULL);
        if (!isfinite(want) || !number_parse(&got, str_from(text))) {
            refused++;
            wrong += isfinite(want) != 0;
        } else if (bits_of(got) != bits_of(want)) {
            wrong++;
            printf("# %s\n", text);
        }
    }
    ok(wrong == 0 && refused < 150000, "300000 random texts mean what strtod says");
}

static void test_every_double_survives(void)
{
    uint64_t state = 785;
    long wrong = 0;

    for (long i = 0; i < 300000; i++) {
        uint64_t bits = random_bits(&state) & ~((uint64_t)1 << 63);
        char text[NUMBER_TEXT_MAX + 1], quick[NUMBER_TEXT_MAX];
        double value;
        size_t n;

        if (i % 3 == 0)
            bits &= ~(((uint64_t)1 << 52) - 1); /* powers of two: uneven neighbours */
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        n = number_format(text, value, i & 1);
        text[n] = '\0';
        wrong += strtod(text, NULL) != value;
        wrong += number_canonical(quick, str_of(text, n), i & 1) != n ||
                 memcmp(quick, text, n) != 0;
    }
    ok(wrong == 0, "300000 doubles read back from what we write");
}

static void test_no_locale_matters(void)
{
    double value = 0;

    /* setlocale() may fail: then the row shows nothing, but the others still do. */
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        tap_skip("a decimal comma changes nothing", "no such locale installed");
        return;
    }
    ok(number_parse(&value, STR("9007199254740993.000000000000000000000000000000001")) &&
           value == 9007199254740994.0,
       "a decimal comma changes nothing");
    setlocale(LC_ALL, "C");
}

int main(void)
{
    test_reads_and_writes_as_node();
    test_packs_write_a_capital_e();
    test_beyond_a_double_is_refused();
    test_far_digits_decide_a_tie();
    test_reads_as_the_c_library();
    test_every_double_survives();
    test_no_locale_matters();
    return tap_done();
}
