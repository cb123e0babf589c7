/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide.h"

#include "base/utf8.h"
#include "policy/arguments.h"

#define DETAIL_MAX 256 /* bytes of an argument that are shown */

static const str no_text = { NULL, 0 };

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {
        [VERDICT_DENIED] = "denied",
        [VERDICT_ALLOWED] = "allowed",
        [VERDICT_NEEDS_NAMES] = "needs_names",
        [VERDICT_UNDECIDABLE] = "undecidable",
    };

    return names[v];
}

/* An object, or none: what a list or a text would mean is the server's secret. */
static bool is_argument_list(const struct json *j, uint32_t node)
{
    return node == JSON_NONE || json_is(j, node, JSON_OBJECT) ||
           json_is(j, node, JSON_NULL);
}

void call_view_read(struct call_view *call, const struct rpc *m, struct arena *arena)
{
    uint32_t tool = rpc_tool(m);
    struct buf b = { 0 };
    str raw;

    *call = (struct call_view){ .json = m->json, .arguments = rpc_arguments(m) };
    call->malformed = m->kind == RPC_INVALID || !json_is(m->json, tool, JSON_STRING) ||
                      !is_argument_list(m->json, call->arguments) ||
                      (m->json->nodes[m->node].flags & JSON_TAINTED);
    if (call->malformed)
        return;
    raw = json_raw(m->json, tool);
    b.p = arena_alloc(arena, raw.n);
    b.cap = (uint32_t)raw.n; /* a JSON text is never larger */
    b.max = raw.n;
    if (b.p)
        json_unescape(m->json, tool, &b);
    call->tool = buf_str(&b);
    call->malformed = !b.p || b.failed;
}

/* --- saying it --- */

/* Controls and what is no UTF-8 would not survive on a terminal or in a JSON string. */
static str printable(struct arena *arena, str s)
{
    char out[DETAIL_MAX];
    size_t n = 0;
    bool cut = false;

    while (s.n && !cut) {
        uint32_t c = 0;
        size_t used = utf8_next(s, &c);
        bool bad = used == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0);
        char one[4] = { '?' };
        size_t size = bad ? 1 : utf8_put(one, c);

        cut = n + size + 3 > sizeof(out);
        if (cut)
            break;
        memcpy(out + n, one, size);
        n += size;
        s = str_skip(s, used ? used : 1);
    }
    if (cut) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    return arena_dup(arena, str_of(out, n));
}

static void say(struct decision *d, enum verdict v, str ref, str reason)
{
    d->verdict = v;
    d->ref = ref;
    d->reason = reason;
}

/* --- counters --- */

static bool wall_time_is_over(const struct policy *p, const struct counters *c,
                              const struct decide_env *env)
{
    int64_t used = env->now > c->started_at ? env->now - c->started_at : 0;

    return p->max_wall_time_sec.given && !env->no_wall_time &&
           (uint64_t)used / 1000 >= p->max_wall_time_sec.value;
}

static bool deny_by_budget(const struct policy *p, const struct counters *c,
                           const struct decide_env *env, struct decision *d)
{
    if (p->max_tool_calls.given && c->calls >= p->max_tool_calls.value)
        say(d, VERDICT_DENIED, STR("budget.max_tool_calls"),
            STR("the session has made as many calls as its budget allows"));
    else if (wall_time_is_over(p, c, env))
        say(d, VERDICT_DENIED, STR("budget.max_wall_time_sec"),
            STR("the session has lasted as long as its budget allows"));
    else
        return false;
    return true;
}

static bool deny_by_max_calls(const struct constraint *e, uint64_t used,
                              struct decision *d)
{
    if (!e->max_calls.given || used < e->max_calls.value)
        return false;
    say(d, VERDICT_DENIED, e->ref_max_calls,
        STR("the tool has been called as often as max_calls allows"));
    d->rule = e->name;
    return true;
}

/* --- lists --- */

static bool deny_by_list(const struct policy *p, str tool, struct decision *d)
{
    size_t i = match_find(&p->denylist.match, tool, 0);

    if (i == MATCH_NONE)
        return false;
    say(d, VERDICT_DENIED, p->denylist.refs[i], STR("the tool is on the denylist"));
    d->rule = p->denylist.names[i];
    return true;
}

static void decide_by_default(const struct policy *p, str tool, struct decision *d)
{
    size_t i = match_find(&p->allowlist.match, tool, 0);

    if (i != MATCH_NONE) {
        say(d, VERDICT_ALLOWED, p->allowlist.refs[i],
            STR("the tool is on the allowlist"));
        d->rule = p->allowlist.names[i];
    } else if (p->default_allow) {
        say(d, VERDICT_ALLOWED, STR("default"), STR("the policy allows by default"));
    } else {
        say(d, VERDICT_DENIED, STR("default"),
            STR("the tool is not on the allowlist, and the policy denies by default"));
    }
}

bool decide_outright_denies(const struct policy *p, str tool, str *ref)
{
    struct decision d = { 0 };

    if (!deny_by_list(p, tool, &d))
        decide_by_default(p, tool, &d);
    if (ref && d.verdict == VERDICT_DENIED)
        *ref = d.ref;
    return d.verdict == VERDICT_DENIED;
}

/* --- constraints --- */

/* What there is to know beside the policy. */
struct question {
    const struct counters *counters;
    const struct call_view *call;
    struct arguments arguments;
    str names_ref; /* of the constraint that asked for names first */
    str unknown;   /* of the first that needs arguments which nobody has */
};

static bool deny_for(struct decision *d, const struct constraint *e, str ref, str reason)
{
    if (!reason.p)
        return false;
    say(d, VERDICT_DENIED, ref, reason);
    d->rule = e->name;
    return true;
}

static bool needs_arguments(const struct constraint *e, str *ref)
{
    if (e->max_argument_bytes.given)
        *ref = e->ref_max_argument_bytes;
    else if (e->deny_private_hosts)
        *ref = e->ref_hosts;
    else if (e->has_paths)
        *ref = e->ref_paths;
    else if (e->deny_pattern_count)
        *ref = e->ref_patterns;
    else
        return false;
    return true;
}

static bool deny_by_patterns(struct question *q, const struct constraint *e,
                             struct decision *d)
{
    size_t i = 0;
    str reason;

    if (e->deny_pattern_count == 0)
        return false;
    reason = arguments_refuse_patterns(&q->arguments, e, &i);
    if (!deny_for(d, e, e->pattern_refs[i], reason))
        return false;
    d->rule = e->pattern_texts[i];
    return true;
}

static bool deny_by_arguments(struct question *q, const struct constraint *e,
                              struct decision *d)
{
    struct arguments *a = &q->arguments;
    size_t names = a->hosts.name_count;

    if (e->max_argument_bytes.given &&
        deny_for(d, e, e->ref_max_argument_bytes, arguments_refuse_size(a, e)))
        return true;
    if (e->deny_private_hosts &&
        deny_for(d, e, e->ref_hosts, arguments_refuse_hosts(a, e)))
        return true;
    if (a->hosts.name_count > names && !q->names_ref.p)
        q->names_ref = e->ref_hosts;
    if (e->has_paths && deny_for(d, e, e->ref_paths, arguments_refuse_paths(a, e)))
        return true;
    return deny_by_patterns(q, e, d);
}

static bool deny_by_constraints(const struct policy *p, struct question *q,
                                struct decision *d)
{
    str tool = q->call->tool, ref;
    size_t i = match_find(&p->constraint_names, tool, 0);

    for (; i != MATCH_NONE; i = match_find(&p->constraint_names, tool, i + 1)) {
        const struct constraint *e = &p->constraints[i];

        if (deny_by_max_calls(e, q->counters->by_entry[i], d))
            return true;
        if (q->call->unknown) {
            if (!q->unknown.p && needs_arguments(e, &ref))
                q->unknown = ref;
        } else if (deny_by_arguments(q, e, d)) {
            return true;
        }
    }
    return false;
}

/* --- the whole --- */

static const char *malformed(const struct call_view *call)
{
    if (call->malformed)
        return "the call is malformed or ambiguous";
    if (call->tool.n == 0)
        return "the call names no tool";
    if (call->tool.n > POLICY_NAME_MAX)
        return "the name of the tool is longer than 1024 bytes";
    if (memchr(call->tool.p, '\0', call->tool.n))
        return "the name of the tool has a NUL character";
    if (call->json && call->arguments != JSON_NONE &&
        ((call->json->nodes[call->arguments].flags & JSON_TAINTED) ||
         rpc_has_nul_name(call->json, call->arguments)))
        return "the arguments are ambiguous";
    return NULL;
}

/* Names are copied with the arena, their list here. */
static void ask_for_names(struct question *q, struct arena *arena, struct decision *d)
{
    const struct host_look *hosts = &q->arguments.hosts;
    str *names = arena_alloc(arena, hosts->name_count * sizeof(*names));

    if (!names) {
        say(d, VERDICT_DENIED, q->names_ref, STR("not decided: out of memory"));
        return;
    }
    memcpy(names, hosts->names, hosts->name_count * sizeof(*names));
    say(d, VERDICT_NEEDS_NAMES, q->names_ref, STR("host names are to be looked up"));
    d->names = names;
    d->name_count = hosts->name_count;
    d->names_ref = q->names_ref;
}

static void examine(const struct policy *p, struct question *q,
                    const struct decide_env *env, struct arena *arena, struct decision *d)
{
    str tool = q->call->tool;

    if (deny_by_list(p, tool, d) || deny_by_constraints(p, q, d) ||
        deny_by_budget(p, q->counters, env, d))
        return;
    decide_by_default(p, tool, d);
    if (d->verdict != VERDICT_ALLOWED)
        return;
    if (q->unknown.p)
        say(d, VERDICT_UNDECIDABLE, q->unknown,
            STR("the arguments are needed to decide, and are not known"));
    else if (q->arguments.hosts.name_count)
        ask_for_names(q, arena, d);
}

void decide_examine(const struct policy *p, const struct counters *c,
                    const struct call_view *call, const struct decide_env *env,
                    struct arena *arena, struct decision *d)
{
    const char *bad = malformed(call);
    struct question q = { .counters = c, .call = call };

    *d = (struct decision){ .verdict = VERDICT_DENIED };
    if (bad) {
        say(d, VERDICT_DENIED, STR("malformed"), str_from(bad));
        return;
    }
    q.arguments = (struct arguments){ .json = call->json,
                                      .node = call->arguments,
                                      .cwd = env->is_http ? no_text : env->cwd,
                                      .arena = arena };
    examine(p, &q, env, arena, d);
    if (q.arguments.detail.p)
        d->detail = printable(arena, q.arguments.detail);
    if (d->verdict == VERDICT_NEEDS_NAMES)
        d->tool = arena_dup(arena, call->tool);
    if (arena->failed)
        say(d, VERDICT_DENIED, STR("default"), STR("not decided: out of memory"));
}

/* --- with addresses --- */

static bool deny_by_answer(const struct answer_view *answer, str name, struct decision *d)
{
    if (answer->count == 0) {
        say(d, VERDICT_DENIED, d->names_ref,
            STR("no address was found for a host name in the arguments"));
        d->detail = name;
        return true;
    }
    for (size_t i = 0; i < answer->count; i++) {
        if (!address_private(&answer->addresses[i]))
            continue;
        say(d, VERDICT_DENIED, d->names_ref,
            STR("a host name in the arguments has an address that is not public"));
        d->detail = name;
        return true;
    }
    return false;
}

static bool deny_by_counters(const struct policy *p, const struct counters *c,
                             const struct decide_env *env, struct decision *d)
{
    size_t i = match_find(&p->constraint_names, d->tool, 0);

    for (; i != MATCH_NONE; i = match_find(&p->constraint_names, d->tool, i + 1)) {
        if (deny_by_max_calls(&p->constraints[i], c->by_entry[i], d))
            return true;
    }
    return deny_by_budget(p, c, env, d);
}

void decide_conclude(const struct policy *p, const struct counters *c,
                     const struct decide_env *env, const struct answer_view *answers,
                     struct decision *d)
{
    if (d->verdict != VERDICT_NEEDS_NAMES)
        return;
    d->rule = no_text;
    for (size_t i = 0; i < d->name_count; i++) {
        if (deny_by_answer(&answers[i], d->names[i], d))
            return;
    }
    if (!deny_by_counters(p, c, env, d))
        decide_by_default(p, d->tool, d);
}
