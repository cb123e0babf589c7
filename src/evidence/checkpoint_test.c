/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/checkpoint.h"

#include "base/codec.h"
#include "base/err.h"
#include "tests/tap.h"

#define ROOT  "iAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhDI=\n"
#define EMPTY "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n" /* SHA-256("") */

/* Made with Python's cryptography package from the seed 32 x 07. */
#define VKEY "recorder.example/log1+1c035d9d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
#define TEXT "recorder.example/log1\n70000\n" ROOT
#define LINE                                                                             \
    "— recorder.example/log1 "                                                         \
    "HANdnWzVbsCHtYUwU0xamWG37hcAh9gihsunddMoVojHykXYkEVOwePUnX0tzbjj42vqNyy"            \
    "/Yhju2zJWn/mEgmSjIAU=\n"

static void test_form(void)
{
    const struct {
        const char *what;
        str text;
        bool good;
    } rows[] = {
        { "a plain one", STR(TEXT), true },
        { "an origin with spaces", STR("go.sum database tree\n1\n" ROOT), true },
        { "the empty tree", STR("o\n0\n" EMPTY), true },
        { "an extension line", STR(TEXT "more\n"), true },
        { "the largest size", STR("o\n9223372036854775807\n" ROOT), true },
        { "one size more", STR("o\n9223372036854775808\n" ROOT), false },
        { "a size beyond 64 bits", STR("o\n18446744073709551616\n" ROOT), false },
        { "nothing", STR(""), false },
        { "a newline", STR("\n"), false },
        { "an empty origin", STR("\n1\n" ROOT), false },
        { "an origin that is not UTF-8", STR("\xff\n1\n" ROOT), false },
        { "a NUL in the origin", STR("a\0b\n1\n" ROOT), false },
        { "a tab in the origin", STR("a\tb\n1\n" ROOT), false },
        { "no size", STR("o\n" ROOT), false },
        { "an empty size", STR("o\n\n" ROOT), false },
        { "a leading zero", STR("o\n01\n" ROOT), false },
        { "two zeros", STR("o\n00\n" EMPTY), false },
        { "a sign", STR("o\n+1\n" ROOT), false },
        { "a space before the size", STR("o\n 1\n" ROOT), false },
        { "no root", STR("o\n1\n"), false },
        { "a short root", STR("o\n1\niAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhA==\n"),
          false },
        { "a long root", STR("o\n1\niAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhDIA\n"),
          false },
        { "bits behind the root",
          STR("o\n1\niAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhDJ=\n"), false },
        { "a wrong root of the empty tree", STR("o\n0\n" ROOT), false },
        { "an empty extension line", STR(TEXT "\n"), false },
        { "a line that does not end", STR(TEXT "more"), false },
        { "a root line that does not end",
          STR("o\n1\niAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhDI="), false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct checkpoint c = { .size = 77 };
        struct err err = { 0 };
        int r = checkpoint_parse(&c, rows[i].text, &err);

        ok((r == 0) == rows[i].good &&
               (r == 0 || (c.size == 77 && err.code == ERR_FORMAT)),
           "%s: %s", rows[i].good ? "a checkpoint" : "no checkpoint", rows[i].what);
    }
}

static void test_origin_limit(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct checkpoint c;
    struct err err = { 0 };

    for (int i = 0; i < NOTE_NAME_MAX; i++)
        buf_add_char(&b, 'o');
    buf_add(&b, STR("\n1\n" ROOT));
    ok(checkpoint_parse(&c, buf_str(&b), &err) == 0 && strlen(c.origin) == NOTE_NAME_MAX,
       "the longest origin");
    buf_reset(&b);
    for (int i = 0; i < NOTE_NAME_MAX + 1; i++)
        buf_add_char(&b, 'o');
    buf_add(&b, STR("\n1\n" ROOT));
    ok(checkpoint_parse(&c, buf_str(&b), &err) < 0 && err.code == ERR_LIMIT,
       "one byte more");
}

static void test_values_and_round_trip(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct checkpoint c;
    struct digest want;
    struct err err = { 0 };

    ok(checkpoint_parse(&c, STR(TEXT), &err) == 0 && c.size == 70000 &&
           str_is(str_from(c.origin), "recorder.example/log1") &&
           digest_from_hex(&want, STR("880ce9d73812ee70927f2f3d87636c14"
                                      "897f1a840402c8d15f2b904b0def8432")) &&
           digest_equal(&c.root, &want),
       "origin, size and root are read");
    checkpoint_add(&b, &c);
    ok(str_is(buf_str(&b), TEXT), "and written as they were");
}

static void test_opening(void)
{
    const struct {
        const char *what;
        str bytes;
        enum note_verdict verdict;
    } rows[] = {
        { "signed", STR(TEXT "\n" LINE), NOTE_SIGNED },
        { "by a stranger", STR(TEXT "\n— x AAAAAAA=\n"), NOTE_UNSIGNED },
        { "another size", STR("recorder.example/log1\n70001\n" ROOT "\n" LINE),
          NOTE_FORGED },
        { "an extension line added", STR(TEXT "more\n\n" LINE), NOTE_FORGED },
    };
    struct note_key key;
    struct err err = { 0 };

    if (note_key_parse(&key, STR(VKEY), &err) < 0)
        ok(false, "%s", err.msg);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct checkpoint c = { .size = 77 };
        enum note_verdict verdict = NOTE_FORGED;

        ok(checkpoint_open(&c, &verdict, rows[i].bytes, &key, 1, &err) == 0 &&
               verdict == rows[i].verdict &&
               c.size == (verdict == NOTE_SIGNED ? 70000 : 77),
           "opened: %s", rows[i].what);
    }
}

static void test_opening_what_is_no_checkpoint(void)
{
    const str rows[] = { STR(""), STR(TEXT), STR("hello\n\n" LINE), STR(TEXT LINE) };

    for (size_t i = 0; i < COUNT(rows); i++) {
        enum note_verdict verdict = NOTE_UNSIGNED;
        struct checkpoint c = { .size = 77 };
        struct err err = { 0 };

        ok(checkpoint_open(&c, &verdict, rows[i], NULL, 0, &err) < 0 &&
               err.code == ERR_FORMAT && c.size == 77,
           "bad form is an error, not a verdict: %s", err.msg);
    }
}

int main(void)
{
    test_form();
    test_origin_limit();
    test_values_and_round_trip();
    test_opening();
    test_opening_what_is_no_checkpoint();
    return tap_done();
}
