/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - one session between a client and a server that we start, or that is there
 * already: what each says goes to the other as it came, after its evidence is written.
 *
 * relay_run() returns when the session is over and its evidence is complete or as
 * complete as it can be. The order of ending is that of docs/proxy.md; nothing here
 * prints.
 */
#ifndef PIPELINE_RELAY_H
#define PIPELINE_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"
#include "evidence/log.h"
#include "evidence/pack.h"
#include "pipeline/policy_file.h"

struct err;
struct upstream_options;

#define RELAY_QUEUE_STOP                                                                 \
    ((size_t)256 << 10)       /* bytes owed to one side: stop the other                  \
                               */
#define RELAY_EXIT_GRACE 500  /* ms from our EOF to SIGTERM */
#define RELAY_TERM_GRACE 1000 /* ms from SIGTERM to SIGKILL */
#define RELAY_LAST_WORDS 500  /* ms for output after the server's exit */
#define RELAY_DEAD_WAIT  2000 /* ms that our end waits for a recovery */

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
    uint64_t pack_ms, pack_receipts; /* rolling; 0: only at the end */
    bool investigation;              /* keep whole messages */
    struct policy_file *policy;      /* NULL: none. What it holds is taken over */
    bool enforce; /* profile guard: the policy refuses; else it advises */
    enum policy_pin pin;
    bool show_denied_tools;

    /* What the person should know, and packs of parts and of sessions that others left;
     * from any thread. Either may be NULL. */
    void (*say)(void *ctx, const char *sentence);
    void (*packed)(void *ctx, const struct pack_result *pack);
    void *say_ctx;
};

/* How it went. */
struct relay_outcome {
    bool started;       /* the server ran */
    bool complete;      /* session_complete */
    bool evidence_lost; /* a gap */
    bool interrupted;   /* SIGINT */
    bool packed;
    struct pack_result pack; /* the last one */
    uint64_t calls;
    uint64_t violations; /* of the policy */
    uint64_t unanswered; /* calls that were forwarded */

    /* Somebody else's session is still being finished, by a thread that uses the log: it
     * must not be closed, and the process should leave by _exit(). The next recorder does
     * the rest. */
    bool abandoned;
};

/* Fails when the server cannot be started or evidence cannot be begun: then nothing has
 * happened; and when the end could not be recorded (outcome->started is true). *outcome
 * is set whatever happens. */
MUST_CHECK int relay_run(const struct relay_options *options,
                         struct relay_outcome *outcome, struct err *err);

#endif
