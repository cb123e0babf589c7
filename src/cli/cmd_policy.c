/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/policy_choice.h"
#include "cli/policy_impact.h"
#include "cli/policy_pin.h"
#include "cli/policy_receipts.h"
#include "cli/policy_starter.h"
#include "cli/policy_try.h"
#include "pipeline/policy_file.h"
#include "json/pretty.h"

static const struct command policy_init, policy_validate;

/* --- init --- */

static int write_starter(const char *path, const struct policy_tools *tools,
                         const char *session, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = POLICY_MAX_BYTES };

    policy_starter_write(&text, tools->at, tools->count, session);
    if (buf_check(&text, "the policy", err) < 0)
        return -1;
    if (strcmp(path, "-") == 0) {
        fwrite(text.p, 1, text.n, stdout);
        return 0;
    }
    if (file_create(path, buf_str(&text), 0644, err) == 0)
        return 0;
    if (err->code == ERR_EXISTS)
        return err_set(err, ERR_EXISTS, "'%s' is there already and is not overwritten",
                       path);
    return -1;
}

static enum exit_code run_init(int argc, char **argv)
{
    CLEANUP(policy_tools_release) struct policy_tools tools = { 0 };
    const char *out = NULL, *session = NULL, *audit_dir = NULL;
    struct operands none = { 0 };
    const struct option table[] = {
        { "out", "FILE", "write it there (default " POLICY_FILE "; - for stdout)",
          .text = &out },
        { "from-session", "SESSION", "allow the tools that were called in it",
          .text = &session },
        { "audit-dir", "DIR", "where the session is (default " PLACE_DEFAULT ")",
          .text = &audit_dir },
        { 0 },
    };
    struct err err = { 0 };
    enum exit_code code;

    if (!options_parse(&policy_init, table, argc, argv, &none, &code))
        return code;
    out = out ? out : POLICY_FILE;
    if (session && policy_tools_read(&tools, session, audit_dir, &err) < 0)
        return command_fail(&err);
    if (write_starter(out, &tools, session, &err) < 0)
        return command_fail(&err);
    if (strcmp(out, "-") != 0)
        printf("%s\n", out);
    return EXIT_GOOD;
}

static const struct command policy_init = {
    .name = "policy init",
    .usage = "[--out FILE] [--from-session SESSION] [--audit-dir DIR]",
    .summary = "write a commented policy file to start with",
    .run = run_init,
};

/* --- validate --- */

static const char *pin_name(const struct policy *p)
{
    static const char *const names[] = {
        [POLICY_PIN_UNSET] = "not given",
        [POLICY_PIN_OFF] = "off",
        [POLICY_PIN_WARN] = "warn",
        [POLICY_PIN_STRICT] = "strict",
    };

    return names[p->pin];
}

static void print_text(const struct policy_file *f)
{
    const struct policy *p = f->policy;

    printf("%s: understood\n", f->path);
    printf("  default      %s%s\n", p->default_allow ? "allow" : "deny",
           p->default_given ? "" : " (not given)");
    printf("  allowlist    %zu\n  denylist     %zu\n  constraints  %zu\n",
           p->allowlist.count, p->denylist.count, p->constraint_count);
    if (p->max_tool_calls.given)
        printf("  budget       %llu calls\n",
               (unsigned long long)p->max_tool_calls.value);
    if (p->max_wall_time_sec.given)
        printf("  budget       %llu seconds\n",
               (unsigned long long)p->max_wall_time_sec.value);
    printf("  pin          %s\n", pin_name(p));
    for (const struct policy_note *n = p->notes; n; n = n->next)
        printf("  line %u has no effect: " STR_FMT "\n", n->line, STR_ARG(n->text));
}

static void print_limit(struct pretty *j, const char *name,
                        const struct policy_limit *limit)
{
    if (limit->given)
        pretty_u64(j, name, limit->value);
    else
        pretty_null(j, name);
}

static void print_notes(struct pretty *j, const struct policy *p)
{
    pretty_array(j, "notes");
    for (const struct policy_note *n = p->notes; n; n = n->next) {
        pretty_object(j, NULL);
        pretty_u64(j, "line", n->line);
        pretty_string(j, "text", n->text);
        pretty_end_object(j);
    }
    pretty_end_array(j);
}

static void print_json(const struct policy_file *f)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    const struct policy *p = f->policy;
    struct pretty j;

    pretty_init(&j, &text);
    pretty_object(&j, NULL);
    pretty_text(&j, "status", "ok");
    pretty_text(&j, "file", f->path);
    pretty_text(&j, "policy_hash", f->hash);
    pretty_text(&j, "form", p->public_form ? "tools" : "assay");
    pretty_text(&j, "default", p->default_allow ? "allow" : "deny");
    pretty_bool(&j, "default_given", p->default_given);
    pretty_u64(&j, "allowlist", p->allowlist.count);
    pretty_u64(&j, "denylist", p->denylist.count);
    pretty_u64(&j, "constraints", p->constraint_count);
    print_limit(&j, "max_tool_calls", &p->max_tool_calls);
    print_limit(&j, "max_wall_time_sec", &p->max_wall_time_sec);
    if (p->pin == POLICY_PIN_UNSET)
        pretty_null(&j, "pin");
    else
        pretty_text(&j, "pin", pin_name(p));
    print_notes(&j, p);
    pretty_end_object(&j);
    printf("%s\n", buf_cstr(&text));
}

static enum exit_code run_validate(int argc, char **argv)
{
    CLEANUP(policy_file_release) struct policy_file f = { 0 };
    struct operands files = { .max = 1 };
    bool json = false;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct err err = { 0 };
    enum exit_code code;

    if (!options_parse(&policy_validate, table, argc, argv, &files, &code))
        return code;
    if (policy_choose(&f, files.count ? files.at[0] : NULL, &err) < 0)
        return command_fail_as(&policy_validate, json, &err);
    (json ? print_json : print_text)(&f);
    return EXIT_GOOD;
}

static const struct command policy_validate = {
    .name = "policy validate",
    .usage = "[FILE] [--json]",
    .summary = "say whether a policy file (default " POLICY_FILE ") is understood",
    .run = run_validate,
};

static const struct command *const subcommands[] = {
    &policy_init, &policy_validate, &policy_try, &policy_impact, &policy_pin, NULL,
};

const struct command cmd_policy = {
    .name = "policy",
    .usage = "init|validate|test|impact|pin",
    .summary = "write, check and try out policies",
    .subcommands = subcommands,
};
