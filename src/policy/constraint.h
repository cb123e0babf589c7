/* SPDX-License-Identifier: Apache-2.0 */
/* constraint - the `constraints` of a policy file, read into struct constraint. */
#ifndef POLICY_CONSTRAINT_H
#define POLICY_CONSTRAINT_H

#include "base/attr.h"

struct loading;
struct policy;
struct yaml;

/* A row of the loader: `into` is the struct policy. */
MUST_CHECK int constraints_read(struct loading *l, const struct yaml *value, void *into);

void constraints_release(struct policy *p); /* what is not in the arena */

#endif
