/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command - what main() needs to know of a command; one cmd_*.c defines each.
 *
 * A command prints its answer on stdout with stdio, says what went wrong on stderr with
 * diag_say() or command_fail(), and returns an exit code. It never calls exit(): main()
 * flushes stdout and notices there that nobody could be told the answer.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

#include "base/attr.h"

struct err;

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_NO = 1,        /* an honest no: violations, failed claims, a regression */
    EXIT_INTEGRITY = 2, /* evidence is damaged, or a check of our own work failed */
    EXIT_BAD_INPUT = 3, /* flags, files, permissions: could not find out */
    EXIT_SIGINT = 130,
    EXIT_SIGPIPE = 141, /* whoever read the answer left before its end */
};

/* Either `run` or `subcommands` is set. */
struct command {
    const char *name;    /* as typed: "jcs", and in full for a subcommand: "log verify" */
    const char *usage;   /* arguments only: "[--sha256] [FILE]" */
    const char *summary; /* one line for `assay help` */
    enum exit_code (*run)(int argc, char **argv); /* argv[0] is the last word of name */
    const struct command *const *subcommands;     /* NULL at the end */
    bool owns_stdout; /* it carries a protocol: nothing of ours goes there */
};

/* Run a command: call it, or find its subcommand in argv[1]. `--help` and `help` list
 * the subcommands; a missing or unknown one is one line on stderr and bad input. */
enum exit_code command_run(const struct command *c, int argc, char **argv);

/* Say why on stderr, once. Damage is EXIT_INTEGRITY, everything else bad input. */
enum exit_code command_fail(const struct err *err);

/* The same with the line before it: "assay: <context>: <message>". */
enum exit_code command_fail_in(const struct err *err, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

/* The same for a command that may have been asked for --json: then stdout also gets
 * {"command":…,"error":…,"status":"error"}, so that a reader always finds JSON there; of
 * a command that owns stdout, stderr gets it instead of the sentence. */
enum exit_code command_fail_as(const struct command *c, bool json, const struct err *err);

/* One line for each cmd_*.c; main.c lists them in the order of the help. */
extern const struct command cmd_key;
extern const struct command cmd_log;
extern const struct command cmd_mcp_proxy;
extern const struct command cmd_proof_pack;
extern const struct command cmd_verify_pack;
extern const struct command cmd_packs;
extern const struct command cmd_policy;
extern const struct command cmd_jcs;

#endif
