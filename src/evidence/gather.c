/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that came at once, of one session or of several: one write for all of them;
 * declared in session.h. */
#include <stdlib.h>

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
    return log_gathered(s->log) + receipts_waiting(&s->receipts);
}

static void write_all(void *ctx);

void session_gather(struct session *s, void (*undone)(void *ctx), void *ctx)
{
    struct gather *g = s->gather;

    if (!g)
        g = s->gather = calloc(1, sizeof(*g));
    if (!g)
        return; /* each is written by itself, then */
    g->session = s;
    g->open = true;
    g->lost = false;
    g->next = log_gatherer(s->log);
    log_set_gatherer(s->log, write_all, g);
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

/* The lines of all of them first, as ever. */
static int write_out(struct gather *all, struct err *err)
{
    struct log *log = all->session->log;

    for (struct gather *g = all; g; g = g->next) {
        if (receipts_write(&g->session->receipts, err) < 0) {
            log_drop(log, err->msg);
            return -1;
        }
    }
    return log_write(log, err);
}

static void lose(struct gather *g, const struct err *why)
{
    struct session *s = g->session;

    receipts_drop(&s->receipts);
    if (s->later_count)
        log_lost(s->log, s->later_count, why->msg);
    undo_all(s);
    g->lost = true;
    g->why = *why;
    g->undone(g->ctx);
}

/* It stands in one batch: it is written together or not at all. */
static void write_all(void *ctx)
{
    struct gather *all = ctx;
    struct err err;
    int r;

    log_set_gatherer(all->session->log, NULL, NULL);
    for (struct gather *g = all; g; g = g->next)
        g->open = false;
    r = write_out(all, &err);
    for (struct gather *g = all, *next; g; g = next) {
        next = g->next;
        if (r == 0)
            release_all(g->session);
        else
            lose(g, &err);
    }
}

int session_write(struct session *s, struct err *err)
{
    struct gather *g = s->gather;

    if (session_is_gathering(s))
        write_all(log_gatherer(s->log));
    if (!g || !g->lost)
        return 0;
    g->lost = false;
    *err = g->why;
    return -1;
}

static void tell_nobody(void *ctx)
{
    (void)ctx;
}

void session_end_gather(struct session *s)
{
    struct err ignored; /* what is lost is counted */

    if (s->gather)
        s->gather->undone = tell_nobody;
    if (session_write(s, &ignored) < 0)
        return;
}
