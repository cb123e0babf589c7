/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/thread.h"

#include <pthread.h>
#include <signal.h>

bool thread_start(void *(*run)(void *ctx), void *ctx)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int code;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&thread, &attr, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return code == 0;
}
