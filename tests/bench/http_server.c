/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest Streamable HTTP server that a client accepts: JSON answers to POST, a
 * stream without events for GET, sessions that are only a number. Listens on 127.0.0.1, a
 * free port, and prints it. Reads what proxies send, not what attackers do.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/answer.h"
#include "tests/bench/http_header.h"

#define PIECE    ((size_t)16 << 10)
#define BODY_MAX ((size_t)4 << 20)
#define EVENTS   256

struct conn {
    int fd;
    struct buf in;
};

static uint64_t sessions;

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    exit(1);
}

/* How long the body is that begins here, with its framing; false if it is not all there.
 */
static bool body_length(str head, str rest, size_t *length)
{
    str end = STR("0\r\n\r\n");
    str said = header(head, "\r\ncontent-length:");
    const char *at;

    *length = said.n ? strtoul(said.p, NULL, 10) : 0;
    if (said.n || !header(head, "\r\ntransfer-encoding:").n)
        return rest.n >= *length;
    at = rest.n ? memmem(rest.p, rest.n, end.p, end.n)
                : NULL; /* no body of the bench has it inside */
    *length = at ? (size_t)(at - rest.p) + end.n : 0;
    return at != NULL;
}

/* The head of a stream, and the first event of a subscription. */
static void add_stream(struct buf *out, str id)
{
    CLEANUP(buf_release) struct buf event = { .max = BODY_MAX };

    buf_add(out, STR("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n"));
    if (!id.n)
        return;
    buf_add(&event, STR("data: {\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/subscriptions/acknowledged\",\"params\":{"
                        "\"notifications\":{\"toolsListChanged\":true},\"_meta\":{"
                        "\"io.modelcontextprotocol/subscriptionId\":"));
    buf_add(&event, id);
    buf_add(&event, STR("}}}\n\n"));
    buf_printf(out, "%zx\r\n", event.n);
    buf_add(out, buf_str(&event));
    buf_add(out, STR("\r\n"));
}

static void add_reply(struct buf *out, str head, str body)
{
    struct buf json = { .max = BODY_MAX };
    bool listens = has(body, STR("\"subscriptions/listen\""));

    if (head.p[0] == 'G' || listens) {
        add_stream(out, listens ? id_of(body) : (str){ NULL, 0 });
        return;
    }
    add_answer(&json, body);
    if (json.n) {
        buf_add(out, STR("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
        if (has(body, STR("\"initialize\"")))
            buf_printf(out, "Mcp-Session-Id: bench-%ju\r\n", (uintmax_t)sessions++);
    } else {
        buf_add(out, head.p[0] == 'D' ? STR("HTTP/1.1 200 OK\r\n")
                                      : STR("HTTP/1.1 202 Accepted\r\n"));
    }
    buf_printf(out, "Content-Length: %zu\r\n\r\n", json.n);
    buf_add(out, buf_str(&json));
    buf_release(&json);
}

static bool send_all(int fd, str bytes)
{
    while (bytes.n) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes = str_skip(bytes, (size_t)n);
    }
    return true;
}

/* All requests that are there, answered with one write. */
static bool serve(struct conn *c)
{
    CLEANUP(buf_release) struct buf out = { .max = BODY_MAX * 2 };
    str end = STR("\r\n\r\n");
    str rest = buf_str(&c->in);
    const char *at;
    size_t length;

    while (rest.n && (at = memmem(rest.p, rest.n, end.p, end.n))) {
        str head = str_first(rest, (size_t)(at - rest.p) + 2);
        str after = str_skip(rest, head.n + 2);

        if (!body_length(head, after, &length))
            break;
        add_reply(&out, head, str_first(after, length));
        rest = str_skip(after, length);
    }
    if (rest.n)
        memmove(c->in.p, rest.p, rest.n);
    c->in.n = rest.n;
    return send_all(c->fd, buf_str(&out));
}

static bool receive(struct conn *c)
{
    ssize_t n;

    if (!buf_room(&c->in, PIECE))
        return false;
    n = recv(c->fd, c->in.p + c->in.n, PIECE - 1, 0);
    if (n <= 0)
        return false;
    c->in.n += (size_t)n;
    c->in.p[c->in.n] = 0; /* for strcasestr */
    return serve(c);
}

static void close_conn(struct conn *c)
{
    close(c->fd);
    buf_release(&c->in);
    free(c);
}

static void take(int poll_fd, int listener)
{
    struct conn *c = calloc(1, sizeof(*c));
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    int one = 1;

    must(c != NULL, "calloc");
    c->in.max = BODY_MAX;
    c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (c->fd < 0) {
        free(c);
        return;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    must(epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &e) == 0, "epoll_ctl");
}

static int start_listening(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 4096) == 0 &&
             getsockname(fd, (struct sockaddr *)&a, &n) == 0,
         "listen");
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

int main(void)
{
    struct epoll_event events[EVENTS], e = { .events = EPOLLIN };
    int poll_fd = epoll_create1(EPOLL_CLOEXEC), listener = start_listening();

    must(poll_fd >= 0 && epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &e) == 0, "epoll");
    for (;;) {
        int n = epoll_wait(poll_fd, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;

            if (!c)
                take(poll_fd, listener);
            else if (!receive(c))
                close_conn(c);
        }
    }
}
