/* SPDX-License-Identifier: Apache-2.0 */
/* policy_pin - `assay policy pin`: tool definitions that changed, and who accepts them.
 */
#ifndef CLI_POLICY_PIN_H
#define CLI_POLICY_PIN_H

#include "cli/command.h"

extern const struct command policy_pin;

#endif
