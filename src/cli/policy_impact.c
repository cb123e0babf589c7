/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_impact.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/policy_choice.h"
#include "cli/policy_receipts.h"
#include "pipeline/policy_file.h"
#include "policy/decide.h"
#include "json/pretty.h"

#define OUTPUT_MAX ((size_t)1 << 30)

/* What makes a call undecidable. */
enum cause {
    CAUSE_ARGUMENTS, /* not stored */
    CAUSE_NAMES,     /* of hosts, to be looked up */
    CAUSE_CALLS,     /* a limit is reached only if undecidable calls before it count */
    CAUSE_PIN,       /* its pin refused it then; pins are not compared */
};

/* One policy going over the sessions; `file` NULL: what the receipts say. An undecidable
 * call may have used up a count or not: how much was used lies between two bounds. */
struct judge {
    const struct policy_file *file;
    struct counters least, most;
    struct decision decision;
    enum cause cause;
};

struct impact {
    struct judge before, after;
    struct arena arena;
    char cwd[FILE_PATH_MAX];
    const char *source;
    struct buf *lines; /* of newly denied and newly allowed calls */
    struct pretty *json;
    uint64_t calls, newly_denied, newly_allowed, undecidable, denied;
};

/* --- deciding --- */

/* Of this very policy the receipt has the verdict; and what is malformed is so under any.
 */
static bool is_settled(const struct judge *j, const struct policy_receipt *r)
{
    return !j->file || (r->was_judged && str_is(r->policy_hash, j->file->hash)) ||
           (r->was_denied && str_is(r->policy_ref, "malformed"));
}

static void be_undecidable(struct judge *j, enum cause cause)
{
    j->decision.verdict = VERDICT_UNDECIDABLE;
    j->cause = cause;
}

/* A name that would have to be looked up now says nothing about then. */
static void examine(struct impact *m, struct judge *j, const struct policy_receipt *r)
{
    const struct decide_env env = { .cwd = str_from(m->cwd), .no_wall_time = true };
    struct call_view call = {
        .tool = r->tool,
        .json = r->json,
        .arguments = r->json ? JSON_ROOT : JSON_NONE,
        .unknown = !r->json && !r->none,
    };
    const struct policy *p = j->file->policy;
    struct decision most;

    j->cause = CAUSE_ARGUMENTS;
    decide_examine(p, &j->least, &call, &env, &m->arena, &j->decision);
    if (j->decision.verdict == VERDICT_NEEDS_NAMES)
        be_undecidable(j, CAUSE_NAMES);
    if (j->decision.verdict != VERDICT_ALLOWED)
        return;
    decide_examine(p, &j->most, &call, &env, &m->arena, &most);
    if (most.verdict == VERDICT_DENIED) {
        j->decision = most;
        be_undecidable(j, CAUSE_CALLS);
    } else if (r->was_denied && str_is(r->policy_ref, "pin")) {
        j->decision.ref = r->policy_ref;
        be_undecidable(j, CAUSE_PIN);
    }
}

static void judge_call(struct impact *m, struct judge *j, const struct policy_receipt *r)
{
    if (is_settled(j, r))
        j->decision = (struct decision){
            .verdict = r->was_denied ? VERDICT_DENIED : VERDICT_ALLOWED,
            .ref = r->policy_ref,
        };
    else
        examine(m, j, r);
    if (!j->file || j->decision.verdict == VERDICT_DENIED)
        return;
    counters_advance(&j->most, j->file->policy, r->tool);
    if (j->decision.verdict == VERDICT_ALLOWED)
        counters_advance(&j->least, j->file->policy, r->tool);
}

static void tell_names(struct buf *out, const struct decision *d)
{
    buf_add(out, STR("to be looked up:"));
    for (size_t i = 0; i < d->name_count; i++) {
        buf_add(out, i ? STR(", ") : STR(" "));
        diag_escape(out, d->names[i]);
    }
}

static void tell_cause(struct impact *m)
{
    static const char *const texts[] = {
        [CAUSE_ARGUMENTS] = "arguments were not stored: record with --store-args",
        [CAUSE_CALLS] = "reached only if undecidable calls before it are allowed",
        [CAUSE_PIN] = "its pin refused it; pins are not compared",
    };
    const struct judge *j = &m->after;

    if (j->decision.verdict != VERDICT_UNDECIDABLE)
        j = &m->before;
    if (j->decision.verdict != VERDICT_UNDECIDABLE)
        return;
    buf_add(m->lines, STR("  ("));
    if (j->cause == CAUSE_NAMES)
        tell_names(m->lines, &j->decision);
    else
        buf_add(m->lines, str_from(texts[j->cause]));
    buf_add_char(m->lines, ')');
}

static void tell(struct impact *m, const char *change, str tool)
{
    const struct decision *d = &m->after.decision;

    if (m->json) {
        pretty_object(m->json, NULL);
        pretty_text(m->json, "change", change);
        pretty_text(m->json, "session", m->source);
        pretty_string(m->json, "tool", tool);
        pretty_string(m->json, "policy_ref", d->ref);
        pretty_end_object(m->json);
        return;
    }
    buf_printf(m->lines, "%-14s ", change);
    diag_escape(m->lines, tool);
    buf_add(m->lines, STR("  "));
    diag_escape(m->lines, d->ref);
    buf_printf(m->lines, "  %s", m->source);
    tell_cause(m);
    buf_add_char(m->lines, '\n');
}

static int visit(void *ctx, const struct policy_receipt *r, struct err *err)
{
    struct impact *m = ctx;
    enum verdict before, after;

    (void)err;
    arena_reset(&m->arena);
    judge_call(m, &m->before, r);
    judge_call(m, &m->after, r);
    before = m->before.decision.verdict;
    after = m->after.decision.verdict;
    m->calls++;
    m->denied += after == VERDICT_DENIED;
    if (before == VERDICT_UNDECIDABLE || after == VERDICT_UNDECIDABLE) {
        m->undecidable++;
        tell(m, "undecidable", r->tool);
    } else if (before == VERDICT_ALLOWED && after == VERDICT_DENIED) {
        m->newly_denied++;
        tell(m, "newly_denied", r->tool);
    } else if (before == VERDICT_DENIED && after == VERDICT_ALLOWED) {
        m->newly_allowed++;
        tell(m, "newly_allowed", r->tool);
    }
    return 0;
}

static void judge_release(struct judge *j)
{
    counters_release(&j->least);
    counters_release(&j->most);
}

/* Counters begin anew with every session. */
static int judge_begin(struct judge *j, struct err *err)
{
    judge_release(j);
    if (!j->file)
        return 0;
    return counters_init(&j->least, j->file->policy, 0, err) < 0
               ? -1
               : counters_init(&j->most, j->file->policy, 0, err);
}

static int go_over(struct impact *m, const char *source, const char *audit_dir,
                   struct err *err)
{
    m->source = source;
    if (judge_begin(&m->before, err) < 0 || judge_begin(&m->after, err) < 0)
        return -1;
    return policy_receipts_each(source, audit_dir, visit, m, err);
}

static void impact_release(struct impact *m)
{
    judge_release(&m->before);
    judge_release(&m->after);
    arena_release(&m->arena);
}

/* --- the command --- */

struct request {
    const char *policy_new, *policy_old, *audit_dir, *cwd;
    struct option_number fail;
    bool json;
};

static void print_json(const struct impact *m, struct pretty *j, struct buf *text)
{
    pretty_end_array(j);
    pretty_u64(j, "calls", m->calls);
    pretty_u64(j, "denied", m->denied);
    pretty_u64(j, "newly_denied", m->newly_denied);
    pretty_u64(j, "newly_allowed", m->newly_allowed);
    pretty_u64(j, "undecidable", m->undecidable);
    pretty_end_object(j);
    printf("%s\n", buf_cstr(text));
}

static void print_text(const struct impact *m)
{
    fputs(buf_cstr(m->lines), stdout);
    printf("%" PRIu64 " call%s: %" PRIu64 " newly denied, %" PRIu64 " newly allowed, "
           "%" PRIu64 " undecidable; the new policy denies %" PRIu64 "\n",
           m->calls, plural(m->calls), m->newly_denied, m->newly_allowed, m->undecidable,
           m->denied);
}

static int choose_cwd(struct impact *m, const struct request *r, struct err *err)
{
    int n;

    if (!r->cwd)
        return getcwd(m->cwd, sizeof(m->cwd))
                   ? 0
                   : err_errno(err, "cannot find out the current directory");
    n = snprintf(m->cwd, sizeof(m->cwd), "%s", r->cwd);
    if (r->cwd[0] != '/' || n < 0 || (size_t)n >= sizeof(m->cwd))
        return err_set(err, ERR_FORMAT, "--cwd '%s': expected an absolute path", r->cwd);
    return 0;
}

static enum exit_code impact(const struct request *r, const struct operands *sources)
{
    CLEANUP(policy_file_release) struct policy_file old = { 0 }, new = { 0 };
    CLEANUP(buf_release) struct buf text = { .max = OUTPUT_MAX };
    CLEANUP(impact_release) struct impact m = { .lines = &text };
    struct err err = { 0 };
    struct pretty j;

    arena_init(&m.arena, DECIDE_MEMORY);
    pretty_init(&j, &text);
    if (r->json) {
        m.json = &j;
        pretty_object(&j, NULL);
        pretty_array(&j, "changes");
    }
    if (choose_cwd(&m, r, &err) < 0 || policy_choose(&new, r->policy_new, &err) < 0 ||
        (r->policy_old && policy_file_load(&old, r->policy_old, &err) < 0))
        return command_fail_as(&policy_impact, r->json, &err);
    m.before.file = r->policy_old ? &old : NULL;
    m.after.file = &new;
    for (int i = 0; i < sources->count; i++) {
        if (go_over(&m, sources->at[i], r->audit_dir, &err) < 0)
            return command_fail_as(&policy_impact, r->json, &err);
    }
    if (buf_check(&text, "the answer", &err) < 0)
        return command_fail_as(&policy_impact, false, &err);
    if (r->json)
        print_json(&m, &j, &text);
    else
        print_text(&m);
    return r->fail.given && m.newly_denied >= r->fail.value ? EXIT_NO : EXIT_GOOD;
}

static enum exit_code run(int argc, char **argv)
{
    struct request r = { 0 };
    struct operands sources = { .min = 1, .max = OPERANDS_ANY };
    const struct option table[] = {
        { "policy-new", "FILE", "the policy to try (default " POLICY_FILE ")",
          .text = &r.policy_new },
        { "policy-old", "FILE", "compare with it, not with what the receipts say",
          .text = &r.policy_old },
        { "fail-if-newly-denied", "N", "exit 1 when N calls or more are newly denied",
          .number = &r.fail },
        { "audit-dir", "DIR", "where sessions are (default " PLACE_DEFAULT ")",
          .text = &r.audit_dir },
        { "cwd", "DIR", "the server's working directory (default: ours)",
          .text = &r.cwd },
        { "json", NULL, "print JSON", .flag = &r.json },
        { 0 },
    };
    enum exit_code code;

    if (!options_parse(&policy_impact, table, argc, argv, &sources, &code))
        return code;
    return impact(&r, &sources);
}

const struct command policy_impact = {
    .name = "policy impact",
    .usage = "[--policy-new FILE] [--policy-old FILE] [--fail-if-newly-denied N] "
             "[--audit-dir DIR] [--cwd DIR] [--json] SESSION|PACK|FILE...",
    .summary = "say what a policy would have decided over recorded calls",
    .run = run,
};
