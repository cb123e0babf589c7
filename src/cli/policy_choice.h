/* SPDX-License-Identifier: Apache-2.0 */
/* policy_choice - which policy file a command speaks of. */
#ifndef CLI_POLICY_CHOICE_H
#define CLI_POLICY_CHOICE_H

#include "base/attr.h"
#include "pipeline/policy_file.h"

struct err;

/* Load the file given; else the one of the default name, and where there is none say how
 * to get one. */
MUST_CHECK int policy_choose(struct policy_file *f, const char *given, struct err *err);

#endif
