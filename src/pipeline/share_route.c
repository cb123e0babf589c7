/* SPDX-License-Identifier: Apache-2.0 */
/* From the server: whose is it, and what did its ids look like there. */
#include "pipeline/share_internal.h"

enum way {
    TO_NOBODY,
    TO_ONE,
    TO_ALL,
    TO_SUBSCRIBERS,
};

struct route {
    enum way way;
    struct member *member;
    struct exchange *exchange;
    struct ask *ask; /* that is behind it, or NULL */
    enum rewrite_part part;
    uint32_t uri;
};

static void complain(struct share *s, const char *what)
{
    if (!s->said_bad)
        share_say(s, "the server wrote %s; it is for nobody", what);
    s->said_bad = true;
}

/* --- whose is it --- */

static struct ask *ask_at(struct share *s, const struct json *j, uint32_t node)
{
    return node == JSON_NONE ? NULL
                             : share_ask_get(s, rewrite_number(j, node, &s->scratch));
}

static struct route to_ask(struct ask *a, enum rewrite_part part)
{
    if (!a || !a->member)
        return (struct route){ TO_NOBODY, NULL, NULL, a, part, JSON_NONE };
    return (struct route){ TO_ONE, a->member, a->exchange, a, part, JSON_NONE };
}

static struct route route_answer(struct share *s, const struct rpc *m)
{
    uint32_t id = rewrite_find(m->json, m->node, REWRITE_ID, false);
    struct ask *a = ask_at(s, m->json, id);

    if (a && a->answered)
        a = NULL;
    if (!a)
        complain(s, "an answer to nothing");
    return to_ask(a, REWRITE_ID);
}

/* Where nobody can answer, we do. */
static struct route route_request(struct share *s, const struct rpc *m)
{
    struct ask *a = share_ask_newest(s);
    struct route r = { TO_ONE, NULL, NULL, NULL, REWRITE_URI, JSON_NONE };
    str raw = json_raw(m->json, m->id);

    r.member = a ? a->member : share_newest_member(s);
    r.exchange = a ? a->exchange : NULL;
    if (r.member && share_asked_add(s, r.member, raw, share_key(s, m->json, m->id)) == 0)
        return r;
    share_refuse(s, raw,
                 r.member ? STR("too many requests wait for their answers")
                          : STR("no client is there to answer"));
    r.way = TO_NOBODY;
    return r;
}

/* Of its own request, or in 2026 the end of a subscription. */
static struct route route_cancelled(struct share *s, const struct rpc *m)
{
    uint32_t node = rewrite_find(m->json, m->node, REWRITE_CANCELLED, false);
    struct asked *asked =
        node == JSON_NONE ? NULL : share_asked_find(s, NULL, share_key(s, m->json, node));
    struct route r = { TO_ONE, NULL, NULL, NULL, REWRITE_URI, JSON_NONE };
    struct ask *a;

    if (asked) {
        r.member = asked->member;
        share_asked_free(s, asked);
        return r;
    }
    a = ask_at(s, m->json, node);
    if (a && !a->is_listen)
        a = NULL;
    if (a)
        share_ask_close(s, a, a->answered);
    return to_ask(a, REWRITE_CANCELLED);
}

static struct route route_notification(struct share *s, const struct rpc *m)
{
    uint32_t node = rewrite_find(m->json, m->node, REWRITE_NOTICE, false);
    struct route r = { TO_ALL, NULL, NULL, NULL, REWRITE_URI, JSON_NONE };
    struct ask *a;

    if (m->method == RPC_CANCELLED)
        return route_cancelled(s, m);
    if (m->method == RPC_PROGRESS) {
        a = ask_at(s, m->json, rewrite_find(m->json, m->node, REWRITE_PROGRESS, false));
        return to_ask(a && a->has_token ? a : NULL, REWRITE_PROGRESS);
    }
    if (node != JSON_NONE) {
        a = ask_at(s, m->json, node);
        return to_ask(a && a->is_listen ? a : NULL, REWRITE_NOTICE);
    }
    if (json_string_is(m->json, m->method_node, STR("notifications/resources/updated"))) {
        r.uri = rewrite_find(m->json, m->node, REWRITE_URI, false);
        r.way = json_is(m->json, r.uri, JSON_STRING) ? TO_SUBSCRIBERS : TO_NOBODY;
    }
    return r;
}

/* An envelope with two members of a name is read as most readers would. */
static bool is_answer(const struct rpc *m)
{
    return m->method_node == JSON_NONE &&
           (m->result != JSON_NONE || m->error != JSON_NONE);
}

static struct route route_of(struct share *s, const struct rpc *m)
{
    if (is_answer(m))
        return route_answer(s, m);
    if (m->kind == RPC_REQUEST)
        return route_request(s, m);
    if (m->kind == RPC_NOTIFICATION)
        return route_notification(s, m);
    complain(s, "a line that is no message");
    return (struct route){ TO_NOBODY, NULL, NULL, NULL, REWRITE_URI, JSON_NONE };
}

/* --- putting back --- */

static void put_back(struct share *s, const struct rpc *m, const struct route *r)
{
    if (r->way != TO_ONE || !r->ask)
        return;
    rewrite_replace(&s->splice, m->json, m->node, r->part, false,
                    r->part == REWRITE_PROGRESS ? share_ask_token(r->ask)
                                                : share_ask_id(r->ask));
    if (r->part == REWRITE_ID && r->ask->is_listen &&
        ask_at(s, m->json, rewrite_find(m->json, m->node, REWRITE_CLOSING, false)) ==
            r->ask)
        rewrite_replace(&s->splice, m->json, m->node, REWRITE_CLOSING, false,
                        share_ask_id(r->ask));
}

/* The progress of a task goes on after the answer that made it. */
static bool outlives(const struct rpc *m, const struct ask *a)
{
    return a->has_token && a->member && m->error == JSON_NONE &&
           str_is(rpc_result_type(m), "task");
}

static void note_hello(struct share *s, const struct ask *a, bool good)
{
    if (a->number == s->hello_number && !s->hello_ok && good)
        s->hello_ok = true;
    if (a->is_ours && a->is_initialize) {
        if (!good)
            share_say(s, "the server refused to be initialised again");
        s->awake = true;
    }
}

/* What an answer ends. */
static void settle(struct share *s, const struct rpc *m, const struct route *r)
{
    if (!r->ask || r->part != REWRITE_ID)
        return;
    note_hello(s, r->ask, m->error == JSON_NONE);
    if (outlives(m, r->ask)) {
        share_ask_close(s, r->ask, true);
        r->ask->exchange = NULL;
    } else {
        share_ask_free(s, r->ask);
    }
}

/* --- a run of elements with the same destination, or a single message --- */

struct run {
    struct route route;
    uint32_t first, last; /* nodes; first is JSON_NONE when there is none */
    bool split;           /* there was one before */
};

static bool is_same(const struct route *a, const struct route *b)
{
    return a->way == b->way && a->member == b->member && a->exchange == b->exchange &&
           a->way != TO_SUBSCRIBERS;
}

static void send_run(struct share *s, const struct run *run)
{
    str uri = run->route.way == TO_SUBSCRIBERS ? share_key(s, &s->json, run->route.uri)
                                               : STR("");
    struct err err;
    str text;

    if (splice_end(&s->splice, &text, &err) < 0) {
        share_say(s, "a message of the server cannot be passed on: %s", err.msg);
        return;
    }
    if (run->route.way == TO_ONE)
        share_put(run->route.member, PARCEL_MESSAGE, run->route.exchange, text, NULL);
    if (run->route.way == TO_ONE)
        return;
    for (struct member *m = s->oldest; m; m = m->newer) {
        if (run->route.way == TO_ALL || share_is_subscribed(m, uri, false))
            share_put(m, PARCEL_MESSAGE, NULL, text, NULL);
    }
}

/* Only the run is left of the array, in brackets of its own, unless it is all of it. */
static void end_run(struct share *s, struct run *run, bool is_all)
{
    const struct json *j = &s->json;
    size_t from, to;

    if (run->first != JSON_NONE && run->route.way != TO_NOBODY) {
        from = j->nodes[run->first].start;
        to = j->nodes[run->last].end;
        if (!is_all) {
            splice_replace(&s->splice, str_first(j->text, from), STR("["));
            splice_replace(&s->splice, str_of(j->text.p + to, j->text.n - to),
                           STR("]\n"));
        }
        send_run(s, run);
    }
    run->first = JSON_NONE;
}

static void route_element(struct share *s, struct run *run, uint32_t node)
{
    struct route r;
    struct rpc m;

    rpc_read(&m, &s->json, node);
    r = route_of(s, &m);
    if (run->first != JSON_NONE && !is_same(&r, &run->route)) {
        end_run(s, run, false);
        run->split = true;
    }
    if (run->first == JSON_NONE) {
        splice_begin(&s->splice, s->json.text);
        run->first = node;
        run->route = r;
    }
    run->last = node;
    put_back(s, &m, &r);
    settle(s, &m, &r);
}

void share_from_server(struct share *s, str text)
{
    struct run run = { .first = JSON_NONE };
    struct err err = { 0 };

    if (rewrite_parse(&s->json, text, &err) < 0) {
        complain(s, "a line that is no message");
        return;
    }
    if (!json_is(&s->json, JSON_ROOT, JSON_ARRAY)) {
        route_element(s, &run, JSON_ROOT);
    } else {
        json_each (&s->json, JSON_ROOT, node)
            route_element(s, &run, node);
    }
    end_run(s, &run, !run.split);
    if (s->awake)
        share_awake(s);
}

void share_from_server_long(struct share *s, str outline)
{
    struct err err = { 0 };
    struct ask *a = NULL;
    struct rpc m;

    share_say(s, "the server wrote a line of more than %zu bytes; it is not passed on",
              LINE_MAX_BYTES);
    if (rewrite_parse(&s->json, outline, &err) < 0)
        return;
    rpc_read(&m, &s->json, JSON_ROOT);
    if (is_answer(&m))
        a = ask_at(s, &s->json, rewrite_find(&s->json, JSON_ROOT, REWRITE_ID, false));
    if (!a || a->answered)
        return;
    if (a->member)
        share_put(a->member, PARCEL_LOST, a->exchange, share_ask_id(a), &share_why_large);
    note_hello(s, a, false);
    share_ask_free(s, a);
    if (s->awake)
        share_awake(s);
}
