/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place - where on our file system an absolute path leads.
 *
 * A place has no "." and no ".." in it and no slash at its end; "" is the root.
 */
#ifndef POLICY_PLACE_H
#define POLICY_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "policy/path.h"

#define PLACE_TOO_LONG "a path in the arguments is longer than 4096 bytes"

struct place {
    size_t n;
    char p[PATH_MAX_BYTES + 1];
};

static inline str place_str(const struct place *p)
{
    return str_of(p->p, p->n);
}

/* Append; false when it would be longer than PATH_MAX_BYTES. */
bool place_add(struct place *p, str s);

/* The next component of *rest, without slashes; false when there is none. */
bool place_component(str *rest, str *component);

/* By spelling alone: /a/b/../c is /a/c. False when it is too long. */
bool place_spell(struct place *out, str absolute);

/* With all links followed, ".." taken after the links before them; what does not exist
 * ends where it would stand. NULL, or why not: one sentence, static. */
const char *place_follow(struct place *out, str absolute);

#endif
