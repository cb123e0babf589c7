/* SPDX-License-Identifier: Apache-2.0 */
/* policy_impact - `assay policy impact`: what a policy would have decided. */
#ifndef CLI_POLICY_IMPACT_H
#define CLI_POLICY_IMPACT_H

#include "cli/command.h"

extern const struct command policy_impact;

#endif
