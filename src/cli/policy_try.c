/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_try.h"

#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/lookup.h"
#include "cli/options.h"
#include "cli/policy_choice.h"
#include "cli/terminal.h"
#include "pipeline/policy_file.h"
#include "policy/decide.h"
#include "json/pretty.h"

/* What was asked for on the command line. */
struct request {
    const char *tool, *arguments, *policy, *cwd;
    struct option_list resolve; /* NAME=ADDRESS */
    bool json, http;
};

/* --- names --- */

/* The addresses that were given for a name. */
static int given_answers(const struct request *r, str name, struct answer_view *answer,
                         struct arena *arena, struct err *err)
{
    struct address *at = arena_alloc(arena, r->resolve.count * sizeof(*at));
    size_t n = 0;

    for (size_t i = 0; at && i < r->resolve.count; i++) {
        const char *item = r->resolve.items[i], *equals = strchr(item, '=');

        if (!equals)
            return err_set(err, ERR_FORMAT, "--resolve '%s': expected NAME=ADDRESS",
                           item);
        if (!str_equal(str_of(item, (size_t)(equals - item)), name))
            continue;
        if (equals[1] && !lookup_parse(&at[n++], equals + 1))
            return err_set(err, ERR_FORMAT, "--resolve '%s': expected an IP address",
                           item);
    }
    *answer = (struct answer_view){ at, n };
    return 0;
}

static bool is_given(const struct request *r, str name)
{
    for (size_t i = 0; i < r->resolve.count; i++) {
        str item = str_from(r->resolve.items[i]);

        if (str_starts(item, name) && item.n > name.n && item.p[name.n] == '=')
            return true;
    }
    return false;
}

static int conclude(const struct request *r, const struct policy *p,
                    const struct counters *c, const struct decide_env *env,
                    struct arena *arena, struct decision *d, struct err *err)
{
    struct answer_view answers[DECIDE_NAMES_MAX] = { 0 };
    struct answer_view found[DECIDE_NAMES_MAX] = { 0 };
    str unknown[DECIDE_NAMES_MAX];
    size_t count = 0, at[DECIDE_NAMES_MAX];

    for (size_t i = 0; i < d->name_count; i++) {
        if (is_given(r, d->names[i])) {
            if (given_answers(r, d->names[i], &answers[i], arena, err) < 0)
                return -1;
            continue;
        }
        at[count] = i;
        unknown[count++] = d->names[i];
    }
    lookup_names(unknown, found, count, arena);
    for (size_t i = 0; i < count; i++)
        answers[at[i]] = found[i];
    decide_conclude(p, c, env, answers, d);
    return 0;
}

/* --- saying it --- */

static void print_text(const struct request *r, const struct decision *d)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    bool allowed = d->verdict == VERDICT_ALLOWED;

    buf_printf(&b, "%s%s%s ", paint(stdout, allowed ? PAINT_GREEN : PAINT_RED),
               allowed ? "ALLOWED" : "DENIED", paint(stdout, PAINT_END));
    diag_escape(&b, str_from(r->tool));
    buf_add(&b, STR("\n  rule    "));
    diag_escape(&b, d->ref);
    if (d->rule.n) {
        buf_add(&b, STR(" ("));
        diag_escape(&b, d->rule);
        buf_add(&b, STR(")"));
    }
    buf_add(&b, STR("\n  reason  "));
    buf_add(&b, d->reason);
    if (d->detail.n) {
        buf_add(&b, STR("\n  found   "));
        diag_escape(&b, d->detail);
    }
    printf("%s\n", buf_cstr(&b));
}

static void print_json(const struct request *r, const struct policy_file *f,
                       const struct decision *d)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct pretty j;

    pretty_init(&j, &text);
    pretty_object(&j, NULL);
    pretty_text(&j, "tool", r->tool);
    pretty_text(&j, "policy_verdict", verdict_name(d->verdict));
    pretty_string(&j, "policy_ref", d->ref);
    pretty_string(&j, "policy_reason", d->reason);
    pretty_text(&j, "policy_hash", f->hash);
    pretty_string(&j, "rule", d->rule);
    pretty_string(&j, "found", d->detail);
    pretty_array(&j, "names");
    for (size_t i = 0; i < d->name_count; i++)
        pretty_string(&j, NULL, d->names[i]);
    pretty_end_array(&j);
    pretty_end_object(&j);
    printf("%s\n", buf_cstr(&text));
}

/* --- the command --- */

static int decide(const struct request *r, const struct policy *p, struct arena *arena,
                  struct json *arguments, struct decision *d, struct err *err)
{
    struct call_view call = { .tool = str_from(r->tool), .json = arguments };
    char cwd[FILE_PATH_MAX];
    struct decide_env env = { .is_http = r->http };
    struct counters counters;
    int result = 0;

    if (json_parse(arguments, str_from(r->arguments ? r->arguments : "{}"), NULL, err) <
        0)
        return err_wrap(err, "--args");
    if (r->cwd && r->cwd[0] != '/')
        return err_set(err, ERR_FORMAT, "--cwd '%s': expected an absolute path", r->cwd);
    if (!r->cwd && !getcwd(cwd, sizeof(cwd)))
        return err_errno(err, "cannot find out the current directory");
    env.cwd = str_from(r->cwd ? r->cwd : cwd);
    if (counters_init(&counters, p, 0, err) < 0)
        return -1;
    decide_examine(p, &counters, &call, &env, arena, d);
    if (d->verdict == VERDICT_NEEDS_NAMES)
        result = conclude(r, p, &counters, &env, arena, d, err);
    counters_release(&counters);
    return result;
}

static enum exit_code try(const struct request *r)
{
    CLEANUP(policy_file_release) struct policy_file f = { 0 };
    CLEANUP(json_release) struct json arguments = { 0 };
    CLEANUP(arena_release) struct arena arena;
    struct decision d;
    struct err err = { 0 };

    arena_init(&arena, DECIDE_MEMORY);
    if (policy_choose(&f, r->policy, &err) < 0 ||
        decide(r, f.policy, &arena, &arguments, &d, &err) < 0)
        return command_fail_as(&policy_try, r->json, &err);
    if (r->json)
        print_json(r, &f, &d);
    else
        print_text(r, &d);
    return d.verdict == VERDICT_ALLOWED ? EXIT_GOOD : EXIT_NO;
}

static enum exit_code run(int argc, char **argv)
{
    struct request r = { 0 };
    struct operands none = { 0 };
    const struct option table[] = {
        { "tool", "NAME", "the tool that is called", .text = &r.tool },
        { "args", "JSON", "its arguments (default {})", .text = &r.arguments },
        { "policy", "FILE", "the policy (default " POLICY_FILE ")", .text = &r.policy },
        { "cwd", "DIR", "the server's working directory (default: ours)",
          .text = &r.cwd },
        { "http", NULL, "the server is reached over HTTP", .flag = &r.http },
        { "resolve", "NAME=ADDRESS", "do not look this name up; empty: no answer",
          .list = &r.resolve },
        { "json", NULL, "print JSON", .flag = &r.json },
        { 0 },
    };
    struct err err = { 0 };
    enum exit_code code;

    if (!options_parse(&policy_try, table, argc, argv, &none, &code))
        return code;
    if (!r.tool || !utf8_valid(str_from(r.tool))) {
        err_set(&err, ERR_FORMAT, "--tool NAME is needed");
        return command_fail_as(&policy_try, r.json, &err);
    }
    return try(&r);
}

const struct command policy_try = {
    .name = "policy test",
    .usage = "--tool NAME [--args JSON] [--policy FILE] [--cwd DIR] [--http] "
             "[--resolve NAME=ADDRESS]... [--json]",
    .summary = "what would be decided over a call? exit 0 allowed, 1 denied",
    .run = run,
};
