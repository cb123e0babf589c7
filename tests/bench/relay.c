/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a relay costs that does nothing else: relay [--hash] CMD [ARG...]
 *
 * Bytes from stdin to the command and from the command to stdout, as they come. With
 * --hash every piece also goes twice through SHA-256, which is what is asked of anybody
 * who records a message and what it carries.
 */
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "evidence/crypto.h"

#define PIECE ((size_t)64 << 10)

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    exit(1);
}

static void start(char **argv, int *to, int *from)
{
    int in[2], out[2];

    must(pipe(in) == 0 && pipe(out) == 0, "pipe");
    if (fork() == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[0]);
        close(in[1]);
        close(out[0]);
        close(out[1]);
        execvp(argv[0], argv);
        must(false, argv[0]);
    }
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
}

static bool pass(int from, int to, bool hash)
{
    static char bytes[PIECE];
    ssize_t n = read(from, bytes, sizeof(bytes));

    for (int i = 0; n > 0 && hash && i < 2; i++)
        digest_of(str_of(bytes, (size_t)n));
    for (ssize_t done = 0; done < n;) {
        ssize_t wrote = write(to, bytes + done, (size_t)(n - done));

        must(wrote > 0, "write");
        done += wrote;
    }
    return n > 0;
}

static void watch(int poll, int fd)
{
    struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

    must(epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e) == 0, "epoll_ctl");
}

int main(int argc, char **argv)
{
    bool hash = argc > 1 && strcmp(argv[1], "--hash") == 0;
    int poll = epoll_create1(EPOLL_CLOEXEC), to, from;
    struct epoll_event e;

    must(argc > 1 + hash, "usage: relay [--hash] CMD [ARG...]");
    start(argv + 1 + hash, &to, &from);
    watch(poll, STDIN_FILENO);
    watch(poll, from);
    for (;;) {
        if (epoll_wait(poll, &e, 1, -1) < 1)
            continue;
        if (e.data.fd == from && !pass(from, STDOUT_FILENO, hash))
            return 0;
        if (e.data.fd == STDIN_FILENO && !pass(STDIN_FILENO, to, hash)) {
            epoll_ctl(poll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
            close(to);
        }
    }
}
