/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/workers.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/err.h"
#include "tests/tap.h"

#define JOBS 12

/* Jobs that end when they may. */
struct shop {
    struct workers workers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    atomic_int woken;
    int inside, most; /* at once */
    struct job {
        struct work work;
        struct shop *shop;
        pthread_t by;
    } job[JOBS];
};

static void on_wake(void *ctx)
{
    struct shop *s = ctx;

    s->woken++;
}

static void run(void *ctx)
{
    struct job *j = ctx;
    struct shop *s = j->shop;

    j->by = pthread_self();
    pthread_mutex_lock(&s->mutex);
    s->inside++;
    s->most = s->inside > s->most ? s->inside : s->most;
    pthread_cond_broadcast(&s->changed);
    while (!s->open)
        pthread_cond_wait(&s->changed, &s->mutex);
    s->inside--;
    pthread_mutex_unlock(&s->mutex);
}

static void open_shop(struct shop *s, bool open)
{
    *s = (struct shop){ .open = open };
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    workers_init(&s->workers, on_wake, s);
}

static bool add(struct shop *s, int i)
{
    struct err err;

    s->job[i] = (struct job){ .work = { run, &s->job[i], NULL }, .shop = s };
    return workers_add(&s->workers, &s->job[i].work, &err) == 0;
}

static void let_go(struct shop *s)
{
    pthread_mutex_lock(&s->mutex);
    s->open = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void wait_for(struct shop *s, int inside)
{
    pthread_mutex_lock(&s->mutex);
    while (s->inside < inside)
        pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

static int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *e;
    int n = 0;

    while (dir && (e = readdir(dir)))
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static int threads_at_start; /* a sanitizer may have its own */

/* The kernel may list one that has left for a moment longer. */
static bool are_gone(void)
{
    for (int i = 0; i < 1000 && count_threads() > threads_at_start; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    return count_threads() == threads_at_start;
}

static void test_many(void)
{
    int seen = 0;
    struct shop s;
    bool added = true;

    open_shop(&s, false);
    for (int i = 0; i < JOBS; i++)
        added = added && add(&s, i);
    ok(added, "more work than workers is taken");
    wait_for(&s, WORKERS_MAX);
    ok(!workers_done(&s.workers) && s.woken == 0, "none of it is done");
    let_go(&s);
    for (int i = 0; i < 1000 && s.woken < JOBS; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    while (workers_done(&s.workers))
        seen++;
    ok(seen == JOBS && s.woken == JOBS, "all of it is done, and each is told: %d", seen);
    ok(s.most == WORKERS_MAX, "%d at once", s.most);
    ok(are_gone(), "without work there is no thread");
    ok(add(&s, 0), "more work comes");
    workers_release(&s.workers);
    ok(s.woken == JOBS + 1, "and is waited for at the end");
}

static void test_order(void)
{
    struct shop s;
    bool ordered = true;

    open_shop(&s, true);
    for (int i = 0; i < JOBS; i++) {
        const struct work *done = NULL;

        ordered = ordered && add(&s, i);
        while (ordered && !(done = workers_done(&s.workers)))
            nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        ordered = ordered && done == &s.job[i].work;
    }
    ok(ordered, "one after the other");
    ok(!pthread_equal(s.job[0].by, pthread_self()), "on another thread");
    workers_release(&s.workers);
}

/* A sanitizer needs memory even for saying that there is none. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void test_no_thread(void)
{
    tap_skip("without a thread it is refused",
             "under a sanitizer memory cannot be taken");
}
#else
static void test_no_thread(void)
{
    struct rlimit before;
    struct shop s;
    struct err err = { 0 };
    struct work w = { run, NULL, NULL };

    open_shop(&s, true);
    getrlimit(RLIMIT_AS, &before);
    setrlimit(RLIMIT_AS, &(struct rlimit){ 0, before.rlim_max });
    ok(workers_add(&s.workers, &w, &err) < 0 && strstr(err.msg, "thread"),
       "without a thread it is refused: %s", err.msg);
    setrlimit(RLIMIT_AS, &before);
    ok(!workers_done(&s.workers) && add(&s, 0), "and the next one is taken");
    workers_release(&s.workers);
    ok(s.woken == 1, "and done");
}
#endif

int main(void)
{
    threads_at_start = count_threads();
    test_no_thread();
    test_many();
    test_order();
    return tap_done();
}
