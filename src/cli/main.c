/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/command.h"
#include "cli/progress.h"

static const struct command *const commands[] = {
    &cmd_mcp_proxy, &cmd_log, &cmd_key, &cmd_proof_pack, &cmd_verify_pack, &cmd_packs,
    &cmd_policy,    &cmd_jcs, NULL,
};

static const struct command assay = {
    .name = "",
    .usage = "",
    .summary = "record what MCP tools did, and prove it",
    .subcommands = commands,
};

static void on_interrupt(int number)
{
    (void)number;
    progress_interrupt();
    _exit(EXIT_SIGINT);
}

/* A closed descriptor 0, 1 or 2 must not become one of our files. The stand-in faces
 * the wrong way, so that reading or writing it still fails. */
static void occupy_standard_files(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            _exit(EXIT_BAD_INPUT);
    }
}

static void set_up_signals(void)
{
    struct sigaction interrupt = { .sa_handler = on_interrupt };
    struct sigaction before;

    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &interrupt, NULL);
}

/* The reader of a pipe has left. Asked of the descriptor, for the errno of a write long
 * ago is gone. */
static bool reader_left(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* What the process says to its parent. An answer that could not be written is none,
 * so a good or negative answer turns into bad input; damage found stays damage. A reader
 * that left has seen what it wanted: no message, and the code of SIGPIPE. */
static int decide_exit(enum exit_code answer)
{
    bool lost = ferror(stdout) != 0, left = reader_left();

    errno = 0;
    lost = fclose(stdout) != 0 || lost;
    if (!lost)
        return answer;
    if (left || errno == EPIPE)
        return answer == EXIT_INTEGRITY ? EXIT_INTEGRITY : EXIT_SIGPIPE;
    diag_say("cannot write the output: %s", errno ? strerror(errno) : "write error");
    return answer == EXIT_INTEGRITY ? EXIT_INTEGRITY : EXIT_BAD_INPUT;
}

static enum exit_code run(int argc, char **argv)
{
    char help[] = "help";
    char *ask_help[] = { argv[0], help, NULL };

    if (argc < 2)
        return command_run(&assay, 2, ask_help);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
        strcmp(argv[1], "version") == 0) {
        printf("assay %s\n", ASSAY_VERSION);
        return EXIT_GOOD;
    }
    return command_run(&assay, argc, argv);
}

int main(int argc, char **argv)
{
    occupy_standard_files();
    set_up_signals();
    return decide_exit(run(argc, argv));
}
