/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/relay.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "pipeline/relay_internal.h"

void relay_say(const struct relay *r, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!r->o->say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    r->o->say(r->o->say_ctx, sentence);
}

/* Messages that came at once are recorded with the log's lock taken once, and go on
 * together. */
static void on_many(void *ctx, bool begin)
{
    struct relay *r = ctx;

    flow_many(r, begin);
    for (int d = 0; d < 2; d++)
        r->side[d]->type->cork(r->side[d], begin);
}

/* --- the client's side --- */

static void client_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    flow_span(ctx, TO_SERVER, x, bytes, end);
}

static void client_ended(void *ctx, const struct err *why_ended)
{
    struct relay *r = ctx;

    r->client_ended = true;
    relay_why(r, "client_eof", why_ended == NULL);
    r->client_end_waits = relay_is_gated(r) || guard_is_waiting(r->guard);
    if (!r->client_end_waits)
        relay_drain(r);
}

static void client_drained(void *ctx)
{
    flow_drained(ctx, TO_CLIENT);
}

static void client_gone(void *ctx, const struct err *why_gone)
{
    struct relay *r = ctx;

    (void)why_gone;
    r->client_gone = true;
    relay_why(r, "broken_pipe", false);
    relay_drain(r);
}

static const struct endpoint_events client_events = { client_span, client_ended,
                                                      client_drained, client_gone,
                                                      on_many };

/* --- the server's side --- */

static void server_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    flow_span(ctx, TO_CLIENT, x, bytes, end);
}

static void server_ended(void *ctx, const struct err *why_ended)
{
    struct relay *r = ctx;

    if (r->upstream)
        relay_why(r, "server_exit", why_ended == NULL);
    r->server_ended = true;
    r->server_end_waits = relay_is_gated(r);
    if (r->server_end_waits)
        return;
    if (r->phase == FLUSHING)
        relay_flush_on(r);
    else if (!relay_has_child(r)) /* nobody's exit follows */
        relay_begin_flush(r);
    else
        relay_leave(r);
}

static void server_drained(void *ctx)
{
    flow_drained(ctx, TO_SERVER);
}

static void server_gone(void *ctx, const struct err *why_gone)
{
    (void)ctx;
    (void)why_gone; /* it may still have something to say: its stdout tells */
}

static const struct endpoint_events server_events = { server_span, server_ended,
                                                      server_drained, server_gone,
                                                      on_many };

/* On stdio the client sees the end itself, and the person wants to know of a bad one. */
static void say_exit(const struct relay *r, int status)
{
    const char *how =
        WIFSIGNALED(status) ? "was ended by signal" : "has exited with status";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

    if (r->signalled || r->ended_server)
        return;
    if (r->side[TO_CLIENT]->type->answers && !r->client_ended)
        relay_say(r, "session %s: the server %s %d; its client has to begin anew",
                  session_id(r->session), how, number);
    else if (status != 0)
        relay_say(r, "the server %s %d", how, number);
}

static void server_exit(void *ctx, int status)
{
    struct relay *r = ctx;

    r->server_exited = true;
    r->server_status = status;
    say_exit(r, status);
    relay_why(r, "server_exit", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    relay_begin_flush(r);
}

/* Nothing waits for the disk any more: what waited for that goes on. */
void relay_on_gate_empty(void *ctx)
{
    struct relay *r = ctx;

    if (r->server_end_waits)
        server_ended(r, NULL);
    for (int d = 0; d < 2; d++) {
        if (r->side[d]->type->queued(r->side[d]) == 0)
            flow_drained(r, (enum direction)d);
    }
    relay_go_on(r);
}

void relay_go_on(struct relay *r)
{
    if (relay_is_gated(r))
        return;
    if (r->client_end_waits && !guard_is_waiting(r->guard)) {
        r->client_end_waits = false;
        relay_drain(r);
    }
    flow_leave_if_drained(r);
    relay_try_stop(r);
}

/* --- signals and time --- */

/* The client wants us gone: what it gives us after its EOF is short. */
static void hasten(struct relay *r)
{
    relay_no_more_answers(r, "shutdown");
    relay_terminate(r, SIGTERM, RELAY_EXIT_GRACE);
}

void relay_signal(struct relay *r, int number)
{
    bool again = r->signalled;

    if (number == SIGHUP && guard_has_policy(r->guard)) {
        guard_reload(r->guard);
        return;
    }
    r->signalled = true;
    r->signal_number = number == SIGHUP ? SIGTERM : number;
    relay_why(r, number == SIGINT ? "sigint" : "sigterm", true);
    if (again || r->client_ended || r->phase == FLUSHING)
        r->drain_ends = loop_now(r->loop);
    if (r->phase == FLUSHING && !again)
        relay_flush_on(r); /* who sends signals may still read, but not for long */
    else if (r->phase >= FLUSHING)
        relay_over(r);
    else if (r->client_ended && (r->phase < TERMINATING || !again))
        hasten(r);
    else if (again && r->phase <= DRAINING)
        relay_leave(r);
    else if (again)
        relay_kill_now(r);
    else
        relay_drain(r);
}

void relay_stop(struct relay *r, const char *reason)
{
    relay_why(r, reason, true);
    r->client_ended = true;
    relay_drain(r);
}

void relay_cancel(struct relay *r, const struct exchange *x)
{
    guard_desert(r->guard, x);
    if (r->desk)
        tap_cancel(&r->desk->tap, x, loop_now(r->loop));
}

void relay_lose(struct relay *r, struct exchange *x, str id, const struct err *why)
{
    struct pending *p = relay_oldest(r);

    while (p && (p->exchange != x || !str_equal(str_of(p->bytes, p->raw_n), id)))
        p = p->newer;
    if (p && !p->answered && !p->cancelled)
        flow_lose(r, p, "server_exit", why);
    flow_leave_if_drained(r);
}

void relay_lose_all(struct relay *r, const struct exchange *x, const char *reason,
                    const struct err *why)
{
    struct pending *p = relay_oldest(r), *next;

    for (; p; p = next) {
        next = p->newer;
        if (p->exchange == x && !p->answered && !p->cancelled)
            flow_lose(r, p, reason, why);
    }
    flow_leave_if_drained(r);
}

void relay_drop(struct relay *r, const struct exchange *x, const struct err *why)
{
    flow_drop(r, x, why);
}

bool relay_defers(struct relay *r, struct exchange *x)
{
    struct held *h = relay_is_gated(r) ? held_new() : NULL;

    if (!h)
        return false;
    h->to = TO_CLIENT;
    h->exchange = x;
    h->mark = true;
    gate_hold(&r->desk->gate, h);
    return true;
}

bool relay_holds(const struct relay *r)
{
    return relay_is_gated(r) || guard_is_waiting(r->guard);
}

size_t relay_unsent(const struct relay *r)
{
    const struct endpoint *e = r->side[TO_SERVER];

    return (e ? e->type->queued(e) : 0) + relay_gated(r, TO_SERVER) +
           guard_aside(r->guard);
}

bool relay_is_busy(const struct relay *r)
{
    return relay_oldest(r) || flow_is_open(r) || relay_holds(r);
}

/* A call that waits at the gate is not timed out: it has not been sent. */
void relay_tick(struct relay *r)
{
    uint64_t events, now = loop_now(r->loop);

    if (r->desk && !relay_is_gated(r))
        tap_tick(&r->desk->tap, now);
    upkeep_tick(&r->upkeep, now);
    events = session_history(r->session)->counts.events;
    if (events != r->events)
        steward_note(r->start.steward);
    r->events = events;
    flow_leave_if_drained(r);
    if (!r->deadline && r->until && now >= r->until)
        relay_on_deadline(r);
}

static void on_idle(void *ctx)
{
    relay_try_stop(ctx);
}

/* --- opening and closing --- */

static int open_session(struct relay *r, struct err *err)
{
    const struct session_options options = { .log = r->o->log,
                                             .server_id = r->o->server_id,
                                             .transport = r->side[TO_SERVER]->type->name,
                                             .client_transport =
                                                 r->side[TO_CLIENT]->type->name,
                                             .profile = r->o->enforce ? "guard" : "audit",
                                             .policy_hash =
                                                 r->o->policy ? r->o->policy->hash : NULL,
                                             .pack_empty = r->o->pack_empty,
                                             .investigation = r->o->investigation,
                                             .flushed = true };

    if (session_open(&r->session, &options, err) < 0 ||
        entropy_fill(log_entropy(r->o->log), &r->seed, sizeof(r->seed), err) < 0 ||
        relay_open_guard(r, err) < 0 || guard_open_pins(r->guard, err) < 0)
        return -1;
    return r->o->investigation ? investigation_open(&r->kept, log_dir(r->o->log),
                                                    session_id(r->session), err)
                               : 0;
}

static void open_keepers(struct relay *r)
{
    const struct upkeep_options upkeep = { .loop = r->loop,
                                           .log = r->o->log,
                                           .session = r->session,
                                           .pack_ms = r->o->pack_ms,
                                           .pack_receipts = r->o->pack_receipts,
                                           .say = r->o->say,
                                           .packed = r->o->packed,
                                           .hook_ctx = r->o->say_ctx,
                                           .idle = on_idle,
                                           .idle_ctx = r };

    upkeep_init(&r->upkeep, &upkeep, loop_now(r->loop));
}

static int open_child(struct relay *r, struct err *err)
{
    struct local *l = calloc(1, sizeof(*l));
    int to = -1, from = -1;

    if (!l)
        return err_set(err, ERR_NOMEM, "no memory for a server");
    l->child = (struct child){ .guard_fd = -1, .pid_fd = -1 };
    r->local = l;
    if (child_start(&l->child, r->loop, r->o->argv, &to, &from, server_exit, r, err) < 0)
        return -1;
    if (stdio_open(&l->side, r->loop, from, to, false, &server_events, r, err) < 0)
        return -1;
    l->side.out.gathers = r->start.client != NULL; /* one of many sessions */
    r->side[TO_SERVER] = &l->side.endpoint;
    return 0;
}

static int open_upstream(struct relay *r, struct err *err)
{
    if (upstream_open(&r->upstream, r, r->o->upstream, &server_events, err) < 0)
        return -1;
    r->side[TO_SERVER] = http_client_endpoint(r->upstream->client);
    return 0;
}

static int take_over(struct relay *r, enum direction d, struct endpoint *e,
                     const struct endpoint_events *events)
{
    e->events = events;
    e->ctx = r;
    r->side[d] = e;
    return 0;
}

static int open_server(struct relay *r, struct err *err)
{
    if (r->start.server)
        return take_over(r, TO_SERVER, r->start.server, &server_events);
    return r->o->upstream ? open_upstream(r, err) : open_child(r, err);
}

static int open_client(struct relay *r, struct err *err)
{
    if (r->start.client)
        return take_over(r, TO_CLIENT, r->start.client, &client_events);
    r->client_side = calloc(1, sizeof(*r->client_side));
    if (!r->client_side)
        return err_set(err, ERR_NOMEM, "no memory for a client");
    if (stdio_open(r->client_side, r->loop, STDIN_FILENO, STDOUT_FILENO, true,
                   &client_events, r, err) < 0)
        return -1;
    r->side[TO_CLIENT] = &r->client_side->endpoint;
    return 0;
}

static void close_sides(struct relay *r)
{
    for (int d = 0; d < 2; d++) {
        if (r->side[d])
            r->side[d]->type->close(r->side[d]);
        r->side[d] = NULL;
    }
    while (r->streams)
        flow_forget(r, r->streams->exchange);
    upstream_free(r->upstream);
    r->upstream = NULL;
    if (r->local)
        child_release(&r->local->child);
    free(r->local);
    r->local = NULL;
    free(r->client_side);
    r->client_side = NULL;
}

void relay_close(struct relay *r)
{
    if (r->start.turn)
        turn_leave(r->start.turn, r);
    close_sides(r);
    if (r->desk)
        loop_timer_free(r->desk->flush);
    if (r->desk)
        r->desk->flush = NULL;
    loop_timer_free(r->deadline);
    r->deadline = NULL;
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    relay_close(r);
    guard_free(r->guard);
    upkeep_release(&r->upkeep);
    investigation_close(&r->kept);
    relay_leave_desk(r);
    session_free(r->session);
    free(r);
}

/* The server's own death by signal is no proper end, unless the signal was ours. */
static bool ended_well(const struct relay *r)
{
    if (!r->clean || r->cut || r->dropped || r->client_gone || r->undelivered)
        return false;
    if (r->ended_server || !r->server_exited)
        return true;
    return WIFEXITED(r->server_status) &&
           (WEXITSTATUS(r->server_status) == 0 || strcmp(r->reason, "server_exit") != 0);
}

/* The end without a root of the part before is better than no end. */
int relay_end(struct relay *r, struct relay_outcome *out, struct relay_rest *rest,
              struct err *err)
{
    struct session_ending ending = { .reason = r->reason ? r->reason : "end",
                                     .clean = ended_well(r),
                                     .open_calls =
                                         r->open_calls ? r->open_calls : "shutdown" };
    const struct history *h = session_history(r->session);
    bool packable = false;

    *out = (struct relay_outcome){ .violations = r->guard ? r->guard->violations : 0 };
    *rest = (struct relay_rest){ .request = { .session = session_id(r->session),
                                              .receipts = session_receipts(r->session),
                                              .first = h->first,
                                              .past = upkeep_past(&r->upkeep) } };
    rest->part = upkeep_last_part(&r->upkeep, &ending.previous_root, &rest->why);
    if (r->desk)
        tap_settle(&r->desk->tap);
    if (session_end(r->session, &ending, &rest->request.cut, &packable, err) < 0)
        return -1;
    session_trim(r->session); /* many may wait for their packs */
    rest->packable = packable && r->o->pack;
    rest->events = h->counts.events;
    out->complete = h->complete;
    out->calls = h->counts.calls;
    out->unanswered = h->counts.lost;
    return 0;
}

int relay_forget(struct relay *r, const struct relay_rest *rest, struct err *err)
{
    if (log_forget_session(r->o->log, session_id(r->session), err) < 0)
        return -1;
    if (rest->part < 0)
        *err = rest->why;
    return rest->part;
}

int relay_seal(struct relay *r, struct relay_outcome *out, struct err *err)
{
    struct relay_rest rest;

    if (relay_end(r, out, &rest, err) < 0)
        return -1;
    if (rest.packable) {
        if (pack_build(r->o->log, &rest.request, &out->pack, err) < 0)
            return -1;
        out->packed = true;
    }
    return relay_forget(r, &rest, err);
}

/* The server first: when it cannot be started, nothing has happened. */
static int begin(struct relay *r, struct err *err)
{
    if (open_server(r, err) < 0 || open_client(r, err) < 0 || open_session(r, err) < 0)
        return -1;
    open_keepers(r);
    for (int d = 0; d < 2; d++)
        r->side[d]->type->read(r->side[d], true);
    return 0;
}

int relay_open(struct relay **out, const struct relay_options *options,
               const struct relay_start *start, struct err *err)
{
    struct relay *r = calloc(1, sizeof(*r));

    if (!r)
        return err_set(err, ERR_NOMEM, "no memory for a session");
    r->o = options;
    r->start = *start;
    r->loop = start->loop;
    r->kept.fd = -1;
    if (begin(r, err) < 0) {
        relay_free(r);
        return -1;
    }
    *out = r;
    return 0;
}
