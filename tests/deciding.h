/* SPDX-License-Identifier: Apache-2.0 */
/* deciding - one call under one policy, for the tests of policy/. */
#ifndef TESTS_DECIDING_H
#define TESTS_DECIDING_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "policy/decide.h"

/* One call under one policy. */
struct lab {
    struct policy *policy;
    struct counters counters;
    struct arena arena;
    struct json json;
    struct decide_env env;
    struct decision d;
};

static inline void lab_open(struct lab *lab, const char *yaml)
{
    struct err err = { 0 };

    *lab = (struct lab){ .env = { .cwd = STR("/work") } };
    if (policy_parse(&lab->policy, str_from(yaml), "test.yaml", &err) < 0 ||
        counters_init(&lab->counters, lab->policy, 0, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    arena_init(&lab->arena, DECIDE_MEMORY);
}

static inline void lab_close(struct lab *lab)
{
    counters_release(&lab->counters);
    policy_free(lab->policy);
    arena_release(&lab->arena);
    json_release(&lab->json);
}

/* `arguments` is JSON; NULL: there are none. */
static inline const struct decision *ask(struct lab *lab, const char *tool,
                                         const char *arguments)
{
    struct call_view call = { .tool = str_from(tool), .arguments = JSON_NONE };
    struct err err = { 0 };

    arena_reset(&lab->arena);
    if (arguments) {
        if (json_parse(&lab->json, str_from(arguments), NULL, &err) < 0) {
            printf("Bail out! %s in %s\n", err.msg, arguments);
            exit(1);
        }
        call.json = &lab->json;
        call.arguments = JSON_ROOT;
    }
    decide_examine(lab->policy, &lab->counters, &call, &lab->env, &lab->arena, &lab->d);
    return &lab->d;
}

static inline bool is(const struct decision *d, enum verdict v, const char *ref)
{
    if (d->verdict == v && str_is(d->ref, ref) && d->reason.n)
        return true;
    printf("# %s by '" STR_FMT "': " STR_FMT "; want %s by '%s'\n",
           verdict_name(d->verdict), STR_ARG(d->ref), STR_ARG(d->reason), verdict_name(v),
           ref);
    return false;
}

#endif
