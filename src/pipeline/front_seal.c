/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the sessions behind a listener end. First the end of each is written, then they are
 * packed, as many as wait together: whoever kills us meanwhile leaves sessions that have
 * ended, and the next recorder has only packs to build.
 */
#include <stdlib.h>

#include "pipeline/front_internal.h"

/* Its end, and what came of it. */
struct seal {
    struct seat *seat;
    struct seal *next; /* of those that wait for their pack */
    struct relay_outcome outcome;
    struct relay_rest rest;
    struct err err;
    int result;
};

/* Packs that a worker builds. */
struct packing {
    struct front *front;
    struct seal *seals[PACK_TOGETHER_MAX];
    struct pack_job jobs[PACK_TOGETHER_MAX];
    size_t count;
};

static void seal_done(struct seal *l)
{
    struct seat *s = l->seat;
    struct front *f = s->front;

    s->state = SEAT_DONE;
    if (l->result < 0)
        front_say(f, "%s", l->err.msg);
    else if (l->outcome.packed && f->relay.packed)
        f->relay.packed(f->relay.say_ctx, &l->outcome.pack);
    f->outcome.incomplete =
        f->outcome.incomplete || l->result < 0 || !l->outcome.complete;
    f->outcome.calls += l->outcome.calls;
    f->outcome.violations += l->outcome.violations;
    f->outcome.unanswered += l->outcome.unanswered;
    free(l);
    steward_note(&f->steward);
    front_soon(s);
}

static void take_pack(struct seal *l, const struct pack_job *job)
{
    l->result = job->failed;
    l->err = job->err;
    if (job->failed < 0)
        return;
    l->outcome.packed = true;
    l->outcome.pack = job->result;
    l->result = relay_forget(l->seat->relay, &l->rest, &l->err);
}

static void run_packs(void *ctx)
{
    struct packing *p = ctx;

    pack_build_all(p->front->relay.log, p->jobs, p->count);
    for (size_t i = 0; i < p->count; i++)
        take_pack(p->seals[i], &p->jobs[i]);
}

static void pack_some(struct front *f);

static void packs_done(void *ctx)
{
    struct packing *p = ctx;
    struct front *f = p->front;

    f->packings--;
    for (size_t i = 0; i < p->count; i++)
        seal_done(p->seals[i]);
    free(p);
    pack_some(f);
}

static struct seal *next_unpacked(struct front *f)
{
    struct seal *l = f->unpacked;

    f->unpacked = l->next;
    f->unpacked_newest = f->unpacked ? f->unpacked_newest : NULL;
    return l;
}

/* The first, and as many of those behind it as are small enough together. */
static void take_waiting(struct packing *p)
{
    struct front *f = p->front;
    uint64_t events = 0;

    while (f->unpacked && p->count < PACK_TOGETHER_MAX) {
        events += f->unpacked->rest.events;
        if (p->count && events > FRONT_PACK_EVENTS)
            return;
        p->jobs[p->count].request = f->unpacked->rest.request;
        p->seals[p->count++] = next_unpacked(f);
    }
}

/* `assay proof-pack SESSION` does it. */
static void leave_unpacked(struct front *f)
{
    struct seal *l = next_unpacked(f);

    l->result = err_set(&l->err, ERR_NOMEM, "no memory for a pack");
    seal_done(l);
}

static void pack_some(struct front *f)
{
    struct packing *p;
    struct err ignored;

    while (f->unpacked && f->packings < FRONT_PACKINGS) {
        p = calloc(1, sizeof(*p));
        if (!p) {
            leave_unpacked(f);
            continue;
        }
        p->front = f;
        take_waiting(p);
        f->packings++;
        if (loop_work(f->loop, run_packs, packs_done, p, &ignored) == 0)
            continue;
        run_packs(p); /* without a worker it takes our time */
        packs_done(p);
    }
}

static void run_end(void *ctx)
{
    struct seal *l = ctx;

    l->result = relay_end(l->seat->relay, &l->outcome, &l->rest, &l->err);
    if (l->result == 0 && !l->rest.packable)
        l->result = relay_forget(l->seat->relay, &l->rest, &l->err);
}

static void end_done(void *ctx)
{
    struct seal *l = ctx;
    struct front *f = l->seat->front;

    if (l->result < 0 || !l->rest.packable) {
        seal_done(l);
        return;
    }
    *(f->unpacked_newest ? &f->unpacked_newest->next : &f->unpacked) = l;
    f->unpacked_newest = l;
    pack_some(f);
}

/* Without memory the next recorder finishes it. */
void front_seal(struct seat *s)
{
    struct seal *l = calloc(1, sizeof(*l));
    struct front *f = s->front;
    struct err ignored;

    s->state = SEAT_SEALING;
    relay_close(s->relay);
    if (!l) {
        s->state = SEAT_DONE;
        f->outcome.incomplete = true;
        front_soon(s);
        return;
    }
    l->seat = s;
    if (loop_work(f->loop, run_end, end_done, l, &ignored) == 0)
        return;
    run_end(l); /* without a worker it takes our time */
    end_done(l);
}
