/* SPDX-License-Identifier: Apache-2.0 */
/* How a session ends, step by step; the order is that of docs/proxy.md. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "pipeline/relay_internal.h"

/* What waits for the disk goes on first, and a part's pack is finished. */
void relay_try_stop(struct relay *r)
{
    if (r->said_over || r->phase != OVER || relay_is_gated(r) || r->upkeep.packing)
        return;
    r->said_over = true;
    r->start.over(r->start.ctx);
}

static size_t owed_to_client(const struct relay *r)
{
    const struct endpoint *e = r->side[TO_CLIENT];

    return r->client_gone ? 0 : e->type->queued(e) + relay_gated(r, TO_CLIENT);
}

/* Who waits over HTTP is told; on stdio the end of the stream says it all. */
void relay_over(struct relay *r)
{
    if (r->phase < OVER && r->side[TO_CLIENT]->type->answers)
        flow_lose_all(r, r->open_calls ? r->open_calls : "shutdown");
    r->undelivered = r->undelivered || owed_to_client(r) > 0;
    r->phase = OVER;
    relay_try_stop(r);
}

/* The first sight of the end of answers; later ones are its consequences. */
void relay_no_more_answers(struct relay *r, const char *reason)
{
    if (!r->open_calls)
        r->open_calls = reason;
}

/* Most sessions never need it. Without memory for a timer relay_tick() must do. */
void relay_set_deadline(struct relay *r, uint64_t ms)
{
    struct err ignored;

    r->until = loop_now(r->loop) + ms;
    if (r->deadline ||
        loop_timer_new(&r->deadline, r->loop, relay_on_deadline, r, &ignored) == 0)
        loop_timer_set(r->deadline, ms, false);
}

/* A grandchild may hold the pipe for ever, and a client may never read: neither is waited
 * for without end. */
void relay_flush_on(struct relay *r)
{
    if (owed_to_client(r) == 0 && (r->server_ended || r->client_gone))
        relay_over(r);
    else
        relay_set_deadline(r, RELAY_LAST_WORDS);
}

void relay_begin_flush(struct relay *r)
{
    if (r->phase < FLUSHING && r->guard)
        guard_flush(r->guard); /* what waits for names is not to be forgotten */
    if (r->phase >= FLUSHING)
        return;
    r->phase = FLUSHING;
    relay_no_more_answers(r, "server_exit");
    r->side[TO_CLIENT]->type->read(r->side[TO_CLIENT], false);
    if (!r->signalled) /* else the time began with the signal */
        r->drain_ends = loop_now(r->loop) + r->o->shutdown_timeout;
    relay_flush_on(r);
}

static void flush_late(struct relay *r)
{
    if (owed_to_client(r) == 0 || loop_now(r->loop) >= r->drain_ends)
        relay_over(r);
    else
        relay_flush_on(r);
}

/* The second word ends what the first one still waits for. */
static void give_up_waiting(struct relay *r)
{
    for (int i = 0; i < 2; i++)
        r->side[TO_SERVER]->type->finish(r->side[TO_SERVER]);
}

/* Of a server that others use, too. */
static bool is_member(const struct relay *r)
{
    return r->start.server && !r->start.server_is_far;
}

void relay_kill_now(struct relay *r)
{
    if (relay_has_child(r))
        child_signal(&r->local->child, SIGKILL);
    else if (is_member(r))
        give_up_waiting(r); /* to close it is to free it, and we may still send */
    else
        r->side[TO_SERVER]->type->close(r->side[TO_SERVER]);
    r->server_ended = r->server_ended || !relay_has_child(r);
    relay_begin_flush(r);
}

void relay_why(struct relay *r, const char *reason, bool clean)
{
    if (r->reason)
        return; /* what came first is the reason */
    r->reason = reason;
    r->clean = clean;
}

void relay_terminate(struct relay *r, int number, uint64_t grace)
{
    r->phase = TERMINATING;
    r->ended_server = true;
    if (relay_has_child(r))
        child_signal(&r->local->child, number);
    else
        give_up_waiting(r);
    relay_set_deadline(r, grace);
}

/* Nobody is waited for any more but the server itself. */
void relay_leave(struct relay *r)
{
    if (r->phase >= LEAVING)
        return;
    r->phase = LEAVING;
    relay_no_more_answers(r, r->server_ended  ? "server_exit"
                             : r->client_gone ? "client_gone"
                                              : "shutdown");
    r->side[TO_CLIENT]->type->read(r->side[TO_CLIENT], false);
    r->side[TO_SERVER]->type->finish(r->side[TO_SERVER]);
    if (r->signalled)
        relay_terminate(r, r->signal_number, RELAY_TERM_GRACE);
    else
        relay_set_deadline(r, RELAY_EXIT_GRACE);
}

void relay_drain(struct relay *r)
{
    if (r->phase == FLUSHING)
        relay_flush_on(r);
    if (r->phase < DRAINING && r->guard)
        guard_flush(r->guard); /* nobody waits for names any more */
    if (r->phase >= DRAINING)
        return;
    r->phase = DRAINING;
    r->drain_ends = loop_now(r->loop) + r->o->shutdown_timeout;
    r->side[TO_CLIENT]->type->read(r->side[TO_CLIENT], false);
    if (r->client_ended && relay_has_child(r))
        r->side[TO_SERVER]->type->finish(r->side[TO_SERVER]);
    if (!flow_is_open(r) || r->server_ended || r->client_gone)
        relay_leave(r);
    else
        relay_set_deadline(r, r->o->shutdown_timeout);
}

/* Many clients do not need it of each of them. */
static void say_overdue(const struct relay *r)
{
    if (strcmp(r->side[TO_CLIENT]->type->name, "stdio") != 0)
        return;
    relay_say(r,
              "no answer within %" PRIu64 " s after %s: it is not waited for any longer "
              "(--shutdown-timeout)",
              r->o->shutdown_timeout / 1000,
              r->client_ended ? "the client closed its end" : "the signal");
}

void relay_on_deadline(void *ctx)
{
    struct relay *r = ctx;

    switch (r->phase) {
    case DRAINING:
        say_overdue(r);
        relay_leave(r);
        break;
    case LEAVING:
        relay_terminate(r, SIGTERM, RELAY_TERM_GRACE);
        break;
    case TERMINATING:
        relay_kill_now(r);
        break;
    case FLUSHING:
        flush_late(r);
        break;
    case OVER:
        relay_try_stop(r);
        break;
    case RUNNING:
        break;
    }
}

void relay_note_server_end(struct relay *r, const char *reason, unsigned status)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct err err;

    if (r->phase == OVER)
        return;
    event_init(&e, EVENT_SERVER_ENDED);
    event_add_cstr(&e, "reason", reason);
    if (strcmp(reason, "closed") != 0)
        event_add_int(&e, "status", status);
    if (session_put(r->session, &e, NULL, &err) < 0)
        relay_say(r, "%s", err.msg);
}
