/* SPDX-License-Identifier: Apache-2.0 */
/* tap_internal - what tap.c and passage.c share. Nobody else includes it. */
#ifndef PIPELINE_TAP_INTERNAL_H
#define PIPELINE_TAP_INTERNAL_H

#include "pipeline/tap.h"

/* What an event says of an element of the message at hand. */
struct message tap_describe(const struct tap *t, const struct rpc *m, uint64_t index);

/* No answer to this one is awaited any more. */
void tap_forget_pending(struct tap *t, enum direction asked, struct pending *p);

#endif
