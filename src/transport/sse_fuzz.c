/* SPDX-License-Identifier: Apache-2.0 */
/* However a stream is cut, its events are the same, and the same that a plain reading of
 * the standard gives; what is written as an event is read back, its line ends as LF. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "tests/http_stream.h"
#include "transport/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void tell(struct buf *out, str type, str id, str data, int64_t retry)
{
    buf_printf(out, "%zu %zu %zu %lld ", type.n, id.n, data.n, (long long)retry);
    buf_add(out, type);
    buf_add(out, id);
    buf_add(out, data);
}

/* Events with data, one after the other; -1 when refused. */
static int read_events(struct buf *out, str bytes, uint32_t seed)
{
    struct cuts cuts = { .rest = bytes, .seed = seed };
    CLEANUP(buf_release) struct buf data = { .max = (size_t)64 << 20 };
    CLEANUP(sse_release) struct sse s;
    enum sse_token token = SSE_MORE;
    int64_t retry = -1;
    str piece, span;

    sse_init(&s, 0);
    while (token != SSE_REFUSED && cuts_next(&cuts, &piece)) {
        while ((token = sse_feed(&s, &piece, &span)) != SSE_MORE &&
               token != SSE_REFUSED) {
            if (token == SSE_DATA)
                buf_add(&data, span);
            if (token == SSE_EVENT && s.has_retry)
                retry = s.retry;
            if (token == SSE_EVENT && s.has_data)
                tell(out, buf_str(&s.type), buf_str(&s.id), buf_str(&data), retry);
            if (token == SSE_EVENT)
                buf_reset(&data);
        }
    }
    free(cuts.piece);
    return token == SSE_REFUSED ? -1 : 0;
}

/* The standard, word by word, over a stream that is all there. */
struct plain {
    struct buf data, type, id, last_id;
    int64_t retry;
};

static bool take_line(str *rest, str *line)
{
    size_t n = 0;

    while (n < rest->n && rest->p[n] != '\r' && rest->p[n] != '\n')
        n++;
    if (n == rest->n)
        return false;
    *line = str_first(*rest, n);
    *rest = str_skip(
        *rest,
        n + (n + 1 < rest->n && rest->p[n] == '\r' && rest->p[n + 1] == '\n' ? 2 : 1));
    return true;
}

static void set(struct buf *b, str value)
{
    buf_reset(b);
    buf_add(b, value);
}

static void plain_retry(struct plain *p, str value)
{
    int64_t ms = 0;

    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return;
        if (ms <= SSE_RETRY_MAX)
            ms = 10 * ms + value.p[i] - '0';
    }
    if (value.n)
        p->retry = ms < SSE_RETRY_MAX ? ms : SSE_RETRY_MAX;
}

static void plain_field(struct plain *p, str name, str value)
{
    if (str_is(name, "event"))
        set(&p->type, value);
    if (str_is(name, "data")) {
        buf_add(&p->data, value);
        buf_add_char(&p->data, '\n');
    }
    if (str_is(name, "id") && !(value.n && memchr(value.p, '\0', value.n)))
        set(&p->id, value);
    if (str_is(name, "retry"))
        plain_retry(p, value);
}

static void plain_line(struct plain *p, str line, struct buf *out)
{
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    str name = colon ? str_first(line, (size_t)(colon - line.p)) : line;
    str value = colon ? str_skip(line, name.n + 1) : str_of("", 0);

    if (line.n) {
        if (str_starts(value, STR(" ")))
            value = str_skip(value, 1);
        if (name.n)
            plain_field(p, name, value);
        return;
    }
    set(&p->last_id, buf_str(&p->id));
    if (p->data.n)
        tell(out, buf_str(&p->type), buf_str(&p->last_id),
             str_first(buf_str(&p->data), p->data.n - 1), p->retry);
    buf_reset(&p->data);
    buf_reset(&p->type);
}

static void read_plainly(struct buf *out, str bytes)
{
    struct plain p = { .data = { .max = (size_t)64 << 20 }, .retry = -1 };
    str line;

    if (str_starts(bytes, STR("\xef\xbb\xbf")))
        bytes = str_skip(bytes, 3);
    while (take_line(&bytes, &line))
        plain_line(&p, line, out);
    buf_release(&p.data);
    buf_release(&p.type);
    buf_release(&p.id);
    buf_release(&p.last_id);
}

static void check_written(str message)
{
    CLEANUP(buf_release) struct buf written = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf read = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf want = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf lines = { .max = (size_t)64 << 20 };
    struct cuts cuts = { .rest = message, .seed = (uint32_t)message.n };
    struct sse_writer w;
    struct err err;
    str piece;

    for (size_t i = 0; i < message.n; i++) {
        if (message.p[i] == '\n' && i && message.p[i - 1] == '\r')
            continue;
        buf_add_char(&lines, message.p[i] == '\r' ? '\n' : message.p[i]);
    }
    tell(&want, STR("message"), STR("5"), buf_str(&lines), -1);
    must(sse_open(&w, &written, STR("message"), STR("5"), &err) == 0);
    while (cuts_next(&cuts, &piece))
        sse_add(&w, &written, piece);
    sse_close(&w, &written);
    must(read_events(&read, buf_str(&written), CUT_WHOLE) == 0 &&
         str_equal(buf_str(&read), buf_str(&want)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_release) struct buf first = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf plain = { .max = (size_t)64 << 20 };
    str bytes = str_of(data, size);
    int r = read_events(&first, bytes, CUT_WHOLE);

    for (uint32_t seed = 1; seed < 5; seed++) {
        CLEANUP(buf_release) struct buf other = { .max = (size_t)64 << 20 };

        must(read_events(&other, bytes, seed) == r &&
             str_equal(buf_str(&first), buf_str(&other)));
    }
    read_plainly(&plain, bytes);
    must(r < 0 ? str_starts(buf_str(&plain), buf_str(&first))
               : str_equal(buf_str(&plain), buf_str(&first)));
    check_written(bytes);
    return 0;
}
