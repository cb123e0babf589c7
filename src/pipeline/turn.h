/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn - what the sessions of a process record in one turn of the loop is one write to
 * the log, at its end. Nothing that gathers (channel.h) leaves before.
 *
 * Only for sessions whose messages go on whatever becomes of that write.
 */
#ifndef PIPELINE_TURN_H
#define PIPELINE_TURN_H

#include "evidence/log.h"
#include "transport/loop.h"

struct relay;

#define TURN_MESSAGES 256 /* that share a write: others may wait for the log */

struct turn {
    struct loop *loop;
    struct log *log;
    struct loop_chore end;
    struct relay *relays; /* that take part */
    unsigned messages;
};

void turn_init(struct turn *t, struct loop *loop, struct log *log);

/* Before a message of it is recorded. */
void turn_join(struct turn *t, struct relay *r);

/* It closes: what it has recorded is written. Safe for one that does not take part. */
void turn_leave(struct turn *t, const struct relay *r);

#endif
