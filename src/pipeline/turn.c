/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/turn.h"

#include "base/err.h"
#include "pipeline/relay_internal.h"

/* The first one's word writes what all of them have. */
static void conclude(struct relay *r)
{
    UNINITIALIZED struct err err;

    if (session_write(r->session, &err) < 0)
        flow_failed(r, &err);
    else
        r->failing = false;
}

static void end(struct turn *t)
{
    struct relay *r;

    loop_chore_cancel(t->loop, &t->end);
    while ((r = t->relays)) {
        t->relays = r->next_in_turn;
        r->in_turn = false;
        conclude(r);
    }
    t->messages = 0;
    log_let_go(t->log);
}

static void on_end(void *ctx)
{
    end(ctx);
}

void turn_init(struct turn *t, struct loop *loop, struct log *log)
{
    *t = (struct turn){ .loop = loop,
                        .log = log,
                        .end = { .run = on_end, .ctx = t, .first = true } };
}

void turn_join(struct turn *t, struct relay *r)
{
    if (t->messages == TURN_MESSAGES)
        end(t);
    t->messages++;
    if (session_is_gathering(r->session))
        return;
    if (r->in_turn) {
        conclude(r); /* somebody has written it */
    } else {
        r->in_turn = true;
        r->next_in_turn = t->relays;
        t->relays = r;
    }
    if (!log_is_held(t->log))
        log_hold(t->log);
    loop_chore_set(t->loop, &t->end);
    tap_gather(&r->desk->tap);
}

void turn_leave(struct turn *t, const struct relay *r)
{
    if (r->in_turn)
        end(t);
}
