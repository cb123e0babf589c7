/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volley - what goes out on many sockets, in one system call. The only module that
 * includes liburing.
 *
 * Each send may wake somebody who takes the processor from us before the next; with one
 * call for all of them they are woken together, and we have done. Where the kernel has no
 * io_uring, or does not let us have it, there is none, and everybody sends by himself.
 */
#ifndef TRANSPORT_VOLLEY_H
#define TRANSPORT_VOLLEY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"

#define VOLLEY_MAX 64 /* sends of one volley */

struct volley;

struct volley_shot {
    int fd; /* a socket */
    str bytes;
    ssize_t result; /* how much of it was taken, or -errno; -EAGAIN: nothing, for now */
};

/* Send all of them, without ever waiting for a reader. False: there is no such thing
 * here, and nothing was sent. Made at *v with the first one. */
bool volley_fire(struct volley **v, struct volley_shot *shots, size_t count);

void volley_free(struct volley *v); /* NULL is fine */

#endif
