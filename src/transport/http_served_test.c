/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as they come. */
#include <fcntl.h>

#include "tests/http_house.h"

static const struct talk talks[] = {
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

static void test_waits(void)
{
    struct http_server_limits quick = roomy;
    struct house h;
    int fd, gone, drained;

    /* long beside the naps of a busy machine */
    quick.head_wait = quick.stall_wait = 1000;
    quick.body_wait = 2000;
    quick.idle_wait = 4000;
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
        usleep(600000);
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
    usleep(1500000);
    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "GET="), "another one, later than a head may take");
    ok(is_closed(fd), "and none: closed");
    close(fd);
    fd = call(&h);
    send_text(fd, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "first"), "a stream begins");
    gone = h.gone;
    usleep(5000000);
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

int main(void)
{
    struct house h;

    build_house();
    if (ok(open_house(&h, "127.0.0.1", roomy, NULL), "a server")) {
        test_talks(&h, 0);
        test_talks(&h, 7);
        test_continue(&h);
        test_limits(&h);
        test_passing(&h);
        test_header_bombs(&h);
        test_refused_upload(&h);
        test_many_pipelined(&h);
    }
    close_house(&h);
    test_waits();
    free(big);
    return tap_done();
}
