/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives stdio servers and times them, in turns within one run, so that whatever else the
 * machine does is done to all of them alike. A command is all words up to the next "++".
 *
 *     client time ROUNDS CALLS ++ NAME CMD... [++ NAME CMD...]...
 *         name, p50 and p99 (us, one in flight), calls/s with 1 in flight, with 64 that
 *         go in one write, with 64 that go and come with a write each, CPU per call of
 *         the first process (us), its RssAnon before and after (KiB), p50 of a result of
 *         1 MiB (us, or -1 if none comes); or name and a "-" if it does not answer
 *     client start TIMES ++ NAME CMD... [++ NAME CMD...]...
 *         name, median from fork to the first answer (us)
 *     client calls CALLS DEPTH ++ NAME CMD...
 *         nothing but the calls; then RssAnon before and after (KiB)
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"

#define PEERS_MAX     16
#define MESSAGE_BYTES 300
#define DEPTH         64
#define BIG_CALLS     4  /* of each round */
#define PATIENCE      30 /* s for an answer */
#define PIECE         ((size_t)64 << 10)

struct peer {
    const char *name;
    char **argv;
    pid_t pid;
    int to, from;
    bool failed, mute; /* the second: even small calls */
    uint64_t next_id;
    double *trips, *bigs, *rates1, *rates64, *rates_each, *starts;
    size_t trip_count, big_count, rate_count, start_count;
    double cpu;
    long rss_before, rss_after;
};

static struct peer peers[PEERS_MAX];
static size_t peer_count;

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench client: %s\n", what);
    exit(1);
}

static double clock_us(clockid_t id)
{
    struct timespec t;

    return clock_gettime(id, &t) < 0 ? 0
                                     : (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double now(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

static double cpu_of(pid_t pid)
{
    clockid_t id;

    return clock_getcpuclockid(pid, &id) == 0 ? clock_us(id) : 0;
}

static long rss_of(pid_t pid)
{
    char path[64], line[256];
    long kib = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = strtol(line + 8, NULL, 10);
    }
    if (f)
        fclose(f);
    return kib;
}

/* --- a server --- */

static void launch(struct peer *p)
{
    int in[2], out[2];

    must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
    p->pid = fork();
    must(p->pid >= 0, "fork");
    if (p->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(p->argv[0], p->argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    p->to = in[1];
    p->from = out[0];
    p->next_id = 0;
}

static void stop(struct peer *p)
{
    if (!p->pid)
        return;
    close(p->to);
    if (p->failed)
        kill(p->pid, SIGTERM);
    alarm(PATIENCE);
    if (waitpid(p->pid, NULL, 0) < 0) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }
    alarm(0);
    close(p->from);
    p->pid = 0;
}

/* Whoever writes into a pipe that nobody reads, or waits too long, has failed. */
static void send_bytes(struct peer *p, str bytes)
{
    while (bytes.n && !p->failed) {
        ssize_t n = write(p->to, bytes.p, bytes.n);

        p->failed = n <= 0;
        bytes = str_skip(bytes, n > 0 ? (size_t)n : 0);
    }
}

/* How many lines ended in what could be read. */
static unsigned receive(struct peer *p)
{
    static char bytes[PIECE];
    ssize_t n = read(p->from, bytes, sizeof(bytes));
    unsigned lines = 0;

    p->failed = n <= 0;
    for (const char *at = bytes; n > 0 && at < bytes + n; lines++) {
        at = memchr(at, '\n', (size_t)(bytes + n - at));
        if (!at++)
            break;
    }
    return lines;
}

static void add_call(struct buf *b, struct peer *p, const char *tool)
{
    size_t start = b->n;

    buf_printf(b,
               "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64 ",\"method\":\"tools/call\","
               "\"params\":{\"name\":\"%s\",\"arguments\":{\"path\":\"/srv/data/%" PRIu64
               "\",\"lines\":[1,20],\"text\":\"",
               p->next_id, tool, p->next_id);
    p->next_id++;
    while (b->n - start < MESSAGE_BYTES - 5)
        buf_add_char(b, 'a');
    buf_add(b, STR("\"}}}\n"));
}

static void trip(struct peer *p, struct buf *b, const char *tool)
{
    buf_reset(b);
    add_call(b, p, tool);
    send_bytes(p, buf_str(b));
    while (!p->failed && receive(p) == 0)
        continue;
}

static void greet(struct peer *p)
{
    str hello = STR("{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"method\":\"initialize\","
                    "\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
                    "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n");
    str ready = STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");

    alarm(PATIENCE);
    send_bytes(p, hello);
    while (!p->failed && receive(p) == 0)
        continue;
    send_bytes(p, ready);
    alarm(0);
}

/* `calls` calls with up to `depth` of them in flight. Those that may go at once go in one
 * write and are answered so, or each has a write of its own, both ways. */
static void stream(struct peer *p, struct buf *b, size_t calls, size_t depth, bool each)
{
    size_t sent = 0, got = 0;

    while (got < calls && !p->failed) {
        buf_reset(b);
        for (; sent < calls && sent - got < depth; sent++) {
            add_call(b, p, each ? "single" : "small");
            if (each) {
                send_bytes(p, buf_str(b));
                buf_reset(b);
            }
        }
        send_bytes(p, buf_str(b));
        got += receive(p);
    }
}

/* --- numbers --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double at_share(double *v, size_t n, double share)
{
    if (n == 0)
        return 0;
    qsort(v, n, sizeof(*v), compare);
    return v[(size_t)((double)(n - 1) * share)];
}

static double *room(size_t n)
{
    double *v = calloc(n ? n : 1, sizeof(*v));

    must(v != NULL, "no memory");
    return v;
}

/* --- what can be asked for --- */

static void round_of(struct peer *p, struct buf *b, size_t calls)
{
    double cpu = cpu_of(p->pid), start = now(), last = start;

    alarm(PATIENCE);
    for (size_t i = 0; i < calls && !p->failed; i++) {
        double t;

        trip(p, b, "small");
        t = now();
        p->trips[p->trip_count++] = t - last;
        last = t;
    }
    p->cpu += cpu_of(p->pid) - cpu;
    p->rates1[p->rate_count] = (double)calls / (last - start) * 1e6;
    start = now();
    stream(p, b, calls, DEPTH, false);
    p->rates64[p->rate_count] = (double)calls / (now() - start) * 1e6;
    start = now();
    stream(p, b, calls, DEPTH, true);
    p->rates_each[p->rate_count++] = (double)calls / (now() - start) * 1e6;
    alarm(0);
}

/* Apart from the rest: there are some that do not survive it. */
static void big_round_of(struct peer *p, struct buf *b)
{
    alarm(PATIENCE);
    for (int i = 0; i < BIG_CALLS && !p->failed; i++) {
        double start = now();

        trip(p, b, "big");
        p->bigs[p->big_count++] = now() - start;
    }
    alarm(0);
}

static void each_in_turn(size_t rounds, struct buf *b, size_t calls)
{
    for (size_t i = 0; i < rounds; i++) {
        for (struct peer *p = peers; p < peers + peer_count; p++) {
            if (!p->failed && calls)
                round_of(p, b, calls);
            else if (!p->failed)
                big_round_of(p, b);
        }
    }
}

static void print_times(struct peer *p)
{
    if (p->mute) {
        printf("%s\t-\n", p->name);
        return;
    }
    printf(
        "%s\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.2f\t%ld\t%ld\t%.1f\n", p->name,
        at_share(p->trips, p->trip_count, 0.5), at_share(p->trips, p->trip_count, 0.99),
        at_share(p->rates1, p->rate_count, 0.5), at_share(p->rates64, p->rate_count, 0.5),
        at_share(p->rates_each, p->rate_count, 0.5), p->cpu / (double)p->trip_count,
        p->rss_before, p->rss_after,
        p->failed ? -1 : at_share(p->bigs, p->big_count, 0.5));
}

static void run_time(size_t rounds, size_t calls)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    for (struct peer *p = peers; p < peers + peer_count; p++) {
        p->trips = room(rounds * calls);
        p->bigs = room(rounds * BIG_CALLS);
        p->rates1 = room(rounds);
        p->rates64 = room(rounds);
        p->rates_each = room(rounds);
        launch(p);
        greet(p);
        alarm(PATIENCE);
        trip(p, &b, "small");
        alarm(0);
        p->rss_before = rss_of(p->pid);
    }
    each_in_turn(rounds, &b, calls);
    for (struct peer *p = peers; p < peers + peer_count; p++) {
        p->mute = p->failed;
        p->rss_after = rss_of(p->pid);
    }
    each_in_turn(rounds, &b, 0);
    for (struct peer *p = peers; p < peers + peer_count; p++) {
        print_times(p);
        stop(p);
    }
}

static void run_start(size_t times)
{
    for (struct peer *p = peers; p < peers + peer_count; p++)
        p->starts = room(times);
    for (size_t i = 0; i < times; i++) {
        for (struct peer *p = peers; p < peers + peer_count; p++) {
            double start = now();

            if (p->failed)
                continue;
            launch(p);
            greet(p);
            p->starts[p->start_count++] = now() - start;
            stop(p);
        }
    }
    for (struct peer *p = peers; p < peers + peer_count; p++)
        printf("%s\t%.0f\n", p->name,
               p->failed ? -1 : at_share(p->starts, p->start_count, 0.5));
}

static void run_calls(size_t calls, size_t depth)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct peer *p = &peers[0];
    long before;

    launch(p);
    greet(p);
    before = rss_of(p->pid);
    stream(p, &b, calls, depth, false);
    printf("%s\t%ld\t%ld\n", p->name, before, rss_of(p->pid));
    must(!p->failed, "the server has gone or does not answer");
    stop(p);
}

/* --- the command line --- */

static void take_peers(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "++") != 0)
            continue;
        must(peer_count < PEERS_MAX && i + 2 < argc, "a name and a command after ++");
        argv[i] = NULL; /* where the command before ends */
        peers[peer_count].name = argv[i + 1];
        peers[peer_count++].argv = argv + i + 2;
    }
    must(peer_count > 0, "no command");
}

static void on_alarm(int number)
{
    (void)number; /* it ends the read that waits */
}

static size_t number(int argc, char **argv, int i)
{
    return i < argc ? strtoul(argv[i], NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    struct sigaction alarm_action = { .sa_handler = on_alarm };
    size_t first = number(argc, argv, 2), second = number(argc, argv, 3);
    const char *what = argc > 3 ? argv[1] : "";

    sigaction(SIGALRM, &alarm_action, NULL);
    signal(SIGPIPE, SIG_IGN);
    must(argc > 3, "usage: client time|start|calls N [N] ++ NAME CMD...");
    take_peers(argc, argv);
    if (strcmp(what, "time") == 0)
        run_time(first, second);
    else if (strcmp(what, "start") == 0)
        run_start(first);
    else
        run_calls(first, second);
    return 0;
}
