/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a message when it has gone on, or not; declared in tap.h. */
#include <stdlib.h>

#include "base/err.h"
#include "pipeline/tap.h"
#include "pipeline/tap_internal.h"

bool tap_is_withheld(const struct tap *t, uint32_t node)
{
    size_t low = 0, high = t->withheld ? t->passage_count : 0;

    while (low < high) { /* passages stand in the order of the message */
        size_t middle = low + (high - low) / 2;

        if (t->passages[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return t->withheld && low < t->passage_count && t->passages[low].node == node &&
           t->passages[low].withheld;
}

static bool is_to_go(void *ctx, uint32_t node)
{
    return !tap_is_withheld(ctx, node);
}

/* From here on the message is what is left of it. */
static void become(struct tap *t, str rest)
{
    uint64_t before = 0; /* that were withheld */

    t->cut = true;
    t->is_said = false; /* it is another message */
    t->frame = tap_text(rest);
    content_digest(&t->digest, t->frame, t->options.pepper);
    for (size_t i = 0; i < t->passage_count; i++) {
        t->passages[i].index -= before;
        before += t->passages[i].withheld;
    }
}

int tap_rest(struct tap *t, str bytes, str *rest, struct err *err)
{
    size_t kept = 1;

    *rest = bytes;
    if (t->withheld && t->is_batch)
        kept = splice_array(&t->splice, &t->json, JSON_ROOT, is_to_go, t);
    else if (t->withheld)
        kept = 0;
    if (kept == 0)
        rest->n = 0;
    else if (!splice_is_needed(&t->splice))
        return 0;
    else if (splice_end(&t->splice, rest, err) < 0)
        return -1;
    become(t, *rest);
    return 0;
}

static const struct message *describe_passage(struct tap *t, const struct passage *p)
{
    struct rpc m = { .kind = RPC_INVALID };

    if (t->rpc.json && t->rpc.node == p->node)
        return tap_describe(t, &t->rpc, p->index);
    if (p->node != JSON_NONE)
        rpc_read(&m, &t->json, p->node);
    return tap_describe(t, &m, p->index);
}

static void say_forwarded(struct tap *t, const struct passage *p)
{
    const struct message *message = describe_passage(t, p);
    UNINITIALIZED struct err ignored; /* the log counts what is lost */

    if (session_later(t->options.session, p->call, p->type, message, p->release,
                      &ignored) < 0)
        return;
}

static bool was_cut(const struct tap *t, const struct passage *p)
{
    return p->withheld && t->cut;
}

bool tap_is_no_json(const struct tap *t)
{
    return !t->rpc.json; /* nothing of it could be read */
}

void tap_forwarded(struct tap *t)
{
    for (size_t i = 0; i < t->passage_count; i++) {
        if (!was_cut(t, &t->passages[i]))
            say_forwarded(t, &t->passages[i]);
    }
    t->passage_count = 0;
}

int tap_take_sent(struct tap *t, struct tap_sent *s, struct err *err)
{
    *s = (struct tap_sent){ calloc(t->passage_count + 1, sizeof(*s->item)), 0 };
    if (!s->item)
        return err_set(err, ERR_NOMEM, "no memory for a message that waits");
    for (size_t i = 0; i < t->passage_count; i++) {
        const struct passage *p = &t->passages[i];
        const struct message *message;

        if (was_cut(t, p))
            continue;
        message = describe_passage(t, p);
        message_event(&s->item[s->count].event, p->type, message);
        event_keep(&s->item[s->count].event);
        s->item[s->count].call = p->call;
        s->item[s->count++].release = p->release;
    }
    t->passage_count = 0;
    return 0;
}

void tap_say_sent(struct tap *t, struct tap_sent *s)
{
    struct err ignored; /* the log counts what is lost */

    for (size_t i = 0; i < s->count; i++) {
        if (session_later_event(t->options.session, s->item[i].call, &s->item[i].event,
                                s->item[i].release, &ignored) < 0)
            break;
    }
    tap_sent_release(s);
}

void tap_unheard(struct tap *t)
{
    for (size_t i = 0; i < t->passage_count; i++) {
        if (t->passages[i].release)
            session_release(t->options.session, t->passages[i].call);
    }
    t->passage_count = 0;
}

void tap_drop_sent(struct tap *t, struct tap_sent *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->item[i].release)
            session_release(t->options.session, s->item[i].call);
    }
    tap_sent_release(s);
}

void tap_sent_release(struct tap_sent *s)
{
    for (size_t i = 0; i < s->count; i++)
        event_release(&s->item[i].event);
    free(s->item);
    *s = (struct tap_sent){ 0 };
}

static void forget_call(struct tap *t, const struct open_call *call)
{
    struct pending *p = t->asked[TO_SERVER].oldest;

    while (p && p->call != call)
        p = p->newer;
    if (p)
        tap_forget_pending(t, TO_SERVER, p);
}

/* --- what does not go on --- */

static bool settle(struct tap *t, struct tap_refusal *r)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct err ignored; /* the log counts what is lost */

    event_copy(&e, &r->event); /* one that is tried and fails is spent */
    if (session_conclude(t->options.session, r->call, &e, (str){ NULL, 0 }, NULL,
                         &ignored) < 0)
        return false;
    session_release(t->options.session, r->call);
    return true;
}

static void forget_first(struct tap *t)
{
    struct tap_refusal *r = t->refusals;

    t->refusals = r->next;
    event_release(&r->event);
    free(r);
}

void tap_settle_refusals(struct tap *t)
{
    while (t->refusals && settle(t, t->refusals))
        forget_first(t);
}

void tap_forget_refusals(struct tap *t)
{
    while (t->refusals)
        forget_first(t);
}

void tap_remember_refusal(struct tap *t, struct open_call *call, struct event *e)
{
    struct tap_refusal *r = calloc(1, sizeof(*r)), **end = &t->refusals;

    if (!r)
        return;
    r->call = call;
    event_keep(e);
    r->event = *e;
    *e = (struct event){ 0 };
    while (*end)
        end = &(*end)->next;
    *end = r;
}

/* `e` says what the request was. */
static void deny(struct tap *t, struct open_call *call, struct event *e)
{
    static const str reason = { "evidence_failure", 16 };

    e->type = EVENT_REQUEST_DENIED;
    event_add_texts(e, "reason_codes", &reason, 1);
    tap_remember_refusal(t, call, e);
}

void tap_refuse_sent(struct tap *t, struct tap_sent *s, enum direction d)
{
    for (size_t i = 0; i < s->count; i++) {
        struct open_call *call = s->item[i].call;

        if (!call)
            continue;
        if (d == TO_SERVER)
            forget_call(t, call);
        if (s->item[i].release)
            session_release(t->options.session, call);
        else if (d == TO_SERVER)
            deny(t, call, &s->item[i].event);
    }
    tap_sent_release(s);
    if (!t->failing)
        tap_settle_refusals(t);
}

void tap_refused(struct tap *t)
{
    struct tap_sent sent;
    struct err ignored; /* without memory the calls stay open */

    if (tap_take_sent(t, &sent, &ignored) == 0)
        tap_refuse_sent(t, &sent, t->direction);
}
