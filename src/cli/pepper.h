/* SPDX-License-Identifier: Apache-2.0 */
/* pepper - the key of keyed hashes (--hash-pepper FILE): a secret of the user's own. */
#ifndef CLI_PEPPER_H
#define CLI_PEPPER_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"

struct err;

#define PEPPER_MIN   32    /* bytes */
#define PEPPER_MAX   65536 /* bytes */
#define PEPPER_CHECK 17    /* 16 hex digits and a NUL */

/* Read it: PEPPER_MIN bytes or more, in a file that only its owner can read. `path` NULL
 * leaves *out empty. */
MUST_CHECK int pepper_read(const char *path, struct buf *out, struct err *err);

/* What chain_start says of it, so that one can see whether two logs, or a log and a file,
 * have the same: the first 16 hex of HMAC-SHA-256(pepper, "assay pepper check v1"). */
void pepper_check(char out[static PEPPER_CHECK], str pepper);

#endif
