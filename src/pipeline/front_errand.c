/* SPDX-License-Identifier: Apache-2.0 */
/* What a server over HTTP answers, on its way to a client over HTTP. */
#include "pipeline/front_errand.h"

#include <stdlib.h>

#include "transport/http_encode.h"

#define HEADERS_USUAL 511 /* bytes of most answers' headers */

/* --- the end of one --- */

static struct visit *visit_for(const struct errand *x)
{
    return visit_of(x->seat->front, x->exchange);
}

void errand_note_sending(struct errand *x, bool sending)
{
    if (sending == x->sending)
        return;
    x->sending = sending;
    x->seat->far_sending += sending ? 1 : (size_t)-1;
    x->seat->front->unsent += sending ? x->size : (size_t)-x->size;
}

void errand_end(struct errand *x)
{
    struct seat *s = x->seat;
    struct visit *v = visit_for(x);

    if (x->dead)
        return;
    if (v)
        v->errand = NULL;
    *(x->before ? &x->before->next : &s->errands) = x->next;
    if (x->next)
        x->next->before = x->before;
    errand_note_sending(x, false);
    if (x->conn)
        far_release(s->front, x->conn, false);
    x->conn = NULL;
    x->dead = true; /* we may be inside of it */
    x->next = s->front->dead_errands;
    s->front->dead_errands = x;
    s->last = loop_now(s->front->loop);
    front_soon(s); /* somebody may wait for just that */
}

void far_bury(struct front *f)
{
    while (f->dead_errands) {
        struct errand *x = f->dead_errands;

        f->dead_errands = x->next;
        sse_release(&x->sse);
        buf_release(&x->request);
        buf_release(&x->headers);
        buf_release(&x->message);
        free(x->why);
        free(x);
    }
}

static void reply_plain(struct visit *v, const struct errand *x)
{
    struct http_request *r = v->request;

    visit_end(v);
    http_reply(r, x->status, buf_str(&x->headers), STR(""));
}

/* What came of it goes out first. */
static bool is_deferred(struct errand *x, const struct err *why)
{
    if (x->dead || x->deferred)
        return false;
    x->deferred = true; /* it may be settled in the call */
    x->failed = why != NULL;
    if (why && (x->why = malloc(sizeof(*x->why))))
        *x->why = *why;
    if (!relay_defers(x->seat->relay, x->exchange)) {
        x->deferred = false;
        free(x->why);
        x->why = NULL;
        return false;
    }
    if (x->conn)
        far_release(x->seat->front, x->conn, false);
    x->conn = NULL;
    return true;
}

/* It is over; what the client waits for still is not coming. */
/* Said when it begins, and not with every request after it. */
static void note_loss(struct front *f, const struct err *why)
{
    uint64_t now = loop_now(f->loop);

    if (!why || (f->said_lost && now - f->said_lost < SAY_AGAIN))
        return;
    f->said_lost = now;
    front_say(f, "the server at %s: %s", f->relay.upstream->origin, why->msg);
}

void errand_conclude(struct errand *x, const struct err *why)
{
    static const struct err silent = { ERR_PEER,
                                       "the server ended its answer without a result" };
    struct seat *s = x->seat;
    struct visit *v;

    if (is_deferred(x, why))
        return;
    note_loss(s->front, why);
    if (x->speaking)
        relay_drop(s->relay, x->exchange, why ? why : &silent);
    if (x->dead)
        return;
    if (!x->resumable || x->status == 0)
        relay_lose_all(s->relay, x->exchange, "server_exit", why ? why : &silent);
    v = visit_for(x);
    if (v && !v->begun && x->status && !why) {
        reply_plain(v, x);
    } else if (v && !v->begun) {
        struct http_request *r = v->request;

        visit_end(v);
        front_refuse(s->front, r, 502, -31006, STR(""), "server lost: %s",
                     (why ? why : &silent)->msg);
    } else if (v) {
        visit_close(v, why == NULL && !x->speaking);
    }
    errand_end(x);
}

/* --- what comes back --- */

static void deliver(struct errand *x, str bytes, bool end)
{
    const struct endpoint *e = &x->seat->far;

    x->speaking = !end;
    e->events->on_span(e->ctx, x->exchange, bytes, end);
}

static void add_piece(struct errand *x, str bytes)
{
    if (x->speaking) {
        deliver(x, bytes, false);
        return;
    }
    x->message.max = 8 * HTTP_HOLD;
    buf_add(&x->message, bytes);
    if (x->message.n > HTTP_HOLD) {
        deliver(x, buf_str(&x->message), false);
        buf_reset(&x->message);
    }
}

static void end_message(struct errand *x)
{
    deliver(x, buf_str(&x->message), true);
    buf_reset(&x->message);
}

static void pass_on(struct errand *x, str bytes)
{
    struct visit *v = visit_for(x);

    if (v)
        visit_pass(v, bytes);
}

/* What is no message of ours: an empty one, one of another kind, times and ids. */
static void pass_block(struct errand *x)
{
    CLEANUP(buf_release) struct buf out = { .max = 2 * HTTP_HEAD_MAX + 3 * x->message.n };
    const struct sse *s = &x->sse;

    if (s->has_retry)
        buf_printf(&out, "retry: %u\n", s->retry);
    if (s->has_id) {
        buf_add(&out, STR("id: "));
        buf_add(&out, buf_str(&s->id));
        buf_add_char(&out, '\n');
    }
    if (s->type.n) {
        buf_add(&out, STR("event: "));
        buf_add(&out, buf_str(&s->type));
        buf_add_char(&out, '\n');
    }
    if (s->has_data) {
        struct sse_writer w = { 0 };

        buf_add(&out, STR("data: "));
        sse_add(&w, &out, buf_str(&x->message));
        buf_add_char(&out, '\n');
    }
    buf_add_char(&out, '\n');
    buf_reset(&x->message);
    pass_on(x, buf_str(&out));
}

static void take_event(struct errand *x)
{
    const struct sse *s = &x->sse;
    bool ours = s->has_data && (s->type.n == 0 || str_is(buf_str(&s->type), "message"));
    struct visit *v;

    x->resumable = x->resumable || (s->has_id && s->id.n && !x->stateless);
    if (!x->speaking && (!ours || x->message.n == 0)) {
        pass_block(x);
        return;
    }
    v = visit_for(x);
    if (v && s->has_retry)
        visit_retry(v, s->retry);
    if (v)
        visit_label(v, s->has_id ? buf_str(&s->id) : (str){ NULL, 0 });
    end_message(x);
}

static void take_events(struct errand *x, str in)
{
    static const struct err too_large = { ERR_LIMIT,
                                          "an event of the server is too large" };
    str data;

    while (in.n && !x->dead) {
        switch (sse_feed(&x->sse, &in, &data)) {
        case SSE_DATA:
            add_piece(x, data);
            break;
        case SSE_EVENT:
            take_event(x);
            break;
        case SSE_COMMENT:
            pass_on(x, STR(":\n\n"));
            break;
        case SSE_REFUSED:
            errand_conclude(x, &too_large);
            return;
        case SSE_MORE:
            break;
        }
    }
}

/* --- the head --- */

/* Who grants access is said of our place. */
static int put_challenge(struct errand *x, const struct visit *v, str name, str value,
                         struct err *err)
{
    CLEANUP(buf_release) struct buf moved = { .max = HTTP_HEAD_MAX };
    CLEANUP(buf_release) struct buf origin = { 0 };
    const struct oauth_places places =
        far_places(x->seat->front, v->request->head, &origin);

    oauth_add_challenge(&moved, value, &places);
    return http_put_header(&x->headers, name, buf_str(&moved), err);
}

static int put_header(struct errand *x, const struct visit *v, const struct http_head *h,
                      size_t i, struct err *err)
{
    str name = http_head_name(h, i);

    if (str_equal_nocase(name, STR("WWW-Authenticate")))
        return put_challenge(x, v, name, http_head_value(h, i), err);
    http_put_same(&x->headers, h, i);
    return 0;
}

static void copy_headers(struct errand *x, const struct http_head *h)
{
    struct front *f = x->seat->front;
    struct visit *v = visit_for(x);
    UNINITIALIZED struct err ignored; /* what cannot be a header is left out */

    if (!v)
        return; /* nobody is told */
    x->headers.max = 2 * HTTP_HEAD_MAX;
    buf_room(&x->headers, HEADERS_USUAL);
    for (size_t i = 0; i < h->count; i++) {
        if (errand_passes(h, i) && put_header(x, v, h, i, &ignored) < 0)
            continue;
    }
    if (http_head_find(h, "Access-Control-Allow-Origin", NULL).p)
        return;
    front_begin_headers(f, v->request->head);
    buf_add(&x->headers, buf_str(&f->headers));
}

/* The session is called what the server calls it. */
static void note_session(struct errand *x, const struct http_head *h)
{
    struct seat *s = x->seat;
    str name = http_head_find(h, "Mcp-Session-Id", NULL);

    if (x->is_initialize && h->status / 100 == 2 && name.n && name.n <= HTTP_SESSION_MAX)
        front_name_seat(s, name);
    else if (x->is_initialize && s->name.n == 0)
        s->kind = SEAT_GROUP;
    if (s->kind == SEAT_SESSION &&
        (h->status == 404 || (x->is_delete && h->status / 100 == 2)))
        s->leaving = true;
}

/* MCP's way of finding out that a server is of 2024-11-05. */
static bool is_too_new(const struct errand *x, const struct http_head *h)
{
    return x->is_initialize && !x->stateless && !x->seat->front->is_new &&
           !http_head_is_type(h, "application/json") &&
           (h->status == 400 || h->status == 404 || h->status == 405);
}

/* Who follows one leaves us, and nothing tells of what it then asks. */
static bool is_redirect(const struct errand *x, const struct http_head *h)
{
    return h->status / 100 == 3 && !x->is_access && http_head_find(h, "Location", NULL).p;
}

/* A stream may last for days: what it does not need goes. */
static void begin_events(struct errand *x, struct visit *v)
{
    visit_begin(v);
    buf_release(&x->headers);
    buf_release(&x->request);
    x->repeatable = false;
}

static void on_head(void *ctx, const struct http_head *h)
{
    static const struct err encoded = {
        ERR_PEER, "the server's answer is compressed, which we did not ask for"
    };
    static const struct err elsewhere = {
        ERR_REFUSED, "the server redirects to another place, which is not followed"
    };
    struct errand *x = ctx;
    struct visit *v;

    v = visit_for(x);
    if (is_redirect(x, h)) {
        errand_conclude(x, &elsewhere);
        return;
    }
    if (v && is_too_new(x, h)) {
        relay_cancel(x->seat->relay, x->exchange); /* asked of another one */
        errand_end(x);
        front_fall_back(v);
        return;
    }
    if (x->kind == VISIT_POST && h->status / 100 == 2)
        x->seat->front->is_new = true;
    x->status = h->status;
    x->length = h->has_length ? h->length : HTTP_REPLY_CHUNKED;
    copy_headers(x, h);
    note_session(x, h);
    if (http_head_is_type(h, "text/event-stream"))
        x->content = CONTENT_EVENTS;
    else if (http_head_is_type(h, "application/json") && x->kind == VISIT_POST &&
             !x->is_delete)
        x->content = CONTENT_JSON;
    else if (x->is_access && http_head_is_type(h, "application/json") &&
             !http_head_is_encoded(h))
        x->content = CONTENT_ACCESS;
    if (x->content != CONTENT_RAW && http_head_is_encoded(h)) {
        x->status = 0;
        errand_conclude(x, &encoded);
        return;
    }
    v = visit_for(x);
    if (v && x->content == CONTENT_EVENTS)
        begin_events(x, v);
    else if (v && x->content == CONTENT_RAW && (!h->has_length || h->length))
        visit_begin_with(v, x->status, buf_str(&x->headers), x->length);
}

static void hold_access(struct errand *x, str bytes)
{
    static const struct err too_large = { ERR_LIMIT,
                                          "what it says of access is too large" };

    x->message.max = OAUTH_METADATA_MAX;
    buf_add(&x->message, bytes);
    if (!x->message.failed)
        return;
    x->status = 0;
    errand_conclude(x, &too_large);
}

static void reply_access(struct errand *x)
{
    CLEANUP(buf_release) struct buf body = { .max = 4 * OAUTH_METADATA_MAX };
    CLEANUP(buf_release) struct buf origin = { 0 };
    struct visit *v = visit_for(x);
    struct http_request *r = v ? v->request : NULL;
    struct oauth_places places;

    if (!v)
        return;
    places = far_places(x->seat->front, r->head, &origin);
    oauth_add_metadata(&body, buf_str(&x->message), &places);
    visit_end(v);
    http_reply(r, x->status, buf_str(&x->headers), buf_str(&body));
}

static void on_body(void *ctx, str bytes)
{
    struct errand *x = ctx;

    if (x->content == CONTENT_EVENTS)
        take_events(x, bytes);
    else if (x->content == CONTENT_JSON && bytes.n == x->length && bytes.n <= HTTP_HOLD)
        deliver(x, bytes, true); /* all of it at once */
    else if (x->content == CONTENT_JSON)
        add_piece(x, bytes);
    else if (x->content == CONTENT_ACCESS)
        hold_access(x, bytes);
    else
        pass_on(x, bytes);
}

static void on_done(void *ctx)
{
    struct errand *x = ctx;
    struct seat *s = x->seat;

    far_release(s->front, x->conn, true);
    x->conn = NULL;
    if (x->content == CONTENT_JSON && (x->speaking || x->message.n))
        end_message(x);
    if (x->content == CONTENT_ACCESS)
        reply_access(x);
    if (!x->dead)
        errand_conclude(x, NULL);
    if (s->leaving && s->state == SEAT_OPEN)
        front_end_seat(s, "client_eof");
}

static void on_fail(void *ctx, const struct err *why, bool unheard)
{
    struct errand *x = ctx;
    struct err err = { 0 };

    far_release(x->seat->front, x->conn, false);
    x->conn = NULL;
    if (unheard && !x->repeated && x->repeatable) {
        x->repeated = true;
        if (errand_start(x, buf_str(&x->request), &err) == 0)
            return;
    }
    errand_conclude(x, err.code != ERR_NONE ? &err : why);
}

static void on_drained(void *ctx)
{
    struct errand *x = ctx;

    errand_note_sending(x, false);
    front_soon(x->seat);
}

const struct http_conn_events errand_events = { on_head, on_body, on_done, on_fail,
                                                on_drained };
