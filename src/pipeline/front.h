/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front - a process that serves many clients over HTTP: Streamable HTTP at /mcp, the
 * older HTTP+SSE at /sse and /messages, /health for those who watch.
 *
 * Each client's session is a relay of its own, with its own receipts and pack. Requests
 * of the stateless era (2026-07-28) are grouped into sessions by who sends them (their
 * Authorization, else their address) and by time.
 */
#ifndef PIPELINE_FRONT_H
#define PIPELINE_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "pipeline/relay.h"

struct err;
struct tls_identity;

#define FRONT_SESSIONS_MAX 10000   /* at once; then the one that idles longest ends */
#define FRONT_IDLE_MAX     1000    /* that nobody asks of; likewise */
#define FRONT_WARM_MAX     128     /* that keep what their next message would need */
#define FRONT_CHILDREN_MAX 256     /* the same where each has a server of its own */
#define FRONT_IDLE_SESSION 1800000 /* ms without a request: the session ends */
#define FRONT_IDLE_GROUP   60000   /* the same for one that has no name */
#define FRONT_KEEP_ALIVE   20000   /* ms of silence in a stream */
#define FRONT_UNHEARD_MAX                                                                \
    ((size_t)1 << 20) /* bytes for a client that does not listen                         \
                       */
#define FRONT_ORIGINS_MAX 64
#define FRONT_SESSION_ID  32 /* hex digits */

struct front_options {
    const struct relay_options *relay;
    const char *host;              /* to listen on */
    uint16_t port;                 /* 0: any */
    bool is_loopback;              /* the host is: then a request must name it so */
    struct tls_identity *identity; /* NULL: no TLS */
    const char *const *origins;    /* of browsers that may come, "*" for all */
    size_t origin_count;
    bool share_child;

    /* It listens: this is where. */
    void (*listening)(void *ctx, const char *url);
    void *ctx;
};

/* How it went. */
struct front_outcome {
    bool started;
    bool incomplete;    /* a session was, or its end could not be recorded */
    bool evidence_lost; /* a gap */
    bool interrupted;   /* SIGINT */
    uint64_t sessions, calls, violations, unanswered;

    /* As in solo.h. */
    bool abandoned;
};

/* Returns after SIGINT or SIGTERM, when every session has its end. Fails when it cannot
 * listen: then nothing has happened. */
MUST_CHECK int front_run(const struct front_options *options,
                         struct front_outcome *outcome, struct err *err);

#endif
