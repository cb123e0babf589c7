/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/workers.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "transport/thread.h"

void workers_init(struct workers *w, void (*wake)(void *ctx), void *ctx)
{
    *w = (struct workers){ .wake = wake, .ctx = ctx };
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->left, NULL);
    w->last = &w->first;
    w->done_last = &w->done;
}

void workers_release(struct workers *w)
{
    pthread_mutex_lock(&w->mutex);
    while (w->count)
        pthread_cond_wait(&w->left, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    pthread_cond_destroy(&w->left);
    pthread_mutex_destroy(&w->mutex);
}

static void put(struct work ***last, struct work *work)
{
    work->next = NULL;
    **last = work;
    *last = &work->next;
}

static struct work *take(struct work **first, struct work ***last)
{
    struct work *work = *first;

    if (!work)
        return NULL;
    *first = work->next;
    if (!*first)
        *last = first;
    return work;
}

static void *run(void *of_thread)
{
    struct workers *w = of_thread;
    struct work *work;

    pthread_mutex_lock(&w->mutex);
    while ((work = take(&w->first, &w->last))) {
        pthread_mutex_unlock(&w->mutex);
        work->run(work->ctx);
        pthread_mutex_lock(&w->mutex);
        put(&w->done_last, work);
        w->wake(w->ctx);
    }
    w->count--;
    pthread_cond_signal(&w->left);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* Without one more those that there are will do; without any nobody would. */
int workers_add(struct workers *w, struct work *work, struct err *err)
{
    bool works;

    pthread_mutex_lock(&w->mutex);
    if (w->count < WORKERS_MAX && thread_start(run, w))
        w->count++;
    works = w->count > 0;
    if (works)
        put(&w->last, work);
    pthread_mutex_unlock(&w->mutex);
    return works ? 0 : err_set(err, ERR_LIMIT, "cannot start a thread");
}

struct work *workers_done(struct workers *w)
{
    struct work *work;

    pthread_mutex_lock(&w->mutex);
    work = take(&w->done, &w->done_last);
    pthread_mutex_unlock(&w->mutex);
    return work;
}
