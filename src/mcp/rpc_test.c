/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/rpc.h"

#include "base/err.h"
#include "tests/tap.h"

static struct json json;

static struct rpc read_text(const char *text)
{
    struct err err = { 0 };
    struct rpc m = { .json = NULL };

    if (json_parse(&json, str_from(text), NULL, &err) < 0)
        ok(false, "%s: %s", text, err.msg);
    else
        rpc_read(&m, &json, JSON_ROOT);
    return m;
}

static void test_kinds(void)
{
    static const struct {
        const char *text;
        enum rpc_kind kind;
        enum rpc_method method;
    } cases[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", RPC_REQUEST,
          RPC_TOOLS_CALL },
        { "{\"method\":\"tools\\/call\",\"id\":\"x\"}", RPC_REQUEST, RPC_TOOLS_CALL },
        { "{\"method\":\"tools/call\"}", RPC_NOTIFICATION, RPC_TOOLS_CALL },
        { "{\"method\":\"x/y\",\"id\":0}", RPC_REQUEST, RPC_OTHER },
        { "{\"id\":1,\"result\":{}}", RPC_RESPONSE, RPC_OTHER },
        { "{\"id\":null,\"error\":{}}", RPC_RESPONSE, RPC_OTHER },
        { "{\"error\":{}}", RPC_RESPONSE, RPC_OTHER },
        { "{\"id\":1,\"result\":null}", RPC_RESPONSE, RPC_OTHER },
        { "{\"id\":1,\"method\":\"a\",\"result\":{}}", RPC_INVALID, RPC_OTHER },
        { "{\"id\":null,\"method\":\"a\"}", RPC_INVALID, RPC_OTHER },
        { "{\"id\":{},\"method\":\"a\"}", RPC_INVALID, RPC_OTHER },
        { "{\"id\":1,\"method\":7}", RPC_INVALID, RPC_OTHER },
        { "{\"id\":1,\"id\":2,\"method\":\"tools/call\"}", RPC_INVALID, RPC_TOOLS_CALL },
        { "{\"method\":\"a\",\"method\":\"tools/call\"}", RPC_INVALID, RPC_OTHER },
        { "{\"id\":1}", RPC_INVALID, RPC_OTHER },
        { "{}", RPC_INVALID, RPC_OTHER },
        { "[]", RPC_INVALID, RPC_OTHER },
        { "7", RPC_INVALID, RPC_OTHER },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rpc m = read_text(cases[i].text);

        ok(m.kind == cases[i].kind && m.method == cases[i].method, "%s is %s",
           cases[i].text, rpc_kind_name(cases[i].kind));
    }
}

static void test_parts_of_a_call(void)
{
    struct rpc m = read_text(
        "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"r\\u0065ad\","
        "\"arguments\":{\"a\":1},\"requestState\":\"s\",\"_meta\":{\"traceparent\":"
        "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}}}");

    ok(str_is(rpc_source(&m, rpc_tool(&m)), "r\\u0065ad"), "tool as it is spelled");
    ok(str_is(rpc_source(&m, rpc_arguments(&m)), "{\"a\":1}"), "arguments");
    ok(str_is(rpc_trace(&m), "4bf92f3577b34da6a3ce929d0e0e4736"), "trace id");
    ok(str_is(rpc_source(&m, rpc_request_state(&m)), "s"), "requestState");
    m = read_text("{\"id\":1,\"method\":\"tools/call\",\"params\":[1]}");
    ok(rpc_tool(&m) == JSON_NONE && rpc_trace(&m).p == NULL, "positional parameters");
    m = read_text("{\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":"
                  "{\"traceparent\":\"00-XYZ\"}}}");
    ok(rpc_trace(&m).p == NULL, "no trace in a bad traceparent");
}

static void test_answers(void)
{
    static const struct {
        const char *text;
        bool is_error;
        const char *type; /* NULL: an ordinary one */
        const char *task;
    } cases[] = {
        { "{\"id\":1,\"result\":{\"content\":[]}}", false, NULL, NULL },
        { "{\"id\":1,\"result\":{\"isError\":true}}", true, NULL, NULL },
        { "{\"id\":1,\"result\":{\"isError\":\"true\"}}", false, NULL, NULL },
        { "{\"id\":1,\"error\":{\"code\":-1}}", true, NULL, NULL },
        { "{\"id\":1,\"result\":{\"resultType\":\"complete\"}}", false, NULL, NULL },
        { "{\"id\":1,\"result\":{\"resultType\":\"input_required\"}}", false,
          "input_required", NULL },
        { "{\"id\":1,\"result\":{\"resultType\":\"task\",\"taskId\":\"t\"}}", false,
          "task", "t" },
        { "{\"id\":1,\"result\":{\"task\":{\"taskId\":\"t\"}}}", false, "task", "t" },
        { "{\"id\":1,\"result\":7}", false, NULL, NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rpc m = read_text(cases[i].text);
        str type = rpc_result_type(&m), task = rpc_source(&m, rpc_task(&m));

        ok(rpc_is_error(&m) == cases[i].is_error, "%s: error or not", cases[i].text);
        ok(cases[i].type ? str_is(type, cases[i].type) : type.p == NULL, "%s: type",
           cases[i].text);
        ok(cases[i].task ? str_is(task, cases[i].task) : task.p == NULL, "%s: task",
           cases[i].text);
    }
}

static void test_ends_of_tasks(void)
{
    static const struct {
        const char *text;
        bool ended, is_error;
        const char *inner;
    } cases[] = {
        { "{\"id\":1,\"result\":{\"status\":\"working\"}}", false, false, NULL },
        { "{\"id\":1,\"result\":{\"status\":\"completed\",\"result\":{\"a\":1}}}", true,
          false, "{\"a\":1}" },
        { "{\"id\":1,\"result\":{\"status\":\"completed\",\"result\":{\"isError\":true}}}",
          true, true, "{\"isError\":true}" },
        { "{\"id\":1,\"result\":{\"status\":\"failed\",\"error\":{\"code\":1}}}", true,
          true, "{\"code\":1}" },
        { "{\"id\":1,\"result\":{\"status\":\"cancelled\"}}", true, false, NULL },
        { "{\"id\":1,\"result\":{\"status\":\"completed\"}}", false, false, NULL },
        { "{\"method\":\"notifications/tasks\",\"params\":{\"status\":\"completed\","
          "\"result\":7}}",
          true, false, "7" },
        { "{\"id\":1,\"result\":{}}", false, false, NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rpc m = read_text(cases[i].text);
        uint32_t inner = JSON_NONE;
        bool is_error = false, ended = rpc_task_ended(&m, &inner, &is_error);
        str source = rpc_source(&m, inner);

        ok(ended == cases[i].ended && is_error == cases[i].is_error &&
               (cases[i].inner ? str_is(source, cases[i].inner) : source.p == NULL),
           "%s", cases[i].text);
    }
}

static void test_ids(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        { "1", "\"1\"", false },
        { "1", "1.0", true },
        { "\"a\"", "\"\\u0061\"", true },
        { "1", "2", false },
        { "\"\\ud800\"", "\"\\ud800\"", true },
        { "\"\\ud800\"", "\"\\ud801\"", false },
        { "1e999", "1e999", true },
        { "9007199254740993", "9007199254740993", true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP(buf_release) struct buf a = { 0 }, b = { 0 };
        struct err err = { 0 };

        if (json_parse(&json, str_from(cases[i].a), NULL, &err) == 0)
            rpc_add_id_key(&a, &json, JSON_ROOT);
        if (json_parse(&json, str_from(cases[i].b), NULL, &err) == 0)
            rpc_add_id_key(&b, &json, JSON_ROOT);
        ok(str_equal(buf_str(&a), buf_str(&b)) == cases[i].same, "%s and %s are %s",
           cases[i].a, cases[i].b, cases[i].same ? "one id" : "two ids");
    }
}

static void test_cancellation(void)
{
    struct rpc m = read_text("{\"method\":\"notifications/cancelled\",\"params\":"
                             "{\"requestId\":\"7\",\"reason\":\"x\"}}");

    ok(m.method == RPC_CANCELLED &&
           str_is(json_raw(&json, rpc_cancelled_id(&m)), "\"7\""),
       "names the request");
    m = read_text("{\"method\":\"notifications/cancelled\",\"params\":{}}");
    ok(rpc_cancelled_id(&m) == JSON_NONE, "or none");
}

static void test_lookalikes(void)
{
    static const struct {
        const char *text;
        bool found;
    } cases[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}}", false },
        { "{\"method\":\"ping\",\"Method\":\"tools/call\"}", true },
        { "{\"METHOD\":\"tools/call\"}", true },
        { "{\"method\":\"ping\",\"\\u004dethod\":1}", true },
        { "{\"method\":\"ping\",\"\\u006dethod2\":1}", false },
        { "{\"method\":\"a\",\"methods\":1,\"metho\":2,\"\":3,\"meta\":4}", false },
        { "{\"method\":\"tools/call\",\"Params\":{}}", true },
        { "{\"method\":\"tools/call\",\"param\xc5\xbf\":{}}", true },
        { "{\"method\":\"tools/call\",\"param\\u017F\":{}}", true },
        { "{\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"Name\":\"b\"}}",
          true },
        { "{\"method\":\"tools/call\",\"params\":{\"Arguments\":{}}}", true },
        { "{\"method\":\"tools/call\",\"params\":{\"arguments\":{\"Name\":1}}}", false },
        { "{\"method\":\"x/y\",\"params\":{\"Name\":\"a\"}}", false },
        { "{\"id\":1,\"result\":{},\"Error\":{}}", true },
        { "[]", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rpc m = read_text(cases[i].text);

        ok(rpc_has_lookalikes(&m) == cases[i].found, "%s", cases[i].text);
    }
}

static void test_nul(void)
{
    static const struct {
        const char *text;
        bool found;
    } cases[] = {
        { "{\"id\":1,\"method\":\"ping\",\"params\":{}}", false },
        { "{\"method\":\"ping\",\"method\\u0000\":\"tools/call\"}", true },
        { "{\"method\":\"ping\",\"method\\u0000x\" \n:\"tools/call\"}", true },
        { "{\"method\\u0000\":\"tools/call\"}", true },
        { "{\"id\":1,\"result\":{},\"\\u0000\":1}", true },
        { "{\"method\":\"tools/call\\u0000\"}", true },
        { "{\"method\":\"tools\\/call\\u0000x\"}", true },
        { "{\"method\":\"tools\\/call\\\\u0000\"}", false },
        { "{\"method\":\"tools/call\\u0001\"}", false },
        { "{\"method\":\"tools/call\",\"params\":{\"name\":\"shell_exec\\u0000\"}}",
          true },
        { "{\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"name\\u0000x\":\"b\"}}",
          true },
        { "{\"method\":\"tools/call\",\"params\":{\"arguments\":[{\"a\\u0000\":1}]}}",
          true },
        { "{\"method\":\"tools/call\",\"params\":{\"arguments\":{\"a\":\"\\u0000\"}}}",
          false },
        { "{\"method\":\"tools/call\",\"params\":{\"arguments\":{\"\\\\u0000\":1}}}",
          false },
        { "{\"method\":\"x/y\",\"params\":{\"a\\u0000\":1}}", false },
        { "[]", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rpc m = read_text(cases[i].text);

        ok(rpc_has_nul(&m) == cases[i].found, "NUL or not: %s", cases[i].text);
    }
}

int main(void)
{
    test_kinds();
    test_parts_of_a_call();
    test_answers();
    test_ends_of_tasks();
    test_ids();
    test_cancellation();
    test_lookalikes();
    test_nul();
    json_release(&json);
    return tap_done();
}
