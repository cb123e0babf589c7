/* SPDX-License-Identifier: Apache-2.0 */
/* What must not go to the server: recorded, withheld, answered. */
#include "base/err.h"
#include "pipeline/answer.h"
#include "pipeline/tap_internal.h"

bool tap_is_refused(struct tap *t, const struct rpc *m)
{
    t->verdict = (struct tap_verdict){ 0 };
    if (t->direction == TO_SERVER && t->options.judge)
        t->options.judge(t->options.ctx, t, m, &t->verdict);
    return t->verdict.refused;
}

/* The server waits for what its client said: it gets an error instead. */
static void reply(struct tap *t, const struct rpc *m, struct answer *a)
{
    bool has_id =
        json_is(&t->json, m->id, JSON_STRING) || json_is(&t->json, m->id, JSON_NUMBER);
    struct pending *p = has_id ? tap_find_pending(t, TO_CLIENT, m->id, NULL) : NULL;

    if (!p)
        return;
    a->id = str_of(p->bytes, p->raw_n); /* as the server wrote it */
    answer_add(&t->replies, a);
    tap_forget_pending(t, TO_CLIENT, p);
}

static void answer(struct tap *t, const struct rpc *m, const char *receipt)
{
    const struct tap_verdict *v = &t->verdict;
    struct answer a = { .id = STR("null"),
                        .code = v->code,
                        .message = v->message,
                        .reason_code = v->reason_code,
                        .receipt_id = str_from(receipt) };

    if (m->kind == RPC_NOTIFICATION)
        return;
    if (m->kind == RPC_RESPONSE) {
        reply(t, m, &a);
        return;
    }
    if (m->kind == RPC_REQUEST)
        a.id = json_raw(&t->json, m->id);
    if (v->decision)
        a.policy_ref = v->decision->policy_ref;
    answer_add(&t->answers, &a);
}

/* That it is denied is told later, if it cannot be told now. */
static int deny_call(struct tap *t, const struct rpc *m, uint64_t index,
                     struct open_call *call, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct message *message = tap_describe(t, m, index);
    struct call_denial denial = { .reason_codes = &t->verdict.reason_code,
                                  .reason_count = 1 };

    if (t->verdict.decision)
        denial.policy_ref = t->verdict.decision->policy_ref;
    if (session_deny(t->options.session, call, message, &denial, &t->upto, err) == 0)
        return 0;
    message_event(&e, EVENT_REQUEST_DENIED, message);
    event_add_texts(&e, "reason_codes", denial.reason_codes, denial.reason_count);
    if (denial.policy_ref.p)
        event_add_text(&e, "policy_ref", denial.policy_ref);
    tap_remember_refusal(t, call, &e);
    return -1;
}

/* The answer is given whatever becomes of the evidence: the call does not go on. */
static int refuse_call(struct tap *t, const struct rpc *m, uint64_t index,
                       struct err *err)
{
    struct open_call *call = NULL;
    int r = tap_record_request(t, m, index, &call, err);

    if (r == 0)
        r = deny_call(t, m, index, call, err);
    answer(t, m, r == 0 ? call->call.receipt_id : NULL);
    if (call)
        session_release(t->options.session, call);
    return r;
}

static enum event_type received(const struct rpc *m)
{
    switch (m->kind) {
    case RPC_REQUEST:
        return EVENT_REQUEST_RECEIVED;
    case RPC_NOTIFICATION:
        return EVENT_NOTIFICATION_RECEIVED;
    case RPC_RESPONSE:
        return EVENT_RESPONSE_RECEIVED;
    case RPC_INVALID:
        break;
    }
    return EVENT_MESSAGE_RECEIVED;
}

static int refuse_other(struct tap *t, const struct rpc *m, uint64_t index,
                        struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct message *message = tap_describe(t, m, index);
    int r;

    message_event(&e, received(m), message);
    r = tap_put_event(t, &e, err);
    if (r == 0) {
        message_event(&e, EVENT_REQUEST_DENIED, message);
        event_add_texts(&e, "reason_codes", &t->verdict.reason_code, 1);
        r = tap_put_event(t, &e, err);
    }
    answer(t, m, NULL);
    return r;
}

int tap_refuse(struct tap *t, const struct rpc *m, uint64_t index, struct err *err)
{
    if (tap_remember_passage(t, EVENT_MESSAGE_FORWARDED, m->node, NULL, false, err) < 0) {
        t->unjudged = true;
        return -1;
    }
    tap_withhold(t);
    if (m->method == RPC_TOOLS_CALL && m->kind != RPC_INVALID && m->kind != RPC_RESPONSE)
        return refuse_call(t, m, index, err);
    return refuse_other(t, m, index, err);
}
