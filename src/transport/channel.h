/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel - bytes in or out of one descriptor, without ever blocking the loop.
 *
 * A writer queues what the other side does not take at once; whoever writes looks at
 * channel_queued() and stops its own source above its limit, so that a reader that
 * stalls stops the writer and memory stays flat.
 */
#ifndef TRANSPORT_CHANNEL_H
#define TRANSPORT_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "transport/loop.h"

struct err;

#define CHANNEL_READ_BYTES ((size_t)64 << 10) /* of one read */
#define CHANNEL_QUEUE_MAX  ((size_t)80 << 20) /* bytes that one stream may owe */
#define CHANNEL_GATHER_MAX ((size_t)32 << 10) /* bytes that wait for the turn's end */

/* Called from the loop. A NULL hook is left out. */
struct channel_events {
    void (*on_bytes)(void *ctx, str bytes);              /* valid until it returns */
    void (*on_end)(void *ctx, const struct err *why);    /* of reading; NULL: EOF */
    void (*on_drained)(void *ctx);                       /* the queue is empty again */
    void (*on_broken)(void *ctx, const struct err *why); /* the reader is gone: once */
};

struct channel {
    int fd;
    int saved_flags; /* to restore, where the descriptor is shared with others; -1 */
    struct loop *loop;
    struct loop_watch *watch;
    struct loop_chore flush; /* what was gathered waits for it */
    const struct channel_events *events;
    void *ctx;
    bool reading, ended, broken, closing, corked, shutting;
    bool is_socket; /* as its owner knows: there are shorter ways than read and write */
    bool gathers;   /* as its owner wants: what a turn of the loop writes goes out at its
                       end, see channel_write() */
    bool fired;     /* its part of a volley went out: */
    ssize_t fired_so; /* how; as volley_shot.result, of the front of what is queued */
    struct buf queue;
    size_t sent;    /* of the queue */
    uint64_t taken; /* bytes that the other side took, of all */
};

/* Take over the descriptor (not its closing, if `keep` is set: 0, 1, 2). Does not read
 * yet. */
MUST_CHECK int channel_open(struct channel *s, struct loop *l, int fd, bool keep,
                            const struct channel_events *events, void *ctx,
                            struct err *err);

void channel_read(struct channel *s, bool on); /* begin or stop reading */

/* Write or queue all of it. -1 when the other side is gone or CHANNEL_QUEUE_MAX is full.
 * With `gathers` up to CHANNEL_GATHER_MAX bytes are only queued until the loop has seen
 * to all that is ready: each write may wake somebody who takes the processor from us.
 * That
 * the other side is gone is then found out later. While a chore of the loop is due that
 * comes first, nothing of it leaves, however much it is. */
MUST_CHECK int channel_write(struct channel *s, str bytes, struct err *err);

/* While corked nothing is written, only queued: many small messages, one write. What
 * gathers goes out at the end of the turn in which it is uncorked. */
void channel_cork(struct channel *s, bool on);
size_t channel_queued(const struct channel *s);

/* No more will be written: close the descriptor once the queue is empty. */
void channel_finish(struct channel *s);

/* Of a socket: the same for its writing side only; reading goes on. */
void channel_shut(struct channel *s);
void channel_trim(struct channel *s); /* free an empty queue's memory: it will idle */

/* At once, but for what was gathered: that is tried once, now or when nothing comes first
 * any more. Safe on a zeroed or closed one. */
void channel_close(struct channel *s);

#endif
