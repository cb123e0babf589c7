/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "transport/loop.h"
#include "transport/thread.h"

/* One name. Its thread fills `answer` and puts it on the list; from then on it is the
 * loop's. The loop may have given up on it by then. */
struct lookup {
    struct lookup *next;
    struct lookup *other; /* of those that wait, or that were started */
    struct shared *shared;
    char name[RESOLVE_NAME_MAX];
    struct resolved answer;

    struct resolver *resolver; /* from here on the loop's alone */
    bool started;
    struct loop_timer *timer;
    void (*done)(void *ctx, const struct resolved *answer);
    void *ctx;
};

/* What threads may still hold when the resolver is gone. */
struct shared {
    pthread_mutex_t mutex;
    unsigned holders; /* threads, and the resolver */
    bool left;        /* the resolver is gone */
    int event;        /* wakes the loop */
    struct lookup *finished;
};

struct resolver {
    struct loop *loop;
    struct loop_watch *watch;
    struct shared *shared;
    unsigned running;       /* threads */
    struct lookup *waiting; /* for one; the oldest first */
    unsigned waiting_count;
    struct lookup *started; /* linked by `other` */
};

static void let_go(struct shared *s)
{
    bool last;

    pthread_mutex_lock(&s->mutex);
    last = --s->holders == 0;
    pthread_mutex_unlock(&s->mutex);
    if (!last)
        return;
    file_close(&s->event);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* --- the thread --- */

static bool add_address(struct resolved *out, const struct addrinfo *a)
{
    if (out->count == RESOLVE_ADDRESSES)
        return false;
    if (a->ai_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)a->ai_addr;

        out->at[out->count].v6 = false;
        memcpy(out->at[out->count++].bytes, &in->sin_addr, 4);
    } else if (a->ai_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)a->ai_addr;

        out->at[out->count].v6 = true;
        memcpy(out->at[out->count++].bytes, &in->sin6_addr, 16);
    }
    return true;
}

static void look_up(struct lookup *l)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;

    if (getaddrinfo(l->name, NULL, &hints, &found) != 0)
        return;
    for (const struct addrinfo *a = found; a; a = a->ai_next) {
        if (add_address(&l->answer, a))
            continue;
        l->answer.count = 0;
        break;
    }
    freeaddrinfo(found);
}

static void *run(void *of_thread)
{
    struct lookup *l = of_thread;
    struct shared *s = l->shared;
    uint64_t one = 1;
    bool left;

    look_up(l);
    pthread_mutex_lock(&s->mutex);
    left = s->left;
    if (!left) {
        l->next = s->finished;
        s->finished = l;
    }
    pthread_mutex_unlock(&s->mutex);
    if (left)
        free(l);
    else if (write(s->event, &one, sizeof(one)) < 0)
        abort(); /* an eventfd takes another one */
    let_go(s);
    return NULL;
}

/* --- the loop --- */

static void unlink_from(struct lookup **list, const struct lookup *l)
{
    while (*list && *list != l)
        list = &(*list)->other;
    if (*list)
        *list = l->other;
}

static void answer(struct lookup *l, const struct resolved *with)
{
    void (*done)(void *ctx, const struct resolved *) = l->done;

    if (!done)
        return;
    loop_timer_free(l->timer);
    l->timer = NULL;
    l->done = NULL;
    done(l->ctx, with);
}

/* The thread still has it, if it has one. */
static void on_late(void *ctx)
{
    static const struct resolved nothing;
    struct lookup *l = ctx;
    struct resolver *r = l->resolver;

    if (l->started) {
        answer(l, &nothing);
        return;
    }
    unlink_from(&r->waiting, l);
    r->waiting_count--;
    answer(l, &nothing);
    free(l);
}

/* Without a thread it waits, and is late. */
static void start_waiting(struct resolver *r)
{
    while (r->waiting && r->running < RESOLVE_THREADS) {
        struct lookup *l = r->waiting;

        pthread_mutex_lock(&r->shared->mutex);
        r->shared->holders++;
        pthread_mutex_unlock(&r->shared->mutex);
        if (!thread_start(run, l)) {
            let_go(r->shared);
            return;
        }
        r->waiting = l->other;
        r->waiting_count--;
        r->running++;
        l->started = true;
        l->other = r->started;
        r->started = l;
    }
}

static struct lookup *take_finished(struct shared *s)
{
    struct lookup *l;
    uint64_t count;

    if (read(s->event, &count, sizeof(count)) < 0)
        count = 0; /* nothing new */
    pthread_mutex_lock(&s->mutex);
    l = s->finished;
    s->finished = NULL;
    pthread_mutex_unlock(&s->mutex);
    return l;
}

static void on_finished(void *ctx, unsigned events)
{
    struct resolver *r = ctx;
    struct lookup *l = take_finished(r->shared), *next;

    (void)events;
    for (; l; l = next) {
        next = l->next;
        unlink_from(&r->started, l);
        r->running--;
        answer(l, &l->answer);
        free(l);
    }
    start_waiting(r);
}

int resolver_new(struct resolver **out, struct loop *loop, struct err *err)
{
    struct resolver *r = calloc(1, sizeof(*r));
    struct shared *s = calloc(1, sizeof(*s));

    if (!r || !s || (s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(r);
        free(s);
        return err_set(err, ERR_NOMEM, "no memory to look names up");
    }
    pthread_mutex_init(&s->mutex, NULL);
    s->holders = 1;
    r->loop = loop;
    r->shared = s;
    if (loop_watch_new(&r->watch, loop, s->event, on_finished, r, err) < 0) {
        resolver_free(r);
        return -1;
    }
    loop_watch_set(r->watch, LOOP_READABLE);
    *out = r;
    return 0;
}

static void free_finished(struct lookup *l)
{
    while (l) {
        struct lookup *next = l->next;

        free(l);
        l = next;
    }
}

/* Timers first: once `left` is said, threads free what they have. */
static void free_timers(struct resolver *r)
{
    for (struct lookup *l = r->started; l; l = l->other)
        loop_timer_free(l->timer);
    while (r->waiting) {
        struct lookup *l = r->waiting;

        r->waiting = l->other;
        loop_timer_free(l->timer);
        free(l);
    }
}

void resolver_free(struct resolver *r)
{
    struct lookup *finished;

    if (!r)
        return;
    free_timers(r);
    pthread_mutex_lock(&r->shared->mutex);
    r->shared->left = true;
    finished = r->shared->finished;
    r->shared->finished = NULL;
    pthread_mutex_unlock(&r->shared->mutex);
    free_finished(finished);
    loop_watch_free(r->watch);
    let_go(r->shared);
    free(r);
}

static void wait_for_thread(struct resolver *r, struct lookup *l)
{
    struct lookup **last = &r->waiting;

    while (*last)
        last = &(*last)->other;
    *last = l;
    r->waiting_count++;
    start_waiting(r);
}

int resolve(struct resolver *r, const char *name,
            void (*done)(void *ctx, const struct resolved *answer), void *ctx,
            struct err *err)
{
    size_t n = strlen(name);
    struct lookup *l;

    if (n == 0 || n >= RESOLVE_NAME_MAX)
        return err_set(err, ERR_LIMIT, "no host name");
    if (r->waiting_count == RESOLVE_WAITING)
        return err_set(err, ERR_LIMIT, "too many names are being looked up");
    l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ERR_NOMEM, "no memory to look a name up");
    memcpy(l->name, name, n);
    l->resolver = r;
    l->shared = r->shared;
    l->done = done;
    l->ctx = ctx;
    if (loop_timer_new(&l->timer, r->loop, on_late, l, err) < 0) {
        free(l);
        return -1;
    }
    loop_timer_set(l->timer, RESOLVE_WAIT, false);
    wait_for_thread(r, l);
    return 0;
}
