/* SPDX-License-Identifier: Apache-2.0 */
/* answer - what we say ourselves: JSON-RPC errors, one a line. */
#ifndef PIPELINE_ANSWER_H
#define PIPELINE_ANSWER_H

#include "base/buf.h"
#include "base/str.h"
#include "pipeline/tap.h"

#define ANSWER_SERVER_LOST -31006

/* An error for the request with this id (JSON text), outside the codes of MCP. */
struct answer {
    str id;
    int code;
    str message, reason_code;
    str receipt_id, policy_ref; /* {NULL, 0}: none */
};

void answer_add(struct buf *out, const struct answer *a);

/* Evidence of the tap's last message could not be written: an error -31005 for each of
 * its requests; for each of its answers to requests of the client one that says so. */
void answer_refusals(struct buf *out, const struct tap *t, enum direction d);

#endif
