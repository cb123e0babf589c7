/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/err.h"
#include "base/file.h"
#include "transport/volley.h"
#include "transport/workers.h"

struct loop {
    uv_loop_t uv;
    uv_loop_t timers; /* runs when the alarm rings */
    uv_poll_t alarm;
    int alarm_fd;
    uint64_t rings_at; /* of the clock of `timers`; UINT64_MAX: it does not */
    uv_check_t after_ready;
    uv_prepare_t before_wait; /* what timers leave */
    struct chores {
        struct loop_chore *first, **last;
    } chores[2];           /* by loop_chore.first */
    struct volley *volley; /* NULL: none yet */
    struct workers workers;
    uv_async_t done; /* one of them is */
    unsigned works;  /* that are not */
};

static int fail(struct err *err, const char *what, int code)
{
    return err_set(err, ERR_IO, "%s: %s", what, uv_strerror(code));
}

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the event loop");
}

/* --- chores --- */

static void take_out(struct loop *l, struct loop_chore *c)
{
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    else
        l->chores[c->first].last = c->at;
    c->at = NULL;
}

static void on_before_wait(uv_prepare_t *prepare);
static void on_after_ready(uv_check_t *check);

/* They are no reason to stay, and cost nothing where there are none. */
static void mind_chores(struct loop *l, bool on)
{
    if (on) {
        uv_prepare_start(&l->before_wait, on_before_wait);
        uv_check_start(&l->after_ready, on_after_ready);
    } else {
        uv_prepare_stop(&l->before_wait);
        uv_check_stop(&l->after_ready);
    }
}

void loop_chore_set(struct loop *l, struct loop_chore *c)
{
    struct chores *list = &l->chores[c->first];

    if (c->at)
        return;
    if (!l->chores[false].first && !l->chores[true].first)
        mind_chores(l, true);
    c->next = NULL;
    c->at = list->last;
    *c->at = c;
    list->last = &c->next;
}

void loop_chore_cancel(struct loop *l, struct loop_chore *c)
{
    if (c->at)
        take_out(l, c);
}

const struct loop_chore *loop_chores(const struct loop *l)
{
    return l->chores[false].first;
}

struct volley **loop_volley(struct loop *l)
{
    return &l->volley;
}

bool loop_has_first_chore(const struct loop *l)
{
    return l->chores[true].first != NULL;
}

static void run_chores(struct loop *l)
{
    struct loop_chore *c;

    while ((c = l->chores[true].first ? l->chores[true].first : l->chores[false].first)) {
        take_out(l, c);
        c->run(c->ctx);
    }
    mind_chores(l, false);
}

static void on_before_wait(uv_prepare_t *prepare)
{
    run_chores(prepare->data);
}

static void on_after_ready(uv_check_t *check)
{
    run_chores(check->data);
}

static void open_chores(struct loop *l)
{
    for (int i = 0; i < 2; i++)
        l->chores[i].last = &l->chores[i].first;
    uv_prepare_init(&l->uv, &l->before_wait);
    uv_check_init(&l->uv, &l->after_ready);
    l->before_wait.data = l->after_ready.data = l;
    uv_unref((uv_handle_t *)&l->before_wait);
    uv_unref((uv_handle_t *)&l->after_ready);
}

/* --- the alarm --- */

/* A wait that is to end at some time makes the kernel set a timer up and take it down
 * again, each time. So the loop waits without one: timers have a loop of their own, and
 * a descriptor that is readable when the next of them is due. */
static void set_alarm(struct loop *l)
{
    int wait = uv_loop_alive(&l->timers) ? uv_backend_timeout(&l->timers) : -1;
    struct itimerspec in = { .it_value = { wait / 1000, wait % 1000 * 1000000L + 1 } };
    uint64_t at = uv_now(&l->timers) + (uint64_t)wait;

    if (wait < 0) {
        uv_unref((uv_handle_t *)&l->alarm); /* no reason to stay; it may ring in vain */
        return;
    }
    uv_ref((uv_handle_t *)&l->alarm);
    if (at < l->rings_at && timerfd_settime(l->alarm_fd, 0, &in, NULL) == 0)
        l->rings_at = at;
}

static void on_alarm(uv_poll_t *alarm, int status, int events)
{
    struct loop *l = alarm->data;
    uint64_t times;

    (void)status;
    (void)events;
    if (read(l->alarm_fd, &times, sizeof(times)) < 0)
        return;      /* it was set anew */
    l->rings_at = 0; /* what is set meanwhile is seen to below */
    uv_run(&l->timers, UV_RUN_NOWAIT);
    l->rings_at = UINT64_MAX;
    set_alarm(l);
}

static int open_alarm(struct loop *l)
{
    int code;

    l->rings_at = UINT64_MAX;
    l->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->alarm_fd < 0)
        return uv_translate_sys_error(errno);
    code = uv_loop_init(&l->timers);
    if (code < 0) {
        file_close(&l->alarm_fd);
        return code;
    }
    l->timers.data = l;
    uv_run(&l->timers, UV_RUN_NOWAIT); /* what it watches itself is set up */
    uv_poll_init(&l->uv, &l->alarm, l->alarm_fd);
    l->alarm.data = l;
    uv_poll_start(&l->alarm, UV_READABLE, on_alarm);
    uv_unref((uv_handle_t *)&l->alarm);
    return 0;
}

/* --- the loop --- */

static void open_workers(struct loop *l);

int loop_new(struct loop **out, struct err *err)
{
    struct loop *l = calloc(1, sizeof(*l));
    int code;

    if (!l)
        return no_memory(err);
    code = uv_loop_init(&l->uv);
    if (code == 0 && (code = open_alarm(l)) < 0)
        uv_loop_close(&l->uv);
    if (code < 0) {
        free(l);
        return fail(err, "cannot make an event loop", code);
    }
    open_chores(l);
    open_workers(l);
    *out = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    uv_close((uv_handle_t *)&l->before_wait, NULL);
    uv_close((uv_handle_t *)&l->after_ready, NULL);
    uv_close((uv_handle_t *)&l->alarm, NULL);
    uv_run(&l->timers, UV_RUN_DEFAULT); /* closing handles end here */
    uv_run(&l->uv, UV_RUN_DEFAULT);     /* and work */
    workers_release(&l->workers);
    uv_close((uv_handle_t *)&l->done, NULL);
    uv_run(&l->timers, UV_RUN_DEFAULT); /* what the last of it closed */
    uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_loop_close(&l->timers);
    uv_loop_close(&l->uv);
    file_close(&l->alarm_fd);
    volley_free(l->volley);
    free(l);
}

void loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
    run_chores(l); /* of the turn in which it was stopped */
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

uint64_t loop_now(struct loop *l)
{
    return uv_now(&l->uv);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle->data);
}

/* --- descriptors --- */

struct loop_watch {
    union {
        uv_handle_t handle;
        uv_poll_t poll;
        uv_idle_t idle;
    } uv;
    bool is_file; /* always ready: epoll refuses regular files and /dev/null */
    unsigned events;
    void (*on_ready)(void *ctx, unsigned events);
    void *ctx;
};

/* After an error libuv watches it no more. But bytes may have come with it: once they
 * are read, the next read tells of the error. */
static void watch_again(struct loop_watch *w)
{
    unsigned wanted = w->events;

    loop_watch_set(w, 0);
    loop_watch_set(w, wanted);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct loop_watch *w = poll->data;
    unsigned ready = (events & UV_READABLE ? LOOP_READABLE : 0u) |
                     (events & UV_WRITABLE ? LOOP_WRITABLE : 0u);

    if (status < 0)
        watch_again(w);
    /* An error or a hang-up is found out by reading or writing. */
    w->on_ready(w->ctx, status < 0 || !ready ? w->events : ready);
}

static void on_idle(uv_idle_t *idle)
{
    struct loop_watch *w = idle->data;

    w->on_ready(w->ctx, w->events);
}

int loop_watch_new(struct loop_watch **out, struct loop *l, int fd,
                   void (*on_ready)(void *ctx, unsigned events), void *ctx,
                   struct err *err)
{
    struct loop_watch *w = calloc(1, sizeof(*w));
    int code;

    if (!w)
        return no_memory(err);
    code = uv_poll_init(&l->uv, &w->uv.poll, fd);
    w->is_file = code == UV_EPERM;
    if (w->is_file)
        code = uv_idle_init(&l->uv, &w->uv.idle);
    if (code < 0) {
        free(w);
        return fail(err, "cannot watch a descriptor", code);
    }
    w->uv.handle.data = w;
    w->on_ready = on_ready;
    w->ctx = ctx;
    *out = w;
    return 0;
}

void loop_watch_set(struct loop_watch *w, unsigned events)
{
    if (w->events == events)
        return;
    w->events = events;
    if (w->is_file && events)
        uv_idle_start(&w->uv.idle, on_idle);
    else if (w->is_file)
        uv_idle_stop(&w->uv.idle);
    else if (events)
        uv_poll_start(&w->uv.poll,
                      (events & LOOP_READABLE ? UV_READABLE : 0) |
                          (events & LOOP_WRITABLE ? UV_WRITABLE : 0),
                      on_poll);
    else
        uv_poll_stop(&w->uv.poll);
}

void loop_watch_free(struct loop_watch *w)
{
    if (!w)
        return;
    loop_watch_set(w, 0);
    uv_close(&w->uv.handle, free_handle);
}

/* --- timers --- */

struct loop_timer {
    uv_timer_t uv;
    void (*on_time)(void *ctx);
    void *ctx;
};

static struct loop *loop_of(const struct loop_timer *t)
{
    return t->uv.loop->data;
}

static void on_timer(uv_timer_t *timer)
{
    struct loop_timer *t = timer->data;

    t->on_time(t->ctx);
}

int loop_timer_new(struct loop_timer **out, struct loop *l, void (*on_time)(void *ctx),
                   void *ctx, struct err *err)
{
    struct loop_timer *t = calloc(1, sizeof(*t));

    if (!t)
        return no_memory(err);
    uv_timer_init(&l->timers, &t->uv);
    t->uv.data = t;
    t->on_time = on_time;
    t->ctx = ctx;
    *out = t;
    return 0;
}

void loop_timer_set(struct loop_timer *t, uint64_t ms, bool repeat)
{
    uv_update_time(t->uv.loop); /* it has stood still since the alarm rang */
    uv_timer_start(&t->uv, on_timer, ms, repeat ? ms : 0);
    set_alarm(loop_of(t));
}

void loop_timer_stop(struct loop_timer *t)
{
    uv_timer_stop(&t->uv);
    set_alarm(loop_of(t));
}

bool loop_timer_is_set(const struct loop_timer *t)
{
    return uv_is_active((const uv_handle_t *)&t->uv) != 0;
}

void loop_timer_free(struct loop_timer *t)
{
    struct loop *l;

    if (!t)
        return;
    l = loop_of(t);
    uv_close((uv_handle_t *)&t->uv, free_handle);
    set_alarm(l);
}

/* --- signals --- */

struct loop_signal {
    uv_signal_t uv;
    int number;
    void (*on_signal)(void *ctx, int number);
    void *ctx;
};

static void hold_back(int how, int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(how, &set, NULL);
}

static void on_uv_signal(uv_signal_t *signal, int number)
{
    struct loop_signal *s = signal->data;

    s->on_signal(s->ctx, number);
}

int loop_signal_new(struct loop_signal **out, struct loop *l, int number,
                    void (*on_signal)(void *ctx, int number), void *ctx, struct err *err)
{
    struct loop_signal *s = calloc(1, sizeof(*s));
    int code;

    if (!s)
        return no_memory(err);
    uv_signal_init(&l->uv, &s->uv);
    s->uv.data = s;
    s->number = number;
    s->on_signal = on_signal;
    s->ctx = ctx;
    code = uv_signal_start(&s->uv, on_uv_signal, number);
    if (code < 0) {
        loop_signal_free(s);
        return fail(err, "cannot watch a signal", code);
    }
    uv_unref((uv_handle_t *)&s->uv); /* waiting for a signal is no reason to stay */
    hold_back(SIG_UNBLOCK, number);
    *out = s;
    return 0;
}

void loop_signal_free(struct loop_signal *s)
{
    if (!s)
        return;
    hold_back(SIG_BLOCK, s->number);
    uv_close((uv_handle_t *)&s->uv, free_handle);
}

/* --- work that may block --- */

struct loop_work {
    struct work work; /* first: what the workers hold is this */
    void (*done)(void *ctx);
};

static void on_done(uv_async_t *done)
{
    struct loop *l = done->data;
    struct work *work;

    while ((work = workers_done(&l->workers))) {
        if (--l->works == 0)
            uv_unref((uv_handle_t *)&l->done);
        ((struct loop_work *)work)->done(work->ctx);
        free(work);
    }
}

static void wake(void *ctx)
{
    struct loop *l = ctx;

    uv_async_send(&l->done);
}

static void open_workers(struct loop *l)
{
    uv_async_init(&l->uv, &l->done, on_done); /* the descriptor is the loop's */
    l->done.data = l;
    uv_unref((uv_handle_t *)&l->done);
    workers_init(&l->workers, wake, l);
}

int loop_work(struct loop *l, void (*run)(void *ctx), void (*done)(void *ctx), void *ctx,
              struct err *err)
{
    struct loop_work *w = calloc(1, sizeof(*w));

    if (!w)
        return no_memory(err);
    *w = (struct loop_work){ .work = { .run = run, .ctx = ctx }, .done = done };
    if (workers_add(&l->workers, &w->work, err) < 0) {
        free(w);
        return -1;
    }
    if (l->works++ == 0)
        uv_ref((uv_handle_t *)&l->done);
    return 0;
}
