/* SPDX-License-Identifier: Apache-2.0 */
/* Answers, and clients that are gone before theirs is whole. */
#include "tests/http_house.h"

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

static void test_gone(struct house *h)
{
    int fd = call(h), gone = h->gone;

    send_text(fd, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "5\r\nfirst\r\n") && h->open == 1, "a stream begins");
    ok(!h->remembers, "what was forgotten is empty, and the answer goes on");
    ok(h->gone == gone, "nobody is gone");
    close(fd);
    ok(wait_for(&h->gone, gone + 1), "a reader of a stream that goes is noticed");
    ok(empties(h), "and its request is not open any more");

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
    ok(empties(h), "and nothing of it is left");
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

int main(void)
{
    struct house h;

    build_house();
    if (ok(open_house(&h, "127.0.0.1", roomy, NULL), "a server")) {
        test_half_close(&h);
        test_gone(&h);
        test_gone_behind_much(&h);
        test_gone_before_answer(&h);
        test_reset_before_answer(&h);
        test_big(&h);
        test_back_pressure(&h);
        test_abort_until_close(&h);
    }
    close_house(&h);
    free(big);
    return tap_done();
}
