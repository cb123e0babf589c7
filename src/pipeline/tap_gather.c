/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that came at once, in one write; declared in tap.h. */
#include "base/err.h"
#include "pipeline/tap.h"
#include "pipeline/tap_internal.h"

bool tap_is_gathering(const struct tap *t)
{
    return session_is_gathering(t->options.session);
}

/* Calls that the log never heard of. Their answers find whoever asked, and no more. */
static void forget_calls(struct tap *t)
{
    struct pending *p = t->asked[TO_SERVER].newest;

    for (; p && p->serial > t->gathered.asked; p = p->older)
        p->call = NULL;
}

static void undone(void *ctx)
{
    struct tap *t = ctx;

    forget_calls(t);
    while (t->tasks && t->tasks->serial > t->gathered.task) /* the newest comes first */
        tap_forget_task(t, t->tasks);
    while (t->state_next > t->gathered.state)
        t->states[--t->state_next % TAP_STATES].receipt[0] = '\0';
    t->passage_count = 0;
}

void tap_gather(struct tap *t)
{
    t->gathered.asked = t->asked[TO_SERVER].serial;
    t->gathered.task = t->task_serial;
    t->gathered.state = t->state_next;
    session_gather(t->options.session, undone, t);
}

int tap_write(struct tap *t, struct err *err)
{
    return session_write(t->options.session, err);
}

int tap_make_room(struct tap *t, struct err *err)
{
    if (session_gathered(t->options.session) < SESSION_GATHER_MAX)
        return 0;
    if (tap_write(t, err) < 0)
        return -1;
    tap_gather(t);
    return 0;
}
