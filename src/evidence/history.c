/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/history.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "json/json.h"

static void open_call_free(struct open_call *c)
{
    call_release(&c->call);
    buf_release(&c->arguments);
    free(c);
}

void history_trim(struct history *h)
{
    struct open_call *c;
    size_t first = 0;

    while ((c = h->spare)) {
        h->spare = c->next;
        open_call_free(c);
    }
    if (!map_next(&h->calls, &first))
        map_release(&h->calls);
}

void history_release(struct history *h)
{
    struct open_call *c;

    for (size_t i = 0; (c = map_next(&h->calls, &i));)
        open_call_free(c);
    map_release(&h->calls);
    history_trim(h);
    buf_release(&h->text);
    *h = (struct history){ 0 };
}

static void set_id(char out[static ID_MAX], str id)
{
    size_t n = id.n < ID_MAX ? id.n : ID_MAX - 1;

    if (n)
        memcpy(out, id.p, n);
    out[n] = '\0';
}

/* Copy into h->text, which is large enough from the start and so never moves. */
static str copy(struct history *h, str s)
{
    const char *at = h->text.p + h->text.n;

    if (!s.p)
        return s;
    buf_add(&h->text, s);
    return str_of(at, s.n);
}

/* What is borrowed from the text must not move: there is room for all of it at once. */
int history_begin(struct history *h, const struct receipt_session *facts, size_t room,
                  struct err *err)
{
    h->text.max = room;
    if (!buf_room(&h->text, room))
        return err_set(err, ERR_NOMEM, "no memory for a session");
    set_id(h->id, facts->id);
    h->session = (struct receipt_session){
        .id = str_from(h->id),
        .server_id = copy(h, facts->server_id),
        .transport = copy(h, facts->transport),
        .client_transport = copy(h, facts->client_transport),
        .profile = copy(h, facts->profile),
        .policy_hash = copy(h, facts->policy_hash),
        .proxy_version = copy(h, facts->proxy_version),
        .started_at = facts->started_at,
    };
    h->started = true;
    h->part = 1;
    return buf_check(&h->text, "what session_start says", err);
}

int history_shrink(struct history *h, size_t room, struct err *err)
{
    const struct receipt_session was = h->session;
    CLEANUP(buf_release) struct buf text = h->text;

    h->text = (struct buf){ .max = text.n + room };
    if (!buf_room(&h->text, h->text.max)) {
        buf_release(&h->text);
        h->text = text;
        text = (struct buf){ 0 };
        return err_set(err, ERR_NOMEM, "no memory for a session");
    }
    h->session.server_id = copy(h, was.server_id);
    h->session.transport = copy(h, was.transport);
    h->session.client_transport = copy(h, was.client_transport);
    h->session.profile = copy(h, was.profile);
    h->session.policy_hash = copy(h, was.policy_hash);
    h->session.proxy_version = copy(h, was.proxy_version);
    return 0;
}

int history_set_transport(struct history *h, str transport, struct err *err)
{
    h->session.transport = copy(h, transport);
    return buf_check(&h->text, "what a session says of itself", err);
}

int history_set_version(struct history *h, str version, struct err *err)
{
    h->session.proxy_version = copy(h, version);
    return buf_check(&h->text, "what session_start says", err);
}

struct open_call *history_new_call(struct history *h, const char *id, struct err *err)
{
    struct open_call *c = h->spare;
    uint64_t key;

    if (!id_number(&key, str_from(id))) {
        err_set(err, ERR_FORMAT, "'%s' is no identifier of a call", id);
        return NULL;
    }
    if (c)
        h->spare = c->next;
    else
        c = calloc(1, sizeof(*c));
    if (!c) {
        err_set(err, ERR_NOMEM, "no memory for a call");
        return NULL;
    }
    call_reset(&c->call);
    set_id(c->call.id, str_from(id));
    c->key = key;
    if (map_put(&h->calls, key, c, err) < 0) {
        c->next = h->spare;
        h->spare = c;
        return NULL;
    }
    return c;
}

struct open_call *history_call(const struct history *h, str id)
{
    uint64_t key;

    return id_number(&key, id) ? map_get(&h->calls, key) : NULL;
}

void history_drop_call(struct history *h, struct open_call *c)
{
    map_take(&h->calls, c->key);
    call_reset(&c->call);
    buf_reset(&c->arguments);
    c->has_arguments = false;
    c->parent[0] = '\0';
    c->next = h->spare;
    h->spare = c;
}

uint64_t history_open_calls(const struct history *h)
{
    const struct open_call *c;
    uint64_t open = 0;

    for (size_t i = 0; (c = map_next(&h->calls, &i));)
        open += call_is_open(&c->call);
    return open;
}

void history_count(struct history *h, enum event_type type, bool has_call, uint64_t seq)
{
    receipt_counts_add(&h->counts, type, has_call);
    h->last = seq;
}

void history_cut(struct history *h, const char *receipt_id, uint64_t seq, int64_t ts)
{
    set_id(h->metadata_id, str_from(receipt_id));
    h->metadata_ts = ts;
    h->closed = h->ended;
    if (!h->closed) {
        h->part++;
        h->part_from = seq + 1;
    }
}

struct metadata history_metadata(const struct history *h, const char *receipt_id,
                                 uint64_t seq, int64_t ts)
{
    return (struct metadata){
        .session = &h->session,
        .receipt_id = str_from(receipt_id),
        .timestamp = ts,
        .seq = h->counts.receipts,
        .counts = h->counts,
        .final = h->ended,
        .complete = h->ended && h->complete,
        .reason = h->ended ? str_from(h->reason) : (str){ NULL, 0 },
        .ended_at = h->ended ? h->ended_at : RECEIPT_NO_TIME,
        .part = h->part,
        .log_from = h->part_from,
        .log_to = seq + 1,
        .calls_open = history_open_calls(h),
    };
}

/* --- reading --- */

/* A text member, decoded; lives in h->text. */
static str text_member(struct history *h, const struct event_view *v, const char *name)
{
    uint32_t node = json_member(v->json, JSON_ROOT, str_from(name));
    const char *at = h->text.p + h->text.n;

    if (!json_is(v->json, node, JSON_STRING))
        return (str){ NULL, 0 };
    json_unescape(v->json, node, &h->text);
    return str_of(at, (size_t)(h->text.p + h->text.n - at));
}

static int fold_start(struct history *h, const struct event_view *v, struct err *err)
{
    const struct receipt_session facts = { .id = v->session, .started_at = v->ts };

    if (h->started)
        return err_set(err, ERR_DAMAGE, "a second session_start at event %" PRIu64,
                       v->seq);
    if (history_begin(h, &facts, HISTORY_TEXT_MAX, err) < 0)
        return -1;
    h->first = h->part_from = v->seq;
    set_id(h->writer, v->writer);
    h->session.server_id = text_member(h, v, "server_id");
    h->session.transport = text_member(h, v, "transport");
    h->session.client_transport = text_member(h, v, "client_transport");
    h->session.profile = text_member(h, v, "profile");
    h->session.policy_hash = text_member(h, v, "policy_hash");
    return buf_check(&h->text, "what session_start says", err);
}

/* Once: it replaces what was assumed at the beginning, and memory is bounded. */
static int fold_transport(struct history *h, const struct event_view *v, struct err *err)
{
    if (h->transport_found)
        return err_set(err, ERR_DAMAGE, "a second transport_found at event %" PRIu64,
                       v->seq);
    h->transport_found = true;
    h->session.transport = text_member(h, v, "transport");
    return buf_check(&h->text, "what a session says of itself", err);
}

static void fold_end(struct history *h, const struct event_view *v)
{
    str reason = str_first(event_text(v, "reason"), sizeof(h->reason) - 1);

    h->ended = true;
    h->ended_at = v->ts;
    event_bool(v, "complete", &h->complete);
    memcpy(h->reason, reason.p, reason.n);
    h->reason[reason.n] = '\0';
}

static int fold_call(struct history *h, const struct event_view *v, str id,
                     struct err *err)
{
    struct open_call *c = history_call(h, id);
    char copied[ID_MAX];

    if (!c && v->type != EVENT_REQUEST_RECEIVED)
        return 0; /* of a call that has its receipt */
    if (!c) {
        set_id(copied, id);
        c = history_new_call(h, copied, err);
    }
    if (!c)
        return -1;
    call_fold(&c->call, v);
    if (c->call.text.failed)
        return err_set(err, ERR_NOMEM, "no memory for a call");
    if (v->type == EVENT_RECEIPT && !c->call.task)
        history_drop_call(h, c);
    return 0;
}

int history_fold(struct history *h, const struct event_view *v, struct err *err)
{
    str call = event_text(v, "call");
    char id[ID_MAX];

    if (!v->session.n || (h->id[0] && !str_is(v->session, h->id)))
        return 0;
    if (v->n != h->counts.events || (!h->started && v->type != EVENT_SESSION_START))
        return err_set(err, ERR_DAMAGE,
                       "event %" PRIu64 " is number %" PRIu64 " of its session; %" PRIu64
                       " was expected",
                       v->seq, v->n, h->counts.events);
    if (v->type == EVENT_SESSION_START && fold_start(h, v, err) < 0)
        return -1;
    if (v->type == EVENT_TRANSPORT_FOUND && fold_transport(h, v, err) < 0)
        return -1;
    if (v->type == EVENT_SESSION_END)
        fold_end(h, v);
    if (call.n && fold_call(h, v, call, err) < 0)
        return -1;
    history_count(h, v->type, call.n > 0, v->seq);
    if (v->type == EVENT_RECEIPT && !call.n) {
        set_id(id, event_text(v, "receipt_id"));
        history_cut(h, id, v->seq, v->ts);
    }
    return 0;
}
