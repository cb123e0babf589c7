/* SPDX-License-Identifier: Apache-2.0 */
/* What parses is written back as the first three lines of what was read; what opens as
 * signed is a note that verifies. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(str text)
{
    CLEANUP(buf_release) struct buf again = { 0 };
    struct checkpoint c, second;
    struct err err;

    if (checkpoint_parse(&c, text, &err) < 0)
        return;
    checkpoint_add(&again, &c);
    must(str_starts(text, buf_str(&again)));
    must(checkpoint_parse(&second, buf_str(&again), &err) == 0 && second.size == c.size &&
         digest_equal(&second.root, &c.root) &&
         str_equal(str_from(second.origin), str_from(c.origin)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char vkey[] =
        "recorder.example/log1+1c035d9d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
    str bytes = str_of(data, size);
    struct checkpoint c = { .size = UINT64_MAX };
    enum note_verdict verdict;
    struct note_key key;
    struct note n;
    struct err err;

    must(note_key_parse(&key, str_from(vkey), &err) == 0);
    check_text(bytes);
    if (checkpoint_open(&c, &verdict, bytes, &key, 1, &err) < 0)
        return 0;
    must(note_parse(&n, bytes, &err) == 0 && note_verify(&n, &key, 1) == verdict);
    must((verdict == NOTE_SIGNED) == (c.size != UINT64_MAX));
    check_text(n.text);
    return 0;
}
