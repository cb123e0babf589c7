/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

/* A few timers, and in which order they went off. */
struct clock {
    struct loop *loop;
    struct bell {
        struct clock *clock;
        struct loop_timer *timer;
        char name;
    } bell[4];
    char rang[32];
    void (*then)(struct bell *b);
};

static void on_time(void *ctx)
{
    struct bell *b = ctx;
    size_t n = strlen(b->clock->rang);

    if (n + 1 < sizeof(b->clock->rang))
        b->clock->rang[n] = b->name;
    if (b->clock->then)
        b->clock->then(b);
}

static void bail(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}

static void open_clock(struct clock *c)
{
    struct err err = { 0 };

    *c = (struct clock){ 0 };
    if (loop_new(&c->loop, &err) < 0)
        bail(err.msg);
    for (int i = 0; i < 4; i++) {
        c->bell[i] = (struct bell){ .clock = c, .name = (char)('a' + i) };
        if (loop_timer_new(&c->bell[i].timer, c->loop, on_time, &c->bell[i], &err) < 0)
            bail(err.msg);
    }
}

static void close_clock(struct clock *c)
{
    for (int i = 0; i < 4; i++)
        loop_timer_free(c->bell[i].timer);
    loop_free(c->loop);
}

static void set(struct clock *c, char name, uint64_t ms)
{
    loop_timer_set(c->bell[name - 'a'].timer, ms, false);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_order(void)
{
    struct clock c;
    uint64_t began;

    open_clock(&c);
    set(&c, 'a', 60);
    set(&c, 'b', 20);
    set(&c, 'c', 40);
    set(&c, 'd', 0);
    began = now_ms();
    loop_run(c.loop);
    ok(!strcmp(c.rang, "dbca"), "timers go off in the order of their times");
    ok(now_ms() - began >= 59, "none of them early");
    ok(!loop_timer_is_set(c.bell[0].timer), "and once");
    loop_run(c.loop);
    ok(!strcmp(c.rang, "dbca"), "a loop without anything to wait for ends");
    close_clock(&c);
}

static void test_sooner_and_later(void)
{
    struct clock c;
    uint64_t began = now_ms();

    open_clock(&c);
    set(&c, 'a', 3600000);
    set(&c, 'b', 30);
    set(&c, 'a', 10); /* sooner than what is set for both */
    set(&c, 'c', 5);
    set(&c, 'c', 50); /* the alarm rings in vain */
    set(&c, 'd', 1);
    loop_timer_stop(c.bell[3].timer);
    loop_run(c.loop);
    ok(!strcmp(c.rang, "abc"), "set anew, and stopped");
    ok(now_ms() - began < 60000, "the hour is forgotten");
    close_clock(&c);
}

static void stop_at_three(struct bell *b)
{
    if (strlen(b->clock->rang) == 3)
        loop_timer_stop(b->timer);
}

static void test_repeat(void)
{
    struct clock c;

    open_clock(&c);
    c.then = stop_at_three;
    loop_timer_set(c.bell[0].timer, 5, true);
    loop_run(c.loop);
    ok(!strcmp(c.rang, "aaa"), "a timer repeats until it is stopped");
    close_clock(&c);
}

static void set_next_and_go(struct bell *b)
{
    struct clock *c = b->clock;
    int next = b->name - 'a' + 1;

    if (next < 4)
        loop_timer_set(c->bell[next].timer, next == 2 ? 0 : 1, false);
    loop_timer_free(b->timer);
    b->timer = NULL;
}

static void test_free_inside(void)
{
    struct clock c;

    open_clock(&c);
    c.then = set_next_and_go;
    set(&c, 'a', 0);
    loop_run(c.loop);
    ok(!strcmp(c.rang, "abcd"), "a timer sets the next and is freed where it rings");
    close_clock(&c);
}

static void stop_loop(struct bell *b)
{
    loop_stop(b->clock->loop);
}

static void test_stop(void)
{
    struct clock c;

    open_clock(&c);
    c.then = stop_loop;
    set(&c, 'a', 1);
    set(&c, 'b', 30);
    loop_run(c.loop);
    ok(!strcmp(c.rang, "a"), "stopped behind the one that said so");
    c.then = NULL;
    loop_run(c.loop);
    ok(!strcmp(c.rang, "ab"), "what is set stays set");
    close_clock(&c);
}

/* A descriptor that is always ready does not keep timers from going off. */

struct busy {
    struct clock clock;
    struct loop_watch *watch;
    unsigned times;
};

static void on_ready(void *ctx, unsigned events)
{
    struct busy *b = ctx;

    (void)events;
    b->times++;
    if (b->clock.rang[0])
        loop_watch_set(b->watch, 0);
}

static void watch_always(const char *what, int fd)
{
    struct err err = { 0 };
    struct busy b = { 0 };

    open_clock(&b.clock);
    if (fd < 0 || loop_watch_new(&b.watch, b.clock.loop, fd, on_ready, &b, &err) < 0)
        bail(err.msg);
    loop_watch_set(b.watch, LOOP_READABLE);
    set(&b.clock, 'a', 20);
    loop_run(b.clock.loop);
    ok(!strcmp(b.clock.rang, "a"), "beside %s", what);
    ok(b.times > 1, "which was seen to %u times", b.times);
    loop_watch_free(b.watch);
    close_clock(&b.clock);
    close(fd);
}

static void test_busy(void)
{
    int fds[2];

    watch_always("a file", open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 || write(fds[1], "x", 1) != 1)
        bail("no pipe");
    watch_always("a pipe that nobody reads", fds[0]);
    close(fds[1]);
}

int main(void)
{
    test_order();
    test_sooner_and_later();
    test_repeat();
    test_free_inside();
    test_stop();
    test_busy();
    return tap_done();
}
