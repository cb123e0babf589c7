/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/answer.h"

#include "json/jcs.h"

#define EVIDENCE_FAILED -31005

static void add_text(struct buf *out, str text)
{
    if (text.p)
        jcs_add_string(out, text);
    else
        buf_add(out, STR("null"));
}

/* A whole line or nothing. */
void answer_add(struct buf *out, const struct answer *a)
{
    size_t start = out->n;

    buf_printf(out, "{\"error\":{\"code\":%d,\"data\":{\"policy_ref\":", a->code);
    add_text(out, a->policy_ref);
    buf_add(out, STR(",\"reason_codes\":["));
    add_text(out, a->reason_code);
    buf_add(out, STR("],\"receipt_id\":"));
    add_text(out, a->receipt_id);
    buf_add(out, STR(",\"source\":\"assay\"},\"message\":"));
    add_text(out, a->message);
    buf_add(out, STR("},\"id\":"));
    buf_add(out, a->id);
    buf_add(out, STR(",\"jsonrpc\":\"2.0\"}\n"));
    if (out->failed)
        out->n = start;
}

static void add_failure(struct buf *out, str id, str message)
{
    const struct answer a = { .id = id,
                              .code = EVIDENCE_FAILED,
                              .message = message,
                              .reason_code = STR("evidence_failure") };

    answer_add(out, &a);
}

/* What is withheld has its answer. */
static void refuse(struct buf *out, const struct tap *t, uint32_t node, enum direction d)
{
    const struct json *j = &t->json;
    struct rpc m;

    rpc_read(&m, j, node);
    if (m.id == JSON_NONE || json_is(j, m.id, JSON_NULL) || tap_is_withheld(t, node))
        return;
    if (d == TO_SERVER && m.kind == RPC_REQUEST)
        add_failure(out, json_raw(j, m.id),
                    STR("assay cannot write evidence of this request; it was not sent"));
    if (d == TO_CLIENT && m.kind == RPC_RESPONSE)
        add_failure(out, json_raw(j, m.id),
                    STR("assay cannot write evidence of this answer; the outcome is "
                        "unknown"));
}

void answer_refusals(struct buf *out, const struct tap *t, enum direction d)
{
    if (t->json.count == 0)
        return;
    if (!t->is_batch) {
        refuse(out, t, JSON_ROOT, d);
        return;
    }
    json_each (&t->json, JSON_ROOT, at)
        refuse(out, t, at, d);
}
