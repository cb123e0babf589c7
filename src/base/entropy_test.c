/* SPDX-License-Identifier: Apache-2.0 */
#include "base/entropy.h"

#include <sys/wait.h>
#include <unistd.h>

#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "tests/tap.h"

static int count_up(void *ctx, void *out, size_t n, struct err *err)
{
    uint8_t *next = ctx, *to = out;

    (void)err;
    for (size_t i = 0; i < n; i++)
        to[i] = (*next)++;
    return 0;
}

static int run_dry(void *ctx, void *out, size_t n, struct err *err)
{
    (void)ctx;
    (void)out;
    (void)n;
    return err_set(err, ERR_IO, "no randomness");
}

static void test_ids(void)
{
    uint8_t next = 0xf8;
    struct entropy e = { count_up, &next }, dry = { run_dry, NULL };
    struct err err = { 0 };
    char id[ID_MAX] = "untouched";

    ok(entropy_id(&e, id, "inv_", &err) == 0 &&
           str_is(str_from(id), "inv_f8f9fafbfcfdfeff"),
       "a prefix and 16 hex digits");
    ok(entropy_id(&e, id, "", &err) == 0 && str_is(str_from(id), "0001020304050607"),
       "no prefix");
    ok(entropy_id(&e, id, "sevench", &err) == 0 && strlen(id) == ID_MAX - 1,
       "the longest prefix fills an id");
    ok(entropy_id(&dry, id, "x_", &err) < 0 && err.code == ERR_IO &&
           str_starts(str_from(id), STR("sevench")),
       "without randomness there is no id");
}

static void test_the_system(void)
{
    static uint8_t a[100000], b[100000];
    unsigned seen[256] = { 0 }, missing = 0;
    struct err err = { 0 };

    ok(entropy_fill(&entropy_system, a, sizeof(a), &err) == 0 &&
           entropy_fill(&entropy_system, b, sizeof(b), &err) == 0,
       "more than one system call gives");
    for (size_t i = 0; i < sizeof(a); i++)
        seen[a[i]]++;
    for (size_t i = 0; i < COUNT(seen); i++)
        missing += seen[i] == 0;
    ok(missing == 0 && memcmp(a, b, sizeof(a)) != 0,
       "every byte occurs, nothing repeats");
    ok(entropy_fill(&entropy_system, NULL, 0, &err) == 0, "nothing asked, nothing done");
}

static void test_ahead(void)
{
    uint8_t next = 0, first[8], second[8], large[5000];
    struct entropy count = { count_up, &next }, dry = { run_dry, NULL };
    struct entropy_pool pool, none;
    struct entropy e;
    struct err err = { 0 };
    int status = -1;
    pid_t pid;

    entropy_pool_init(&pool, &count);
    e = entropy_pool_entropy(&pool);
    ok(entropy_fill(&e, first, sizeof(first), &err) == 0 && first[7] == 7 &&
           entropy_fill(&e, second, sizeof(second), &err) == 0 && second[0] == 8,
       "what is ahead comes in the order of its source, each byte once");
    for (int i = 0; i < 600; i++) {
        if (entropy_fill(&e, second, sizeof(second), &err) < 0 || second[0] == second[1])
            next = 1;
    }
    ok(second[1] == (uint8_t)(second[0] + 1), "and is filled again when it is used up");
    ok(entropy_fill(&e, large, sizeof(large), &err) == 0, "more than a page");
    pid = fork();
    if (pid == 0) { /* the source goes on in both alike: what is ahead must not */
        pool.source = &entropy_system;
        _exit(entropy_fill(&e, first, sizeof(first), &err) < 0 ||
              first[1] == (uint8_t)(first[0] + 1));
    }
    ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
       "a fork does not give out what its parent will");
    entropy_pool_release(&pool);
    entropy_pool_release(&pool);
    entropy_pool_init(&none, &dry);
    e = entropy_pool_entropy(&none);
    ok(entropy_fill(&e, first, sizeof(first), &err) < 0 && err.code == ERR_IO,
       "a dry source is told");
    entropy_pool_release(&none);
}

int main(void)
{
    test_ahead();
    test_ids();
    test_the_system();
    return tap_done();
}
