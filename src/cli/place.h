/* SPDX-License-Identifier: Apache-2.0 */
/* place - which audit directory a command speaks of. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/file.h"
#include "evidence/log.h"

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

/* How a command opens a log that is there: our clock and randomness; what the person
 * should know goes to stderr. Borrows both. */
struct log_options place_log_options(const char *dir, const struct keys *keys);

/* Where a recorder writes: the directory given; else ./.assay/mcp; else, when we stand in
 * the root directory or cannot write there (as under a GUI client), ~/.assay/mcp, and
 * *why says why; else it is NULL. A directory that was given and cannot be used is not
 * replaced. */
MUST_CHECK int place_for_writing(char out[static FILE_PATH_MAX], const char *given,
                                 const char **why, struct err *err);

#endif
