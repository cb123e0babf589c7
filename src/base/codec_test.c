/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

#include "tests/tap.h"

/* RFC 4648 §10, and all that hex and base64 must not be. */
static void test_base64(void)
{
    const struct {
        str bytes;
        const char *text;
    } rows[] = {
        { STR(""), "" },
        { STR("f"), "Zg==" },
        { STR("fo"), "Zm8=" },
        { STR("foo"), "Zm9v" },
        { STR("foob"), "Zm9vYg==" },
        { STR("fooba"), "Zm9vYmE=" },
        { STR("foobar"), "Zm9vYmFy" },
        { STR("\0\0\0"), "AAAA" },
        { STR("\xff\xef\xbe"), "/+++" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };
        char out[8];
        size_t n = 99, length = 99;
        str text = str_from(rows[i].text);

        base64_add(&b, rows[i].bytes.p, rows[i].bytes.n);
        ok(str_equal(buf_str(&b), text), "base64 writes '%s'", rows[i].text);
        ok(base64_decode(out, sizeof(out), &n, text) &&
               str_equal(str_of(out, n), rows[i].bytes) && base64_length(&length, text) &&
               length == n && base64_decode_exact(out, n, text) &&
               !base64_decode_exact(out, n + 1, text) &&
               (n == 0 || !base64_decode(out, n - 1, &length, text)),
           "and reads it, into just enough room");
    }
}

static void test_base64_is_strict(void)
{
    const str rows[] = {
        STR("Z"),
        STR("Zg"),
        STR("Zg="),
        STR("Zh=="),
        STR("Zm9="),
        STR("===="),
        STR("Z==="),
        STR("Zg==Zg=="),
        STR("Zg=A"),
        STR("Zm9v\n"),
        STR("Zm 9"),
        STR("Zm-_"),
        STR("Zm9\0"),
        STR("Zm9\xff"),
        STR("=Zg="),
        STR("Z=g="),
        STR("Zm9vZg=="
            "\n"),
    };
    char out[16];
    size_t n = 99;

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(!base64_decode(out, sizeof(out), &n, rows[i]) && !base64_length(&n, rows[i]) &&
               n == 99,
           "not base64, row %zu", i);
}

static void test_hex_of_every_length(void)
{
    uint8_t bytes[300], back[300];
    int wrong = 0;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        char text[601], one[3];

        text[2 * n] = '#';
        hex_encode(text, bytes, n);
        for (size_t i = 0; i < n; i++) {
            snprintf(one, sizeof(one), "%02x", bytes[i]);
            wrong += memcmp(text + 2 * i, one, 2) != 0;
        }
        wrong += text[2 * n] != '#';
        wrong += !hex_decode(back, n, str_of(text, 2 * n)) || memcmp(back, bytes, n) != 0;
    }
    ok(wrong == 0, "hex of 0 to 300 bytes is what printf() says");
}

static void test_hex(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    const str bad[] = { STR("00ffA0"),  STR("00ff0"), STR("00ff0g"), STR("00ff0:"),
                        STR("00ff000"), STR(""),      STR("0x00ff"), STR("00ff0\0") };
    char out[3];

    hex_add(&b, "\0\xff\xa0", 3);
    ok(str_is(buf_str(&b), "00ffa0"), "hex is lower case");
    ok(hex_decode(out, 3, buf_str(&b)) && memcmp(out, "\0\xff\xa0", 3) == 0, "and read");
    ok(hex_decode(out, 0, STR("")), "no digits are no bytes");
    for (size_t i = 0; i < COUNT(bad); i++)
        ok(!hex_decode(out, 3, bad[i]), "not three bytes in hex, row %zu", i);
}

static void test_numbers(void)
{
    const struct {
        str text;
        bool good;
        uint64_t value;
    } rows[] = {
        { STR("0"), true, 0 },
        { STR("7"), true, 7 },
        { STR("18446744073709551615"), true, UINT64_MAX },
        { STR("18446744073709551616"), false, 0 },
        { STR("99999999999999999999"), false, 0 },
        { STR("100000000000000000000"), false, 0 },
        { STR(""), false, 0 },
        { STR("00"), false, 0 },
        { STR("01"), false, 0 },
        { STR("+1"), false, 0 },
        { STR("-1"), false, 0 },
        { STR(" 1"), false, 0 },
        { STR("1 "), false, 0 },
        { STR("1\0"), false, 0 },
        { STR("1.0"), false, 0 },
        { STR("0x1"), false, 0 },
        { STR("\xef\xbc\x91"), false, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t value = 77;

        ok(u64_parse(&value, rows[i].text) == rows[i].good &&
               value == (rows[i].good ? rows[i].value : 77),
           "%s number, row %zu", rows[i].good ? "a" : "no", i);
    }
}

static void test_no_room(void)
{
    CLEANUP(buf_release) struct buf b = { .max = 7 };

    hex_add(&b, "\1\2\3\4", 4);
    ok(b.failed && b.n == 0, "eight digits do not fit seven bytes");
    buf_reset(&b);
    base64_add(&b, "\1\2\3\4", 4);
    ok(b.failed && b.n == 0, "nor two groups of base64");
}

static void test_formatting_numbers(void)
{
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = { { 0, "0" },
                 { 9, "9" },
                 { 10, "10" },
                 { 1000000, "1000000" },
                 { UINT64_MAX, "18446744073709551615" } };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char digits[U64_DIGITS];

        ok(str_is(str_of(digits, u64_format(digits, rows[i].value)), rows[i].text),
           "%s is written", rows[i].text);
    }
}

static void test_numbers_around_every_power_of_ten(void)
{
    int wrong = 0;

    for (uint64_t power = 1; power; power = power > UINT64_MAX / 10 ? 0 : power * 10) {
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            char digits[U64_DIGITS + 1], expected[32];
            int n =
                snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);

            digits[n] = '#';
            wrong += u64_format(digits, value) != (size_t)n || digits[n] != '#' ||
                     memcmp(digits, expected, (size_t)n) != 0;
        }
    }
    ok(wrong == 0, "as printf() writes them, and no byte more");
}

int main(void)
{
    test_numbers_around_every_power_of_ten();
    test_formatting_numbers();
    test_base64();
    test_base64_is_strict();
    test_hex();
    test_hex_of_every_length();
    test_numbers();
    test_no_room();
    return tap_done();
}
