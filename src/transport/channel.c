/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "transport/volley.h"

/* One buffer serves all streams: bytes are valid only until on_bytes() returns. */
static char read_buffer[CHANNEL_READ_BYTES];

static void handle_readable(struct channel *s)
{
    UNINITIALIZED struct err why;
    ssize_t n = s->is_socket ? recv(s->fd, read_buffer, sizeof(read_buffer), 0)
                             : read(s->fd, read_buffer, sizeof(read_buffer));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        s->events->on_bytes(s->ctx, str_of(read_buffer, (size_t)n));
        return;
    }
    if (n < 0)
        err_errno(&why, "read");
    s->ended = true;
    channel_read(s, false);
    if (s->events->on_end)
        s->events->on_end(s->ctx, n < 0 ? &why : NULL);
}

static void update_watch(struct channel *s)
{
    bool owes =
        s->queue.n > s->sent && !s->broken && !s->corked && !loop_chore_is_set(&s->flush);

    if (s->watch)
        loop_watch_set(s->watch, (s->reading && !s->ended ? LOOP_READABLE : 0u) |
                                     (owes ? LOOP_WRITABLE : 0u));
}

/* As send(2) and write(2). What a volley has sent already is not sent again. */
static ssize_t write_once(struct channel *s, str bytes)
{
    if (!s->fired)
        return s->is_socket ? send(s->fd, bytes.p, bytes.n, 0)
                            : write(s->fd, bytes.p, bytes.n);
    s->fired = false;
    if (s->fired_so >= 0)
        return s->fired_so;
    errno = (int)-s->fired_so;
    return -1;
}

/* How much the other side takes now; -1 when it is gone. */
static ssize_t write_some(struct channel *s, str bytes)
{
    size_t done = 0;

    while (done < bytes.n) {
        ssize_t n = write_once(s, str_skip(bytes, done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return -1;
        done += (size_t)n;
        s->taken += (size_t)n;
    }
    return (ssize_t)done;
}

static void handle_writable(struct channel *s)
{
    ssize_t n = write_some(s, str_skip(buf_str(&s->queue), s->sent));
    UNINITIALIZED struct err why;

    if (n < 0) {
        err_errno(&why, "write");
        s->broken = true;
        update_watch(s);
        if (s->events->on_broken)
            s->events->on_broken(s->ctx, &why);
        return;
    }
    s->sent += (size_t)n;
    if (s->sent < s->queue.n)
        return;
    buf_reset(&s->queue);
    s->sent = 0;
    update_watch(s);
    if (s->closing) {
        channel_close(s);
        return;
    }
    if (s->shutting)
        shutdown(s->fd, SHUT_WR);
    if (s->events->on_drained)
        s->events->on_drained(s->ctx);
}

static void on_flush(void *ctx);

static void join(struct channel *s, struct channel **who, struct volley_shot *shots,
                 size_t *count)
{
    if (!s->is_socket || s->fd < 0 || s->broken || s->corked || s->fired ||
        s->queue.n == s->sent)
        return;
    who[*count] = s;
    shots[*count].fd = s->fd;
    shots[(*count)++].bytes = str_skip(buf_str(&s->queue), s->sent);
}

/* It is the turn's end for others, too: all go out together. Each hears of its own when
 * it is its turn. */
static void fire(struct channel *s)
{
    UNINITIALIZED struct volley_shot shots[VOLLEY_MAX];
    UNINITIALIZED struct channel *who[VOLLEY_MAX];
    size_t count = 0;

    join(s, who, shots, &count);
    for (const struct loop_chore *c = loop_chores(s->loop); c && count < VOLLEY_MAX;
         c = c->next) {
        if (c->run == on_flush)
            join(c->ctx, who, shots, &count);
    }
    if (count < 2 || !volley_fire(loop_volley(s->loop), shots, count))
        return;
    for (size_t i = 0; i < count; i++) {
        who[i]->fired = true;
        who[i]->fired_so = shots[i].result;
    }
}

/* The end of the turn. */
static void on_flush(void *ctx)
{
    struct channel *s = ctx;

    if (s->broken || s->corked)
        return;
    if (s->is_socket && !s->fired)
        fire(s);
    handle_writable(s);
    update_watch(s);
}

/* Something must be done before what gathers may leave. */
static bool must_wait(const struct channel *s)
{
    return s->gathers && loop_has_first_chore(s->loop);
}

static void on_ready(void *ctx, unsigned events)
{
    struct channel *s = ctx;

    if ((events & LOOP_WRITABLE) && s->fd >= 0 && must_wait(s))
        loop_chore_set(s->loop, &s->flush);
    else if ((events & LOOP_WRITABLE) && s->fd >= 0)
        handle_writable(s);
    if ((events & LOOP_READABLE) && s->fd >= 0 && s->reading)
        handle_readable(s);
}

/* A descriptor that we were born with may be shared with our parent: opened anew it is
 * our own, and not blocking is nobody else's business. Sockets cannot be opened anew. */
static int open_anew(int fd, int flags)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, (flags & O_ACCMODE) | (flags & O_APPEND) | O_NONBLOCK | O_CLOEXEC |
                          O_NOCTTY);
}

/* A file has an offset that our parent shares and wants to share: it is only duplicated.
 */
static bool can_open_anew(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode));
}

static int take_descriptor(struct channel *s, int fd, bool keep, struct err *err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return err_errno(err, "descriptor %d", fd);
    s->fd = !keep ? fd : can_open_anew(fd) ? open_anew(fd, flags) : -1;
    if (keep && s->fd < 0) {
        s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        s->saved_flags = flags;
    }
    if (s->fd < 0 ||
        (!(flags & O_NONBLOCK) && fcntl(s->fd, F_SETFL, flags | O_NONBLOCK) < 0))
        return err_errno(err, "descriptor %d", fd);
    return 0;
}

int channel_open(struct channel *s, struct loop *l, int fd, bool keep,
                 const struct channel_events *events, void *ctx, struct err *err)
{
    *s = (struct channel){ .fd = -1,
                           .saved_flags = -1,
                           .loop = l,
                           .flush = { .run = on_flush, .ctx = s },
                           .events = events,
                           .ctx = ctx,
                           .queue = { .max = CHANNEL_QUEUE_MAX } };
    if (take_descriptor(s, fd, keep, err) < 0)
        return -1;
    if (loop_watch_new(&s->watch, l, s->fd, on_ready, s, err) < 0) {
        channel_close(s);
        return -1;
    }
    return 0;
}

void channel_read(struct channel *s, bool on)
{
    s->reading = on && !s->ended;
    update_watch(s);
}

/* A queue that never runs quite empty must not keep what has long been taken. */
static void forget_sent(struct channel *s)
{
    if (s->sent < CHANNEL_READ_BYTES || s->sent < s->queue.n / 2)
        return;
    memmove(s->queue.p, s->queue.p + s->sent, s->queue.n - s->sent);
    s->queue.n -= s->sent;
    s->sent = 0;
}

static bool may_gather(const struct channel *s, size_t bytes)
{
    return bytes <= CHANNEL_GATHER_MAX || must_wait(s);
}

/* It has become too much to wait for more. Who has seen it wait hears at the end of the
 * turn that it does not any more. */
static int flush_now(struct channel *s, struct err *err)
{
    ssize_t n = write_some(s, str_skip(buf_str(&s->queue), s->sent));

    if (n < 0) {
        s->broken = true;
        return err_errno(err, "write");
    }
    s->sent += (size_t)n;
    if (s->sent == s->queue.n) {
        buf_reset(&s->queue);
        s->sent = 0;
    } else {
        loop_chore_cancel(s->loop, &s->flush); /* it goes on when there is room */
    }
    update_watch(s);
    return 0;
}

int channel_write(struct channel *s, str bytes, struct err *err)
{
    ssize_t n = 0;

    if (s->broken || s->fd < 0 || s->closing || s->shutting)
        return err_set(err, ERR_PEER, "the other side is gone");
    if (s->queue.n == 0 && s->gathers && may_gather(s, bytes.n))
        loop_chore_set(s->loop, &s->flush);
    else if (s->queue.n == 0 && !s->corked)
        n = write_some(s, bytes);
    if (n < 0) {
        s->broken = true;
        return err_errno(err, "write");
    }
    if ((size_t)n == bytes.n)
        return 0;
    forget_sent(s);
    buf_add(&s->queue, str_skip(bytes, (size_t)n));
    if (s->queue.failed)
        return err_set(err, ERR_LIMIT,
                       "the other side does not read: %zu bytes wait for it",
                       CHANNEL_QUEUE_MAX);
    if (loop_chore_is_set(&s->flush) && !s->corked && !may_gather(s, s->queue.n))
        return flush_now(s, err);
    update_watch(s);
    return 0;
}

void channel_cork(struct channel *s, bool on)
{
    s->corked = on;
    if (on || s->fd < 0 || s->broken || s->queue.n == s->sent)
        return;
    if (s->gathers && may_gather(s, s->queue.n)) {
        loop_chore_set(s->loop, &s->flush);
        return;
    }
    handle_writable(s);
    update_watch(s);
}

size_t channel_queued(const struct channel *s)
{
    return s->broken ? 0 : s->queue.n - s->sent;
}

void channel_finish(struct channel *s)
{
    s->closing = true;
    if (channel_queued(s) == 0)
        channel_close(s);
}

void channel_shut(struct channel *s)
{
    if (s->shutting || s->fd < 0)
        return;
    s->shutting = true;
    if (channel_queued(s) == 0)
        shutdown(s->fd, SHUT_WR);
}

void channel_trim(struct channel *s)
{
    if (s->queue.n == 0)
        buf_release(&s->queue);
}

static void release(struct channel *s)
{
    if (s->fd >= 0 && s->saved_flags >= 0)
        fcntl(s->fd, F_SETFL, s->saved_flags);
    if (s->events)
        file_close(&s->fd);
    buf_release(&s->queue);
    s->sent = 0;
}

static void write_last(struct channel *s)
{
    (void)write_some(s, str_skip(buf_str(&s->queue), s->sent));
}

static void on_last(void *ctx)
{
    struct channel *s = ctx;

    write_last(s);
    release(s);
    free(s);
}

/* Its owner is done with it, but something must be done before its last bytes leave. */
static void leave_behind(struct channel *s)
{
    struct channel *last = malloc(sizeof(*last));

    if (!last)
        return;
    *last = *s;
    last->flush = (struct loop_chore){ .run = on_last, .ctx = last };
    loop_chore_set(s->loop, &last->flush);
    s->queue = (struct buf){ 0 };
    s->fd = -1;
}

/* What was written was written, though it has waited for the turn's end. */
static void give_up_gathering(struct channel *s)
{
    if (!loop_chore_is_set(&s->flush))
        return;
    loop_chore_cancel(s->loop, &s->flush);
    if (s->broken || s->fd < 0)
        return;
    if (must_wait(s))
        leave_behind(s);
    else
        write_last(s);
}

void channel_close(struct channel *s)
{
    loop_watch_free(s->watch); /* before its descriptor */
    s->watch = NULL;
    give_up_gathering(s);
    release(s);
}
