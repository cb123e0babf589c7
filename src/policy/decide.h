/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide - may this call be made? A verdict, the rule that gave it, and a reason.
 *
 * First match wins: denylist, constraints of the tool, budget, allowlist, default. Names
 * of hosts come last: they are looked up only for a call that would otherwise be allowed,
 * so that a refused call makes no DNS query. Looking up is the caller's, off its loop:
 *
 *     decide_examine(p, &counters, &call, &env, &arena, &d);
 *     if (d.verdict == VERDICT_NEEDS_NAMES) {
 *         … look up d.names[i], i < d.name_count, fill answers[i] …
 *         decide_conclude(p, &counters, &env, answers, &d);
 *     }
 *     if (d.verdict == VERDICT_ALLOWED)
 *         counters_advance(&counters, p, call.tool);
 *
 * Nothing here fails: what could not be found out (no memory, no canonical form, a limit)
 * is denied. A decision borrows from the policy and the arena, not from the JSON text, so
 * the message may go away while names are looked up; the policy may not.
 */
#ifndef POLICY_DECIDE_H
#define POLICY_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "mcp/rpc.h"
#include "policy/address.h"
#include "policy/counters.h"
#include "policy/host.h"
#include "policy/policy.h"
#include "json/json.h"

#define DECIDE_MEMORY    ((size_t)256 << 20) /* an arena limit that is enough for 64 MiB */
#define DECIDE_NAMES_MAX HOST_NAMES_MAX      /* host names of one call; more are denied */

/* Zero is no yes. */
enum verdict {
    VERDICT_DENIED,
    VERDICT_ALLOWED,
    VERDICT_NEEDS_NAMES, /* not yet: look up d.names */
    VERDICT_UNDECIDABLE, /* only for calls whose arguments are not known */
};

const char *verdict_name(enum verdict v); /* "denied" … */

struct call_view {
    str tool;                /* decoded */
    const struct json *json; /* NULL: no arguments */
    uint32_t arguments;      /* JSON_NONE: none */
    bool malformed;          /* no tool name, or ambiguous: denied, ref `malformed` */
    bool unknown; /* there were arguments, they are not at hand (policy impact) */
};

/* The tool and arguments of a tools/call. Borrows from the message and the arena. */
void call_view_read(struct call_view *call, const struct rpc *m, struct arena *arena);

struct decide_env {
    str cwd;      /* of the server, absolute; empty: not known, relative paths refused */
    bool is_http; /* relative paths mean nothing to us: refused */
    int64_t now;  /* ms */
    bool no_wall_time; /* leave the wall-time budget out (comparing recordings) */
};

struct decision {
    enum verdict verdict;
    str ref;    /* "denylist[0]", "constraints.web_fetch.deny_private_hosts", "default",
                   "malformed", "budget.max_tool_calls" */
    str reason; /* one sentence without any bytes of the arguments: fit for evidence */
    str rule;   /* the name or pattern in the file; empty where there is none */
    str detail; /* what was found in the arguments, printable; not for evidence */

    const str *names; /* VERDICT_NEEDS_NAMES: lower case, ASCII, no dot at the end */
    size_t name_count;

    str names_ref; /* for decide_conclude() */
    str tool;
};

void decide_examine(const struct policy *p, const struct counters *c,
                    const struct call_view *call, const struct decide_env *env,
                    struct arena *arena, struct decision *d);

/* The addresses of a name: all A and AAAA. None: nobody answered, or not in time. */
struct answer_view {
    const struct address *addresses;
    size_t count;
};

/* Turn VERDICT_NEEDS_NAMES into a verdict. Counters are looked at again: other calls may
 * have been allowed meanwhile. `answers` has d->name_count entries. */
void decide_conclude(const struct policy *p, const struct counters *c,
                     const struct decide_env *env, const struct answer_view *answers,
                     struct decision *d);

/* Would every call of this tool be denied, whatever its arguments? By the denylist, or by
 * default without the allowlist; *ref (may be NULL) says by which. */
bool decide_outright_denies(const struct policy *p, str tool, str *ref);

#endif
