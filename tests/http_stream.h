/* SPDX-License-Identifier: Apache-2.0 */
/* http_stream - for tests: a byte stream cut in some way, and what the HTTP codec reads
 * from it, as text. */
#ifndef TESTS_HTTP_STREAM_H
#define TESTS_HTTP_STREAM_H

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "transport/http_body.h"
#include "transport/http_head.h"

#define CUT_WHOLE 0
#define CUT_BYTES 1 /* any greater number: random places, by that seed */

/* Every piece lies in memory of its own, gone when the next comes: a sanitizer sees who
 * reads beyond it or keeps it. */
struct cuts {
    str rest;
    uint32_t seed;
    char *piece;
};

__attribute__((unused)) static bool cuts_next(struct cuts *c, str *piece)
{
    size_t n = c->rest.n;

    free(c->piece);
    c->piece = NULL;
    if (n == 0)
        return false;
    if (c->seed == CUT_BYTES)
        n = 1;
    if (c->seed > CUT_BYTES) {
        c->seed = c->seed * 1664525u + 1013904223u;
        c->seed |= 2; /* never one of the other ways */
        n = 1 + (c->seed >> 8) % (n < 40 ? n : 40);
    }
    c->piece = malloc(n);
    if (!c->piece)
        abort();
    memcpy(c->piece, c->rest.p, n);
    *piece = str_of(c->piece, n);
    c->rest = str_skip(c->rest, n);
    return true;
}

/* Messages one after the other on one connection. `out` gets a line for each: `brief`,
 * with the path and the bytes of content, or with all of its headers and content. The
 * last line says how it ended. */
struct http_stream {
    struct buf *out;
    bool brief;
    bool to_head; /* responses to HEAD */
    struct http_head head;
    struct http_body body;
    bool in_body, ended;
    uint64_t content; /* bytes, of the present body */
};

static void http_stream_tell_head(struct http_stream *s)
{
    const struct http_head *h = &s->head;

    if (h->kind == HTTP_REQUEST) {
        buf_add(s->out, h->method);
        buf_add_char(s->out, ' ');
        buf_add(s->out, s->brief ? h->parts.path : h->target);
        if (s->brief && h->parts.query.p)
            buf_add_char(s->out, '?');
        if (s->brief)
            buf_add(s->out, h->parts.query);
    } else {
        buf_printf(s->out, "%u ", h->status);
        buf_add(s->out, h->reason);
    }
    if (s->brief)
        return;
    buf_printf(s->out, " 1.%u %s%s", h->minor, h->keep_alive ? "keep" : "close",
               h->expect_continue ? " continue" : "");
    if (h->chunked)
        buf_add(s->out, STR(" chunked"));
    if (h->has_length)
        buf_printf(s->out, " length=%llu", (unsigned long long)h->length);
    for (size_t i = 0; i < h->count; i++) {
        buf_add(s->out, STR(" ["));
        buf_add(s->out, http_head_name(h, i));
        buf_add_char(s->out, '=');
        buf_add(s->out, http_head_value(h, i));
        buf_add_char(s->out, ']');
    }
    buf_add(s->out, STR(" <"));
}

static void http_stream_refuse(struct http_stream *s, enum http_refusal why)
{
    buf_printf(s->out, "%srefused %s %u\n", s->in_body ? "\n" : "",
               http_refusal_name(why), http_refusal_status(why));
    s->ended = true;
}

static void http_stream_end_message(struct http_stream *s)
{
    if (s->brief)
        buf_printf(s->out, " %llu\n", (unsigned long long)s->content);
    else
        buf_add(s->out, STR(">\n"));
    s->in_body = false;
    s->ended =
        !s->body.reusable && !(s->head.kind == HTTP_RESPONSE && s->head.status < 200);
    if (s->ended)
        buf_add(s->out, STR("closed\n"));
    http_head_reset(&s->head);
}

static void http_stream_feed_head(struct http_stream *s, str *in)
{
    size_t used;
    enum http_verdict v = http_head_feed(&s->head, *in, &used);

    *in = str_skip(*in, used);
    if (v == HTTP_REFUSED)
        http_stream_refuse(s, s->head.refusal);
    if (v != HTTP_DONE)
        return;
    http_stream_tell_head(s);
    if (s->head.kind == HTTP_REQUEST)
        http_body_of_request(&s->body, &s->head);
    else
        http_body_of_response(&s->body, &s->head, s->to_head);
    s->in_body = true;
    s->content = 0;
    if (s->body.verdict == HTTP_DONE)
        http_stream_end_message(s);
}

static void http_stream_feed(struct http_stream *s, str in)
{
    while (in.n && !s->ended) {
        enum http_verdict v;
        str content;

        if (!s->in_body) {
            http_stream_feed_head(s, &in);
            continue;
        }
        v = http_body_feed(&s->body, &in, &content);
        s->content += content.n;
        if (!s->brief)
            buf_add(s->out, content);
        if (v == HTTP_DONE)
            http_stream_end_message(s);
        if (v == HTTP_REFUSED)
            http_stream_refuse(s, s->body.refusal);
    }
}

static void http_stream_end(struct http_stream *s)
{
    if (s->ended)
        return;
    if (!s->in_body)
        buf_add(s->out, s->head.own.n ? STR("open in a head\n") : STR("open\n"));
    else if (http_body_end(&s->body) == HTTP_DONE)
        http_stream_end_message(s);
    else
        http_stream_refuse(s, s->body.refusal);
}

/* Read `bytes`, cut by `seed`, as messages of that kind. */
__attribute__((unused)) static void http_stream_read(struct buf *out, str bytes,
                                                     enum http_kind kind, uint32_t seed,
                                                     bool brief, bool to_head)
{
    struct http_stream s = { .out = out, .brief = brief, .to_head = to_head };
    struct cuts cuts = { .rest = bytes, .seed = seed };
    str piece;

    http_head_init(&s.head, kind);
    while (cuts_next(&cuts, &piece))
        http_stream_feed(&s, piece);
    http_stream_end(&s);
    http_head_release(&s.head);
}

/* The same, in `ways` ways; false (and `out` is the first way's) when two differ. */
__attribute__((unused)) static bool http_stream_same(struct buf *out, str bytes,
                                                     enum http_kind kind, uint32_t ways)
{
    bool same = true;

    http_stream_read(out, bytes, kind, CUT_WHOLE, false, false);
    for (uint32_t seed = 1; seed < ways && same; seed++) {
        CLEANUP(buf_release) struct buf other = { .max = out->max };

        http_stream_read(&other, bytes, kind, seed, false, false);
        same = str_equal(buf_str(out), buf_str(&other));
    }
    return same;
}

#endif
