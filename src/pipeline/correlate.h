/* SPDX-License-Identifier: Apache-2.0 */
/*
 * correlate - which answer belongs to which request, for one direction of requests.
 *
 * Requests are known by their id: by its very text first, else by its canonical form, so
 * that an id that comes back spelled otherwise is found, and two that only look alike are
 * kept apart as long as they come back as they went. Among equal ids the oldest is first.
 */
#ifndef PIPELINE_CORRELATE_H
#define PIPELINE_CORRELATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"
#include "mcp/rpc.h"

struct err;
struct exchange;
struct open_call;

#define CORRELATE_MAX     65536 /* requests in flight */
#define CORRELATE_BUCKETS 16    /* to begin with; twice as many when they fill */
#define CORRELATE_KEPT    64 /* for requests to come, of those that had little to say */
#define CORRELATE_LITTLE  64 /* bytes of ids */

/* A request that waits for its answer. */
struct pending {
    struct pending *next;          /* of its bucket, oldest first */
    struct pending *older, *newer; /* of all */
    uint32_t hash;
    uint32_t raw_n, key_n; /* of the bytes behind this struct */
    enum rpc_method method;
    struct open_call *call; /* of a tools/call; else NULL */
    struct exchange *exchange;
    uint64_t serial; /* from 1, in the order in which they came */
    uint64_t task;   /* that a tasks/ request is about; 0: none */
    uint64_t at;     /* loop time, ms: when it came, or when it was cancelled */
    bool cancelled;  /* an answer may still come */
    bool answered;   /* by us: a late one is dropped */
    char bytes[];
};

/* All zero but `seed` is empty. */
struct correlate {
    struct pending **bucket; /* NULL: none yet */
    uint32_t buckets;
    struct pending *oldest, *newest;
    uint32_t count;
    uint64_t serial; /* of the newest that ever was */
    uint32_t seed;   /* unpredictable: ids come from strangers */
    struct pending *kept;
    uint32_t kept_count;
};

void correlate_release(struct correlate *c);

/* Give back what an empty one does not need. */
void correlate_trim(struct correlate *c);

/* ERR_LIMIT at CORRELATE_MAX. */
MUST_CHECK int correlate_add(struct correlate *c, str raw, str key, struct pending **out,
                             struct err *err);

/* The oldest with this id: if there is one, of this exchange, in which the answer came.
 * Clients of one session may ask with the same id at once. */
struct pending *correlate_find(const struct correlate *c, str raw, str key,
                               const struct exchange *x);
void correlate_remove(struct correlate *c, struct pending *p); /* it is gone then */

/* The oldest whose answer nobody waits for, cancelled or answered by us; NULL without.
 * Where there is no more room it can be removed, by whoever knows what it holds. */
struct pending *correlate_spare(const struct correlate *c);

#endif
