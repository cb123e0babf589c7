/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - the addresses of host names, without ever stopping the loop.
 *
 * Each name has a thread of its own, so that one that hangs delays no other; who has not
 * answered after RESOLVE_WAIT has not answered.
 */
#ifndef TRANSPORT_RESOLVE_H
#define TRANSPORT_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct err;
struct loop;
struct resolver;

#define RESOLVE_WAIT      2000 /* ms */
#define RESOLVE_ADDRESSES 64   /* of one name; one with more has not answered */
#define RESOLVE_THREADS   32   /* names at once; those that hang count */
#define RESOLVE_WAITING   1024 /* names that wait for a thread; their time runs */
#define RESOLVE_NAME_MAX  254  /* with its NUL */

struct resolved {
    size_t count; /* 0: nobody answered, or not in time */
    struct {
        bool v6;
        uint8_t bytes[16]; /* network order; IPv4: the first four */
    } at[RESOLVE_ADDRESSES];
};

MUST_CHECK int resolver_new(struct resolver **out, struct loop *loop, struct err *err);

/* Nothing is called any more. Threads that hang end by themselves. NULL is fine. */
void resolver_free(struct resolver *r);

/* All A and AAAA of a name. `done` is called once, from the loop, not in here. ERR_LIMIT:
 * too many names at once, or no name. */
MUST_CHECK int resolve(struct resolver *r, const char *name,
                       void (*done)(void *ctx, const struct resolved *answer), void *ctx,
                       struct err *err);

#endif
