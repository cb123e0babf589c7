/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/splice.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"

void splice_begin(struct splice *s, str from)
{
    s->from = from;
    s->count = 0;
    s->failed = false;
    s->out.max = SPLICE_MAX;
    buf_reset(&s->out);
}

void splice_release(struct splice *s)
{
    buf_release(&s->out);
    free(s->edits);
    *s = (struct splice){ 0 };
}

static bool make_room(struct splice *s)
{
    size_t cap = s->cap ? s->cap * 2 : 8;
    struct edit *more;

    if (s->count < s->cap)
        return true;
    more = realloc(s->edits, cap * sizeof(*more));
    if (!more)
        return false;
    s->edits = more;
    s->cap = cap;
    return true;
}

void splice_replace(struct splice *s, str what, str by)
{
    size_t from = (size_t)(what.p - s->from.p);

    assert(what.p >= s->from.p && from + what.n <= s->from.n);
    if (make_room(s))
        s->edits[s->count++] = (struct edit){ from, from + what.n, by };
    else
        s->failed = true;
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

/* The wider one first, so that what lies in it is behind it. */
static int compare(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to < y->to) - (x->to > y->to);
}

int splice_end(struct splice *s, str *out, struct err *err)
{
    size_t done = 0;

    if (s->failed)
        return err_set(err, ERR_NOMEM, "no memory to cut a message");
    if (s->count)
        qsort(s->edits, s->count, sizeof(*s->edits), compare);
    for (size_t i = 0; i < s->count; i++) {
        const struct edit *e = &s->edits[i];

        if (e->from < done)
            continue;
        buf_add(&s->out, str_of(s->from.p + done, e->from - done));
        buf_add(&s->out, e->by);
        done = e->to;
    }
    buf_add(&s->out, str_of(s->from.p + done, s->from.n - done));
    if (buf_check(&s->out, "a message without what was cut from it", err) < 0)
        return -1;
    *out = buf_str(&s->out);
    return 0;
}
