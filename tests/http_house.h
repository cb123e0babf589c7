/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_house - a real HTTP server in a thread of its own, and clients that are plain
 * sockets which block. What its owner does with a request stands in the path.
 */
#ifndef TESTS_HTTP_HOUSE_H
#define TESTS_HTTP_HOUSE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "tests/tap.h"
#include "transport/http_encode.h"
#include "transport/http_server.h"
#include "transport/loop.h"
#include "transport/tls.h"

#define PATIENCE 20000 /* ms that a client waits for what must come */
#define CLOSE    "Host: h\r\nConnection: close\r\n"
#define LATER    300 /* ms until /later is answered */
#define BIG      ((size_t)24 << 20)

/* --- the owner: what it does stands in the path --- */

struct house {
    struct loop *loop;
    struct http_server *server;
    struct loop_watch *bell; /* rings: finish or stop */
    struct loop_timer *timer;
    int ring;
    pthread_t thread;
    uint16_t port;
    struct http_request *waiting;
    atomic_int heads, requests, gone, drained, said, rung;
    atomic_uint open, conns;
    atomic_bool finish, stop, floods, remembers;
    struct http_server_limits limits;
    struct tls_identity *identity;
};

static char *big; /* BIG bytes */

static inline int64_t fixed_time(void *ctx)
{
    (void)ctx;
    return 784111777000; /* the example of RFC 9110 */
}

static const struct clock clock_fixed = { fixed_time, NULL };

static inline str path(const struct http_request *r)
{
    return r->head->parts.path;
}

static inline bool on_head(void *ctx, struct http_request *r)
{
    struct house *h = ctx;

    h->heads++;
    if (!str_starts(path(r), STR("/no")))
        return true;
    http_reply(r, 401, (str){ 0 }, STR("no"));
    return false;
}

static inline void stream(struct house *h, struct http_request *r, str what)
{
    if (str_is(what, "/length")) {
        http_reply_begin(r, 200, (str){ 0 }, 6);
        http_reply_add(r, STR("abc"));
        http_reply_add(r, STR("defghi")); /* three too many */
        http_reply_end(r);
        return;
    }
    if (str_is(what, "/short")) {
        http_reply_begin(r, 200, (str){ 0 }, 10);
        http_reply_add(r, STR("abc"));
        http_reply_end(r);
        return;
    }
    http_reply_begin(r, 200, STR("Content-Type: text/event-stream\r\n"),
                     HTTP_REPLY_CHUNKED);
    http_reply_add(r, STR("first"));
    if (str_is(what, "/abort")) {
        http_reply_abort(r);
    } else if (str_is(what, "/flood")) {
        h->floods = true;
        http_reply_add(r, str_of(big, BIG));
    } else if (str_is(what, "/forever")) {
        http_request_forget(r);
        h->remembers = r->head->count > 0 || r->body.n > 0 || !http_reply_has_begun(r);
    } else {
        http_reply_add(r, STR("second"));
        http_reply_end(r);
    }
}

static inline void on_request(void *ctx, struct http_request *r)
{
    struct house *h = ctx;
    struct buf out = { 0 };
    str what = path(r);

    h->requests++;
    if (str_is(what, "/echo")) {
        buf_add(&out, r->head->method);
        buf_add_char(&out, '=');
        buf_add(&out, r->body);
        http_reply(r, 200, STR("X: y\r\n"), buf_str(&out));
    } else if (str_is(what, "/count")) {
        buf_add_u64(&out, r->body.n);
        http_reply(r, 200, (str){ 0 }, buf_str(&out));
    } else if (str_is(what, "/peer")) {
        http_reply(r, 200, (str){ 0 }, str_from(http_request_peer(r)));
    } else if (str_is(what, "/empty")) {
        http_reply(r, 204, (str){ 0 }, STR("never sent"));
    } else if (str_is(what, "/big")) {
        http_reply(r, 200, (str){ 0 }, str_of(big, BIG));
    } else if (str_starts(what, STR("/later")) || str_is(what, "/while")) {
        r->ends_with_client = str_is(what, "/while");
        h->waiting = r;
        loop_timer_set(h->timer, LATER, false);
    } else {
        stream(h, r, what);
    }
    buf_release(&out);
    h->open = (unsigned)http_server_open_requests(h->server);
}

static inline void on_later(void *ctx)
{
    struct house *h = ctx;

    if (h->waiting && str_is(path(h->waiting), "/later-forever"))
        stream(h, h->waiting, STR("/forever"));
    else if (h->waiting) /* and the head is still there */
        http_reply(h->waiting, 200, (str){ 0 }, path(h->waiting));
    h->waiting = NULL;
}

static inline void on_gone(void *ctx, struct http_request *r)
{
    struct house *h = ctx;

    if (h->waiting == r)
        h->waiting = NULL;
    h->gone++;
}

/* A flood goes on for ever, a piece whenever the last one is out. */
static inline void on_drained(void *ctx, struct http_request *r)
{
    struct house *h = ctx;

    h->drained++;
    if (h->floods)
        http_reply_add(r, str_of(big, BIG));
}

static inline void refusal(void *ctx, const struct http_head *head, unsigned status,
                           const char *why, struct buf *headers, struct buf *body)
{
    struct err err;

    (void)ctx;
    if (http_put_header(headers, STR("Content-Type"), STR("text/plain"), &err) < 0)
        return;
    buf_printf(body, "refused %u %s: %s", status, head ? "head" : "nothing", why);
}

static inline void say(void *ctx, const char *sentence)
{
    (void)sentence;
    ((struct house *)ctx)->said++;
}

static const struct http_server_events events = { on_head,    on_request, on_gone,
                                                  on_drained, refusal,    say };

/* --- the house --- */

static inline void on_ring(void *ctx, unsigned ready)
{
    struct house *h = ctx;
    uint64_t n;

    (void)ready;
    if (read(h->ring, &n, sizeof(n)) < 0)
        return;
    h->conns = (unsigned)http_server_connections(h->server);
    h->open = (unsigned)http_server_open_requests(h->server);
    if (h->finish)
        http_server_finish(h->server);
    if (h->stop)
        loop_stop(h->loop);
    h->rung++;
}

static inline void *run(void *ctx)
{
    loop_run(((struct house *)ctx)->loop);
    return NULL;
}

static inline bool wait_for(atomic_int *counter, int value)
{
    for (int i = 0; i < PATIENCE && *counter < value; i++)
        usleep(1000);
    return *counter == value;
}

/* Until it was heard. */
static inline void ring(struct house *h)
{
    const uint64_t one = 1;
    int before = h->rung;

    if (write(h->ring, &one, sizeof(one)) < 0 || !wait_for(&h->rung, before + 1))
        perror("ring");
}

/* Nobody is left, at once or soon. */
static inline bool empties(struct house *h)
{
    for (int i = 0; i < PATIENCE / 10; i++) {
        ring(h);
        if (h->open == 0 && h->conns == 0)
            return true;
        usleep(10000);
    }
    return false;
}

static const struct http_server_limits roomy = {
    .head_wait = 10000,
    .body_wait = 10000,
    .idle_wait = 10000,
    .stall_wait = 10000,
    .linger_wait = 1000,
    .conns_max = 100,
    .body_max = 100000,
    .bodies_max = 150000,
};

static inline bool open_house(struct house *h, const char *host,
                              struct http_server_limits limits,
                              struct tls_identity *identity)
{
    struct http_server_options options = { .clock = &clock_fixed,
                                           .host = host,
                                           .identity = identity,
                                           .events = &events,
                                           .ctx = h,
                                           .limits = &h->limits };
    struct err err = { 0 };

    *h = (struct house){ .limits = limits, .identity = identity };
    h->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop_new(&h->loop, &err) < 0 ||
        loop_watch_new(&h->bell, h->loop, h->ring, on_ring, h, &err) < 0 ||
        loop_timer_new(&h->timer, h->loop, on_later, h, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    loop_watch_set(h->bell, LOOP_READABLE);
    options.loop = h->loop;
    if (http_server_open(&h->server, &options, &err) < 0) {
        printf("# %s\n", err.msg);
        return false;
    }
    h->port = http_server_port(h->server);
    pthread_create(&h->thread, NULL, run, h);
    return true;
}

static inline void close_house(struct house *h)
{
    if (h->server) {
        h->stop = true;
        ring(h);
        pthread_join(h->thread, NULL);
        http_server_free(h->server);
    }
    loop_watch_free(h->bell);
    loop_timer_free(h->timer);
    loop_free(h->loop);
    close(h->ring);
}

/* --- its clients --- */

static inline int call(const struct house *h)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(h->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        perror("connect");
    return fd;
}

static inline void send_all(int fd, str bytes)
{
    while (bytes.n) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes = str_skip(bytes, (size_t)n);
    }
}

static inline void send_text(int fd, const char *text)
{
    send_all(fd, str_from(text));
}

static inline bool holds(const struct buf *b, const char *text)
{
    return b->n && memmem(b->p, b->n, text, strlen(text));
}

enum end {
    WAITS,
    FOUND,
    CLOSED,
    RESET
};

/* Read until `text` has come, or the end. */
static inline enum end hear(int fd, struct buf *into, const char *text, int patience)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    while (!text || !holds(into, text)) {
        static char bytes[65536];
        ssize_t n;

        if (poll(&p, 1, patience) <= 0)
            return WAITS;
        n = recv(fd, bytes, sizeof(bytes), 0);
        if (n <= 0)
            return n == 0 ? CLOSED : RESET;
        buf_add(into, str_of(bytes, (size_t)n));
    }
    return FOUND;
}

static inline bool hears(int fd, const char *text)
{
    struct buf b = { .max = BIG * 2 };
    bool r = hear(fd, &b, text, PATIENCE) == FOUND;

    if (!r)
        printf("# heard: " STR_FMT "\n", STR_ARG(str_first(buf_str(&b), 300)));
    buf_release(&b);
    return r;
}

static inline bool is_closed(int fd)
{
    struct buf b = { .max = BIG * 2 };
    enum end e = hear(fd, &b, NULL, PATIENCE);

    buf_release(&b);
    return e == CLOSED || e == RESET;
}

/* Nothing comes, for a while. */
static inline bool waits(int fd)
{
    struct buf b = { 0 };
    bool r = hear(fd, &b, NULL, 100) == WAITS && b.n == 0;

    buf_release(&b);
    return r;
}

/* What one client says, hears and does not hear. */
struct talk {
    const char *what, *says, *hears, *not_hears;
};

/* Before all: what the owner sends much of. */
static inline void build_house(void)
{
    signal(SIGPIPE, SIG_IGN);
    big = calloc(1, BIG);
    if (!big)
        exit(99);
    memset(big, 'x', BIG);
}

#endif
