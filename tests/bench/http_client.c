/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for a Streamable HTTP server on 127.0.0.1: each connection is a session of its own
 * with one call in flight.
 *
 *     http_client PORT PATH CONNECTIONS CALLS
 *
 * Opens the sessions and prints "ready". After a line from stdin it makes CALLS calls on
 * all connections together and prints calls/s, p50 and p99 (us). Then it deletes the
 * sessions. Answers may be JSON or a stream of events that ends with the answer.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "tests/bench/http_header.h"

#define PIECE       ((size_t)16 << 10)
#define ANSWER_MAX  ((size_t)4 << 20)
#define EVENTS      256
#define ARGUMENT    150 /* bytes of text in a call */
#define PATIENCE_MS 30000
#define VERSION     "2025-06-18"

enum step {
    INITIALIZE,
    INITIALIZED,
    READY,
    CALLING,
    DELETING,
    DONE,
};

struct conn {
    int fd;
    enum step step;
    char session[128];
    double sent_at;
    struct buf in;
};

static struct conn *conns;
static size_t conn_count, open_calls, calls_left, trip_count;
static double *trips;
static unsigned port;
static const char *path;
static uint64_t next_id = 1;
static int poll_fd;

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "http_client: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* --- requests --- */

static void add_body(struct buf *b, enum step step)
{
    if (step == INITIALIZE)
        buf_printf(b,
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":"
                   "{\"name\":\"bench\",\"version\":\"1\"}}}",
                   VERSION);
    else if (step == INITIALIZED)
        buf_add(b, STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
    else if (step == CALLING) {
        buf_printf(
            b,
            "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64 ",\"method\":\"tools/call\","
            "\"params\":{\"name\":\"small\",\"arguments\":{\"path\":\"/srv/data/%" PRIu64
            "\",\"text\":\"",
            next_id, next_id);
        for (size_t i = 0; i < ARGUMENT; i++)
            buf_add_char(b, 'a');
        buf_add(b, STR("\"}}}"));
        next_id++;
    }
}

static void ask(struct conn *c, enum step step)
{
    struct buf body = { .max = ANSWER_MAX }, b = { .max = ANSWER_MAX };

    add_body(&body, step);
    buf_printf(&b,
               "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
               "Accept: application/json, text/event-stream\r\n",
               step == DELETING ? "DELETE" : "POST", path, port);
    if (step != INITIALIZE)
        buf_printf(&b, "MCP-Protocol-Version: %s\r\n", VERSION);
    if (c->session[0])
        buf_printf(&b, "Mcp-Session-Id: %s\r\n", c->session);
    if (body.n)
        buf_printf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                   body.n);
    buf_add(&b, STR("\r\n"));
    buf_add(&b, buf_str(&body));
    c->step = step;
    c->sent_at = now();
    must(send(c->fd, b.p, b.n, MSG_NOSIGNAL) == (ssize_t)b.n, "send");
    buf_release(&b);
    buf_release(&body);
}

/* --- answers --- */

/* Whether the chunks that begin here have come to their end. */
static bool chunks_end(str rest)
{
    while (rest.n) {
        char *end;
        size_t size = strtoul(rest.p, &end, 16);
        const char *line = memmem(rest.p, rest.n, "\r\n", 2);

        if (!line)
            return false;
        rest = str_skip(rest, (size_t)(line - rest.p) + 2);
        if (rest.n < size + 2)
            return false;
        if (size == 0)
            return true;
        rest = str_skip(rest, size + 2);
    }
    return false;
}

/* Whether a whole answer is there; dies of one that is none. */
static bool is_answered(struct conn *c)
{
    str all = buf_str(&c->in), end = STR("\r\n\r\n"), head, length, session;
    const char *at = all.n ? memmem(all.p, all.n, end.p, end.n) : NULL;

    if (!at)
        return false;
    head = str_first(all, (size_t)(at - all.p) + 2);
    must(c->step == DELETING || str_starts(head, STR("HTTP/1.1 20")), c->in.p);
    session = header(head, "\r\nmcp-session-id:");
    if (c->step == INITIALIZE && session.n && session.n < sizeof(c->session))
        memcpy(c->session, session.p, session.n);
    all = str_skip(all, head.n + 2);
    if (header(head, "\r\ntransfer-encoding:").n)
        return chunks_end(all);
    length = header(head, "\r\ncontent-length:");
    return all.n >= (length.n ? strtoul(length.p, NULL, 10) : 0);
}

static void check_result(struct conn *c)
{
    str all = buf_str(&c->in);

    must(memmem(all.p, all.n, "\"isError\":false", 15) != NULL, c->in.p);
}

static void go_on(struct conn *c)
{
    if (c->step == CALLING) {
        check_result(c);
        trips[trip_count++] = now() - c->sent_at;
    }
    buf_reset(&c->in);
    if (c->step == INITIALIZE)
        ask(c, INITIALIZED);
    else if (c->step == CALLING && calls_left > 0) {
        calls_left--;
        ask(c, CALLING);
    } else {
        c->step = c->step == DELETING ? DONE : READY;
        open_calls--;
    }
}

static void receive(struct conn *c)
{
    ssize_t n;

    must(buf_room(&c->in, PIECE), "an answer is too long");
    n = recv(c->fd, c->in.p + c->in.n, PIECE - 1, 0);
    if (n <= 0 && c->step == DELETING) {
        close(c->fd);
        c->step = DONE;
        open_calls--;
        return;
    }
    must(n > 0, "a connection was closed");
    c->in.n += (size_t)n;
    c->in.p[c->in.n] = 0;
    if (is_answered(c))
        go_on(c);
}

/* Until all connections are at rest. */
static void run(void)
{
    struct epoll_event events[EVENTS];

    while (open_calls > 0) {
        int n = epoll_wait(poll_fd, events, EVENTS, PATIENCE_MS);

        must(n > 0, "no answer");
        for (int i = 0; i < n; i++)
            receive(events[i].data.ptr);
    }
}

static void open_conn(struct conn *c)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    int one = 1;

    c->in.max = ANSWER_MAX;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(c->fd >= 0 && connect(c->fd, (struct sockaddr *)&a, sizeof(a)) == 0, "connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    must(epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &e) == 0, "epoll_ctl");
}

static void start_all(enum step step)
{
    for (struct conn *c = conns; c < conns + conn_count; c++) {
        if (step == CALLING && calls_left == 0)
            break;
        calls_left -= step == CALLING;
        open_calls++;
        ask(c, step);
    }
    run();
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(size_t calls)
{
    double start = now(), took;

    calls_left = calls;
    start_all(CALLING);
    took = now() - start;
    qsort(trips, trip_count, sizeof(*trips), by_size);
    printf("%.0f\t%.1f\t%.1f\n", (double)calls / took * 1e6, trips[trip_count / 2],
           trips[trip_count * 99 / 100]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[16];
    size_t calls;

    must(argc == 5, "usage: http_client PORT PATH CONNECTIONS CALLS");
    port = (unsigned)strtoul(argv[1], NULL, 10);
    path = argv[2];
    conn_count = strtoul(argv[3], NULL, 10);
    calls = strtoul(argv[4], NULL, 10);
    conns = calloc(conn_count, sizeof(*conns));
    trips = calloc(calls + 1, sizeof(*trips));
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    must(conns && trips && poll_fd >= 0 && calls > 0, "no memory");
    for (size_t i = 0; i < conn_count; i++)
        open_conn(&conns[i]);
    start_all(INITIALIZE);
    puts("ready");
    fflush(stdout);
    must(fgets(line, sizeof(line), stdin) != NULL, "stdin");
    measure(calls);
    must(fgets(line, sizeof(line), stdin) != NULL, "stdin");
    start_all(DELETING);
    return 0;
}
