/* SPDX-License-Identifier: Apache-2.0 */
/* To the server: ids become ours, and what is not the member's to say is not sent on. */
#include "pipeline/answer.h"
#include "pipeline/share_internal.h"

#define CLIENT_LOST -31006 /* nobody is there to answer the server */

/* One message of a member on its way. */
struct sending {
    struct share *share;
    struct member *member;
    struct exchange *exchange;
    str text;
    size_t elements;
};

/* --- out --- */

static bool is_there(const struct share *s)
{
    return s->phase == SHARE_RUNNING;
}

static bool is_leaving(const struct share *s)
{
    return s->phase >= SHARE_LEAVING;
}

static int hold(struct share *s, str line)
{
    if (line.n > SHARE_HELD_MAX - s->held.n)
        return -1;
    s->held.max = SHARE_HELD_MAX;
    buf_add(&s->held, line);
    return s->held.failed ? -1 : 0;
}

/* -1: it did not go, and will not. One that the server has no ears for any more went. */
static int write_now(struct share *s, str line)
{
    struct endpoint *e = &s->side.endpoint;
    struct err err;

    if (e->type->send(e, NULL, line, true, &err) == 0)
        return 0;
    if (err.code == ERR_LIMIT)
        return -1;
    share_hear_out(s);
    return 0;
}

static int write_line(struct share *s, str line)
{
    if (is_leaving(s))
        return -1;
    return is_there(s) ? write_now(s, line) : hold(s, line);
}

/* The requests of a message that begins behind this number. */
static void settle(struct share *s, uint64_t before, bool held, const struct err *lost)
{
    struct ask *a = s->last_ask, *older;

    for (; a && a->number > before; a = older) {
        older = a->older;
        a->held = held;
        if (lost && a->member)
            share_put(a->member, PARCEL_LOST, a->exchange, share_ask_id(a), lost);
        if (lost)
            share_ask_free(s, a);
    }
}

/* --- what passes, element by element --- */

static bool has_answer_part(const struct json *j, uint32_t node)
{
    json_each (j, node, at) {
        if (rpc_may_be_name(j, at, STR("result")) || rpc_may_be_name(j, at, STR("error")))
            return true;
    }
    return false;
}

static void lose(const struct sending *p, const struct rpc *m, const struct err *why)
{
    const struct json *j = m->json;
    uint32_t id = rewrite_find(j, m->node, REWRITE_ID, true);

    if (id != JSON_NONE && m->method_node != JSON_NONE)
        share_put(p->member, PARCEL_LOST, p->exchange, json_raw(j, id), why);
}

/* Only by whom it was asked, and only if all readers see the same answer. */
static bool pass_answer(const struct sending *p, const struct rpc *m)
{
    struct asked *a;

    if (m->kind != RPC_RESPONSE || m->id == JSON_NONE || rpc_has_lookalikes(m) ||
        rpc_has_nul(m)) {
        lose(p, m, &share_why_ambiguous);
        return false;
    }
    a = share_asked_find(p->share, p->member, share_key(p->share, m->json, m->id));
    if (a)
        share_asked_free(p->share, a);
    return a != NULL;
}

static bool pass_cancelled(const struct sending *p, const struct rpc *m)
{
    struct share *s = p->share;
    uint32_t node = rewrite_find(m->json, m->node, REWRITE_CANCELLED, true);
    struct ask *a;

    if (node == JSON_NONE)
        return false;
    a = share_ask_find(s, p->member, json_raw(m->json, node),
                       share_key(s, m->json, node));
    if (!a)
        return false;
    share_ask_close(s, a, false);
    rewrite_replace(&s->splice, m->json, m->node, REWRITE_CANCELLED, true,
                    share_ask_number(a));
    return true;
}

static str uri_of(struct share *s, const struct rpc *m)
{
    uint32_t node = rewrite_find(m->json, m->node, REWRITE_URI, true);

    return json_is(m->json, node, JSON_STRING) ? share_key(s, m->json, node) : STR("");
}

static bool is_method(const struct rpc *m, str method)
{
    return rewrite_is_method(m->json, m->node, method);
}

/* False when there is no room for one more. */
static bool note_subscription(const struct sending *p, const struct rpc *m)
{
    str uri = uri_of(p->share, m);

    if (uri.n && is_method(m, STR("resources/unsubscribe")))
        share_unsubscribe(p->member, uri);
    if (uri.n && is_method(m, STR("resources/subscribe")))
        return share_subscribe(p->member, uri);
    return true;
}

static void remember_hello(struct share *s, const struct ask *a, str text)
{
    if (s->hello_number || a->is_ours)
        return;
    buf_reset(&s->hello);
    buf_add(&s->hello, text);
    if (!s->hello.failed)
        s->hello_number = a->number;
}

static void rewrite_request(struct share *s, const struct rpc *m, struct ask *a)
{
    rewrite_replace(&s->splice, m->json, m->node, REWRITE_ID, true, share_ask_number(a));
    rewrite_replace(&s->splice, m->json, m->node, REWRITE_TOKEN, true,
                    share_ask_number(a));
    a->is_initialize = m->method == RPC_INITIALIZE;
    a->is_listen = m->method == RPC_SUBSCRIPTIONS_LISTEN;
}

static bool pass_request(const struct sending *p, const struct rpc *m, uint32_t id)
{
    const struct json *j = m->json;
    uint32_t token = rewrite_find(j, m->node, REWRITE_TOKEN, true);
    struct ask *a = NULL;

    if (note_subscription(p, m))
        a = share_ask_add(p->share, p->member, p->exchange, json_raw(j, id),
                          share_key(p->share, j, id),
                          token == JSON_NONE ? STR("") : json_raw(j, token));
    if (!a) {
        lose(p, m, &share_why_open);
        return false;
    }
    rewrite_request(p->share, m, a);
    if (a->is_initialize && m->node == JSON_ROOT)
        remember_hello(p->share, a, p->text);
    return true;
}

static void remember_initialized(struct share *s, const struct sending *p)
{
    if (s->hello_ok && s->initialized.n == 0)
        buf_add(&s->initialized, p->text);
}

/* Does this element go to the server? Its changes are noted. */
static bool pass(void *ctx, uint32_t node)
{
    struct sending *p = ctx;
    struct rpc m;
    uint32_t id;

    rpc_read(&m, &p->share->json, node);
    if (!json_is(m.json, node, JSON_OBJECT))
        return false;
    if (++p->elements > SHARE_BATCH_MAX) {
        lose(p, &m, &share_why_batch);
        return false;
    }
    if (has_answer_part(m.json, node))
        return pass_answer(p, &m);
    if (is_method(&m, STR("notifications/cancelled")) && !pass_cancelled(p, &m))
        return false;
    id = rewrite_find(m.json, node, REWRITE_ID, true);
    if (id != JSON_NONE)
        return pass_request(p, &m, id);
    if (is_method(&m, STR("notifications/progress")))
        return share_asked_of(p->share, p->member);
    if (node == JSON_ROOT && is_method(&m, STR("notifications/initialized")))
        remember_initialized(p->share, p);
    return true;
}

/* --- a message --- */

static bool is_subscribed_by_any(const struct share *s, str uri)
{
    for (const struct member *m = s->oldest; m; m = m->newer) {
        if (share_is_subscribed(m, uri, true))
            return true;
    }
    return false;
}

/* Who unsubscribes does it for himself. */
static void resubscribe(struct share *s, uint32_t node)
{
    struct rpc m;
    str uri;

    rpc_read(&m, &s->json, node);
    if (m.kind == RPC_RESPONSE || !is_method(&m, STR("resources/unsubscribe")))
        return;
    uri = uri_of(s, &m);
    if (uri.n && is_subscribed_by_any(s, uri))
        share_send_resource(s, true, uri);
}

static void resubscribe_all(struct share *s)
{
    if (!json_is(&s->json, JSON_ROOT, JSON_ARRAY)) {
        resubscribe(s, JSON_ROOT);
        return;
    }
    json_each (&s->json, JSON_ROOT, node)
        resubscribe(s, node);
}

static bool rewrite(struct sending *p)
{
    struct share *s = p->share;

    splice_begin(&s->splice, p->text);
    if (json_is(&s->json, JSON_ROOT, JSON_ARRAY))
        return splice_array(&s->splice, &s->json, JSON_ROOT, pass, p) > 0;
    return pass(p, JSON_ROOT);
}

static int finish_line(struct share *s, str *out, struct err *err)
{
    if (splice_end(&s->splice, out, err) < 0)
        return -1;
    rewrite_make_line(&s->splice.out);
    if (buf_check(&s->splice.out, "a message", err) < 0)
        return -1;
    *out = buf_str(&s->splice.out);
    return 0;
}

/* It has gone, or waits for the server to be there. */
static bool pass_line(struct share *s, uint64_t before)
{
    bool there = is_there(s);
    struct err err = { 0 };
    str line;

    if (finish_line(s, &line, &err) < 0) {
        settle(s, before, false, &share_why_large);
        return false;
    }
    if (write_line(s, line) < 0) {
        settle(s, before, false, there ? &share_why_queue : &share_why_held);
        return false;
    }
    settle(s, before, !there, NULL);
    return true;
}

bool share_to_server(struct share *s, struct member *m, struct exchange *x, str text)
{
    struct sending p = { s, m, x, text, 0 };
    uint64_t before = s->number;
    struct err err = { 0 };
    bool went;

    if (rewrite_parse(&s->json, text, &err) < 0) {
        if (!m->said_no_json)
            share_say(s, "a client sent what is no JSON; it was not sent on: %s",
                      err.msg);
        m->said_no_json = true;
        return false;
    }
    if (!rewrite(&p))
        return false;
    went = pass_line(s, before);
    resubscribe_all(s);
    return went;
}

/* --- what we say ourselves --- */

void share_send_cancel(struct share *s, const struct ask *a)
{
    CLEANUP(buf_release) struct buf line = { 0 };

    buf_printf(&line,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
               "\"params\":{\"requestId\":" STR_FMT "}}\n",
               STR_ARG(share_ask_number(a)));
    (void)write_line(s, buf_str(&line)); /* the server need not know */
}

void share_send_resource(struct share *s, bool subscribe, str uri)
{
    CLEANUP(buf_release) struct buf line = { .max = SPLICE_MAX };
    bool there = is_there(s);
    struct ask *a = share_ask_add(s, NULL, NULL, STR(""), STR(""), STR(""));

    if (!a)
        return;
    buf_printf(&line,
               "{\"jsonrpc\":\"2.0\",\"id\":" STR_FMT ",\"method\":\"resources/%s\","
               "\"params\":{\"uri\":",
               STR_ARG(share_ask_number(a)), subscribe ? "subscribe" : "unsubscribe");
    buf_add(&line, uri);
    buf_add(&line, STR("}}\n"));
    a->held = !there;
    if (line.failed || write_line(s, buf_str(&line)) < 0)
        share_ask_free(s, a);
}

void share_refuse(struct share *s, str id, str message)
{
    CLEANUP(buf_release) struct buf line = { .max = SPLICE_MAX };
    const struct answer a = { .id = id,
                              .code = CLIENT_LOST,
                              .message = message,
                              .reason_code = STR("client_gone") };

    answer_add(&line, &a);
    (void)write_line(s, buf_str(&line)); /* then it waits, as servers do */
}

/* --- a server that was started again --- */

bool share_send_hello(struct share *s)
{
    struct ask *a;
    struct err ignored;
    struct rpc m;
    str line;

    if (!s->hello_ok || rewrite_parse(&s->json, buf_str(&s->hello), &ignored) < 0)
        return false;
    a = share_ask_add(s, NULL, NULL, STR(""), STR(""), STR(""));
    if (!a)
        return false;
    rpc_read(&m, &s->json, JSON_ROOT);
    splice_begin(&s->splice, buf_str(&s->hello));
    rewrite_request(s, &m, a);
    if (finish_line(s, &line, &ignored) < 0 || write_now(s, line) < 0) {
        share_ask_free(s, a);
        return false;
    }
    return true;
}

static void send_initialized(struct share *s)
{
    if (s->initialized.n == 0)
        return;
    rewrite_make_line(&s->initialized);
    (void)write_now(s, buf_str(&s->initialized));
}

/* Twice does no harm. */
static void subscribe_again(struct share *s)
{
    for (const struct member *m = s->oldest; m; m = m->newer) {
        for (const struct subscription *u = m->subscriptions; u; u = u->next)
            share_send_resource(s, true, str_of(u->uri, u->n));
    }
}

/* The phase is RUNNING. */
void share_release_held(struct share *s)
{
    send_initialized(s);
    subscribe_again(s);
    for (struct ask *a = s->first_ask; a; a = a->newer)
        a->held = false;
    if (s->held.n && write_now(s, buf_str(&s->held)) < 0)
        share_ask_lose(s, false, &share_why_queue);
    buf_release(&s->held);
}
