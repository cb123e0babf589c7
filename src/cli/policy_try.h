/* SPDX-License-Identifier: Apache-2.0 */
/* policy_try - `assay policy test`: what would be decided over one call? */
#ifndef CLI_POLICY_TRY_H
#define CLI_POLICY_TRY_H

#include "cli/command.h"

extern const struct command policy_try;

#endif
