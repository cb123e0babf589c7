/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file loads whole or says where it fails. What is on the denylist of a policy that
 * loaded is denied outright; asking does not change anything; a policy that denies by
 * default and lists nothing denies everything.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policy/decide.h"
#include "policy/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void decide(const struct policy *p, const struct counters *c, str tool,
                   const struct json *j, struct decision *d)
{
    static struct arena arena;
    const struct call_view call = { .tool = tool, .json = j, .arguments = JSON_ROOT };
    const struct decide_env env = { .cwd = STR("/nowhere") };

    arena_reset(&arena);
    arena.limit = (size_t)1 << 24;
    decide_examine(p, c, &call, &env, &arena, d);
    must(d->ref.n && d->reason.n && d->verdict != VERDICT_UNDECIDABLE);
}

static void check_list(const struct policy *p)
{
    for (size_t i = 0; i < p->denylist.count && i < 100; i++) {
        str name = p->denylist.names[i], ref;

        must(glob_valid(name));
        if (glob_literal(name) == name.n)
            must(decide_outright_denies(p, name, &ref) && ref.n);
    }
}

static void check_calls(const struct policy *p)
{
    static const char text[] =
        "{\"url\":\"http://127.0.0.1\",\"path\":\"/etc\",\"x\":[1,true]}";
    struct decision first, second;
    struct json j = { 0 };
    struct counters c;
    struct err err = { 0 };
    str tool;

    must(json_parse(&j, str_from(text), NULL, &err) == 0);
    must(counters_init(&c, p, 0, &err) == 0);
    tool = p->constraint_count ? p->constraints[0].name : STR("read_file");
    decide(p, &c, tool, &j, &first);
    decide(p, &c, tool, &j, &second);
    must(first.verdict == second.verdict && str_equal(first.ref, second.ref));
    if (!p->default_allow && p->allowlist.count == 0)
        must(first.verdict == VERDICT_DENIED);
    if (decide_outright_denies(p, tool, NULL))
        must(first.verdict == VERDICT_DENIED);
    counters_advance(&c, p, tool);
    counters_release(&c);
    json_release(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct policy *p = NULL;
    struct err err = { 0 };

    if (policy_parse(&p, str_of(data, size), "f", &err) < 0) {
        must(!p && err.code != ERR_NONE && strncmp(err.msg, "f:", 2) == 0);
        return 0;
    }
    check_list(p);
    check_calls(p);
    policy_free(p);
    return 0;
}
