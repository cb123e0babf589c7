/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - why a call failed: a code to branch on and a sentence to show.
 *
 * A function that can fail returns 0 or -1 and takes `struct err *err` last.
 * On success *err is untouched. On failure it is set once, where the fault is
 * known; callers add context on the way up with err_wrap().
 *
 * Only for "could not find out". A broken chain or a refused call is an answer,
 * and answers have enums of their own.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/attr.h"

enum err_code {
    ERR_NONE,
    ERR_NOMEM,   /* malloc said no */
    ERR_LIMIT,   /* one of our own limits said no */
    ERR_FORMAT,  /* input is not what it must be */
    ERR_REFUSED, /* right call, wrong moment */
    ERR_NOTFOUND,
    ERR_EXISTS,
    ERR_DAMAGE, /* evidence on disk is not what was written: never repaired silently */
    ERR_PEER,   /* the other side is gone or broke the protocol */
    ERR_TIMEOUT,
    ERR_IO, /* the system said no; msg carries strerror() */
};

struct err {
    enum err_code code;
    char msg[508]; /* one sentence, no newline, never a secret; foreign bytes escaped */
};

/* Record a failure. Returns -1, so that `return err_set(...)` reads well.
 * Bytes of the finished sentence that are not printable are escaped. */
COLD int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Record a failed system call: "<what>: <strerror(errno)>". Returns -1. */
COLD int err_errno(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Put context in front: "open pack" + ": " + the message so far. Returns -1. */
COLD int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
