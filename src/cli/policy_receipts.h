/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_receipts - the calls of recorded sessions, as far as receipts tell them.
 *
 * Nothing is verified: `assay verify-pack` does that. A line that is no receipt of a call
 * is passed over; the second receipt of a task is no second call.
 */
#ifndef CLI_POLICY_RECEIPTS_H
#define CLI_POLICY_RECEIPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/str.h"
#include "json/json.h"

struct err;

/* One call, while it is visited. */
struct policy_receipt {
    str tool;                /* decoded; empty where the receipt has none */
    const struct json *json; /* of the arguments; NULL when they are not at hand */
    bool none;               /* there were no arguments */
    bool was_denied;         /* by the verdict of the receipt */
    bool was_judged;         /* there is a verdict */
    str policy_hash;         /* of the policy that gave it, like the next; or empty */
    str policy_ref;
    bool was_refused; /* outcome `denied`: the server never saw it */
};

typedef int policy_receipt_visit(void *ctx, const struct policy_receipt *call,
                                 struct err *err);

/* Visit the calls of one source in their order: a session id (looked for in `audit_dir`,
 * as other commands do), the directory of a pack, or a file of receipts. */
MUST_CHECK int policy_receipts_each(const char *source, const char *audit_dir,
                                    policy_receipt_visit *visit, void *ctx,
                                    struct err *err);

/* The tools that were called and not refused, in the order of their first call. */
struct policy_tools {
    struct arena arena;
    str *at;
    size_t count, cap;
};

MUST_CHECK int policy_tools_read(struct policy_tools *t, const char *session,
                                 const char *audit_dir, struct err *err);
void policy_tools_release(struct policy_tools *t);

#endif
