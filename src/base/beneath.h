/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beneath - open a file by a name that a stranger chose, and never leave the directory.
 *
 * The name is checked before anything is opened: relative, no '..', no backslash, no
 * NUL. Then it is walked one component at a time and no symbolic link is followed, so
 * that a directory swapped for a link in between is refused too.
 */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/file.h"
#include "base/str.h"

struct err;

#define BENEATH_NAME_MAX 1024 /* bytes of a name; a component has the system's 255 */

/* May this name be looked for at all? */
bool beneath_name_valid(str name);

/* Open the regular file `name` below the directory `dir` for reading. ERR_REFUSED: the
 * name leaves the directory or meets a link; ERR_NOTFOUND; ERR_FORMAT: it is there but is
 * no regular file; ERR_IO. Returns a descriptor or -1. */
MUST_CHECK int beneath_open(int dir, str name, struct err *err);

/* The same, mapped. */
MUST_CHECK int beneath_map(int dir, str name, struct mapping *out, struct err *err);

#endif
