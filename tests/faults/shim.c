/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: cuts the Nth write(2) to a file below a directory, the same each time.
 *
 *     SHIM_DIR=/path  SHIM_FAULT=<kind>:<N>:<bytes>
 *
 *     short   that write takes only <bytes> (0: half of it), and says so
 *     full    and the write after it finds the disk full, once
 *     die     and the process is killed at that moment
 *
 * strace can make a call fail, but not make it do half of its work. And
 *
 *     SHIM_NO_SYNC=/path   while there is such a file, fdatasync(2) and fsync(2) fail
 *     SHIM_SLOW_LIVE=<s>   to lock a file in live/ takes a worker that many seconds
 *     SHIM_FAST=<n>        the monotonic clock runs n times as fast
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

typedef ssize_t write_fn(int fd, const void *bytes, size_t n);
typedef int sync_fn(int fd);
typedef int flock_fn(int fd, int how);
typedef int clock_fn(clockid_t id, struct timespec *t);

/* What libc has under this name. */
static union found {
    void *p;
    write_fn *write;
    sync_fn *sync;
    flock_fn *flock;
    clock_fn *clock;
} real(const char *name)
{
    return (union found){ dlsym(RTLD_NEXT, name) };
}

static bool path_of(int fd, char path[static 4096])
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, 4095);
    path[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

static bool is_below(int fd, const char *dir)
{
    char path[4096];

    return dir && path_of(fd, path) && strncmp(path, dir, strlen(dir)) == 0;
}

EXPORTED ssize_t write(int fd, const void *bytes, size_t n)
{
    static atomic_int calls;
    static atomic_int full_fd = -1;
    const char *fault = getenv("SHIM_FAULT");
    char kind[8] = "";
    unsigned long part;
    ssize_t done;
    int when;

    if (!fault || !is_below(fd, getenv("SHIM_DIR")) ||
        sscanf(fault, "%7[a-z]:%d:%lu", kind, &when, &part) != 3)
        return real("write").write(fd, bytes, n);
    if (full_fd == fd) {
        full_fd = -1;
        errno = ENOSPC;
        return -1;
    }
    if (++calls != when || n < 2)
        return real("write").write(fd, bytes, n);
    part = part == 0 ? n / 2 : part >= n ? n - 1 : part;
    done = real("write").write(fd, bytes, part);
    if (strcmp(kind, "die") == 0)
        raise(SIGKILL);
    if (strcmp(kind, "full") == 0)
        full_fd = fd;
    return done;
}

static int synced(const char *name, int fd)
{
    const char *off = getenv("SHIM_NO_SYNC");

    if (!off || access(off, F_OK) < 0)
        return real(name).sync(fd);
    errno = EIO;
    return -1;
}

EXPORTED int fdatasync(int fd)
{
    return synced("fdatasync", fd);
}

EXPORTED int fsync(int fd)
{
    return synced("fsync", fd);
}

EXPORTED int flock(int fd, int how)
{
    const char *slow = getenv("SHIM_SLOW_LIVE");
    char path[4096];

    if (slow && gettid() != getpid() && path_of(fd, path) && strstr(path, "/live/"))
        sleep((unsigned)strtoul(slow, NULL, 10));
    return real("flock").flock(fd, how);
}

EXPORTED int clock_gettime(clockid_t id, struct timespec *t)
{
    static clock_fn *found;
    const char *fast = getenv("SHIM_FAST");
    int r;

    if (!found)
        found = real("clock_gettime").clock;
    r = found(id, t);
    if (fast && r == 0 && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)) {
        long times = strtol(fast, NULL, 10);

        t->tv_sec = t->tv_sec * times + t->tv_nsec * times / 1000000000;
        t->tv_nsec = t->tv_nsec * times % 1000000000;
    }
    return r;
}
