/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/peek.h"

#include "base/err.h"
#include "pipeline/mirror.h"
#include "tests/tap.h"
#include "transport/http_head.h"

#define META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" META

struct row {
    const char *body;
    bool json, rpc, batch, initialize, stateless;
    unsigned requests;
    const char *id, *tokens;
};

static const struct row rows[] = {
    { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}", true, true, false, true,
      false, 1, "1", "" },
    { "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", true, true, false,
      false, false, 0, "", "" },
    { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", true, true, false, false, false, 0,
      "", "" },
    { CALL "}}", true, true, false, false, true, 1, "7", "" },
    { "{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"method\":\"x\",\"params\":{\"_meta\":{"
      "\"progressToken\":\"t\"}}}",
      true, true, false, false, false, 1, "\"a\\u0062\"", "\"t\"\n" },
    { "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"},"
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"b\"}]",
      true, true, true, false, false, 2, "", "" },
    { "[]", true, false, true, false, false, 0, "", "" },
    { "{\"a\":1}", true, false, false, false, false, 0, "", "" },
    { "5", true, false, false, false, false, 0, "", "" },
    { "{", false, true, false, false, false, 0, "", "" },
};

static void test_bodies(void)
{
    struct peek p = { 0 };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        peek_read(&p, str_from(r->body));
        ok(p.is_json == r->json && (!r->json || p.is_rpc == r->rpc) &&
               p.is_batch == r->batch && p.is_initialize == r->initialize &&
               p.is_stateless == r->stateless && p.requests == r->requests &&
               str_is(buf_str(&p.id), r->id) && str_is(buf_str(&p.tokens), r->tokens),
           "%s", r->body);
    }
    peek_release(&p);
}

/* --- headers --- */

#define VERSION "MCP-Protocol-Version: 2026-07-28\r\n"
#define METHOD  "Mcp-Method: tools/call\r\n"

static const struct {
    const char *name, *headers;
    bool good;
} heads[] = {
    { "echo", VERSION METHOD "Mcp-Name: echo\r\n", true },
    { "echo", VERSION METHOD "Mcp-Name: =?base64?ZWNobw==?=\r\n", true },
    { "\\u00e9", VERSION METHOD "Mcp-Name: =?base64?w6k=?=\r\n", true },
    { "echo", VERSION METHOD "Mcp-Name: Echo\r\n", false },
    { "echo", VERSION METHOD "Mcp-Name: =?base64?ZWNobw?=\r\n", false },
    { "echo", VERSION METHOD "Mcp-Name: echo\r\nMcp-Name: evil\r\n", false },
    { "echo", VERSION METHOD, false },
    { "echo", VERSION "Mcp-Name: echo\r\n", false },
    { "echo", VERSION "Mcp-Method: tools/list\r\nMcp-Name: echo\r\n", false },
    { "echo", METHOD "Mcp-Name: echo\r\n", false },
    { "echo", "MCP-Protocol-Version: 2025-11-25\r\n" METHOD "Mcp-Name: echo\r\n", false },
};

static const char *mismatch(struct peek *p, const char *body, const char *headers,
                            struct mirror *marks)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct http_head head;
    const char *wrong;
    size_t used;

    buf_printf(&text, "POST /mcp HTTP/1.1\r\nHost: h\r\n%s\r\n", headers);
    http_head_init(&head, HTTP_REQUEST);
    peek_read(p, str_from(body));
    if (http_head_feed(&head, buf_str(&text), &used) != HTTP_DONE)
        wrong = "no head";
    else
        wrong = marks ? peek_param_mismatch(p, marks, &head) : peek_mismatch(p, &head);
    http_head_release(&head);
    return wrong;
}

static void test_headers_say_what_the_body_says(void)
{
    struct peek p = { 0 };

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        CLEANUP(buf_release) struct buf body = { 0 };

        buf_printf(&body, CALL ",\"name\":\"%s\"}}", heads[i].name);
        ok((mismatch(&p, buf_cstr(&body), heads[i].headers, NULL) == NULL) ==
               heads[i].good,
           "name %s, headers row %zu: %s", heads[i].name, i,
           heads[i].good ? "taken" : "refused");
    }
    peek_release(&p);
}

static void test_marked_arguments(void)
{
    static const char *const tools =
        "[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"region\":{"
        "\"type\":\"string\",\"x-mcp-header\":\"Region\"}}}}]";
    static const char *const body =
        CALL ",\"name\":\"t\",\"arguments\":{\"region\":\"eu\"}}}";
    struct mirror marks = { 0 };
    struct peek p = { 0 };
    struct json j = { 0 };
    struct err err;

    ok(json_parse(&j, str_from(tools), NULL, &err) == 0, "a list of tools");
    ok(!mismatch(&p, body, "", &marks), "of which nothing is known at first");
    mirror_learn(&marks, &j, JSON_ROOT);
    ok(mismatch(&p, body, "", &marks) != NULL, "a marked argument without its header");
    ok(!mismatch(&p, body, "Mcp-Param-Region: eu\r\n", &marks), "with it");
    ok(!mismatch(&p, body, "mcp-param-region: =?base64?ZXU=?=\r\n", &marks), "encoded");
    ok(mismatch(&p, body, "Mcp-Param-Region: us\r\n", &marks) != NULL, "another value");
    ok(!mismatch(&p, CALL ",\"name\":\"t\",\"arguments\":{}}}", "", &marks),
       "an argument that is not there");
    mirror_release(&marks);
    json_release(&j);
    peek_release(&p);
}

static void test_what_a_server_says(void)
{
    struct peek p = { 0 };

    ok(str_is(peek_progress(&p, STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                                    "progress\",\"params\":{\"progressToken\":5}}")),
              "5"),
       "the token of progress");
    ok(peek_progress(&p, STR("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}")).n == 0, "none");
    ok(peek_error(&p, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,"
                          "\"message\":\"\"}}")) == -32601,
       "the code of an error");
    ok(peek_error(&p, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}")) == 0, "none");
    ok(peek_error(&p, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1e99}}")) ==
           0,
       "one that is no code");
    peek_release(&p);
}

int main(void)
{
    test_bodies();
    test_headers_say_what_the_body_says();
    test_marked_arguments();
    test_what_a_server_says();
    return tap_done();
}
