/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Shared by the asker and a thread; whoever is last frees it. */
struct question {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int holders;
    bool done;
    size_t count;
    struct address addresses[LOOKUP_ADDRESSES];
    char name[HOST_NAME_MAX + 1];
};

static struct question *question_new(str name)
{
    struct question *q = calloc(1, sizeof(*q));
    pthread_condattr_t monotonic;

    if (!q || name.n > HOST_NAME_MAX || pthread_condattr_init(&monotonic) != 0) {
        free(q);
        return NULL;
    }
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    memcpy(q->name, name.p, name.n);
    q->holders = 1;
    return q;
}

static void question_drop(struct question *q)
{
    bool last;

    pthread_mutex_lock(&q->lock);
    last = --q->holders == 0;
    pthread_mutex_unlock(&q->lock);
    if (!last)
        return;
    pthread_cond_destroy(&q->answered);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* Every address that there is; more than we keep turn the last into one that is refused.
 */
static size_t take(struct address *out, const struct addrinfo *list)
{
    static const uint8_t nowhere[4] = { 0 };
    size_t n = 0;

    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        const void *bytes = a->ai_addr;

        if (n == LOOKUP_ADDRESSES) {
            out[n - 1] = address_v4(nowhere);
            break;
        }
        if (a->ai_family == AF_INET)
            out[n++] = address_v4(&((const struct sockaddr_in *)bytes)->sin_addr);
        else if (a->ai_family == AF_INET6)
            out[n++] = address_v6(&((const struct sockaddr_in6 *)bytes)->sin6_addr);
    }
    return n;
}

static void *ask(void *arg)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct question *q = arg;
    struct addrinfo *list = NULL;
    bool found = getaddrinfo(q->name, NULL, &hints, &list) == 0;

    pthread_mutex_lock(&q->lock);
    q->count = found ? take(q->addresses, list) : 0;
    q->done = true;
    pthread_cond_signal(&q->answered);
    pthread_mutex_unlock(&q->lock);
    if (found)
        freeaddrinfo(list);
    question_drop(q);
    return NULL;
}

static void start(struct question *q)
{
    pthread_t thread;

    q->holders = 2;
    if (pthread_create(&thread, NULL, ask, q) == 0) {
        pthread_detach(thread);
        return;
    }
    q->holders = 1;
    q->done = true; /* without an answer */
}

static void wait_for(struct question *q, const struct timespec *until,
                     struct answer_view *answer, struct arena *arena)
{
    struct address *copy;

    pthread_mutex_lock(&q->lock);
    while (!q->done) {
        if (pthread_cond_timedwait(&q->answered, &q->lock, until) == ETIMEDOUT)
            break;
    }
    copy = q->done && q->count ? arena_alloc(arena, q->count * sizeof(*copy)) : NULL;
    if (copy) {
        memcpy(copy, q->addresses, q->count * sizeof(*copy));
        *answer = (struct answer_view){ copy, q->count };
    }
    pthread_mutex_unlock(&q->lock);
}

void lookup_names(const str *names, struct answer_view *answers, size_t count,
                  struct arena *arena)
{
    struct question *questions[DECIDE_NAMES_MAX] = { NULL };
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOOKUP_MS / 1000;
    for (size_t i = 0; i < count && i < DECIDE_NAMES_MAX; i++) {
        questions[i] = answers[i].count ? NULL : question_new(names[i]);
        if (questions[i])
            start(questions[i]);
    }
    for (size_t i = 0; i < count && i < DECIDE_NAMES_MAX; i++) {
        if (!questions[i])
            continue;
        wait_for(questions[i], &until, &answers[i], arena);
        question_drop(questions[i]);
    }
}

bool lookup_parse(struct address *out, const char *text)
{
    uint8_t bytes[16];

    if (inet_pton(AF_INET, text, bytes) == 1)
        *out = address_v4(bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        *out = address_v6(bytes);
    else
        return false;
    return true;
}
