/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/server_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/* A program that runs what its first operand names. */
struct launcher {
    const char *name;   /* also with a version behind it: python3.11 */
    const char *verb;   /* a word that may stand before the operand, or NULL */
    const char *valued; /* flags that take the next argument, each between blanks */
    const char *module; /* the flag whose value is the operand, or NULL */
    bool package;       /* the operand may carry a version */
};

static const struct launcher launchers[] = {
    { "npx", NULL, " -p --package -c --call -w --workspace ", NULL, true },
    { "bunx", NULL, " -p --package ", NULL, true },
    { "pnpx", NULL, " --package ", NULL, true },
    { "uvx", NULL, " --from --with -p --python --index-url --with-editable ", NULL,
      true },
    { "pipx", "run", " --spec --python ", NULL, true },
    { "uv", "run", " --from --with -p --python --directory --project ", "-m", false },
    { "node", NULL, " -r --require --import --loader --env-file -C ", NULL, false },
    { "nodejs", NULL, " -r --require --import --loader -C ", NULL, false },
    { "bun", "run", " -r --preload --cwd ", NULL, false },
    { "deno", "run", " -c --config --import-map ", NULL, true },
    { "python", NULL, " -W -X ", "-m", false },
};

static str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return str_from(slash ? slash + 1 : path);
}

static bool is_launcher(const struct launcher *l, str program)
{
    size_t n = strlen(l->name);

    if (!str_starts(program, str_from(l->name)))
        return false;
    for (size_t i = n; i < program.n; i++) {
        if (program.p[i] != '.' && (program.p[i] < '0' || program.p[i] > '9'))
            return false;
    }
    return true;
}

static bool takes_value(const struct launcher *l, const char *flag)
{
    char word[64];
    int n = snprintf(word, sizeof(word), " %s ", flag);

    return n < (int)sizeof(word) && strstr(l->valued, word) != NULL;
}

/* The argument that names what is run; NULL when there is none. */
static const char *operand(const struct launcher *l, char *const *argv)
{
    bool verb = l->verb != NULL;

    for (size_t i = 1; argv[i]; i++) {
        if (l->module && strcmp(argv[i], l->module) == 0)
            return argv[i + 1];
        if (argv[i][0] == '-' && takes_value(l, argv[i]) && argv[i + 1])
            i++;
        else if (verb && strcmp(argv[i], l->verb) == 0)
            verb = false;
        else if (argv[i][0] != '-')
            return argv[i];
    }
    return NULL;
}

/* "server-x@1.2", "pkg==3", "pkg[extra]" without what follows the name. */
static str without_version(str name)
{
    size_t n = 1;

    while (n < name.n && !memchr("@=[<>~!", name.p[n], 7))
        n++;
    return n < name.n ? str_first(name, n) : name;
}

static str name_in(char *const *argv)
{
    str program = base_name(argv[0]);

    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const char *what;

        if (!is_launcher(&launchers[i], program))
            continue;
        what = operand(&launchers[i], argv);
        if (!what || base_name(what).n == 0)
            return program;
        return launchers[i].package ? without_version(base_name(what)) : base_name(what);
    }
    return program;
}

void server_name(char out[static SERVER_NAME_MAX], char *const *argv)
{
    str name = str_first(name_in(argv), SERVER_NAME_MAX - 1);

    if (name.n == 0 || !utf8_valid(name))
        name = STR("server");
    snprintf(out, SERVER_NAME_MAX, STR_FMT, STR_ARG(name));
}
