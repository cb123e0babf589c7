/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup - the addresses of host names, in bounded time.
 *
 * All names are asked for at once (transport/resolve.h). A name without an answer has no
 * addresses.
 */
#ifndef CLI_LOOKUP_H
#define CLI_LOOKUP_H

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "policy/decide.h"

/* `names` and `answers` have `count` entries, at most DECIDE_NAMES_MAX; addresses live in
 * the arena. Entries of `answers` that have addresses already are left as they are. */
void lookup_names(const str *names, struct answer_view *answers, size_t count,
                  struct arena *arena);

/* One address as a person types it; false when it is none. */
bool lookup_parse(struct address *out, const char *text);

#endif
