/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/file.h"
#include "transport/http_proxy.h"
#include "transport/tls.h"

#define PLAIN_BYTES ((size_t)16 << 10) /* a TLS record */

/* What only opening needs: a connection may live for days, and there may be many. */
struct link_opening {
    struct link_options options;
    int fd;
    struct loop_watch *watch;
    struct loop_timer *timer;
    uint64_t until;           /* loop time */
    bool through;             /* the proxy's tunnel is there */
    struct http_head *answer; /* of the proxy, while it is asked */
    struct resolved addresses;
    size_t at;      /* the address that is tried */
    struct err why; /* the last one did not answer */
};

static void stop_connecting(struct link_opening *o)
{
    loop_watch_free(o->watch);
    o->watch = NULL;
    file_close(&o->fd);
}

static void forget_opening(struct link *l)
{
    struct link_opening *o = l->opening;

    if (!o)
        return;
    stop_connecting(o);
    loop_timer_free(o->timer);
    http_head_free(&o->answer);
    free(o);
    l->opening = NULL;
}

/* It is over, for this reason. */
static void end(struct link *l, const struct err *why)
{
    struct err named;

    if (l->closed)
        return;
    if (why && l->opening && l->opening->options.proxy && !l->opening->through) {
        named = *why;
        err_wrap(&named, "the proxy %s", l->opening->options.proxy->url.authority);
        why = &named;
    }
    link_close(l);
    l->events->on_end(l->ctx, why);
}

/* The peer says no more. Whoever accepted it may still answer. */
static void end_reading(struct link *l)
{
    if (!l->accepted) {
        end(l, NULL);
        return;
    }
    if (l->ended)
        return;
    l->ended = true;
    link_read(l, false);
    l->events->on_end(l->ctx, NULL);
}

/* --- TLS and bytes --- */

static int pay(struct link *l, struct err *err)
{
    str owed = tls_owed(l->tls);
    int r = owed.n && !l->finished ? channel_write(&l->channel, owed, err) : 0;

    tls_paid(l->tls);
    return r;
}

static void become_open(struct link *l)
{
    l->open = true;
    forget_opening(l);
    l->events->on_open(l->ctx);
}

/* One buffer serves all: bytes are valid only until on_bytes() returns. */
static int take_records(struct link *l, struct err *err)
{
    static char plain[PLAIN_BYTES];
    size_t n;

    do {
        int r = tls_read(l->tls, plain, sizeof(plain), &n, err);
        struct err ignored;

        if (r < 0) { /* the alert that says why */
            if (pay(l, &ignored) < 0)
                return -1;
            return -1;
        }
        if (pay(l, err) < 0)
            return -1;
        if (!l->open && tls_is_open(l->tls))
            become_open(l);
        if (n && !l->closed)
            l->events->on_bytes(l->ctx, str_of(plain, n));
    } while (n && !l->closed);
    if (!l->closed && tls_has_ended(l->tls))
        end_reading(l);
    return 0;
}

/* A record of TLS begins with a number below 32. */
static void look_for_tls(struct link *l, str bytes)
{
    l->heard = true;
    if (bytes.n == 0 || bytes.p[0] < 'A' || bytes.p[0] > 'Z')
        return;
    tls_free(l->tls);
    l->tls = NULL;
    l->lacks_tls = l->open = true;
}

static void on_bytes(void *ctx, str bytes)
{
    struct link *l = ctx;
    UNINITIALIZED struct err err;

    if (l->tls && l->accepted && !l->heard)
        look_for_tls(l, bytes);
    if (!l->tls)
        l->events->on_bytes(l->ctx, bytes);
    else if (tls_feed(l->tls, bytes, &err) < 0 || take_records(l, &err) < 0)
        end(l, &err);
}

/* Without the peer's word for it, an end of TLS may be anybody's. That matters where the
 * end of the connection is the end of a message, which no request has. */
static void on_end(void *ctx, const struct err *why)
{
    struct link *l = ctx;
    struct err cut = { 0 };

    if (!why && l->tls && !(l->accepted && l->open)) {
        err_set(&cut, ERR_PEER,
                l->open ? "the connection was cut"
                        : "the connection was closed while TLS was being set up");
        why = &cut;
    }
    if (!why)
        end_reading(l);
    else
        end(l, why);
}

static void on_drained(void *ctx)
{
    struct link *l = ctx;

    if (l->open)
        l->events->on_drained(l->ctx);
}

static void on_broken(void *ctx, const struct err *why)
{
    end(ctx, why);
}

static const struct channel_events channel_events = { on_bytes, on_end, on_drained,
                                                      on_broken };

/* --- a proxy's tunnel --- */

static void secure(struct link *l)
{
    struct err err = { 0 };

    if (tls_new(&l->tls, l->opening->options.trust, l->opening->options.host, &err) < 0 ||
        pay(l, &err) < 0)
        end(l, &err);
}

/* The server speaks only when it is spoken to: what follows the head is nobody's. */
static void on_tunnel_bytes(void *ctx, str bytes)
{
    struct link *l = ctx;
    struct link_opening *o = l->opening;
    struct err err = { 0 };
    enum http_verdict v;
    size_t used = 0;

    v = http_head_feed(o->answer, bytes, &used);
    if (v == HTTP_MORE)
        return;
    if (v == HTTP_REFUSED)
        err_set(&err, ERR_PEER, "its answer is no HTTP: %s",
                http_refusal_why(o->answer->refusal));
    else if (http_proxy_check(o->answer, &err) == 0 && used < bytes.n)
        err_set(&err, ERR_PEER, "it says more than it was asked");
    if (err.code != ERR_NONE) {
        end(l, &err);
        return;
    }
    o->through = true;
    l->channel.events = &channel_events;
    http_head_free(&o->answer);
    secure(l);
}

static void on_tunnel_end(void *ctx, const struct err *why)
{
    static const struct err closed = { ERR_PEER, "it closed the connection" };

    end(ctx, why ? why : &closed);
}

static const struct channel_events tunnel_events = { on_tunnel_bytes, on_tunnel_end,
                                                     on_drained, on_broken };

static void ask_for_tunnel(struct link *l)
{
    struct link_opening *o = l->opening;
    CLEANUP(buf_release) struct buf request = { .max = HTTP_HEAD_MAX };
    struct err err = { 0 };

    l->channel.events = &tunnel_events;
    if (!http_head_make(&o->answer, HTTP_RESPONSE)) {
        err_set(&err, ERR_NOMEM, "no memory for a proxy's answer");
        end(l, &err);
        return;
    }
    if (http_proxy_put_connect(&request, o->options.proxy, o->options.host,
                               o->options.port, &err) < 0 ||
        channel_write(&l->channel, buf_str(&request), &err) < 0)
        end(l, &err);
    if (request.p)
        explicit_bzero(request.p, request.cap); /* there is a password in it */
}

/* --- connecting --- */

static void try_next(struct link *l);

static const char *host_of(const struct link *l)
{
    const struct link_options *o = &l->opening->options;

    return o->proxy ? o->proxy->url.host : o->host;
}

static uint16_t port_of(const struct link *l)
{
    const struct link_options *o = &l->opening->options;

    return o->proxy ? o->proxy->url.port : o->port;
}

/* For the reason in errno. */
static int cannot_connect(const struct link *l, struct err *err)
{
    return err_errno(err, "cannot connect to '%s' port %u", host_of(l), port_of(l));
}

static void begin(struct link *l)
{
    struct link_opening *o = l->opening;
    struct err err = { 0 };
    uint64_t now = loop_now(l->loop);
    int fd = o->fd;

    loop_watch_free(o->watch);
    o->watch = NULL;
    o->fd = -1;
    loop_timer_set(o->timer, o->until > now ? o->until - now : 0, false);
    if (channel_open(&l->channel, l->loop, fd, false, &channel_events, l, &err) < 0) {
        end(l, &err);
        return;
    }
    l->has_channel = l->channel.is_socket = l->channel.gathers = true;
    channel_read(&l->channel, l->reading);
    if (!o->options.trust)
        become_open(l);
    else if (o->options.proxy)
        ask_for_tunnel(l);
    else
        secure(l);
}

static void on_connected(void *ctx, unsigned events)
{
    struct link *l = ctx;
    struct link_opening *o = l->opening;
    int code = 0;
    socklen_t n = sizeof(code);

    (void)events;
    if (getsockopt(o->fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
        code = errno;
    if (code == 0) {
        begin(l);
        return;
    }
    errno = code;
    cannot_connect(l, &o->why);
    stop_connecting(o);
    try_next(l);
}

/* A peer that vanished without a word is found out within a minute or so. */
static void set_options(int fd)
{
    const int on = 1, idle = LINK_SILENCE, interval = 10, count = 3;
    const unsigned unheard = LINK_SILENCE * 1000;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard)) < 0)
        return; /* it works without, only not as well */
}

static int start_connect(struct link *l, struct err *err)
{
    struct link_opening *o = l->opening;
    const bool v6 = o->addresses.at[o->at].v6;
    const void *bytes = o->addresses.at[o->at].bytes;
    const uint16_t port = port_of(l);
    struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    const struct sockaddr *to = v6 ? (const void *)&in6 : (const void *)&in4;

    if (v6)
        memcpy(&in6.sin6_addr, bytes, 16);
    else
        memcpy(&in4.sin_addr, bytes, 4);
    o->fd =
        socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (o->fd < 0)
        return cannot_connect(l, err);
    set_options(o->fd);
    if (connect(o->fd, to, v6 ? sizeof(in6) : sizeof(in4)) < 0 && errno != EINPROGRESS) {
        cannot_connect(l, err);
        file_close(&o->fd);
        return -1;
    }
    if (loop_watch_new(&o->watch, l->loop, o->fd, on_connected, l, err) < 0) {
        file_close(&o->fd);
        return -1;
    }
    loop_watch_set(o->watch, LOOP_WRITABLE);
    return 0;
}

static void try_next(struct link *l)
{
    struct link_opening *o = l->opening;
    uint64_t now = loop_now(l->loop);
    struct err why;

    while (++o->at < o->addresses.count && now < o->until) {
        uint64_t wait = o->until - now;

        if (start_connect(l, &o->why) < 0)
            continue;
        if (o->at + 1 < o->addresses.count && wait > LINK_ADDRESS_WAIT)
            wait = LINK_ADDRESS_WAIT;
        loop_timer_set(o->timer, wait, false);
        return;
    }
    why = o->why; /* it goes with the link */
    end(l, &why);
}

static void start_trying(struct link *l)
{
    l->opening->at = (size_t)-1;
    try_next(l);
}

static void on_resolved(void *ctx, const struct resolved *answer)
{
    struct link *l = ctx;
    struct err err = { 0 };

    l->looking = false;
    if (l->closed)
        return;
    l->opening->addresses = *answer;
    if (answer->count == 0) {
        err_set(&err, ERR_NOTFOUND, "there is no address for the host '%s'", host_of(l));
        end(l, &err);
        return;
    }
    start_trying(l);
}

static bool is_literal(struct resolved *out, const char *host)
{
    *out = (struct resolved){ .count = 1 };
    if (inet_pton(AF_INET, host, out->at[0].bytes) == 1)
        return true;
    out->at[0].v6 = inet_pton(AF_INET6, host, out->at[0].bytes) == 1;
    return out->at[0].v6;
}

static void start(struct link *l)
{
    struct err err = { 0 };

    l->opening->until = loop_now(l->loop) + LINK_OPEN_WAIT;
    if (is_literal(&l->opening->addresses, host_of(l))) {
        start_trying(l);
        return;
    }
    l->looking = true;
    if (resolve(l->opening->options.resolver, host_of(l), on_resolved, l, &err) == 0)
        return;
    l->looking = false;
    end(l, &err);
}

/* The first time: begin. Later: something took too long. */
static void on_time(void *ctx)
{
    struct link *l = ctx;
    struct link_opening *o = l->opening;
    struct err err = { 0 };

    if (o->until == 0) {
        start(l);
    } else if (!l->has_channel) {
        stop_connecting(o);
        err_set(&o->why, ERR_TIMEOUT, "cannot connect to '%s' port %u: no answer",
                host_of(l), port_of(l));
        try_next(l);
    } else {
        err_set(&err, ERR_TIMEOUT,
                o->options.proxy && !o->through ? "it does not answer"
                                                : "TLS is not answered");
        end(l, &err);
    }
}

int link_open(struct link *l, const struct link_options *options,
              const struct link_events *events, void *ctx, struct err *err)
{
    *l = (struct link){
        .loop = options->loop, .events = events, .ctx = ctx, .reading = true
    };
    l->channel.fd = -1;
    l->opening = calloc(1, sizeof(*l->opening));
    if (!l->opening)
        return err_set(err, ERR_NOMEM, "no memory for a connection");
    l->opening->options = *options;
    l->opening->fd = -1;
    if (loop_timer_new(&l->opening->timer, options->loop, on_time, l, err) < 0) {
        forget_opening(l);
        return -1;
    }
    loop_timer_set(l->opening->timer, 0, false);
    return 0;
}

int link_accept(struct link *l, struct loop *loop, int fd, struct tls_identity *identity,
                const struct link_events *events, void *ctx, struct err *err)
{
    *l = (struct link){ .loop = loop,
                        .events = events,
                        .ctx = ctx,
                        .reading = true,
                        .accepted = true,
                        .open = !identity };
    if (channel_open(&l->channel, loop, fd, false, &channel_events, l, err) < 0)
        return -1;
    l->has_channel = l->channel.is_socket = l->channel.gathers = true;
    if (identity && tls_accept(&l->tls, identity, err) < 0) {
        link_close(l);
        return -1;
    }
    channel_read(&l->channel, true);
    return 0;
}

void link_read(struct link *l, bool on)
{
    l->reading = on;
    if (l->has_channel)
        channel_read(&l->channel, on);
}

int link_write(struct link *l, str bytes, struct err *err)
{
    if (l->closed || !l->open)
        return err_set(err, ERR_PEER, "the connection is closed");
    if (!l->tls)
        return channel_write(&l->channel, bytes, err);
    return tls_write(l->tls, bytes, err) < 0 ? -1 : pay(l, err);
}

size_t link_queued(const struct link *l)
{
    return l->has_channel ? channel_queued(&l->channel) : 0;
}

uint64_t link_taken(const struct link *l)
{
    return l->has_channel ? l->channel.taken : 0;
}

bool link_is_cut(const struct link *l, bool half)
{
    struct pollfd p = { .fd = l->channel.fd, .events = half ? POLLRDHUP : 0 };

    return l->has_channel && poll(&p, 1, 0) > 0 && p.revents;
}

void link_trim(struct link *l)
{
    if (l->has_channel)
        channel_trim(&l->channel);
}

void link_finish(struct link *l)
{
    struct err ignored;

    if (!l->has_channel)
        return;
    if (l->tls && l->open) {
        tls_finish(l->tls);
        if (pay(l, &ignored) < 0)
            return; /* there is nobody to be told */
    }
    l->finished = true;
    channel_shut(&l->channel);
}

void link_reset(struct link *l)
{
    const struct linger at_once = { .l_onoff = 1 };

    if (l->has_channel) /* if it cannot be set, it ends as others do */
        (void)setsockopt(l->channel.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    link_close(l);
}

void link_close(struct link *l)
{
    if (l->closed)
        return;
    l->closed = true;
    forget_opening(l);
    if (l->has_channel)
        channel_close(&l->channel);
    l->has_channel = false;
    tls_free(l->tls);
    l->tls = NULL;
}

bool link_is_busy(const struct link *l)
{
    return l->looking;
}
