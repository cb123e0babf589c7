/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a part and of a session; declared in session.h. */
#include <stdio.h>

#include "base/err.h"
#include "evidence/session_internal.h"
#include "evidence/terms.h"

/* The metadata whose receipt event is the next of the batch. */
static struct metadata describe(const struct session *s, const char *receipt_id,
                                const char *previous_root)
{
    struct metadata m =
        history_metadata(&s->history, receipt_id, log_next(s->log), log_time(s->log));

    m.counts.events += s->pending;
    m.previous_pack_root_sha256 = str_from(previous_root);
    return m;
}

/* Append the metadata's line and put its event. */
static int put_metadata(struct session *s, const struct metadata *m, struct err *err)
{
    char id[ID_MAX];

    snprintf(id, sizeof(id), STR_FMT, STR_ARG(m->receipt_id));
    if (metadata_compose(&s->drafts->line, m, err) < 0)
        return -1;
    session_compose_receipt_event(s, id);
    if (receipts_append(&s->receipts, s->drafts->line.line, false, err) < 0)
        return -1;
    return session_add(s, &s->drafts->receipt_event, NULL, err);
}

static void note_cut(struct session *s, const struct metadata *m, struct session_cut *cut)
{
    struct history *h = &s->history;

    *cut = (struct session_cut){ .from = m->log_from,
                                 .to = m->log_to,
                                 .part = m->part,
                                 .final = m->final,
                                 .metadata_ts = m->timestamp };
    snprintf(cut->metadata_id, sizeof(cut->metadata_id), STR_FMT, STR_ARG(m->receipt_id));
    history_count(h, EVENT_RECEIPT, false, m->log_to - 1);
    history_cut(h, cut->metadata_id, m->log_to - 1, m->timestamp);
}

static int abandon_metadata(struct session *s, uint64_t events, const struct err *err)
{
    receipts_undo(&s->receipts);
    return session_give_up(s, events, err);
}

int session_part(struct session *s, const char *previous_root, struct session_cut *cut,
                 struct err *err)
{
    struct metadata m;
    char id[ID_MAX];
    uint64_t upto;

    if (s->history.ended)
        return err_set(err, ERR_REFUSED, "the session has ended");
    if (session_write(s, err) < 0 || session_flush(s, err) < 0 ||
        session_prepare_receipt(s, id, "smd_", 1, err) < 0 ||
        session_begin(s, 1, err) < 0)
        return -1;
    m = describe(s, id, previous_root);
    if (put_metadata(s, &m, err) < 0)
        return abandon_metadata(s, 1, err);
    if (session_commit(s, &upto, err) < 0) {
        receipts_undo(&s->receipts);
        return -1;
    }
    note_cut(s, &m, cut);
    return session_settle(s, upto, err);
}

/* The receipt that a call still lacks, if any. */
static int settle_call(struct session *s, struct open_call *c, const char *reason,
                       struct err *err)
{
    if (call_is_due(&c->call))
        return session_receipt(s, c, NULL, err);
    if (call_is_open(&c->call))
        return session_lose(s, c, reason, NULL, err);
    return c->call.task ? session_lose(s, c, "task_unobserved", NULL, err) : 0;
}

static int settle_calls(struct session *s, const char *reason, struct err *err)
{
    struct open_call *c;

    for (size_t i = 0; (c = map_next(&s->history.calls, &i));) {
        if (settle_call(s, c, reason, err) < 0)
            return -1;
    }
    return 0;
}

/* §6 of the format: nothing lost, nothing cut, no gap, and a proper end. */
static bool is_complete(const struct session *s, const struct session_ending *ending)
{
    return ending->clean && !s->resumed && s->history.counts.lost == 0 &&
           s->history.counts.cut == 0 && log_lost_total(s->log) == s->lost_before;
}

static void compose_end(struct session *s, const struct session_ending *ending)
{
    const struct receipt_counts *c = &s->history.counts;
    struct event *e = &s->drafts->event;

    event_init(e, EVENT_SESSION_END);
    event_add_bool(e, "complete", is_complete(s, ending));
    event_add_cstr(e, "reason", ending->reason);
    event_add_int(e, "requests", (int64_t)c->requests);
    event_add_int(e, "calls", (int64_t)c->calls);
    event_add_int(e, "denied", (int64_t)c->denied);
    event_add_int(e, "lost", (int64_t)c->lost);
    event_add_int(e, "interventions", (int64_t)c->interventions);
    event_add_int(e, "undelivered", (int64_t)receipt_undelivered(c));
    event_add_int(e, "events", (int64_t)c->events + 1);
    if (s->resumed)
        event_add_cstr(e, "by", log_writer(s->log));
}

static void note_end(struct session *s, bool complete, const char *reason, uint64_t seq,
                     int64_t ts)
{
    history_count(&s->history, EVENT_SESSION_END, false, seq);
    s->history.ended = true;
    s->history.complete = complete;
    s->history.ended_at = ts;
    snprintf(s->history.reason, sizeof(s->history.reason), "%s", reason);
}

/* The final metadata while session_end is still in the batch with it. */
static struct metadata describe_end(const struct session *s, const char *receipt_id,
                                    const struct session_ending *ending)
{
    struct metadata m = describe(s, receipt_id, ending->previous_root);

    if (s->history.ended)
        return m;
    m.final = true;
    m.complete = is_complete(s, ending);
    m.reason = str_from(ending->reason);
    m.ended_at = log_time(s->log);
    return m;
}

static int put_end(struct session *s, const struct session_ending *ending,
                   const char *receipt_id, struct metadata *m, struct err *err)
{
    if (!s->history.ended) {
        compose_end(s, ending);
        if (session_add(s, &s->drafts->event, NULL, err) < 0)
            return -1;
    }
    if (!receipt_id)
        return 0;
    *m = describe_end(s, receipt_id, ending);
    return put_metadata(s, m, err);
}

static int write_end(struct session *s, const struct session_ending *ending,
                     const char *receipt_id, struct session_cut *cut, struct err *err)
{
    uint64_t events = receipt_id ? 2 : 1, upto, first;
    struct metadata m = { 0 };
    bool complete = is_complete(s, ending);
    int64_t ts;

    if (session_draft(s, events, err) < 0 || session_begin(s, events, err) < 0)
        return -1;
    first = log_next(s->log);
    ts = log_time(s->log);
    if (put_end(s, ending, receipt_id, &m, err) < 0)
        return abandon_metadata(s, events, err);
    if (session_commit(s, &upto, err) < 0) {
        receipts_undo(&s->receipts);
        return -1;
    }
    if (!s->history.ended)
        note_end(s, complete, ending->reason, first, ts);
    if (receipt_id)
        note_cut(s, &m, cut);
    return session_settle(s, upto, err);
}

/* Before anything is written: a session ends once. */
static int check_ending(const struct session_ending *ending, struct err *err)
{
    if (!term_is_reason(ending->reason))
        return err_set(err, ERR_FORMAT,
                       "the reason of an end is a word of a-z, 0-9 and _, up to %d bytes",
                       TERM_MAX);
    if (ending->clean && !term_is_proper_end(ending->reason))
        return err_set(err, ERR_FORMAT,
                       "only client_eof, a signal and server_exit are clean ends, '%s' "
                       "is not",
                       ending->reason);
    return 0;
}

int session_end(struct session *s, const struct session_ending *ending,
                struct session_cut *cut, bool *packable, struct err *err)
{
    char id[ID_MAX];
    bool metadata;

    if (s->history.closed)
        return err_set(err, ERR_REFUSED, "the session has ended");
    if (check_ending(ending, err) < 0 || session_write(s, err) < 0 ||
        session_flush(s, err) < 0)
        return -1;
    if (!s->history.ended && settle_calls(s, ending->open_calls, err) < 0)
        return -1;
    metadata = s->pack_empty || s->history.counts.calls > 0;
    if (metadata && session_prepare_receipt(s, id, "smd_", 2, err) < 0)
        return -1;
    if ((metadata || !s->history.ended) &&
        write_end(s, ending, metadata ? id : NULL, cut, err) < 0)
        return -1;
    *packable = metadata;
    return 0;
}
