/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - one session between a client and a server that we start, or that is there
 * already: what each says goes to the other as it came, after its evidence is written.
 *
 *     relay_open   the server is started, evidence is begun, both sides are read
 *     relay_stop   somebody wants it to end
 *     (over)       nothing more will be said
 *     relay_end    the end of its evidence
 *     relay_seal   …and its pack
 *
 * The order of ending is that of docs/proxy.md; nothing here prints. Many of them may
 * live in one loop.
 */
#ifndef PIPELINE_RELAY_H
#define PIPELINE_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "evidence/log.h"
#include "evidence/pack.h"
#include "pipeline/policy_file.h"

struct endpoint;
struct err;
struct exchange;
struct guard_told;
struct json;
struct loop;
struct relay;
struct rpc;
struct steward;
struct turn;
struct upstream_options;

#define RELAY_QUEUE_STOP                                                                 \
    ((size_t)256 << 10)       /* bytes owed to one side: stop the other                  \
                               */
#define RELAY_EXIT_GRACE 500  /* ms from our EOF to SIGTERM */
#define RELAY_TERM_GRACE 1000 /* ms from SIGTERM to SIGKILL */
#define RELAY_LAST_WORDS 500  /* ms for output after the server's exit */

/* What the sessions of a process have in common; borrowed for their life. */
struct relay_options {
    char *const *argv;                       /* the server, or NULL… */
    const struct upstream_options *upstream; /* …where it is */
    struct log *log;
    const char *server_id;
    bool store_arguments, store_results;
    str pepper;
    uint64_t shutdown_timeout; /* ms */
    uint64_t call_timeout;     /* ms; 0: none */
    uint64_t max_message;
    bool block; /* on evidence failure: refuse instead of passing on */
    bool pack, pack_empty;
    uint64_t pack_ms, pack_receipts;  /* rolling; 0: only at the end */
    bool investigation;               /* keep whole messages */
    const struct policy_file *policy; /* NULL: none */
    bool enforce; /* profile guard: the policy refuses; else it advises */
    enum policy_pin pin;
    bool show_denied_tools;
    struct guard_told *told; /* of hidden tools, for all sessions */

    /* Whoever hands messages over may have had to index one: then *given is that index,
     * which may be swapped for another one. It is asked for once, and NULL afterwards. */
    struct json **given;

    /* What the person should know, and packs of parts and of sessions that others left;
     * from any thread. Either may be NULL. */
    void (*say)(void *ctx, const char *sentence);
    void (*packed)(void *ctx, const struct pack_result *pack);
    void *say_ctx;
};

/* What each has for itself. */
struct relay_start {
    struct loop *loop;
    struct steward *steward;
    struct turn *turn;       /* of a process with many; NULL: none */
    struct endpoint *client; /* NULL: our stdin and stdout */
    struct endpoint *server; /* NULL: what the options say, a command or a URL */
    bool server_is_far;      /* `server` is on another machine, perhaps */

    /* The client's tools/list is answered; or NULL. */
    void (*list)(void *ctx, const struct rpc *m);

    /* The server is of the older kind (HTTP+SSE); or NULL. */
    void (*found)(void *ctx);

    /* From the loop, or inside relay_stop(): nothing more will be said. Once. */
    void (*over)(void *ctx);
    void *ctx;
};

/* How it went. */
struct relay_outcome {
    bool complete; /* session_complete */
    bool packed;
    struct pack_result pack; /* the last one */
    uint64_t calls;
    uint64_t violations; /* of the policy */
    uint64_t unanswered; /* calls that were forwarded */
};

/* Fails when the server cannot be started or evidence cannot be begun: then nothing has
 * happened. */
MUST_CHECK int relay_open(struct relay **out, const struct relay_options *options,
                          const struct relay_start *start, struct err *err);

/* A signal came for it: SIGINT, SIGTERM, or SIGHUP, which reads the policy anew. */
void relay_signal(struct relay *r, int number);

/* The client will say no more, for this reason (a proper one of terms.h). */
void relay_stop(struct relay *r, const char *reason);

/* Whoever sent these requests does not want their answers any more. */
void relay_cancel(struct relay *r, const struct exchange *x);

/* This request of the client (its id as the client wrote it) will not be answered: it is
 * told so with error -31006. */
void relay_lose(struct relay *r, struct exchange *x, str id, const struct err *why);

/* All of these, for this reason (one of terms.h). */
void relay_lose_all(struct relay *r, const struct exchange *x, const char *reason,
                    const struct err *why);

/* The server, which is shared with others, has ended and is started again: the log says
 * so, and how (docs/log.md). */
void relay_note_server_end(struct relay *r, const char *reason, unsigned status);

/* The message that comes for this exchange has no end. */
void relay_drop(struct relay *r, const struct exchange *x, const struct err *why);

/* Does something wait for the disk? Then the server's endpoint hears settled() of this
 * exchange behind all that waits now. */
bool relay_defers(struct relay *r, struct exchange *x);

/* Does a message of the client wait, for the disk or for names? */
bool relay_holds(const struct relay *r);

/* Bytes that the server has not taken. */
size_t relay_unsent(const struct relay *r);

/* Are answers awaited? */
bool relay_is_busy(const struct relay *r);

/* Give back what the next message would need: for one that idles among many. False: not
 * yet, something is under way. */
bool relay_trim(struct relay *r);

/* About once a second. */
void relay_tick(struct relay *r);

/* When it is over; may wait for the disk, on any thread. The sides are closed before, on
 * the loop's. Fails when the end could not be recorded. */
void relay_close(struct relay *r);
MUST_CHECK int relay_seal(struct relay *r, struct relay_outcome *out, struct err *err);

/* For who packs many at once: relay_seal() is relay_end(), a pack if there is one to be
 * built, relay_forget(). */
struct relay_rest {
    struct pack_request request; /* borrows from the relay */
    bool packable;
    uint64_t events; /* of the session */
    int part;        /* -1: the part before has no pack, for the reason `why` */
    struct err why;
};

MUST_CHECK int relay_end(struct relay *r, struct relay_outcome *out,
                         struct relay_rest *rest, struct err *err);

/* Nothing is left to do. Fails also for what relay_end() had to pass over. */
MUST_CHECK int relay_forget(struct relay *r, const struct relay_rest *rest,
                            struct err *err);
void relay_free(struct relay *r); /* NULL is fine */

#endif
