/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that came at once: one write for all of them; declared in session.h. */
#include <stdlib.h>

#include "base/err.h"
#include "evidence/session_internal.h"

#define FIRST_ROOM 64

bool session_is_gathering(const struct session *s)
{
    return s->gather && s->gather->open;
}

size_t session_gathered(const struct session *s)
{
    if (!session_is_gathering(s))
        return 0;
    return log_gathered(s->log) + s->receipts.line.n;
}

void session_gather(struct session *s, void (*undone)(void *ctx), void *ctx)
{
    struct gather *g = s->gather;

    if (!g)
        g = s->gather = calloc(1, sizeof(*g));
    if (!g)
        return; /* each is written by itself, then */
    g->open = true;
    g->undone = undone;
    g->ctx = ctx;
    g->counts = s->history.counts;
    g->last = s->history.last;
    g->undo_count = g->released_count = 0;
    receipts_gather(&s->receipts);
}

void session_free_gather(struct session *s)
{
    if (s->gather) {
        free(s->gather->undo);
        free(s->gather->released);
    }
    free(s->gather);
    s->gather = NULL;
}

int session_gather_room(struct session *s, struct err *err)
{
    struct gather *g = s->gather;
    struct undo *more;
    size_t need, cap;

    if (!session_is_gathering(s))
        return 0;
    need = g->undo_count + s->later_count + 1;
    cap = g->undo_cap ? g->undo_cap : FIRST_ROOM;
    if (log_gathered_lost(s->log))
        return err_set(err, ERR_IO, "what was gathered before could not be written");
    if (need <= g->undo_cap)
        return 0;
    while (cap < need)
        cap *= 2;
    more = realloc(g->undo, cap * sizeof(*more));
    if (!more)
        return err_set(err, ERR_NOMEM, "no memory for a batch");
    g->undo = more;
    g->undo_cap = cap;
    return 0;
}

void session_remember(struct session *s, struct open_call *call, const struct call *mark,
                      bool made)
{
    struct gather *g = s->gather;

    if (session_is_gathering(s))
        g->undo[g->undo_count++] = (struct undo){ call, *mark, made };
}

/* Without memory the call stays until session_free(). */
static void release_later(struct gather *g, struct open_call *call)
{
    if (g->released_count == g->released_cap) {
        size_t cap = g->released_cap ? 2 * g->released_cap : FIRST_ROOM;
        void *more = realloc(g->released, cap * sizeof(*g->released));

        if (!more)
            return;
        g->released = more;
        g->released_cap = cap;
    }
    g->released[g->released_count++] = call;
}

void session_release(struct session *s, struct open_call *call)
{
    if (session_is_gathering(s))
        release_later(s->gather, call); /* it may have to be as it was before */
    else if (!call_is_open(&call->call) && !call_is_due(&call->call))
        history_drop_call(&s->history, call);
}

static void release_all(struct session *s)
{
    for (size_t i = 0; i < s->gather->released_count; i++)
        session_release(s, s->gather->released[i]);
    s->gather->released_count = 0;
}

/* As it was at session_gather(). One that was dropped has no id any more. */
static void undo_all(struct session *s)
{
    struct gather *g = s->gather;

    for (size_t i = g->undo_count; i-- > 0;)
        call_rewind(&g->undo[i].call->call, &g->undo[i].mark);
    release_all(s);
    session_lose_later(s, 0);
    for (size_t i = 0; i < g->undo_count; i++) {
        if (g->undo[i].made && g->undo[i].call->call.id[0])
            history_drop_call(&s->history, g->undo[i].call);
    }
    s->history.counts = g->counts;
    s->history.last = g->last;
}

/* The lines first, as ever. */
static int write_out(struct session *s, struct err *err)
{
    if (receipts_write(&s->receipts, err) < 0) {
        log_drop(s->log, err->msg);
        return -1;
    }
    if (log_write(s->log, err) == 0)
        return 0;
    receipts_undo(&s->receipts);
    return -1;
}

int session_write(struct session *s, struct err *err)
{
    struct gather *g = s->gather;

    if (!session_is_gathering(s))
        return 0;
    g->open = false;
    if (write_out(s, err) == 0) {
        release_all(s);
        return 0;
    }
    if (s->later_count)
        log_lost(s->log, s->later_count, err->msg);
    undo_all(s);
    g->undone(g->ctx);
    return -1;
}
