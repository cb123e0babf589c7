/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/latch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

static char path[64];

static int open_file(void)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void make(void)
{
    struct err err = { 0 };
    int fd;

    unlink(path);
    fd = open_file();
    if (fd < 0 || latch_make(fd, &err) < 0)
        abort();
    close(fd);
}

/* A user of the latch; its descriptor is closed by done(). */
static struct latch user(void)
{
    struct latch l = { 0 };
    struct err err = { 0 };

    if (latch_open(&l, open_file(), &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return l;
}

static void done(struct latch *l)
{
    int fd = l->fd;

    latch_close(l);
    close(fd);
}

static void test_file(void)
{
    struct err err = { 0 };
    bool is = true;
    int fd;

    unlink(path);
    fd = open_file();
    ok(latch_fits(fd), "here a latch works");
    ok(latch_is(fd, &is, &err) == 0 && !is, "an empty file is none");
    ok(latch_make(fd, &err) == 0 && latch_is(fd, &is, &err) == 0 && is, "it becomes one");
    ok(lseek(fd, 0, SEEK_END) == LATCH_BYTES, "of %d bytes", LATCH_BYTES);
    ok(write(fd, "x", 1) == 1 && latch_is(fd, &is, &err) < 0 && err.code == ERR_FORMAT,
       "one byte more is something else: %s", err.msg);
    ok(ftruncate(fd, LATCH_BYTES - 1) == 0 && latch_is(fd, &is, &err) < 0, "one less");
    ok(ftruncate(fd, LATCH_BYTES) == 0 && latch_is(fd, &is, &err) == 0 && is, "and back");
    ok(pwrite(fd, "b", 1, 0) == 1 && latch_is(fd, &is, &err) < 0, "another magic");
    close(fd);
    fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ok(!latch_fits(fd), "not on any file system");
    close(fd);
}

/* A file of the first `n` bytes of a latch, the last one of them changed by `change`. */
static int begin_file(size_t n, unsigned char change)
{
    char bytes[LATCH_BYTES] = { 'a', 's', 's', 'a', 'y', 'l', 'k', '1' };
    int fd;

    unlink(path);
    fd = open_file();
    bytes[n - 1] ^= (char)change;
    if (fd < 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        abort();
    return fd;
}

static void test_half_made(void)
{
    struct err err = { 0 };
    struct latch l;
    int made = 0, refused = 0;
    bool is = false;

    for (size_t n = 1; n < LATCH_BYTES; n++) {
        int fd = begin_file(n, 0);

        made += latch_is(fd, &is, &err) < 0 && latch_make(fd, &err) == 0 &&
                latch_is(fd, &is, &err) == 0 && is;
        close(fd);
        fd = begin_file(n, 1);
        refused += latch_make(fd, &err) < 0 && err.code == ERR_FORMAT &&
                   lseek(fd, 0, SEEK_END) == (off_t)n;
        close(fd);
    }
    ok(made == LATCH_BYTES - 1, "each beginning of a latch is made whole: %d", made);
    ok(refused == LATCH_BYTES - 1, "anything else stays as it is: %d", refused);
    make();
    l = user();
    ok(latch_try(&l) != LATCH_BUSY && latch_make(l.fd, &err) == 0 &&
           latch_try(&l) == LATCH_BUSY,
       "a whole one stays in the hand of who has it");
    done(&l);
}

static void test_one_at_a_time(void)
{
    struct latch a, b;

    make();
    a = user();
    b = user();
    ok(latch_try(&a) == LATCH_CHANGED, "a new one was nobody's");
    ok(latch_try(&b) == LATCH_BUSY, "one holder");
    ok(latch_holder(&b) == getpid(), "who is known");
    latch_break(&b);
    ok(latch_try(&b) == LATCH_BUSY, "one that lives keeps it");
    latch_free(&a);
    ok(latch_try(&a) == LATCH_OURS, "nobody else had it");
    latch_free(&a);
    ok(latch_try(&b) == LATCH_CHANGED, "the other takes it");
    latch_free(&b);
    ok(latch_try(&a) == LATCH_CHANGED, "and the first is told");
    latch_free(&a);
    ok(latch_try(&a) == LATCH_OURS, "once");
    latch_free(&a);
    done(&a);
    done(&b);
    ok(!latch_is_open(&a), "closed");
    latch_close(&a);
}

/* A process that takes it and is killed. */
static void die_with_it(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct latch l = user();

        if (latch_try(&l) == LATCH_BUSY)
            _exit(1);
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status), "a holder dies");
}

static void test_dead_holder(void)
{
    struct latch a;

    make();
    a = user(); /* the first slot: the dead one had another */
    ok(latch_try(&a) == LATCH_CHANGED, "ours");
    latch_free(&a);
    die_with_it();
    ok(latch_try(&a) == LATCH_BUSY, "its latch is held");
    latch_break(&a);
    ok(latch_try(&a) == LATCH_CHANGED, "until it is broken; and we are told");
    latch_break(&a);
    ok(latch_try(&a) == LATCH_BUSY, "who holds it does not break its own");
    latch_free(&a);
    done(&a);
}

/* The next user gets slot 0, if it is free. */
static void count_anew(void)
{
    int fd = open_file();

    if (pwrite(fd, "\0\0\0\0\0\0\0\0", 8, 16) != 8)
        abort();
    close(fd);
}

static void test_slot_of_a_dead_holder(void)
{
    struct latch a, b;

    make();
    die_with_it(); /* in the first slot */
    count_anew();
    a = user(); /* which is ours now */
    b = user();
    ok(latch_try(&b) == LATCH_CHANGED, "nobody takes us for the one before");
    latch_free(&b);
    ok(latch_try(&a) == LATCH_CHANGED, "nor do we");
    latch_free(&a);
    done(&a);
    done(&b);
}

/* A slot comes back without its memory: the same place is not the same user. */
static void test_slot_is_used_again(void)
{
    struct latch a, b;
    uint64_t before;

    make();
    a = user();
    before = a.ours;
    ok(latch_try(&a) != LATCH_BUSY, "taken");
    latch_free(&a);
    done(&a);
    for (int i = 1; i < LATCH_USERS_MAX; i++) {
        b = user();
        done(&b);
    }
    b = user();
    ok((b.ours & 0x1fff) == (before & 0x1fff), "all slots later, the same again");
    ok(b.ours != before && latch_try(&b) == LATCH_CHANGED, "a new user in an old slot");
    latch_free(&b);
    done(&b);
}

static void test_any_word_is_survived(void)
{
    static const uint64_t words[] = { 1, 3, UINT64_MAX, UINT64_MAX - 1,
                                      0x5555555555555555 };

    for (size_t i = 0; i < COUNT(words); i++) {
        struct latch a;
        int fd;

        make();
        fd = open_file();
        ok(pwrite(fd, &words[i], 8, 8) == 8, "garbage %zu", i);
        a = user();
        latch_break(&a);
        ok(latch_try(&a) == LATCH_CHANGED, "is nobody's");
        latch_free(&a);
        done(&a);
        close(fd);
    }
}

static void test_as_many_as_there_are_slots(void)
{
    static struct latch all[LATCH_USERS_MAX];
    struct rlimit limit;
    struct latch more = { 0 };
    struct err err = { 0 };
    int fd;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < LATCH_USERS_MAX + 64) {
        tap_skip("as many users as there are slots", "too few descriptors are allowed");
        return;
    }
    limit.rlim_cur = limit.rlim_max < 100000 ? limit.rlim_max : 100000;
    setrlimit(RLIMIT_NOFILE, &limit);
    make();
    for (size_t i = 0; i < LATCH_USERS_MAX; i++)
        all[i] = user();
    ok(latch_try(&all[LATCH_USERS_MAX - 1]) == LATCH_CHANGED, "the last one takes it");
    latch_free(&all[LATCH_USERS_MAX - 1]);
    fd = open_file();
    ok(latch_open(&more, fd, &err) < 0 && err.code == ERR_LIMIT, "one more: %s", err.msg);
    done(&all[77]);
    ok(latch_open(&more, fd, &err) == 0, "when one leaves, there is room");
    done(&more);
    for (size_t i = 0; i < LATCH_USERS_MAX; i++) {
        if (i != 77)
            done(&all[i]);
    }
}

/* --- many processes, some of which are killed --- */

struct shared {
    uint64_t a, b; /* plain; equal whenever nobody is at it */
    _Atomic uint64_t seen_apart, rounds;
};

static void wait_for(struct latch *l, enum latch_taken *taken)
{
    const struct timespec pause = { 0, 20000 };

    for (unsigned i = 1; (*taken = latch_try(l)) == LATCH_BUSY; i++) {
        nanosleep(&pause, NULL);
        if (i % 10 == 0)
            latch_break(l);
    }
}

/* One who died in the middle left them apart; whoever comes next is told to look. */
static _Noreturn void hammer(struct shared *s)
{
    struct latch l = user();
    enum latch_taken taken;

    for (;;) {
        wait_for(&l, &taken);
        if (s->a != s->b && taken == LATCH_OURS)
            s->seen_apart++;
        s->a = s->b;
        s->a++;
        for (volatile int i = 0; i < 200; i++)
            continue;
        s->b++;
        if (s->a != s->b)
            s->seen_apart++;
        s->rounds++;
        latch_free(&l);
    }
}

static pid_t start(struct shared *s)
{
    pid_t pid = fork();

    if (pid == 0)
        hammer(s);
    return pid;
}

static void test_many_who_die(void)
{
    const struct timespec pause = { 0, 2000000 };
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[4];
    uint64_t before;

    make();
    for (size_t i = 0; i < COUNT(pids); i++)
        pids[i] = start(s);
    for (unsigned round = 0; round < 200; round++) {
        size_t i = round % COUNT(pids);

        nanosleep(&pause, NULL);
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        pids[i] = start(s);
    }
    before = s->rounds;
    for (int i = 0; i < 5000 && s->rounds == before; i++)
        nanosleep(&pause, NULL);
    ok(s->rounds > before, "after 200 deaths the others go on");
    for (size_t i = 0; i < COUNT(pids); i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    ok(s->rounds > 200 && s->seen_apart == 0, "one at a time, in %llu rounds",
       (unsigned long long)s->rounds);
    munmap(s, sizeof(*s));
}

int main(void)
{
    char dir[] = "/tmp/assay-latch-XXXXXX";

    if (!mkdtemp(dir))
        return 99;
    snprintf(path, sizeof(path), "%s/lock", dir);
    test_file();
    test_half_made();
    test_one_at_a_time();
    test_dead_holder();
    test_slot_of_a_dead_holder();
    test_slot_is_used_again();
    test_any_word_is_survived();
    test_as_many_as_there_are_slots();
    test_many_who_die();
    unlink(path);
    rmdir(dir);
    return tap_done();
}
