/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters - what a session has used up of its policy.
 *
 * They advance when a call was allowed, by counters_advance() and nothing else, in both
 * profiles: a denied call costs nothing.
 */
#ifndef POLICY_COUNTERS_H
#define POLICY_COUNTERS_H

#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"

struct err;
struct policy;

struct counters {
    uint64_t calls;     /* allowed in this session */
    uint64_t *by_entry; /* the same for each entry of `constraints` */
    int64_t started_at; /* of the session, ms: base/clock.h */
};

MUST_CHECK int counters_init(struct counters *c, const struct policy *p,
                             int64_t started_at, struct err *err);
void counters_release(struct counters *c);

/* A call of this tool was allowed. */
void counters_advance(struct counters *c, const struct policy *p, str tool);

/* The policy was loaded anew: what was used stays used, entry by name. On failure
 * everything is as it was. */
MUST_CHECK int counters_move(struct counters *c, const struct policy *from,
                             const struct policy *to, struct err *err);

#endif
