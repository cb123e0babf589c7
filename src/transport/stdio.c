/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/stdio.h"

#include <stdlib.h>

#include "base/err.h"

static void on_bytes(void *ctx, str bytes)
{
    struct stdio *s = ctx;
    const struct endpoint *e = &s->endpoint;
    const char *nl = memchr(bytes.p, '\n', bytes.n);
    bool many = e->events->on_many && nl && nl + 1 < bytes.p + bytes.n;

    if (many)
        e->events->on_many(e->ctx, true);
    while (bytes.n) {
        size_t n = nl ? (size_t)(nl - bytes.p) + 1 : bytes.n;

        s->inside = !nl;
        e->events->on_span(e->ctx, NULL, str_first(bytes, n), nl != NULL);
        bytes = str_skip(bytes, n);
        nl = bytes.n ? memchr(bytes.p, '\n', bytes.n) : NULL;
    }
    if (many)
        e->events->on_many(e->ctx, false);
}

static void on_end(void *ctx, const struct err *why)
{
    struct stdio *s = ctx;
    const struct endpoint *e = &s->endpoint;

    if (s->inside) /* a last line without its newline is a message all the same */
        e->events->on_span(e->ctx, NULL, STR(""), true);
    s->inside = false;
    e->events->on_ended(e->ctx, why);
}

static void on_drained(void *ctx)
{
    struct stdio *s = ctx;

    s->endpoint.events->on_drained(s->endpoint.ctx);
}

static void on_broken(void *ctx, const struct err *why)
{
    struct stdio *s = ctx;

    s->endpoint.events->on_gone(s->endpoint.ctx, why);
}

static const struct channel_events channel_events = { on_bytes, on_end, on_drained,
                                                      on_broken };

static struct stdio *of(struct endpoint *e)
{
    return (struct stdio *)e; /* its first member */
}

static void stdio_read(struct endpoint *e, bool on)
{
    channel_read(&of(e)->in, on);
}

static int stdio_send(struct endpoint *e, struct exchange *x, str bytes, bool end,
                      struct err *err)
{
    (void)x;
    (void)end; /* the line's end is among the bytes */
    return channel_write(&of(e)->out, bytes, err);
}

static void stdio_cork(struct endpoint *e, bool on)
{
    channel_cork(&of(e)->out, on);
}

static size_t stdio_queued(const struct endpoint *e)
{
    return channel_queued(&((const struct stdio *)e)->out);
}

static void stdio_finish(struct endpoint *e)
{
    channel_finish(&of(e)->out);
}

static void stdio_close(struct endpoint *e)
{
    /* Where one socket is both, the first that was opened knows how it was before us. */
    channel_close(&of(e)->out);
    channel_close(&of(e)->in);
}

static const struct endpoint_type stdio_type = {
    .name = "stdio",
    .is_lines = true,
    .read = stdio_read,
    .send = stdio_send,
    .cork = stdio_cork,
    .corks = true,
    .queued = stdio_queued,
    .finish = stdio_finish,
    .close = stdio_close,
};

int stdio_open(struct stdio *s, struct loop *l, int in, int out, bool keep,
               const struct endpoint_events *events, void *ctx, struct err *err)
{
    *s = (struct stdio){ .endpoint = { &stdio_type, events, ctx } };
    if (channel_open(&s->in, l, in, keep, &channel_events, s, err) < 0)
        return -1;
    if (channel_open(&s->out, l, out, keep, &channel_events, s, err) < 0) {
        channel_close(&s->in);
        return -1;
    }
    return 0;
}
