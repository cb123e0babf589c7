/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_conn.h"

#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"

#define FIRST_MAX ((size_t)80 << 20) /* a request that waits for its connection */

static void fail(struct http_conn *c, const struct err *why)
{
    void *ctx = c->ctx;
    bool unheard = c->used && !c->heard;

    http_conn_close(c);
    if (ctx)
        c->events->on_fail(ctx, why, unheard);
}

/* How long the server keeps an idle connection, if it says so: a little less. */
static uint64_t idle_wait(const struct http_head *h)
{
    struct http_list list = { 0 };
    uint64_t seconds;
    str item;

    while (http_list_next(&list, h, "Keep-Alive", &item)) {
        if (!str_starts(item, STR("timeout=")) ||
            !u64_parse(&seconds, http_trim(str_skip(item, 8))))
            continue;
        if (seconds > HTTP_IDLE_LIMIT / 1000)
            return HTTP_IDLE_LIMIT;
        return seconds > 1 ? (seconds - 1) * 1000 : 0;
    }
    return HTTP_IDLE_WAIT;
}

static void finish(struct http_conn *c)
{
    void *ctx = c->ctx;

    c->ctx = NULL;
    c->used = true;
    c->idle_until = loop_now(c->link.loop) + c->idle_wait;
    if (!c->keep_alive || !c->body.reusable || link_queued(&c->link) > 0)
        http_conn_close(c);
    else
        link_read(&c->link, true); /* its end should be noticed */
    c->events->on_done(ctx);
}

/* False: the connection is of no use any more, or is not ours any more. */
static bool take_body(struct http_conn *c, str *in)
{
    enum http_verdict v;
    UNINITIALIZED struct err err;
    str content;

    do {
        v = http_body_feed(&c->body, in, &content);
        if (content.n) {
            c->events->on_body(c->ctx, content);
            if (c->closed || !c->ctx)
                return false;
        }
    } while (v == HTTP_MORE && in->n);
    if (v == HTTP_MORE)
        return true;
    if (v == HTTP_REFUSED) {
        err_set(&err, ERR_PEER, "the server's answer is no HTTP: %s",
                http_refusal_why(c->body.refusal));
        fail(c, &err);
        return false;
    }
    c->body.reusable = c->body.reusable && in->n == 0; /* nobody asked for more */
    finish(c);
    return false;
}

static bool begin_body(struct http_conn *c)
{
    if (c->head->status < 200) {
        http_head_reset(c->head);
        if (++c->interim <= HTTP_INTERIM_MAX)
            return true;
        fail(c, &(struct err){ ERR_PEER, "the server only says that it will answer" });
        return false;
    }
    c->has_head = true;
    c->idle_wait = idle_wait(c->head);
    http_body_of_response(&c->body, c->head, false);
    c->keep_alive = c->head->keep_alive;
    c->events->on_head(c->ctx, c->head);
    return !c->closed && c->ctx;
}

static bool take_head(struct http_conn *c, str *in)
{
    UNINITIALIZED struct err err;
    size_t used;

    switch (http_head_feed(c->head, *in, &used)) {
    case HTTP_MORE:
        *in = str_skip(*in, used);
        return true;
    case HTTP_DONE:
        *in = str_skip(*in, used);
        if (c->head->status == 101) {
            err_set(&err, ERR_PEER, "the server changes the protocol");
            break;
        }
        return begin_body(c);
    case HTTP_REFUSED:
        err_set(&err, ERR_PEER, "the server's answer is no HTTP: %s",
                http_refusal_why(c->head->refusal));
        break;
    }
    fail(c, &err);
    return false;
}

static void on_bytes(void *ctx, str bytes)
{
    struct http_conn *c = ctx;

    if (!c->ctx) { /* what nobody asked for */
        http_conn_close(c);
        return;
    }
    c->heard = true;
    while (bytes.n && !c->has_head) {
        if (!take_head(c, &bytes))
            return;
    }
    if (c->has_head && take_body(c, &bytes) && c->body.framing != HTTP_BODY_LENGTH) {
        http_head_free(&c->head); /* its body may last for days */
        link_trim(&c->link);
    }
}

static void on_open(void *ctx)
{
    struct http_conn *c = ctx;
    struct err err = { 0 };

    if (link_write(&c->link, buf_str(&c->first), &err) < 0)
        fail(c, &err);
    buf_release(&c->first);
    if (!c->closed && link_queued(&c->link) == 0)
        c->events->on_drained(c->ctx);
}

/* A body may end with the connection, if nobody cut it. */
static void on_end(void *ctx, const struct err *why)
{
    struct http_conn *c = ctx;
    static const struct err cut = { ERR_PEER,
                                    "the server closed the connection in its answer" };
    static const struct err none = { ERR_PEER, "the server closed the connection" };

    if (!why && c->ctx && c->has_head && http_body_end(&c->body) == HTTP_DONE) {
        c->body.reusable = false;
        finish(c);
        return;
    }
    fail(c, why ? why : c->heard ? &cut : &none);
}

static void on_drained(void *ctx)
{
    struct http_conn *c = ctx;

    if (c->ctx)
        c->events->on_drained(c->ctx);
}

static const struct link_events link_events = { on_open, on_bytes, on_end, on_drained };

struct http_conn *http_conn_new(const struct link_options *options, struct err *err)
{
    struct http_conn *c = calloc(1, sizeof(*c));

    if (!c) {
        err_set(err, ERR_NOMEM, "no memory for a connection");
        return NULL;
    }
    if (link_open(&c->link, options, &link_events, c, err) == 0)
        return c;
    http_conn_free(c);
    return NULL;
}

int http_conn_request(struct http_conn *c, str head, str body,
                      const struct http_conn_events *events, void *ctx, struct err *err)
{
    c->heard = c->has_head = false;
    c->interim = 0;
    if (!http_head_make(&c->head, HTTP_RESPONSE))
        return err_set(err, ERR_NOMEM, "no memory for an answer");
    http_head_reset(c->head);
    c->events = events;
    c->first.max = FIRST_MAX;
    if (c->link.open) {
        if (link_write(&c->link, head, err) < 0 ||
            (body.n && link_write(&c->link, body, err) < 0))
            return -1;
    } else {
        buf_add(&c->first, head);
        buf_add(&c->first, body);
        if (buf_check(&c->first, "a request", err) < 0)
            return -1;
    }
    c->ctx = ctx;
    return 0;
}

bool http_conn_is_idle(const struct http_conn *c)
{
    return !c->closed && !c->ctx && c->used && loop_now(c->link.loop) < c->idle_until;
}

void http_conn_read(struct http_conn *c, bool on)
{
    if (!c->closed)
        link_read(&c->link, on);
}

size_t http_conn_queued(const struct http_conn *c)
{
    return c->closed ? 0 : c->first.n + link_queued(&c->link);
}

void http_conn_close(struct http_conn *c)
{
    c->closed = true;
    c->ctx = NULL;
    link_close(&c->link);
}

bool http_conn_is_over(const struct http_conn *c)
{
    return c->closed && !link_is_busy(&c->link);
}

void http_conn_free(struct http_conn *c)
{
    http_conn_close(c);
    http_head_free(&c->head);
    buf_release(&c->first);
    free(c);
}
