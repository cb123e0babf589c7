/* SPDX-License-Identifier: Apache-2.0 */
/* place - which audit directory a command speaks of. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "base/attr.h"
#include "base/file.h"

struct err;
struct operands;

#define PLACE_DEFAULT "./.assay/mcp"

/* The directory given by --audit-dir; else ./.assay/mcp; else, when there is no log in
 * that, ~/.assay/mcp, which is said on stderr. Fails when none of them has a log, when
 * one may not be looked at, and with ERR_DAMAGE when one has lost its `origin`. */
MUST_CHECK int place_find(char out[static FILE_PATH_MAX], const char *given,
                          struct err *err);

/* The same where the directory may also be an operand: DIR, or --audit-dir, not both. */
MUST_CHECK int place_choose(char out[static FILE_PATH_MAX], const struct operands *dirs,
                            const char *given, struct err *err);

#endif
