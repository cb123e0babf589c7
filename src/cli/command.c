/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/err.h"
#include "json/jcs.h"

static const char *last_word(const char *name)
{
    const char *space = strrchr(name, ' ');

    return space ? space + 1 : name;
}

static void print_list(const struct command *c)
{
    bool top = c->name[0] == '\0';

    printf("usage: assay%s%s COMMAND [ARGUMENTS]\n\n", top ? "" : " ", c->name);
    if (!top)
        printf("%s.\n\n", c->summary);
    for (const struct command *const *sub = c->subcommands; *sub; sub++)
        printf("  %-12s %s\n", last_word((*sub)->name), (*sub)->summary);
    printf("\n'assay%s%s COMMAND --help' tells more about one of them.\n", top ? "" : " ",
           c->name);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 ||
           strcmp(word, "-h") == 0;
}

static enum exit_code refuse(const struct command *c, const char *word)
{
    bool top = c->name[0] == '\0';

    if (!word)
        diag_say("%s needs a command; try 'assay %s --help'", c->name, c->name);
    else if (top)
        diag_say("there is no command '%s'; try 'assay help'", word);
    else
        diag_say("%s has no command '%s'; try 'assay %s --help'", c->name, word, c->name);
    return EXIT_BAD_INPUT;
}

/* `help X Y` is `X Y --help`. */
static enum exit_code help_about(const struct command *c, int argc, char **argv)
{
    static char flag[] = "--help";

    for (int i = 1; i + 1 < argc; i++)
        argv[i] = argv[i + 1];
    argv[argc - 1] = flag;
    return command_run(c, argc, argv);
}

static enum exit_code run_subcommand(const struct command *c, int argc, char **argv)
{
    if (argc < 2)
        return refuse(c, NULL);
    if (strcmp(argv[1], "help") == 0 && argc > 2)
        return help_about(c, argc, argv);
    if (asks_for_help(argv[1])) {
        print_list(c);
        return EXIT_GOOD;
    }
    for (const struct command *const *sub = c->subcommands; *sub; sub++) {
        if (strcmp(argv[1], last_word((*sub)->name)) == 0)
            return command_run(*sub, argc - 1, argv + 1);
    }
    return refuse(c, argv[1]);
}

enum exit_code command_run(const struct command *c, int argc, char **argv)
{
    return c->subcommands ? run_subcommand(c, argc, argv) : c->run(argc, argv);
}

static enum exit_code code_of(const struct err *err)
{
    return err->code == ERR_DAMAGE ? EXIT_INTEGRITY : EXIT_BAD_INPUT;
}

enum exit_code command_fail(const struct err *err)
{
    diag_say("%s", err->msg);
    return code_of(err);
}

enum exit_code command_fail_as(const struct command *c, bool json, const struct err *err)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    if (json) {
        buf_printf(&b, "{\"command\":\"%s\",\"error\":", c->name);
        jcs_add_string(&b, str_from(err->msg));
        buf_add(&b, STR(",\"status\":\"error\"}\n"));
        fwrite(b.p, 1, b.n, c->owns_stdout ? stderr : stdout);
    }
    if (json && c->owns_stdout)
        return code_of(err);
    return command_fail(err);
}

enum exit_code command_fail_in(const struct err *err, const char *fmt, ...)
{
    char context[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(context, sizeof(context), fmt, ap);
    va_end(ap);
    diag_say("%s: %s", context, err->msg);
    return code_of(err);
}
