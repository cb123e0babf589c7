/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target - a file that the caller named for an answer: --out, --html, --badge.
 *
 * A regular file is replaced whole or stays as it was, also when a link leads to it: the
 * link stays. A device, a fifo or our own stdout is written to, never replaced. A
 * directory, a block device and a socket are refused.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/str.h"

struct err;

#define TARGET_LINKS_MAX 40 /* one behind the other; as many as the kernel follows */

/* Would the file stand directly in this directory? Evidence is not written over. */
bool target_is_in(const char *path, const char *dir);

MUST_CHECK int target_write(const char *path, str bytes, struct err *err);

#endif
