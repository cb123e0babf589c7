/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/volley.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"
#include "transport/channel.h"

struct pair {
    int ours, theirs;
};

static struct pair open_pair(void)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0) {
        printf("Bail out! no sockets\n");
        exit(1);
    }
    return (struct pair){ fds[0], fds[1] };
}

static void close_pair(struct pair *p)
{
    file_close(&p->ours);
    file_close(&p->theirs);
}

static bool hears(const struct pair *p, str want)
{
    char bytes[64];
    ssize_t n = read(p->theirs, bytes, sizeof(bytes));

    return n == (ssize_t)want.n && memcmp(bytes, want.p, want.n) == 0;
}

static void fill(const struct pair *p)
{
    static const char bytes[4096];

    while (write(p->ours, bytes, sizeof(bytes)) > 0)
        continue;
}

static bool is_here(void)
{
    struct volley *v = NULL;
    struct volley_shot none;
    bool here = volley_fire(&v, &none, 0);

    volley_free(v);
    return here;
}

static void test_each_hears_its_own(void)
{
    struct pair p[VOLLEY_MAX];
    struct volley_shot shots[VOLLEY_MAX];
    char texts[VOLLEY_MAX][8];
    struct volley *v = NULL;
    unsigned heard = 0;

    for (size_t i = 0; i < VOLLEY_MAX; i++) {
        p[i] = open_pair();
        snprintf(texts[i], sizeof(texts[i]), "n%zu", i);
        shots[i] = (struct volley_shot){ .fd = p[i].ours, .bytes = str_from(texts[i]) };
    }
    for (int again = 0; again < 2; again++) {
        ok(volley_fire(&v, shots, VOLLEY_MAX), "as many as there may be");
        for (size_t i = 0; i < VOLLEY_MAX; i++)
            heard += shots[i].result == (ssize_t)shots[i].bytes.n &&
                     hears(&p[i], shots[i].bytes);
    }
    ok(heard == 2 * VOLLEY_MAX, "each hears its own, both times");
    for (size_t i = 0; i < VOLLEY_MAX; i++)
        close_pair(&p[i]);
    volley_free(v);
}

static void test_nobody_waits_for_a_reader(void)
{
    struct pair full = open_pair(), gone = open_pair(), good = open_pair();
    struct volley_shot shots[] = { { .fd = full.ours, .bytes = STR("a") },
                                   { .fd = gone.ours, .bytes = STR("b") },
                                   { .fd = good.ours, .bytes = STR("c") },
                                   { .fd = -1, .bytes = STR("d") } };
    struct volley *v = NULL;

    fill(&full);
    file_close(&gone.theirs);
    ok(volley_fire(&v, shots, COUNT(shots)), "one that does not read, one that is gone");
    ok(shots[0].result == -EAGAIN, "nothing, for now");
    ok(shots[1].result == -EPIPE, "and nobody is there; no signal either");
    ok(shots[2].result == 1 && hears(&good, STR("c")), "the others do not suffer");
    ok(shots[3].result == -EBADF, "no descriptor at all");
    close_pair(&full);
    close_pair(&gone);
    close_pair(&good);
    volley_free(v);
}

static void test_a_part_is_told(void)
{
    static const char much[8 << 20];
    struct pair p = open_pair();
    struct volley_shot shot = { .fd = p.ours, .bytes = { much, sizeof(much) } };
    struct volley *v = NULL;

    ok(volley_fire(&v, &shot, 1) && shot.result > 0 &&
           shot.result < (ssize_t)sizeof(much),
       "of much only what fits");
    close_pair(&p);
    volley_free(v);
}

static struct sockaddr_un name_of(int which)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "volley-%d-%d", (int)getpid(),
             which);
    return at;
}

static int bound(int which)
{
    struct sockaddr_un at = name_of(which);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        printf("Bail out! no sockets\n");
        exit(1);
    }
    return fd;
}

static bool connects(int fd, int to)
{
    struct sockaddr_un at = name_of(to);

    return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

/* One may not send to somebody who talks to another one only: that is EPERM, as from a
 * ring that may not send. */
static void test_a_ring_that_does_not_send_is_not_asked_again(void)
{
    struct pair p = open_pair();
    CLEANUP(file_close) int one = bound(1);
    CLEANUP(file_close) int two = bound(2);
    CLEANUP(file_close) int three = bound(3);
    struct volley_shot shots[] = { { .fd = one, .bytes = STR("a") },
                                   { .fd = p.ours, .bytes = STR("b") } };
    struct volley *v = NULL;

    ok(three >= 0 && connects(one, 2) && connects(two, 3) && send(one, "a", 1, 0) < 0 &&
           errno == EPERM,
       "a socket that says what such a ring says");
    ok(volley_fire(&v, shots, 2) && shots[0].result == -EAGAIN, "not sent, for now");
    ok(shots[1].result == 1 && hears(&p, STR("b")), "the other was sent");
    ok(!volley_fire(&v, shots, 2), "and from now on each sends by itself");
    close_pair(&p);
    volley_free(v);
}

/* Without a descriptor there is no ring. */
static void test_where_there_is_none(void)
{
    struct pair p = open_pair();
    struct volley_shot shot = { .fd = p.ours, .bytes = STR("x") };
    struct volley *v = NULL;
    struct rlimit before, none;

    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    ok(!volley_fire(&v, &shot, 1), "none is to be had");
    setrlimit(RLIMIT_NOFILE, &before);
    ok(!volley_fire(&v, &shot, 1) && read(p.theirs, &none, 1) < 0,
       "it is not tried again, and nothing was sent");
    close_pair(&p);
    volley_free(v);
}

/* --- channels that go out together --- */

#define MANY (VOLLEY_MAX + 6)

enum {
    ACTS,
    CLOSED,
    CORKED,
    TOLD_MORE,
    GONE,
    FULL
}; /* what becomes of the first ones */

static struct line {
    struct pair pair;
    struct channel out;
    int drained, broken;
} lines[MANY];

static struct loop *loop;

static bool write_to(struct line *l, const char *text)
{
    struct err err;

    return channel_write(&l->out, str_from(text), &err) == 0;
}

/* All have gone out by now, and the first one hears of it before the others do. */
static void on_drained(void *ctx)
{
    struct line *l = ctx;

    l->drained++;
    if (l != &lines[ACTS] || l->drained > 1)
        return;
    channel_close(&lines[CLOSED].out);
    channel_cork(&lines[CORKED].out, true);
    ok(write_to(&lines[TOLD_MORE], "+"), "one is told more");
}

static void on_broken(void *ctx, const struct err *why)
{
    (void)why;
    ((struct line *)ctx)->broken++;
}

static void write_to_all(void *ctx)
{
    unsigned written = 0;

    (void)ctx;
    for (size_t i = 0; i < MANY; i++)
        written += write_to(&lines[i], "x");
    ok(written == MANY && !hears(&lines[0].pair, STR("x")),
       "all wait for the turn's end");
}

static void run_turn(void)
{
    struct loop_timer *timer;
    struct err err = { 0 };

    if (loop_timer_new(&timer, loop, write_to_all, NULL, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    fill(&lines[FULL].pair);
    file_close(&lines[GONE].pair.theirs);
    loop_timer_set(timer, 0, false);
    loop_run(loop);
    loop_timer_free(timer);
}

static void drain_full(void *ctx)
{
    static char bytes[1 << 20];

    (void)ctx;
    while (read(lines[FULL].pair.theirs, bytes, sizeof(bytes)) > 0)
        continue;
}

static void open_lines(void)
{
    static const struct channel_events events = { .on_drained = on_drained,
                                                  .on_broken = on_broken };
    struct err err = { 0 };
    int bad = loop_new(&loop, &err);

    for (size_t i = 0; bad == 0 && i < MANY; i++) {
        struct line *l = &lines[i];

        *l = (struct line){ .pair = open_pair() };
        bad = channel_open(&l->out, loop, l->pair.ours, false, &events, l, &err);
        l->pair.ours = l->out.fd;
        l->out.is_socket = l->out.gathers = true;
    }
    if (bad) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}

static void close_lines(void)
{
    for (size_t i = 0; i < MANY; i++) {
        channel_close(&lines[i].out);
        file_close(&lines[i].pair.theirs);
    }
    loop_free(loop);
}

static void test_channels_account_for_their_own(void)
{
    struct loop_timer *later;
    struct err err = { 0 };
    unsigned heard = 0;

    open_lines();
    if (loop_timer_new(&later, loop, drain_full, NULL, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    loop_timer_set(later, 50, false);
    run_turn();
    for (size_t i = FULL + 1; i < MANY; i++)
        heard += hears(&lines[i].pair, STR("x")) && lines[i].drained == 1;
    ok(heard == MANY - FULL - 1, "whoever has nothing else hears it once");
    ok(hears(&lines[ACTS].pair, STR("x")) && lines[ACTS].drained == 1, "the first, too");
    ok(hears(&lines[CLOSED].pair, STR("x")) && hears(&lines[CLOSED].pair, STR("")),
       "one that was closed meanwhile heard it, and its end");
    ok(hears(&lines[CORKED].pair, STR("x")) && lines[CORKED].drained == 0,
       "one is corked");
    channel_cork(&lines[CORKED].out, false);
    loop_run(loop);
    ok(lines[CORKED].drained == 1 && read(lines[CORKED].pair.theirs, &heard, 1) < 0,
       "uncorked it does not say it again");
    ok(hears(&lines[TOLD_MORE].pair, STR("x+")), "what came behind comes behind");
    ok(lines[GONE].broken == 1 && lines[GONE].drained == 0, "who is gone is told once");
    ok(lines[FULL].drained == 1 && hears(&lines[FULL].pair, STR("x")),
       "who did not read hears it when he does");
    loop_timer_free(later);
    close_lines();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the program does, for who sends by himself */
    test_where_there_is_none();
    test_channels_account_for_their_own();
    if (!is_here()) {
        tap_skip("volleys", "the kernel lets us have no io_uring");
        return tap_done();
    }
    test_each_hears_its_own();
    test_nobody_waits_for_a_reader();
    test_a_part_is_told();
    test_a_ring_that_does_not_send_is_not_asked_again();
    return tap_done();
}
