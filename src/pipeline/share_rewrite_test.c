/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/share_rewrite.h"

#include "base/err.h"
#include "tests/tap.h"

static const struct {
    enum rewrite_part part;
    bool loosely;
    const char *text, *expected, *last; /* last: NULL when there is none */
} rows[] = {
    { REWRITE_ID, false, "{\"id\":1}", "{\"id\":#}", "1" },
    { REWRITE_ID, false, "{\"id\":1,\"Id\":2,\"id\":\"3\"}",
      "{\"id\":#,\"Id\":2,\"id\":#}", "\"3\"" },
    { REWRITE_ID, true, "{\"id\":1,\"Id\":2}", "{\"id\":#,\"Id\":#}", "2" },
    { REWRITE_ID, true,
      "{\"id\":null,\"id\":[1],\"id\":{},\"id\":true,\"idd\":1,\"i\":1}",
      "{\"id\":null,\"id\":[1],\"id\":{},\"id\":true,\"idd\":1,\"i\":1}", NULL },
    { REWRITE_ID, true, "{\"\\u0049D\\u0000 and more\":1}",
      "{\"\\u0049D\\u0000 and more\":#}", "1" },
    { REWRITE_ID, true, "[{\"id\":1}]", "[{\"id\":1}]", NULL },
    { REWRITE_TOKEN, true,
      "{\"params\":{\"_META\":{\"progressTo\xe2\x84\xaa"
      "en\":1}},\"param\xc5\xbf\":{\"_meta\":{\"progressToken\":2}}}",
      "{\"params\":{\"_META\":{\"progressTo\xe2\x84\xaa"
      "en\":#}},\"param\xc5\xbf\":{\"_meta\":{\"progressToken\":#}}}",
      "2" },
    { REWRITE_TOKEN, false,
      "{\"_meta\":{\"progressToken\":2},\"params\":[{\"_meta\":1}]}",
      "{\"_meta\":{\"progressToken\":2},\"params\":[{\"_meta\":1}]}", NULL },
    { REWRITE_PROGRESS, false, "{\"params\":{\"progressToken\":\"\"}}",
      "{\"params\":{\"progressToken\":#}}", "\"\"" },
    { REWRITE_CANCELLED, false, "{\"params\":{\"requestId\":-1e5}}",
      "{\"params\":{\"requestId\":#}}", "-1e5" },
    { REWRITE_NOTICE, false,
      "{\"params\":{\"_meta\":{\"io.modelcontextprotocol\\/subscriptionId\":4}}}",
      "{\"params\":{\"_meta\":{\"io.modelcontextprotocol\\/subscriptionId\":#}}}", "4" },
    { REWRITE_CLOSING, false,
      "{\"result\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":4}}}",
      "{\"result\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":#}}}", "4" },
};

static void test_places(void)
{
    struct splice s = { 0 };
    struct json j = { 0 };
    struct err err = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        str text = str_from(rows[i].text), out = { 0 };
        uint32_t last;

        ok(rewrite_parse(&j, text, &err) == 0, "row %zu is JSON: %s", i, err.msg);
        splice_begin(&s, text);
        rewrite_replace(&s, &j, JSON_ROOT, rows[i].part, rows[i].loosely, STR("#"));
        ok(splice_end(&s, &out, &err) == 0 && str_is(out, rows[i].expected),
           "row %zu becomes what it should", i);
        last = rewrite_find(&j, JSON_ROOT, rows[i].part, rows[i].loosely);
        ok(rows[i].last ? last != JSON_NONE && str_is(json_raw(&j, last), rows[i].last)
                        : last == JSON_NONE,
           "and the last place is found");
    }
    json_release(&j);
    splice_release(&s);
}

static void test_methods(void)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        { "{\"method\":\"a/b\"}", true },
        { "{\"method\":\"x\",\"METHOD\":\"a\\/b\"}", true },
        { "{\"method\":\"a/b\",\"method\":\"x\"}", true },
        { "{\"method\":\"a/b\\u0000\"}", true },
        { "{\"method\":\"a/bc\",\"methods\":\"a/b\",\"x\":\"a/b\"}", false },
        { "{\"method\":[\"a/b\"]}", false },
        { "[\"method\",\"a/b\"]", false },
        { "7", false },
    };
    struct json j = { 0 };
    struct err err;

    for (size_t i = 0; i < COUNT(cases); i++)
        ok(rewrite_parse(&j, str_from(cases[i].text), &err) == 0 &&
               rewrite_is_method(&j, JSON_ROOT, STR("a/b")) == cases[i].is,
           "%s", cases[i].text);
    json_release(&j);
}

static void test_numbers(void)
{
    static const struct {
        const char *text;
        uint64_t number;
    } cases[] = {
        { "1", 1 },     { "1.0", 1 },  { "1e3", 1000 },
        { "0", 0 },     { "-1", 0 },   { "1.5", 0 },
        { "\"1\"", 0 }, { "null", 0 }, { "9007199254740991", 9007199254740991 },
        { "1e400", 0 }, { "1e20", 0 }, { "[1]", 0 },
    };
    CLEANUP(buf_release) struct buf scratch = { 0 };
    struct json j = { 0 };
    struct err err;

    for (size_t i = 0; i < COUNT(cases); i++)
        ok(rewrite_parse(&j, str_from(cases[i].text), &err) == 0 &&
               rewrite_number(&j, JSON_ROOT, &scratch) == cases[i].number,
           "%s", cases[i].text);
    json_release(&j);
}

static void test_lines(void)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        { "{}", "{}\n" },      { "{}\n", "{}\n" },     { "{}\r\n", "{}\r\n" },
        { "{\n}\n", "{ }\n" }, { "{\r\n}", "{  }\n" }, { "\n{}\r", " {} \n" },
        { "{}\n\n", "{} \n" }, { "\n", "\n" },         { "", "\n" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };

        buf_add(&b, str_from(cases[i].text));
        rewrite_make_line(&b);
        ok(str_is(buf_str(&b), cases[i].line), "line %zu", i);
    }
}

/* What is deeper than the index goes is not looked into, but has its ids. */
static void test_deep(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct json j = { 0 };
    struct err err = { 0 };

    buf_add(&b, STR("{\"params\":{\"_meta\":{\"progressToken\":8},\"x\":"));
    for (int i = 0; i < JSON_MAX_DEPTH; i++)
        buf_add_char(&b, '[');
    for (int i = 0; i < JSON_MAX_DEPTH; i++)
        buf_add_char(&b, ']');
    buf_add(&b, STR("},\"id\":7}"));
    ok(rewrite_parse(&j, buf_str(&b), &err) == 0, "very deep: %s", err.msg);
    ok(rewrite_find(&j, JSON_ROOT, REWRITE_ID, true) != JSON_NONE &&
           rewrite_find(&j, JSON_ROOT, REWRITE_TOKEN, true) != JSON_NONE,
       "its parts are found");
    json_release(&j);
}

int main(void)
{
    test_places();
    test_methods();
    test_numbers();
    test_lines();
    test_deep();
    return tap_done();
}
