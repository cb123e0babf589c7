/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP on both sides: each request of a client becomes one to the server, with its own
 * headers, and is answered with what the server answers: status, headers and all. Only
 * messages take the way through the session.
 */
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "pipeline/front_errand.h"
#include "transport/http_encode.h"

#define IDLE_MAX 64 /* connections that nobody uses */

/* --- connections --- */

static const struct http_proxy *proxy_of(const struct front *f)
{
    const struct upstream_options *o = f->relay.upstream;

    return o->proxy.used ? &o->proxy : NULL;
}

static struct http_conn *new_conn(struct front *f, struct err *err)
{
    const struct url *url = &f->relay.upstream->url;
    const struct link_options options = { .loop = f->loop,
                                          .resolver = f->resolver,
                                          .trust = f->trust,
                                          .host = url->host,
                                          .port = url->port,
                                          .proxy = proxy_of(f) };

    return http_conn_new(&options, err);
}

void far_release(struct front *f, struct http_conn *conn, bool good)
{
    struct http_conn **list = &f->closing;

    if (good && f->idle_count < IDLE_MAX && http_conn_is_idle(conn)) {
        list = &f->idle;
        f->idle_count++;
    } else {
        http_conn_close(conn);
    }
    conn->next = *list;
    *list = conn;
}

static struct http_conn *find_conn(struct front *f, bool fresh, struct err *err)
{
    while (f->idle && !fresh) {
        struct http_conn *conn = f->idle;

        f->idle = conn->next;
        f->idle_count--;
        if (http_conn_is_idle(conn))
            return conn;
        far_release(f, conn, false);
    }
    return new_conn(f, err);
}

static void free_conns(struct http_conn **list, bool all)
{
    for (struct http_conn **at = list; *at;) {
        struct http_conn *conn = *at;

        if (!all && !http_conn_is_over(conn)) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        http_conn_free(conn);
    }
}

/* Once a second: what idles too long goes, and what is closed is freed. */
void far_sweep(struct front *f)
{
    struct http_conn *idle = f->idle;

    f->idle = NULL;
    f->idle_count = 0;
    while (idle) {
        struct http_conn *conn = idle;

        idle = conn->next;
        far_release(f, conn, true);
    }
    free_conns(&f->closing, false);
}

void far_close(struct front *f)
{
    free_conns(&f->idle, true);
    free_conns(&f->closing, true);
}

/* --- the request --- */

/* Of one connection, or ours to say. */
static bool is_hop(str name)
{
    static const str list[] = {
        { "Connection", 10 },
        { "Keep-Alive", 10 },
        { "Proxy-Connection", 16 },
        { "Proxy-Authenticate", 18 },
        { "Proxy-Authorization", 19 },
        { "TE", 2 },
        { "Trailer", 7 },
        { "Transfer-Encoding", 17 },
        { "Upgrade", 7 },
        { "Content-Length", 14 },
        { "Date", 4 },
        { "Expect", 6 },
    };

    for (size_t i = 0; i < COUNT(list); i++) {
        if (name.n == list[i].n && str_equal_nocase(name, list[i]))
            return true;
    }
    return false;
}

/* A header that Connection names is of that connection, too. */
bool errand_passes(const struct http_head *h, size_t i)
{
    struct http_list list = { 0 };
    str name = http_head_name(h, i), item;

    if (is_hop(name))
        return false;
    if (!http_head_find(h, "Connection", NULL).p)
        return true;
    while (http_list_next(&list, h, "Connection", &item)) {
        if (str_equal_nocase(item, name))
            return false;
    }
    return true;
}

static bool is_replaced(const struct upstream_options *o, str name)
{
    for (size_t i = 0; i < o->header_count; i++) {
        if (str_equal_nocase(o->headers[i].name, name))
            return true;
    }
    return str_equal_nocase(name, STR("Host")) ||
           str_equal_nocase(name, STR("Accept-Encoding"));
}

struct oauth_places far_places(const struct front *f, const struct http_head *asked,
                               struct buf *origin)
{
    const struct upstream_options *o = f->relay.upstream;
    str path = str_from(o->url.target);
    const char *query = memchr(path.p, '?', path.n);

    buf_add(origin, f->o->identity ? STR("https://") : STR("http://"));
    buf_add(origin, asked->host);
    return (struct oauth_places){ str_from(o->origin), buf_str(origin),
                                  query ? str_first(path, (size_t)(query - path.p))
                                        : path,
                                  STR("/mcp") };
}

static void add_path(struct buf *out, const struct errand *x, const struct http_head *h)
{
    CLEANUP(buf_release) struct buf origin = { 0 };
    const struct front *f = x->seat->front;
    struct oauth_places places;

    if (!x->is_access) {
        buf_add(out, str_from(f->relay.upstream->url.target));
        return;
    }
    places = far_places(f, h, &origin);
    oauth_add_path(out, h->parts.path, &places);
}

static int put_target(struct buf *out, const struct errand *x, const struct http_head *h,
                      struct err *err)
{
    CLEANUP(buf_release) struct buf target = { .max = 2 * URL_MAX };
    const struct front *f = x->seat->front;
    const struct upstream_options *o = f->relay.upstream;
    const struct http_proxy *plain = o->url.tls ? NULL : proxy_of(f); /* wants it all */

    if (!plain && !x->is_access && !h->parts.query.p)
        return http_put_request(out, h->method, str_from(o->url.target), err);
    if (plain)
        buf_add(&target, str_from(o->origin));
    add_path(&target, x, h);
    if (h->parts.query.p) {
        buf_add_char(&target, memchr(target.p, '?', target.n) ? '&' : '?');
        buf_add(&target, h->parts.query);
    }
    if (http_put_request(out, h->method, buf_str(&target), err) < 0)
        return -1;
    return plain && plain->authorization[0]
               ? http_put_header(out, STR("Proxy-Authorization"),
                                 str_from(plain->authorization), err)
               : 0;
}

static int put_head(struct buf *out, const struct errand *x, const struct http_head *h,
                    size_t length, struct err *err)
{
    const struct upstream_options *o = x->seat->front->relay.upstream;
    char digits[U64_DIGITS];
    str n = str_of(digits, u64_format(digits, length));

    if (put_target(out, x, h, err) < 0 ||
        http_put_header(out, STR("Host"), str_from(o->url.authority), err) < 0)
        return -1;
    for (size_t i = 0; i < h->count; i++) {
        if (errand_passes(h, i) && !is_replaced(o, http_head_name(h, i)))
            http_put_same(out, h, i);
    }
    for (size_t i = 0; i < o->header_count; i++) {
        if (http_put_header(out, o->headers[i].name, o->headers[i].value, err) < 0)
            return -1;
    }
    if (http_put_header(out, STR("Accept-Encoding"), STR("identity"), err) < 0 ||
        ((length || str_is(h->method, "POST")) &&
         http_put_header(out, STR("Content-Length"), n, err) < 0))
        return -1;
    http_put_end(out);
    return 0;
}

int errand_start(struct errand *x, str request, struct err *err)
{
    x->conn = find_conn(x->seat->front, x->repeated, err);
    if (!x->conn)
        return -1;
    http_conn_read(x->conn, !x->seat->far_paused);
    if (http_conn_request(x->conn, request, STR(""), &errand_events, x, err) == 0) {
        x->size = request.n;
        errand_note_sending(x, http_conn_queued(x->conn) > 0);
        return 0;
    }
    far_release(x->seat->front, x->conn, false);
    x->conn = NULL;
    return -1;
}

static struct errand *new_errand(struct visit *v)
{
    struct errand *x = malloc(sizeof(*x));
    struct seat *s = v->seat;

    if (!x)
        return NULL;
    *x = (struct errand){ .seat = s,
                          .exchange = v->exchange,
                          .kind = v->kind,
                          .is_delete = v->is_delete,
                          .is_initialize = v->is_initialize,
                          .stateless = v->stateless,
                          .repeatable = v->kind != VISIT_POST,
                          .next = s->errands };
    sse_init(&x->sse, s->front->relay.max_message);
    if (s->errands)
        s->errands->before = x;
    s->errands = x;
    v->errand = x;
    x->is_access = str_starts(v->request->head->parts.path, STR("/.well-known/"));
    return x;
}

/* What may have to be sent again is kept. */
static int send_request(struct errand *x, const struct http_head *head, str body,
                        struct err *err)
{
    struct buf *out = &x->seat->front->request;

    buf_reset(out);
    out->max = body.n + 2 * HTTP_HEAD_MAX;
    if (put_head(out, x, head, body.n, err) < 0)
        return -1;
    buf_add(out, body);
    if (x->repeatable)
        buf_add(&x->request, buf_str(out));
    if (buf_check(out, "a request", err) < 0 ||
        buf_check(&x->request, "a request", err) < 0)
        return -1;
    return errand_start(x, buf_str(out), err);
}

static int begin_errand(struct visit *v, str body, struct err *err)
{
    struct errand *x = new_errand(v);
    struct buf *out = &v->seat->front->request;
    int r;

    if (!x)
        return err_set(err, ERR_NOMEM, "no memory for a request");
    r = send_request(x, v->request->head, body, err);
    if (out->cap > HTTP_HEAD_MAX)
        buf_release(out);
    return r;
}

int far_send(struct visit *v, str body, struct err *err)
{
    if (begin_errand(v, body, err) == 0)
        return 0;
    if (v->errand)
        errand_conclude(v->errand, err); /* which answers, and may end the visit */
    else
        relay_lose_all(v->seat->relay, v->exchange, "server_exit", err);
    return -1;
}

void far_read(struct errand *x, bool on)
{
    x->stalled = !on;
    if (x->conn)
        http_conn_read(x->conn, on && !x->seat->far_paused);
}

/* What a client that is gone leaves behind. */
void far_abandon(struct errand *x)
{
    if (x->stateless || x->kind != VISIT_POST)
        errand_end(x);
    else
        far_read(x, true); /* nobody stalls it any more */
}

unsigned far_status(const struct errand *x, str *headers, uint64_t *length)
{
    *headers = buf_str(&x->headers);
    *length = x->length;
    return x->status;
}

/* --- the server's endpoint --- */

static struct seat *seat_of(const struct endpoint *e)
{
    return (struct seat *)((uintptr_t)e - offsetof(struct seat, far));
}

static void side_read(struct endpoint *e, bool on)
{
    struct seat *s = seat_of(e);

    s->far_paused = !on;
    for (const struct errand *x = s->errands; x; x = x->next) {
        if (x->conn)
            http_conn_read(x->conn, on && !x->stalled);
    }
}

static int side_send(struct endpoint *e, struct exchange *to, str bytes, bool end,
                     struct err *err)
{
    struct seat *s = seat_of(e);
    struct visit *v = visit_of(s->front, to);

    if (!end)
        return err_set(err, ERR_REFUSED, "a message must be sent whole");
    if (v && !v->errand)
        return far_send(v, bytes, err);
    err_set(err, ERR_PEER, "the client is gone");
    if (!v) /* no answer will come to what is not sent */
        relay_lose_all(s->relay, to, "client_gone", err);
    return -1;
}

static void side_cork(struct endpoint *e, bool on)
{
    (void)e;
    (void)on;
}

static size_t side_queued(const struct endpoint *e)
{
    size_t n = 0;

    if (seat_of(e)->far_sending == 0)
        return 0;
    for (const struct errand *x = seat_of(e)->errands; x; x = x->next)
        n += x->conn && x->sending ? http_conn_queued(x->conn) : 0;
    return n;
}

/* Only a GET brings answers to what was asked before: see Last-Event-ID. */
static bool side_is_own(const struct endpoint *e, const struct exchange *x)
{
    const struct errand *at = seat_of(e)->errands;

    while (at && at->exchange != x)
        at = at->next;
    return at && at->kind == VISIT_POST;
}

static void side_settled(struct endpoint *e, const struct exchange *x)
{
    const struct err unknown = { ERR_NOMEM, "the request failed" };
    struct errand *at = seat_of(e)->errands;

    while (at && (at->exchange != x || !at->deferred))
        at = at->next;
    if (at)
        errand_conclude(at, !at->failed ? NULL : at->why ? at->why : &unknown);
}

static void kill_errands(struct seat *s, bool streams_only)
{
    for (struct errand *x = s->errands, *next; x; x = next) {
        next = x->next;
        if (!streams_only || x->kind != VISIT_POST)
            errand_end(x);
    }
}

static void side_finish(struct endpoint *e)
{
    struct seat *s = seat_of(e);

    kill_errands(s, !s->far_finishing);
    s->far_finishing = true;
    front_soon(s);
}

static void side_close(struct endpoint *e)
{
    struct seat *s = seat_of(e);

    kill_errands(s, false);
    s->far_ended = true;
}

/* From the loop: has the last of them ended? */
void far_go_on(struct seat *s)
{
    const struct endpoint *e = &s->far;

    if (!e->type || !e->events || s->far_ended)
        return;
    if (s->far_finishing && !s->errands) {
        s->far_ended = true;
        e->events->on_ended(e->ctx, NULL);
    } else if (side_queued(e) == 0) {
        e->events->on_drained(e->ctx);
    }
}

const struct endpoint_type front_far = {
    .name = "streamable-http",
    .read = side_read,
    .send = side_send,
    .cork = side_cork,
    .queued = side_queued,
    .finish = side_finish,
    .close = side_close,
    .is_own = side_is_own,
    .settled = side_settled,
};
