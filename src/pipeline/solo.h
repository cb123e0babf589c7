/* SPDX-License-Identifier: Apache-2.0 */
/*
 * solo - a process that is one session: its client is who started us, over stdin and
 * stdout.
 */
#ifndef PIPELINE_SOLO_H
#define PIPELINE_SOLO_H

#include <stdbool.h>

#include "base/attr.h"
#include "pipeline/relay.h"

struct err;

/* How it went. */
struct solo_outcome {
    bool started; /* the server ran */
    struct relay_outcome session;
    bool evidence_lost; /* a gap */
    bool interrupted;   /* SIGINT */

    /* Somebody else's session is still being finished, by a thread that uses the log: it
     * must not be closed, and the process should leave by _exit(). The next recorder does
     * the rest. */
    bool abandoned;
};

/* Returns when the session is over and its evidence is as complete as it can be. Fails
 * when the server cannot be started or evidence cannot be begun: then nothing has
 * happened; and when the end could not be recorded (outcome->started is true). *outcome
 * is set whatever happens. */
MUST_CHECK int solo_run(const struct relay_options *options, struct solo_outcome *outcome,
                        struct err *err);

#endif
