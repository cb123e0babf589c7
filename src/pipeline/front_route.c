/* SPDX-License-Identifier: Apache-2.0 */
/* Which way a request over HTTP takes: to which session, and how it is answered. */
#include <stdio.h>
#include <string.h>

#include "pipeline/answer.h"
#include "pipeline/front_internal.h"
#include "pipeline/share.h"
#include "pipeline/upstream.h"

#define SESSION_UNKNOWN -32001
#define BODY_SMALL      ((size_t)64 << 10) /* too small to be counted */

/* --- a message --- */

/* A message that wants no answer is taken; where the server says so itself, only what
 * did not get there. */
static void accept_if_swallowed(struct visit *v)
{
    bool far = v->seat->far.type != NULL;

    if (v->open == 0 && !v->begun && !v->errand && (!far || !relay_holds(v->seat->relay)))
        visit_accept(v);
    else if ((!far || v->errand) && !v->is_initialize)
        http_request_drop_body(v->request);
    else if (!v->errand && !v->begun)
        v->seat->undecided = true; /* it waits for the disk, or for names */
}

/* Answers of the older transport come on its stream. */
static void hand_on(struct visit *v)
{
    struct seat *s = v->seat;
    struct front *f = s->front;
    struct exchange *x = v->exchange;
    bool legacy = s->kind == SEAT_LEGACY;

    v->waits = false;
    v->open = legacy ? 0 : f->peek.requests;
    v->is_batch = f->peek.is_batch;
    v->stateless = f->peek.is_stateless && !legacy;
    v->is_initialize = f->peek.is_initialize;
    if (f->peek.tokens.n)
        buf_add(&v->tokens, buf_str(&f->peek.tokens));
    f->handed = &f->peek.json;
    s->side.events->on_span(s->side.ctx, legacy && s->stream ? s->stream->exchange : x,
                            v->request->body, true);
    f->handed = NULL;
    v = visit_of(f, x); /* it may have been answered */
    if (v)
        accept_if_swallowed(v);
}

/* In the order in which they came; a session that does not read makes them wait. */
static void hand_on_or_wait(struct visit *v)
{
    const struct seat *s = v->seat;

    v->request->ends_with_client =
        s->front->peek.is_stateless && s->kind != SEAT_LEGACY; /* going is cancelling */
    if (s->reading && s->waiting == 0) {
        hand_on(v);
        return;
    }
    v->waits = true;
    v->seat->waiting++;
}

void front_hand_on(struct seat *s)
{
    struct visit *v = s->waiting || s->undecided ? s->visits : NULL;

    s->undecided = false;
    while (v && s->state == SEAT_OPEN) {
        struct visit *next = v->next;

        if (v->kind == VISIT_POST && !v->waits && s->far.type) {
            accept_if_swallowed(v);
        } else if (v->waits && s->reading) {
            s->waiting--;
            peek_read(&s->front->peek, v->request->body);
            hand_on(v);
        }
        v = next;
    }
}

static bool is_known_version(str version)
{
    static const char *const known[] = { "2024-11-05", "2025-03-26", "2025-06-18",
                                         "2025-11-25" };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (str_is(version, known[i]))
            return true;
    }
    return false;
}

static bool is_blank(str text)
{
    while (text.n && memchr(" \t\r\n", text.p[0], 4))
        text = str_skip(text, 1);
    return text.n == 0;
}

/* What a server behind us would say itself is left to it; but nothing is no message, and
 * is not sent to anybody. */
static bool check_body(struct front *f, struct http_request *r)
{
    const struct peek *p = &f->peek;
    const char *wrong;
    str version;

    if (!p->is_json && is_blank(r->body)) {
        front_refuse(f, r, 400, -32700, STR(""), "the body is empty");
        return false;
    }
    if (front_is_far(f) && (!p->is_stateless || p->is_batch))
        return true;
    if (!p->is_json || !p->is_rpc) {
        front_refuse(f, r, 400, p->is_json ? -32600 : -32700, STR(""), "%s",
                     p->is_json ? "the body is no JSON-RPC message"
                                : "the body is no JSON");
        return false;
    }
    if (p->is_stateless && p->is_batch) {
        front_refuse(f, r, 400, -32600, STR(""), "this version has no batches");
        return false;
    }
    wrong = p->is_stateless ? peek_mismatch(&f->peek, r->head) : NULL;
    if (p->is_stateless && !wrong)
        wrong = peek_param_mismatch(&f->peek, &f->marks, r->head);
    if (wrong) {
        front_refuse(f, r, 400, -32020, buf_str(&p->id), "%s", wrong);
        return false;
    }
    version = http_head_find(r->head, "MCP-Protocol-Version", NULL);
    if (!p->is_stateless && version.p && !is_known_version(version)) {
        front_refuse(f, r, 400, -32000, STR(""),
                     str_is(version, "2026-07-28")
                         ? "MCP-Protocol-Version is 2026-07-28, but params._meta of the "
                           "body has no io.modelcontextprotocol/protocolVersion"
                         : "Bad Request: Unsupported protocol version (supported "
                           "versions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25)");
        return false;
    }
    return true;
}

static struct digest owner_of(const struct http_request *r)
{
    str who = http_head_find(r->head, "Authorization", NULL);

    return digest_of(who.p ? who : str_from(http_request_peer(r)));
}

static struct seat *group_for(struct front *f, struct http_request *r, struct err *err)
{
    struct digest owner = owner_of(r);
    struct seat *s = front_find_group(f, &owner);

    if (s)
        return s;
    s = front_seat(f, SEAT_GROUP, err);
    if (s)
        s->owner = owner;
    return s;
}

/* HTTP on both sides: the server knows which sessions there are. */
static struct seat *far_seat_for(struct front *f, struct http_request *r, struct err *err)
{
    str name = http_head_find(r->head, "Mcp-Session-Id", NULL);
    struct seat *s;

    if (!f->peek.is_stateless && name.n && name.n <= HTTP_SESSION_MAX) {
        s = front_find(f, name);
        if (!s && (s = front_seat(f, SEAT_SESSION, err)))
            front_name_seat(s, name);
        return s;
    }
    if (!f->peek.is_initialize || f->peek.is_stateless)
        return group_for(f, r, err);
    s = front_seat(f, SEAT_SESSION, err);
    if (s)
        s->owner = owner_of(r);
    return s;
}

/* The session that a request names, or that it begins. NULL: it has been answered. */
static struct seat *seat_for(struct front *f, struct http_request *r)
{
    UNINITIALIZED struct err err;
    struct seat *s;
    str name;

    if (front_is_far(f)) {
        s = far_seat_for(f, r, &err);
    } else if (f->peek.is_stateless) {
        s = group_for(f, r, &err);
    } else if ((name = http_head_find(r->head, "Mcp-Session-Id", NULL)).p) {
        s = front_find(f, name);
        if (!s)
            front_refuse(
                f, r, 404, SESSION_UNKNOWN, buf_str(&f->peek.id),
                "Session not found: it has ended, or never was; send initialize anew");
        return s;
    } else if (!f->peek.is_initialize) {
        front_refuse(f, r, 400, -32000, buf_str(&f->peek.id),
                     "Bad Request: Mcp-Session-Id header is required; the answer to "
                     "initialize has it");
        return NULL;
    } else {
        s = front_seat(f, SEAT_SESSION, &err);
    }
    if (!s)
        front_refuse(f, r, 503, ANSWER_SERVER_LOST, buf_str(&f->peek.id),
                     "no session can be begun: %s", err.msg);
    return s;
}

/* What servers do not take fills our memory, not theirs. */
static size_t front_unsent(const struct front *f)
{
    size_t n = f->unsent;

    for (const struct seat *s = f->seats; s && !f->relay.upstream; s = s->next)
        n += s->state <= SEAT_ENDING ? relay_unsent(s->relay) : 0;
    return n;
}

static void take_post(struct front *f, struct http_request *r)
{
    UNINITIALIZED struct err err;
    struct seat *s;
    struct visit *v;

    if (r->body.n > BODY_SMALL && front_unsent(f) + r->body.n > HTTP_SERVER_BODIES_MAX) {
        front_refuse(f, r, 503, ANSWER_SERVER_LOST, STR(""),
                     "the server does not take what it is sent; try again");
        return;
    }
    peek_read(&f->peek, r->body);
    if (!check_body(f, r))
        return;
    s = seat_for(f, r);
    if (!s)
        return;
    v = visit_new(s, r, VISIT_POST, &err);
    if (!v) {
        front_refuse(f, r, 503, -32000, STR(""), "%s", err.msg);
        return;
    }
    if (!v->takes_json && !v->takes_events && !s->far.type) {
        visit_end(v);
        front_refuse(f, r, 406, -32000, STR(""),
                     "Not Acceptable: Client must accept application/json or "
                     "text/event-stream, better both");
        return;
    }
    hand_on_or_wait(v);
}

/* What it is, the session that is begun for it finds out; then it is known for all. */
void front_fall_back(struct visit *v)
{
    struct seat *old = v->seat, *s;
    struct front *f = old->front;
    struct http_request *r = v->request;
    struct err err = { 0 };

    peek_read(&f->peek, r->body);
    visit_end(v);
    front_end_seat(old, "client_eof");
    f->is_asking = true;
    s = front_seat(f, SEAT_SESSION, &err);
    f->is_asking = false;
    v = s ? visit_new(s, r, VISIT_POST, &err) : NULL;
    if (v)
        hand_on_or_wait(v);
    else
        front_refuse(f, r, 503, ANSWER_SERVER_LOST, buf_str(&f->peek.id), "%s", err.msg);
}

/* --- streams --- */

/* What has no body goes past the session; so it must have none, since a server may take
 * it for a message. */
static void take_other(struct front *f, struct http_request *r)
{
    struct err err = { 0 };
    struct seat *s;
    struct visit *v;

    if (r->body.n) {
        front_refuse(f, r, 400, -32000, STR(""), "only a POST may have a body");
        return;
    }
    peek_read(&f->peek, STR("{}"));
    s = far_seat_for(f, r, &err);
    v = s ? visit_new(s, r, VISIT_STREAM, &err) : NULL;
    if (!v) {
        front_refuse(f, r, 503, -32000, STR(""), "%s", err.msg);
        return;
    }
    v->is_delete = front_is_method(r, "DELETE");
    (void)!far_send(v, STR(""), &err); /* who asked has been told */
}

static struct seat *named_seat(struct front *f, struct http_request *r)
{
    str name = http_head_find(r->head, "Mcp-Session-Id", NULL);
    struct seat *s = name.p ? front_find(f, name) : NULL;

    if (!name.p)
        front_refuse(f, r, 400, -32000, STR(""),
                     "Bad Request: Mcp-Session-Id header is required; the answer to "
                     "initialize has it");
    else if (!s)
        front_refuse(
            f, r, 404, SESSION_UNKNOWN, STR(""),
            "Session not found: it has ended, or never was; send initialize anew");
    return s;
}

/* One stream at a time: who asks again has lost the one before. */
static void take_stream(struct front *f, struct http_request *r)
{
    struct seat *s = named_seat(f, r);
    struct err err = { 0 };
    struct visit *v, *before;

    if (!s)
        return;
    if (!http_head_lists(r->head, "Accept", "text/event-stream")) {
        front_refuse(f, r, 406, -32000, STR(""),
                     "Not Acceptable: Client must accept text/event-stream");
        return;
    }
    v = visit_new(s, r, VISIT_STREAM, &err);
    if (!v) {
        front_refuse(f, r, 503, -32000, STR(""), "%s", err.msg);
        return;
    }
    before = s->stream;
    if (before) {
        struct http_request *old = before->request;

        visit_end(before);
        http_reply_end(old);
    }
    s->stream = v;
    visit_begin(v);
    visit_hear(s);
}

static void take_delete(struct front *f, struct http_request *r)
{
    struct seat *s = named_seat(f, r);

    if (!s)
        return;
    front_begin_headers(f, r->head);
    http_reply(r, 200, buf_str(&f->headers), STR(""));
    front_end_seat(s, "client_eof");
}

/* --- the older transport --- */

static void take_legacy_stream(struct front *f, struct http_request *r)
{
    char text[128];
    struct err err = { 0 };
    struct seat *s = front_seat(f, SEAT_LEGACY, &err);
    struct visit *v = s ? visit_new(s, r, VISIT_LEGACY, &err) : NULL;

    if (!v) {
        front_refuse(f, r, 503, ANSWER_SERVER_LOST, STR(""),
                     "no session can be begun: %s", err.msg);
        if (s)
            front_end_seat(s, "client_eof");
        return;
    }
    s->stream = v;
    visit_begin(v);
    snprintf(text, sizeof(text), "event: endpoint\ndata: /messages?sessionId=%s\n\n",
             buf_cstr(&s->name));
    http_reply_add(r, str_from(text));
}

static str session_of_query(str query)
{
    static const str key = { "sessionId=", 10 };

    while (query.n) {
        const char *end = memchr(query.p, '&', query.n);
        str item = str_first(query, end ? (size_t)(end - query.p) : query.n);

        if (str_starts(item, key))
            return str_skip(item, key.n);
        query = str_skip(query, item.n + 1);
    }
    return (str){ NULL, 0 };
}

static void take_legacy_post(struct front *f, struct http_request *r)
{
    str name = session_of_query(r->head->parts.query);
    struct seat *s = name.n ? front_find(f, name) : NULL;
    struct err err = { 0 };
    struct visit *v;

    if (!s || s->kind != SEAT_LEGACY || !s->stream) {
        front_refuse(f, r, s || name.n ? 404 : 400, SESSION_UNKNOWN, STR(""),
                     "there is no such session");
        return;
    }
    peek_read(&f->peek, r->body);
    if (!f->peek.is_json) {
        front_refuse(f, r, 400, -32700, STR(""), "%s",
                     is_blank(r->body) ? "the body is empty" : "the body is no JSON");
        return;
    }
    v = visit_new(s, r, VISIT_POST, &err);
    if (v)
        hand_on_or_wait(v);
    else
        front_refuse(f, r, 503, -32000, STR(""), "%s", err.msg);
}

/* Not that of a session which speaks the older transport with the server. */
static bool is_for_far(struct front *f, const struct http_request *r)
{
    str name = http_head_find(r->head, "Mcp-Session-Id", NULL);
    const struct seat *s = name.p ? front_find(f, name) : NULL;

    return front_is_far(f) && !front_is_path(r, "/sse") &&
           !front_is_path(r, "/messages") &&
           (front_is_method(r, "GET") || front_is_method(r, "DELETE")) &&
           (!s || s->far.type);
}

static void on_request(void *ctx, struct http_request *r)
{
    struct front *f = ctx;

    if (front_is_path(r, "/mcp") && front_is_method(r, "POST"))
        take_post(f, r);
    else if (is_for_far(f, r))
        take_other(f, r);
    else if (front_is_path(r, "/mcp") && front_is_method(r, "GET"))
        take_stream(f, r);
    else if (front_is_path(r, "/mcp") && front_is_method(r, "DELETE"))
        take_delete(f, r);
    else if (front_is_path(r, "/sse") && front_is_method(r, "GET"))
        take_legacy_stream(f, r);
    else if (front_is_path(r, "/messages") && front_is_method(r, "POST"))
        take_legacy_post(f, r);
    else
        front_refuse(f, r, 405, -32000, STR(""), "Method not allowed.");
}

/* --- the end of one --- */

/* Where the version says so, who goes does not want the answer any more. */
static void on_gone(void *ctx, struct http_request *r)
{
    struct visit *v = r->owner;
    struct seat *s;

    (void)ctx;
    if (!v)
        return;
    s = v->seat;
    if (v->stateless && v->open)
        relay_cancel(s->relay, v->exchange); /* evidence first */
    if (v->stateless && s->member && !relay_defers(s->relay, v->exchange))
        share_cancel_exchange(s->member, v->exchange); /* else when it has gone on */
    if (v->errand)
        far_abandon(v->errand);
    if (v->kind == VISIT_LEGACY)
        front_end_seat(s, "client_eof");
    visit_end(v);
}

static void on_drained(void *ctx, struct http_request *r)
{
    (void)ctx;
    if (r->owner)
        visit_drained(r->owner);
}

static void on_say(void *ctx, const char *sentence)
{
    front_say(ctx, "%s", sentence);
}

const struct http_server_events front_events = {
    .on_head = front_on_head,
    .on_request = on_request,
    .on_gone = on_gone,
    .on_drained = on_drained,
    .refusal = front_on_refusal,
    .say = on_say,
};
