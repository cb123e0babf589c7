/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - a small MCP server over stdio with three tools: web_search (on canned data),
 * read_file (below the working directory) and echo.
 *
 *     example-server [--slow MS] [--huge BYTES] [--fail] [--crash N] [--hostile KIND]
 *
 * --slow waits before every answer to a call, --huge makes echo answer with so many
 * bytes,
 * --fail answers every call with an error, --crash dies in the middle of the Nth answer.
 * KIND is what bad servers do: noise (log lines on stdout), silent (calls are never
 * answered), twice (every answer comes twice), stranger (answers with an id nobody used),
 * deaf (lives on after the client is gone), holder (leaves a child that holds the pipes).
 *
 * It reads JSON with the code of this project, which the public API does not offer: it is
 * linked with the static core.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/beneath.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/utf8.h"
#include "mcp/rpc.h"
#include "json/jcs.h"
#include "json/json.h"

#define FILE_MAX ((size_t)16 << 20) /* of what read_file reads */

enum hostility {
    NONE,
    NOISE,
    SILENT,
    TWICE,
    STRANGER,
    DEAF,
    HOLDER,
    HOSTILITIES
};
static const char *const hostilities[HOSTILITIES] = {
    "", "noise", "silent", "twice", "stranger", "deaf", "holder",
};

static struct {
    unsigned long slow, huge, crash;
    enum hostility hostile;
    bool fail;
    unsigned long calls;
} options;

static const char tools[] =
    "{\"tools\":["
    "{\"name\":\"web_search\",\"description\":\"Search a very small web\",\"inputSchema\":"
    "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"}},"
    "\"required\":[\"query\"]}},"
    "{\"name\":\"read_file\",\"description\":\"Read a file\",\"inputSchema\":"
    "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}},"
    "\"required\":[\"path\"]}},"
    "{\"name\":\"echo\",\"description\":\"Say it again\",\"inputSchema\":"
    "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},"
    "\"required\":[\"message\"]}}]}";

static const struct {
    const char *word, *found;
} web[] = {
    { "weather", "Zürich: 11 °C, rain (weather.example)" },
    { "receipt", "A receipt says what was asked and what came back (docs.example)" },
    { "duck", "Ducks float because of the air in their feathers (birds.example)" },
};

/* --- answers --- */

static void begin_answer(const struct rpc *m, const char *member)
{
    str id = json_raw(m->json, m->id);

    if (options.hostile == STRANGER && m->method == RPC_TOOLS_CALL)
        id = STR("\"who?\"");
    printf("{\"jsonrpc\":\"2.0\",\"id\":");
    fwrite(id.p, 1, id.n, stdout);
    printf(",\"%s\":", member);
}

static void end_answer(void)
{
    printf("}\n");
    fflush(stdout);
}

static void answer(const struct rpc *m, const char *member, const char *value)
{
    begin_answer(m, member);
    printf("%s", value);
    end_answer();
}

/* The text is written as it is made: a huge one takes no memory. */
static void answer_text(const struct rpc *m, str text, bool is_error, size_t padding)
{
    CLEANUP(buf_release) struct buf quoted = { .max = 6 * FILE_MAX };

    jcs_add_string(&quoted, text);
    begin_answer(m, "result");
    printf("{\"content\":[{\"type\":\"text\",\"text\":");
    if (options.crash && options.calls == options.crash) {
        fflush(stdout);
        raise(SIGKILL);
    }
    fwrite(quoted.p, 1, quoted.n - 1, stdout); /* all but the closing quote */
    for (; padding; padding--)
        putchar('.');
    printf("\"}],\"isError\":%s}", is_error ? "true" : "false");
    end_answer();
}

/* --- tools --- */

static void web_search(const struct rpc *m, str query)
{
    for (size_t i = 0; i < COUNT(web); i++) {
        str word = str_from(web[i].word);

        if (memmem(query.p, query.n, word.p, word.n)) {
            answer_text(m, str_from(web[i].found), false, 0);
            return;
        }
    }
    answer_text(m, STR("nothing found"), false, 0);
}

static void read_file(const struct rpc *m, str path)
{
    CLEANUP(buf_release) struct buf text = { .max = FILE_MAX };
    CLEANUP(file_close) int fd = -1;
    struct err err;

    fd = beneath_open(AT_FDCWD, path, &err);
    if (fd < 0 || file_read_fd(fd, "the file", &text, &err) < 0)
        answer_text(m, str_from(err.msg), true, 0);
    else if (!utf8_valid(buf_str(&text)))
        answer_text(m, STR("not a text"), true, 0);
    else
        answer_text(m, buf_str(&text), false, 0);
}

static void call_tool(const struct rpc *m)
{
    static const char *const arguments[] = { "query", "path", "message" };
    CLEANUP(buf_release) struct buf value = { .max = FILE_MAX };
    uint32_t tool = rpc_tool(m), given = JSON_NONE;

    for (size_t i = 0; i < COUNT(arguments) && given == JSON_NONE; i++)
        given = json_member(m->json, rpc_arguments(m), str_from(arguments[i]));
    if (json_is(m->json, given, JSON_STRING))
        json_unescape(m->json, given, &value);
    if (options.fail)
        answer_text(m, STR("failed, as asked"), true, 0);
    else if (json_string_is(m->json, tool, STR("web_search")))
        web_search(m, buf_str(&value));
    else if (json_string_is(m->json, tool, STR("read_file")))
        read_file(m, buf_str(&value));
    else if (json_string_is(m->json, tool, STR("echo")))
        answer_text(m, buf_str(&value), false, options.huge);
    else
        answer(m, "error", "{\"code\":-32602,\"message\":\"no such tool\"}");
}

/* --- messages --- */

static void take_call(const struct rpc *m)
{
    options.calls++;
    usleep((useconds_t)(options.slow * 1000));
    if (options.hostile == NOISE)
        printf("info: a call came in\n");
    if (options.hostile != SILENT)
        call_tool(m);
    if (options.hostile == TWICE)
        call_tool(m);
}

static void take_request(const struct rpc *m)
{
    if (m->method == RPC_TOOLS_CALL)
        take_call(m);
    else if (m->method == RPC_TOOLS_LIST)
        answer(m, "result", tools);
    else if (m->method == RPC_INITIALIZE)
        answer(m, "result",
               "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":{\"name\":\"example-server\",\"version\":\"1\"}}");
    else if (json_string_is(m->json, m->method_node, STR("ping")))
        answer(m, "result", "{}");
    else
        answer(m, "error", "{\"code\":-32601,\"message\":\"no such method\"}");
}

static void take_line(struct json *json, str line)
{
    struct err err;
    struct rpc m;

    if (json_parse(json, line, NULL, &err) < 0) {
        fprintf(stderr, "example-server: %s\n", err.msg);
        return;
    }
    rpc_read(&m, json, JSON_ROOT);
    if (m.kind == RPC_REQUEST)
        take_request(&m);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: example-server [--slow MS] [--huge BYTES] [--fail] [--crash N] "
            "[--hostile noise|silent|twice|stranger|deaf|holder]\n");
    return 3;
}

static bool read_hostility(const char *word)
{
    for (int i = 1; i < HOSTILITIES; i++) {
        if (strcmp(word, hostilities[i]) == 0)
            options.hostile = (enum hostility)i;
    }
    return options.hostile != NONE;
}

static bool read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--fail") == 0) {
            options.fail = true;
            continue;
        }
        if (strcmp(argv[i], "--slow") == 0)
            options.slow = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--huge") == 0)
            options.huge = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--crash") == 0)
            options.crash = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--hostile") != 0 || !read_hostility(value))
            return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct json json = { 0 };
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    if (!read_options(argc, argv))
        return usage();
    if (options.hostile == HOLDER && fork() == 0)
        for (;;)
            pause();
    while ((n = getline(&line, &cap, stdin)) > 0)
        take_line(&json, str_of(line, (size_t)n));
    while (options.hostile == DEAF)
        pause();
    json_release(&json);
    free(line);
    return 0;
}
