/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/session_internal.h"
#include "evidence/terms.h"

const char *session_id(const struct session *s)
{
    return s->history.id;
}

const char *session_receipts(const struct session *s)
{
    return s->receipts.name;
}

const struct history *session_history(const struct session *s)
{
    return &s->history;
}

static void give_back(struct session *s);

void session_free(struct session *s)
{
    struct err ignored; /* what the log has is not lost */

    if (!s)
        return;
    session_end_gather(s);
    (void)!receipts_flush(&s->receipts, &ignored);
    s->later_count = 0;
    give_back(s);
    receipts_close(&s->receipts);
    history_release(&s->history);
    free(s);
}

static void free_drafts(struct drafts *d)
{
    if (!d)
        return;
    receipt_line_release(&d->line);
    event_release(&d->event);
    event_release(&d->decision);
    event_release(&d->receipt_event);
    free(d);
}

int session_draft(struct session *s, uint64_t events, struct err *err)
{
    if (s->drafts)
        return 0;
    s->drafts = calloc(1, sizeof(*s->drafts));
    if (s->drafts)
        return 0;
    err_set(err, ERR_NOMEM, "no memory for an event");
    log_lost(s->log, events, err->msg);
    return -1;
}

static void give_back(struct session *s)
{
    entropy_pool_release(&s->ids);
    session_free_gather(s);
    free_drafts(s->drafts);
    s->drafts = NULL;
    if (log_durability_of(s->log) == LOG_WRITE || !s->receipts.dirty) /* else: to sync */
        receipts_close(&s->receipts);
    history_trim(&s->history);
    for (size_t i = 0; i < s->later_cap; i++)
        event_release(&s->later[i].event);
    free(s->later);
    s->later = NULL;
    s->later_cap = 0;
}

void session_trim(struct session *s)
{
    struct err ignored; /* then they wait on */

    if (!session_is_gathering(s) && s->later_count == 0 &&
        receipts_flush(&s->receipts, &ignored) == 0)
        give_back(s);
}

static int write_later(struct session *s, struct err *err);

static int make_later(struct session *s, struct err *err)
{
    size_t cap = s->later_cap ? 2 * s->later_cap : 4;
    struct later *more = realloc(s->later, cap * sizeof(*more));

    if (!more)
        return err_set(err, ERR_NOMEM, "no memory for an event that waits");
    memset(more + s->later_cap, 0, (cap - s->later_cap) * sizeof(*more));
    s->later = more;
    s->later_cap = cap;
    return 0;
}

struct later *session_next_later(struct session *s, struct err *err)
{
    if (s->later_count == SESSION_LATER_MAX && write_later(s, err) < 0)
        return NULL;
    if (s->later_count == s->later_cap && make_later(s, err) < 0) {
        log_lost(s->log, 1, err->msg);
        return NULL;
    }
    return &s->later[s->later_count++];
}

int session_new_id(struct session *s, char id[static ID_MAX], const char *prefix,
                   struct err *err)
{
    struct entropy ids;

    if (!s->ids.ahead)
        entropy_pool_init(&s->ids, log_entropy(s->log));
    ids = entropy_pool_entropy(&s->ids);
    return entropy_id(&ids, id, prefix, err);
}

/* --- a batch --- */

/* What waited goes first. A call that it belongs to learns of it now. */
static int put_later(struct session *s, struct err *err)
{
    for (size_t i = 0; i < s->later_count; i++) {
        struct later *l = &s->later[i];

        if (l->call)
            l->event.call = str_from(l->call->call.id);
        if (session_add(s, &l->event, &l->seq, err) < 0)
            return -1;
        if (!l->call)
            continue;
        l->mark = call_mark(&l->call->call);
        call_fold_event(&l->call->call, &l->event, l->seq, log_time(s->log));
    }
    return 0;
}

/* They stand in the log: count them. */
static void settle_later(struct session *s)
{
    for (size_t i = 0; i < s->later_count; i++) {
        struct later *l = &s->later[i];

        history_count(&s->history, l->event.type, l->call != NULL, l->seq);
        if (l->call)
            session_remember(s, l->call, &l->mark, false);
        if (l->call && l->release)
            session_release(s, l->call);
    }
    s->later_count = 0;
}

void session_lose_later(struct session *s, size_t folded)
{
    for (size_t i = folded; i-- > 0;) {
        if (s->later[i].call)
            call_rewind(&s->later[i].call->call, &s->later[i].mark);
    }
    for (size_t i = 0; i < s->later_count; i++) {
        if (s->later[i].call && s->later[i].release)
            session_release(s, s->later[i].call);
    }
    s->later_count = 0;
}

static int begin_batch(struct session *s, struct err *err)
{
    return session_is_gathering(s) ? log_begin_more(s->log, err) : log_begin(s->log, err);
}

int session_begin(struct session *s, uint64_t events, struct err *err)
{
    size_t folded;

    s->pending = 0;
    if (session_gather_room(s, err) < 0 || begin_batch(s, err) < 0) {
        log_lost(s->log, events + s->later_count, err->msg);
        session_lose_later(s, 0);
        return -1;
    }
    if (put_later(s, err) == 0)
        return 0;
    folded = (size_t)s->pending; /* those before the one that failed */
    log_abort(s->log);
    log_lost(s->log, events + s->later_count, err->msg);
    session_lose_later(s, folded);
    return -1;
}

int session_commit(struct session *s, uint64_t *upto, struct err *err)
{
    if (session_is_gathering(s))
        log_gather(s->log, upto);
    else if (log_commit(s->log, upto, err) < 0) {
        session_lose_later(s, s->later_count);
        return -1;
    }
    settle_later(s);
    return 0;
}

int session_give_up(struct session *s, uint64_t events, const struct err *err)
{
    log_abort(s->log);
    log_lost(s->log, events + s->later_count, err->msg);
    session_lose_later(s, s->later_count);
    return -1;
}

static int write_later(struct session *s, struct err *err)
{
    if (s->later_count == 0)
        return 0;
    if (session_begin(s, 0, err) < 0)
        return -1;
    return session_commit(s, NULL, err);
}

int session_flush(struct session *s, struct err *err)
{
    UNINITIALIZED struct err second;
    int r = write_later(s, err);

    return receipts_flush(&s->receipts, r < 0 ? &second : err) < 0 ? -1 : r;
}

bool session_has_later(const struct session *s)
{
    return s->later_count > 0;
}

int session_later(struct session *s, struct open_call *call, enum event_type type,
                  const struct message *m, bool release, struct err *err)
{
    struct later *l;

    l = session_next_later(s, err);
    if (!l)
        return -1;
    message_event(&l->event, type, m);
    event_keep(&l->event);
    l->call = call;
    l->release = release;
    return 0;
}

int session_add(struct session *s, struct event *e, uint64_t *seq, struct err *err)
{
    e->session = s->history.session.id;
    e->n = s->history.counts.events + s->pending;
    if (log_put(s->log, e, seq, err) < 0)
        return -1;
    s->pending++;
    return 0;
}

int session_put(struct session *s, struct event *e, uint64_t *upto, struct err *err)
{
    uint64_t seq;

    if (session_begin(s, 1, err) < 0)
        return -1;
    if (session_add(s, e, &seq, err) < 0)
        return session_give_up(s, 1, err);
    if (session_commit(s, upto, err) < 0)
        return -1;
    history_count(&s->history, e->type, false, seq);
    return 0;
}

int session_transport(struct session *s, const char *transport, struct err *err)
{
    if (!term_is_transport(transport) || s->history.transport_found)
        return err_set(err, ERR_REFUSED, "the transport of a session is found once");
    if (session_write(s, err) < 0 || session_draft(s, 1, err) < 0)
        return -1;
    event_init(&s->drafts->event, EVENT_TRANSPORT_FOUND);
    event_add_cstr(&s->drafts->event, "transport", transport);
    if (session_put(s, &s->drafts->event, NULL, err) < 0)
        return -1;
    s->history.transport_found = true;
    return history_set_transport(&s->history, str_from(transport), err);
}

/* --- events of a call --- */

static ALWAYS_INLINE void add_optional(struct event *e, const char *name, str text)
{
    if (text.p)
        event_add_text(e, name, text);
}

/* Put an event of a call and fold it; the caller keeps the undo point. */
static int put_call_event(struct session *s, struct open_call *call, struct event *e,
                          struct err *err)
{
    uint64_t seq;

    e->call = str_from(call->call.id);
    if (session_add(s, e, &seq, err) < 0)
        return -1;
    call_fold_event(&call->call, e, seq, log_time(s->log));
    if (call->call.text.failed)
        return err_set(err, ERR_LIMIT, "the texts of a call are larger than %zu bytes",
                       CALL_TEXT_MAX);
    return 0;
}

/* Several events of a call, in one write. */
static int note_all(struct session *s, struct open_call *call, bool made,
                    struct event *const *e, size_t count, uint64_t *upto, struct err *err)
{
    struct call mark = call_mark(&call->call);
    size_t i = 0;

    if (session_begin(s, count, err) < 0)
        return -1;
    while (i < count && put_call_event(s, call, e[i], err) == 0)
        i++;
    if (i < count) {
        call_rewind(&call->call, &mark);
        return session_give_up(s, count, err);
    }
    if (session_commit(s, upto, err) < 0) {
        call_rewind(&call->call, &mark);
        return -1;
    }
    session_remember(s, call, &mark, made);
    for (i = 0; i < count; i++)
        history_count(&s->history, e[i]->type, true, call->call.last - count + 1 + i);
    return 0;
}

int session_note(struct session *s, struct open_call *call, struct event *e,
                 uint64_t *upto, struct err *err)
{
    return note_all(s, call, false, &e, 1, upto, err);
}

static void compose_decision(struct event *e, const struct call_decision *d)
{
    event_init(e, EVENT_POLICY_DECIDED);
    event_add_cstr(e, "verdict", d->verdict);
    event_add_text(e, "policy_ref", d->policy_ref);
    add_optional(e, "reason", d->reason);
    event_add_text(e, "policy_hash", d->policy_hash);
}

static int keep_request(struct open_call *call, const struct call_request *r,
                        struct err *err)
{
    call->has_arguments = r->content.p != NULL;
    call->arguments.max = RECEIPT_MAX;
    buf_add(&call->arguments, r->content);
    if (r->parent)
        snprintf(call->parent, sizeof(call->parent), "%s", r->parent);
    return buf_check(&call->arguments, "the stored arguments", err);
}

int session_request(struct session *s, const struct message *m,
                    const struct call_request *request, struct open_call **call,
                    uint64_t *upto, struct err *err)
{
    struct event *events[2];
    struct open_call *made;
    char id[ID_MAX];

    if (session_draft(s, 1, err) < 0)
        return -1;
    if (receipts_open(&s->receipts, log_durability_of(s->log) != LOG_WRITE, err) < 0 ||
        session_new_id(s, id, "inv_", err) < 0) {
        log_lost(s->log, 1, err->msg);
        return -1;
    }
    made = history_new_call(&s->history, id, err);
    if (!made)
        return -1;
    events[0] = &s->drafts->event;
    events[1] = &s->drafts->decision;
    message_event(&s->drafts->event, EVENT_REQUEST_RECEIVED, m);
    event_add_text(&s->drafts->event, "arguments_hash", request->arguments_hash);
    add_optional(&s->drafts->event, "raw_reason", request->raw_reason);
    if (request->trace.p)
        event_add_foreign(&s->drafts->event, "trace", "trace_sha256", request->trace);
    if (request->decision)
        compose_decision(&s->drafts->decision, request->decision);
    if (keep_request(made, request, err) < 0 ||
        note_all(s, made, true, events, request->decision ? 2 : 1, upto, err) < 0) {
        history_drop_call(&s->history, made);
        return -1;
    }
    *call = made;
    return 0;
}

/* --- receipts --- */

int session_prepare_receipt(struct session *s, char id[static ID_MAX], const char *prefix,
                            uint64_t events, struct err *err)
{
    if (session_draft(s, events, err) < 0)
        return -1;
    if (receipts_open(&s->receipts, log_durability_of(s->log) != LOG_WRITE, err) < 0 ||
        session_new_id(s, id, prefix, err) < 0) {
        log_lost(s->log, events, err->msg);
        return -1;
    }
    receipts_mark(&s->receipts);
    return 0;
}

static int compose_receipt(struct session *s, const struct open_call *call,
                           const char *receipt_id, str content, struct err *err)
{
    const struct receipt_place place = {
        .session = &s->history.session,
        .receipt_id = str_from(receipt_id),
        .parent = call->parent[0] ? str_from(call->parent) : (str){ NULL, 0 },
        .ts = log_time(s->log),
        .seq = s->history.counts.receipts,
        .arguments_content =
            call->has_arguments ? buf_str(&call->arguments) : (str){ NULL, 0 },
        .result_content = content,
    };
    UNINITIALIZED struct receipt r;

    receipt_of_call(&r, &call->call, &place);
    return receipt_compose(&s->drafts->line, &r, err);
}

void session_compose_receipt_event(struct session *s, const char *receipt_id)
{
    event_init(&s->drafts->receipt_event, EVENT_RECEIPT);
    event_add_cstr(&s->drafts->receipt_event, "receipt_id", receipt_id);
    event_add_digest(&s->drafts->receipt_event, "sha256", &s->drafts->line.hash);
}

/* Of an answered call only: whoever records an answer has more to tell soon. */
static bool may_wait(const struct session *s, const struct open_call *call,
                     const struct event *last, str content)
{
    return s->lines_wait && last && last->type == EVENT_RESPONSE_RECEIVED &&
           !call->has_arguments && !content.p &&
           receipts_waiting(&s->receipts) < RECEIPTS_LATE_MAX;
}

/* The receipt of a call and its event, after everything that it tells of. A second
 * receipt continues the first. */
static int put_receipt(struct session *s, struct open_call *call, const char *receipt_id,
                       str content, bool late, struct err *err)
{
    if (call->call.receipts > 0)
        snprintf(call->parent, sizeof(call->parent), "%s", call->call.receipt_id);
    if (compose_receipt(s, call, receipt_id, content, err) < 0)
        return -1;
    session_compose_receipt_event(s, receipt_id);
    if (call->parent[0])
        event_add_cstr(&s->drafts->receipt_event, "parent", call->parent);
    if (receipts_append(&s->receipts, s->drafts->line.line, late, err) < 0)
        return -1;
    return put_call_event(s, call, &s->drafts->receipt_event, err);
}

/* `e` may be NULL: only the receipt. */
static int conclude(struct session *s, struct open_call *call, struct event *e,
                    str content, uint64_t *upto, struct err *err)
{
    struct call mark = call_mark(&call->call);
    bool late = may_wait(s, call, e, content);
    uint64_t events = e ? 2 : 1;
    char receipt_id[ID_MAX];

    if (session_prepare_receipt(s, receipt_id, "mtc_", events, err) < 0 ||
        session_begin(s, events, err) < 0)
        return -1;
    if ((e && put_call_event(s, call, e, err) < 0) ||
        put_receipt(s, call, receipt_id, content, late, err) < 0) {
        receipts_undo(&s->receipts);
        call_rewind(&call->call, &mark);
        return session_give_up(s, events, err);
    }
    if (session_commit(s, upto, err) < 0) {
        receipts_undo(&s->receipts);
        call_rewind(&call->call, &mark);
        return -1;
    }
    session_remember(s, call, &mark, false);
    if (e)
        history_count(&s->history, e->type, true, call->call.last - 1);
    history_count(&s->history, EVENT_RECEIPT, true, call->call.last);
    return 0;
}

int session_conclude(struct session *s, struct open_call *call, struct event *e,
                     str content, uint64_t *upto, struct err *err)
{
    return conclude(s, call, e, content, upto, err);
}

int session_receipt(struct session *s, struct open_call *call, uint64_t *upto,
                    struct err *err)
{
    return conclude(s, call, NULL, (str){ NULL, 0 }, upto, err);
}

int session_respond(struct session *s, struct open_call *call, const struct message *m,
                    const struct call_response *response, uint64_t *upto, struct err *err)
{
    struct event *e;

    if (session_draft(s, 2, err) < 0)
        return -1;
    e = &s->drafts->event;
    message_event(e, EVENT_RESPONSE_RECEIVED, m);
    event_add_bool(e, "is_error", response->is_error);
    add_optional(e, "raw_reason", response->raw_reason);
    event_add_text(e, "result_hash", response->result_hash);
    if (response->result_type.p)
        event_add_foreign(e, "result_type", "result_type_sha256", response->result_type);
    return conclude(s, call, e, response->content, upto, err);
}

int session_decide(struct session *s, struct open_call *call,
                   const struct call_decision *decision, uint64_t *upto, struct err *err)
{
    if (session_draft(s, 1, err) < 0)
        return -1;
    compose_decision(&s->drafts->event, decision);
    return session_note(s, call, &s->drafts->event, upto, err);
}

int session_deny(struct session *s, struct open_call *call, const struct message *m,
                 const struct call_denial *denial, uint64_t *upto, struct err *err)
{
    struct event *e;

    if (session_draft(s, 2, err) < 0)
        return -1;
    e = &s->drafts->event;
    message_event(e, EVENT_REQUEST_DENIED, m);
    event_add_texts(e, "reason_codes", denial->reason_codes, denial->reason_count);
    add_optional(e, "policy_ref", denial->policy_ref);
    return conclude(s, call, e, (str){ NULL, 0 }, upto, err);
}

int session_lose(struct session *s, struct open_call *call, const char *reason,
                 uint64_t *upto, struct err *err)
{
    if (!term_is_loss(reason))
        return err_set(err, ERR_FORMAT, "no call is lost for that reason");
    if (session_draft(s, 2, err) < 0)
        return -1;
    event_init(&s->drafts->event, EVENT_CALL_LOST);
    event_add_cstr(&s->drafts->event, "reason", reason);
    return conclude(s, call, &s->drafts->event, (str){ NULL, 0 }, upto, err);
}

int session_settle(struct session *s, uint64_t upto, struct err *err)
{
    if (log_durability_of(s->log) != LOG_WRITE && receipts_sync(&s->receipts, err) < 0)
        return -1;
    return log_settle(s->log, upto, err);
}
