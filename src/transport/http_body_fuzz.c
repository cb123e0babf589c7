/* SPDX-License-Identifier: Apache-2.0 */
/* However the bytes behind a head are cut, the content and the end are the same; content,
 * written as chunks of any size, is read back as it was. */
#include <stdint.h>
#include <stdlib.h>

#include "tests/http_stream.h"
#include "transport/http_encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Reads a chunked body into `out`; the verdict, and what is left of the bytes. */
static enum http_verdict read_body(struct buf *out, str bytes, uint32_t seed,
                                   size_t *rest)
{
    struct http_head head = { .chunked = true, .keep_alive = true, .minor = 1 };
    struct cuts cuts = { .rest = bytes, .seed = seed };
    enum http_verdict v = HTTP_MORE;
    struct http_body b;
    str piece, span;

    *rest = 0;
    http_body_of_request(&b, &head);
    while (v == HTTP_MORE && cuts_next(&cuts, &piece)) {
        do {
            v = http_body_feed(&b, &piece, &span);
            buf_add(out, span);
        } while (v == HTTP_MORE && piece.n);
        *rest = piece.n + cuts.rest.n;
    }
    free(cuts.piece);
    if (v == HTTP_REFUSED)
        buf_add(out, str_from(http_refusal_name(b.refusal)));
    return v;
}

static void check_any_cut(str bytes)
{
    CLEANUP(buf_release) struct buf first = { .max = (size_t)64 << 20 };
    size_t rest;
    enum http_verdict v = read_body(&first, bytes, CUT_WHOLE, &rest);

    for (uint32_t seed = 1; seed < 5; seed++) {
        CLEANUP(buf_release) struct buf other = { .max = (size_t)64 << 20 };
        size_t other_rest;

        must(read_body(&other, bytes, seed, &other_rest) == v &&
             str_equal(buf_str(&first), buf_str(&other)) && other_rest == rest);
    }
}

static void check_written_as_chunks(str content)
{
    CLEANUP(buf_release) struct buf chunks = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf read = { .max = (size_t)64 << 20 };
    struct cuts cuts = { .rest = content, .seed = (uint32_t)content.n + 2 };
    size_t rest;
    str piece;

    while (cuts_next(&cuts, &piece))
        http_chunk_add(&chunks, piece);
    http_chunk_last(&chunks);
    buf_add(&chunks, STR("next"));
    must(read_body(&read, buf_str(&chunks), CUT_WHOLE, &rest) == HTTP_DONE && rest == 4 &&
         str_equal(buf_str(&read), content));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_any_cut(str_of(data, size));
    check_written_as_chunks(str_of(data, size));
    return 0;
}
