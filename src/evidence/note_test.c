/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/note.h"

#include "base/err.h"
#include "tests/tap.h"

/* The example of the C2SP specification; the others were made with Python's
 * cryptography package from the seeds 32 x 07 and 32 x 08. */
#define EXAMPLE_KEY                                                                      \
    "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
#define EXAMPLE_TEXT "This is an example message.\n"
#define EXAMPLE_LINE                                                                     \
    "— example.com/foo "                                                               \
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mF"             \
    "XmRKuwHjG1Yu72IneyaQM=\n"
#define EXAMPLE EXAMPLE_TEXT "\n" EXAMPLE_LINE

#define LOG_KEY                                                                          \
    "recorder.example/log1+1c035d9d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
#define WITNESS_KEY                                                                      \
    "witness.example/w+97eda99b+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK"
#define LOG_TEXT                                                                         \
    "recorder.example/log1\n70000\niAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhDI=\n"
#define LOG_LINE                                                                         \
    "— recorder.example/log1 "                                                         \
    "HANdnWzVbsCHtYUwU0xamWG37hcAh9gihsunddMoVojHykXYkEVOwePUnX0tzbjj42vqNyy"            \
    "/Yhju2zJWn/mEgmSjIAU=\n"
#define WITNESS_LINE                                                                     \
    "— witness.example/w "                                                             \
    "l+2pm1lXzqOVhxzd1K8YTciHyErndxhqtm+8Wibr2wpsEr15bCbjcOKY8mPPqAp5FwcEYe"             \
    "Hbgh1mXaaswW/zinkn8Qs=\n"
#define ANY_LINE "— x AAAAAAA=\n" /* key id 0 and one byte */

static struct note_key key_of(const char *vkey)
{
    struct note_key k = { 0 };
    struct err err;

    if (note_key_parse(&k, str_from(vkey), &err) < 0)
        ok(false, "%s: %s", vkey, err.msg);
    return k;
}

static struct secret_key secret_of(uint8_t byte)
{
    struct secret_key k = { 0 };
    uint8_t seed[SEED_SIZE];
    struct err err;

    memset(seed, byte, sizeof(seed));
    if (secret_key_from_seed(&k, seed, &err) < 0)
        ok(false, "%s", err.msg);
    return k;
}

static void test_verifier_keys_round_trip(void)
{
    static const char *const rows[] = {
        EXAMPLE_KEY,
        LOG_KEY,
        WITNESS_KEY,
        "né—x+8c303e92+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };
        struct note_key k = key_of(rows[i]);

        note_key_add(&b, &k);
        ok(str_is(buf_str(&b), rows[i]), "%s", rows[i]);
    }
}

static void test_verifier_keys_are_strict(void)
{
    static const struct {
        const char *what;
        const char *vkey;
    } rows[] = {
        { "nothing", "" },
        { "a name only", "x" },
        { "no key", "x+021156a7" },
        { "an empty key", "x+021156a7+" },
        { "an empty name", "+021156a7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs" },
        { "a space in the name",
          "x y+021156a7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs" },
        { "an id in upper case",
          "example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k" },
        { "a short id", "x+021156a+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs" },
        { "the id of another name",
          "y+021156a7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs" },
        { "another type", "x+021156a7+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs" },
        { "a short key", "x+021156a7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURg==" },
        { "a byte behind it",
          "x+021156a7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIsAA==" },
        { "a newline behind it",
          "x+021156a7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs\n" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct note_key k = { .name = "untouched" };
        struct err err = { 0 };

        ok(note_key_parse(&k, str_from(rows[i].vkey), &err) < 0 &&
               err.code == ERR_FORMAT && str_is(str_from(k.name), "untouched"),
           "no verifier key: %s", rows[i].what);
    }
}

static void test_names(void)
{
    const struct {
        const char *what;
        str name;
        bool good;
    } rows[] = {
        { "a plain name", STR("assay.local/0123456789abcdef"), true },
        { "letters beyond ASCII", STR("n\xc3\xa9\xe2\x80\x94x"), true },
        { "the empty name", STR(""), false },
        { "a space", STR("a b"), false },
        { "a plus", STR("a+b"), false },
        { "a newline", STR("a\n"), false },
        { "a NUL", STR("a\0b"), false },
        { "a control character", STR("a\x1b"), false },
        { "DEL", STR("a\x7f"), false },
        { "a C1 control character", STR("a\xc2\x9b"), false },
        { "a no-break space", STR("a\xc2\xa0"), false },
        { "a line separator", STR("a\xe2\x80\xa8"), false },
        { "an ideographic space", STR("\xe3\x80\x80"), false },
        { "half a character", STR("a\xe2\x80"), false },
    };
    char longest[NOTE_NAME_MAX + 1];
    uint8_t public_key[PUBLIC_SIZE] = { 0 };
    struct err err = { 0 };
    struct note_key k;

    for (size_t i = 0; i < COUNT(rows); i++)
        ok((note_key_make(&k, rows[i].name, public_key, &err) == 0) == rows[i].good,
           "%s %s", rows[i].good ? "a name may be" : "no name:", rows[i].what);
    memset(longest, 'n', sizeof(longest));
    ok(note_key_make(&k, str_of(longest, NOTE_NAME_MAX), public_key, &err) == 0,
       "the longest name");
    ok(note_key_make(&k, str_of(longest, NOTE_NAME_MAX + 1), public_key, &err) < 0 &&
           err.code == ERR_LIMIT,
       "one byte more");
}

static void test_form(void)
{
    const struct {
        const char *what;
        str bytes;
        bool good;
    } rows[] = {
        { "the example", STR(EXAMPLE), true },
        { "two signatures", STR(EXAMPLE ANY_LINE), true },
        { "blank lines in the text", STR("a\n\n\nb\n\n" ANY_LINE), true },
        { "a text of one blank line", STR("\n\n" ANY_LINE), true },
        { "a long signature", STR("a\n\n— x AAAAAAAAAAAAAAAAAAAAAAAA\n"), true },
        { "DEL in the text", STR("a\x7f\n\n" ANY_LINE), true },
        { "nothing", STR(""), false },
        { "a newline", STR("\n"), false },
        { "two newlines", STR("\n\n"), false },
        { "no text", STR("\n" ANY_LINE), false },
        { "no signature", STR("a\n"), false },
        { "no signature after the blank line", STR("a\n\n"), false },
        { "no blank line", STR("a\n" ANY_LINE), false },
        { "a line that does not end", STR("a\n\n— x AAAAAAA="), false },
        { "bytes behind the last line", STR("a\n\n" ANY_LINE "b"), false },
        { "a line of text behind", STR("a\n\n" ANY_LINE "b\n"), false },
        { "a hyphen for the dash", STR("a\n\n- x AAAAAAA=\n"), false },
        { "no space after the dash", STR("a\n\n—x AAAAAAA=\n"), false },
        { "no name", STR("a\n\n—  AAAAAAA=\n"), false },
        { "a plus in a name", STR("a\n\n— x+ AAAAAAA=\n"), false },
        { "a no-break space in a name", STR("a\n\n— x\xc2\xa0y AAAAAAA=\n"), false },
        { "no base64", STR("a\n\n— x \n"), false },
        { "nothing after the name", STR("a\n\n— x\n"), false },
        { "an id without a signature", STR("a\n\n— x AAAAAA==\n"), false },
        { "no padding", STR("a\n\n— x AAAAAAA\n"), false },
        { "bits behind the end", STR("a\n\n— x AAAAAAB=\n"), false },
        { "a space behind", STR("a\n\n— x AAAAAAA= \n"), false },
        { "a tab in the text", STR("a\tb\n\n" ANY_LINE), false },
        { "a carriage return", STR("a\r\n\n" ANY_LINE), false },
        { "a NUL", STR("a\0\n\n" ANY_LINE), false },
        { "broken UTF-8", STR("a\xff\n\n" ANY_LINE), false },
        { "a surrogate", STR("a\xed\xa0\x80\n\n" ANY_LINE), false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct note n = { 0 };
        struct err err = { 0 };
        int r = note_parse(&n, rows[i].bytes, &err);

        ok((r == 0) == rows[i].good &&
               (r == 0 || (err.code == ERR_FORMAT && !n.text.p)) &&
               (r < 0 || n.text.n + 1 + n.signatures.n == rows[i].bytes.n),
           "%s: %s", rows[i].good ? "a note" : "no note", rows[i].what);
    }
}

/* A note of exactly n bytes. */
static void fill_note(struct buf *b, size_t n)
{
    buf_reset(b);
    while (b->n < n - sizeof(ANY_LINE) - 1)
        buf_add_char(b, 'a');
    buf_add(b, STR("\n\n" ANY_LINE));
}

static void test_limits(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct err err = { 0 };
    struct note n;

    fill_note(&b, NOTE_MAX);
    ok(b.n == NOTE_MAX && note_parse(&n, buf_str(&b), &err) == 0, "the largest note");
    fill_note(&b, NOTE_MAX + 1);
    ok(b.n == NOTE_MAX + 1 && note_parse(&n, buf_str(&b), &err) < 0 &&
           err.code == ERR_LIMIT,
       "one byte more");
    buf_reset(&b);
    buf_add(&b, STR("a\n\n"));
    for (int i = 0; i < NOTE_SIGNATURES_MAX; i++)
        buf_add(&b, STR(ANY_LINE));
    ok(note_parse(&n, buf_str(&b), &err) == 0, "as many signatures as allowed");
    buf_add(&b, STR(ANY_LINE));
    err.code = ERR_NONE;
    ok(note_parse(&n, buf_str(&b), &err) < 0 && err.code == ERR_LIMIT, "one more");
}

#define WRONG_LINE /* the last byte of the id is right, one of the signature is not */   \
    "— recorder.example/log1 "                                                         \
    "HANdnWzVbsCHtYUwU0xamWG37hcAh9gihsunddMoVojHykXYkEVOwePUnX0tzbjj42vqNyy"            \
    "/Yhju2zJWn/mEgmSjIAQ=\n"
#define SHORT_LINE    "— recorder.example/log1 HANdnWw=\n"
#define OTHER_ID_LINE /* the log's name, another key's id and signature */               \
    "— recorder.example/log1 "                                                         \
    "l+2pm1lXzqOVhxzd1K8YTciHyErndxhqtm+8Wibr2wpsEr15bCbjcOKY8mPPqAp5FwcEYe"             \
    "Hbgh1mXaaswW/zinkn8Qs=\n"

static void test_verdicts(void)
{
    const struct {
        const char *what;
        str bytes;
        enum note_verdict verdict;
    } rows[] = {
        { "by the log", STR(LOG_TEXT "\n" LOG_LINE), NOTE_SIGNED },
        { "by both", STR(LOG_TEXT "\n" LOG_LINE WITNESS_LINE), NOTE_SIGNED },
        { "by the witness alone", STR(LOG_TEXT "\n" WITNESS_LINE), NOTE_SIGNED },
        { "twice by the log", STR(LOG_TEXT "\n" LOG_LINE LOG_LINE), NOTE_SIGNED },
        { "by a stranger too", STR(LOG_TEXT "\n" ANY_LINE LOG_LINE), NOTE_SIGNED },
        { "another key's id under the log's name",
          STR(LOG_TEXT "\n" OTHER_ID_LINE LOG_LINE), NOTE_SIGNED },
        { "by strangers", STR(LOG_TEXT "\n" ANY_LINE), NOTE_UNSIGNED },
        { "by another key of that name", STR(LOG_TEXT "\n" OTHER_ID_LINE),
          NOTE_UNSIGNED },
        { "by the example's key", STR(EXAMPLE), NOTE_UNSIGNED },
        { "a wrong signature", STR(LOG_TEXT "\n" WRONG_LINE), NOTE_FORGED },
        { "a short signature", STR(LOG_TEXT "\n" SHORT_LINE), NOTE_FORGED },
        { "a right one and a wrong one", STR(LOG_TEXT "\n" LOG_LINE WRONG_LINE),
          NOTE_FORGED },
        { "a wrong one and another key's right one",
          STR(LOG_TEXT "\n" WRONG_LINE WITNESS_LINE), NOTE_FORGED },
        { "another text", STR("x" LOG_TEXT "\n" LOG_LINE), NOTE_FORGED },
        { "a blank line more", STR(LOG_TEXT "\n\n" LOG_LINE), NOTE_FORGED },
    };
    const struct note_key keys[] = { key_of(LOG_KEY), key_of(WITNESS_KEY) };
    struct err err = { 0 };
    struct note n;

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(note_parse(&n, rows[i].bytes, &err) == 0 &&
               note_verify(&n, keys, COUNT(keys)) == rows[i].verdict,
           "signed: %s", rows[i].what);
    ok(note_parse(&n, rows[0].bytes, &err) == 0 &&
           note_verify(&n, NULL, 0) == NOTE_UNSIGNED,
       "nobody is trusted when no key is");
}

static void test_the_published_example(void)
{
    struct note_key k = key_of(EXAMPLE_KEY);
    struct err err = { 0 };
    struct note n;

    ok(note_parse(&n, STR(EXAMPLE), &err) == 0 && str_is(n.text, EXAMPLE_TEXT) &&
           str_is(n.signatures, EXAMPLE_LINE) && note_verify(&n, &k, 1) == NOTE_SIGNED,
       "the example of the specification is signed");
}

static void test_signing(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    CLEANUP(buf_release) struct buf small = { .max = 100 };
    CLEANUP(secret_key_release) struct secret_key seven = secret_of(7);
    CLEANUP(secret_key_release) struct secret_key eight = secret_of(8);
    struct note_key k = key_of(LOG_KEY), other = key_of(WITNESS_KEY);
    struct err err = { 0 };

    ok(note_sign(&b, STR(LOG_TEXT), &k, &seven, &err) == 0 &&
           str_is(buf_str(&b), LOG_LINE),
       "our signature is the one that other code makes");
    ok(note_sign(&b, STR(LOG_TEXT), &k, &eight, &err) < 0 && err.code == ERR_REFUSED &&
           str_is(buf_str(&b), LOG_LINE),
       "a key signs under its own name only");
    ok(note_sign(&b, STR("no newline"), &k, &seven, &err) < 0 &&
           note_sign(&b, STR(""), &k, &seven, &err) < 0 &&
           note_sign(&b, STR("a\tb\n"), &k, &seven, &err) < 0,
       "what is no text of a note is not signed");
    err.code = ERR_NONE;
    ok(note_sign(&small, STR(LOG_TEXT), &k, &seven, &err) < 0 && err.code == ERR_LIMIT,
       "no room is told");
    ok(note_key_equal(&k, &k) && !note_key_equal(&k, &other), "keys are compared");
}

/* Every bit of a signed note: it may stop being one or stop verifying, nothing else. */
static void test_no_flipped_bit_verifies(void)
{
    static const char good[] = LOG_TEXT "\n" LOG_LINE;
    struct note_key k = key_of(LOG_KEY);
    unsigned verified = 0;
    char bad[sizeof(good)];

    for (size_t bit = 0; bit < 8 * (sizeof(good) - 1); bit++) {
        struct err err;
        struct note n;

        memcpy(bad, good, sizeof(good));
        bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        verified += note_parse(&n, str_of(bad, sizeof(good) - 1), &err) == 0 &&
                    note_verify(&n, &k, 1) == NOTE_SIGNED;
    }
    ok(verified == 0, "no flipped bit of a note verifies");
}

int main(void)
{
    test_verifier_keys_round_trip();
    test_verifier_keys_are_strict();
    test_names();
    test_form();
    test_limits();
    test_verdicts();
    test_the_published_example();
    test_signing();
    test_no_flipped_bit_verifies();
    return tap_done();
}
