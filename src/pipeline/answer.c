/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/answer.h"

#include "json/jcs.h"

#define EVIDENCE_FAILED -31005

void answer_error(struct buf *out, str id, int code, const char *message,
                  const char *reason_code)
{
    buf_printf(out,
               "{\"error\":{\"code\":%d,\"data\":{\"policy_ref\":null,\"reason_codes\":[",
               code);
    jcs_add_string(out, str_from(reason_code));
    buf_add(out, STR("],\"receipt_id\":null,\"source\":\"assay\"},\"message\":"));
    jcs_add_string(out, str_from(message));
    buf_add(out, STR("},\"id\":"));
    buf_add(out, id);
    buf_add(out, STR(",\"jsonrpc\":\"2.0\"}\n"));
}

/* One that was late has its answer. */
static void refuse(struct buf *out, const struct tap *t, uint32_t node, enum direction d)
{
    const struct json *j = &t->json;
    struct rpc m;

    rpc_read(&m, j, node);
    if (m.id == JSON_NONE || json_is(j, m.id, JSON_NULL) || tap_is_late(t, node))
        return;
    if (d == TO_SERVER && m.kind == RPC_REQUEST)
        answer_error(out, json_raw(j, m.id), EVIDENCE_FAILED,
                     "assay cannot write evidence of this request; it was not sent",
                     "evidence_failure");
    if (d == TO_CLIENT && m.kind == RPC_RESPONSE)
        answer_error(out, json_raw(j, m.id), EVIDENCE_FAILED,
                     "assay cannot write evidence of this answer; the outcome is unknown",
                     "evidence_failure");
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
