/* SPDX-License-Identifier: Apache-2.0 */
/* However a stream of requests or responses is cut, it is read the same, heads and
 * bodies; a head that is taken has one framing and, written anew, is read again as it
 * was. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "tests/http_stream.h"
#include "transport/http_encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bool all_equal(const struct http_head *a, const struct http_head *b)
{
    if (a->count != b->count || a->status != b->status || a->chunked != b->chunked ||
        a->has_length != b->has_length || a->length != b->length ||
        !str_equal(a->method, b->method) || !str_equal(a->target, b->target))
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!str_equal(http_head_name(a, i), http_head_name(b, i)) ||
            !str_equal(http_head_value(a, i), http_head_value(b, i)))
            return false;
    }
    return true;
}

/* False when it does not fit: a space behind the colon may make it too long. */
static bool write_head(struct buf *out, const struct http_head *h)
{
    struct err err;

    if (h->kind == HTTP_REQUEST)
        must(http_put_request(out, h->method, h->target, &err) == 0);
    else
        must(http_put_status(out, h->status, STR(""), &err) == 0);
    for (size_t i = 0; i < h->count; i++) {
        str name = http_head_name(h, i), value = http_head_value(h, i);
        bool fits = name.n + 2 + value.n <= HTTP_HEADER_MAX;
        size_t from = out->n, n;

        must((http_put_header(out, name, value, &err) == 0) == fits);
        n = out->n - from;
        if (!fits)
            return false;
        http_put_same(out, h, i);
        must(out->n == from + 2 * n && memcmp(out->p + from, out->p + from + n, n) == 0);
        out->n -= n;
    }
    http_put_end(out);
    return out->n <= HTTP_HEAD_MAX;
}

/* The parser's first reading, written anew by the encoder. */
static void check_written_anew(str bytes, enum http_kind kind)
{
    CLEANUP(buf_release) struct buf again = { 0 };
    CLEANUP(http_head_release) struct http_head h, second;
    size_t used;

    http_head_init(&h, kind);
    http_head_init(&second, kind);
    if (http_head_feed(&h, bytes, &used) != HTTP_DONE)
        return;
    must(used <= bytes.n && used <= HTTP_HEAD_MAX && h.count <= HTTP_HEADERS_MAX);
    must(!(h.chunked && h.has_length) && (!h.chunked || h.minor == 1));
    must(kind == HTTP_RESPONSE || h.host.p || h.minor == 0);
    must(!memchr(bytes.p, '\0', used));
    if (h.minor == 1 && write_head(&again, &h)) /* HTTP/1.0 is never written */
        must(http_head_feed(&second, buf_str(&again), &used) == HTTP_DONE &&
             used == again.n && all_equal(&h, &second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str bytes = str_of(data, size);

    for (int kind = HTTP_REQUEST; kind <= HTTP_RESPONSE; kind++) {
        CLEANUP(buf_release) struct buf out = { .max = (size_t)64 << 20 };

        must(http_stream_same(&out, bytes, (enum http_kind)kind, 5));
        if (size)
            check_written_anew(bytes, (enum http_kind)kind);
    }
    return 0;
}
