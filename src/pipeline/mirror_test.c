/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/mirror.h"

#include <stdio.h>

#include "base/err.h"
#include "tests/tap.h"

/* From the table of MCP 2026-07-28; the base64 is Python's. */
static const struct {
    const char *name, *header;
} names[] = {
    { "get_weather", "get_weather" },
    { "", "" },
    { "file:///a b", "file:///a b" },
    { "tab\tinside", "tab\tinside" },
    { " leading", "=?base64?IGxlYWRpbmc=?=" },
    { "trailing\t", "=?base64?dHJhaWxpbmcJ?=" },
    { "größe", "=?base64?Z3LDtsOfZQ==?=" },
    { "a\r\nX: y", "=?base64?YQ0KWDogeQ==?=" },
    { "=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?=" },
    { "=?BASE64?eA==?=", "=?BASE64?eA==?=" },
    { "\x7f", "=?base64?fw==?=" },
};

static void test_values(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };

        mirror_add_value(&b, str_from(names[i].name));
        ok(str_is(buf_str(&b), names[i].header), "text %zu as a header", i);
    }
}

/* A list with one tool of this schema. */
static bool learn(struct mirror *m, const char *name, const char *schema)
{
    CLEANUP(buf_release) struct buf text = { .max = 2 * MIRROR_BYTES_MAX };
    CLEANUP(json_release) struct json j = { 0 };
    struct err err;

    buf_printf(&text, "[{\"name\":\"%s\",\"inputSchema\":", name);
    buf_add(&text, str_from(schema));
    buf_add(&text, STR("}]"));
    if (json_parse(&j, buf_str(&text), NULL, &err) < 0)
        return false;
    mirror_learn(m, &j, JSON_ROOT);
    return true;
}

/* "Name: value\n" of each header. */
static const char *headers(struct mirror *m, const char *tool, const char *arguments,
                           struct buf *out)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err;

    buf_reset(out);
    if (json_parse(&j, str_from(arguments), NULL, &err) < 0)
        return "?";
    mirror_call(m, str_from(tool), &j, JSON_ROOT);
    for (size_t i = 0; i < m->header_count; i++) {
        buf_add(out, m->headers[i].name);
        buf_add(out, STR(": "));
        buf_add(out, m->headers[i].value);
        buf_add(out, STR("\n"));
    }
    return buf_cstr(out);
}

#define PROPERTIES(text) "{\"type\":\"object\",\"properties\":{" text "}}"
#define MARKED(name, type, token)                                                        \
    "\"" name "\":{\"type\":\"" type "\",\"x-mcp-header\":\"" token "\"}"

static void test_calls(void)
{
    static const struct {
        const char *what, *schema, *arguments, *headers;
    } cases[] = {
        { "a string", PROPERTIES(MARKED("a", "string", "Region")), "{\"a\":\"eu west\"}",
          "Mcp-Param-Region: eu west\n" },
        { "text that needs base64", PROPERTIES(MARKED("a", "string", "R")),
          "{\"a\":\"gr\\u00f6\\u00dfe\"}", "Mcp-Param-R: =?base64?Z3LDtsOfZQ==?=\n" },
        { "an empty string", PROPERTIES(MARKED("a", "string", "R")), "{\"a\":\"\"}",
          "Mcp-Param-R: \n" },
        { "an integer", PROPERTIES(MARKED("a", "integer", "R")), "{\"a\":-42}",
          "Mcp-Param-R: -42\n" },
        { "a boolean", PROPERTIES(MARKED("a", "boolean", "R")), "{\"a\":false}",
          "Mcp-Param-R: false\n" },
        { "null", PROPERTIES(MARKED("a", "string", "R")), "{\"a\":null}", "" },
        { "an argument that is not there", PROPERTIES(MARKED("a", "string", "R")), "{}",
          "" },
        { "arguments that are none", PROPERTIES(MARKED("a", "string", "R")), "[1]", "" },
        { "an object", PROPERTIES(MARKED("a", "string", "R")), "{\"a\":{}}", "" },
        { "two", PROPERTIES(MARKED("a", "string", "A") "," MARKED("b", "integer", "B")),
          "{\"b\":1,\"a\":\"x\"}", "Mcp-Param-A: x\nMcp-Param-B: 1\n" },
        { "one in an object", PROPERTIES("\"o\":" PROPERTIES(MARKED("a", "string", "A"))),
          "{\"o\":{\"a\":\"x\"}}", "Mcp-Param-A: x\n" },
        { "an escaped name", PROPERTIES(MARKED("\\u0061", "string", "A")),
          "{\"a\":\"x\"}", "Mcp-Param-A: x\n" },
        { "the same token twice",
          PROPERTIES(MARKED("a", "string", "A") "," MARKED("b", "string", "a")),
          "{\"a\":\"x\",\"b\":\"y\"}", "Mcp-Param-A: x\n" },
        { "a number", PROPERTIES(MARKED("a", "number", "R")), "{\"a\":1.5}", "" },
        { "no token", PROPERTIES(MARKED("a", "string", "R: x\\r\\nY")), "{\"a\":\"x\"}",
          "" },
        { "an empty token", PROPERTIES(MARKED("a", "string", "")), "{\"a\":\"x\"}", "" },
        { "items",
          "{\"properties\":{\"l\":{\"type\":\"array\",\"items\":" PROPERTIES(
              MARKED("a", "string", "A")) "}}}",
          "{\"l\":[{\"a\":\"x\"}]}", "" },
        { "an argument of that name", PROPERTIES(MARKED("x-mcp-header", "string", "A")),
          "{\"x-mcp-header\":\"v\"}", "Mcp-Param-A: v\n" },
        { "a schema without types",
          "{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"},\"b\":7}}",
          "{\"a\":\"x\",\"b\":1}", "" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP(mirror_release) struct mirror m = { 0 };
        CLEANUP(buf_release) struct buf out = { 0 };
        const char *got = learn(&m, "t", cases[i].schema)
                              ? headers(&m, "t", cases[i].arguments, &out)
                              : "?";

        ok(strcmp(got, cases[i].headers) == 0, "%s", cases[i].what);
        if (strcmp(got, cases[i].headers) != 0)
            printf("# %s\n", got);
    }
}

static void test_what_is_known_is_what_was_said_last(void)
{
    CLEANUP(mirror_release) struct mirror m = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };

    ok(learn(&m, "t", PROPERTIES(MARKED("a", "string", "A"))) &&
           learn(&m, "u", PROPERTIES(MARKED("a", "string", "U"))) &&
           learn(&m, "t", PROPERTIES(MARKED("a", "string", "B"))) && m.count == 2,
       "one of two tools is told again");
    ok(!strcmp(headers(&m, "t", "{\"a\":\"x\"}", &out), "Mcp-Param-B: x\n"), "as it is");
    ok(!strcmp(headers(&m, "u", "{\"a\":\"x\"}", &out), "Mcp-Param-U: x\n"), "the other");
    ok(!strcmp(headers(&m, "v", "{\"a\":\"x\"}", &out), ""), "one that is not known");
    ok(learn(&m, "t", "{}") && learn(&m, "u", "7") && m.count == 0 && m.bytes == 0,
       "without marks they are forgotten");
}

static void test_limits(void)
{
    CLEANUP(mirror_release) struct mirror m = { 0 };
    CLEANUP(buf_release) struct buf text = { .max = 2 * MIRROR_BYTES_MAX }, out = { 0 };
    char name[16];
    size_t room;

    for (int i = 0; i <= MIRROR_TOOLS_MAX; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        if (!learn(&m, name, PROPERTIES(MARKED("a", "string", "A"))))
            break;
    }
    ok(m.count == MIRROR_TOOLS_MAX, "MIRROR_TOOLS_MAX tools, and not one more");
    mirror_release(&m);
    for (size_t more = 0; more < 2; more++) {
        buf_reset(&text);
        buf_add(&text, STR("{\"x-mcp-header\":\""));
        room = MIRROR_BYTES_MAX - 1 - text.n - 2 + more; /* its name, and the end */
        memset(buf_room(&text, room), 'x', room);
        text.n += room;
        buf_add(&text, STR("\"}"));
        ok(learn(&m, "t", buf_cstr(&text)) && m.count == 1 - more,
           "MIRROR_BYTES_MAX%s bytes", more ? " + 1" : "");
    }
    for (size_t more = 0; more < 2; more++) {
        mirror_release(&m);
        buf_reset(&text);
        buf_add(&text, STR("{\"a\":\""));
        memset(buf_room(&text, MIRROR_VALUE_MAX + 1), 'x', MIRROR_VALUE_MAX + more);
        text.n += MIRROR_VALUE_MAX + more;
        buf_add(&text, STR("\"}"));
        ok(learn(&m, "t", PROPERTIES(MARKED("a", "string", "A"))) &&
               (headers(&m, "t", buf_cstr(&text), &out)[0] == '\0') == more,
           "a value of MIRROR_VALUE_MAX%s bytes", more ? " + 1" : "");
    }
}

static void test_the_headers_of_a_call_are_bounded(void)
{
    CLEANUP(mirror_release) struct mirror m = { 0 };
    CLEANUP(buf_release) struct buf schema = { 0 }, given = { 0 }, out = { 0 };

    buf_add(&schema, STR("{\"properties\":{"));
    buf_add(&given, STR("{"));
    for (int i = 0; i <= MIRROR_HEADERS_MAX; i++) {
        buf_printf(&schema, "%s\"a%d\":{\"type\":\"integer\",\"x-mcp-header\":\"A%d\"}",
                   i ? "," : "", i, i);
        buf_printf(&given, "%s\"a%d\":%d", i ? "," : "", i, i);
    }
    buf_add(&schema, STR("}}"));
    buf_add(&given, STR("}"));
    ok(learn(&m, "t", buf_cstr(&schema)), "a tool with many");
    headers(&m, "t", buf_cstr(&given), &out);
    ok(m.header_count == MIRROR_HEADERS_MAX, "MIRROR_HEADERS_MAX headers, and no more");
}

static void test_depth_and_length_of_a_mark(void)
{
    CLEANUP(mirror_release) struct mirror m = { 0 };
    CLEANUP(buf_release) struct buf schema = { 0 }, given = { 0 }, out = { 0 };
    char token[MIRROR_TOKEN_MAX + 2] = "";

    for (int depth = MIRROR_DEPTH_MAX; depth <= MIRROR_DEPTH_MAX + 1; depth++) {
        buf_reset(&schema);
        buf_reset(&given);
        for (int i = 1; i < depth; i++) {
            buf_add(&schema, STR("{\"properties\":{\"o\":"));
            buf_add(&given, STR("{\"o\":"));
        }
        buf_add(&schema, STR(PROPERTIES(MARKED("a", "string", "A"))));
        buf_add(&given, STR("{\"a\":\"x\"}"));
        for (int i = 1; i < depth; i++) {
            buf_add(&schema, STR("}}"));
            buf_add(&given, STR("}"));
        }
        ok(learn(&m, "t", buf_cstr(&schema)) &&
               (headers(&m, "t", buf_cstr(&given), &out)[0] != '\0') ==
                   (depth == MIRROR_DEPTH_MAX),
           "a mark %d objects deep", depth);
    }
    for (int n = MIRROR_TOKEN_MAX; n <= MIRROR_TOKEN_MAX + 1; n++) {
        memset(token, 'T', (size_t)n);
        buf_reset(&schema);
        buf_printf(&schema, PROPERTIES(MARKED("a", "string", "%s")), token);
        ok(learn(&m, "t", buf_cstr(&schema)) &&
               (headers(&m, "t", "{\"a\":\"x\"}", &out)[0] != '\0') ==
                   (n == MIRROR_TOKEN_MAX),
           "a mark of %d bytes", n);
    }
}

/* Of fourteen values of half the longest each, those that fit with their names go. */
static void test_all_headers_together_are_bounded(void)
{
    CLEANUP(mirror_release) struct mirror m = { 0 };
    CLEANUP(buf_release) struct buf schema = { 0 }, given = { 0 }, out = { 0 };
    const size_t half = MIRROR_VALUE_MAX / 2;

    buf_add(&schema, STR("{\"properties\":{"));
    buf_add(&given, STR("{"));
    for (int i = 0; i < 14; i++) {
        buf_printf(&schema, "%s\"a%d\":{\"type\":\"string\",\"x-mcp-header\":\"A%d\"}",
                   i ? "," : "", i, i);
        buf_printf(&given, "%s\"a%d\":\"", i ? "," : "", i);
        memset(buf_room(&given, half), 'x', half);
        given.n += half;
        buf_add(&given, STR("\""));
    }
    buf_add(&schema, STR("}}"));
    buf_add(&given, STR("}"));
    ok(learn(&m, "t", buf_cstr(&schema)), "a tool with long ones");
    headers(&m, "t", buf_cstr(&given), &out);
    ok(m.header_count == 11 && m.headers[10].value.n == half,
       "%zu headers within MIRROR_TEXT_MAX bytes", m.header_count);
}

int main(void)
{
    test_depth_and_length_of_a_mark();
    test_all_headers_together_are_bounded();
    test_values();
    test_calls();
    test_what_is_known_is_what_was_said_last();
    test_limits();
    test_the_headers_of_a_call_are_bounded();
    return tap_done();
}
