/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/relay.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "pipeline/answer.h"
#include "pipeline/intake.h"
#include "pipeline/tap.h"
#include "transport/child.h"
#include "transport/loop.h"
#include "transport/stdio.h"

#define TICK         1000 /* ms: timeouts of calls, checkpoints, heartbeats */
#define FLUSH_AFTER  50   /* ms that events may wait for the next write */
#define HEARTBEAT_MS 60000

/* Where the end stands. Only ever moves down this list. */
enum phase {
    RUNNING,
    DRAINING,    /* no more from the client; answers are awaited */
    LEAVING,     /* the server should go: EOF was sent */
    TERMINATING, /* SIGTERM was sent */
    OVER,
};

struct relay {
    const struct relay_options *o;
    struct loop *loop;
    struct stdio side[2]; /* by where a message goes: TO_SERVER is the server */
    struct intake intake[2];
    struct child child;
    struct session *session;
    struct tap tap;
    struct loop_timer *tick, *flush, *deadline;
    struct loop_signal *sigint, *sigterm, *sighup;
    enum phase phase;
    bool client_ended, server_ended, server_exited;
    int server_status;
    bool signalled; /* a signal began the end */
    int signal_number;
    bool ended_server; /* we sent it a signal */
    bool cut;          /* a message was cut: the session is not complete */
    bool client_gone;
    uint64_t last_event;
    uint64_t events_at_checkpoint;
    char reason[64];
    bool clean;
};

static void say(const struct relay *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(const struct relay *r, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!r->o->say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    r->o->say(r->o->say_ctx, sentence);
}

/* --- the end, step by step --- */

static void over(struct relay *r)
{
    r->phase = OVER;
    loop_stop(r->loop);
}

static void why(struct relay *r, const char *reason, bool clean)
{
    if (r->reason[0])
        return; /* what came first is the reason */
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
    r->clean = clean;
}

static void terminate(struct relay *r, int number, uint64_t grace)
{
    r->phase = TERMINATING;
    r->ended_server = true;
    child_signal(&r->child, number);
    loop_timer_set(r->deadline, grace, false);
}

/* Nobody is waited for any more but the server itself. */
static void leave(struct relay *r)
{
    if (r->phase >= LEAVING)
        return;
    r->phase = LEAVING;
    channel_read(&r->side[TO_CLIENT].in, false);
    r->side[TO_SERVER].endpoint.type->finish(&r->side[TO_SERVER].endpoint);
    if (r->server_exited)
        over(r);
    else if (r->signalled)
        terminate(r, r->signal_number, RELAY_TERM_GRACE);
    else
        loop_timer_set(r->deadline, RELAY_EXIT_GRACE, false);
}

static void drain(struct relay *r)
{
    if (r->phase >= DRAINING)
        return;
    r->phase = DRAINING;
    channel_read(&r->side[TO_CLIENT].in, false);
    if (r->client_ended)
        r->side[TO_SERVER].endpoint.type->finish(&r->side[TO_SERVER].endpoint);
    if (tap_open_calls(&r->tap) == 0 || r->server_ended || r->client_gone)
        leave(r);
    else
        loop_timer_set(r->deadline, r->o->shutdown_timeout, false);
}

static void on_deadline(void *ctx)
{
    struct relay *r = ctx;

    switch (r->phase) {
    case DRAINING:
        leave(r);
        break;
    case LEAVING:
        terminate(r, SIGTERM, RELAY_TERM_GRACE);
        break;
    case RUNNING: /* the server exited, somebody holds its pipes */
    case TERMINATING:
    case OVER:
        over(r);
        break;
    }
}

/* --- messages --- */

static enum direction other(enum direction d)
{
    return d == TO_SERVER ? TO_CLIENT : TO_SERVER;
}

static void send_to(struct relay *r, enum direction d, struct exchange *x, str bytes,
                    bool end, bool *sent)
{
    struct endpoint *e = &r->side[d].endpoint;
    struct err err;

    *sent = bytes.n == 0 || e->type->send(e, x, bytes, end, &err) == 0;
    if (!*sent && d == TO_CLIENT) {
        r->client_gone = true;
        why(r, "broken_pipe", false);
        drain(r);
        return;
    }
    /* A reader that stalls stops the writer. */
    if (e->type->queued(e) > RELAY_QUEUE_STOP)
        r->side[other(d)].endpoint.type->read(&r->side[other(d)].endpoint, false);
}

static bool may_read(const struct relay *r, enum direction to)
{
    if (to == TO_SERVER)
        return r->phase == RUNNING;
    return true;
}

static void drained(struct relay *r, enum direction d)
{
    if (may_read(r, d))
        r->side[other(d)].endpoint.type->read(&r->side[other(d)].endpoint, true);
}

/* Evidence could not be written and the policy is to block. */
static void refuse(struct relay *r, enum direction d, struct exchange *x)
{
    CLEANUP(buf_release) struct buf answer = { 0 };
    bool sent;

    answer_refusals(&answer, &r->tap, d);
    if (answer.n)
        send_to(r, TO_CLIENT, x, buf_str(&answer), true, &sent);
}

static void take_message(struct relay *r, enum direction d, struct exchange *x,
                         const struct intake_result *m)
{
    struct err err = { 0 };
    bool sent;

    r->last_event = loop_now(r->loop);
    if (tap_receive(&r->tap, d, m->frame, x, loop_now(r->loop), &err) < 0 &&
        r->o->block && !m->streamed) {
        refuse(r, d, x);
        return;
    }
    if (r->tap.drop)
        return;
    send_to(r, d, x, m->pass, true, &sent);
    if (sent)
        tap_forwarded(&r->tap);
    if (!loop_timer_is_set(r->flush))
        loop_timer_set(r->flush, FLUSH_AFTER, false);
    if (r->phase == DRAINING && tap_open_calls(&r->tap) == 0)
        leave(r);
}

static void cut(struct relay *r, enum direction d, const struct err *why_cut)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct message m = { .dir = d == TO_SERVER ? "c2s" : "s2c",
                         .kind = "invalid",
                         .bytes = r->intake[d].bytes,
                         .digest =
                             STR("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934"
                                 "ca495991b7852b855") };
    struct err ignored;

    say(r, "%s; the connection is cut", why_cut->msg);
    message_event(&e, EVENT_MESSAGE_CUT, &m);
    event_add_cstr(&e, "reason",
                   why_cut->code == ERR_LIMIT ? "too_large" : "spool_failed");
    if (session_put(r->session, &e, NULL, &ignored) < 0)
        say(r, "%s", ignored.msg);
    r->cut = true;
    why(r, "message_cut", false);
    intake_done(&r->intake[d]);
    leave(r);
}

static void on_span(struct relay *r, enum direction d, struct exchange *x, str bytes,
                    bool end)
{
    struct intake_result result;
    struct err err = { 0 };
    bool sent;

    if (r->phase == OVER || r->cut)
        return;
    if (intake_add(&r->intake[d], bytes, end, &result, &err) < 0) {
        cut(r, d, &err);
        return;
    }
    if (result.step == INTAKE_PASS)
        send_to(r, d, x, result.pass, false, &sent);
    if (result.step == INTAKE_MESSAGE) {
        take_message(r, d, x, &result);
        intake_done(&r->intake[d]);
    }
}

/* --- the client's side --- */

static void client_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    on_span(ctx, TO_SERVER, x, bytes, end);
}

static void client_ended(void *ctx, const struct err *why_ended)
{
    struct relay *r = ctx;

    r->client_ended = true;
    why(r, "client_eof", why_ended == NULL);
    drain(r);
}

static void client_drained(void *ctx)
{
    drained(ctx, TO_CLIENT);
}

static void client_gone(void *ctx, const struct err *why_gone)
{
    struct relay *r = ctx;

    (void)why_gone;
    r->client_gone = true;
    why(r, "broken_pipe", false);
    drain(r);
}

static const struct endpoint_events client_events = { client_span, client_ended,
                                                      client_drained, client_gone };

/* --- the server's side --- */

static void server_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    on_span(ctx, TO_CLIENT, x, bytes, end);
}

static void server_ended(void *ctx, const struct err *why_ended)
{
    struct relay *r = ctx;

    (void)why_ended;
    r->server_ended = true;
    if (r->server_exited) {
        over(r);
        return;
    }
    if (r->phase == RUNNING || r->phase == DRAINING) {
        r->phase = RUNNING;
        leave(r);
    }
}

static void server_drained(void *ctx)
{
    drained(ctx, TO_SERVER);
}

static void server_gone(void *ctx, const struct err *why_gone)
{
    (void)ctx;
    (void)why_gone; /* it may still have something to say: its stdout tells */
}

static const struct endpoint_events server_events = { server_span, server_ended,
                                                      server_drained, server_gone };

static void server_exit(void *ctx, int status)
{
    struct relay *r = ctx;

    r->server_exited = true;
    r->server_status = status;
    why(r, "server_exit", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (r->server_ended)
        over(r);
    else /* what it has written is read; a grandchild may hold the pipe for ever */
        loop_timer_set(r->deadline, RELAY_LAST_WORDS, false);
    if (r->phase < TERMINATING && !r->server_ended)
        r->phase = RUNNING;
}

/* --- signals and time --- */

static void on_signal(void *ctx, int number)
{
    struct relay *r = ctx;
    bool again = r->signalled;

    r->signalled = true;
    r->signal_number = number == SIGHUP ? SIGTERM : number;
    why(r, number == SIGINT ? "sigint" : "sigterm", true);
    if (r->client_ended && r->phase < TERMINATING)
        terminate(r, SIGTERM, RELAY_EXIT_GRACE);
    else if (again && r->phase <= DRAINING)
        leave(r);
    else if (again && r->phase < OVER)
        over(r);
    else
        drain(r);
}

static void on_flush(void *ctx)
{
    struct relay *r = ctx;
    struct err err;

    if (session_flush(r->session, &err) < 0)
        say(r, "%s", err.msg);
}

struct checkpoint_job {
    struct relay *r;
    struct err err;
    int result;
};

static void heartbeat(struct relay *r)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct err err;

    event_init(&e, EVENT_HEARTBEAT);
    if (session_put(r->session, &e, NULL, &err) < 0)
        say(r, "%s", err.msg);
    r->last_event = loop_now(r->loop);
}

static void run_checkpoint(void *ctx)
{
    struct checkpoint_job *job = ctx;

    job->result = log_checkpoint(job->r->o->log, false, &job->err);
}

static void checkpoint_done(void *ctx)
{
    struct checkpoint_job *job = ctx;

    if (job->result < 0)
        say(job->r, "%s", job->err.msg);
    free(job);
}

static void begin_checkpoint(struct relay *r)
{
    struct checkpoint_job *job;
    struct err err;

    if (session_history(r->session)->counts.events == r->events_at_checkpoint)
        return;
    r->events_at_checkpoint = session_history(r->session)->counts.events;
    job = calloc(1, sizeof(*job));
    if (!job)
        return;
    job->r = r;
    if (loop_work(r->loop, run_checkpoint, checkpoint_done, job, &err) < 0)
        free(job);
}

static void on_tick(void *ctx)
{
    struct relay *r = ctx;
    uint64_t now = loop_now(r->loop);

    tap_tick(&r->tap, now);
    if (now - r->last_event >= HEARTBEAT_MS)
        heartbeat(r);
    begin_checkpoint(r);
    if (r->phase == DRAINING && tap_open_calls(&r->tap) == 0)
        leave(r);
}

static void on_call_timeout(void *ctx, str id)
{
    CLEANUP(buf_release) struct buf answer = { 0 };
    struct relay *r = ctx;
    bool sent;

    answer_error(&answer, id, -31007, "call timed out", "call_timeout");
    send_to(r, TO_CLIENT, NULL, buf_str(&answer), true, &sent);
}

/* --- opening and closing --- */

static int open_loop(struct relay *r, struct err *err)
{
    if (loop_new(&r->loop, err) < 0 ||
        loop_timer_new(&r->tick, r->loop, on_tick, r, err) < 0 ||
        loop_timer_new(&r->flush, r->loop, on_flush, r, err) < 0 ||
        loop_timer_new(&r->deadline, r->loop, on_deadline, r, err) < 0 ||
        loop_signal_new(&r->sigint, r->loop, SIGINT, on_signal, r, err) < 0 ||
        loop_signal_new(&r->sigterm, r->loop, SIGTERM, on_signal, r, err) < 0)
        return -1;
    return loop_signal_new(&r->sighup, r->loop, SIGHUP, on_signal, r, err);
}

static int open_session(struct relay *r, struct err *err)
{
    const struct session_options options = { .log = r->o->log,
                                             .server_id = r->o->server_id,
                                             .transport = "stdio",
                                             .client_transport = "stdio",
                                             .profile = "audit",
                                             .pack_empty = r->o->pack_empty };
    struct tap_options tap = { .store_arguments = r->o->store_arguments,
                               .store_results = r->o->store_results,
                               .pepper = r->o->pepper,
                               .call_timeout = r->o->call_timeout,
                               .on_timeout = on_call_timeout,
                               .ctx = r };

    if (session_open(&r->session, &options, err) < 0 ||
        entropy_fill(log_entropy(r->o->log), &tap.seed, sizeof(tap.seed), err) < 0)
        return -1;
    tap.session = r->session;
    tap_init(&r->tap, &tap);
    intake_init(&r->intake[TO_SERVER], log_dir(r->o->log), r->o->max_message);
    intake_init(&r->intake[TO_CLIENT], log_dir(r->o->log), r->o->max_message);
    return 0;
}

/* The server first: when it cannot be started, nothing has happened. */
static int open_sides(struct relay *r, struct err *err)
{
    int to = -1, from = -1;

    if (child_start(&r->child, r->loop, r->o->argv, &to, &from, server_exit, r, err) < 0)
        return -1;
    if (open_session(r, err) < 0) {
        file_close(&to);
        file_close(&from);
        return -1;
    }
    if (stdio_open(&r->side[TO_SERVER], r->loop, from, to, false, &server_events, r,
                   err) < 0)
        return -1;
    return stdio_open(&r->side[TO_CLIENT], r->loop, STDIN_FILENO, STDOUT_FILENO, true,
                      &client_events, r, err);
}

static void close_all(struct relay *r)
{
    for (int d = 0; d < 2; d++) {
        if (r->side[d].endpoint.type)
            r->side[d].endpoint.type->close(&r->side[d].endpoint);
        intake_release(&r->intake[d]);
    }
    child_release(&r->child);
    loop_timer_free(r->tick);
    loop_timer_free(r->flush);
    loop_timer_free(r->deadline);
    loop_signal_free(r->sigint);
    loop_signal_free(r->sigterm);
    loop_signal_free(r->sighup);
    loop_free(r->loop);
    tap_release(&r->tap);
    session_free(r->session);
}

static const char *open_calls_reason(const struct relay *r)
{
    if (r->signalled || r->ended_server)
        return "shutdown"; /* we ended the server, not it itself */
    if (r->client_gone)
        return "client_gone";
    return r->server_exited || r->server_ended ? "server_exit" : "shutdown";
}

/* The server's own death by signal is no proper end, unless the signal was ours. */
static bool ended_well(const struct relay *r)
{
    if (!r->clean || r->cut || r->client_gone)
        return false;
    if (r->ended_server || !r->server_exited)
        return true;
    return WIFEXITED(r->server_status) &&
           (WEXITSTATUS(r->server_status) == 0 || strcmp(r->reason, "server_exit") != 0);
}

static int seal(struct relay *r, struct relay_outcome *out, struct err *err)
{
    const struct session_ending ending = { .reason = r->reason[0] ? r->reason : "end",
                                           .clean = ended_well(r),
                                           .open_calls = open_calls_reason(r) };
    struct pack_request request = { .session = session_id(r->session),
                                    .receipts = session_receipts(r->session),
                                    .first = session_history(r->session)->first };
    bool packable = false;

    if (session_end(r->session, &ending, &request.cut, &packable, err) < 0)
        return -1;
    out->complete = session_history(r->session)->complete;
    out->calls = session_history(r->session)->counts.calls;
    if (packable && r->o->pack) {
        if (pack_build(r->o->log, &request, &out->pack, err) < 0)
            return -1;
        out->packed = true;
    }
    return log_forget_session(r->o->log, session_id(r->session), err);
}

static int run(struct relay *r, struct relay_outcome *out, struct err *err)
{
    if (open_loop(r, err) < 0 || open_sides(r, err) < 0)
        return -1;
    loop_timer_set(r->tick, TICK, true);
    r->last_event = loop_now(r->loop);
    channel_read(&r->side[TO_SERVER].in, true);
    channel_read(&r->side[TO_CLIENT].in, true);
    loop_run(r->loop);
    child_release(&r->child);
    out->interrupted = r->signalled && r->signal_number == SIGINT;
    if (seal(r, out, err) < 0)
        return -1;
    out->evidence_lost = log_lost_total(r->o->log) > 0;
    return 0;
}

int relay_run(const struct relay_options *options, struct relay_outcome *outcome,
              struct err *err)
{
    struct relay r = { .o = options, .child = { .guard_fd = -1, .pid_fd = -1 } };
    int result;

    r.side[0].in.fd = r.side[0].out.fd = r.side[1].in.fd = r.side[1].out.fd = -1;
    r.intake[0].spool = r.intake[1].spool = -1;
    *outcome = (struct relay_outcome){ .complete = false };
    result = run(&r, outcome, err);
    close_all(&r);
    return result;
}
