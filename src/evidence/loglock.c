/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of the log, and how it is kept; declared in log.h and log_internal.h. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <sys/file.h>
#include <time.h>

#include "base/err.h"
#include "evidence/log_internal.h"

int64_t log_monotonic(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Uncontended at once, then politely: the others hold it for microseconds. */
static void wait_a_little(unsigned round)
{
    struct timespec t = { 0, round < 40 ? 50000 : 2000000 };

    if (round < 20)
        sched_yield();
    else
        nanosleep(&t, NULL);
}

static int flock_bounded(struct log *log, struct err *err)
{
    int64_t until = 0;

    for (unsigned round = 0;; round++) {
        if (file_lock(log->lock_fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK)
            return err_errno(err, "cannot lock the log");
        if (round == 0)
            until = log_monotonic() + LOG_LOCK_WAIT;
        else if (log_monotonic() >= until)
            return err_set(err, ERR_TIMEOUT,
                           "process %d has held the lock of the log for %d ms; it may be "
                           "stopped",
                           (int)head_owner(&log->head), LOG_LOCK_WAIT);
        wait_a_little(round);
    }
}

/* What this thread holds on to between batches. */
static _Thread_local struct {
    const struct log *log;
    bool kept; /* its lock is ours */
} hold;

int log_lock(struct log *log, struct err *err)
{
    struct timespec until;

    if (hold.log == log && hold.kept) {
        log->locked = true;
        return 0;
    }
    if (pthread_mutex_trylock(&log->mutex) != 0) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOG_LOCK_WAIT / 1000;
        if (pthread_mutex_clocklock(&log->mutex, CLOCK_MONOTONIC, &until) != 0)
            return err_set(err, ERR_TIMEOUT, "a thread has held the log for %d ms",
                           LOG_LOCK_WAIT);
    }
    if (flock_bounded(log, err) < 0) {
        pthread_mutex_unlock(&log->mutex);
        return -1;
    }
    log->locked = true;
    log->current = false;
    head_set_owner(&log->head, log->pid);
    return 0;
}

static void unlock(struct log *log)
{
    file_lock(log->lock_fd, LOCK_UN);
    pthread_mutex_unlock(&log->mutex);
}

void log_unlock(struct log *log)
{
    assert(log->locked);
    log->locked = false;
    if (hold.log == log)
        hold.kept = true;
    else
        unlock(log);
}

void log_hold(struct log *log)
{
    assert(!hold.log);
    hold.log = log;
}

void log_let_go(struct log *log)
{
    bool kept = hold.kept;

    if (hold.log != log)
        return;
    assert(!log->gathered.some);
    hold.log = NULL;
    hold.kept = false;
    if (kept)
        unlock(log);
}

bool log_is_held(const struct log *log)
{
    return hold.log == log;
}
