/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/constraint.h"

#include "policy/fields.h"
#include "policy/glob.h"
#include "policy/pattern.h"

/* --- the keys of one tool --- */

static int read_max_calls(struct loading *l, const struct yaml *value, void *into)
{
    return fields_limit(l, value, &((struct constraint *)into)->max_calls);
}

static int read_max_bytes(struct loading *l, const struct yaml *value, void *into)
{
    return fields_limit(l, value, &((struct constraint *)into)->max_argument_bytes);
}

static int read_hosts(struct loading *l, const struct yaml *value, void *into)
{
    return fields_bool(l, value, &((struct constraint *)into)->deny_private_hosts);
}

static int read_url_arguments(struct loading *l, const struct yaml *value, void *into)
{
    return fields_names(l, value, &((struct constraint *)into)->url_arguments);
}

static int read_path_arguments(struct loading *l, const struct yaml *value, void *into)
{
    return fields_names(l, value, &((struct constraint *)into)->path_arguments);
}

static int read_paths(struct loading *l, const struct yaml *value, void *into)
{
    struct constraint *c = into;
    struct policy_names names;
    const struct yaml *y = value->first;
    struct path_rule *rules;

    if (fields_globs(l, value, &names) < 0)
        return -1;
    rules = arena_alloc(&l->policy->arena, names.count * sizeof(*rules));
    if (!rules)
        return err_set(l->err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < names.count; i++, y = y->next) {
        const char *expected = path_rule_read(&rules[i], names.at[i]);

        if (expected)
            return fields_expected(l, y, expected);
    }
    c->allowed_paths = (struct path_rules){ rules, names.count };
    c->has_paths = true;
    return 0;
}

static int compile_one(struct loading *l, const struct yaml *y, struct pattern **out)
{
    struct err why = { 0 };

    /* As the public tool searches: a file of its form must not become laxer here. */
    if (pattern_new(out, y->text, l->policy->public_form, &why) == 0)
        return 0;
    if (why.code == ERR_FORMAT)
        return fields_refuse(l, y->line, "%s", why.msg);
    return err_set(l->err, why.code, "%s", why.msg);
}

static int read_patterns(struct loading *l, const struct yaml *value, void *into)
{
    struct constraint *c = into;
    const struct yaml *y = value->first;
    struct pattern **patterns;
    struct policy_names names;
    str *refs;

    if (fields_names(l, value, &names) < 0)
        return -1;
    patterns = arena_alloc(&l->policy->arena, names.count * sizeof(struct pattern *));
    refs = arena_alloc(&l->policy->arena, names.count * sizeof(*refs));
    if (!patterns || !refs)
        return err_set(l->err, ERR_NOMEM, "out of memory");
    c->deny_patterns = patterns; /* from here on they are released with the policy */
    c->pattern_texts = names.at;
    c->pattern_refs = refs;
    c->deny_pattern_count = names.count;
    for (size_t i = 0; i < names.count; i++, y = y->next) {
        refs[i] = fields_text(l, "constraints.%.*s.deny_patterns[%zu]", (int)c->name.n,
                              c->name.p, i);
        if (compile_one(l, y, &patterns[i]) < 0)
            return -1;
    }
    return 0;
}

static const struct field keys[] = {
    { "deny_private_hosts", read_hosts }, { "url_arguments", read_url_arguments },
    { "allowed_paths", read_paths },      { "path_arguments", read_path_arguments },
    { "max_calls", read_max_calls },      { "max_argument_bytes", read_max_bytes },
    { "deny_patterns", read_patterns },   { 0 },
};

/* --- one tool, all tools --- */

/* A key that could have no effect is a mistake of whoever wrote it. */
static int check_sense(struct loading *l, const struct constraint *c, unsigned line)
{
    if (c->url_arguments.count && !c->deny_private_hosts)
        return fields_refuse(l, line,
                             "url_arguments: expected deny_private_hosts: true "
                             "beside it, without which it has no effect");
    if (c->path_arguments.count && !c->has_paths)
        return fields_refuse(l, line,
                             "path_arguments: expected allowed_paths beside it, "
                             "without which it has no effect");
    return 0;
}

static void name_refs(struct loading *l, struct constraint *c)
{
    int n = (int)c->name.n;
    const char *p = c->name.p;

    c->ref_hosts = fields_text(l, "constraints.%.*s.deny_private_hosts", n, p);
    c->ref_paths = fields_text(l, "constraints.%.*s.allowed_paths", n, p);
    c->ref_max_calls = fields_text(l, "constraints.%.*s.max_calls", n, p);
    c->ref_max_argument_bytes =
        fields_text(l, "constraints.%.*s.max_argument_bytes", n, p);
    c->ref_patterns = fields_text(l, "constraints.%.*s.deny_patterns", n, p);
}

static int read_one(struct loading *l, const struct yaml *value, struct constraint *c)
{
    if (value->key.n == 0 || value->key.n > POLICY_NAME_MAX)
        return fields_refuse(l, value->key_line,
                             "expected a tool's name of 1 to %d bytes", POLICY_NAME_MAX);
    if (!glob_valid(value->key))
        return fields_refuse(l, value->key_line,
                             "expected a ']' for every '[' in a tool's name");
    c->name = value->key;
    c->line = value->key_line;
    name_refs(l, c);
    if (fields_read(l, value, "the constraints of a tool", keys, c) < 0)
        return -1;
    return check_sense(l, c, value->key_line);
}

int constraints_read(struct loading *l, const struct yaml *value, void *into)
{
    struct policy *p = into;
    struct constraint *all;
    size_t i = 0;
    str *names;

    if (value->kind != YAML_MAP)
        return fields_expected(l, value, "a map from tools to their constraints");
    all = arena_alloc(&p->arena, value->count * sizeof(*all));
    names = arena_alloc(&p->arena, value->count * sizeof(*names));
    if (!all || !names)
        return err_set(l->err, ERR_NOMEM, "out of memory");
    p->constraints = all;
    p->constraint_count = value->count;
    for (const struct yaml *y = value->first; y; y = y->next, i++) {
        if (read_one(l, y, &all[i]) < 0)
            return -1;
        names[i] = y->key;
    }
    match_build(&p->constraint_names, names, value->count, &p->arena);
    return 0;
}

void constraints_release(struct policy *p)
{
    for (size_t i = 0; i < p->constraint_count; i++) {
        const struct constraint *c = &p->constraints[i];

        for (size_t k = 0; k < c->deny_pattern_count; k++)
            pattern_free(c->deny_patterns[k]);
    }
}
