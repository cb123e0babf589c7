/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/staging.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/lab.h"
#include "tests/tap.h"

static bool is_there(const char *parent, const char *name)
{
    char path[FILE_PATH_MAX];
    struct err err;
    struct stat st;

    return path_join(path, parent, name, &err) == 0 && stat(path, &st) == 0;
}

static void test_it_appears_at_once(void)
{
    CLEANUP(staging_release) struct staging s = { 0 };
    struct lab l = lab_make();
    const char *parent = l.audit;
    struct err err;

    ok(staging_open(&s, parent, &err) == 0 && staging_add(&s, "a", STR("1"), &err) == 0 &&
           !is_there(parent, "pack"),
       "out of sight while it is made");
    ok(staging_publish(&s, "pack", &err) == 0 && is_there(parent, "pack/a"),
       "then with all that is in it");
    lab_remove(&l);
}

/* Its maker dies with a file half written. */
static void leave_one(const char *parent)
{
    pid_t child = fork();
    struct staging s;
    struct err err;
    int status;

    if (child == 0) {
        if (staging_open(&s, parent, &err) == 0 &&
            staging_add(&s, "a", STR("1"), &err) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    ok(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status),
       "one dies while it makes one");
}

static int count(void *ctx, const char *name, struct err *err)
{
    (void)name;
    (void)err;
    ++*(unsigned *)ctx;
    return 0;
}

static void test_what_died_is_swept(void)
{
    CLEANUP(staging_release) struct staging s = { 0 };
    struct lab l = lab_make();
    const char *parent = l.audit;
    char other[FILE_PATH_MAX];
    unsigned n = 0;
    struct err err;

    leave_one(parent);
    leave_one(parent);
    ok(staging_open(&s, parent, &err) == 0 && staging_add(&s, "a", STR("1"), &err) == 0 &&
           path_join(other, parent, ".staging_of_mine", &err) == 0 &&
           mkdir(other, 0700) == 0,
       "one is being made, and something has a like name");
    ok(file_each(parent, count, &n, &err) == 0 && n == 4, "four are there");
    staging_sweep(parent);
    n = 0;
    ok(file_each(parent, count, &n, &err) == 0 && n == 2, "the dead ones are gone");
    ok(staging_publish(&s, "pack", &err) == 0 && is_there(parent, "pack/a") &&
           is_there(parent, ".staging_of_mine"),
       "the other two are whole");
    ok(file_remove_tree(parent, &err) == 0, "all is taken away");
    staging_sweep(parent);
    ok(access(parent, F_OK) < 0, "nothing to sweep, nothing made");
    lab_remove(&l);
}

static void sweep_until_killed(const char *parent)
{
    for (;;)
        staging_sweep(parent);
}

static void test_sweeps_take_nothing_that_lives(void)
{
    struct lab l = lab_make();
    const char *parent = l.audit;
    pid_t child;
    struct err err = { 0 };
    unsigned whole = 0;

    child = fork();
    if (child == 0)
        sweep_until_killed(parent);
    for (int i = 0; i < 200; i++) {
        CLEANUP(staging_release) struct staging s = { 0 };
        char name[16];

        snprintf(name, sizeof(name), "pack%d", i);
        whole += staging_open(&s, parent, &err) == 0 &&
                 staging_add(&s, "a", STR("1"), &err) == 0 &&
                 staging_publish(&s, name, &err) == 0;
    }
    kill(child, SIGKILL);
    ok(waitpid(child, NULL, 0) == child && whole == 200,
       "%u of 200 are made under constant sweeps: %s", whole, err.msg);
    lab_remove(&l);
}

int main(void)
{
    test_it_appears_at_once();
    test_what_died_is_swept();
    test_sweeps_take_nothing_that_lives();
    return tap_done();
}
