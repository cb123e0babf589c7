/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments - the arguments of a call against the constraints of its tool: sizes, hosts,
 * paths, patterns. Each gives the reason for a refusal, or NULL.
 *
 * Reasons have no byte of the arguments in them: they go into evidence, where arguments
 * may not be kept. What was found is `detail`, for the person who asks.
 */
#ifndef POLICY_ARGUMENTS_H
#define POLICY_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "policy/host.h"
#include "policy/policy.h"
#include "json/json.h"

struct arguments {
    const struct json *json; /* NULL: none */
    uint32_t node;           /* JSON_NONE: none */
    str cwd;                 /* empty: relative paths are refused */
    struct arena *arena;
    str canonical; /* made when it is asked for */
    bool has_canonical, no_canonical;

    struct host_look hosts; /* names of all constraints together */
    str detail;
};

/* The reason, or {NULL, 0}. Static or in the arena. */
str arguments_refuse_size(struct arguments *a, const struct constraint *c);
str arguments_refuse_hosts(struct arguments *a, const struct constraint *c);
str arguments_refuse_paths(struct arguments *a, const struct constraint *c);

/* *index is the pattern that was found. */
str arguments_refuse_patterns(struct arguments *a, const struct constraint *c,
                              size_t *index);

#endif
