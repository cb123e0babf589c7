/* SPDX-License-Identifier: Apache-2.0 */
/* Reading requests off one connection: a part of http_server. */
#include <stdio.h>

#include "base/err.h"
#include "transport/http_server_internal.h"

#define IN_MAX ((size_t)128 << 10) /* PIPELINE_MAX, one read, a TLS record */

static uint64_t now(const struct served *c)
{
    return loop_now(c->server->options.loop);
}

static const struct http_server_events *hooks(const struct served *c)
{
    return c->server->options.events;
}

void served_drop_body(struct served *c)
{
    c->server->bodies -= c->body.n;
    buf_release(&c->body);
    c->request.body = (str){ 0 };
}

/* The owner has it no more. */
static void close_request(struct served *c)
{
    c->open = false;
    c->server->open_requests--;
    c->request.owner = NULL;
}

static void next_request(struct served *c)
{
    if (c->head)
        http_head_reset(c->head);
    served_drop_body(c);
    c->started = c->in_body = c->passing = c->begun = c->forgotten = false;
    c->frame = (struct http_body){ .verdict = HTTP_DONE };
    c->until = now(c) + c->server->limits.idle_wait;
}

void served_linger(struct served *c)
{
    if (c->lingering || c->dead)
        return;
    c->lingering = true;
    buf_release(&c->in);
    served_drop_body(c);
    http_head_free(&c->head);
    link_finish(&c->link);
    if (c->eof && link_queued(&c->link) == 0)
        served_die(c);
    else
        link_read(&c->link, !c->eof);
    c->until = now(c) + c->server->limits.linger_wait;
}

void served_answered(struct served *c)
{
    close_request(c);
    if (c->dead)
        return;
    if (!c->keep || c->server->finishing)
        served_linger(c);
    else if (c->in_body)
        c->passing = true;
    else
        next_request(c);
    if (!c->serving && (c->in.n || c->eof))
        served_attend(c);
}

/* --- refusing --- */

static void refuse(struct served *c, unsigned status, const char *why, bool has_head)
{
    const struct http_head *head = has_head ? c->head : NULL;
    struct buf headers = { 0 }, body = { 0 };
    bool answered = c->begun;

    if (c->open) {
        close_request(c);
        hooks(c)->on_gone(c->server->options.ctx, &c->request);
    }
    if (answered) { /* or half of it; there is no second answer */
        served_linger(c);
        return;
    }
    c->keep = false;
    c->is_head = head && str_is(head->method, "HEAD");
    if (hooks(c)->refusal)
        hooks(c)->refusal(c->server->options.ctx, head, status, why, &headers, &body);
    c->open = true; /* as if the owner answered it */
    c->server->open_requests++;
    http_reply(&c->request, status, buf_str(&headers), buf_str(&body));
    buf_release(&headers);
    buf_release(&body);
}

/* It is told why, in plain HTTP, and what it asks for is not even read. */
static void refuse_plain(struct served *c)
{
    struct http_server *s = c->server;
    char sentence[200];

    if (hooks(c)->say && now(c) >= s->plain_until) {
        s->plain_until = now(c) + HTTP_SERVER_SAY_WAIT;
        snprintf(sentence, sizeof(sentence),
                 "%s speaks plain HTTP to this port, which speaks TLS: use https://",
                 c->peer);
        hooks(c)->say(s->options.ctx, sentence);
    }
    refuse(c, 400, "this port speaks TLS: use https://", false);
}

/* --- bodies --- */

static bool store(struct served *c, str content)
{
    struct http_server *s = c->server;

    if (content.n > s->limits.body_max - c->body.n) {
        refuse(c, 413, "the body is too large", true);
        return false;
    }
    if (content.n <= s->limits.bodies_max - s->bodies)
        buf_add(&c->body, content);
    if (c->body.failed || content.n > s->limits.bodies_max - s->bodies) {
        refuse(c, 503, "too many large bodies are being read; try again", true);
        return false;
    }
    s->bodies += content.n;
    return true;
}

/* The body has come. */
static void finish_body(struct served *c)
{
    c->in_body = false;
    c->until = 0;
    if (!c->open) {
        next_request(c);
        return;
    }
    if (c->passing)
        return;
    c->request.body = buf_str(&c->body);
    hooks(c)->on_request(c->server->options.ctx, &c->request);
}

static void take_body(struct served *c, str *in)
{
    enum http_verdict v;
    size_t before = in->n;
    str content;

    do {
        v = http_body_feed(&c->frame, in, &content);
        if (content.n && !c->passing && !store(c, content))
            return;
    } while (v == HTTP_MORE && in->n);
    c->rate += before - in->n;
    c->waits_100 = false;
    if (v == HTTP_REFUSED)
        refuse(c, http_refusal_status(c->frame.refusal),
               http_refusal_why(c->frame.refusal), true);
    else if (v == HTTP_DONE)
        finish_body(c);
}

static void await_body(struct served *c, bool some_came)
{
    c->in_body = true;
    c->rate = 0;
    c->until = now(c) + c->server->limits.body_wait;
    if (c->open && !c->passing && c->waits_100 && !some_came)
        served_send(c, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    if (!c->passing)
        c->waits_100 = false;
}

/* --- heads --- */

/* A head is here; `some_came`: and bytes behind it. */
static void begin_request(struct served *c, bool some_came)
{
    struct http_server *s = c->server;
    bool go_on = true;
    UNINITIALIZED struct err err;

    if (http_head_keep(c->head, &err) < 0) {
        refuse(c, 503, "there is no memory for the head", false);
        return;
    }
    c->keep = c->head->keep_alive;
    c->is_head = str_is(c->head->method, "HEAD");
    c->is_old = c->head->minor == 0;
    http_body_of_request(&c->frame, c->head);
    c->waits_100 = c->head->expect_continue && c->frame.verdict != HTTP_DONE;
    if (c->head->has_length && c->head->length > s->limits.body_max) {
        refuse(c, 413, "the body is too large", true);
        return;
    }
    c->request = (struct http_request){ .head = c->head };
    c->open = true;
    c->until = 0;
    s->open_requests++;
    c->in_body = c->frame.verdict != HTTP_DONE;
    if (hooks(c)->on_head)
        go_on = hooks(c)->on_head(s->options.ctx, &c->request);
    if (c->dead || c->lingering || !c->started) /* cut, or answered and over */
        return;
    c->passing = !go_on || !c->open;
    if (c->in_body)
        await_body(c, some_came);
    else
        finish_body(c);
}

static void take_head(struct served *c, str *in)
{
    enum http_verdict v;
    size_t used;

    if (!c->started) {
        c->started = true;
        c->until = now(c) + c->server->limits.head_wait;
    }
    if (!http_head_make(&c->head, HTTP_REQUEST)) {
        refuse(c, 503, "there is no memory for the head", false);
        return;
    }
    v = http_head_feed(c->head, *in, &used);
    *in = str_skip(*in, used);
    if (v == HTTP_REFUSED)
        refuse(c, http_refusal_status(c->head->refusal),
               http_refusal_why(c->head->refusal), false);
    else if (v == HTTP_DONE)
        begin_request(c, in->n > 0);
}

/* --- the order of things --- */

/* One at a time, and no next one while the client does not take its answers. */
static bool may_begin(const struct served *c)
{
    return !c->open && link_queued(&c->link) <= HTTP_SERVER_PIPELINE_MAX;
}

/* Returns what waits. */
static str serve(struct served *c, str in)
{
    c->serving = true;
    while (in.n && !c->dead && !c->lingering) {
        if (c->in_body)
            take_body(c, &in);
        else if (may_begin(c))
            take_head(c, &in);
        else
            break;
    }
    c->serving = false;
    return in;
}

/* All that came has been looked at, as far as it can be now. */
static void settle(struct served *c)
{
    if (c->dead || c->lingering)
        return;
    link_read(&c->link, !c->eof && c->in.n < HTTP_SERVER_PIPELINE_MAX);
    if (!c->eof || c->in.n)
        return;
    if (c->in_body || (!c->open && c->started))
        refuse(c, http_refusal_status(HTTP_CUT), http_refusal_why(HTTP_CUT), c->in_body);
    else if (!c->open)
        served_linger(c);
}

void served_resume(struct served *c)
{
    str rest;

    if (c->in.n && !c->dead && !c->lingering) {
        rest = serve(c, buf_str(&c->in));
        if (!c->lingering && rest.n && rest.n < c->in.n)
            memmove(c->in.p, rest.p, rest.n);
        c->in.n = c->lingering ? 0 : rest.n;
        if (c->in.n == 0)
            buf_release(&c->in);
    }
    settle(c);
}

static void on_open(void *ctx)
{
    (void)ctx; /* the client speaks first */
}

static void on_bytes(void *ctx, str bytes)
{
    struct served *c = ctx;

    if (c->dead || c->lingering)
        return;
    if (c->link.lacks_tls) {
        refuse_plain(c);
        return;
    }
    if (c->in.n == 0)
        bytes = serve(c, bytes);
    if (c->dead || c->lingering || bytes.n == 0) {
        settle(c);
        return;
    }
    c->in.max = IN_MAX;
    buf_add(&c->in, bytes);
    if (c->in.failed)
        served_die(c);
    else
        served_resume(c);
}

static bool is_stream(const struct served *c)
{
    return c->begun && (c->chunked || c->until_close);
}

static void on_end(void *ctx, const struct err *why)
{
    struct served *c = ctx;

    c->eof = true;
    if (why || c->dead)
        served_die(c);
    else if (c->lingering && link_queued(&c->link) == 0)
        served_die(c);
    else if (!c->lingering && c->open && (c->request.ends_with_client || is_stream(c)))
        served_die(c); /* nobody waits for it */
    else
        settle(c);
}

static void on_drained(void *ctx)
{
    struct served *c = ctx;

    if (c->forgotten)
        link_trim(&c->link);
    if (c->lingering) {
        if (c->eof)
            served_die(c);
    } else if (c->open) {
        if (c->begun && hooks(c)->on_drained)
            hooks(c)->on_drained(c->server->options.ctx, &c->request);
    } else {
        served_resume(c);
    }
}

const struct link_events served_events = { on_open, on_bytes, on_end, on_drained };

/* --- time --- */

void served_expire(struct served *c)
{
    if (c->lingering || !c->started) {
        served_die(c);
    } else if (!c->in_body) {
        refuse(c, 408, "the head of the request did not come in time", false);
    } else if (c->rate >= HTTP_SERVER_BODY_RATE) {
        c->rate = 0;
        c->until = now(c) + c->server->limits.body_wait;
    } else {
        refuse(c, 408, "the body of the request did not come in time", true);
    }
}
