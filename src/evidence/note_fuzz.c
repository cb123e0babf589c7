/* SPDX-License-Identifier: Apache-2.0 */
/* A note that parses is its text, a newline and its signatures; it is signed only when
 * a signature really verifies; and signing it makes it signed, unless it was forged. */
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "evidence/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static struct secret_key secret;
static struct note_key key;

static void set_up(void)
{
    uint8_t seed[SEED_SIZE];
    struct err err;

    memset(seed, 7, sizeof(seed));
    must(secret_key_from_seed(&secret, seed, &err) == 0 &&
         note_key_make(&key, STR("recorder.example/log1"), secret.public_key, &err) == 0);
}

static void check_key_text(str text)
{
    CLEANUP(buf_release) struct buf again = { 0 };
    struct note_key parsed;
    struct err err;

    if (note_key_parse(&parsed, text, &err) < 0)
        return;
    note_key_add(&again, &parsed);
    must(str_equal(buf_str(&again), text));
}

/* Found without the parser: does any line end in a good signature by our key? */
static bool has_good_signature(const struct note *n)
{
    str rest = n->signatures, line;

    while (str_line(&rest, &line)) {
        uint8_t bytes[4 + SIGNATURE_SIZE];

        if (line.n >= 92 &&
            base64_decode_exact(bytes, sizeof(bytes), str_skip(line, line.n - 92)) &&
            signature_valid(bytes + 4, key.public_key, n->text))
            return true;
    }
    return false;
}

static void check_signed_again(const struct note *n, str bytes, enum note_verdict before)
{
    CLEANUP(buf_release) struct buf more = { 0 };
    struct note signed_note;
    struct err err;

    buf_add(&more, bytes);
    must(note_sign(&more, n->text, &key, &secret, &err) == 0);
    if (note_parse(&signed_note, buf_str(&more), &err) < 0) {
        must(err.code == ERR_LIMIT);
        return;
    }
    must(note_verify(&signed_note, &key, 1) ==
         (before == NOTE_FORGED ? NOTE_FORGED : NOTE_SIGNED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str bytes = str_of(data, size);
    enum note_verdict verdict;
    struct note n;
    struct err err;

    if (!key.name[0])
        set_up();
    check_key_text(bytes);
    if (note_parse(&n, bytes, &err) < 0)
        return 0;
    must(n.text.p == bytes.p && n.text.n + 1 + n.signatures.n == bytes.n &&
         str_ends(n.text, STR("\n")) && bytes.p[n.text.n] == '\n');
    verdict = note_verify(&n, &key, 1);
    must(verdict != NOTE_SIGNED || has_good_signature(&n));
    check_signed_again(&n, bytes, verdict);
    return 0;
}
