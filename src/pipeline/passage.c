/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a message when it has gone on, or not; declared in tap.h. */
#include <stdlib.h>

#include "base/err.h"
#include "pipeline/tap.h"
#include "pipeline/tap_internal.h"

static struct message describe_passage(const struct tap *t, const struct passage *p)
{
    struct rpc m = { .kind = RPC_INVALID };

    if (p->node != JSON_NONE)
        rpc_read(&m, &t->json, p->node);
    return tap_describe(t, &m, p->index);
}

static void say_forwarded(struct tap *t, const struct passage *p)
{
    struct message message = describe_passage(t, p);
    struct err ignored; /* the log counts what is lost */

    if (session_later(t->options.session, p->call, p->type, &message, p->release,
                      &ignored) < 0)
        return;
}

void tap_forwarded(struct tap *t)
{
    for (size_t i = 0; i < t->passage_count; i++)
        say_forwarded(t, &t->passages[i]);
    t->passage_count = 0;
}

int tap_take_sent(struct tap *t, struct tap_sent *s, struct err *err)
{
    s->item = calloc(t->passage_count + 1, sizeof(*s->item));
    if (!s->item)
        return err_set(err, ERR_NOMEM, "no memory for a message that waits");
    for (size_t i = 0; i < t->passage_count; i++) {
        const struct passage *p = &t->passages[i];
        struct message message = describe_passage(t, p);

        message_event(&s->item[i].event, p->type, &message);
        s->item[i].call = p->call;
        s->item[i].release = p->release;
    }
    s->count = t->passage_count;
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

/* A call that was recorded stays open: its receipt comes at the end. */
static void refuse(struct tap *t, enum direction d, struct open_call *call, bool release)
{
    if (!call)
        return;
    if (d == TO_SERVER)
        forget_call(t, call);
    if (release)
        session_release(t->options.session, call);
}

void tap_refused(struct tap *t)
{
    for (size_t i = 0; i < t->passage_count; i++)
        refuse(t, t->direction, t->passages[i].call, t->passages[i].release);
    t->passage_count = 0;
}

void tap_refuse_sent(struct tap *t, struct tap_sent *s, enum direction d)
{
    for (size_t i = 0; i < s->count; i++)
        refuse(t, d, s->item[i].call, s->item[i].release);
    tap_sent_release(s);
}
