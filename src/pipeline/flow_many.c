/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that came at once. */
#include "base/err.h"
#include "pipeline/relay_internal.h"

/* Where messages go on whatever happens, and none of them before all are recorded, one
 * write is enough; what is kept of them elsewhere must know their place in the log. */
static bool may_gather(const struct relay *r)
{
    return log_durability_of(r->o->log) == LOG_WRITE && !r->o->block && !r->o->enforce &&
           !r->o->investigation;
}

static bool takes_turns(const struct relay *r)
{
    return r->start.turn && may_gather(r);
}

void flow_join(struct relay *r)
{
    if (takes_turns(r))
        turn_join(r->start.turn, r);
}

static bool corks(const struct relay *r)
{
    return r->side[TO_SERVER]->type->corks && r->side[TO_CLIENT]->type->corks;
}

void flow_many(struct relay *r, bool begin)
{
    UNINITIALIZED struct err err;
    bool gathered;

    if (takes_turns(r))
        return;
    if (begin) {
        log_hold(r->o->log);
        if (may_gather(r) && corks(r) && relay_sit(r, &err) == 0)
            tap_gather(&r->desk->tap);
        return;
    }
    gathered = session_is_gathering(r->session);
    if (session_write(r->session, &err) < 0)
        flow_failed(r, &err);
    else if (gathered)
        r->failing = false;
    log_let_go(r->o->log);
}
