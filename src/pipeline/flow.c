/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a message: intake, evidence, and on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "pipeline/answer.h"
#include "pipeline/relay_internal.h"

#define FLUSH_AFTER 50 /* ms that events may wait for the next write */

static enum direction other(enum direction d)
{
    return d == TO_SERVER ? TO_CLIENT : TO_SERVER;
}

void flow_send(struct relay *r, enum direction d, struct exchange *x, str bytes, bool end,
               bool *sent)
{
    struct endpoint *e = r->side[d];
    UNINITIALIZED struct err err;

    *sent = bytes.n == 0 || e->type->send(e, x, bytes, end, &err) == 0;
    if (!*sent && d == TO_CLIENT && e->type->answers)
        return; /* whoever asked is gone; others are not */
    if (!*sent && d == TO_CLIENT) {
        r->client_gone = true;
        relay_why(r, "broken_pipe", false);
        relay_drain(r);
        return;
    }
    /* A reader that stalls stops the writer. */
    if (e->type->queued(e) + relay_gated(r, d) > RELAY_QUEUE_STOP)
        r->side[other(d)]->type->read(r->side[other(d)], false);
}

static void note_answers(struct relay *r, enum direction d, struct exchange *x,
                         unsigned answered)
{
    struct endpoint *e = r->side[d];

    if (e->type->answers && answered)
        e->type->answers(e, x, answered);
}

void flow_say(struct relay *r, enum direction d, struct exchange *x, str lines)
{
    bool sent;

    if (!r->side[d]->type->answers) {
        flow_send(r, d, x, lines, true, &sent);
        return;
    }
    while (lines.n) {
        const char *end = memchr(lines.p, '\n', lines.n);
        size_t n = end ? (size_t)(end - lines.p) + 1 : lines.n;

        note_answers(r, d, x, 1);
        flow_send(r, d, x, str_first(lines, n), true, &sent);
        lines = str_skip(lines, n);
    }
}

void flow_drained(struct relay *r, enum direction d)
{
    if (relay_gated(r, d) == 0 &&
        (d == TO_CLIENT ||
         (r->phase == RUNNING && guard_aside(r->guard) <= RELAY_QUEUE_STOP)))
        r->side[other(d)]->type->read(r->side[other(d)], true);
    if (d == TO_CLIENT && r->phase == FLUSHING)
        relay_flush_on(r);
    else
        flow_leave_if_drained(r);
}

void flow_failed(struct relay *r, const struct err *why_failed)
{
    if (!r->failing)
        relay_say(r, "evidence cannot be written: %s; messages are %s", why_failed->msg,
                  r->o->block ? "refused" : "passed on");
    r->failing = true;
}

/* …and the policy is to block. */
static void refuse(struct relay *r, enum direction d, struct exchange *x)
{
    CLEANUP(buf_release) struct buf answer = { .max = 2 * TAP_ANSWERS_MAX };

    buf_add(&answer, buf_str(&r->desk->tap.answers)); /* to what was refused before */
    answer_refusals(&answer, &r->desk->tap, d);
    tap_refused(&r->desk->tap);
    if (answer.n)
        flow_say(r, TO_CLIENT, x, buf_str(&answer));
}

/* With --investigation: the whole message, before it goes on. */
static int keep(struct relay *r, enum direction d, struct err *err)
{
    if (!r->o->investigation || r->desk->tap.upto == 0 ||
        investigation_write(&r->kept, r->desk->tap.seq, d == TO_SERVER ? "c2s" : "s2c",
                            r->desk->tap.frame, err) == 0)
        return 0;
    log_lost(r->o->log, 1, err->msg);
    return -1;
}

static bool is_gated(const struct relay *r)
{
    return log_durability_of(r->o->log) != LOG_WRITE;
}

static bool has_lines(const struct relay *r, enum direction d)
{
    return r->side[d]->type->is_lines;
}

static void blank(struct buf *b, char c)
{
    char *at = b->p, *end = at + b->n;

    while (at < end && (at = memchr(at, c, (size_t)(end - at))))
        *at++ = ' ';
}

/* On stdio a message is a line: what came over HTTP without an end gets one, and line
 * ends inside of it, which can only stand between the parts of a JSON text, are spaces.
 */
static str as_line(struct relay *r, enum direction d, str bytes, bool end)
{
    UNINITIALIZED struct err err;

    if (!has_lines(r, d) || has_lines(r, other(d)))
        return bytes;
    if (r->desk->line.cap > 4 * INTAKE_HOLD)
        buf_release(&r->desk->line);
    r->desk->line.max = 2 * INTAKE_WHOLE;
    buf_reset(&r->desk->line);
    buf_add(&r->desk->line, bytes);
    blank(&r->desk->line, '\n');
    blank(&r->desk->line, '\r');
    if (end)
        buf_add_char(&r->desk->line, '\n');
    if (buf_check(&r->desk->line, "a message as a line", &err) == 0)
        return buf_str(&r->desk->line);
    flow_cut(r, d, NULL, &err);
    return (str){ NULL, 0 };
}

/* A message or a piece of one, until its turn comes and its evidence is on disk. */
static int hold(struct relay *r, enum direction d, struct exchange *x, str bytes,
                const struct intake_result *m, struct err *err)
{
    struct held *h = held_new();

    if (!h)
        return err_set(err, ERR_NOMEM, "no memory for a message that waits");
    h->to = d;
    h->exchange = x;
    h->end = m != NULL;
    bytes = as_line(r, d, bytes, m != NULL);
    h->bytes.max = bytes.n + 1;
    h->refusal.max = TAP_ANSWERS_MAX;
    buf_add(&h->bytes, bytes);
    if (m && r->side[d]->type->take_label)
        r->side[d]->type->take_label(r->side[d], x, &h->label);
    if (m) {
        h->answered = r->desk->tap.answered;
        h->upto = r->desk->tap.upto;
        h->refuse = r->o->block && !m->streamed;
        if (h->refuse)
            answer_refusals(&h->refusal, &r->desk->tap, d);
    }
    if (buf_check(&h->bytes, "a message that waits", err) < 0 ||
        (m && tap_take_sent(&r->desk->tap, &h->sent, err) < 0)) {
        held_free(h);
        return -1;
    }
    gate_hold(&r->desk->gate, h);
    if (relay_gated(r, d) > RELAY_QUEUE_STOP)
        r->side[other(d)]->type->read(r->side[other(d)], false);
    return 0;
}

/* An answer of our own waits for the same evidence. */
static int hold_answer(struct relay *r, enum direction to, struct exchange *x, str answer,
                       struct err *err)
{
    struct held *h = held_new();

    if (!h)
        return err_set(err, ERR_NOMEM, "no memory for an answer that waits");
    h->to = to;
    h->exchange = x;
    h->end = h->own = true;
    h->upto = r->desk->tap.upto;
    h->bytes.max = answer.n + 1;
    buf_add(&h->bytes, answer);
    if (buf_check(&h->bytes, "an answer that waits", err) < 0) {
        held_free(h);
        return -1;
    }
    gate_hold(&r->desk->gate, h);
    return 0;
}

static void flush_soon(struct relay *r)
{
    if (!loop_timer_is_set(r->desk->flush))
        loop_timer_set(r->desk->flush, FLUSH_AFTER, false);
}

void flow_release(void *ctx, struct held *h, const struct err *why_not)
{
    struct relay *r = ctx;
    bool sent;

    if (h->mark) {
        r->side[TO_SERVER]->type->settled(r->side[TO_SERVER], h->exchange);
        return;
    }
    if (why_not) {
        log_lost(r->o->log, 1, why_not->msg);
        flow_failed(r, why_not);
    }
    if (why_not && h->refuse) {
        tap_refuse_sent(&r->desk->tap, &h->sent, h->to);
        flow_say(r, TO_CLIENT, h->exchange, buf_str(&h->refusal));
        return;
    }
    if (h->own) {
        flow_say(r, h->to, h->exchange, buf_str(&h->bytes));
        return;
    }
    if (h->end && r->side[h->to]->type->give_label)
        r->side[h->to]->type->give_label(r->side[h->to], h->exchange, buf_str(&h->label));
    note_answers(r, h->to, h->exchange, h->answered);
    flow_send(r, h->to, h->exchange, buf_str(&h->bytes), h->end, &sent);
    if (sent)
        tap_say_sent(&r->desk->tap, &h->sent);
    else
        tap_drop_sent(&r->desk->tap, &h->sent);
    flush_soon(r);
}

static void pass_on(struct relay *r, enum direction d, struct exchange *x,
                    const struct intake_result *m)
{
    bool sent;

    note_answers(r, d, x, r->desk->tap.answered);
    flow_send(r, d, x, as_line(r, d, m->pass, true), true, &sent);
    if (sent)
        tap_forwarded(&r->desk->tap);
    else
        tap_unheard(&r->desk->tap);
    flush_soon(r);
}

/* What we say ourselves goes the way of what it tells of. */
static void send_own(struct relay *r, enum direction to, struct exchange *x, str bytes)
{
    UNINITIALIZED struct err ignored;

    if (bytes.n && (!is_gated(r) || hold_answer(r, to, x, bytes, &ignored) < 0))
        flow_say(r, to, x, bytes);
}

static void send_answers(struct relay *r, struct exchange *x)
{
    send_own(r, TO_CLIENT, x, buf_str(&r->desk->tap.answers));
    send_own(r, TO_SERVER, x, buf_str(&r->desk->tap.replies));
}

/* Whoever has its beginning must not take it for a whole one. */
static void cut_short(struct relay *r, enum direction d, struct exchange *x)
{
    if (r->side[d]->type->cut)
        r->side[d]->type->cut(r->side[d], x);
}

/* Does it have the shape of a message? It may be one that only we cannot read. */
static bool is_shaped(const struct intake_result *m)
{
    str s = m->pass;
    bool whole = s.n && s.p[s.n - 1] == '\n';

    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s = str_skip(s, 1);
    return whole && (m->streamed || *s.p == '{' || *s.p == '[');
}

/* A line that is no JSON, of a server that chats or died in its middle: on stdio it goes
 * on as it came, but there is no way to send it where messages are sent, not lines. */
static bool withhold_noise(struct relay *r, enum direction d, struct exchange *x,
                           const struct intake_result *m)
{
    if (d == TO_SERVER || !has_lines(r, TO_SERVER) || has_lines(r, TO_CLIENT) ||
        !tap_is_no_json(&r->desk->tap) || is_shaped(m) ||
        (m->streamed && relay_is_gated(r)))
        return false;
    if (!r->said_noise)
        relay_say(r, "the server wrote a line that is no message; it is for nobody");
    r->said_noise = true;
    if (m->streamed)
        cut_short(r, TO_CLIENT, x);
    return true;
}

/* Its evidence is written, or that it is not does not matter. */
static void let_go(struct relay *r, enum direction d, struct exchange *x,
                   const struct intake_result *m)
{
    struct intake_result rest = *m;
    UNINITIALIZED struct err err;

    if (withhold_noise(r, d, x, m))
        return;
    if (!m->streamed && tap_rest(&r->desk->tap, m->pass, &rest.pass, &err) < 0) {
        relay_say(r, "%s; the message is refused", err.msg);
        refuse(r, d, x);
        return;
    }
    send_answers(r, x);
    if (rest.pass.n == 0 && m->pass.n)
        return; /* nothing is left of it */
    if (!is_gated(r) || hold(r, d, x, rest.pass, &rest, &err) < 0)
        pass_on(r, d, x, &rest);
}

bool flow_is_open(const struct relay *r)
{
    return (r->desk && tap_is_asked(&r->desk->tap)) ||
           (r->upstream && http_client_is_busy(r->upstream->client));
}

void flow_leave_if_drained(struct relay *r)
{
    if (r->phase == DRAINING && !flow_is_open(r) && !relay_is_gated(r))
        relay_leave(r);
}

/* What is not written is counted, also where the log never heard of it. */
static int record(struct relay *r, enum direction d, struct exchange *x, str frame,
                  struct err *err)
{
    const struct endpoint *server = r->side[TO_SERVER];
    uint64_t before = log_lost_total(r->o->log);

    r->desk->tap.given = r->o->given ? *r->o->given : NULL;
    if (r->o->given)
        *r->o->given = NULL;
    r->desk->tap.own =
        d == TO_CLIENT && server->type->is_own && server->type->is_own(server, x);
    if (tap_receive(&r->desk->tap, d, frame, x, loop_now(r->loop), err) == 0)
        return keep(r, d, err);
    if (log_lost_total(r->o->log) == before)
        log_lost(r->o->log, 1, err->msg);
    return -1;
}

static void take_message(struct relay *r, enum direction d, struct exchange *x,
                         const struct intake_result *m)
{
    UNINITIALIZED struct err err;
    bool lost;

    if (d == TO_SERVER && !m->streamed && guard_wait(r->guard, m->frame, x)) {
        if (guard_aside(r->guard) > RELAY_QUEUE_STOP)
            r->side[TO_CLIENT]->type->read(r->side[TO_CLIENT], false);
        return;
    }
    flow_join(r);
    lost = record(r, d, x, m->frame, &err) < 0;
    if (lost)
        flow_failed(r, &err);
    if (lost || !tap_is_gathering(&r->desk->tap)) /* else its write will tell */
        r->failing = lost;
    if (d == TO_CLIENT && !x)
        x = r->desk->tap.asker;
    if ((lost && r->o->block && !m->streamed) || r->desk->tap.unjudged)
        refuse(r, d, x);
    else
        let_go(r, d, x, m);
    upkeep_event(&r->upkeep, loop_now(r->loop));
    if (d == TO_CLIENT) {
        steward_recover(r->start.steward);
        steward_look(r->start.steward);
    }
    flow_leave_if_drained(r);
}

/* Its client went while it waited for names: it is cancelled behind it. */
static void cancel_deserted(struct relay *r, struct exchange *x)
{
    struct endpoint *server = r->side[TO_SERVER];

    relay_cancel(r, x);
    if (server->type->settled && !relay_defers(r, x))
        server->type->settled(server, x);
}

/* A message whose names are known: as if it came now. */
void flow_ready(void *ctx, struct aside *a)
{
    struct relay *r = ctx;
    const struct intake_result m = { INTAKE_MESSAGE, buf_str(&a->bytes),
                                     buf_str(&a->bytes), false };

    take_message(r, TO_SERVER, a->exchange, &m);
    if (a->deserted)
        cancel_deserted(r, a->exchange);
    flow_drained(r, TO_SERVER);
    if (!guard_is_waiting(r->guard))
        relay_go_on(r);
}

/* The beginning of a long message, behind what waits. */
static void pass_piece(struct relay *r, enum direction d, struct exchange *x, str bytes)
{
    struct err err;
    bool sent;

    if (!relay_is_gated(r) || hold(r, d, x, bytes, NULL, &err) < 0)
        flow_send(r, d, x, as_line(r, d, bytes, false), false, &sent);
}

static void say_cut(struct relay *r, enum direction d, uint64_t bytes,
                    const struct err *why_cut)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct message m = { .dir = d == TO_SERVER ? STR("c2s") : STR("s2c"),
                         .kind = STR("invalid"),
                         .bytes = bytes,
                         .digest =
                             STR("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934"
                                 "ca495991b7852b855") };
    struct err ignored;

    relay_say(r, "%s; the connection is cut", why_cut->msg);
    message_event(&e, EVENT_MESSAGE_CUT, &m);
    event_add_cstr(&e, "reason",
                   why_cut->code == ERR_LIMIT  ? "too_large"
                   : why_cut->code == ERR_PEER ? "server_lost"
                                               : "spool_failed");
    if (session_put(r->session, &e, NULL, &ignored) < 0)
        relay_say(r, "%s", ignored.msg);
}

void flow_cut(struct relay *r, enum direction d, struct exchange *x,
              const struct err *why_cut)
{
    if (r->cut)
        return; /* the server goes on for a moment */
    say_cut(r, d, r->desk ? r->desk->intake[d].bytes : 0, why_cut);
    r->cut = true;
    relay_why(r, "message_cut", false);
    if (r->desk)
        intake_done(&r->desk->intake[d]);
    cut_short(r, d, x);
    relay_leave(r);
}

/* A long message that could not be spooled has gone on, and nothing is known of it. */
static void end_lost(struct relay *r, enum direction d, struct exchange *x,
                     struct intake *i, const struct intake_result *m)
{
    bool sent;

    log_lost(r->o->log, 1, "a long message could not be spooled");
    flow_send(r, d, x, m->pass, true, &sent);
    intake_done(i);
    upkeep_event(&r->upkeep, loop_now(r->loop));
}

/* What is to be judged, or to be cut, must not go on before its end is seen; nor what may
 * have to wait for names, in the middle of which others would go on; nor what is POSTed,
 * which is described in its head; nor what is for one of many exchanges, before it is
 * known for which. */
static bool must_be_whole(const struct relay *r, enum direction d,
                          const struct exchange *x)
{
    const struct endpoint_type *to = r->side[TO_CLIENT]->type;

    if (d == TO_SERVER)
        return r->o->enforce || r->guard->has_names || !has_lines(r, TO_SERVER);
    return (r->desk->tap.lists_open > 0 && guard_cuts_lists(r->guard)) ||
           (to->may_begin && !to->may_begin(r->side[TO_CLIENT], x));
}

/* Messages of several exchanges may come at once: each has an intake while it lasts. */
static struct intake *intake_for(struct relay *r, enum direction d, struct exchange *x,
                                 bool end)
{
    struct stream *s = r->streams;

    if (!x || d == TO_SERVER)
        return &r->desk->intake[d];
    while (s && s->exchange != x)
        s = s->next;
    if (s)
        return &s->intake;
    if (end && r->desk->intake[d].bytes == 0)
        return &r->desk->intake[d];
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    intake_init(&s->intake, log_dir(r->o->log), r->o->max_message);
    s->intake.may_lose = !r->o->block;
    s->exchange = x;
    s->next = r->streams;
    r->streams = s;
    return &s->intake;
}

void flow_forget(struct relay *r, const struct exchange *x)
{
    struct stream **at = &r->streams, *s;

    while (*at && (*at)->exchange != x)
        at = &(*at)->next;
    s = *at;
    if (!s)
        return;
    *at = s->next;
    intake_release(&s->intake);
    free(s);
}

void flow_drop(struct relay *r, const struct exchange *x, const struct err *why_dropped)
{
    struct stream *s = r->streams;

    while (s && s->exchange != x)
        s = s->next;
    if (!s)
        return;
    say_cut(r, TO_CLIENT, s->intake.bytes, why_dropped);
    r->dropped = true;
    flow_forget(r, x);
}

static void take_result(struct relay *r, enum direction d, struct exchange *x,
                        struct intake *i, const struct intake_result *result)
{
    if (result->step == INTAKE_PASS)
        pass_piece(r, d, x, result->pass);
    if (result->step == INTAKE_LOST)
        end_lost(r, d, x, i, result);
    if (result->step == INTAKE_MESSAGE) {
        take_message(r, d, x, result);
        intake_done(i);
    }
    if (i != &r->desk->intake[d] &&
        (result->step == INTAKE_LOST || result->step == INTAKE_MESSAGE))
        flow_forget(r, x);
}

void flow_span(struct relay *r, enum direction d, struct exchange *x, str bytes, bool end)
{
    struct intake_result result;
    UNINITIALIZED struct err err;
    struct intake *i;

    if (r->phase == OVER || r->cut)
        return;
    err.code = ERR_NONE;
    i = relay_sit(r, &err) == 0 ? intake_for(r, d, x, end) : NULL;
    if (!i)
        err_set(&err, ERR_NOMEM, "no memory for a message");
    else
        i->whole = must_be_whole(r, d, x);
    if (!i || intake_add(i, bytes, end, &result, &err) < 0) {
        flow_cut(r, d, x, &err);
        return;
    }
    if (i->lost && err.code != ERR_NONE)
        flow_failed(r, &err);
    take_result(r, d, x, i, &result);
}
