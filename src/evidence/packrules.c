/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packrules.h"

#include <inttypes.h>

#include "base/err.h"

/* An event, and what it is compared to. */
struct look {
    struct verify *v;
    struct packlog *p;
    const struct event_view *e;
    str call;                  /* its id; empty for an event of none */
    const struct open_call *c; /* NULL when it is not open */
};

static void find(const struct look *l, enum finding_code code, const char *what)
{
    verify_add(l->v, code, STAGE_LOG, STR(LOG_EVENTS_NAME), "event %" PRIu64 " %s",
               l->e->seq, what);
}

static bool is_guard(const struct look *l)
{
    return str_is(l->p->history.session.profile, "guard");
}

/* --- policies --- */

static bool policy_hash(struct digest *out, str text)
{
    return str_starts(text, STR("sha256:")) && digest_from_hex(out, str_skip(text, 7));
}

static bool policy_known(const struct packlog *p, str text)
{
    struct digest d;

    if (!policy_hash(&d, text))
        return false;
    for (size_t i = 0; i < p->policies; i++) {
        if (digest_equal(&p->policy[i], &d))
            return true;
    }
    return false;
}

static void learn_policy(const struct look *l)
{
    struct packlog *p = l->p;
    str text = event_text(l->e, "policy_hash");

    if (text.n == 0 || policy_known(p, text))
        return;
    if (p->policies == PACKLOG_POLICIES_MAX)
        find(l, FINDING_MANIFEST_TAMPER, "loads one policy more than a session may");
    else if (!policy_hash(&p->policy[p->policies], text))
        find(l, FINDING_MANIFEST_TAMPER, "has no policy_hash like sha256:<hex>");
    else
        p->policies++;
}

/* What was loaded before a part that stands alone is not known. */
static void check_policy(const struct look *l)
{
    bool loaded = false;

    if (l->e->type == EVENT_SESSION_START)
        learn_policy(l);
    if (l->e->type == EVENT_POLICY_LOADED && event_bool(l->e, "ok", &loaded) && loaded)
        learn_policy(l);
    if (l->e->type == EVENT_POLICY_DECIDED && is_guard(l) && !l->p->begins_late &&
        !policy_known(l->p, event_text(l->e, "policy_hash")))
        find(l, FINDING_MANIFEST_TAMPER, "decides by a policy that was never loaded");
}

/* --- calls --- */

static int add_id(struct idset *set, str id, bool *seen, struct err *err)
{
    struct digest d = digest_of(id);

    return idset_add(set, &d, seen, err);
}

/* What only the profile guard promises. The receipt ends what we keep of a call, so that
 * a set remembers which calls were settled. */
static int check_guard(const struct look *l, struct err *err)
{
    bool settles =
        l->e->type == EVENT_REQUEST_FORWARDED || l->e->type == EVENT_REQUEST_DENIED;
    str verdict = l->c ? call_str(&l->c->call, l->c->call.verdict) : STR("");
    bool seen = false;

    if (!is_guard(l) || l->call.n == 0)
        return 0;
    if (settles && add_id(&l->p->settled, l->call, &seen, err) < 0)
        return -1;
    if (seen)
        find(l, FINDING_MANIFEST_TAMPER,
             "forwards or denies a call that was forwarded or denied before");
    else if (l->e->type == EVENT_REQUEST_FORWARDED && l->c && !str_is(verdict, "allowed"))
        find(l, FINDING_MANIFEST_TAMPER,
             "forwards a call that the policy has not allowed");
    if (l->e->type == EVENT_RESPONSE_RECEIVED && l->c &&
        (l->c->call.denied || str_is(verdict, "denied")))
        find(l, FINDING_MANIFEST_TAMPER, "answers a call that the policy has denied");
    return 0;
}

/* Events that only a call which is open can have. */
static bool needs_open_call(enum event_type type)
{
    return type == EVENT_RESPONSE_RECEIVED || type == EVENT_RECEIPT ||
           type == EVENT_CALL_LOST || type == EVENT_REQUEST_DENIED ||
           type == EVENT_POLICY_DECIDED || type == EVENT_CALL_CANCELLED;
}

static int check_request(const struct look *l, struct err *err)
{
    bool seen = false;

    if (l->call.n == 0) {
        if (str_is(event_text(l->e, "method"), "tools/call"))
            find(l, FINDING_PACK_OMISSION,
                 "is a tools/call without an identifier, so that it has no receipt");
        return 0;
    }
    if (add_id(&l->p->begun, l->call, &seen, err) < 0)
        return -1;
    if (seen)
        find(l, FINDING_CHAIN_BROKEN, "begins a call that has begun already");
    return 0;
}

static int check_call(const struct look *l, struct err *err)
{
    enum event_type type = l->e->type;

    if (type == EVENT_REQUEST_RECEIVED)
        return check_request(l, err);
    if (l->call.n == 0)
        return 0;
    if (!l->c && !l->p->begins_late && needs_open_call(type))
        find(l, FINDING_CHAIN_BROKEN, "belongs to a call that is not open");
    if (l->c && type == EVENT_RECEIPT && !call_is_due(&l->c->call))
        find(l, FINDING_CHAIN_BROKEN,
             "is the receipt of a call that was not answered, denied or lost");
    return 0;
}

/* --- the end --- */

/* session_end says how often things happened; the events say it too. */
static void check_counts(const struct look *l)
{
    const struct receipt_counts *c = &l->p->history.counts;
    const struct {
        const char *name;
        uint64_t counted;
    } counts[] = {
        { "events", c->events + 1 },
        { "requests", c->requests },
        { "calls", c->calls },
        { "denied", c->denied },
        { "lost", c->lost },
        { "interventions", c->interventions },
        { "undelivered", receipt_undelivered(c) },
    };
    /* a part alone knows how many events there were before it, and nothing else */
    size_t known = l->p->begins_late ? 1 : COUNT(counts);

    for (size_t i = 0; i < known; i++) {
        int64_t said = -1;

        if (!event_int(l->e, counts[i].name, &said) ||
            (uint64_t)said != counts[i].counted)
            verify_add(l->v, FINDING_PACK_OMISSION, STAGE_LOG, STR(LOG_EVENTS_NAME),
                       "session_end counts %" PRId64 " %s, the events %" PRIu64, said,
                       counts[i].name, counts[i].counted);
    }
}

static void check_end(const struct look *l)
{
    const struct receipt_counts *c = &l->p->history.counts;
    bool complete = false;

    check_counts(l);
    if (!event_bool(l->e, "complete", &complete) || !complete)
        return;
    if (c->lost || c->cut)
        find(l, FINDING_MANIFEST_TAMPER,
             "calls a session complete in which calls were lost or messages cut");
    if (event_text(l->e, "by").n)
        find(l, FINDING_MANIFEST_TAMPER,
             "calls a session complete whose recorder did not end it");
}

/* Only the last metadata stand behind session_end, and nothing behind them. */
static void check_after_end(const struct look *l)
{
    const struct history *h = &l->p->history;
    bool metadata = l->e->type == EVENT_RECEIPT && l->call.n == 0;

    if (h->closed || (h->ended && !metadata))
        find(l, FINDING_CHAIN_BROKEN, "stands behind the end of its session");
}

int packrules_check(struct verify *v, struct packlog *p, const struct event_view *e,
                    struct err *err)
{
    struct look l = { .v = v, .p = p, .e = e, .call = event_text(e, "call") };

    l.c = l.call.n ? history_call(&p->history, l.call) : NULL;
    check_after_end(&l);
    check_policy(&l);
    if (check_guard(&l, err) < 0 || check_call(&l, err) < 0)
        return -1;
    if (e->type == EVENT_SESSION_END)
        check_end(&l);
    return 0;
}
