/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a share: its start, its end, and what lies between two lives. */
#include "pipeline/share.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/file.h"
#include "pipeline/relay.h"
#include "pipeline/share_internal.h"

const struct err share_why_ended = { ERR_PEER, "the server ended before it answered" };
const struct err share_why_start = { ERR_PEER, "the server cannot be started" };
const struct err share_why_held = { ERR_LIMIT,
                                    "the server is being started again, and too much "
                                    "waits for it" };
const struct err share_why_open = { ERR_LIMIT, "too many requests wait for the server" };
const struct err share_why_queue = { ERR_LIMIT, "the server does not read" };
const struct err share_why_large = { ERR_LIMIT, "the message is too large" };
const struct err share_why_slow = { ERR_LIMIT,
                                    "the client does not read what the server says" };
const struct err share_why_memory = { ERR_NOMEM, "no memory for a message" };
const struct err share_why_batch = { ERR_LIMIT, "the batch is too large" };
const struct err share_why_ambiguous = {
    ERR_FORMAT, "the message is neither a request nor an answer"
};

void share_say(const struct share *s, const char *fmt, ...)
{
    char sentence[600];
    va_list ap;

    if (!s->o.say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    s->o.say(s->o.ctx, sentence);
}

/* --- what the server says --- */

static void server_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    struct share *s = ctx;
    str line;

    (void)x;
    if (!share_line_add(&s->line, bytes, end, &line))
        return;
    if (s->line.too_long)
        share_from_server_long(s, line);
    else
        share_from_server(s, line);
    share_trim(s);
    share_line_reset(&s->line);
}

static void server_drained(void *ctx)
{
    share_drained(ctx);
}

static void server_gone(void *ctx, const struct err *why)
{
    (void)why;
    share_hear_out(ctx);
}

static void server_ended(void *ctx, const struct err *why);

static const struct endpoint_events server_events = { server_span, server_ended,
                                                      server_drained, server_gone, NULL };

/* A member that does not read stops the server, for a while. */
void share_set_reading(struct share *s)
{
    bool full = false;

    for (const struct member *m = s->oldest; m && !full; m = m->newer)
        full = m->waiting > SHARE_QUEUE_MAX;
    if (full && !s->full)
        loop_timer_set(s->stall, SHARE_STALL_MAX, false);
    if (!full)
        loop_timer_stop(s->stall);
    s->full = full;
    if (s->side.endpoint.type)
        s->side.endpoint.type->read(&s->side.endpoint, !full);
}

/* --- its end --- */

static void close_side(struct share *s)
{
    if (s->side.endpoint.type)
        s->side.endpoint.type->close(&s->side.endpoint);
    s->side = (struct stdio){ 0 };
    child_release(&s->child);
    share_line_reset(&s->line);
    share_asked_clear(s);
}

/* Calls back last: the share may be freed there. */
static void be_over(struct share *s)
{
    close_side(s);
    s->phase = SHARE_OVER;
    loop_timer_stop(s->deadline);
    if (s->gone)
        s->gone(s->gone_ctx);
}

static void pause_longer(struct share *s)
{
    s->pause = s->pause ? s->pause * 2 : SHARE_PAUSE_MIN;
    if (s->pause > SHARE_PAUSE_MAX)
        s->pause = SHARE_PAUSE_MAX;
    s->phase = SHARE_DOWN;
    loop_timer_set(s->deadline, s->pause, false);
}

static void tell_end(const struct share *s, const char *how, int number)
{
    share_say(s, "the server %s %d; it is started again in %llu ms", how, number,
              (unsigned long long)s->pause);
}

static struct share_end how_it_ended(const struct share *s)
{
    if (!s->child.exited)
        return (struct share_end){ "closed", 0 };
    if (WIFEXITED(s->status))
        return (struct share_end){ "exit", (unsigned)WEXITSTATUS(s->status) };
    return (struct share_end){ "signal", (unsigned)WTERMSIG(s->status) };
}

/* Behind what is lost: whoever has nothing open must know, too. */
static void tell_members(struct share *s, struct share_end end)
{
    for (struct member *m = s->oldest; m; m = m->newer)
        share_put(m, PARCEL_END, NULL, str_of((const char *)&end, sizeof(end)), NULL);
}

static void end_life(struct share *s)
{
    bool exited = s->child.exited;
    int status = s->status;
    struct share_end how = how_it_ended(s);

    if (s->phase >= SHARE_LEAVING) {
        be_over(s);
        return;
    }
    if (loop_now(s->o.loop) - s->started >= SHARE_STEADY)
        s->pause = 0;
    close_side(s);
    pause_longer(s);
    if (exited && WIFEXITED(status))
        tell_end(s, "exited with status", WEXITSTATUS(status));
    else if (exited)
        tell_end(s, "was ended by signal", WTERMSIG(status));
    else
        share_say(s, "the server closed its end; it is started again in %llu ms",
                  (unsigned long long)s->pause);
    share_ask_lose(s, false, &share_why_ended);
    tell_members(s, how);
    share_deliver(s);
}

/* What it wrote before its end is read, unless something else keeps the pipe open; and
 * whose pipe is closed is given time to exit. */
void share_hear_out(struct share *s)
{
    if (s->phase < SHARE_ENDING) {
        s->phase = SHARE_ENDING;
        loop_timer_set(s->deadline, RELAY_LAST_WORDS, false);
    }
}

static void come_to_end(struct share *s)
{
    if (s->child.exited && (s->silent || s->phase >= SHARE_LEAVING))
        end_life(s);
    else
        share_hear_out(s);
}

static void server_ended(void *ctx, const struct err *why)
{
    struct share *s = ctx;

    (void)why;
    s->silent = true;
    come_to_end(s);
}

static void server_exit(void *ctx, int status)
{
    struct share *s = ctx;

    s->status = status;
    come_to_end(s);
}

/* --- its start --- */

static int start(struct share *s, struct err *err)
{
    int to = -1, from = -1;

    if (child_start(&s->child, s->o.loop, s->o.argv, &to, &from, server_exit, s, err) < 0)
        return -1;
    if (stdio_open(&s->side, s->o.loop, from, to, false, &server_events, s, err) < 0) {
        s->side = (struct stdio){ 0 };
        child_release(&s->child);
        return -1;
    }
    s->started = loop_now(s->o.loop);
    s->side.out.gathers = true;
    s->silent = s->said_bad = s->awake = false;
    if (s->corks)
        s->side.endpoint.type->cork(&s->side.endpoint, true);
    share_set_reading(s);
    return 0;
}

/* Those who waited for it to take something need wait no more. */
void share_awake(struct share *s)
{
    s->awake = false;
    if (s->phase != SHARE_WAKING)
        return;
    s->phase = SHARE_RUNNING;
    share_release_held(s);
    if (s->side.endpoint.type->queued(&s->side.endpoint) == 0)
        share_drained(s);
}

static void fail_start(struct share *s, const struct err *why)
{
    share_ask_lose(s, true, &share_why_start);
    buf_release(&s->held);
    pause_longer(s);
    share_say(s, "%s; it is tried again in %llu ms", why->msg,
              (unsigned long long)s->pause);
    share_drained(s);
}

static void start_again(struct share *s)
{
    struct err err;

    if (start(s, &err) < 0) {
        fail_start(s, &err);
        return;
    }
    share_say(s, "the server was started again");
    s->phase = SHARE_WAKING;
    if (!share_send_hello(s))
        share_awake(s);
}

/* --- time --- */

static void terminate(struct share *s)
{
    s->phase = SHARE_TERMINATING;
    child_signal(&s->child, SIGTERM);
    loop_timer_set(s->deadline, RELAY_TERM_GRACE, false);
}

static void on_deadline(void *ctx)
{
    struct share *s = ctx;

    switch (s->phase) {
    case SHARE_ENDING:
        if (s->full && !s->silent) /* we are the ones who do not read */
            loop_timer_set(s->deadline, RELAY_LAST_WORDS, false);
        else
            end_life(s);
        break;
    case SHARE_DOWN:
        start_again(s);
        break;
    case SHARE_LEAVING:
        terminate(s);
        break;
    case SHARE_TERMINATING:
        be_over(s);
        break;
    case SHARE_RUNNING:
    case SHARE_WAKING:
    case SHARE_OVER:
        break;
    }
}

/* --- opening and closing --- */

static int open_all(struct share *s, struct err *err)
{
    if (loop_timer_new(&s->deadline, s->o.loop, on_deadline, s, err) < 0 ||
        loop_timer_new(&s->wake, s->o.loop, share_on_wake, s, err) < 0 ||
        loop_timer_new(&s->stall, s->o.loop, share_on_stall, s, err) < 0)
        return -1;
    return start(s, err);
}

int share_open(struct share **out, const struct share_options *options, struct err *err)
{
    struct share *s = calloc(1, sizeof(*s));

    if (!s)
        return err_set(err, ERR_NOMEM, "no memory for a shared server");
    s->o = *options;
    s->child.guard_fd = s->child.pid_fd = -1;
    if (open_all(s, err) < 0) {
        share_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

void share_free(struct share *s)
{
    if (!s)
        return;
    s->phase = SHARE_OVER;
    while (s->oldest)
        share_member_free(s->oldest);
    close_side(s);
    while (s->first_ask)
        share_ask_free(s, s->first_ask);
    share_trim(s);
    map_release(&s->asks);
    loop_timer_free(s->deadline);
    loop_timer_free(s->wake);
    loop_timer_free(s->stall);
    share_line_release(&s->line);
    json_release(&s->json);
    splice_release(&s->splice);
    buf_release(&s->key);
    buf_release(&s->scratch);
    buf_release(&s->hello);
    buf_release(&s->initialized);
    buf_release(&s->held);
    free(s);
}

void share_finish(struct share *s, void (*gone)(void *ctx), void *ctx)
{
    bool there = s->phase < SHARE_ENDING;

    s->gone = gone;
    s->gone_ctx = ctx;
    s->phase = there ? SHARE_LEAVING : SHARE_TERMINATING;
    if (there)
        s->side.endpoint.type->finish(&s->side.endpoint);
    loop_timer_set(s->deadline, there ? RELAY_EXIT_GRACE : 0, false);
}
