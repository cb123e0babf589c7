/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

/* Both ends of a pipe, and what our end was told. */
struct both {
    struct loop *loop;
    struct channel out;
    int from;
    int drained, broken;
};

static void on_drained(void *ctx)
{
    ((struct both *)ctx)->drained++;
}

static void on_broken(void *ctx, const struct err *why)
{
    (void)why;
    ((struct both *)ctx)->broken++;
}

static const struct channel_events events = { .on_drained = on_drained,
                                              .on_broken = on_broken };

static void open_both(struct both *b)
{
    struct err err = { 0 };
    int fds[2];

    *b = (struct both){ .from = -1 };
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 || loop_new(&b->loop, &err) < 0 ||
        channel_open(&b->out, b->loop, fds[1], false, &events, b, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    b->from = fds[0];
}

static void close_both(struct both *b)
{
    channel_close(&b->out);
    if (b->from >= 0)
        close(b->from);
    loop_free(b->loop);
}

static bool says(struct both *b, const char *text)
{
    struct err err;

    return channel_write(&b->out, str_from(text), &err) == 0;
}

/* What one read finds: nothing is "", the end is "EOF". */
static bool reads(const struct both *b, const char *expected)
{
    char bytes[64];
    ssize_t n = read(b->from, bytes, sizeof(bytes));
    str got = n < 0 ? STR("") : n == 0 ? STR("EOF") : str_of(bytes, (size_t)n);

    return str_is(got, expected);
}

static void test_cork(void)
{
    struct both b;

    open_both(&b);
    ok(says(&b, "a") && reads(&b, "a"), "what is written goes at once");
    channel_cork(&b.out, true);
    ok(says(&b, "b") && says(&b, "c") && reads(&b, ""), "corked: it waits");
    ok(channel_queued(&b.out) == 2, "and is counted");
    loop_run(b.loop);
    ok(reads(&b, ""), "the loop does not send it either, nor wait for it");
    channel_cork(&b.out, false);
    ok(reads(&b, "bc"), "uncorked: all of it at once");
    ok(channel_queued(&b.out) == 0 && b.drained == 1, "which is told");
    channel_cork(&b.out, true);
    channel_cork(&b.out, false);
    ok(reads(&b, "") && b.drained == 1, "nothing to send: nothing is told");
    ok(says(&b, "d") && reads(&b, "d"), "and the next goes at once again");
    close_both(&b);
}

static void test_finish_while_corked(void)
{
    struct both b;

    open_both(&b);
    channel_cork(&b.out, true);
    ok(says(&b, "last"), "corked");
    channel_finish(&b.out);
    ok(reads(&b, "") && b.out.fd >= 0, "an end that was asked for waits, too");
    channel_cork(&b.out, false);
    ok(reads(&b, "last") && reads(&b, "EOF"), "and stands behind what waited");
    channel_cork(&b.out, true);
    channel_cork(&b.out, false);
    ok(b.out.fd < 0 && b.broken == 0, "a closed one may be corked");
    close_both(&b);
}

static void test_reader_goes_while_corked(void)
{
    struct both b;

    open_both(&b);
    channel_cork(&b.out, true);
    ok(says(&b, "x"), "corked");
    close(b.from);
    b.from = -1;
    channel_cork(&b.out, false);
    ok(b.broken == 1 && channel_queued(&b.out) == 0, "that nobody reads is told once");
    ok(!says(&b, "y"), "and known");
    close_both(&b);
}

/* More than the pipe takes: the rest goes as it is read. */
enum {
    LINES = 3000,
    LINE = 100,
    ALL = LINES * LINE
};

struct reader {
    struct loop *loop;
    size_t got;
};

static void on_bytes(void *ctx, str bytes)
{
    struct reader *r = ctx;

    r->got += bytes.n;
    if (r->got >= ALL)
        loop_stop(r->loop);
}

static void test_uncork_to_a_slow_reader(void)
{
    static const struct channel_events reading = { .on_bytes = on_bytes };
    char line[LINE + 1] = { 0 };
    struct channel in;
    struct err err = { 0 };
    struct both b;
    struct reader r;

    open_both(&b);
    r = (struct reader){ b.loop, 0 };
    memset(line, 'x', LINE);
    channel_cork(&b.out, true);
    for (int i = 0; i < LINES; i++)
        says(&b, line);
    ok(channel_queued(&b.out) == ALL, "%d lines wait", LINES);
    channel_cork(&b.out, false);
    ok(channel_queued(&b.out) > 0 && b.drained == 0, "the pipe does not take them all");
    ok(channel_open(&in, b.loop, b.from, false, &reading, &r, &err) == 0, "read: %s",
       err.msg);
    b.from = -1;
    channel_read(&in, true);
    loop_run(b.loop);
    ok(r.got == ALL && b.drained == 1, "they come as they are read: %zu", r.got);
    channel_close(&in);
    close_both(&b);
}

/* What is written in a turn of the loop goes out at its end. */

static void write_twice(void *ctx)
{
    struct both *b = ctx;

    ok(says(b, "a") && says(b, "b") && reads(b, ""), "gathered: it waits");
    ok(channel_queued(&b->out) == 2, "and is counted");
}

static void run_turn(struct both *b, void (*turn)(void *ctx))
{
    struct loop_timer *timer;
    struct err err = { 0 };

    b->out.gathers = true;
    if (loop_timer_new(&timer, b->loop, turn, b, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    loop_timer_set(timer, 0, false);
    loop_run(b->loop);
    loop_timer_free(timer);
}

static void test_gather(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, write_twice);
    ok(reads(&b, "ab") && b.drained == 1, "at the end of the turn all of it goes");
    close_both(&b);
}

static void write_and_stop(void *ctx)
{
    struct both *b = ctx;

    ok(says(b, "last"), "written in the turn that is the last");
    loop_stop(b->loop);
}

static void write_and_close(void *ctx)
{
    struct both *b = ctx;

    ok(says(b, "said") && reads(b, ""), "it waits");
    channel_close(&b->out);
    ok(reads(b, "said") && reads(b, "EOF"), "what was said was said before the end");
}

static void write_and_finish(void *ctx)
{
    struct both *b = ctx;

    ok(says(b, "bye"), "it waits");
    channel_finish(&b->out);
    ok(b->out.fd >= 0 && !says(b, "more"), "the end waits behind it");
}

static void test_gather_at_the_end(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, write_and_stop);
    ok(reads(&b, "last"), "it went out all the same");
    close_both(&b);
    open_both(&b);
    run_turn(&b, write_and_close);
    close_both(&b);
    open_both(&b);
    run_turn(&b, write_and_finish);
    ok(reads(&b, "bye") && reads(&b, "EOF"), "and comes with it");
    close_both(&b);
}

static void write_to_nobody(void *ctx)
{
    struct both *b = ctx;

    close(b->from);
    b->from = -1;
    ok(says(b, "x") && b->broken == 0, "gathered, nobody knows yet");
}

static void test_gather_for_nobody(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, write_to_nobody);
    ok(b.broken == 1 && !says(&b, "y"), "that nobody reads is told once");
    close_both(&b);
}

static void write_much(void *ctx)
{
    static char many[CHANNEL_GATHER_MAX + 1];
    struct both *b = ctx;
    struct err err;

    memset(many, 'm', sizeof(many));
    ok(channel_write(&b->out, str_of(many, sizeof(many) - 1), &err) == 0 &&
           channel_queued(&b->out) == CHANNEL_GATHER_MAX,
       "as much as may wait does");
    ok(says(b, "1") && channel_queued(&b->out) == 0, "a byte more, and all goes at once");
    while (read(b->from, many, sizeof(many)) > 0)
        continue;
    ok(channel_write(&b->out, str_of(many, sizeof(many)), &err) == 0 &&
           channel_queued(&b->out) == 0,
       "what is larger does not wait at all");
}

static void test_gather_much(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, write_much);
    close_both(&b);
}

/* What comes first comes before anything that gathers, and however much that is. */

static void look_before(void *ctx)
{
    struct both *b = ctx;

    ok(reads(b, "") && channel_queued(&b->out) > CHANNEL_GATHER_MAX,
       "what comes first finds nothing gone");
    says(b, "!");
}

static void write_before_first(void *ctx)
{
    static struct loop_chore first;
    static char many[CHANNEL_GATHER_MAX];
    struct both *b = ctx;
    struct err err;

    memset(many, 'm', sizeof(many));
    first = (struct loop_chore){ .run = look_before, .ctx = b, .first = true };
    ok(says(b, "a") && !loop_has_first_chore(b->loop), "it waits");
    loop_chore_set(b->loop, &first);
    loop_chore_set(b->loop, &first);
    ok(loop_has_first_chore(b->loop) &&
           channel_write(&b->out, str_of(many, sizeof(many)), &err) == 0,
       "so does what is too much to wait");
}

static void test_first(void)
{
    char got[2 * CHANNEL_GATHER_MAX];
    struct both b;
    ssize_t n;

    open_both(&b);
    run_turn(&b, write_before_first);
    n = read(b.from, got, sizeof(got));
    ok(n == (ssize_t)CHANNEL_GATHER_MAX + 2 && got[0] == 'a' && got[n - 1] == '!',
       "then all goes");
    close_both(&b);
}

static void look_at_nothing(void *ctx)
{
    ok(reads(ctx, ""), "closed, but what comes first finds nothing gone");
}

static void close_before_first(void *ctx)
{
    static struct loop_chore first;
    struct both *b = ctx;

    first = (struct loop_chore){ .run = look_at_nothing, .ctx = b, .first = true };
    loop_chore_set(b->loop, &first);
    ok(says(b, "said"), "it waits for what comes first");
    channel_close(&b->out);
}

static void test_close_before_first(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, close_before_first);
    ok(reads(&b, "said") && reads(&b, "EOF"), "then what was said goes, and the end");
    close_both(&b);
}

/* What must be done first is done in the middle of a turn: then much may go at once. */

static void write_behind_first(void *ctx)
{
    static struct loop_chore first;
    static char many[CHANNEL_GATHER_MAX + 1], got[sizeof(many) + 1];
    struct both *b = ctx;
    struct err err;

    first = (struct loop_chore){ .run = look_before, .ctx = b, .first = true };
    loop_chore_set(b->loop, &first);
    ok(channel_write(&b->out, str_of(many, sizeof(many)), &err) == 0 &&
           channel_queued(&b->out) == sizeof(many),
       "much waits for what comes first");
    loop_chore_cancel(b->loop, &first);
    ok(says(b, "!") && channel_queued(&b->out) == 0 &&
           read(b->from, got, sizeof(got)) == (ssize_t)sizeof(got),
       "which is done: all goes");
}

static void test_drained_behind_first(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, write_behind_first);
    ok(b.drained == 1, "whoever stopped because of the queue hears that it is empty: %d",
       b.drained);
    close_both(&b);
}

static void cork_and_write(void *ctx)
{
    struct both *b = ctx;

    channel_cork(&b->out, true);
    ok(says(b, "c"), "corked");
}

static void uncork(void *ctx)
{
    struct both *b = ctx;

    channel_cork(&b->out, false);
    ok(reads(b, ""), "uncorked, it waits for the end of the turn");
}

static void test_gather_corked(void)
{
    struct both b;

    open_both(&b);
    run_turn(&b, cork_and_write);
    ok(reads(&b, ""), "the end of the turn is not enough for what is corked");
    run_turn(&b, uncork);
    ok(reads(&b, "c"), "then it goes");
    close_both(&b);
}

/* A peer that says something and is gone: first what it said, then that. */

struct heard {
    struct loop *loop;
    char said[16];
    int ends;
    bool in_error;
};

static void on_said(void *ctx, str bytes)
{
    struct heard *h = ctx;

    snprintf(h->said, sizeof(h->said), STR_FMT, STR_ARG(bytes));
}

static void on_reset(void *ctx, const struct err *why)
{
    struct heard *h = ctx;

    h->ends++;
    h->in_error = why != NULL;
    loop_stop(h->loop);
}

static int connect_both(int *accepted)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof(at);

    if (bind(listener, (struct sockaddr *)&at, n) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &n) < 0 ||
        connect(fd, (struct sockaddr *)&at, n) < 0)
        return -1;
    *accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    close(listener);
    return fd;
}

static void test_said_and_reset(void)
{
    static const struct channel_events hear = { .on_bytes = on_said, .on_end = on_reset };
    const struct linger at_once = { 1, 0 };
    struct heard h = { 0 };
    struct channel in;
    struct err err = { 0 };
    int ours, theirs = connect_both(&ours);

    if (theirs < 0 || loop_new(&h.loop, &err) < 0 ||
        channel_open(&in, h.loop, ours, false, &hear, &h, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    in.is_socket = true;
    channel_read(&in, true);
    setsockopt(theirs, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ok(send(theirs, "last words", 10, 0) == 10 && close(theirs) == 0, "it is reset");
    loop_run(h.loop);
    ok(!strcmp(h.said, "last words"), "what it said comes: '%s'", h.said);
    ok(h.ends == 1 && h.in_error, "and that it is gone");
    channel_close(&in);
    loop_free(h.loop);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_gather();
    test_gather_at_the_end();
    test_gather_for_nobody();
    test_gather_much();
    test_gather_corked();
    test_first();
    test_close_before_first();
    test_drained_behind_first();
    test_cork();
    test_finish_while_corked();
    test_reader_goes_while_corked();
    test_uncork_to_a_slow_reader();
    test_said_and_reset();
    return tap_done();
}
