/* SPDX-License-Identifier: Apache-2.0 */
#include "json/text.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "tests/guard.h"
#include "tests/tap.h"

/* What text_scan() promises, said with the one-code-point decoder. */
static size_t plain_length(str s)
{
    size_t at = 0;
    uint32_t c;

    while (at < s.n) {
        size_t n = utf8_next(str_skip(s, at), &c);

        if (n == 0 || c < 0x20 || c == '"' || c == '\\')
            break;
        at += n;
    }
    return at;
}

/* Every two bytes, at every place in and across blocks, against a guard page. */
static void test_scan_stops_at_the_same_byte(void)
{
    static const unsigned char around[] = { 'x', 0x80, 0xa0, 0xbf, 0xe2, 0xf0 };
    static const char fill[] =
        "abc\xe2\x82\xac\xc3\xa9 \xf0\x9f\x98\x80 defghi\xe2\x82\xac jklmno";
    CLEANUP(guard_release) struct guard g = { 0 };
    char *text;
    long wrong = 0;

    guard_init(&g, str_of(fill, sizeof(fill) - 1));
    text = g.map + (g.bytes.p - g.map);
    for (size_t at = 0; at + 2 < g.bytes.n; at++) {
        for (unsigned pair = 0; pair < 0x10000; pair++) {
            memcpy(text, fill, g.bytes.n);
            text[at] = (char)(pair >> 8);
            text[at + 1] = (char)pair;
            text[at + 2] = (char)around[pair % sizeof(around)];
            wrong += text_scan(text, text + g.bytes.n) != text + plain_length(g.bytes);
        }
    }
    ok(wrong == 0, "any two bytes at any place");
}

static void test_every_code_point_is_plain_or_not(void)
{
    char text[40];
    long wrong = 0;

    for (uint32_t c = 0; c < 0x110000; c++) {
        bool good = c >= 0x20 && c != '"' && c != '\\' && !text_is_surrogate(c);
        size_t at = c % 20, n;

        memset(text, 'x', sizeof(text));
        n = utf8_put(text + at, c);
        wrong +=
            text_scan(text, text + sizeof(text)) != text + (good ? sizeof(text) : at);
        wrong += text_scan(text + at, text + at + n) != text + at + (good ? n : 0);
    }
    ok(wrong == 0, "1114112 code points");
}

static void test_escapes(void)
{
    static const struct {
        const char *text;
        size_t used;
        uint32_t code_point;
    } rows[] = {
        { "\\n", 2, '\n' },
        { "\\/x", 2, '/' },
        { "\\u0041", 6, 'A' },
        { "\\uFFFf0", 6, 0xffff },
        { "\\ud83d\\ude00", 12, 0x1f600 },
        { "\\udbff\\udfff", 12, 0x10ffff },
        { "\\ud83d", 6, 0xd83d },
        { "\\ud83d\\u0041", 6, 0xd83d },
        { "\\ud83d\\ud83d", 6, 0xd83d },
        { "\\ud83d\\n", 6, 0xd83d },
        { "\\ude00\\ud83d", 6, 0xde00 },
        { "\\", 0, 0 },
        { "\\x", 0, 0 },
        { "\\u", 0, 0 },
        { "\\u123", 0, 0 },
        { "\\u12g4", 0, 0 },
        { "\\U0041", 0, 0 },
        { "n", 0, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(guard_release) struct guard g = { 0 };
        uint32_t c = 0;

        guard_init(&g, str_from(rows[i].text));
        ok(text_escape(g.bytes, &c) == rows[i].used && c == rows[i].code_point,
           "escape row %zu", i);
    }
}

static struct text plain(const char *s)
{
    return (struct text){ str_from(s), strchr(s, '\\') != NULL };
}

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

/* Two spellings of each, in ascending order. */
static void test_spelling_does_not_matter(void)
{
    static const char *const names[][2] = {
        { "", "" },
        { "a", "\\u0061" },
        { "a\\u0000", "\\u0061\\u0000" },
        { "a/b", "a\\/b" },
        { "abcdefgh", "abcdefg\\u0068" },
        { "abcdefghi", "\\u0061bcdefghi" },
        { "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxy\\u007a" },
        { "\xe2\x82\xac", "\\u20AC" },
        { "\xf0\x9f\x98\x80", "\\ud83d\\ude00" },
        { "\xef\xac\xb3", "\\ufb33" },
    };
    int wrong = 0;

    for (size_t i = 0; i < 2 * COUNT(names); i++) {
        for (size_t k = 0; k < 2 * COUNT(names); k++) {
            struct text a = plain(names[i / 2][i & 1]), b = plain(names[k / 2][k & 1]);
            int want = (i / 2 > k / 2) - (i / 2 < k / 2);

            wrong += sign(text_compare(a, b)) != want;
            wrong += text_equal(a, b) != (want == 0);
            wrong += want == 0 && text_hash(a) != text_hash(b);
            wrong += text_key(a) < text_key(b) && want >= 0;
            wrong += want == 0 && text_key(a) != text_key(b);
        }
    }
    ok(wrong == 0, "compare, equal, hash and key see decoded names");
}

/* Every byte at every place of every length around the size of a block. */
static void test_plain_is_what_needs_no_escape(void)
{
    int wrong = 0;

    for (size_t n = 0; n <= 40; n++) {
        char *exact = malloc(n ? n : 1); /* so that a byte beyond is found */
        char *copy = malloc(n ? n : 1);

        memset(exact, 'x', n);
        wrong += !text_is_plain(str_of(exact, n));
        wrong += text_put_plain(copy, str_of(exact, n)) != copy + n;
        for (size_t at = 0; at < n; at++) {
            for (int c = 0; c < 256; c++) {
                bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';

                exact[at] = (char)c;
                wrong += text_is_plain(str_of(exact, n)) != plain;
                wrong +=
                    text_put_plain(copy, str_of(exact, n)) != (plain ? copy + n : NULL);
                wrong += plain && memcmp(copy, exact, n) != 0;
            }
            exact[at] = 'x';
        }
        free(exact);
        free(copy);
    }
    ok(wrong == 0, "plain is what needs no escape, at every place and length");
}

int main(void)
{
    test_plain_is_what_needs_no_escape();
    test_scan_stops_at_the_same_byte();
    test_every_code_point_is_plain_or_not();
    test_escapes();
    test_spelling_does_not_matter();
    return tap_done();
}
