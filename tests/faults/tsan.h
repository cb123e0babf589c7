/* SPDX-License-Identifier: Apache-2.0 */
/* tsan - ThreadSanitizer does not know pthread_mutex_clocklock(); it knows timedlock. */
#ifndef TESTS_FAULTS_TSAN_H
#define TESTS_FAULTS_TSAN_H

#include <pthread.h>
#include <time.h>

static inline int tsan_clocklock(pthread_mutex_t *m, clockid_t clock,
                                 const struct timespec *until)
{
    struct timespec now, then;

    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec += until->tv_sec - now.tv_sec;
    return pthread_mutex_timedlock(m, &then);
}

#define pthread_mutex_clocklock tsan_clocklock

#endif
