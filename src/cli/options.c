/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/str.h"

struct parser {
    const struct command *command;
    const struct option *table;
    int argc;
    char **argv;
    int at; /* the argument being read */
    struct err err;
};

static bool complain(struct parser *p, const char *what, const char *about)
{
    err_set(&p->err, ERR_FORMAT, "%s: %s '%s'; try 'assay %s --help'", p->command->name,
            what, about, p->command->name);
    return false;
}

static void print_option(const struct option *o)
{
    char left[64];

    snprintf(left, sizeof(left), "--%s%s%s", o->name, o->value ? " " : "",
             o->value ? o->value : "");
    printf("  %-26s %s\n", left, o->help);
}

static void print_help(const struct parser *p)
{
    static const struct option help = { "help", NULL, "print this", .flag = NULL };
    const struct command *c = p->command;

    printf("usage: assay %s%s%s\n\n%s.\n\n", c->name, c->usage[0] ? " " : "", c->usage,
           c->summary);
    for (const struct option *o = p->table; o->name; o++) {
        if (o->help)
            print_option(o);
    }
    print_option(&help);
}

static const struct option *find(const struct parser *p, str name)
{
    for (const struct option *o = p->table; o->name; o++) {
        if (str_is(name, o->name))
            return o;
    }
    return NULL;
}

static bool take_number(struct parser *p, const struct option *o, const char *value)
{
    uint64_t n;

    if (o->number->given)
        return complain(p, "given twice:", o->name);
    if (!u64_parse(&n, str_from(value))) {
        err_set(&p->err, ERR_FORMAT, "%s: --%s needs a whole number, not '%s'",
                p->command->name, o->name, value);
        return false;
    }
    *o->number = (struct option_number){ n, true };
    return true;
}

static bool take_value(struct parser *p, const struct option *o, const char *value)
{
    if (o->number)
        return take_number(p, o, value);
    if (o->list) {
        if (o->list->count == OPTION_LIST_MAX)
            return complain(p, "given too often:", o->name);
        o->list->items[o->list->count++] = value;
        return true;
    }
    if (*o->text)
        return complain(p, "given twice:", o->name);
    *o->text = value;
    return true;
}

/* One argument that begins with a dash, and its value if it has one. */
static bool take_option(struct parser *p)
{
    const char *arg = p->argv[p->at];
    const char *equals = strchr(arg, '=');
    str name = equals ? str_of(arg, (size_t)(equals - arg)) : str_from(arg);
    const struct option *o =
        str_starts(name, STR("--")) ? find(p, str_skip(name, 2)) : NULL;

    if (!o)
        return complain(p, "there is no flag", arg);
    if (o->flag) {
        if (equals)
            return complain(p, "takes no value:", arg);
        return *o->flag = true;
    }
    if (equals)
        return take_value(p, o, equals + 1);
    if (p->at + 1 >= p->argc)
        return complain(p, "a value is missing after", arg);
    return take_value(p, o, p->argv[++p->at]);
}

static bool check_count(struct parser *p, const struct operands *operands)
{
    const struct command *c = p->command;
    const char *what = operands->count < operands->min   ? "too few arguments"
                       : operands->count > operands->max ? "too many arguments"
                                                         : NULL;

    if (what)
        err_set(&p->err, ERR_FORMAT, "%s: %s; usage: assay %s%s%s", c->name, what,
                c->name, c->usage[0] ? " " : "", c->usage);
    return !what;
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

/* A flag that is wrong behind a word: it may be that of a command. */
static bool suspect_command(struct parser *p)
{
    const struct command *c = p->command;

    if (strstr(c->usage, "-- COMMAND"))
        err_set(
            &p->err, ERR_FORMAT,
            "%s: there is no flag '%s'; if it is one of the server's command, put '--' "
            "in front of that: assay %s %s",
            c->name, p->argv[p->at], c->name, c->usage);
    return false;
}

/* Operands are moved to the front of argv, over what has been read. */
static bool take_all(struct parser *p, struct operands *operands, bool *helped)
{
    operands->at = p->argv + 1;
    operands->count = 0;
    operands->dashed = -1;
    for (; p->at < p->argc; p->at++) {
        char *arg = p->argv[p->at];

        if (operands->dashed >= 0) {
            operands->at[operands->count++] = arg;
            operands->dashed++;
        } else if (strcmp(arg, "--") == 0) {
            operands->dashed = 0;
        } else if (is_help(arg)) {
            *helped = true;
            return false;
        } else if (arg[0] != '-' || arg[1] == '\0') {
            operands->at[operands->count++] = arg;
        } else if (!take_option(p)) {
            return operands->count ? suspect_command(p) : false;
        }
    }
    if (operands->count + 1 < p->argc)
        operands->at[operands->count] = NULL; /* as argv ends, for who runs them */
    return check_count(p, operands);
}

/* Was --json given, be it behind the argument that is wrong? */
static bool asks_for_json(const struct parser *p, const struct option *json)
{
    if (!json || !json->flag)
        return false;
    if (*json->flag)
        return true;
    for (int i = p->at; i < p->argc && strcmp(p->argv[i], "--") != 0; i++) {
        if (strcmp(p->argv[i], "--json") == 0)
            return true;
    }
    return false;
}

bool options_parse(const struct command *c, const struct option *table, int argc,
                   char **argv, struct operands *operands, enum exit_code *code)
{
    struct parser p = { c, table, argc, argv, 1, { .code = ERR_NONE } };
    bool helped = false;

    if (take_all(&p, operands, &helped))
        return true;
    *code = EXIT_GOOD;
    if (helped)
        print_help(&p);
    else
        *code = command_fail_as(c, asks_for_json(&p, find(&p, STR("json"))), &p.err);
    return false;
}
