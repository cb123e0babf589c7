/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard - the policy of a session: it judges what the client wants to send, before a byte
 * of it reaches the server.
 *
 *     guard_wait    names have to be looked up first: the message is put aside, and comes
 *                   back through the hook `ready` within two seconds
 *     guard_judge   allowed or denied, and for what reason
 *     guard_list    what of a list of tools is not for the client (guard_list.c)
 *     guard_reload  read the file anew
 *
 * In the profile guard a refusal is one; in audit it is advice, recorded and passed on.
 * What cannot be judged is denied. Nothing here writes to the client or the server.
 */
#ifndef PIPELINE_GUARD_H
#define PIPELINE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "evidence/session.h"
#include "pipeline/pinboard.h"
#include "pipeline/policy_file.h"
#include "pipeline/tap.h"
#include "policy/decide.h"

struct err;
struct exchange;
struct loop;
struct resolver;

#define GUARD_NAMES_MAX 64 /* looked up for one message; more are denied */
#define GUARD_TOLD_MAX  16 /* different lists that are not told of again */

/* Which lists a person was told of because the policy hides some of their tools; one for
 * all sessions of a process, which mostly see the same. All zero is none. */
struct guard_told {
    struct digest at[GUARD_TOLD_MAX];
    size_t count; /* ever; the last GUARD_TOLD_MAX of them are known */
};

/* A message that waits for its names. */
struct aside {
    struct aside *next;
    struct guard *guard;
    struct buf bytes;
    struct exchange *exchange;
    unsigned open; /* names that have no answer yet */
    bool in_order; /* it must not go before those that were put aside before it */
    bool delivered;
    bool deserted; /* who sent it does not want the answer any more */
    struct known_name *known;
    size_t known_count;
};

struct guard_options {
    struct loop *loop;
    struct log *log;
    struct session *session;
    struct policy_file *file; /* NULL: no policy; pins only. Taken over */
    const char *server_id;
    bool enforce;        /* profile guard */
    enum policy_pin pin; /* as the flag; POLICY_PIN_UNSET: as the policy, else warn */
    bool show_denied_tools;
    bool is_http; /* the server is elsewhere: its paths are not ours */
    struct guard_told *told;

    /* The names of this one are known now, or will not be: take it again. */
    void (*ready)(void *ctx, struct aside *a);
    void (*say)(void *ctx, const char *sentence);
    void *ready_ctx, *say_ctx;
};

/* A policy, and what judging by it needs. */
struct ruling {
    struct policy_file file;
    struct counters counters;
    char *cwd; /* NULL: not known, relative paths are refused */
    struct arena arena;
    struct decision decision;
    struct call_decision record; /* the decision, as evidence has it */
    struct buf text;             /* of the answer */
};

struct guard {
    struct guard_options options;
    struct ruling *ruling; /* NULL: no policy */
    bool has_names;        /* the policy may want names to be looked up */
    uint64_t violations;
    bool in_pages; /* the last list of tools was to be continued */

    struct resolver *resolver; /* made when it is needed */
    struct aside *asides;
    size_t aside_bytes;          /* that wait */
    const struct aside *at_hand; /* whose names are known */

    struct pinboard board; /* not open with `pin: off`, nor before it is needed */
};

MUST_CHECK int guard_open(struct guard **out, const struct guard_options *options,
                          struct err *err);
void guard_free(struct guard *g); /* NULL is fine */

/* Give back what the next call would need. True: there is nothing else in it, and a new
 * one would do as well. */
bool guard_trim(struct guard *g);

/* Hooks of the tap. */
void guard_judge(struct guard *g, const struct tap *t, const struct rpc *m,
                 struct tap_verdict *out);
void guard_list(struct guard *g, struct tap *t, const struct rpc *m);

/* True: the message (of the client, `bytes` with its line end) was put aside. */
bool guard_wait(struct guard *g, str bytes, struct exchange *x);

/* Whoever sent this does not want answers any more: what waits of it is deserted. */
void guard_desert(struct guard *g, const struct exchange *x); /* NULL is fine */

/* Deliver now what waits, with the names that are known. */
void guard_flush(struct guard *g);

/* Bytes that wait for names. Of these three NULL is one that has nothing to do. */
static inline size_t guard_aside(const struct guard *g)
{
    return g ? g->aside_bytes : 0;
}

static inline bool guard_is_waiting(const struct guard *g)
{
    return guard_aside(g) > 0;
}

static inline bool guard_has_policy(const struct guard *g)
{
    return g && g->ruling;
}

/* Must a long answer be seen whole, while a list is awaited? */
bool guard_cuts_lists(const struct guard *g);

enum policy_pin guard_pin(const struct guard *g);

/* A bad new file keeps the old one. Either is said and recorded. */
void guard_reload(struct guard *g);

/* --- guard_list.c --- */

/* Can they be read? Else no session should begin. */
MUST_CHECK int guard_open_pins(struct guard *g, struct err *err);

/* Has the definition of this tool changed since it was pinned? */
bool guard_has_changed(struct guard *g, str tool);

void guard_say(const struct guard *g, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
