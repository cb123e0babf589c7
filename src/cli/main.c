/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/command.h"
#include "cli/progress.h"

static const struct command *const commands[] = {
    &cmd_log, &cmd_key, &cmd_proof_pack, &cmd_verify_pack, &cmd_packs, &cmd_jcs, NULL,
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

    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error that we report */
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &interrupt, NULL);
}

/* What the process says to its parent. An answer that could not be written is none,
 * so a good or negative answer turns into bad input; damage found stays damage. */
static int decide_exit(enum exit_code answer)
{
    bool lost = ferror(stdout) != 0;

    errno = 0;
    lost = fclose(stdout) != 0 || lost;
    if (!lost)
        return answer;
    diag_say("cannot write the output: %s", errno ? strerror(errno) : "write error");
    return answer == EXIT_INTEGRITY ? EXIT_INTEGRITY : EXIT_BAD_INPUT;
}

static enum exit_code run(int argc, char **argv)
{
    char help[] = "help";
    char *ask_help[] = { argv[0], help, NULL };

    if (argc < 2)
        return command_run(&assay, 2, ask_help);
    if (strcmp(argv[1], "--version") == 0) {
        printf("assay %s\n", ASSAY_VERSION);
        return EXIT_GOOD;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2) { /* help X is X --help */
        char flag[] = "--help";
        char *ask[] = { argv[0], argv[2], flag, NULL };

        return command_run(&assay, 3, ask);
    }
    return command_run(&assay, argc, argv);
}

int main(int argc, char **argv)
{
    occupy_standard_files();
    set_up_signals();
    return decide_exit(run(argc, argv));
}
