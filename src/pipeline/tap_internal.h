/* SPDX-License-Identifier: Apache-2.0 */
/* tap_internal - what the files of the tap share. Nobody else includes it. */
#ifndef PIPELINE_TAP_INTERNAL_H
#define PIPELINE_TAP_INTERNAL_H

#include "pipeline/tap.h"

/* What an event says of an element of the message at hand. */
const struct message *tap_describe(struct tap *t, const struct rpc *m, uint64_t index);

/* So much waits to be written that it must not be more: write it. */
MUST_CHECK int tap_make_room(struct tap *t, struct err *err);

/* A message without the newline that ends it. */
str tap_text(str frame);

/* Record an event that is of no call. */
MUST_CHECK int tap_put_event(struct tap *t, struct event *e, struct err *err);

/* Record a tools/call, with the verdict at hand. */
MUST_CHECK int tap_record_request(struct tap *t, const struct rpc *m, uint64_t index,
                                  struct open_call **call, struct err *err);

/* What is to be said of the element when it has gone on; it is the newest passage. */
MUST_CHECK int tap_remember_passage(struct tap *t, enum event_type type, uint32_t node,
                                    struct open_call *call, bool release,
                                    struct err *err);

/* The newest passage is not for the other side. */
static inline void tap_withhold(struct tap *t)
{
    t->passages[t->passage_count - 1].withheld = true;
    t->withheld++;
}

/* Ask the judge. Then: record that it is refused, and answer it. */
bool tap_is_refused(struct tap *t, const struct rpc *m);
MUST_CHECK int tap_refuse(struct tap *t, const struct rpc *m, uint64_t index,
                          struct err *err);

/* The call will not be answered: its receipt. The pending one stays. */
void tap_lose(struct tap *t, struct pending *p, const char *reason);

/* This call is denied, which `e` (request_denied, taken over) will say when it can be
 * written. Without memory the call stays open, and is lost at the end. */
void tap_remember_refusal(struct tap *t, struct open_call *call, struct event *e);

/* Write what could not be written before: which calls were refused. */
void tap_settle_refusals(struct tap *t);
void tap_forget_refusals(struct tap *t);

/* The request of that direction that has this id; NULL when it is not known. */
struct pending *tap_find_pending(struct tap *t, enum direction asked, uint32_t id,
                                 const struct exchange *x);

/* No answer to this one is awaited any more. */
void tap_forget_pending(struct tap *t, enum direction asked, struct pending *p);

/* The task that a message names, or that has this serial; NULL when it is not known. */
struct tap_task *tap_find_task(const struct tap *t, const struct rpc *m);
struct tap_task *tap_task_of(const struct tap *t, uint64_t serial);

/* The serial of the task that a request of the client is about; 0 for none. */
uint64_t tap_task_asked(const struct tap *t, const struct rpc *m);

/* Does this answer to `method` show the task's end? As rpc_task_ended(). */
bool tap_task_ended(const struct rpc *m, enum rpc_method method, uint32_t *inner,
                    bool *is_error);

/* Its call became a task; without memory its end is told as task_unobserved. */
void tap_remember_task(struct tap *t, const struct rpc *m, struct open_call *call);
void tap_forget_task(struct tap *t, struct tap_task *task);

#endif
