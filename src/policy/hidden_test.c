/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hidden.h"

#include "base/err.h"
#include "tests/tap.h"

static const struct {
    const char *text;
    enum hidden_kind kind;
    uint32_t code_point;
    size_t at, count;
} cases[] = {
    { "read a file\n\tquickly\r\n", HIDDEN_NONE, 0, 0, 0 },
    { "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", HIDDEN_NONE, 0, 0, 0 },
    { "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", HIDDEN_NONE, 0, 0, 0 },
    { "\xe2\x9d\xa4\xef\xb8\x8f", HIDDEN_NONE, 0, 0, 0 },
    { "a\xe2\x80\x8d"
      "b",
      HIDDEN_ZERO_WIDTH, 0x200d, 1, 1 },
    { "a\xe2\x80\x8b"
      "b\xe2\x80\x8b",
      HIDDEN_ZERO_WIDTH, 0x200b, 1, 2 },
    { "\xef\xbb\xbfx", HIDDEN_ZERO_WIDTH, 0xfeff, 0, 1 },
    { "soft\xc2\xadhyphen", HIDDEN_ZERO_WIDTH, 0xad, 4, 1 },
    { "x\xe2\x80\xaey", HIDDEN_BIDI, 0x202e, 1, 1 },
    { "x\xe2\x81\xa6y\xe2\x81\xa9", HIDDEN_BIDI, 0x2066, 1, 2 },
    { "x\xd8\x9cy", HIDDEN_BIDI, 0x61c, 1, 1 },
    { "x\xf3\xa0\x81\xa1y", HIDDEN_TAG, 0xe0061, 1, 1 },
    { "x\xf3\xa0\x84\x80", HIDDEN_VARIATION, 0xe0100, 1, 1 },
    { "x\xef\xb8\x80", HIDDEN_VARIATION, 0xfe00, 1, 1 },
    { "x\x1b[31m", HIDDEN_CONTROL, 0x1b, 1, 1 },
    { "x\xc2\x9b", HIDDEN_CONTROL, 0x9b, 1, 1 },
    { "x\xff", HIDDEN_CONTROL, 0x80, 1, 1 },
    { "x\xe2\x80\xa8", HIDDEN_CONTROL, 0x2028, 1, 1 },
};

static void test_definition(void)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    struct hidden h;

    if (json_parse(
            &j,
            STR("{\"name\":\"a\",\"x\":[{\"desc\\u202eription\":\"t\\udb40\\udc41"
                "\\u200b\"},\"\\ud83d\\udc69\\u200d\\ud83d\\udc67\"],\"y\":\"\\n\"}"),
            NULL, &err) < 0) {
        ok(false, "%s", err.msg);
        return;
    }
    h = hidden_in(&j, JSON_ROOT);
    ok(h.kind == HIDDEN_BIDI && h.count == 3 && h.at == 18,
       "escaped, nested and in names: %s at %zu, %zu in all", hidden_name(h.kind), h.at,
       h.count);
    h = hidden_in(&j, json_member(&j, JSON_ROOT, STR("y")));
    ok(h.kind == HIDDEN_NONE && h.count == 0, "only below the node");
}

int main(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hidden h = hidden_find(str_from(cases[i].text));

        ok(h.kind == cases[i].kind && h.code_point == cases[i].code_point &&
               h.at == cases[i].at && h.count == cases[i].count,
           "row %zu: %s U+%04X at %zu, %zu times", i, hidden_name(h.kind),
           (unsigned)h.code_point, h.at, h.count);
    }
    test_definition();
    return tap_done();
}
