/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - a small MCP client over stdio: starts a server, greets it, calls its tools and
 * prints what comes back, one line per answer.
 *
 *     example-client [--burst N] [--abrupt] [--call TOOL ARGUMENTS]… -- COMMAND [ARG…]
 *
 * Without --call: one call of each tool of example-server. --burst sends the calls N
 * times before it reads the first answer; --abrupt leaves without waiting for the
 * answers. Exit code 0: every call was answered; 1: some were not; 3: bad usage.
 *
 * Linked with the static core, as example-server is and for the same reason.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/err.h"
#include "mcp/rpc.h"
#include "json/json.h"

#define CALLS_MAX 16
#define SHOWN_MAX 160 /* bytes of an answer that are printed */
#define GREETING  1   /* id of initialize; calls come after it */

extern char **environ;

struct call {
    const char *tool, *arguments; /* arguments: JSON, on one line */
};

static const struct call usual[] = {
    { "web_search", "{\"query\":\"weather in Zürich\"}" },
    { "read_file", "{\"path\":\"README.md\"}" },
    { "echo", "{\"message\":\"hello\"}" },
};

struct client {
    struct call calls[CALLS_MAX];
    size_t count;
    unsigned long burst;
    bool abrupt;
    unsigned long sent;
    bool *answered; /* by id */
    char **command;
    pid_t server;
    FILE *to, *from;
};

/* --- the server --- */

static bool start(struct client *c)
{
    posix_spawn_file_actions_t actions;
    int in[2], out[2], code;

    if (pipe(in) < 0 || pipe(out) < 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&actions, in[i]);
        posix_spawn_file_actions_addclose(&actions, out[i]);
    }
    code = posix_spawnp(&c->server, c->command[0], &actions, NULL, c->command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    c->to = fdopen(in[1], "w");
    c->from = fdopen(out[0], "r");
    return code == 0 && c->to && c->from;
}

/* --- messages --- */

static void greet(struct client *c)
{
    fprintf(c->to,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"initialize\",\"params\":"
            "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":"
            "{\"name\":\"example-client\",\"version\":\"1\"}}}\n"
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
            GREETING);
}

static unsigned long send_calls(struct client *c)
{
    unsigned long id = GREETING;

    for (unsigned long round = 0; round < c->burst; round++) {
        for (size_t i = 0; i < c->count; i++)
            fprintf(c->to,
                    "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"method\":\"tools/call\","
                    "\"params\":{\"name\":\"%s\",\"arguments\":%s}}\n",
                    ++id, c->calls[i].tool, c->calls[i].arguments);
    }
    fflush(c->to);
    return id - GREETING;
}

static void show(const struct client *c, const struct rpc *m, int64_t id)
{
    const char *tool = c->calls[(size_t)(id - GREETING - 1) % c->count].tool;
    str shown = json_raw(m->json, m->result != JSON_NONE ? m->result : m->error);

    printf("%-10s %s %.*s%s\n", tool, rpc_is_error(m) ? "no " : "yes",
           (int)(shown.n < SHOWN_MAX ? shown.n : SHOWN_MAX), shown.p,
           shown.n > SHOWN_MAX ? "…" : "");
}

/* 1: the first answer to one of our calls. */
static int take_line(const struct client *c, struct json *json, str line)
{
    struct err ignored;
    struct rpc m;
    int64_t id;

    if (json_parse(json, line, NULL, &ignored) < 0)
        return 0; /* a server that logs to stdout */
    rpc_read(&m, json, JSON_ROOT);
    if (m.kind != RPC_RESPONSE || m.id == JSON_NONE || !json_int(json, m.id, &id) ||
        id <= GREETING || id - GREETING > (int64_t)c->sent || c->answered[id])
        return 0;
    c->answered[id] = true;
    show(c, &m, id);
    return 1;
}

static unsigned long read_answers(struct client *c)
{
    struct json json = { 0 };
    unsigned long got = 0;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    while (got < c->sent && (n = getline(&line, &cap, c->from)) > 0)
        got += (unsigned long)take_line(c, &json, str_of(line, (size_t)n));
    json_release(&json);
    free(line);
    return got;
}

/* --- */

static int talk(struct client *c)
{
    unsigned long got = 0;

    if (!start(c)) {
        fprintf(stderr, "example-client: cannot start '%s'\n", c->command[0]);
        return 3;
    }
    greet(c);
    c->sent = send_calls(c);
    c->answered = calloc(GREETING + c->sent + 1, sizeof(*c->answered));
    if (!c->abrupt && c->answered)
        got = read_answers(c);
    fclose(c->to);
    fclose(c->from);
    waitpid(c->server, NULL, 0);
    fprintf(stderr, "example-client: %lu of %lu calls answered\n", got, c->sent);
    free(c->answered);
    return got == c->sent ? 0 : 1;
}

/* False when something is wrong with the words before the command. */
static bool read_options(struct client *c, char **word)
{
    for (; *word && strcmp(*word, "--") != 0; word++) {
        if (strcmp(*word, "--abrupt") == 0) {
            c->abrupt = true;
        } else if (strcmp(*word, "--burst") == 0 && word[1]) {
            c->burst = strtoul(*++word, NULL, 10);
        } else if (strcmp(*word, "--call") == 0 && word[1] && word[2] &&
                   c->count < CALLS_MAX) {
            c->calls[c->count++] = (struct call){ word[1], word[2] };
            word += 2;
        } else {
            return false;
        }
    }
    c->command = *word ? word + 1 : word;
    return *c->command != NULL;
}

int main(int argc, char **argv)
{
    struct client c = { .burst = 1 };

    signal(SIGPIPE, SIG_IGN); /* a server that went away is found out by reading */
    if (argc < 2 || !read_options(&c, argv + 1)) {
        fprintf(stderr, "usage: example-client [--burst N] [--abrupt] "
                        "[--call TOOL ARGUMENTS]... -- COMMAND [ARG...]\n");
        return 3;
    }
    if (c.count == 0) {
        memcpy(c.calls, usual, sizeof(usual));
        c.count = COUNT(usual);
    }
    return talk(&c);
}
