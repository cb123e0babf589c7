/* SPDX-License-Identifier: Apache-2.0 */
/* A real server in a thread of its own; clients are plain sockets that block. */
#include "transport/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"
#include "transport/http_encode.h"
#include "transport/loop.h"
#include "transport/tls.h"

#define PATIENCE 5000 /* ms that a client waits for what must come */
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
    atomic_int heads, requests, gone, drained, said;
    atomic_uint open, conns;
    atomic_bool finish, stop, floods, remembers;
    struct http_server_limits limits;
    struct tls_identity *identity;
};

static char *big; /* BIG bytes */

static int64_t fixed_time(void *ctx)
{
    (void)ctx;
    return 784111777000; /* the example of RFC 9110 */
}

static const struct clock clock_fixed = { fixed_time, NULL };

static str path(const struct http_request *r)
{
    return r->head->parts.path;
}

static bool on_head(void *ctx, struct http_request *r)
{
    struct house *h = ctx;

    h->heads++;
    if (!str_starts(path(r), STR("/no")))
        return true;
    http_reply(r, 401, (str){ 0 }, STR("no"));
    return false;
}

static void stream(struct house *h, struct http_request *r, str what)
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

static void on_request(void *ctx, struct http_request *r)
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
        loop_timer_set(h->timer, 30, false);
    } else {
        stream(h, r, what);
    }
    buf_release(&out);
    h->open = (unsigned)http_server_open_requests(h->server);
}

static void on_later(void *ctx)
{
    struct house *h = ctx;

    if (h->waiting && str_is(path(h->waiting), "/later-forever"))
        stream(h, h->waiting, STR("/forever"));
    else if (h->waiting) /* and the head is still there */
        http_reply(h->waiting, 200, (str){ 0 }, path(h->waiting));
    h->waiting = NULL;
}

static void on_gone(void *ctx, struct http_request *r)
{
    struct house *h = ctx;

    if (h->waiting == r)
        h->waiting = NULL;
    h->gone++;
}

/* A flood goes on for ever, a piece whenever the last one is out. */
static void on_drained(void *ctx, struct http_request *r)
{
    struct house *h = ctx;

    h->drained++;
    if (h->floods)
        http_reply_add(r, str_of(big, BIG));
}

static void refusal(void *ctx, const struct http_head *head, unsigned status,
                    const char *why, struct buf *headers, struct buf *body)
{
    struct err err;

    (void)ctx;
    if (http_put_header(headers, STR("Content-Type"), STR("text/plain"), &err) < 0)
        return;
    buf_printf(body, "refused %u %s: %s", status, head ? "head" : "nothing", why);
}

static void say(void *ctx, const char *sentence)
{
    (void)sentence;
    ((struct house *)ctx)->said++;
}

static const struct http_server_events events = { on_head,    on_request, on_gone,
                                                  on_drained, refusal,    say };

/* --- the house --- */

static void on_ring(void *ctx, unsigned ready)
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
}

static void *run(void *ctx)
{
    loop_run(((struct house *)ctx)->loop);
    return NULL;
}

static void ring(struct house *h)
{
    const uint64_t one = 1;

    if (write(h->ring, &one, sizeof(one)) < 0)
        perror("ring");
    usleep(20000);
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

static bool open_house(struct house *h, const char *host,
                       struct http_server_limits limits, struct tls_identity *identity)
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

static void close_house(struct house *h)
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

/* --- clients --- */

static int call(const struct house *h)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(h->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        perror("connect");
    return fd;
}

static void send_all(int fd, str bytes)
{
    while (bytes.n) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes = str_skip(bytes, (size_t)n);
    }
}

static void send_text(int fd, const char *text)
{
    send_all(fd, str_from(text));
}

static bool holds(const struct buf *b, const char *text)
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
static enum end hear(int fd, struct buf *into, const char *text, int patience)
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

static bool hears(int fd, const char *text)
{
    struct buf b = { .max = BIG * 2 };
    bool r = hear(fd, &b, text, PATIENCE) == FOUND;

    if (!r)
        printf("# heard: " STR_FMT "\n", STR_ARG(str_first(buf_str(&b), 300)));
    buf_release(&b);
    return r;
}

static bool is_closed(int fd)
{
    struct buf b = { .max = BIG * 2 };
    enum end e = hear(fd, &b, NULL, PATIENCE);

    buf_release(&b);
    return e == CLOSED || e == RESET;
}

/* Nothing comes, for a while. */
static bool waits(int fd)
{
    struct buf b = { 0 };
    bool r = hear(fd, &b, NULL, 100) == WAITS && b.n == 0;

    buf_release(&b);
    return r;
}

static bool wait_for(atomic_int *counter, int value)
{
    for (int i = 0; i < PATIENCE && *counter < value; i++)
        usleep(1000);
    return *counter == value;
}

/* --- one connection, one conversation, then its end --- */

#define CLOSE "Host: h\r\nConnection: close\r\n"

static const struct talk {
    const char *what, *says, *hears, *not_hears;
} talks[] = {
    { "a request", "GET /echo HTTP/1.1\r\n" CLOSE "\r\n",
      "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nX: y\r\n"
      "Content-Length: 4\r\nConnection: close\r\n\r\nGET=",
      NULL },
    { "a body with its length",
      "POST /echo HTTP/1.1\r\n" CLOSE "Content-Length: 5\r\n\r\nhello",
      "\r\n\r\nPOST=hello", NULL },
    { "an empty body", "POST /echo HTTP/1.1\r\n" CLOSE "Content-Length: 0\r\n\r\n",
      "\r\n\r\nPOST=", NULL },
    { "a body in chunks",
      "POST /echo HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: t\r\n\r\n",
      "\r\n\r\nPOST=abcde", NULL },
    { "HTTP/1.0 without keep-alive", "GET /echo HTTP/1.0\r\n\r\n",
      "Connection: close\r\n\r\nGET=", NULL },
    { "HTTP/1.0 with it",
      "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /peer HTTP/1.0\r\n\r\n",
      "Connection: keep-alive\r\n\r\nGET=HTTP/1.1 200 OK", NULL },
    { "HTTP/1.0 and a stream: no chunks, until close", "GET /stream HTTP/1.0\r\n\r\n",
      "Connection: close\r\n\r\nfirstsecond", "chunked" },
    { "HEAD", "HEAD /echo HTTP/1.1\r\n" CLOSE "\r\n",
      "Content-Length: 5\r\nConnection: close\r\n\r\n", "HEAD=" },
    { "HEAD of a stream", "HEAD /stream HTTP/1.1\r\n" CLOSE "\r\n",
      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n", "first" },
    { "204 has no body and no length", "GET /empty HTTP/1.1\r\n" CLOSE "\r\n",
      "HTTP/1.1 204 No Content\r\n", "never" },
    { "204 has no length", "GET /empty HTTP/1.1\r\n" CLOSE "\r\n", "\r\n\r\n", "Length" },
    { "a stream in chunks", "GET /stream HTTP/1.1\r\n" CLOSE "\r\n",
      "\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n", NULL },
    { "pieces of a known length, and no more", "GET /length HTTP/1.1\r\n" CLOSE "\r\n",
      "Content-Length: 6\r\nConnection: close\r\n\r\nabcdef", "fg" },
    { "fewer than announced: cut", "GET /short HTTP/1.1\r\n" CLOSE "\r\n", "\r\n\r\nabc",
      NULL },
    { "an answer that is aborted has no last chunk",
      "GET /abort HTTP/1.1\r\n" CLOSE "\r\n", "5\r\nfirst\r\n", "\r\n0\r\n" },
    { "three in one piece, in their order",
      "GET /later HTTP/1.1\r\nHost: h\r\n\r\nPOST /echo HTTP/1.1\r\nHost: h\r\n"
      "Content-Length: 3\r\n\r\ntwoGET /peer HTTP/1.1\r\n" CLOSE "\r\n",
      "/laterHTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nX: y\r\n"
      "Content-Length: 8\r\n\r\nPOST=twoHTTP/1.1 200 OK\r\n",
      NULL },
    { "answered at its head: a short body is passed over",
      "POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyGET /peer "
      "HTTP/1.1\r\n" CLOSE "\r\n",
      "Content-Length: 2\r\n\r\nnoHTTP/1.1 200 OK", "close\r\n\r\nno" },
    { "answered at its head: nothing waits for a long one",
      "POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\nbody",
      "HTTP/1.1 401 Unauthorized\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
      "Content-Length: 2\r\nConnection: close\r\n\r\nno",
      NULL },
    { "answered at its head: nor for one in chunks",
      "POST /no HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
      "Connection: close\r\n\r\nno", NULL },
    { "answered at its head, no body", "GET /no HTTP/1.1\r\n" CLOSE "\r\n",
      "401 Unauthorized\r\n", NULL },
    { "answered at its head: one that waits is not told to go on",
      "POST /no HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
      "Connection: close\r\n\r\nno", "100 Continue" },

    /* refused */
    { "no HTTP", "hello\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", NULL },
    { "the owner's words", "hello\r\n\r\n", "Content-Type: text/plain\r\n", NULL },
    { "without a head", "hello\r\n\r\n", "\r\n\r\nrefused 400 nothing: ", NULL },
    { "no Host", "GET / HTTP/1.1\r\n\r\n", "refused 400 nothing: there is no Host",
      NULL },
    { "two lengths",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
      "HTTP/1.1 400 ", NULL },
    { "length and chunks",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n",
      "HTTP/1.1 400 ", "200" },
    { "another coding",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 501 ", NULL },
    { "a tunnel", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 501 ", NULL },
    { "HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 ", "200" },
    { "a broken chunk, behind its head",
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "refused 400 head: the size of a chunk", "200" },
    { "a body one byte too long",
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n",
      "HTTP/1.1 413 Content Too Large\r\n", NULL },
    { "and it was not told to go on",
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
      "Content-Length: 100001\r\n\r\n",
      "refused 413 head: the body is too large", "Continue" },
    { "other expectations",
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: more\r\nContent-Length: 1\r\n\r\n",
      "HTTP/1.1 417 ", NULL },
    { "what is refused behind a good one",
      "GET /echo HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n", "GET=HTTP/1.1 400 ",
      NULL },
    { "no answer to HEAD has a body",
      "HEAD /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n",
      "HTTP/1.1 413 Content Too Large\r\n", "refused" },
};

/* How the bytes are cut must not matter. */
static void test_talks(const struct house *h, size_t step)
{
    for (size_t i = 0; i < COUNT(talks); i++) {
        const struct talk *t = &talks[i];
        struct buf b = { 0 };
        int fd = call(h);
        enum end e;

        if (step == 0)
            send_text(fd, t->says);
        for (str rest = str_from(t->says); step && rest.n; rest = str_skip(rest, step)) {
            send_all(fd, str_first(rest, step));
            usleep(500);
        }
        e = hear(fd, &b, NULL, PATIENCE);
        if (!ok(e == CLOSED && holds(&b, t->hears) &&
                    !(t->not_hears && holds(&b, t->not_hears)),
                "%s%s", t->what, step ? ", in pieces" : ""))
            printf("# end %d: " STR_FMT "\n", (int)e, STR_ARG(buf_str(&b)));
        buf_release(&b);
        close(fd);
    }
}

/* The client ends what it says, and is answered all the same. */
static void test_half_close(const struct house *h)
{
    static const struct talk half[] = {
        { "half closed", "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n", "GET=", NULL },
        { "half closed before the answer is there",
          "GET /later HTTP/1.1\r\nHost: h\r\n\r\n", "/later", NULL },
        { "half closed behind two",
          "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n",
          "GET=", NULL },
        { "half closed in a head", "GET /echo HTTP/1.1\r\nHo",
          "refused 400 nothing: the connection ended", NULL },
        { "half closed in a body",
          "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf",
          "refused 400 head: the connection ended", "200" },
        { "half closed before anything", "", "", NULL },
    };

    for (size_t i = 0; i < COUNT(half); i++) {
        struct buf b = { 0 };
        int fd = call(h);

        send_text(fd, half[i].says);
        shutdown(fd, SHUT_WR);
        ok(hear(fd, &b, NULL, PATIENCE) == CLOSED &&
               (!*half[i].hears || holds(&b, half[i].hears)),
           "%s", half[i].what);
        buf_release(&b);
        close(fd);
    }
}

static void test_continue(const struct house *h)
{
    int fd = call(h);

    send_text(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                  "Content-Length: 3\r\n\r\n");
    ok(hears(fd, "HTTP/1.1 100 Continue\r\n\r\n"), "whoever waits is told to go on");
    send_text(fd, "abc");
    ok(hears(fd, "POST=abc"), "and is answered");
    send_text(fd, "GET /peer HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "127.0.0.1"), "and may ask for more; the peer is named");
    close(fd);
}

static void test_gone(struct house *h)
{
    int fd = call(h), gone = h->gone;

    send_text(fd, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "5\r\nfirst\r\n") && h->open == 1, "a stream begins");
    ok(!h->remembers, "what was forgotten is empty, and the answer goes on");
    ok(h->gone == gone, "nobody is gone");
    close(fd);
    ok(wait_for(&h->gone, gone + 1), "a reader of a stream that goes is noticed");
    ring(h);
    ok(h->open == 0, "and its request is not open any more");

    fd = call(h);
    send_text(fd, "GET /forever HTTP/1.0\r\n\r\n");
    ok(hears(fd, "first"), "a stream until close");
    shutdown(fd, SHUT_WR);
    ok(wait_for(&h->gone, gone + 2), "half closed is gone, in a stream");
    close(fd);

    fd = call(h);
    send_text(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    usleep(20000);
    close(fd);
    ok(wait_for(&h->gone, gone + 3), "gone in its body: told, since on_head was");

    fd = call(h);
    send_text(fd, "GET /while HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "/while"), "a request that ends with its client: answered");
    send_text(fd, "GET /while HTTP/1.1\r\nHost: h\r\n\r\n");
    close(fd);
    ok(wait_for(&h->gone, gone + 4), "and gone with it, before the answer is there");
}

/* Reading has stopped, so that an end cannot be read. */
static void test_gone_behind_much(struct house *h)
{
    int fd = call(h), gone = h->gone;

    send_text(fd, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    send_all(fd, str_of(big, 3 * HTTP_SERVER_PIPELINE_MAX));
    ok(hears(fd, "5\r\nfirst\r\n"), "a stream, and much behind its request");
    usleep(50000);
    ok(h->gone == gone, "which waits");
    close(fd);
    ok(wait_for(&h->gone, gone + 1), "a client that goes is noticed all the same");
}

/* The client is gone for good before the answer begins: found out by writing. */
static void test_gone_before_answer(struct house *h)
{
    int fd = call(h), gone = h->gone;

    send_text(fd, "GET /later-forever HTTP/1.1\r\nHost: h\r\n\r\n");
    usleep(5000);
    close(fd);
    ok(wait_for(&h->gone, gone + 1), "one that goes before its stream begins, too");
}

/* The first byte of the answer cannot be written: at the turn's end, outside of the
 * owner's call. */
static void test_reset_before_answer(struct house *h)
{
    const struct linger at_once = { .l_onoff = 1 };
    int fd = call(h), gone = h->gone;

    send_text(fd, "GET /later-forever HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(fd, SHUT_WR);
    usleep(5000);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
    ok(wait_for(&h->gone, gone + 1), "one that resets before its stream begins");
    ring(h);
    ok(h->open == 0 && h->conns == 0, "and nothing of it is left");
}

static void test_limits(struct house *h)
{
    char head[100];
    int fd = call(h), other;

    snprintf(head, sizeof(head),
             "POST /count HTTP/1.1\r\n" CLOSE "Content-Length: 100000\r\n\r\n");
    send_text(fd, head);
    send_all(fd, str_of(big, 100000));
    ok(hears(fd, "\r\n\r\n100000"), "a body of the largest size");
    close(fd);

    fd = call(h);
    send_text(fd, "POST /count HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n"
                  "186a0\r\n");
    send_all(fd, str_of(big, 100000));
    send_text(fd, "\r\n0\r\n\r\n");
    ok(hears(fd, "\r\n\r\n100000"), "the same in chunks");
    close(fd);

    fd = call(h);
    send_text(fd, "POST /count HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n"
                  "186a1\r\n");
    send_all(fd, str_of(big, 100001));
    ok(hears(fd, "HTTP/1.1 413 "), "one more");
    close(fd);

    fd = call(h);
    other = call(h);
    send_text(fd, head);
    send_all(fd, str_of(big, 99999));
    usleep(50000);
    send_text(other, head);
    send_all(other, str_of(big, 50001));
    ok(waits(other), "as many bytes as all bodies may have");
    send_text(other, "x");
    ok(hears(other, "HTTP/1.1 503 "), "all bodies together are too many bytes");
    send_text(fd, "x");
    ok(hears(fd, "\r\n\r\n100000"), "who was there before is served");
    close(other);
    other = call(h);
    send_text(other, head);
    send_all(other, str_of(big, 100000));
    ok(hears(other, "\r\n\r\n100000"), "and then others");
    close(fd);
    close(other);
}

/* A body that nobody wants: what is short is read for the next request's sake. */
static void test_passing(const struct house *h)
{
    for (size_t more = 0; more < 2; more++) {
        int fd = call(h);
        char head[100];

        snprintf(head, sizeof(head),
                 "POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
                 HTTP_SERVER_PASS_MAX + more);
        send_text(fd, head);
        ok(hears(fd, more ? "Connection: close\r\n\r\nno" : "Length: 2\r\n\r\nno"),
           "%zu bytes that nobody wants", HTTP_SERVER_PASS_MAX + more);
        send_all(fd, str_of(big, HTTP_SERVER_PASS_MAX + more));
        send_text(fd, "GET /peer HTTP/1.1\r\n" CLOSE "\r\n");
        ok(more ? is_closed(fd) : hears(fd, "127.0.0.1"),
           more ? "closed" : "passed over");
        close(fd);
    }
}

static void test_header_bombs(const struct house *h)
{
    static const struct {
        const char *what, *line;
        size_t times;
        const char *hears;
    } rows[] = {
        { "as many headers as may be", "A: b\r\n", HTTP_HEADERS_MAX - 1, "GET=" },
        { "one more", "A: b\r\n", HTTP_HEADERS_MAX, "HTTP/1.1 431 " },
        { "a million", "A: b\r\n", 1000000, "HTTP/1.1 431 " },
        { "one header without an end", "aaaaaaaaaa", 100000, "HTTP/1.1 431 " },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf b = { .max = BIG }, got = { 0 };
        int fd = call(h);

        buf_add(&b, STR("GET /echo HTTP/1.1\r\nHost: h\r\n"));
        for (size_t n = 0; n < rows[i].times; n++)
            buf_add(&b, str_from(rows[i].line));
        buf_add(&b, STR("\r\n"));
        send_all(fd, buf_str(&b));
        shutdown(fd, SHUT_WR);
        ok(hear(fd, &got, NULL, PATIENCE) == CLOSED && holds(&got, rows[i].hears), "%s",
           rows[i].what);
        buf_release(&b);
        buf_release(&got);
        close(fd);
    }
}

/* An upload that is refused is still read for a while, so that the answer is not lost. */
static void test_refused_upload(const struct house *h)
{
    struct buf b = { 0 };
    int fd = call(h);

    send_text(fd, "POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n");
    send_all(fd, str_of(big, 8000000));
    shutdown(fd, SHUT_WR);
    ok(hear(fd, &b, NULL, PATIENCE) == CLOSED && holds(&b, "refused 413"),
       "who sends all of a refused body gets the answer, not a reset");
    buf_release(&b);
    close(fd);
}

static void test_big(const struct house *h)
{
    struct buf b = { .max = BIG * 3 };
    int fd = call(h);
    enum end e;

    send_text(fd,
              "GET /big HTTP/1.1\r\nHost: h\r\n\r\nGET /big HTTP/1.1\r\n" CLOSE "\r\n");
    usleep(50000);
    e = hear(fd, &b, NULL, PATIENCE);
    ok(e == CLOSED && b.n > 2 * BIG && b.n < 2 * BIG + 500,
       "two large answers to a slow reader: %zu", b.n);
    buf_release(&b);
    close(fd);
}

static void test_many_pipelined(struct house *h)
{
    const int many = 20000;
    struct buf in = { 0 }, b = { .max = BIG };
    int fd = call(h), before = h->requests;
    size_t answers = 0;

    for (int i = 0; i < many; i++)
        buf_add(&in, STR("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (str rest = buf_str(&in); rest.n;) {
        ssize_t n = send(fd, rest.p, rest.n, MSG_NOSIGNAL);

        if (n > 0)
            rest = str_skip(rest, (size_t)n);
        else if (hear(fd, &b, NULL, 0) != WAITS)
            break;
    }
    shutdown(fd, SHUT_WR);
    fcntl(fd, F_SETFL, 0);
    ok(hear(fd, &b, NULL, PATIENCE) == CLOSED && h->requests == before + many,
       "%d requests without waiting", many);
    for (const char *p = b.p; p && (p = memmem(p, (size_t)(b.p + b.n - p), "GET=", 4));
         p++)
        answers++;
    ok(answers == (size_t)many, "have as many answers: %zu", answers);
    buf_release(&in);
    buf_release(&b);
    close(fd);
}

/* --- waits --- */

static void test_waits(void)
{
    struct http_server_limits quick = roomy;
    struct house h;
    int fd, gone, drained;

    quick.head_wait = quick.body_wait = quick.stall_wait = 100;
    quick.idle_wait = 300;
    quick.linger_wait = 50;
    if (!ok(open_house(&h, "127.0.0.1", quick, NULL), "a server in a hurry"))
        return;
    fd = call(&h);
    ok(is_closed(fd), "nothing comes: closed");
    close(fd);
    fd = call(&h);
    send_text(fd, "GET /echo HTT");
    ok(hears(fd, "refused 408 nothing: the head"), "a head that does not end: 408");
    ok(is_closed(fd), "and the end, though the client stays");
    close(fd);
    fd = call(&h);
    send_text(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n");
    for (int i = 0; i < 4; i++) {
        usleep(60000);
        send_all(fd, str_of(big, 1024));
    }
    send_all(fd, str_of(big, 5000 - 4096));
    ok(hears(fd, "POST="), "a body that comes slowly, but as fast as it must");
    gone = h.gone;
    send_text(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\nx");
    ok(hears(fd, "refused 408 head: the body") && h.gone == gone + 1,
       "one that comes slower: 408");
    close(fd);
    fd = call(&h);
    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "GET="), "a request");
    usleep(200000);
    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "GET="), "another one, later than a head may take");
    ok(is_closed(fd), "and none: closed");
    close(fd);
    fd = call(&h);
    send_text(fd, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "first"), "a stream begins");
    gone = h.gone;
    usleep(500000);
    ok(h.gone == gone, "a stream may idle for as long as it likes");
    close(fd);
    ok(wait_for(&h.gone, gone + 1), "until it goes");
    drained = h.drained;
    fd = call(&h);
    send_text(fd, "GET /flood HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(wait_for(&h.gone, gone + 2), "a reader that takes nothing is cut");
    ok(h.drained == drained, "nothing was out before");
    close(fd);
    close_house(&h);
}

static void test_back_pressure(struct house *h)
{
    static char bytes[65536];
    int fd = call(h), gone = h->gone, drained = h->drained;
    size_t got = 0;
    ssize_t n;

    send_text(fd, "GET /flood HTTP/1.1\r\nHost: h\r\n\r\n");
    while (got < 3 * BIG && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        got += (size_t)n;
    ok(got >= 3 * BIG && h->drained >= drained + 2,
       "what is out is told, and more follows");
    close(fd);
    ok(wait_for(&h->gone, gone + 1), "until the reader goes");
    h->floods = false;
}

/* An answer without an end of its own, cut: the client must see that it is not whole. */
static void test_abort_until_close(const struct house *h)
{
    struct buf b = { 0 };
    int fd = call(h);

    send_text(fd, "GET /abort HTTP/1.0\r\n\r\n");
    ok(hear(fd, &b, NULL, PATIENCE) == RESET, "aborted until close: a reset");
    buf_release(&b);
    close(fd);
}

static void test_connection_limit(void)
{
    struct http_server_limits few = roomy;
    struct house h;
    int fds[3];

    few.conns_max = 2;
    if (!ok(open_house(&h, "127.0.0.1", few, NULL), "a server for two"))
        return;
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = call(&h);
        send_text(fds[i], "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    ok(hears(fds[0], "GET=") && hears(fds[1], "GET="), "two are served");
    ok(waits(fds[2]), "a third one waits");
    close(fds[0]);
    ok(hears(fds[2], "GET="), "until one goes");
    close(fds[1]);
    close(fds[2]);
    close_house(&h);
}

/* No descriptor is left: the server neither spins nor forgets who waits. */
static void test_no_descriptors(struct house *h)
{
    struct rlimit old, none;
    struct buf b = { 0 };
    struct timespec t0, t1;
    int fd = call(h), said;

    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "GET="), "a connection");
    close(fd);
    usleep(50000);
    said = h->said;
    getrlimit(RLIMIT_NOFILE, &old);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    none = (struct rlimit){ (rlim_t)fd + 1, old.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    if (connect(fd,
                (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET,
                                                          .sin_port = htons(h->port),
                                                          .sin_addr.s_addr =
                                                              htonl(INADDR_LOOPBACK) },
                sizeof(struct sockaddr_in)) < 0)
        perror("connect");
    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    ok(hear(fd, &b, NULL, 500) == WAITS && b.n == 0, "no descriptor: it waits");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    ok((t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000 < 100,
       "without being busy");
    ok(h->said == said + 1, "and says so once");
    setrlimit(RLIMIT_NOFILE, &old);
    ok(hears(fd, "GET="), "then it is served");
    buf_release(&b);
    close(fd);
}

static void test_finish(struct house *h)
{
    int idle = call(h), busy = call(h), fd, gone = h->gone;

    send_text(idle, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(idle, "GET="), "one idles");
    send_text(busy, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(busy, "first"), "one is busy");
    fd = call(h);
    send_text(fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    usleep(10000);
    h->finish = true;
    ring(h);
    ok(is_closed(idle), "finish: who idles is closed");
    ok(hears(fd, "Connection: close\r\n\r\n/later") && is_closed(fd),
       "who waits for an answer gets it before");
    ok(h->gone == gone, "who is busy is not cut");
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok(connect(fd,
               (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET,
                                                         .sin_port = htons(h->port),
                                                         .sin_addr.s_addr =
                                                             htonl(INADDR_LOOPBACK) },
               sizeof(struct sockaddr_in)) < 0 &&
           errno == ECONNREFUSED,
       "and nobody new is let in");
    close(fd);
    close(idle);
    close(busy);
}

/* --- TLS: the certificate is made by openssl, the client is Python --- */

static char dir[] = "/tmp/assay-http-server-XXXXXX";

static int shell(const char *fmt, ...) PRINTF_LIKE(1, 2);

static int shell(const char *fmt, ...)
{
    struct buf b = { 0 };
    char line[2048];
    va_list ap;
    int r;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    buf_printf(&b, "cd %s && { %s; } >>log 2>&1", dir, line);
    r = system(buf_cstr(&b));
    buf_release(&b);
    return r;
}

static const char *in_dir(const char *name)
{
    static char paths[2][FILE_PATH_MAX];
    static int turn;

    turn = !turn;
    snprintf(paths[turn], FILE_PATH_MAX, "%s/%s", dir, name);
    return paths[turn];
}

static void test_identity(void)
{
    static const struct {
        const char *what, *cert, *key, *why;
    } bad[] = {
        { "no certificate there", "absent.pem", "key.pem", "absent.pem" },
        { "no key there", "cert.pem", "absent.pem", "absent.pem" },
        { "a key that is encrypted", "cert.pem", "locked.pem", "is encrypted" },
        { "another one's key", "cert.pem", "other.pem", "not that of the certificate" },
        { "a key of another kind", "cert.pem", "ed.pem", "not that of the certificate" },
        { "no certificate in it", "key.pem", "key.pem", "no certificate can be read" },
        { "no key in it", "cert.pem", "cert.pem", "no private key can be read" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct tls_identity *identity = NULL;
        struct err err = { 0 };

        ok(tls_identity_new(&identity, in_dir(bad[i].cert), in_dir(bad[i].key), &err) <
                   0 &&
               !identity && strstr(err.msg, bad[i].why),
           "%s: %s", bad[i].what, err.msg);
    }
}

static const char tls_client[] =
    "import socket, ssl, sys, time\n"
    "port, what = int(sys.argv[1]), sys.argv[2]\n"
    "c = ssl.create_default_context(cafile='cert.pem')\n"
    "c.minimum_version = ssl.TLSVersion.TLSv1_2\n"
    "if what == '1.2': c.maximum_version = ssl.TLSVersion.TLSv1_2\n"
    "c.set_alpn_protocols(['h2'] if what == 'h2' else ['h2', 'http/1.1'])\n"
    "s = c.wrap_socket(socket.create_connection(('127.0.0.1', port)),\n"
    "                  server_hostname='localhost')\n"
    "assert s.selected_alpn_protocol() == 'http/1.1'\n"
    "assert s.version() == ('TLSv1.2' if what == '1.2' else 'TLSv1.3')\n"
    "def say(path, more='', body=b''):\n"
    "    s.sendall(f'POST {path} HTTP/1.1\\r\\nHost: h\\r\\n{more}'\n"
    "              f'Content-Length: {len(body)}\\r\\n\\r\\n'.encode() + body)\n"
    "def hear(end):\n"
    "    got = bytearray()\n"
    "    while end is None or not got.endswith(end):\n"
    "        more = s.recv(1 << 20)\n"
    "        if not more: break\n"
    "        got += more\n"
    "    return got\n"
    "say('/echo', body=b'one'); assert hear(b'POST=one').startswith(b'HTTP/1.1 200')\n"
    "say('/count', body=bytes(100000)); assert b'100000' in hear(b'100000')\n"
    "if what == 'half':\n"
    "    say('/later'); s.unwrap = None\n"
    "    socket.socket.shutdown(s, socket.SHUT_WR)\n"
    "    assert hear(None).endswith(b'/later')\n"
    "    sys.exit(0)\n"
    "if what == 'abort':\n"
    "    say('/abort')\n"
    "    s.suppress_ragged_eofs = False\n"
    "    try: hear(None)\n"
    "    except (ssl.SSLEOFError, ConnectionResetError): sys.exit(0)\n"
    "    sys.exit(1)\n"
    "say('/stream'); assert hear(b'0\\r\\n\\r\\n').endswith(b'second\\r\\n0\\r\\n\\r\\n')\n"
    "say('/big', 'Connection: close\\r\\n')\n"
    "s.suppress_ragged_eofs = False\n"
    "assert len(hear(None)) > 24 << 20\n";

static void test_tls(void)
{
    static const struct {
        const char *what, *how;
        bool works;
    } rows[] = {
        { "TLS 1.3: whole answers, large ones, a clean end", "1.3", true },
        { "TLS 1.2: the same", "1.2", true },
        { "half closed over TLS", "half", true },
        { "an aborted answer is no clean end of TLS", "abort", true },
        { "who speaks HTTP/2 only is turned away", "h2", false },
    };
    struct tls_identity *identity = NULL;
    struct http_server_limits quick = roomy;
    struct err err = { 0 };
    struct house h;
    int fd;

    if (!ok(tls_identity_new(&identity, in_dir("cert.pem"), in_dir("key.pem"), &err) == 0,
            "an identity: %s", err.msg))
        return;
    quick.head_wait = 300;
    if (!ok(open_house(&h, "127.0.0.1", quick, identity), "a server with TLS"))
        return;
    for (size_t i = 0; i < COUNT(rows); i++)
        ok((shell("timeout 20 python3 client.py %u %s", h.port, rows[i].how) == 0) ==
               rows[i].works,
           "%s", rows[i].what);
    fd = call(&h);
    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(is_closed(fd), "who speaks no TLS is turned away");
    close(fd);
    fd = call(&h);
    send_text(fd, "\x16\x03\x01");
    ok(is_closed(fd), "who begins TLS and does not go on, too");
    close(fd);
    ring(&h);
    ok(h.conns == 0 && h.open == 0, "nobody is left");
    close_house(&h);
    tls_identity_free(identity);
}

static void test_with_certificates(void)
{
    FILE *f;

    if (!mkdtemp(dir) || shell("openssl version && python3 -c 'import ssl'") != 0) {
        tap_skip("TLS", "no openssl or python3 here");
        return;
    }
    f = fopen(in_dir("client.py"), "w");
    if (f) {
        fputs(tls_client, f);
        fclose(f);
    }
    ok(shell(
           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
           "-keyout key.pem -out cert.pem -subj /CN=localhost "
           "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 && "
           "openssl ec -in key.pem -aes128 -passout pass:secret -out locked.pem && "
           "openssl ecparam -name prime256v1 -genkey -noout -out other.pem && "
           "openssl genpkey -algorithm ed25519 -out ed.pem") == 0,
       "certificates and keys are made");
    test_identity();
    test_tls();
    if (tap_failures)
        shell("tail -40 log >&2; false");
    if (tap_failures || shell("rm -rf %s", dir) != 0)
        printf("# see %s\n", dir);
}

/* --- where it listens --- */

static void test_v6(void)
{
    struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct house h;

    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        tap_skip("IPv6", "this machine has none");
        return;
    }
    if (!ok(open_house(&h, "::1", roomy, NULL), "a server on ::1"))
        return;
    close(fd);
    fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin6_port = htons(h.port);
    ok(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "it is there");
    send_text(fd, "GET /peer HTTP/1.1\r\n" CLOSE "\r\n");
    ok(hears(fd, "\r\n\r\n::1"), "and names the peer");
    close(fd);
    close_house(&h);
}

static void test_name(void)
{
    struct house h;
    int fd;

    if (!ok(open_house(&h, "localhost", roomy, NULL), "a server on a name"))
        return;
    fd = call(&h);
    send_text(fd, "GET /peer HTTP/1.1\r\n" CLOSE "\r\n");
    ok(hears(fd, "127.0.0.1"), "every address of it has the same port");
    close(fd);
    close_house(&h);
}

static void test_open_errors(void)
{
    struct house h, second;
    struct http_server *s = NULL;
    struct err err = { 0 };
    struct http_server_options options = { .events = &events };

    if (!ok(open_house(&h, "127.0.0.1", roomy, NULL), "a server"))
        return;
    second = h;
    options.loop = second.loop;
    options.host = "127.0.0.1";
    options.port = h.port;
    ok(http_server_open(&s, &options, &err) < 0 && strstr(err.msg, "in use"),
       "a port that is taken: %s", err.msg);
    options.host = "host.invalid";
    ok(http_server_open(&s, &options, &err) < 0 && strstr(err.msg, "host.invalid"),
       "a host that is not there: %s", err.msg);
    options.host = "192.0.2.1";
    ok(http_server_open(&s, &options, &err) < 0, "somebody else's address: %s", err.msg);
    close_house(&h);
}

int main(void)
{
    struct house h;

    signal(SIGPIPE, SIG_IGN);
    big = calloc(1, BIG);
    memset(big, 'x', BIG);
    if (ok(open_house(&h, "127.0.0.1", roomy, NULL), "a server")) {
        test_talks(&h, 0);
        test_talks(&h, 7);
        test_half_close(&h);
        test_continue(&h);
        test_gone(&h);
        test_gone_behind_much(&h);
        test_gone_before_answer(&h);
        test_reset_before_answer(&h);
        test_limits(&h);
        test_passing(&h);
        test_header_bombs(&h);
        test_refused_upload(&h);
        test_big(&h);
        test_many_pipelined(&h);
        test_back_pressure(&h);
        test_abort_until_close(&h);
        test_no_descriptors(&h);
        test_finish(&h);
    }
    close_house(&h);
    test_waits();
    test_connection_limit();
    test_v6();
    test_name();
    test_open_errors();
    test_with_certificates();
    free(big);
    return tap_done();
}
