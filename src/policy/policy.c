/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <stdlib.h>

#include "policy/constraint.h"
#include "policy/fields.h"
#include "policy/yaml.h"

/* --- values that both forms have --- */

static int read_version(struct loading *l, const struct yaml *value, void *into)
{
    (void)into;
    return value->kind == YAML_TEXT && str_is(value->text, "1")
               ? 0
               : fields_expected(l, value, "version \"1\"");
}

static int read_default(struct loading *l, const struct yaml *value, void *into)
{
    struct policy *p = into;
    bool allow = value->kind == YAML_TEXT && str_is(value->text, "allow");

    if (!allow && !(value->kind == YAML_TEXT && str_is(value->text, "deny")))
        return fields_expected(l, value, "allow or deny");
    p->default_allow = allow;
    p->default_given = true;
    return 0;
}

static int read_list(struct loading *l, const struct yaml *value, const char *ref,
                     struct policy_list *list)
{
    struct policy_names names;
    str *refs;

    if (fields_globs(l, value, &names) < 0)
        return -1;
    refs = arena_alloc(&l->policy->arena, names.count * sizeof(*refs));
    if (!refs)
        return err_set(l->err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < names.count; i++)
        refs[i] = fields_text(l, "%s[%zu]", ref, i);
    *list = (struct policy_list){ .names = names.at, .refs = refs, .count = names.count };
    match_build(&list->match, names.at, names.count, &l->policy->arena);
    return 0;
}

static int read_denylist(struct loading *l, const struct yaml *value, void *into)
{
    return read_list(l, value, "denylist", &((struct policy *)into)->denylist);
}

static int read_allowlist(struct loading *l, const struct yaml *value, void *into)
{
    return read_list(l, value, "allowlist", &((struct policy *)into)->allowlist);
}

static int read_max_tool_calls(struct loading *l, const struct yaml *value, void *into)
{
    return fields_limit(l, value, &((struct policy *)into)->max_tool_calls);
}

static int read_max_wall_time(struct loading *l, const struct yaml *value, void *into)
{
    return fields_limit(l, value, &((struct policy *)into)->max_wall_time_sec);
}

static int read_budget(struct loading *l, const struct yaml *value, void *into)
{
    static const struct field keys[] = {
        { "max_tool_calls", read_max_tool_calls },
        { "max_wall_time_sec", read_max_wall_time },
        { 0 },
    };

    return fields_read(l, value, "budget", keys, into);
}

static int read_pin(struct loading *l, const struct yaml *value, void *into)
{
    static const char *const words[] = {
        [POLICY_PIN_OFF] = "off",
        [POLICY_PIN_WARN] = "warn",
        [POLICY_PIN_STRICT] = "strict",
    };

    for (int i = POLICY_PIN_OFF; i <= POLICY_PIN_STRICT; i++) {
        if (value->kind == YAML_TEXT && str_is(value->text, words[i])) {
            ((struct policy *)into)->pin = (enum policy_pin)i;
            return 0;
        }
    }
    return fields_expected(l, value, "off, warn or strict");
}

/* --- what only the public tool's form has --- */

static int note(struct loading *l, const struct yaml *value, const char *why)
{
    struct policy_note *n = arena_new(&l->policy->arena, struct policy_note);

    if (!n)
        return err_set(l->err, ERR_NOMEM, "out of memory");
    n->line = value->key_line;
    n->text = fields_text(l, "%.*s: %s", (int)value->key.n, value->key.p, why);
    *l->notes_end = n;
    l->notes_end = &n->next;
    return 0;
}

static int read_mode(struct loading *l, const struct yaml *value, void *into)
{
    struct policy *p = into;

    if (value->kind == YAML_TEXT && str_is(value->text, "audit"))
        p->mode = POLICY_MODE_AUDIT;
    else if (value->kind == YAML_TEXT && str_is(value->text, "enforce"))
        p->mode = POLICY_MODE_ENFORCE;
    else
        return fields_expected(l, value, "audit or enforce");
    return note(l, value, "the profile is chosen with --profile, not by the file");
}

static int read_server_id(struct loading *l, const struct yaml *value, void *into)
{
    str ignored;

    (void)into;
    if (fields_string(l, value, &ignored) < 0)
        return -1;
    return note(l, value, "the server is named with --server-id, not by the file");
}

static int read_audit_dir(struct loading *l, const struct yaml *value, void *into)
{
    str ignored;

    (void)into;
    if (fields_string(l, value, &ignored) < 0)
        return -1;
    return note(l, value, "the directory is chosen with --audit-dir, not by the file");
}

static int read_switch(struct loading *l, const struct yaml *value, void *into)
{
    bool ignored;

    (void)into;
    if (fields_bool(l, value, &ignored) < 0)
        return -1;
    return note(l, value, "this is chosen with a flag, not by the file");
}

static int read_tools(struct loading *l, const struct yaml *value, void *into)
{
    static const struct field keys[] = {
        { "default", read_default },
        { "allow", read_allowlist },
        { "deny", read_denylist },
        { "constraints", constraints_read },
        { 0 },
    };

    return fields_read(l, value, "tools", keys, into);
}

/* --- a file --- */

static const struct field our_keys[] = {
    { "version", read_version },
    { "default", read_default },
    { "allowlist", read_allowlist },
    { "denylist", read_denylist },
    { "constraints", constraints_read },
    { "budget", read_budget },
    { "pin", read_pin },
    { 0 },
};

static const struct field public_keys[] = {
    { "version", read_version },
    { "mode", read_mode },
    { "tools", read_tools },
    { "budget", read_budget },
    { "pin", read_pin },
    { "server_id", read_server_id },
    { "store_args", read_switch },
    { "store_results", read_switch },
    { "auto_pack", read_switch },
    { "audit_dir", read_audit_dir },
    { 0 },
};

static bool has_key(const struct field *rows, str key)
{
    while (rows->key && !str_is(key, rows->key))
        rows++;
    return rows->key != NULL;
}

/* A key that only the public tool's form has makes it that; then a key that only ours has
 * would be one that its author believes in and nobody reads. */
static int choose_form(struct loading *l, const struct yaml *root)
{
    const struct yaml *ours = NULL, *theirs = NULL;

    for (const struct yaml *y = root->first; y; y = y->next) {
        bool in_ours = has_key(our_keys, y->key);
        bool in_theirs = has_key(public_keys, y->key);

        if (in_ours && !in_theirs)
            ours = y;
        if (in_theirs && !in_ours && !theirs)
            theirs = y;
    }
    if (ours && theirs)
        return fields_refuse(l, ours->key_line,
                             "'%.*s' and '%.*s' (line %u) belong to two forms of the "
                             "file; expected one of them",
                             (int)ours->key.n, ours->key.p, (int)theirs->key.n,
                             theirs->key.p, theirs->key_line);
    l->policy->public_form = theirs != NULL;
    return 0;
}

static int load(struct loading *l, str bytes)
{
    struct policy *p = l->policy;
    struct yaml *root;

    if (bytes.n > POLICY_MAX_BYTES)
        return err_set(l->err, ERR_LIMIT, "%s: larger than %zu bytes", l->name,
                       POLICY_MAX_BYTES);
    if (yaml_parse(&root, bytes, l->name, &p->arena, l->err) < 0)
        return -1;
    if (yaml_is_null(root) || (root->kind == YAML_MAP && root->count == 0))
        return fields_refuse(l, root->line,
                             "the file is empty; expected version, "
                             "default, allowlist, denylist, constraints");
    if (root->kind != YAML_MAP)
        return fields_expected(l, root, "a map of keys and values");
    if (choose_form(l, root) < 0 ||
        fields_read(l, root, "a policy file", p->public_form ? public_keys : our_keys,
                    p) < 0)
        return -1;
    if (p->arena.failed)
        return err_set(l->err, ERR_LIMIT, "%s: too large to load", l->name);
    return 0;
}

int policy_parse(struct policy **out, str bytes, const char *name, struct err *err)
{
    struct policy *p = calloc(1, sizeof(*p));
    struct loading l = { .policy = p, .name = name, .err = err };

    if (!p)
        return err_set(err, ERR_NOMEM, "out of memory");
    l.notes_end = &p->notes;
    arena_init(&p->arena, POLICY_MEMORY);
    if (load(&l, bytes) < 0) {
        policy_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

void policy_free(struct policy *p)
{
    if (!p)
        return;
    constraints_release(p);
    arena_release(&p->arena);
    free(p);
}
