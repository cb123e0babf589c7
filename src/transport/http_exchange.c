/* SPDX-License-Identifier: Apache-2.0 */
/* What comes back from the server, as messages; declared in http_client_internal.h. */
#include <stdio.h>
#include <stdlib.h>

#include "transport/http_client_internal.h"

#define SHOWN 200 /* bytes of what a server says that a person is shown */

/* --- messages --- */

/* Whoever answers a request of the server begins an exchange: nobody needs ours. */
static void deliver(const struct exchange *x, str bytes, bool end)
{
    const struct endpoint *e = &x->client->endpoint;

    e->events->on_span(e->ctx, NULL, bytes, end);
}

static bool may_speak(struct exchange *x)
{
    if (!x->client->speaker || x->client->speaker == x)
        return true;
    x->blocked = true;
    if (x->conn) /* else all of it is here */
        http_conn_read(x->conn, false);
    return false;
}

/* The beginning of a long message goes out when nobody else speaks. */
static void begin_speaking(struct exchange *x)
{
    if (!may_speak(x))
        return;
    x->client->speaker = x;
    x->speaking = true;
    deliver(x, buf_str(&x->message), false);
    buf_reset(&x->message);
}

static void add_piece(struct exchange *x, str bytes)
{
    if (x->speaking) {
        deliver(x, bytes, false);
        return;
    }
    buf_add(&x->message, bytes);
    if (x->message.n > HTTP_HOLD)
        begin_speaking(x);
}

static void note_answer(struct exchange *x)
{
    const struct http_client *c = x->client;

    if (x->state == EXCHANGE_DEAD || !x->wants_answer || x->answered)
        return;
    x->answered = !c->options.hooks->awaits(c->options.ctx, buf_str(&x->ids));
    if (x->answered)
        client_soon(x->client); /* somebody may wait for just that */
}

/* Nothing else is under way then. */
static bool is_opening(const struct exchange *x)
{
    const struct exchange *first = x->client->first;

    return x->opens_session ||
           (x->kind == EXCHANGE_STREAM && first && first->opens_session);
}

static void end_message(struct exchange *x)
{
    struct http_client *c = x->client;

    x->message_ended = true;
    if (!may_speak(x))
        return;
    x->message_ended = false;
    if (x->speaking) {
        x->speaking = false;
        c->speaker = NULL;
        client_soon(c); /* others may have waited */
        deliver(x, STR(""), true);
    } else if (x->message.n) {
        if (is_opening(x))
            c->options.hooks->opened(c->options.ctx, buf_str(&x->message));
        deliver(x, buf_str(&x->message), true);
    }
    buf_reset(&x->message);
    note_answer(x);
    if (x->kind == EXCHANGE_STREAM)
        client_soon(c); /* whose answer that was */
}

/* --- events --- */

static void take_event(struct exchange *x)
{
    const struct sse *s = &x->sse;

    if (legacy_is_asking(x)) {
        legacy_take_endpoint(x);
        return;
    }
    if (s->has_retry)
        x->retry = s->retry > HTTP_RETRY_MAX ? HTTP_RETRY_MAX : s->retry;
    if (s->has_id && !x->stateless) {
        buf_reset(&x->last_id);
        buf_add(&x->last_id, buf_str(&s->id));
    }
    x->resumes = 0;
    if (!s->has_data)
        return;
    if (!x->speaking && s->type.n && !str_is(buf_str(&s->type), "message"))
        buf_reset(&x->message); /* of a kind that is not ours */
    end_message(x);
}

static bool is_at_work(const struct exchange *x)
{
    return x->state == EXCHANGE_RUNNING && !x->blocked;
}

/* Before an older server has said where POSTs go, nothing long is due. */
static bool is_too_long(const struct exchange *x, str data)
{
    return legacy_is_asking(x) && x->message.n + data.n > URL_MAX;
}

static void take_events(struct exchange *x, str *in)
{
    enum sse_token token;
    struct err err = { 0 };
    str data;

    while (in->n && is_at_work(x)) {
        token = sse_feed(&x->sse, in, &data);
        if (token == SSE_DATA && is_too_long(x, data))
            token = SSE_REFUSED;
        switch (token) {
        case SSE_DATA:
            add_piece(x, data);
            break;
        case SSE_EVENT:
            take_event(x);
            break;
        case SSE_REFUSED:
            err_set(&err, ERR_LIMIT, "an event of the server is too large");
            x->last_id.n = 0;
            exchange_fail(x, &err);
            return;
        case SSE_COMMENT:
        case SSE_MORE:
            break;
        }
    }
}

static void take_content(struct exchange *x, str bytes)
{
    if (is_at_work(x) && x->content == CONTENT_EVENTS) {
        take_events(x, &bytes);
    } else if (is_at_work(x) && x->content == CONTENT_JSON) {
        add_piece(x, bytes);
        return;
    } else if (x->content == CONTENT_REFUSAL) {
        if (x->message.n + bytes.n <= HTTP_ERROR_MAX)
            buf_add(&x->message, bytes);
        else
            x->content = CONTENT_NONE;
        return;
    }
    if (x->state == EXCHANGE_RUNNING && x->blocked)
        buf_add(&x->waiting, bytes);
}

/* --- the end --- */

static void on_rested(void *ctx)
{
    struct exchange *x = ctx;

    if (x->state != EXCHANGE_RESTING)
        return;
    x->ended = false;
    x->why = (struct err){ 0 };
    client_run(x->client, x);
}

/* Go on with the stream a little later; false when that cannot be. */
static bool rest(struct exchange *x)
{
    struct err ignored;

    if (x->resumes >= HTTP_RESUMES_MAX || x->stateless ||
        (x->kind == EXCHANGE_POST && x->last_id.n == 0) || x->client->deleting)
        return false;
    if (!x->timer &&
        loop_timer_new(&x->timer, x->client->options.loop, on_rested, x, &ignored) < 0)
        return false;
    x->resumes++;
    x->state = EXCHANGE_RESTING;
    x->conn = NULL;
    buf_reset(&x->message);
    buf_reset(&x->waiting);
    sse_release(&x->sse);
    sse_init(&x->sse, 0);
    loop_timer_set(x->timer, x->retry, false);
    return true;
}

static void listen_to(struct http_client *c)
{
    struct exchange *x;

    if (c->listening || c->finishing || c->session.n == 0)
        return;
    c->listening = true;
    x = client_add(c, EXCHANGE_LISTEN);
    if (x)
        client_run(c, x);
}

static void end_post(struct exchange *x, const struct err *why)
{
    static const struct err silent = { ERR_PEER,
                                       "the server ended its answer without a result" };
    struct http_client *c = x->client;

    note_answer(x);
    if (x->wants_answer && !x->answered)
        c->options.hooks->lost(c->options.ctx, buf_str(&x->ids), why ? why : &silent);
    else if (why && !x->answered)
        client_say(c, "a message to the server is lost: %s", why->msg);
    else if (x->opens_stream)
        listen_to(c);
}

/* An older server acknowledges a request, and answers it on its stream. */
static bool waits_for_stream(const struct exchange *x)
{
    const struct http_client *c = x->client;

    return c->server == SERVER_OLD && !c->ended && x->kind == EXCHANGE_POST &&
           x->status / 100 == 2 && x->wants_answer && !x->answered;
}

/* The exchange is over; `why` is NULL when it went well. */
static void conclude(struct exchange *x, const struct err *why)
{
    struct http_client *c = x->client;
    bool events = x->status / 100 == 2 && x->content == CONTENT_EVENTS;

    if (x->speaking && x->state != EXCHANGE_DEAD) {
        static const struct err cut = { ERR_PEER,
                                        "the server ended in the middle of a message" };

        client_kill(x);
        c->options.hooks->cut(c->options.ctx, why ? why : &cut);
        return;
    }
    if (x->kind == EXCHANGE_STREAM) {
        legacy_stream_ended(x, why);
        return;
    }
    note_answer(x);
    if (waits_for_stream(x)) {
        x->state = EXCHANGE_AWAITING;
        buf_release(&x->body);
        client_soon(c);
        return;
    }
    if (why && legacy_may_be(x)) {
        legacy_ask(x, why);
        return;
    }
    if (x->kind == EXCHANGE_POST && x->wants_answer && !x->answered &&
        (events || (x->last_id.n && x->status == 0)) && rest(x))
        return;
    if (x->kind == EXCHANGE_LISTEN && (events || x->status == 0) && rest(x))
        return;
    if (x->kind == EXCHANGE_POST)
        end_post(x, why);
    if (x->kind == EXCHANGE_DELETE)
        c->ended = true;
    client_kill(x);
}

void exchange_fail(struct exchange *x, const struct err *why)
{
    const struct err copy = *why;

    if (x->conn)
        http_conn_close(x->conn);
    x->conn = NULL;
    conclude(x, &copy);
}

static void end_body(struct exchange *x)
{
    struct http_client *c = x->client;
    struct err err = { 0 };
    bool refused = x->status / 100 != 2;

    if (refused)
        err_set(&err, ERR_PEER, "the server answered with status %u", x->status);
    if (x->content == CONTENT_REFUSAL &&
        !c->options.hooks->is_message(c->options.ctx, buf_str(&x->message)))
        buf_reset(&x->message);
    if (x->message.n && c->server == SERVER_UNKNOWN)
        c->server = SERVER_NEW; /* an older one has no such words at this place */
    if (x->content == CONTENT_JSON || x->content == CONTENT_REFUSAL) {
        x->content = CONTENT_NONE;
        end_message(x);
        if (x->blocked)
            return; /* it goes on when it may speak */
    }
    if (x->state == EXCHANGE_RUNNING)
        conclude(x, refused ? &err : NULL);
}

void exchange_unblock(struct exchange *x)
{
    CLEANUP(buf_release) struct buf rest = x->waiting;
    bool whole = x->message_ended;

    x->waiting = (struct buf){ .max = rest.max };
    x->blocked = false;
    if (whole)
        end_message(x);
    else if (x->message.n > HTTP_HOLD)
        begin_speaking(x);
    if (x->state == EXCHANGE_RUNNING && rest.n)
        take_content(x, buf_str(&rest));
    if (x->state != EXCHANGE_RUNNING || x->blocked)
        return;
    if (x->ended && x->why.code != ERR_NONE)
        conclude(x, &x->why);
    else if (x->ended)
        end_body(x);
    else if (x->conn)
        http_conn_read(x->conn, !x->client->paused);
}

/* --- the head --- */

static void note_session(struct exchange *x, const struct http_head *h)
{
    struct http_client *c = x->client;
    str id = http_head_find(h, "Mcp-Session-Id", NULL);

    if (!x->opens_session || h->status / 100 != 2 || !id.p || c->server == SERVER_OLD)
        return;
    buf_reset(&c->session);
    if (id.n <= HTTP_SESSION_MAX)
        buf_add(&c->session, id);
    else
        client_say(c, "the server's session id is longer than %zu bytes and not used",
                   HTTP_SESSION_MAX);
}

/* What a person should know of a refusal. */
static void explain(const struct http_head *h, struct err *err)
{
    bool proxy = h->status == 407;
    const char *name = proxy ? "Proxy-Authenticate" : "WWW-Authenticate";
    str place = http_head_find(h, "Location", NULL);
    str asked = http_head_find(h, name, NULL);

    if (h->status / 100 == 3)
        err_set(err, ERR_REFUSED,
                "the server redirects (status %u) to '%.*s'; only 307 and 308 within the "
                "same origin are followed, once",
                h->status, (int)str_first(place, SHOWN).n, place.p ? place.p : "");
    else if (asked.p)
        err_set(err, ERR_REFUSED, "the %s answered with status %u, %s: %.*s",
                proxy ? "proxy" : "server", h->status, name,
                (int)str_first(asked, SHOWN).n, asked.p);
    else
        err_set(err, ERR_PEER, "the server answered with status %u", h->status);
}

/* What its body will be; -1: nothing that we can use. */
static int judge(struct exchange *x, const struct http_head *h, struct err *err)
{
    bool empty = h->status == 202 || h->status == 204 || (h->has_length && !h->length);

    x->content = CONTENT_NONE;
    if (h->status / 100 != 2) {
        if (h->status < 400 || !http_head_is_type(h, "application/json") ||
            http_head_is_encoded(h) || x->kind == EXCHANGE_STREAM) {
            explain(h, err);
            return -1;
        }
        x->content = CONTENT_REFUSAL;
        return 0;
    }
    if (empty || x->kind == EXCHANGE_DELETE ||
        (x->client->server == SERVER_OLD && x->kind == EXCHANGE_POST))
        return 0;
    if (http_head_is_encoded(h))
        return err_set(err, ERR_PEER,
                       "the server's answer is compressed, which we did not ask for");
    if (http_head_is_type(h, "text/event-stream"))
        x->content = CONTENT_EVENTS;
    else if (http_head_is_type(h, "application/json") && x->kind == EXCHANGE_POST)
        x->content = CONTENT_JSON;
    else if (x->wants_answer || x->kind != EXCHANGE_POST)
        return err_set(err, ERR_PEER,
                       "the server's answer is neither JSON nor a stream of events");
    return 0;
}

/* A redirect that keeps the method, to another path of the origin: nobody else gets to
 * see the message, and the server did nothing with it. */
static bool follow(struct exchange *x, const struct http_head *h)
{
    const struct url here = exchange_url(x);
    str place = http_head_find(h, "Location", NULL);
    struct err ignored;
    struct url there;

    if ((h->status != 307 && h->status != 308) || x->target.n || !place.p ||
        url_resolve(&there, &here, place, &ignored) < 0)
        return false;
    buf_add(&x->target, str_from(there.target));
    http_conn_close(x->conn);
    x->conn = NULL;
    client_run(x->client, x);
    return true;
}

static void on_head(void *ctx, const struct http_head *h)
{
    struct exchange *x = ctx;
    struct err err = { 0 };

    if (follow(x, h))
        return;
    x->status = h->status;
    if (x->kind == EXCHANGE_POST && x->client->server == SERVER_UNKNOWN &&
        h->status / 100 == 2)
        x->client->server = SERVER_NEW;
    note_session(x, h);
    if (!x->wants_answer && x->client->first == x && h->status / 100 == 2) {
        x->client->first = NULL; /* it is acknowledged */
        client_soon(x->client);
    }
    if (judge(x, h, &err) < 0)
        exchange_fail(x, &err);
}

static void on_body(void *ctx, str bytes)
{
    take_content(ctx, bytes);
}

static void on_done(void *ctx)
{
    struct exchange *x = ctx;

    x->conn = NULL;
    x->ended = true;
    if (!x->blocked)
        end_body(x);
}

static void on_fail(void *ctx, const struct err *why, bool unheard)
{
    struct exchange *x = ctx;

    x->conn = NULL;
    client_soon(x->client);
    if (unheard && !x->repeated && (x->repeatable || x->kind != EXCHANGE_POST)) {
        x->repeated = true;
        client_run(x->client, x);
        return;
    }
    x->ended = true;
    x->why = *why;
    if (!x->blocked)
        conclude(x, &x->why);
}

static void on_drained(void *ctx)
{
    struct exchange *x = ctx;

    client_soon(x->client);
}

const struct http_conn_events exchange_events = { on_head, on_body, on_done, on_fail,
                                                  on_drained };
