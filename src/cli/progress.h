/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress - a bar on stderr for work that takes longer than a second.
 *
 * Nothing is drawn when stderr is not a terminal, and nothing in the first second. The
 * line is erased at the end, so that it never mixes with the answer. Hand
 * progress_report() with the struct as its context to library calls that take an
 * on_progress callback.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct progress {
    const char *what; /* "verifying the log": borrowed, ours, plain text */
    const struct clock *clock;
    int64_t started, drawn; /* ms */
    bool live;              /* stderr is a terminal */
    bool visible;           /* a line stands on the screen */
};

void progress_start(struct progress *p, const char *what, const struct clock *clock);

/* ctx is a struct progress. `total` 0 means unknown: only the count is shown. */
void progress_report(void *ctx, uint64_t done, uint64_t total);

void progress_finish(struct progress *p); /* erases; for CLEANUP; safe twice */

/* Erase the line of whatever bar is drawn; may be called from a signal handler. */
void progress_interrupt(void);

#endif
