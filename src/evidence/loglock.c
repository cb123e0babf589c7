/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of the log, and how it is kept; declared in log.h and log_internal.h. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>

#include "base/err.h"
#include "evidence/log_internal.h"

#define BREAK_AFTER 20 /* tries until we ask whether the holder still lives */

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

/* One try. Where there is no latch, nobody tells what others did meanwhile. */
static enum latch_taken try_lock(struct log *log)
{
    if (latch_is_open(&log->latch))
        return latch_try(&log->latch);
    errno = 0;
    return file_lock(log->lock_fd, LOCK_EX | LOCK_NB) == 0 ? LATCH_CHANGED : LATCH_BUSY;
}

static int give_up(const struct log *log, struct err *err)
{
    char whom[32] = "a process";

    if (latch_is_open(&log->latch))
        snprintf(whom, sizeof(whom), "process %d", (int)latch_holder(&log->latch));
    if (log->stuck)
        return err_set(err, ERR_TIMEOUT, "%s still holds the lock of the log", whom);
    return err_set(err, ERR_TIMEOUT,
                   "%s has held the lock of the log for %d ms; it may be stopped", whom,
                   LOG_LOCK_WAIT);
}

/* Not without asking whether the holder lives: on a busy machine there may have been no
 * time for it before. */
static int try_last(struct log *log, enum latch_taken *taken, struct err *err)
{
    if (latch_is_open(&log->latch))
        latch_break(&log->latch);
    *taken = try_lock(log);
    return *taken != LATCH_BUSY ? 0 : give_up(log, err);
}

static int lock_bounded(struct log *log, enum latch_taken *taken, struct err *err)
{
    int64_t wait = log->stuck ? LOG_STUCK_WAIT : LOG_LOCK_WAIT, until = 0;

    for (unsigned round = 0;; round++) {
        *taken = try_lock(log);
        if (*taken != LATCH_BUSY)
            return 0;
        if (!latch_is_open(&log->latch) && errno != EWOULDBLOCK)
            return err_errno(err, "cannot lock the log");
        if (round == 0)
            until = log_monotonic() + wait;
        else if (log_monotonic() >= until)
            return try_last(log, taken, err);
        wait_a_little(round);
        if (latch_is_open(&log->latch) && round % BREAK_AFTER == BREAK_AFTER - 1)
            latch_break(&log->latch);
    }
}

/* What this thread holds on to between batches. */
static _Thread_local struct {
    const struct log *log;
    bool kept;  /* its lock is ours */
    bool stuck; /* who has it does not give it away: one wait is enough */
} hold;

static int lock(struct log *log, struct err *err)
{
    enum latch_taken taken;
    struct timespec until;

    if (pthread_mutex_trylock(&log->mutex) != 0) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOG_LOCK_WAIT / 1000;
        if (pthread_mutex_clocklock(&log->mutex, CLOCK_MONOTONIC, &until) != 0)
            return err_set(err, ERR_TIMEOUT, "a thread has held the log for %d ms",
                           LOG_LOCK_WAIT);
    }
    if (lock_bounded(log, &taken, err) < 0) {
        log->stuck = true;
        pthread_mutex_unlock(&log->mutex);
        return -1;
    }
    log->stuck = false;
    log->locked = true;
    if (taken != LATCH_OURS)
        log->current = false;
    return 0;
}

int log_lock(struct log *log, struct err *err)
{
    if (latch_is_open(&log->latch) && latch_is_inherited(&log->latch))
        return err_set(err, ERR_REFUSED,
                       "this log was opened before a fork; the new process must open it "
                       "itself");
    if (hold.log == log && hold.kept) {
        log->locked = true;
        return 0;
    }
    if (hold.log == log && hold.stuck)
        return err_set(err, ERR_TIMEOUT, "the lock of the log was not given away before");
    if (lock(log, err) == 0)
        return 0;
    hold.stuck = hold.log == log;
    return -1;
}

static void unlock(struct log *log)
{
    if (latch_is_open(&log->latch))
        latch_free(&log->latch);
    else
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
    bool kept;

    if (hold.log != log)
        return;
    if (log->gatherer.write)
        log->gatherer.write(log->gatherer.ctx);
    assert(!log->gathered.some);
    kept = hold.kept;
    hold.log = NULL;
    hold.kept = hold.stuck = false;
    if (kept)
        unlock(log);
}

bool log_is_held(const struct log *log)
{
    return hold.log == log;
}
