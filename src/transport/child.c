/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/str.h"

#define ASK_EVERY 20 /* ms */

#define GUARDIAN_GRACE                                                                   \
    500000000 /* ns between SIGTERM and SIGKILL when we were killed                      \
               */

/* Signals that we catch or ignore must not be caught or ignored in the server. */
static void reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_from(int first)
{
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
    for (int fd = first; fd < 1024; fd++)
        close(fd);
}

struct pipes {
    int in[2], out[2], report[2], guard[2];
    int go[2]; /* the server may run: it is guarded */
};

static bool may_go(struct pipes *p)
{
    char byte;
    ssize_t n;

    file_close(&p->go[1]);
    do
        n = read(p->go[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

/* In the child: stdin and stdout are ours, the rest is closed but for the pipe that tells
 * our parent why exec failed. */
_Noreturn static void become(char *const argv[], struct pipes *p)
{
    int why;

    setpgid(0, 0);
    reset_signals();
    if (!may_go(p))
        _exit(127); /* our parent was killed before anybody could guard us */
    if (dup2(p->in[0], STDIN_FILENO) >= 0 && dup2(p->out[1], STDOUT_FILENO) >= 0 &&
        dup2(p->report[1], 3) >= 0 && fcntl(3, F_SETFD, FD_CLOEXEC) == 0) {
        close_from(4);
        execvp(argv[0], argv);
    }
    why = errno;
    while (write(3, &why, sizeof(why)) < 0 && errno == EINTR)
        continue;
    _exit(127);
}

/* In the guardian: wait for our parent's death, then end the group, ourselves included.
 */
_Noreturn static void guard(pid_t group, int fd)
{
    const struct timespec grace = { 0, GUARDIAN_GRACE };
    char byte;

    setpgid(0, group);
    prctl(PR_SET_NAME, "assay-guardian");
    if (fd != 3)
        dup2(fd, 3);
    close_from(4);
    for (int i = 0; i < 3; i++)
        close(i);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    while (read(3, &byte, 1) < 0 && errno == EINTR)
        continue;
    kill(-group, SIGTERM);
    nanosleep(&grace, NULL);
    kill(-group, SIGKILL);
    _exit(0);
}

static void close_pipes(struct pipes *p)
{
    int *all[] = { p->in, p->out, p->report, p->guard, p->go };

    for (size_t i = 0; i < COUNT(all); i++) {
        file_close(&all[i][0]);
        file_close(&all[i][1]);
    }
}

static int open_pipes(struct pipes *p, struct err *err)
{
    *p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
    if (pipe2(p->in, O_CLOEXEC) == 0 && pipe2(p->out, O_CLOEXEC) == 0 &&
        pipe2(p->report, O_CLOEXEC) == 0 && pipe2(p->guard, O_CLOEXEC) == 0 &&
        pipe2(p->go, O_CLOEXEC) == 0)
        return 0;
    err_errno(err, "cannot make pipes");
    close_pipes(p);
    return -1;
}

/* What exec said: nothing, if it worked. */
static int read_report(int fd, char *const argv[], struct err *err)
{
    int why = 0;
    ssize_t n;

    do
        n = read(fd, &why, sizeof(why));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (child_check(argv, err) < 0)
        return -1;
    return err_set(err, ERR_NOTFOUND, "cannot start '%s': %s", argv[0], strerror(why));
}

static int start(struct child *c, struct pipes *p, char *const argv[], struct err *err)
{
    c->pid = fork();
    if (c->pid == 0)
        become(argv, p);
    if (c->pid < 0) {
        c->pid = 0;
        return err_errno(err, "cannot start '%s'", argv[0]);
    }
    setpgid(c->pid, c->pid); /* whoever is first */
    c->guardian = fork();
    if (c->guardian == 0)
        guard(c->pid, p->guard[0]);
    if (c->guardian > 0)
        setpgid(c->guardian, c->pid);
    file_close(&p->report[1]);
    if (file_write(p->go[1], STR("."), NULL, err) < 0)
        return -1;
    return read_report(p->report[0], argv, err);
}

static void watch_no_more(struct child *c)
{
    loop_watch_free(c->watch);
    loop_timer_free(c->ask);
    c->watch = NULL;
    c->ask = NULL;
}

static void has_exited(void *ctx)
{
    struct child *c = ctx;
    int status = 0;

    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    watch_no_more(c);
    c->exited = true;
    c->on_exit(c->ctx, status);
}

static void on_pid_ready(void *ctx, unsigned events)
{
    (void)events;
    has_exited(ctx);
}

/* Old kernels and some sandboxes (valgrind is one) have no descriptors of processes. */
static int ask_for_exit(struct child *c, struct loop *l, struct err *err)
{
    if (loop_timer_new(&c->ask, l, has_exited, c, err) < 0)
        return -1;
    loop_timer_set(c->ask, ASK_EVERY, true);
    return 0;
}

static int watch_exit(struct child *c, struct loop *l, struct err *err)
{
    c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pid_fd < 0)
        return ask_for_exit(c, l, err);
    fcntl(c->pid_fd, F_SETFD, FD_CLOEXEC);
    if (loop_watch_new(&c->watch, l, c->pid_fd, on_pid_ready, c, err) < 0)
        return -1;
    loop_watch_set(c->watch, LOOP_READABLE);
    return 0;
}

int child_start(struct child *c, struct loop *l, char *const argv[], int *to, int *from,
                void (*on_exit)(void *ctx, int status), void *ctx, struct err *err)
{
    struct pipes p;

    *c = (struct child){ .guard_fd = -1, .pid_fd = -1, .on_exit = on_exit, .ctx = ctx };
    if (open_pipes(&p, err) < 0)
        return -1;
    if (start(c, &p, argv, err) < 0 || watch_exit(c, l, err) < 0) {
        close_pipes(&p);
        child_release(c);
        return -1;
    }
    *to = p.in[1];
    *from = p.out[0];
    c->guard_fd = p.guard[1];
    p.in[1] = p.out[0] = p.guard[1] = -1;
    close_pipes(&p);
    return 0;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp(3) looks for it. */
static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH");
    str rest = str_from(path ? path : "/bin:/usr/bin");
    char full[FILE_PATH_MAX];

    while (rest.p) {
        const char *colon = memchr(rest.p, ':', rest.n);
        size_t n = colon ? (size_t)(colon - rest.p) : rest.n;

        if (snprintf(full, sizeof(full), "%.*s/%s", n ? (int)n : 1, n ? rest.p : ".",
                     name) < (int)sizeof(full) &&
            is_program(full))
            return true;
        rest = colon ? str_of(colon + 1, rest.n - n - 1) : (str){ NULL, 0 };
    }
    return false;
}

int child_check(char *const argv[], struct err *err)
{
    bool is_path = strchr(argv[0], '/') != NULL;

    if (is_path ? is_program(argv[0]) : is_in_path(argv[0]))
        return 0;
    return err_set(err, ERR_NOTFOUND, "cannot start '%s': %s", argv[0],
                   is_path && access(argv[0], F_OK) == 0
                       ? "it is no program that may be run"
                       : "there is no such program");
}

void child_signal(const struct child *c, int number)
{
    if (c->pid > 0)
        kill(-c->pid, number);
}

void child_release(struct child *c)
{
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL); /* the guardian is in the group, too */
        if (!c->exited)
            waitpid(c->pid, NULL, 0);
        if (c->guardian > 0)
            waitpid(c->guardian, NULL, 0);
    }
    watch_no_more(c);
    if (c->pid > 0) {
        file_close(&c->guard_fd);
        file_close(&c->pid_fd);
    }
    *c = (struct child){ .guard_fd = -1, .pid_fd = -1 };
}
