/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/front.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/front_internal.h"
#include "pipeline/share.h"
#include "pipeline/upstream.h"
#include "transport/child.h"
#include "transport/listen_address.h"
#include "transport/resolve.h"
#include "transport/tls.h"

#define TICK       1000 /* ms */
#define LAST_WORDS 1000 /* ms that our end waits for who still reads */

void front_say(const struct front *f, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!f->relay.say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    f->relay.say(f->relay.say_ctx, sentence);
}

void front_soon(struct seat *s)
{
    struct front *f = s->front;

    if (s->is_due)
        return;
    s->is_due = true;
    s->next_due = f->due;
    f->due = s;
    loop_chore_set(f->loop, &f->soon);
}

/* What is said last gets a moment to be heard. */
static void stop_when_done(struct front *f)
{
    uint64_t now = loop_now(f->loop);

    if (!f->stopping || f->seats || f->stopped)
        return;
    if (f->stop_by == 0)
        f->stop_by = now + LAST_WORDS;
    if (http_server_open_requests(f->server) + http_server_connections(f->server) > 0 &&
        now < f->stop_by) {
        loop_timer_set(f->dead, 10, false);
        return;
    }
    f->stopped = true;
    loop_stop(f->loop);
}

static void on_soon(void *ctx)
{
    struct front *f = ctx;
    struct seat *due = f->due;

    f->due = NULL;
    while (due) {
        struct seat *s = due;

        due = s->next_due;
        s->is_due = false;
        front_look(s);
    }
    far_bury(f);
    stop_when_done(f);
}

/* --- time and signals --- */

static void on_tick(void *ctx)
{
    struct front *f = ctx;
    uint64_t now = loop_now(f->loop);

    for (struct seat *s = f->seats, *next; s; s = next) {
        next = s->next;
        front_tick_seat(s, now);
    }
    far_sweep(f);
    steward_tick(&f->steward);
    stop_when_done(f);
}

/* For the sessions that are open, and for those that will be. */
static void reload(struct front *f)
{
    struct policy_file next = { 0 };
    struct err err = { 0 };

    if (!f->relay.policy)
        return;
    if (policy_file_load(&next, f->policy.path, &err) < 0 ||
        policy_file_keep(&next, log_dir(f->relay.log), &err) < 0) {
        front_say(f, "%s; the policy stays as it was (%s)", err.msg, f->policy.hash);
        policy_file_release(&next);
        return;
    }
    policy_file_release(&f->policy);
    f->policy = next;
    front_say(f, "the policy was loaded anew: %s", f->policy.hash);
}

static size_t count_busy(const struct front *f)
{
    size_t n = 0;

    for (const struct seat *s = f->seats; s; s = s->next)
        n += s->state <= SEAT_ENDING && relay_is_busy(s->relay);
    return n;
}

static void begin_to_stop(struct front *f)
{
    size_t busy = count_busy(f);

    if (!f->stopping && busy)
        front_say(f,
                  "waiting up to %llu s for the open calls of %zu session%s; another "
                  "signal ends them now",
                  (unsigned long long)f->relay.shutdown_timeout / 1000, busy,
                  busy == 1 ? "" : "s");
    f->stopping = true;
    http_server_finish(f->server);
}

static void on_signal(void *ctx, int number)
{
    struct front *f = ctx;

    f->outcome.interrupted = f->outcome.interrupted || number == SIGINT;
    if (number == SIGHUP && f->relay.policy)
        reload(f);
    else
        begin_to_stop(f);
    f->is_reloading = !f->stopping;
    for (struct seat *s = f->seats, *next; s; s = next) {
        next = s->next;
        if (s->state <= SEAT_ENDING)
            relay_signal(s->relay, number);
    }
    f->is_reloading = false;
    stop_when_done(f);
}

static void on_recovered(void *ctx)
{
    struct front *f = ctx;

    if (f->stopped)
        loop_stop(f->loop);
}

static void on_dead(void *ctx)
{
    struct front *f = ctx;

    if (f->stopped)
        loop_stop(f->loop);
    else
        stop_when_done(f);
}

/* --- opening and closing --- */

/* A session says what is new to it; what is new to all is said once. */
static void on_say(void *ctx, const char *sentence)
{
    const struct front *f = ctx;

    if (f->o->relay->say && !f->is_reloading)
        f->o->relay->say(f->o->relay->say_ctx, sentence);
}

static void on_packed(void *ctx, const struct pack_result *pack)
{
    const struct front *f = ctx;

    if (f->o->relay->packed)
        f->o->relay->packed(f->o->relay->say_ctx, pack);
}

static void take_options(struct front *f)
{
    f->relay = *f->o->relay;
    f->relay.say = on_say;
    f->relay.packed = on_packed;
    f->relay.say_ctx = f;
    f->relay.given = &f->handed;
}

static int open_policy(struct front *f, struct err *err)
{
    if (!f->relay.policy)
        return 0;
    if (policy_file_copy(&f->policy, f->o->relay->policy, err) < 0)
        return -1;
    f->relay.policy = &f->policy;
    return 0;
}

/* Where the requests of clients would come back to us. */
static int check_upstream(const struct front *f, struct err *err)
{
    const struct url *url = f->relay.upstream ? &f->relay.upstream->url : NULL;

    if (!url || url->port != http_server_port(f->server) ||
        !(str_equal_nocase(str_from(url->host), str_from(f->o->host)) ||
          (listen_host_is_loopback(url->host) && f->o->is_loopback)))
        return 0;
    return err_set(err, ERR_FORMAT, "--upstream-url is where we listen ourselves");
}

static int open_loop(struct front *f, struct err *err)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

    f->soon = (struct loop_chore){ .run = on_soon, .ctx = f };
    if (loop_new(&f->loop, err) < 0 ||
        loop_timer_new(&f->tick, f->loop, on_tick, f, err) < 0 ||
        loop_timer_new(&f->dead, f->loop, on_dead, f, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (loop_signal_new(&f->signals[i], f->loop, numbers[i], on_signal, f, err) < 0)
            return -1;
    }
    return 0;
}

static void open_steward(struct front *f)
{
    const struct relay_options *o = f->o->relay;
    const struct steward_options options = { .loop = f->loop,
                                             .log = o->log,
                                             .say = o->say,
                                             .packed = o->packed,
                                             .hook_ctx = o->say_ctx,
                                             .recovered = on_recovered,
                                             .recovered_ctx = f };

    steward_init(&f->steward, &options);
    turn_init(&f->turn, f->loop, o->log);
}

static int open_server(struct front *f, struct err *err)
{
    struct http_server_options options = { .loop = f->loop,
                                           .host = f->o->host,
                                           .port = f->o->port,
                                           .clock = log_clock(f->relay.log),
                                           .events = &front_events,
                                           .ctx = f };
    bool v6 = str_starts(str_from(f->o->host), STR(":")) ||
              memchr(f->o->host, ':', str_from(f->o->host).n) != NULL;

    options.identity = f->o->identity;
    if (http_server_open(&f->server, &options, err) < 0)
        return -1;
    snprintf(f->url, sizeof(f->url), "%s://%s%s%s:%u/mcp",
             f->o->identity ? "https" : "http", v6 ? "[" : "", f->o->host, v6 ? "]" : "",
             http_server_port(f->server));
    return 0;
}

static int open_upstream(struct front *f, struct err *err)
{
    const struct upstream_options *o = f->relay.upstream;

    if (!o)
        return 0;
    if (o->url.tls && tls_trust_new(&f->trust, o->ca_file, err) < 0)
        return -1;
    return resolver_new(&f->resolver, f->loop, err);
}

/* A command that is not there is better missed now than by every client. */
static int check_command(const struct front *f, struct err *err)
{
    return f->relay.argv ? child_check(f->relay.argv, err) : 0;
}

static int open_share(struct front *f, struct err *err)
{
    const struct share_options options = { .loop = f->loop,
                                           .argv = f->relay.argv,
                                           .say = f->relay.say,
                                           .ctx = f->relay.say_ctx };

    return f->o->share_child ? share_open(&f->share, &options, err) : 0;
}

static void close_all(struct front *f)
{
    http_server_free(f->server);
    share_free(f->share);
    far_bury(f);
    resolver_free(f->resolver); /* nobody is looking any more */
    far_close(f);
    tls_trust_free(f->trust);
    loop_timer_free(f->tick);
    loop_timer_free(f->dead);
    for (size_t i = 0; i < sizeof(f->signals) / sizeof(f->signals[0]); i++)
        loop_signal_free(f->signals[i]);
    loop_free(f->loop);
    policy_file_release(&f->policy);
    peek_release(&f->peek);
    peek_release(&f->said);
    mirror_release(&f->marks);
    buf_release(&f->headers);
    buf_release(&f->body);
    buf_release(&f->request);
    buf_release(&f->known_as);
    free(f->slots);
    free(f);
}

/* Others' sessions are finished with what time our own end leaves. */
static void wait_for_recovery(struct front *f)
{
    loop_timer_stop(f->tick);
    loop_timer_set(f->dead, STEWARD_DEAD_WAIT, false);
    if (f->steward.recovering)
        loop_run(f->loop);
    f->outcome.abandoned = f->steward.recovering;
}

static int run(struct front *f, struct err *err)
{
    open_steward(f);
    if (entropy_fill(log_entropy(f->relay.log), &f->seed, sizeof(f->seed), err) < 0 ||
        open_policy(f, err) < 0 || open_upstream(f, err) < 0 ||
        check_command(f, err) < 0 || open_server(f, err) < 0 ||
        check_upstream(f, err) < 0 || open_share(f, err) < 0)
        return -1;
    f->outcome.started = true;
    if (f->o->listening)
        f->o->listening(f->o->ctx, f->url);
    steward_recover(&f->steward);
    loop_timer_set(f->tick, TICK, true);
    loop_run(f->loop);
    f->outcome.evidence_lost = log_lost_total(f->relay.log) > 0;
    wait_for_recovery(f);
    return 0;
}

int front_run(const struct front_options *options, struct front_outcome *outcome,
              struct err *err)
{
    struct front *f = calloc(1, sizeof(*f)); /* a worker may outlive this call */
    int result;

    *outcome = (struct front_outcome){ .started = false };
    if (!f)
        return err_set(err, ERR_NOMEM, "no memory to serve");
    f->o = options;
    take_options(f);
    result = open_loop(f, err) < 0 ? -1 : run(f, err);
    *outcome = f->outcome;
    if (!outcome->abandoned)
        close_all(f);
    return result;
}
