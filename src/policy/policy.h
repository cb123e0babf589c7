/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - a policy file, loaded: which tools, with which arguments, how often.
 *
 * A policy never changes after it is loaded and knows no session: what was counted stands
 * in struct counters (counters.h), what is decided in decide.h. A file that is not wholly
 * understood is not loaded: every error names the file, the line and what was expected.
 *
 * Two forms are read: ours (default, allowlist, denylist, constraints) and the public
 * tool's (mode, tools: {default, allow, deny, constraints}); never both in one file. The
 * refs are those of our form: tools.deny[0] is `denylist[0]`.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/str.h"
#include "policy/match.h"
#include "policy/path.h"

struct err;
struct pattern;

#define POLICY_FILE      "assay.mcp-policy.yaml"
#define POLICY_MAX_BYTES ((size_t)1 << 20)
#define POLICY_MEMORY    ((size_t)64 << 20) /* what a loaded file may take */
#define POLICY_NAME_MAX  1024               /* bytes of a tool name, glob or pattern */
#define POLICY_COUNT_MAX 9007199254740991u  /* of max_calls and its like: 2^53 - 1 */

/* What a missing `pin` leaves to the caller. */
enum policy_pin {
    POLICY_PIN_UNSET,
    POLICY_PIN_OFF,
    POLICY_PIN_WARN,
    POLICY_PIN_STRICT,
};

/* `mode` of the public tool's form. The profile is chosen by flag, so this is a wish. */
enum policy_mode {
    POLICY_MODE_UNSET,
    POLICY_MODE_AUDIT,
    POLICY_MODE_ENFORCE,
};

struct policy_limit {
    uint64_t value;
    bool given;
};

struct policy_names {
    const str *at;
    size_t count;
};

/* What constrains the tools that one name or glob of `constraints` matches. */
struct constraint {
    str name;
    unsigned line;
    struct policy_limit max_calls; /* of all tools that `name` matches, together */
    struct policy_limit max_argument_bytes; /* of the canonical arguments */
    bool deny_private_hosts;
    bool has_paths;                                    /* allowed_paths is given */
    struct policy_names url_arguments, path_arguments; /* beside the usual keys */
    struct path_rules allowed_paths;
    struct pattern *const *deny_patterns; /* compiled */
    const str *pattern_texts;             /* as in the file */
    const str *pattern_refs;              /* constraints.T.deny_patterns[0] … */
    size_t deny_pattern_count;
    str ref_max_calls, ref_max_argument_bytes, ref_hosts, ref_paths, ref_patterns;
};

/* A key of the file that is understood and has no effect here, and why. */
struct policy_note {
    unsigned line;
    str text;
    const struct policy_note *next;
};

/* A list of names: where they stand is their ref. */
struct policy_list {
    struct match match;
    const str *names; /* as in the file */
    const str *refs;  /* "denylist[0]" … */
    size_t count;
};

/* Read only. Everything borrows from `arena`. */
struct policy {
    struct arena arena;
    bool default_allow;
    bool default_given; /* a missing default is `deny` */
    struct policy_list denylist, allowlist;
    struct match constraint_names;
    const struct constraint *constraints; /* in the order of the file */
    size_t constraint_count;
    struct policy_limit max_tool_calls, max_wall_time_sec;
    enum policy_pin pin;
    enum policy_mode mode;
    bool public_form;
    const struct policy_note *notes; /* in the order of the file */
};

/* Read a policy out of the bytes of a file; `name` is what errors call it. ERR_FORMAT
 * with "name:line: …", ERR_LIMIT for what is too large, ERR_NOMEM. Free it with
 * policy_free().
 */
MUST_CHECK int policy_parse(struct policy **out, str bytes, const char *name,
                            struct err *err);
void policy_free(struct policy *p); /* NULL is fine */

#endif
