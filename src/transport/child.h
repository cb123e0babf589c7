/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child - a server that we start: its process group, its pipes, its end.
 *
 * It inherits our environment, working directory and stderr, and no descriptor besides.
 * It leads a process group of its own, so that everything it starts can be ended with it.
 * A guardian (a fork of ours in that group) ends the group should we be killed.
 */
#ifndef TRANSPORT_CHILD_H
#define TRANSPORT_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "transport/loop.h"

struct err;

struct child {
    pid_t pid; /* also its process group; 0 when there is none */
    pid_t guardian;
    int guard_fd; /* closed by our death, however it comes */
    int pid_fd;   /* -1 where the kernel has none: then it is asked now and then */
    struct loop_watch *watch;
    struct loop_timer *ask;
    void (*on_exit)(void *ctx, int status); /* as from waitpid(2); once */
    void *ctx;
    bool exited;
};

/* Start argv[0] (searched in PATH). *to is its stdin, *from its stdout; both are the
 * caller's. A command that cannot be run fails here, before anything else happens. */
MUST_CHECK int child_start(struct child *c, struct loop *l, char *const argv[], int *to,
                           int *from, void (*on_exit)(void *ctx, int status), void *ctx,
                           struct err *err);

/* Could argv[0] be started, as far as can be seen without doing it? */
MUST_CHECK int child_check(char *const argv[], struct err *err);

void child_signal(const struct child *c, int number); /* to the whole group */

/* SIGKILL to whatever is left of the group; reap. Safe on a zeroed one, and twice. */
void child_release(struct child *c);

#endif
