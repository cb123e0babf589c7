/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/guard.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/log.h"
#include "transport/resolve.h"

#define DENIED  -31001
#define REFUSED -31004 /* malformed or ambiguous */

struct known_name {
    struct aside *aside;
    char name[RESOLVE_NAME_MAX];
    struct resolved answer;
};

void guard_say(const struct guard *g, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!g->options.say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    g->options.say(g->options.say_ctx, sentence);
}

/* --- opening --- */

static bool wants_names(const struct policy *p)
{
    for (size_t i = 0; i < p->constraint_count; i++) {
        if (p->constraints[i].deny_private_hosts)
            return true;
    }
    return false;
}

static int record_load(struct guard *g, const char *hash, bool good, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };

    event_init(&e, EVENT_POLICY_LOADED);
    event_add_cstr(&e, "policy_hash", hash);
    event_add_bool(&e, "ok", good);
    return session_put(g->options.session, &e, NULL, err);
}

static int take_policy(struct guard *g, struct err *err)
{
    int64_t now = clock_now(log_clock(g->options.log));
    struct ruling *r;

    if (!g->options.file)
        return 0;
    r = g->ruling = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ERR_NOMEM, "no memory for a policy");
    r->file = *g->options.file;
    *g->options.file = (struct policy_file){ .path = NULL };
    arena_init(&r->arena, DECIDE_MEMORY);
    r->cwd = getcwd(NULL, 0); /* without it they are refused */
    g->has_names = wants_names(r->file.policy);
    if (counters_init(&r->counters, r->file.policy, now, err) < 0)
        return -1;
    return record_load(g, r->file.hash, true, err);
}

int guard_open(struct guard **out, const struct guard_options *options, struct err *err)
{
    struct guard *g = *out = calloc(1, sizeof(*g));

    if (!g)
        err_set(err, ERR_NOMEM, "no memory for a session");
    else
        g->options = *options;
    if (g && take_policy(g, err) == 0)
        return 0;
    if (options->file)
        policy_file_release(options->file);
    return -1;
}

static void free_aside(struct aside *a)
{
    buf_release(&a->bytes);
    free(a->known);
    free(a);
}

static void free_ruling(struct ruling *r)
{
    if (!r)
        return;
    counters_release(&r->counters);
    free(r->cwd);
    policy_file_release(&r->file);
    arena_release(&r->arena);
    buf_release(&r->text);
    free(r);
}

void guard_free(struct guard *g)
{
    if (!g)
        return;
    resolver_free(g->resolver);
    while (g->asides) {
        struct aside *next = g->asides->next;

        free_aside(g->asides);
        g->asides = next;
    }
    free_ruling(g->ruling);
    pinboard_release(&g->board);
    free(g);
}

/* Pins are read anew with the next list. Not what has been told once, and not where a
 * call may be refused for them. */
bool guard_trim(struct guard *g)
{
    struct ruling *r = g->ruling;

    if (r) {
        arena_release(&r->arena);
        arena_init(&r->arena, DECIDE_MEMORY);
        buf_release(&r->text);
    }
    if (g->board.offered.count == 0 && guard_pin(g) != POLICY_PIN_STRICT)
        pinboard_release(&g->board);
    return !r && !g->board.dir && !g->asides && !g->resolver;
}

/* --- judging --- */

static struct decide_env env_of(const struct guard *g)
{
    return (struct decide_env){ .cwd = str_from(g->ruling->cwd),
                                .is_http = g->options.is_http,
                                .now = clock_now(log_clock(g->options.log)) };
}

static const struct known_name *find_name(const struct aside *a, str name)
{
    for (size_t i = 0; a && i < a->known_count; i++) {
        if (str_is(name, a->known[i].name))
            return &a->known[i];
    }
    return NULL;
}

/* The addresses of a name, as policy/ has them; none when nobody answered. */
static struct answer_view answer_of(struct guard *g, str name)
{
    const struct known_name *k = find_name(g->at_hand, name);
    size_t n = k ? k->answer.count : 0;
    struct address *a = n ? arena_alloc(&g->ruling->arena, n * sizeof(*a)) : NULL;

    if (!a)
        return (struct answer_view){ NULL, 0 };
    for (size_t i = 0; i < n; i++)
        a[i] = k->answer.at[i].v6 ? address_v6(k->answer.at[i].bytes)
                                  : address_v4(k->answer.at[i].bytes);
    return (struct answer_view){ a, n };
}

static void conclude(struct guard *g, const struct decide_env *env)
{
    struct answer_view answers[DECIDE_NAMES_MAX];
    struct decision *d = &g->ruling->decision;

    for (size_t i = 0; i < d->name_count; i++)
        answers[i] = answer_of(g, d->names[i]);
    decide_conclude(g->ruling->file.policy, &g->ruling->counters, env, answers, d);
}

static void deny_changed(struct decision *d, str tool)
{
    *d = (struct decision){ .verdict = VERDICT_DENIED,
                            .ref = STR("pin"),
                            .reason = STR("the definition of the tool is not the one "
                                          "that was pinned"),
                            .tool = tool };
}

static void decide(struct guard *g, const struct call_view *call)
{
    struct decide_env env = env_of(g);
    struct decision *d = &g->ruling->decision;

    decide_examine(g->ruling->file.policy, &g->ruling->counters, call, &env,
                   &g->ruling->arena, d);
    if (d->verdict == VERDICT_NEEDS_NAMES)
        conclude(g, &env);
    if (d->verdict == VERDICT_ALLOWED && guard_pin(g) == POLICY_PIN_STRICT &&
        guard_has_changed(g, call->tool))
        deny_changed(d, call->tool);
    if (d->verdict == VERDICT_ALLOWED)
        counters_advance(&g->ruling->counters, g->ruling->file.policy, call->tool);
}

/* "denylist[0]" gives denylist. */
static str code_of(str ref)
{
    size_t n = 0;

    while (n < ref.n && ref.p[n] != '[' && ref.p[n] != '.')
        n++;
    return str_first(ref, n);
}

/* White space to JSON, and the end of a line to many who read lines: what stands behind
 * it would be a message of its own. */
static bool has_return(const struct rpc *m)
{
    str raw = json_raw(m->json, m->node);

    return memchr(raw.p, '\r', raw.n) != NULL;
}

/* Could two parsers read it differently, or is it nothing that we can read? */
static bool is_ambiguous(const struct rpc *m)
{
    return m->node == JSON_NONE || m->kind == RPC_INVALID ||
           m->json->nodes[m->node].flags & JSON_TAINTED || has_return(m) ||
           rpc_has_lookalikes(m) || rpc_has_nul(m);
}

static void read_call(struct guard *g, const struct rpc *m, struct call_view *out)
{
    call_view_read(out, m, &g->ruling->arena);
    out->malformed = out->malformed || is_ambiguous(m);
}

static void judge_call(struct guard *g, const struct rpc *m, struct tap_verdict *out)
{
    struct decision *d = &g->ruling->decision;
    struct call_view call;
    bool malformed;

    read_call(g, m, &call);
    decide(g, &call);
    malformed = str_is(d->ref, "malformed");
    g->ruling->record =
        (struct call_decision){ .verdict =
                                    d->verdict == VERDICT_ALLOWED ? "allowed" : "denied",
                                .policy_ref = d->ref,
                                .reason = d->reason,
                                .policy_hash = str_from(g->ruling->file.hash) };
    out->decision = &g->ruling->record;
    if (d->verdict == VERDICT_ALLOWED)
        return;
    g->violations++;
    out->refused = g->options.enforce;
    out->code = malformed ? REFUSED : DENIED;
    out->reason_code = code_of(d->ref);
    buf_reset(&g->ruling->text);
    buf_printf(&g->ruling->text,
               "assay: the policy does not allow this call (%.*s: %.*s)", STR_ARG(d->ref),
               STR_ARG(d->reason));
    out->message = buf_str(&g->ruling->text);
}

static bool is_blank(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r' && s.p[i] != '\n')
            return false;
    }
    return true;
}

void guard_judge(struct guard *g, const struct tap *t, const struct rpc *m,
                 struct tap_verdict *out)
{
    bool is_call = m->method == RPC_TOOLS_CALL &&
                   (m->kind == RPC_REQUEST || m->kind == RPC_NOTIFICATION);

    if (!g->ruling)
        return;
    arena_reset(&g->ruling->arena);
    if (is_call) {
        judge_call(g, m, out);
        return;
    }
    if (!g->options.enforce || !is_ambiguous(m) ||
        (m->node == JSON_NONE && is_blank(t->frame)))
        return;
    g->violations++;
    *out = (struct tap_verdict){
        .refused = true,
        .code = REFUSED,
        .reason_code = STR("malformed"),
        .message = STR("assay: this message is not sent on: it is malformed or can be "
                       "read in two ways"),
    };
}

/* --- waiting for names --- */

/* Note a name; too many stay unknown, and are denied. */
static void want_name(struct aside *a, str name)
{
    struct known_name *more;

    if (name.n >= RESOLVE_NAME_MAX || find_name(a, name) ||
        a->known_count == GUARD_NAMES_MAX)
        return;
    more = realloc(a->known, (a->known_count + 1) * sizeof(*more));
    if (!more)
        return;
    a->known = more;
    more += a->known_count++;
    *more = (struct known_name){ .aside = a };
    memcpy(more->name, name.p, name.n);
}

static void look_at(struct guard *g, struct aside *a, const struct json *j, uint32_t node)
{
    struct decide_env env = env_of(g);
    struct decision d;
    struct call_view call;
    struct rpc m;

    rpc_read(&m, j, node);
    a->in_order = a->in_order || m.method == RPC_CANCELLED;
    if (m.method != RPC_TOOLS_CALL || m.kind == RPC_INVALID || m.kind == RPC_RESPONSE)
        return;
    read_call(g, &m, &call);
    decide_examine(g->ruling->file.policy, &g->ruling->counters, &call, &env,
                   &g->ruling->arena, &d);
    for (size_t i = 0; d.verdict == VERDICT_NEEDS_NAMES && i < d.name_count; i++)
        want_name(a, d.names[i]);
}

/* Which names it needs, and whether it may overtake others: not a cancellation, which may
 * be of one of them, and not a last line without its end. */
static void examine(struct guard *g, struct aside *a, str bytes)
{
    struct json j = { 0 };
    struct err ignored;

    a->in_order = bytes.p[bytes.n - 1] != '\n';
    arena_reset(&g->ruling->arena);
    if (json_parse(&j, bytes, NULL, &ignored) == 0) {
        if (json_is(&j, JSON_ROOT, JSON_ARRAY)) {
            json_each (&j, JSON_ROOT, at)
                look_at(g, a, &j, at);
        } else {
            look_at(g, a, &j, JSON_ROOT);
        }
    }
    json_release(&j);
}

static void forget(struct guard *g, struct aside *a)
{
    struct aside **at = &g->asides;

    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
    free_aside(a);
}

static void deliver(struct guard *g, struct aside *a)
{
    a->delivered = true;
    g->aside_bytes -= a->bytes.n;
    g->at_hand = a;
    g->options.ready(g->options.ready_ctx, a);
    g->at_hand = NULL;
}

/* The oldest whose names are known and which need not wait for an older one. */
static struct aside *next_ready(const struct guard *g)
{
    bool behind = false;

    for (struct aside *a = g->asides; a; a = a->next) {
        if (a->delivered)
            continue;
        if (a->open == 0 && !(a->in_order && behind))
            return a;
        behind = true;
    }
    return NULL;
}

static void deliver_ready(struct guard *g)
{
    struct aside *a;

    while ((a = next_ready(g))) {
        deliver(g, a);
        forget(g, a);
    }
}

static void on_name(void *ctx, const struct resolved *answer)
{
    struct known_name *k = ctx;
    struct aside *a = k->aside;
    struct guard *g = a->guard;

    k->answer = *answer;
    if (--a->open > 0)
        return;
    if (a->delivered)
        forget(g, a);
    else
        deliver_ready(g);
}

/* What nobody can be asked about stays without an answer. */
static void ask(struct guard *g, struct aside *a)
{
    struct err ignored;

    for (size_t i = 0; i < a->known_count; i++) {
        if (resolve(g->resolver, a->known[i].name, on_name, &a->known[i], &ignored) == 0)
            a->open++;
    }
}

static void put_aside(struct guard *g, struct aside *a)
{
    struct aside **end = &g->asides;

    while (*end)
        end = &(*end)->next;
    *end = a;
    g->aside_bytes += a->bytes.n;
}

/* Names that cannot be looked up have no answer, and are denied. */
bool guard_wait(struct guard *g, str bytes, struct exchange *x)
{
    UNINITIALIZED struct err ignored;
    struct aside *a;

    if (g->at_hand || !g->has_names || bytes.n == 0 ||
        (!g->resolver && resolver_new(&g->resolver, g->options.loop, &ignored) < 0))
        return false;
    a = calloc(1, sizeof(*a));
    if (!a)
        return false;
    *a = (struct aside){ .guard = g, .exchange = x, .bytes = { .max = bytes.n + 1 } };
    examine(g, a, bytes);
    if (a->known_count || (a->in_order && guard_is_waiting(g)))
        buf_add(&a->bytes, bytes);
    if (a->bytes.n)
        ask(g, a);
    if (a->open == 0 && !(a->bytes.n && a->in_order && guard_is_waiting(g))) {
        free_aside(a);
        return false;
    }
    put_aside(g, a);
    return true;
}

void guard_desert(struct guard *g, const struct exchange *x)
{
    for (struct aside *a = g ? g->asides : NULL; a; a = a->next)
        a->deserted = a->deserted || a->exchange == x;
}

static struct aside *next_undelivered(const struct guard *g)
{
    struct aside *a = g->asides;

    while (a && a->delivered)
        a = a->next;
    return a;
}

/* Answers that still come find that nobody waits. Delivering may end the session, and
 * come back here. */
void guard_flush(struct guard *g)
{
    struct aside *a;

    while ((a = next_undelivered(g))) {
        deliver(g, a);
        if (a->open == 0)
            forget(g, a);
    }
}

/* --- a new file --- */

static int replace(struct guard *g, struct policy_file *next, struct err *err)
{
    if (policy_file_keep(next, log_dir(g->options.log), err) < 0 ||
        counters_move(&g->ruling->counters, g->ruling->file.policy, next->policy, err) <
            0)
        return -1;
    policy_file_release(&g->ruling->file);
    g->ruling->file = *next;
    *next = (struct policy_file){ 0 };
    g->has_names = wants_names(g->ruling->file.policy);
    return 0;
}

void guard_reload(struct guard *g)
{
    struct policy_file next = { 0 };
    struct err err = { 0 }, ignored;
    bool good;

    if (!g->ruling)
        return;
    good = policy_file_load(&next, g->ruling->file.path, &err) == 0 &&
           replace(g, &next, &err) == 0;
    if (good)
        guard_say(g, "the policy was loaded anew: %s", g->ruling->file.hash);
    else
        guard_say(g, "%s; the policy stays as it was (%s)", err.msg,
                  g->ruling->file.hash);
    if (record_load(g, good || !next.hash[0] ? g->ruling->file.hash : next.hash, good,
                    &ignored) < 0)
        guard_say(g, "%s", ignored.msg);
    policy_file_release(&next);
}
