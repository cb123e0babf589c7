/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose time is over; declared in tap.h. */
#include <stdio.h>

#include "base/err.h"
#include "pipeline/tap.h"
#include "pipeline/tap_internal.h"

/* Its receipt is "" when none could be written. */
static void lose(struct tap *t, struct pending *p, const char *reason,
                 char receipt[static ID_MAX])
{
    struct err ignored;

    receipt[0] = '\0';
    if (session_lose(t->options.session, p->call, reason, NULL, &ignored) == 0) {
        snprintf(receipt, ID_MAX, "%s", p->call->call.receipt_id);
        session_release(t->options.session, p->call);
    }
    p->call = NULL;
}

void tap_lose(struct tap *t, struct pending *p, const char *reason)
{
    char receipt[ID_MAX];

    lose(t, p, reason, receipt);
}

static void time_out(struct tap *t, struct pending *p)
{
    char receipt[ID_MAX];

    lose(t, p, "call_timeout", receipt);
    p->answered = true;
    t->options.on_timeout(t->options.ctx, str_of(p->bytes, p->raw_n), p->exchange,
                          receipt);
}

void tap_tick(struct tap *t, uint64_t now)
{
    struct pending *p = t->asked[TO_SERVER].oldest, *next;

    for (; p; p = next) {
        next = p->newer;
        if (!p->call || p->method != RPC_TOOLS_CALL)
            continue;
        if (p->cancelled && now - p->at > TAP_CANCEL_GRACE) {
            tap_lose(t, p, "cancelled");
            correlate_remove(&t->asked[TO_SERVER], p);
        } else if (t->options.call_timeout && !p->cancelled &&
                   now - p->at > t->options.call_timeout) {
            time_out(t, p);
        }
    }
}

void tap_give_up(struct tap *t, struct pending *p, const char *reason,
                 char receipt[static ID_MAX])
{
    receipt[0] = '\0';
    if (p->call)
        lose(t, p, reason, receipt);
    tap_forget_pending(t, TO_SERVER, p);
}

static void say_cancelled(struct tap *t, struct open_call *call)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct err ignored; /* the log counts what is lost */

    event_init(&e, EVENT_CALL_CANCELLED);
    if (session_note(t->options.session, call, &e, NULL, &ignored) < 0)
        return;
}

void tap_cancel(struct tap *t, const struct exchange *x, uint64_t now)
{
    struct pending *p = t->asked[TO_SERVER].oldest, *next;

    for (; p; p = next) {
        next = p->newer;
        if (p->exchange != x || p->cancelled)
            continue;
        if (!p->call || p->method != RPC_TOOLS_CALL || p->answered) {
            tap_forget_pending(t, TO_SERVER, p);
            continue;
        }
        p->cancelled = true;
        p->at = now;
        say_cancelled(t, p->call);
    }
}

void tap_settle(struct tap *t)
{
    struct pending *p = t->asked[TO_SERVER].oldest, *next;

    tap_settle_refusals(t);
    for (; p; p = next) {
        next = p->newer;
        if (!p->cancelled || !p->call || p->method != RPC_TOOLS_CALL)
            continue;
        tap_lose(t, p, "cancelled");
        correlate_remove(&t->asked[TO_SERVER], p);
    }
}
