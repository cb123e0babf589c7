/* SPDX-License-Identifier: Apache-2.0 */
/* policy_starter - the commented file that `assay policy init` writes. */
#ifndef CLI_POLICY_STARTER_H
#define CLI_POLICY_STARTER_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* With the tools of a recorded session on the allowlist, in this order; without a session
 * (NULL) with examples. */
void policy_starter_write(struct buf *out, const str *tools, size_t count,
                          const char *session);

#endif
