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
 * strace can make a call fail, but not make it do half of its work.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t write_fn(int fd, const void *bytes, size_t n);

static write_fn *real_write(void)
{
    union {
        void *p;
        write_fn *f;
    } found = { dlsym(RTLD_NEXT, "write") };

    return found.f;
}

static bool is_below(int fd, const char *dir)
{
    char link[64], path[4096];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = dir ? readlink(link, path, sizeof(path) - 1) : -1;
    if (n < 0)
        return false;
    path[n] = '\0';
    return strncmp(path, dir, strlen(dir)) == 0;
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t n)
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
        return real_write()(fd, bytes, n);
    if (full_fd == fd) {
        full_fd = -1;
        errno = ENOSPC;
        return -1;
    }
    if (++calls != when || n < 2)
        return real_write()(fd, bytes, n);
    part = part == 0 ? n / 2 : part >= n ? n - 1 : part;
    done = real_write()(fd, bytes, part);
    if (strcmp(kind, "die") == 0)
        raise(SIGKILL);
    if (strcmp(kind, "full") == 0)
        full_fd = fd;
    return done;
}
