/* SPDX-License-Identifier: Apache-2.0 */
/* log_show - `assay log show`: the events, a line each. */
#ifndef CLI_LOG_SHOW_H
#define CLI_LOG_SHOW_H

#include "cli/command.h"

extern const struct command log_show;

#endif
