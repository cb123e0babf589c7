/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake - the messages of one direction, put together from spans.
 *
 * A message of up to INTAKE_HOLD bytes is held whole. A longer one goes into a spool file
 * (without a name, inside the audit directory) and passes on as it comes, except for its
 * last INTAKE_HOLD bytes, which wait until its evidence is written. Memory does not grow
 * with it. One that is to be judged first (`whole`) does not pass before its end; one
 * that is too large for that is refused, or passes unjudged (`yields`).
 */
#ifndef PIPELINE_INTAKE_H
#define PIPELINE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

struct err;

#define INTAKE_HOLD  ((size_t)64 << 10)
#define INTAKE_WHOLE ((size_t)64 << 20) /* the largest message that can be judged */

struct intake {
    const char *dir;    /* where to spool; borrowed */
    uint64_t max_bytes; /* of one message */
    struct buf held;    /* the beginning of a message, or the window of a long one */
    bool whole;         /* messages that are short yet: nothing passes before the end */
    bool yields;        /* …unless they are larger than INTAKE_WHOLE */
    bool kept;          /* that is so of this one, which is long */
    bool may_lose;      /* one that cannot be spooled passes all the same */
    bool lost;          /* that is so of this one */
    int spool;          /* -1 while the message is short */
    uint64_t bytes;     /* of the message so far */
    struct mapping map; /* of the spool, while the message is being looked at */
};

void intake_init(struct intake *i, const char *dir, uint64_t max_bytes);
void intake_release(struct intake *i);

/* What came of a span. */
enum intake_step {
    INTAKE_MORE,    /* nothing to do yet */
    INTAKE_PASS,    /* a long message: `pass` may go on now */
    INTAKE_MESSAGE, /* complete: `frame` is all of it, `pass` is what has not gone on yet
                     */
    INTAKE_LOST,    /* its end, of one that could not be spooled: only `pass` */
};

struct intake_result {
    enum intake_step step;
    str frame;
    str pass;
    bool streamed; /* the beginning has gone on already */
};

/* The texts are valid until the next call; after INTAKE_MESSAGE call intake_done().
 * ERR_LIMIT when the message is larger than it may be; ERR_IO when it cannot be spooled
 * and must not be lost. With INTAKE_LOST, *err says why it could not be spooled.
 */
MUST_CHECK int intake_add(struct intake *i, str span, bool end, struct intake_result *out,
                          struct err *err);
void intake_done(struct intake *i);

#endif
