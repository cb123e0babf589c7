/* SPDX-License-Identifier: Apache-2.0 */
/* A member: what waits for it, and its endpoint. */
#include <stdlib.h>

#include "pipeline/share_internal.h"

static struct member *of(struct endpoint *e)
{
    return (struct member *)e; /* its first member */
}

void share_wake(struct share *s)
{
    if (!loop_timer_is_set(s->wake))
        loop_timer_set(s->wake, 0, false);
}

/* That can answer. */
struct member *share_newest_member(const struct share *s)
{
    struct member *m = s->newest;

    while (m && (m->closed || m->cut || m->finishing))
        m = m->older;
    return m;
}

/* --- what waits for it --- */

static size_t weight(const struct parcel *p)
{
    return sizeof(*p) + p->n;
}

static struct parcel *pop(struct member *m)
{
    struct parcel *p = m->first;

    m->first = p->next;
    if (!m->first)
        m->last = NULL;
    m->waiting -= weight(p);
    return p;
}

static void drop_parcels(struct member *m)
{
    while (m->first)
        free(pop(m));
}

static void refuse_asked(struct share *s, const struct member *m)
{
    struct asked *a, *next;

    for (a = s->asked; a; a = next) {
        next = a->next;
        if (a->member != m)
            continue;
        share_refuse(s, share_asked_raw(a), STR("the client is gone"));
        share_asked_free(s, a);
    }
}

static bool is_subscribed_by_other(const struct member *m, str uri)
{
    for (const struct member *o = m->share->oldest; o; o = o->newer) {
        if (o != m && share_is_subscribed(o, uri, true))
            return true;
    }
    return false;
}

static void unsubscribe_all(struct member *m, bool tell)
{
    while (m->subscriptions) {
        struct subscription *u = m->subscriptions;
        str uri = str_of(u->uri, u->n);

        if (tell && !is_subscribed_by_other(m, uri))
            share_send_resource(m->share, false, uri);
        share_unsubscribe(m, uri);
    }
}

static void forget_all(struct member *m)
{
    struct ask *a, *next;

    for (a = m->share->first_ask; a; a = next) {
        next = a->newer;
        if (a->member == m)
            share_ask_forget(m->share, a);
    }
    refuse_asked(m->share, m);
}

/* Nothing more goes its way. */
static void cut_off(struct member *m, const struct err *why)
{
    if (m->cut)
        return;
    m->cut = why;
    drop_parcels(m);
    forget_all(m);
    unsubscribe_all(m, true);
    share_wake(m->share);
}

void share_put(struct member *m, enum parcel_kind kind, struct exchange *x, str bytes,
               const struct err *why)
{
    struct parcel *p;

    if (m->closed || m->cut || m->ended)
        return;
    p = malloc(sizeof(*p) + bytes.n);
    if (!p) {
        cut_off(m, &share_why_memory);
        return;
    }
    *p = (struct parcel){ .kind = kind, .exchange = x, .why = why, .n = bytes.n };
    memcpy(p->bytes, bytes.p, bytes.n);
    if (m->last)
        m->last->next = p;
    else
        m->first = p;
    m->last = p;
    m->waiting += weight(p);
    share_wake(m->share);
}

/* --- delivery --- */

static void hand_over(struct member *m)
{
    const struct endpoint *e = &m->endpoint;
    struct parcel *p = pop(m);
    struct share_end end;

    if (p->kind == PARCEL_MESSAGE) {
        e->events->on_span(e->ctx, p->exchange, str_of(p->bytes, p->n), true);
    } else if (p->kind == PARCEL_END) {
        memcpy(&end, p->bytes, sizeof(end));
        if (m->end)
            m->end(e->ctx, &end);
    } else {
        m->lost(e->ctx, p->exchange, str_of(p->bytes, p->n), p->why);
    }
    free(p);
}

static bool is_at_end(const struct member *m)
{
    return !m->ended && !m->closed &&
           (m->cut || (m->finishing && m->open == 0 && !m->first));
}

static void serve(struct member *m)
{
    const struct endpoint *e = &m->endpoint;

    while (m->reading && m->first && !m->closed)
        hand_over(m);
    if (m->drained && !m->closed) {
        m->drained = false;
        e->events->on_drained(e->ctx);
    }
    if (is_at_end(m)) {
        m->ended = true;
        e->events->on_ended(e->ctx, m->cut);
    }
}

void share_member_free(struct member *m)
{
    struct share *s = m->share;

    if (m->older)
        m->older->newer = m->newer;
    else
        s->oldest = m->newer;
    if (m->newer)
        m->newer->older = m->older;
    else
        s->newest = m->older;
    drop_parcels(m);
    unsubscribe_all(m, false);
    buf_release(&m->partial);
    free(m);
}

static void free_closed(struct share *s)
{
    struct member *m, *newer;

    for (m = s->oldest; m; m = newer) {
        newer = m->newer;
        if (m->closed)
            share_member_free(m);
    }
}

/* Members are only freed when nobody walks along them. */
void share_deliver(struct share *s)
{
    if (s->busy)
        return;
    s->busy = true;
    for (struct member *m = s->oldest; m; m = m->newer)
        serve(m);
    s->busy = false;
    free_closed(s);
    share_trim(s);
    share_set_reading(s);
}

void share_on_wake(void *ctx)
{
    share_deliver(ctx);
}

void share_drained(struct share *s)
{
    for (struct member *m = s->oldest; m; m = m->newer)
        m->drained = true;
    share_wake(s);
}

void share_on_stall(void *ctx)
{
    struct share *s = ctx;

    for (struct member *m = s->oldest; m; m = m->newer) {
        if (m->waiting > SHARE_QUEUE_MAX && !m->cut) {
            share_say(s, "a client does not read what the server says; it is cut off");
            cut_off(m, &share_why_slow);
        }
    }
    share_deliver(s);
}

/* --- the endpoint --- */

static void member_read(struct endpoint *e, bool on)
{
    struct member *m = of(e);

    m->reading = on;
    if (on && m->first)
        share_wake(m->share);
}

static int send_whole(struct member *m, struct exchange *x, str bytes, struct err *err)
{
    bool went = share_to_server(m->share, m, x, bytes);

    share_trim(m->share);
    return went ? 0 : err_set(err, ERR_PEER, "nothing of it is for the server");
}

static int member_send(struct endpoint *e, struct exchange *x, str bytes, bool end,
                       struct err *err)
{
    struct member *m = of(e);
    bool whole = end && m->partial.n == 0 && !m->partial.failed;
    int r;

    if (m->cut || m->closed || m->finishing)
        return err_set(err, ERR_PEER, "%s",
                       m->cut ? m->cut->msg : "nothing more is sent");
    if (whole && bytes.n <= SPLICE_MAX)
        return send_whole(m, x, bytes, err);
    m->partial.max = SPLICE_MAX;
    buf_add(&m->partial, bytes);
    if (!end)
        return 0;
    r = buf_check(&m->partial, "a message to a shared server", err);
    if (r == 0)
        r = send_whole(m, x, buf_str(&m->partial), err);
    buf_release(&m->partial);
    return r;
}

static void member_cork(struct endpoint *e, bool on)
{
    struct member *m = of(e);
    struct share *s = m->share;
    struct endpoint *side = &s->side.endpoint;
    unsigned before = s->corks;

    if (m->corked == on)
        return;
    m->corked = on;
    s->corks += on ? 1u : -1u;
    if (side->type && (before == 0 || s->corks == 0))
        side->type->cork(side, on);
}

static size_t member_queued(const struct endpoint *e)
{
    const struct share *s = ((const struct member *)e)->share;
    const struct endpoint *side = &s->side.endpoint;

    return s->held.n + (side->type ? side->type->queued(side) : 0);
}

/* An answer comes with the exchange that asked. */
static bool member_is_own(const struct endpoint *e, const struct exchange *x)
{
    (void)e;
    return x != NULL;
}

static void member_finish(struct endpoint *e)
{
    struct member *m = of(e);

    if (m->finishing)
        forget_all(m);
    m->finishing = true;
    refuse_asked(m->share, m);
    share_wake(m->share);
}

static void member_close(struct endpoint *e)
{
    struct member *m = of(e);

    if (m->closed)
        return;
    member_cork(e, false);
    m->closed = true;
    drop_parcels(m);
    forget_all(m);
    unsubscribe_all(m, true);
    if (!m->share->busy)
        free_closed(m->share);
    else
        share_wake(m->share);
}

/* A subscription may go on as long as the server likes: of that nobody hears any more. */
void share_cancel_exchange(struct endpoint *member, const struct exchange *x)
{
    struct member *m = of(member);
    struct ask *a, *next;

    for (a = m->share->first_ask; a; a = next) {
        next = a->newer;
        if (a->member != m || a->exchange != x)
            continue;
        if (a->is_listen)
            share_ask_forget(m->share, a);
        else
            share_ask_cancel(m->share, a);
    }
    share_wake(m->share);
}

static const struct endpoint_type member_type = {
    .name = "stdio",
    .read = member_read,
    .send = member_send,
    .cork = member_cork,
    .queued = member_queued,
    .is_own = member_is_own,
    .settled = share_cancel_exchange,
    .finish = member_finish,
    .close = member_close,
};

int share_join(struct share *s, const struct share_member_options *options,
               struct endpoint **out, struct err *err)
{
    struct member *m = calloc(1, sizeof(*m));

    if (!m)
        return err_set(err, ERR_NOMEM, "no memory for a client of a shared server");
    m->endpoint = (struct endpoint){ &member_type, options->events, options->ctx };
    m->share = s;
    m->lost = options->lost;
    m->end = options->ended;
    m->older = s->newest;
    if (s->newest)
        s->newest->newer = m;
    else
        s->oldest = m;
    s->newest = m;
    *out = &m->endpoint;
    return 0;
}
