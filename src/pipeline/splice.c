/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/splice.h"

#include <assert.h>

void splice_begin(struct splice *s, str from)
{
    s->from = from;
    s->done = 0;
    s->out.max = SPLICE_MAX;
    buf_reset(&s->out);
}

void splice_release(struct splice *s)
{
    buf_release(&s->out);
    *s = (struct splice){ 0 };
}

static void keep_until(struct splice *s, size_t at)
{
    assert(at >= s->done && at <= s->from.n);
    buf_add(&s->out, str_of(s->from.p + s->done, at - s->done));
    s->done = at;
}

void splice_replace(struct splice *s, str what, str by)
{
    keep_until(s, (size_t)(what.p - s->from.p));
    buf_add(&s->out, by);
    s->done += what.n;
}

static void cut(struct splice *s, const char *from, const char *to)
{
    splice_replace(s, str_of(from, (size_t)(to - from)), STR(""));
}

/* With its comma: the one before it, or for the first ones the one behind. */
size_t splice_array(struct splice *s, const struct json *j, uint32_t array,
                    bool (*keep)(void *ctx, uint32_t node), void *ctx)
{
    const char *before = NULL;  /* the end of the element before, once one is kept */
    const char *pending = NULL; /* the start of elements that go, while none is kept */
    size_t kept = 0;
    str raw = { NULL, 0 };

    json_each (j, array, node) {
        raw = json_raw(j, node);
        if (keep(ctx, node)) {
            if (pending)
                cut(s, pending, raw.p);
            pending = NULL;
            kept++;
        } else if (kept) {
            cut(s, before, raw.p + raw.n);
        } else if (!pending) {
            pending = raw.p;
        }
        before = raw.p + raw.n;
    }
    if (pending)
        cut(s, pending, raw.p + raw.n);
    return kept;
}

int splice_end(struct splice *s, str *out, struct err *err)
{
    keep_until(s, s->from.n);
    if (buf_check(&s->out, "a message without what was cut from it", err) < 0)
        return -1;
    *out = buf_str(&s->out);
    return 0;
}
