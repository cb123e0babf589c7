/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latch - one holder at a time among processes, without a system call: a word in a mapped
 * file. For what is taken and let go with every batch of events.
 *
 *     latch_try    take it, if nobody has it
 *     latch_free   let go
 *
 * The word names who held it last, so that who takes it again knows whether anybody else
 * had it in between. A holder that died is found by latch_break(): each user has a slot
 * of the file locked for as long as it lives (F_OFD_SETLK), and the kernel lets go of
 * that however a process ends.
 *
 * It works where all who have the file open share the same memory: on one machine and a
 * file system of that machine (latch_fits). Elsewhere the file stays empty, and its users
 * fall back on flock(2): what the file holds decides, the same for all.
 */
#ifndef EVIDENCE_LATCH_H
#define EVIDENCE_LATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

struct err;

#define LATCH_BYTES     24   /* of the file: magic, the word, how often it was opened */
#define LATCH_USERS_MAX 4096 /* at once */

struct latch_file;

/* All zero is closed. */
struct latch {
    int fd; /* borrowed; its open file description is this user's alone */
    struct latch_file *file;
    uint64_t ours;  /* the word when we let go */
    unsigned forks; /* that led to the process that opened it */
};

/* Is this file on a file system where a latch works? */
bool latch_fits(int fd);

/* Make a latch of an empty file, or of one that somebody left half made; one that is
 * whole stays as it is, anything else is ERR_FORMAT. Under flock(2) on the file, so that
 * of many one does. */
MUST_CHECK int latch_make(int fd, struct err *err);

/* *is: whether the file is a latch; an empty one is not, anything else is ERR_FORMAT. */
MUST_CHECK int latch_is(int fd, bool *is, struct err *err);

MUST_CHECK int latch_open(struct latch *l, int fd, struct err *err);
void latch_close(struct latch *l); /* safe on a closed one; the slot goes with the fd */
bool latch_is_open(const struct latch *l);

enum latch_taken {
    LATCH_BUSY,    /* somebody has it */
    LATCH_OURS,    /* taken; nobody else had it since we let go */
    LATCH_CHANGED, /* taken; somebody may have left anything */
};

enum latch_taken latch_try(struct latch *l);
void latch_free(struct latch *l);

/* When it has been busy for a while: take it away from a holder that is no more. */
void latch_break(struct latch *l);

/* Are we a fork of the process that opened it? Then it must not be used: the two would
 * take each other for themselves. */
bool latch_is_inherited(const struct latch *l);

pid_t latch_holder(const struct latch *l); /* or the last one; a hint for a message */

#endif
