/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of the transport before Streamable HTTP; declared in http_client_internal.h.
 *
 * A POST that is refused as if nobody were there (400, 404, 405, and no message in its
 * body) waits, and the same URL is asked with GET for a stream whose first event names
 * the place for POSTs. If there is one, all messages go there, all answers come on the
 * stream, and its end is the end of the session. */
#include "transport/http_client_internal.h"

bool legacy_may_be(const struct exchange *x)
{
    const struct http_client *c = x->client;

    return x->kind == EXCHANGE_POST && !c->finishing &&
           (c->server == SERVER_UNKNOWN || c->server == SERVER_ASKED) &&
           (x->status == 400 || x->status == 404 || x->status == 405);
}

bool legacy_is_asking(const struct exchange *x)
{
    return x->kind == EXCHANGE_STREAM && x->client->server == SERVER_ASKED;
}

void legacy_forget_headers(struct http_facts *f)
{
    if (f->stateless)
        f->version = (str){ NULL, 0 };
    f->stateless = false;
    f->mirrored_count = 0;
    f->method = f->name = (str){ NULL, 0 };
}

/* Messages that wait, or whose answers do, are not answered any more. */
static void fail_posts(struct http_client *c, const struct err *why)
{
    for (struct exchange *x = c->exchanges; x; x = x->next) {
        if (x->kind != EXCHANGE_POST || x->state == EXCHANGE_DEAD)
            continue;
        x->state = EXCHANGE_RUNNING;
        exchange_fail(x, why);
    }
}

/* It is none: what waited was refused, for good. */
static void give_up(struct http_client *c, const struct err *why)
{
    c->server = SERVER_NEW;
    for (struct exchange *x = c->exchanges; x; x = x->next) {
        struct err both;

        if (x->state != EXCHANGE_QUEUED || x->why.code == ERR_NONE)
            continue;
        err_set(&both, x->why.code,
                "%.200s; nor is it an older server (HTTP+SSE): %.200s", x->why.msg,
                why->msg);
        x->state = EXCHANGE_RUNNING;
        exchange_fail(x, &both);
    }
    client_soon(c);
}

static void on_silent(void *ctx)
{
    static const struct err silent = {
        ERR_TIMEOUT, "the server opens a stream but names no endpoint"
    };
    struct exchange *x = ctx;

    if (x->state == EXCHANGE_RUNNING && legacy_is_asking(x))
        exchange_fail(x, &silent);
}

static int open_stream(struct http_client *c, struct err *err)
{
    struct exchange *x = client_add(c, EXCHANGE_STREAM);

    if (!x)
        return err_set(err, ERR_NOMEM, "no memory for a stream");
    x->stateless = true; /* nothing to go on with */
    if (loop_timer_new(&x->timer, c->options.loop, on_silent, x, err) < 0) {
        client_kill(x);
        return -1;
    }
    loop_timer_set(x->timer, HTTP_ENDPOINT_WAIT, false);
    client_run(c, x);
    return 0;
}

void legacy_ask(struct exchange *x, const struct err *why)
{
    struct http_client *c = x->client;
    bool first = c->server == SERVER_UNKNOWN;
    struct err err = { 0 };

    x->why = *why;
    x->state = EXCHANGE_QUEUED;
    x->status = 0;
    x->ended = false;
    buf_reset(&x->message);
    buf_reset(&x->target);
    if (c->first == x)
        c->first = NULL;
    c->server = SERVER_ASKED;
    if (first && open_stream(c, &err) < 0)
        give_up(c, &err);
}

void legacy_take_endpoint(struct exchange *x)
{
    const struct url here = exchange_url(x);
    struct http_client *c = x->client;
    struct err err = { 0 };

    if (!x->sse.has_data || !str_is(buf_str(&x->sse.type), "endpoint")) {
        buf_reset(&x->message); /* not yet */
        return;
    }
    if (url_resolve(&c->place, &here, buf_str(&x->message), &err) < 0) {
        err_wrap(&err, "the endpoint that the server names");
        exchange_fail(x, &err);
        return;
    }
    buf_reset(&x->message);
    loop_timer_stop(x->timer);
    c->server = SERVER_OLD;
    c->options.hooks->found(c->options.ctx, "sse");
    client_soon(c);
}

void legacy_stream_ended(struct exchange *x, const struct err *why)
{
    static const struct err ended = { ERR_PEER,
                                      "the server ended its stream, and so the session" };
    struct http_client *c = x->client;
    bool asking = legacy_is_asking(x);

    client_kill(x);
    if (asking) {
        give_up(c, why ? why : &ended);
        return;
    }
    c->finishing = c->deleting = c->ended = true;
    if (why)
        c->why = *why;
    fail_posts(c, why ? why : &ended);
}
