/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include "tests/tap.h"

static void test_edges(void)
{
    const struct {
        uint32_t code_point;
        str bytes;
    } rows[] = {
        { 0, STR("\0") },
        { 0x7f, STR("\x7f") },
        { 0x80, STR("\xc2\x80") },
        { 0x7ff, STR("\xdf\xbf") },
        { 0x800, STR("\xe0\xa0\x80") },
        { 0xd7ff, STR("\xed\x9f\xbf") },
        { 0xe000, STR("\xee\x80\x80") },
        { 0xffff, STR("\xef\xbf\xbf") },
        { 0x10000, STR("\xf0\x90\x80\x80") },
        { 0x10ffff, STR("\xf4\x8f\xbf\xbf") },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t c = 77;
        char out[4];
        size_t n = utf8_put(out, rows[i].code_point);

        ok(str_equal(str_of(out, n), rows[i].bytes), "U+%04X is written",
           (unsigned)rows[i].code_point);
        ok(utf8_next(rows[i].bytes, &c) == n && c == rows[i].code_point &&
               utf8_valid(rows[i].bytes),
           "and read");
    }
}

static void test_what_is_not_utf8(void)
{
    const struct {
        const char *what;
        str bytes;
    } rows[] = {
        { "a continuation alone", STR("\x80") },
        { "an overlong NUL", STR("\xc0\x80") },
        { "an overlong slash", STR("\xc1\xaf") },
        { "an overlong three", STR("\xe0\x9f\xbf") },
        { "an overlong four", STR("\xf0\x8f\xbf\xbf") },
        { "the first surrogate", STR("\xed\xa0\x80") },
        { "the last surrogate", STR("\xed\xbf\xbf") },
        { "beyond U+10FFFF", STR("\xf4\x90\x80\x80") },
        { "F5", STR("\xf5\x80\x80\x80") },
        { "FF", STR("\xff") },
        { "half of two", STR("\xc3") },
        { "two of three", STR("\xe2\x82") },
        { "three of four", STR("\xf0\x9f\x99") },
        { "a letter inside", STR("\xe2\x82z") },
        { "a lead byte inside", STR("\xe2\xe2\x82") },
    };
    uint32_t c = 77;

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(utf8_next(rows[i].bytes, &c) == 0 && c == 77 && !utf8_valid(rows[i].bytes),
           "not UTF-8: %s", rows[i].what);
    ok(utf8_next(STR(""), &c) == 0, "nothing has no first character");
    ok(utf8_valid(STR("")) && utf8_valid((str){ NULL, 0 }), "but it is valid");
    ok(!utf8_valid(STR("fine\xc3")), "a good start does not help");
}

static void test_every_code_point(void)
{
    unsigned wrong = 0;

    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        uint32_t back = 0;
        char out[4];
        size_t n = utf8_put(out, c);
        bool surrogate = c >= 0xd800 && c <= 0xdfff;

        wrong += utf8_next(str_of(out, n), &back) != (surrogate ? 0 : n) ||
                 (!surrogate && back != c);
    }
    ok(wrong == 0, "every code point goes there and back, surrogates do not");
}

int main(void)
{
    test_edges();
    test_what_is_not_utf8();
    test_every_code_point();
    return tap_done();
}
