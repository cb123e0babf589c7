/* SPDX-License-Identifier: Apache-2.0 */
#include "json/pretty.h"

#include "base/err.h"
#include "tests/tap.h"

/* Left: any JSON. Right: what Python's json.dumps(json.loads(left), indent=2) prints. */
static void test_prints_as_python_does(void)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "{}", "{}" },
        { "[ ]", "[]" },
        { "7", "7" },
        { "[1,[2,{}],[]]", "[\n  1,\n  [\n    2,\n    {}\n  ],\n  []\n]" },
        { "{\"b\":1,\"a\":{\"x\":null,\"y\":true}}",
          "{\n  \"b\": 1,\n  \"a\": {\n    \"x\": null,\n    \"y\": true\n  }\n}" },
        { "\"\\b\\f\\n\\r\\t\\\"\\\\\\/\\u0001\\u007f\"",
          "\"\\b\\f\\n\\r\\t\\\"\\\\/\\u0001\x7f\"" },
        { "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80 \xe2\x80\xa8\"",
          "\"gr\\u00fc\\u00df \\ud83d\\ude00 \\u2028\"" },
        { "{\"\\u00e9\":\"\"}", "{\n  \"\\u00e9\": \"\"\n}" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf out = { 0 };
        CLEANUP(json_release) struct json j = { 0 };
        struct err err = { 0 };
        struct pretty p;

        pretty_init(&p, &out);
        if (json_parse(&j, str_from(rows[i].in), NULL, &err) < 0) {
            ok(false, "%s: %s", rows[i].in, err.msg);
            continue;
        }
        pretty_node(&p, NULL, &j, JSON_ROOT);
        ok(str_is(buf_str(&out), rows[i].out), "prints row %zu as Python does", i);
    }
}

static void test_composes_member_by_member(void)
{
    CLEANUP(buf_release) struct buf out = { 0 };
    struct pretty p;

    pretty_init(&p, &out);
    pretty_object(&p, NULL);
    pretty_text(&p, "a", "x");
    pretty_array(&p, "list");
    pretty_u64(&p, NULL, UINT64_MAX);
    pretty_null(&p, NULL);
    pretty_end_array(&p);
    pretty_object(&p, "empty");
    pretty_end_object(&p);
    pretty_bool(&p, "no", false);
    pretty_end_object(&p);
    ok(str_is(buf_str(&out), "{\n  \"a\": \"x\",\n  \"list\": [\n"
                             "    18446744073709551615,\n    null\n  ],\n"
                             "  \"empty\": {},\n  \"no\": false\n}"),
       "writes what was asked for, in that order");
}

static void test_what_is_not_text_is_replaced(void)
{
    CLEANUP(buf_release) struct buf out = { 0 };

    pretty_add_string(&out, STR("a\xff\xc3"));
    ok(str_is(buf_str(&out), "\"a\\ufffd\\ufffd\""), "broken UTF-8 becomes U+FFFD");
}

int main(void)
{
    test_prints_as_python_does();
    test_composes_member_by_member();
    test_what_is_not_text_is_replaced();
    return tap_done();
}
