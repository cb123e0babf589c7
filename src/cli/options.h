/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - the command line of one command, as a table.
 *
 *     bool json = false;
 *     const char *out = NULL;
 *     struct operands dirs = { .min = 1, .max = OPERANDS_ANY };
 *     const struct option table[] = {
 *         { "json", NULL, "print JSON", .flag = &json },
 *         { "out", "FILE", "write the report there", .text = &out },
 *         { 0 },
 *     };
 *     enum exit_code code;
 *
 *     if (!options_parse(&cmd_x, table, argc, argv, &dirs, &code))
 *         return code;
 *
 * `--x V` and `--x=V` are the same. Flags and operands mix in any order; `--` ends the
 * flags; `-` alone is an operand. `--help` (or -h) prints what the table says. A flag
 * with a value may be given once unless it binds a list.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"

#define OPTION_LIST_MAX 256 /* times that one flag may be repeated */
#define OPERANDS_ANY    100000

struct option_number {
    uint64_t value;
    bool given;
};

struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t count;
};

/* Exactly one of the pointers says where the value goes; untouched when not given. */
struct option {
    const char *name;  /* without the dashes */
    const char *value; /* what help calls the value; NULL for a flag */
    const char *help;  /* one line, lower case, no period; NULL hides the flag */
    bool *flag;
    const char **text;
    struct option_number *number;
    struct option_list *list;
};

/* `min` and `max` are the caller's; the rest is set by options_parse(). */
struct operands {
    int min, max;
    char **at; /* borrowed from argv; ends in NULL if argv does */
    int count;
    int dashed; /* how many of the last stood after `--`; -1 when there was no `--` */
};

/* True: go on. False: help was printed or one line said what is wrong; return *code. */
MUST_CHECK bool options_parse(const struct command *c, const struct option *table,
                              int argc, char **argv, struct operands *operands,
                              enum exit_code *code);

#endif
