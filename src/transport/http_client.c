/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "transport/http_client_internal.h"
#include "transport/resolve.h"

#define BODY_MAX ((size_t)72 << 20) /* of a message: what is judged whole, and some */

void client_say(const struct http_client *c, const char *fmt, ...)
{
    struct err sentence; /* which escapes what is foreign */
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(&sentence, ERR_PEER, "%s", text);
    c->options.hooks->say(c->options.ctx, sentence.msg);
}

/* --- exchanges --- */

struct exchange *client_add(struct http_client *c, enum exchange_kind kind)
{
    struct exchange *x = calloc(1, sizeof(*x)), **end = &c->exchanges;

    if (!x)
        return NULL;
    *x = (struct exchange){ .client = c,
                            .kind = kind,
                            .body = { .max = BODY_MAX },
                            .ids = { .max = BODY_MAX },
                            .target = { .max = URL_MAX },
                            .message = { .max = 8 * HTTP_HOLD },
                            .waiting = { .max = 8 * HTTP_HOLD },
                            .retry = HTTP_RETRY_DEFAULT };
    sse_init(&x->sse, 0);
    while (*end)
        end = &(*end)->next;
    *end = x;
    return x;
}

static void free_exchange(struct exchange *x)
{
    loop_timer_free(x->timer);
    sse_release(&x->sse);
    buf_release(&x->body);
    buf_release(&x->ids);
    buf_release(&x->target);
    buf_release(&x->message);
    buf_release(&x->waiting);
    buf_release(&x->last_id);
    free(x);
}

void client_kill(struct exchange *x)
{
    struct http_client *c = x->client;

    x->state = EXCHANGE_DEAD;
    if (x->conn)
        http_conn_close(x->conn);
    x->conn = NULL;
    if (c->speaker == x)
        c->speaker = NULL;
    if (c->first == x)
        c->first = NULL;
    client_soon(c);
}

/* The client may have cancelled it since, or another stream may have answered it. */
static bool is_awaited(const struct exchange *x)
{
    const struct http_client *c = x->client;

    return x->wants_answer && !x->answered &&
           c->options.hooks->awaits(c->options.ctx, buf_str(&x->ids));
}

static bool is_open(const struct exchange *x)
{
    if (x->state == EXCHANGE_DEAD || x->kind != EXCHANGE_POST)
        return false;
    return x->state == EXCHANGE_QUEUED || !x->wants_answer ||
           (!x->endless && is_awaited(x));
}

bool http_client_is_busy(const struct http_client *c)
{
    const struct exchange *x = c->exchanges;

    while (x && !is_open(x))
        x = x->next;
    return x != NULL;
}

/* --- connections --- */

static void sweep(struct http_client *c)
{
    size_t idle = 0;

    for (struct http_conn **at = &c->conns; *at;) {
        struct http_conn *conn = *at;

        if (!conn->closed && !conn->ctx && conn->used &&
            (!http_conn_is_idle(conn) || ++idle > HTTP_IDLE_MAX))
            http_conn_close(conn);
        if (!http_conn_is_over(conn)) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        c->conn_count--;
        http_conn_free(conn);
    }
    for (struct exchange **at = &c->exchanges; *at;) {
        struct exchange *x = *at;

        if (x->state != EXCHANGE_DEAD) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        free_exchange(x);
    }
}

static struct http_conn *new_conn(struct http_client *c, struct err *err)
{
    const struct link_options options = { .loop = c->options.loop,
                                          .resolver = c->resolver,
                                          .trust = c->options.url->tls ? c->options.trust
                                                                       : NULL,
                                          .host = c->options.url->host,
                                          .port = c->options.url->port,
                                          .proxy = c->options.proxy };
    struct http_conn *conn = http_conn_new(&options, err);

    if (!conn)
        return NULL;
    conn->next = c->conns;
    c->conns = conn;
    c->conn_count++;
    return conn;
}

static struct http_conn *find_conn(struct http_client *c, bool fresh, struct err *err)
{
    struct http_conn *conn = fresh ? NULL : c->conns;

    while (conn && !http_conn_is_idle(conn))
        conn = conn->next;
    return conn ? conn : new_conn(c, err);
}

/* --- requests --- */

static int start(struct exchange *x, const struct http_facts *f, struct err *err)
{
    CLEANUP(buf_release) struct buf head = { .max = HTTP_HEAD_MAX };
    struct http_client *c = x->client;

    if (exchange_put_head(&head, x, f, err) < 0)
        return -1;
    x->conn = find_conn(c, x->repeated, err);
    if (!x->conn)
        return -1;
    http_conn_read(x->conn, !c->paused);
    if (http_conn_request(x->conn, buf_str(&head),
                          x->last_id.n ? (str){ NULL, 0 } : buf_str(&x->body),
                          &exchange_events, x, err) == 0)
        return 0;
    http_conn_close(x->conn);
    x->conn = NULL;
    return -1;
}

/* What a stateless server is told by closing the stream of the answer. */
static void cancel(struct http_client *c, str ids)
{
    for (struct exchange *x = c->exchanges; x; x = x->next) {
        if (x->state == EXCHANGE_RUNNING && x->wants_answer &&
            str_equal(buf_str(&x->ids), ids) && !x->speaking) {
            client_kill(x);
            return;
        }
    }
}

static void note_facts(struct exchange *x, const struct http_facts *f)
{
    x->wants_answer = f->wants_answer;
    x->opens_session = f->opens_session;
    x->opens_stream = f->opens_stream;
    x->endless = f->endless;
    x->stateless = f->stateless;
    x->repeatable = f->repeatable;
    x->client->stateless = f->stateless;
    buf_reset(&x->ids);
    buf_add(&x->ids, f->ids);
}

void client_run(struct http_client *c, struct exchange *x)
{
    struct http_facts f = { 0 };
    struct err err = { 0 };

    x->state = EXCHANGE_RUNNING;
    x->why = (struct err){ 0 };
    c->options.hooks->describe(
        c->options.ctx, x->kind == EXCHANGE_POST ? buf_str(&x->body) : (str){ NULL, 0 },
        &f);
    if (c->server == SERVER_OLD)
        legacy_forget_headers(&f);
    if (x->kind == EXCHANGE_POST && !x->last_id.n)
        note_facts(x, &f);
    if (f.cancels.p && f.stateless) {
        cancel(c, f.cancels);
        client_kill(x);
        return;
    }
    if (x->kind == EXCHANGE_POST && (x->opens_session || !x->wants_answer)) {
        c->first = x;
        if (!x->opens_session)
            loop_timer_set(c->ack, HTTP_ACK_WAIT, false);
    }
    if (start(x, &f, &err) < 0) {
        x->why = err; /* told from the loop: we may be inside send() */
        client_soon(c);
    }
}

/* Streams that servers leave open although nobody waits for them any more. */
static void make_room(struct http_client *c)
{
    for (struct exchange *x = c->exchanges; x; x = x->next) {
        if (x->state == EXCHANGE_RUNNING && x->wants_answer && !x->speaking &&
            !x->blocked && !is_awaited(x))
            client_kill(x);
    }
}

static void run_queue(struct http_client *c)
{
    for (struct exchange *x = c->exchanges; x && !c->first && c->server != SERVER_ASKED;
         x = x->next) {
        if (x->state != EXCHANGE_QUEUED)
            continue;
        if (c->conn_count >= HTTP_CONNS_MAX) {
            make_room(c);
            return;
        }
        client_run(c, x);
    }
}

/* --- what goes on from the loop --- */

void client_soon(struct http_client *c)
{
    loop_timer_set(c->soon, 0, false);
}

/* A message that is half delivered must not be taken for a whole one. */
static void abandon(struct exchange *x)
{
    static const struct err why = { ERR_PEER, "the server did not end its message" };
    struct http_client *c = x->client;
    bool speaking = x->speaking && x->state == EXCHANGE_RUNNING;

    client_kill(x);
    if (speaking)
        c->options.hooks->cut(c->options.ctx, &why);
}

static void end_when_done(struct http_client *c)
{
    struct exchange *x;

    if (!c->finishing || c->deleting || (!c->giving_up && http_client_is_busy(c)))
        return;
    c->deleting = true;
    for (x = c->exchanges; x; x = x->next)
        abandon(x);
    x = c->session.n && !c->stateless ? client_add(c, EXCHANGE_DELETE) : NULL;
    if (x)
        client_run(c, x);
    else
        c->ended = true;
}

static void on_soon(void *ctx)
{
    struct http_client *c = ctx;

    for (struct exchange *x = c->exchanges; x; x = x->next) {
        if (x->state == EXCHANGE_AWAITING && !is_awaited(x))
            client_kill(x);
        if (x->state != EXCHANGE_RUNNING)
            continue;
        if (x->blocked && !c->speaker)
            exchange_unblock(x);
        else if (!x->conn && !x->blocked && x->why.code != ERR_NONE)
            exchange_fail(x, &x->why);
    }
    sweep(c);
    run_queue(c);
    if (c->endpoint.type->queued(&c->endpoint) == 0)
        c->endpoint.events->on_drained(c->endpoint.ctx);
    end_when_done(c);
    if (c->ended && !c->said_ended) {
        c->said_ended = true;
        c->endpoint.events->on_ended(c->endpoint.ctx,
                                     c->why.code == ERR_NONE ? NULL : &c->why);
    }
}

static void on_ack_late(void *ctx)
{
    struct http_client *c = ctx;

    if (c->first && !c->first->opens_session)
        c->first = NULL;
    client_soon(c);
}

/* --- the endpoint --- */

static struct http_client *of(struct endpoint *e)
{
    return (struct http_client *)e; /* its first member */
}

static void client_read(struct endpoint *e, bool on)
{
    struct http_client *c = of(e);

    c->paused = !on;
    for (const struct exchange *x = c->exchanges; x; x = x->next) {
        if (x->state == EXCHANGE_RUNNING && x->conn)
            http_conn_read(x->conn, on && !x->blocked);
    }
}

static int client_send(struct endpoint *e, struct exchange *to, str bytes, bool end,
                       struct err *err)
{
    struct http_client *c = of(e);
    struct exchange *x;

    (void)to; /* a message of ours begins an exchange of its own */
    if (!end)
        return err_set(err, ERR_REFUSED, "a message must be sent whole");
    if (c->finishing)
        return err_set(err, ERR_PEER, "the connection is closed");
    while (bytes.n && (bytes.p[bytes.n - 1] == '\n' || bytes.p[bytes.n - 1] == '\r'))
        bytes.n--;
    if (bytes.n == 0)
        return 0;
    x = client_add(c, EXCHANGE_POST);
    if (!x)
        return err_set(err, ERR_NOMEM, "no memory for a message");
    buf_add(&x->body, bytes);
    if (buf_check(&x->body, "a message", err) < 0) {
        client_kill(x);
        return -1;
    }
    run_queue(c);
    return 0;
}

static void client_cork(struct endpoint *e, bool on)
{
    (void)e; /* a message has a connection of its own */
    (void)on;
}

static size_t client_queued(const struct endpoint *e)
{
    const struct http_client *c = (const struct http_client *)e;
    size_t n = 0;

    for (const struct exchange *x = c->exchanges; x; x = x->next)
        n += x->state == EXCHANGE_QUEUED ? x->body.n : 0;
    for (const struct http_conn *conn = c->conns; conn; conn = conn->next)
        n += http_conn_queued(conn);
    return n;
}

static void client_finish(struct endpoint *e)
{
    struct http_client *c = of(e);

    c->giving_up = c->finishing;
    c->finishing = true;
    for (struct exchange *x = c->exchanges; x; x = x->next) {
        if (x->kind == EXCHANGE_LISTEN && !x->speaking)
            client_kill(x);
    }
    client_soon(c);
}

static void client_close(struct endpoint *e)
{
    struct http_client *c = of(e);

    for (struct exchange *x = c->exchanges; x; x = x->next)
        client_kill(x);
    loop_timer_stop(c->soon);
    c->finishing = c->said_ended = true;
}

static const struct endpoint_type client_type = {
    .name = "streamable-http",
    .read = client_read,
    .send = client_send,
    .cork = client_cork,
    .queued = client_queued,
    .finish = client_finish,
    .close = client_close,
};

struct endpoint *http_client_endpoint(struct http_client *c)
{
    return &c->endpoint;
}

int http_client_open(struct http_client **out, const struct http_client_options *options,
                     struct err *err)
{
    struct http_client *c = calloc(1, sizeof(*c));

    if (!c)
        return err_set(err, ERR_NOMEM, "no memory for a client");
    c->endpoint = (struct endpoint){ &client_type, options->events, options->ctx };
    c->options = *options;
    if (resolver_new(&c->resolver, options->loop, err) < 0 ||
        loop_timer_new(&c->ack, options->loop, on_ack_late, c, err) < 0 ||
        loop_timer_new(&c->soon, options->loop, on_soon, c, err) < 0) {
        http_client_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    if (c->soon)
        client_close(&c->endpoint);
    resolver_free(c->resolver); /* nobody is looking any more */
    while (c->conns) {
        struct http_conn *conn = c->conns;

        c->conns = conn->next;
        http_conn_free(conn);
    }
    while (c->exchanges) {
        struct exchange *x = c->exchanges;

        c->exchanges = x->next;
        free_exchange(x);
    }
    loop_timer_free(c->ack);
    loop_timer_free(c->soon);
    buf_release(&c->session);
    free(c);
}
