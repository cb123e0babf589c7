/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/file.h"
#include "transport/http_server_internal.h"
#include "transport/listen_address.h"

#define BACKLOG     1024
#define ACCEPT_ONCE 64   /* connections of one turn: others want theirs, too */
#define TICK_MAX    1000 /* ms: how coarse the waits are */
#define PORT_TRIES  16   /* for one that is free on every address */
#define SCRATCH_MAX (JOIN_MAX + 2 * HTTP_HEAD_MAX)

static const struct http_server_limits usual_limits = {
    .head_wait = HTTP_SERVER_HEAD_WAIT,
    .body_wait = HTTP_SERVER_BODY_WAIT,
    .idle_wait = HTTP_SERVER_IDLE_WAIT,
    .stall_wait = HTTP_SERVER_STALL_WAIT,
    .linger_wait = HTTP_SERVER_LINGER_WAIT,
    .conns_max = HTTP_SERVER_CONNS_MAX,
    .body_max = HTTP_SERVER_BODY_MAX,
    .bodies_max = HTTP_SERVER_BODIES_MAX,
};

static void say(struct http_server *s, const char *sentence)
{
    if (s->options.events->say)
        s->options.events->say(s->options.ctx, sentence);
}

/* --- connections --- */

void served_attend(struct served *c)
{
    struct http_server *s = c->server;

    if (c->due)
        return;
    c->due = true;
    c->next_due = s->due;
    s->due = c;
    loop_chore_set(s->options.loop, &s->attend);
}

void served_die(struct served *c)
{
    if (c->dead)
        return;
    c->dead = true;
    link_close(&c->link);
    served_attend(c);
}

static void set_listening(struct http_server *s, bool on)
{
    s->paused = !on;
    for (size_t i = 0; i < s->listener_count; i++) {
        if (s->listeners[i].watch)
            loop_watch_set(s->listeners[i].watch, on ? LOOP_READABLE : 0);
    }
}

/* One connection has gone, or time has passed. */
static void accept_again(struct http_server *s)
{
    if (!s->paused || s->finishing || s->count >= s->limits.conns_max ||
        loop_now(s->options.loop) < s->pause_until)
        return;
    set_listening(s, true);
}

static void free_served(struct served *c)
{
    struct http_server *s = c->server;

    link_close(&c->link);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->all = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->count--;
    s->pause_until = 0; /* here is a descriptor */
    served_drop_body(c);
    buf_release(&c->in);
    http_head_free(&c->head);
    free(c);
}

/* As long as it is `due` nothing puts it on the list again, and it may be freed. */
static void look_after(struct served *c)
{
    struct http_server *s = c->server;

    if (c->dead) {
        if (c->open) {
            s->open_requests--;
            c->open = false;
            s->options.events->on_gone(s->options.ctx, &c->request);
        }
        free_served(c);
        return;
    }
    c->due = false;
    served_resume(c);
}

/* What was put off until no call of the owner's was below us. */
static void on_attend(void *ctx)
{
    struct http_server *s = ctx;
    struct served *c = s->due;

    s->due = NULL;
    while (c) {
        struct served *next = c->next_due;

        look_after(c);
        c = next;
    }
    accept_again(s);
}

/* --- time --- */

static void check_stall(struct served *c, uint64_t now)
{
    uint64_t taken = link_taken(&c->link);

    if (link_queued(&c->link) == 0) {
        c->stall_until = 0;
    } else if (c->stall_until == 0 || taken != c->stall_taken) {
        c->stall_taken = taken;
        c->stall_until = now + c->server->limits.stall_wait;
    } else if (now >= c->stall_until) {
        served_die(c);
    }
    if (c->lingering && c->stall_until)
        c->until = now + c->server->limits.linger_wait; /* it begins behind the answer */
}

/* Whoever is not read cannot be heard leaving. */
static void check_presence(struct served *c)
{
    bool streams = c->begun && (c->chunked || c->until_close);

    if (c->open && (c->eof || c->in.n >= HTTP_SERVER_PIPELINE_MAX) &&
        link_is_cut(&c->link, streams && !c->eof))
        served_die(c);
}

/* One timer for all, so that a connection costs none: it is coarse, that is enough. */
static void on_tick(void *ctx)
{
    struct http_server *s = ctx;
    uint64_t now = loop_now(s->options.loop);

    for (struct served *c = s->all; c; c = c->next) {
        if (!c->dead)
            check_stall(c, now);
        if (!c->dead)
            check_presence(c);
        if (c->dead || c->lingering || c->started || c->open) {
            if (!c->dead && c->until && now >= c->until)
                served_expire(c);
            continue;
        }
        http_head_free(&c->head); /* it idles, and should cost little */
        link_trim(&c->link);
        if (now >= c->until)
            served_expire(c);
    }
    accept_again(s);
    if (!s->all && (!s->paused || s->finishing))
        loop_timer_stop(s->tick);
}

static void start_ticking(struct http_server *s)
{
    const struct http_server_limits *l = &s->limits;
    const uint64_t waits[] = { l->head_wait, l->body_wait, l->idle_wait, l->stall_wait,
                               l->linger_wait };
    uint64_t tick = TICK_MAX;

    if (loop_timer_is_set(s->tick))
        return;
    for (size_t i = 0; i < COUNT(waits); i++) {
        if (waits[i] / 4 < tick)
            tick = waits[i] / 4 + 1;
    }
    loop_timer_set(s->tick, tick, true);
}

/* --- accepting --- */

static void name_peer(struct served *c, const struct sockaddr_storage *from)
{
    const struct sockaddr_in *in4 = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;
    bool v6 = from->ss_family == AF_INET6;

    if (!inet_ntop(from->ss_family,
                   v6 ? (const void *)&in6->sin6_addr : (const void *)&in4->sin_addr,
                   c->peer, sizeof(c->peer)))
        c->peer[0] = 0;
}

static void take_connection(struct http_server *s, int fd,
                            const struct sockaddr_storage *from)
{
    struct served *c = calloc(1, sizeof(*c));
    struct err err = { 0 };

    if (!c) {
        file_close(&fd);
        return;
    }
    c->server = s;
    if (link_accept(&c->link, s->options.loop, fd, s->options.identity, &served_events, c,
                    &err) < 0) {
        say(s, err.msg);
        free(c);
        return;
    }
    buf_init(&c->body, s->limits.body_max);
    c->frame.verdict = HTTP_DONE;
    name_peer(c, from);
    c->until = loop_now(s->options.loop) + s->limits.head_wait;
    c->next = s->all;
    if (c->next)
        c->next->prev = c;
    s->all = c;
    s->count++;
    start_ticking(s);
}

static bool no_more_descriptors(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

/* The one that waits cannot be taken: asking again at once would only be busy. */
static void pause_accepting(struct http_server *s)
{
    if (!s->said)
        say(s, "no descriptor is left: new connections have to wait");
    s->said = true;
    s->pause_until = loop_now(s->options.loop) + HTTP_SERVER_ACCEPT_WAIT;
    set_listening(s, false);
    start_ticking(s);
}

static void on_connection(void *ctx, unsigned events)
{
    struct http_listener *l = ctx;
    struct http_server *s = l->server;

    (void)events;
    for (int i = 0; i < ACCEPT_ONCE && s->count < s->limits.conns_max; i++) {
        struct sockaddr_storage from = { 0 };
        socklen_t n = sizeof(from);
        int fd =
            accept4(l->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && no_more_descriptors(errno)) {
            pause_accepting(s);
            return;
        }
        if (fd < 0)
            return; /* nobody more, or one that has gone again */
        s->said = false;
        take_connection(s, fd, &from);
    }
    if (s->count >= s->limits.conns_max)
        set_listening(s, false);
}

/* --- listening --- */

/* What is accepted inherits these. */
static int set_socket_options(int fd, bool v6)
{
    const int on = 1, idle = LINK_SILENCE, interval = 10, count = 3;
    const unsigned unheard = HTTP_SERVER_STALL_WAIT;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)) < 0)
        return -1;
    return setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage at = { 0 };
    socklen_t n = sizeof(at);

    if (getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&at)->sin6_port
                                          : ((const struct sockaddr_in *)&at)->sin_port);
}

/* On one address, at s->port; which becomes known with the first. -1 with errno. */
static int listen_on(struct http_server *s, const struct addrinfo *a)
{
    struct http_listener *l = &s->listeners[s->listener_count];
    struct sockaddr_storage at = { 0 };
    bool v6 = a->ai_family == AF_INET6;

    memcpy(&at, a->ai_addr, a->ai_addrlen);
    if (v6)
        ((struct sockaddr_in6 *)&at)->sin6_port = htons(s->port);
    else
        ((struct sockaddr_in *)&at)->sin_port = htons(s->port);
    l->server = s;
    l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return -1;
    if (set_socket_options(l->fd, v6) < 0 ||
        bind(l->fd, (const struct sockaddr *)&at, a->ai_addrlen) < 0 ||
        listen(l->fd, BACKLOG) < 0) {
        int code = errno;

        file_close(&l->fd);
        errno = code;
        return -1;
    }
    s->port = bound_port(l->fd);
    s->listener_count++;
    return 0;
}

static void close_listeners(struct http_server *s)
{
    for (size_t i = 0; i < s->listener_count; i++) {
        loop_watch_free(s->listeners[i].watch);
        s->listeners[i].watch = NULL;
        file_close(&s->listeners[i].fd);
    }
    s->listener_count = 0;
}

/* On all addresses of the host that this machine has (it may have no IPv6). -1 with
 * errno. */
static int listen_on_all(struct http_server *s, struct addrinfo *const lists[static 2])
{
    int code = EADDRNOTAVAIL;

    s->port = s->options.port;
    for (size_t i = 0; i < 2; i++) {
        for (const struct addrinfo *a = lists[i]; a; a = a->ai_next) {
            if (s->listener_count == HTTP_SERVER_ADDRESSES || listen_on(s, a) == 0)
                continue;
            code = errno;
            if (code == EADDRNOTAVAIL || code == EAFNOSUPPORT)
                continue;
            close_listeners(s);
            errno = code;
            return -1;
        }
    }
    errno = code;
    return s->listener_count ? 0 : -1;
}

static int start_listening(struct http_server *s, struct err *err)
{
    const char *host = s->options.host;
    struct addrinfo *lists[2] = { NULL, NULL };
    int r = -1;

    if (listen_host_look_up(lists, host, err) < 0)
        return -1;
    for (int i = 0; i < PORT_TRIES && r < 0; i++) {
        r = listen_on_all(s, lists);
        if (s->options.port || errno != EADDRINUSE)
            break; /* only a port that we chose can be another one */
    }
    if (r < 0)
        err_errno(err, "cannot listen on '%s', port %u", host, s->options.port);
    listen_host_free(lists);
    return r;
}

static int watch_listeners(struct http_server *s, struct err *err)
{
    for (size_t i = 0; i < s->listener_count; i++) {
        if (loop_watch_new(&s->listeners[i].watch, s->options.loop, s->listeners[i].fd,
                           on_connection, &s->listeners[i], err) < 0)
            return -1;
    }
    set_listening(s, true);
    return 0;
}

/* --- the server --- */

int http_server_open(struct http_server **out, const struct http_server_options *options,
                     struct err *err)
{
    struct http_server *s = calloc(1, sizeof(*s));

    if (!s)
        return err_set(err, ERR_NOMEM, "no memory for a server");
    s->options = *options;
    s->limits = options->limits ? *options->limits : usual_limits;
    s->date_second = INT64_MIN;
    buf_init(&s->scratch, SCRATCH_MAX);
    s->attend = (struct loop_chore){ .run = on_attend, .ctx = s };
    if (loop_timer_new(&s->tick, options->loop, on_tick, s, err) < 0 ||
        start_listening(s, err) < 0 || watch_listeners(s, err) < 0) {
        http_server_free(s);
        return -1;
    }
    s->options.host = NULL; /* was the caller's, for the call */
    *out = s;
    return 0;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

size_t http_server_open_requests(const struct http_server *s)
{
    return s->open_requests;
}

size_t http_server_connections(const struct http_server *s)
{
    return s->count;
}

void http_server_finish(struct http_server *s)
{
    s->finishing = true;
    close_listeners(s);
    for (struct served *c = s->all; c; c = c->next) {
        if (!c->open && !c->started && c->in.n == 0)
            served_linger(c);
    }
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    close_listeners(s);
    while (s->all)
        free_served(s->all);
    loop_timer_free(s->tick);
    loop_chore_cancel(s->options.loop, &s->attend);
    buf_release(&s->scratch);
    free(s);
}
