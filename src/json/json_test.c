/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/guard.h"
#include "tests/tap.h"

#define SUITE "../shared/testdata/json-parsing"

static int parse_guarded(struct json *j, struct guard *g, str text,
                         const struct json_limits *limits, struct err *err)
{
    guard_init(g, text);
    return json_parse(j, g->bytes, limits, err);
}

static void test_accepts_what_rfc_8259_accepts(void)
{
    static const char texts[][80] = {
        "null",
        " true ",
        "false\n",
        "0",
        "-0",
        "-0.0e-0",
        "1E+9",
        "\"\"",
        "[]",
        "{}",
        "[[],{},[{}]]",
        "{\"\":0}",
        "{\"a\":1,\"b\":[true,false,null]}",
        "\t\r\n [ 1 , 2 ]\t\r\n ",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD83D\\uDE00\"",
        "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf and some more text after that\"",
        "                                      1",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        CLEANUP(json_release) struct json j = { 0 };
        CLEANUP(guard_release) struct guard g = { 0 };
        struct err err = { 0 };

        ok(parse_guarded(&j, &g, str_from(texts[i]), NULL, &err) == 0 && j.count > 0 &&
               err.code == ERR_NONE,
           "accepts row %zu", i);
        ok(!(j.nodes[0].flags & JSON_TAINTED), "row %zu is not tainted", i);
    }
}

/* The byte where it stops and what it would have liked. */
static void test_refuses_and_says_where(void)
{
    const struct {
        str text;
        const char *said;
    } rows[] = {
        { STR(""), "at byte 0: expected a value, found the end of the text" },
        { STR("  "), "at byte 2: expected a value, found the end of the text" },
        { STR("\xef\xbb\xbf{}"),
          "at byte 0: expected a value without a byte order mark" },
        { STR("{}x"), "at byte 2: expected nothing after the value, found 'x'" },
        { STR("[1 2]"), "at byte 3: expected ',' or ']', found '2'" },
        { STR("[1,]"), "at byte 3: expected a value, found ']'" },
        { STR("[1"), "at byte 2: expected ',' or ']', found the end" },
        { STR("[1}"), "at byte 2: expected ',' or ']', found '}'" },
        { STR("{\"a\":1"), "at byte 6: expected ',' or '}', found the end" },
        { STR("{\"a\":1,}"), "at byte 7: expected a member name in quotes, found '}'" },
        { STR("{a:1}"), "at byte 1: expected a member name in quotes, found 'a'" },
        { STR("{\"a\" 1}"), "at byte 5: expected ':' after the member name, found '1'" },
        { STR("{\"a\":}"), "at byte 5: expected a value, found '}'" },
        { STR("nul"), "at byte 0: expected a value (true, false and null" },
        { STR("True"), "at byte 0: expected a value, found 'T'" },
        { STR("-"), "at byte 1: expected a digit after '-', found the end" },
        { STR("+1"), "at byte 0: expected a value, found '+'" },
        { STR("01"), "at byte 1: expected no digit after a leading 0, found '1'" },
        { STR("-00"), "at byte 2: expected no digit after a leading 0" },
        { STR("1."), "at byte 2: expected a digit after '.'" },
        { STR("1.e1"), "at byte 2: expected a digit after '.', found 'e'" },
        { STR("1e"), "at byte 2: expected a digit in the exponent" },
        { STR("1e+"), "at byte 3: expected a digit in the exponent" },
        { STR("1e1.5"), "at byte 3: expected nothing after the value, found '.'" },
        { STR("NaN"), "at byte 0: expected a value, found 'N'" },
        { STR("'a'"), "at byte 0: expected a value, found '''" },
        { STR("\"a"), "at byte 2: expected '\"' at the end of the string" },
        { STR("\"a\n\""), "at byte 2: expected an escape for this control character, "
                          "found the byte 0x0a" },
        { STR("\"a\0\""), "at byte 2: expected an escape for this control character" },
        { STR("\"\\x\""),
          "at byte 2: expected one of \"\\/bfnrtu after '\\', found 'x'" },
        { STR("\"\\"), "at byte 2: expected one of" },
        { STR("\"\\u12G4\""), "at byte 1: expected four hexadecimal digits" },
        { STR("\"\\u123"), "at byte 1: expected four hexadecimal digits" },
        { STR("\"\x80\""), "at byte 1: expected valid UTF-8, found the byte 0x80" },
        { STR("\"\xc0\x80\""), "at byte 1: expected valid UTF-8" },
        { STR("\"0123456789\xed\xa0\x80 and enough for a block\""),
          "at byte 11: expected valid UTF-8, found the byte 0xed" },
        { STR("\"0123456789\xe0\x9f\xbf and enough for a block\""), "at byte 11:" },
        { STR("\"0123456789\xf0\x8f\xbf\xbf and enough for a block\""), "at byte 11:" },
        { STR("\"0123456789\xf4\x90\x80\x80 and enough for a block\""), "at byte 11:" },
        { STR("\"0123456789\xf5\x80\x80\x80 and enough for a block\""), "at byte 11:" },
        { STR("\"0123456789\xc1\xbf and enough for a block\""), "at byte 11:" },
        { STR("\"0123456789\xe2\x82\" and enough for a block\""), "at byte 11:" },
        { STR("\"0123456789\xbf and enough for a block\""), "at byte 11:" },
        { STR("\"\xe2\x82"), "at byte 1: expected valid UTF-8" },
        { STR("\0"), "at byte 0: expected a value, found the byte 0x00" },
        { STR("[1]\0"), "at byte 3: expected nothing after the value" },
        { STR("[\v1]"), "at byte 1: expected a value, found the byte 0x0b" },
        { STR("//\n1"), "at byte 0: expected a value, found '/'" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(json_release) struct json j = { 0 };
        CLEANUP(guard_release) struct guard g = { 0 };
        struct err err = { 0 };
        bool refused = parse_guarded(&j, &g, rows[i].text, NULL, &err) < 0;

        ok(refused && err.code == ERR_FORMAT && j.count == 0 &&
               strstr(err.msg, rows[i].said),
           "row %zu: %s", i, err.msg);
    }
}

static void test_index_tells_what_stands_where(void)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    static const char text[] = " {\"a\" : [1.50, \"x\\n\"], \"b\":{}, \"\\u0063\":-7}";
    uint32_t a, array;
    int64_t value = 0;

    ok(json_parse(&j, str_from(text), NULL, &err) == 0 && j.count == 9, "nine nodes");
    array = json_member(&j, JSON_ROOT, STR("a"));
    ok(json_is(&j, array, JSON_ARRAY) && json_count(&j, array) == 2, "an array of two");
    a = array + 1;
    ok(str_is(json_raw(&j, a), "1.50") && !(j.nodes[a].flags & JSON_INTEGER),
       "a number keeps its spelling");
    ok(json_string_is(&j, a + 1, STR("x\n")) && j.nodes[a + 1].flags == JSON_ESCAPED,
       "a string is compared unescaped");
    ok(str_is(json_raw(&j, array), "[1.50, \"x\\n\"]"), "a container's source bytes");
    ok(j.nodes[array].next == array + 3, "next leads over what is inside");
    ok(json_count(&j, JSON_ROOT) == 3, "three members");
    ok(json_int(&j, json_member(&j, JSON_ROOT, STR("c")), &value) && value == -7,
       "an escaped name is found by what it means");
    ok(json_member(&j, JSON_ROOT, STR("d")) == JSON_NONE, "an absent member");
    ok(json_member(&j, array, STR("a")) == JSON_NONE, "an array has no members");
    ok(json_member(&j, JSON_NONE, STR("a")) == JSON_NONE, "nothing has no members");
    ok(json_count(&j, a) == 0, "a number holds nothing");
}

static void test_integers_within_two_to_the_53(void)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } rows[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "9007199254740991", true, 9007199254740991 },
        { "-9007199254740991", true, -9007199254740991 },
        { "9007199254740992", false, 0 },
        { "-9007199254740992", false, 0 },
        { "99999999999999999999999999", false, 0 },
        { "1.0", false, 0 },
        { "1e2", false, 0 },
        { "\"1\"", false, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(json_release) struct json j = { 0 };
        struct err err = { 0 };
        int64_t value = 0;
        bool parsed = json_parse(&j, str_from(rows[i].text), NULL, &err) == 0;

        ok(parsed && json_int(&j, JSON_ROOT, &value) == rows[i].fits &&
               value == rows[i].value,
           "integer row %zu", i);
    }
}

static void test_marks_what_has_no_canonical_form(void)
{
    static const struct {
        const char *text;
        unsigned root, inner; /* flags of node 0 and of node 1 */
    } rows[] = {
        { "[\"\\ud800\"]", JSON_TAINTED,
          JSON_ESCAPED | JSON_LONE_SURROGATE | JSON_TAINTED },
        { "[\"\\udc00\\ud800\"]", JSON_TAINTED,
          JSON_ESCAPED | JSON_LONE_SURROGATE | JSON_TAINTED },
        { "[\"\\ud800\\u0041\"]", JSON_TAINTED,
          JSON_ESCAPED | JSON_LONE_SURROGATE | JSON_TAINTED },
        { "[\"\\ud83d\\ude00\"]", 0, JSON_ESCAPED },
        { "[{\"a\":1,\"a\":1}]", JSON_TAINTED, JSON_DUPLICATE | JSON_TAINTED },
        { "[{\"a\":1,\"\\u0061\":1}]", JSON_TAINTED, JSON_DUPLICATE | JSON_TAINTED },
        { "[{\"\":1,\"\" :1}]", JSON_TAINTED, JSON_DUPLICATE | JSON_TAINTED },
        { "[{\"a\":1,\"A\":1,\"aa\":1,\"\":1,\"ab\":2}]", 0, 0 },
        { "[{\"a\":{\"a\":1}}]", 0, 0 },
        { "{\"\\udfff\":[]}", JSON_TAINTED,
          JSON_ESCAPED | JSON_LONE_SURROGATE | JSON_TAINTED },
        { "[[[[{\"x\":[],\"x\":[]}]]]]", JSON_TAINTED, JSON_TAINTED },
        { "{\"\\ud800\":1,\"\\uD800\":2}", JSON_DUPLICATE | JSON_TAINTED,
          JSON_ESCAPED | JSON_LONE_SURROGATE | JSON_TAINTED },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(json_release) struct json j = { 0 };
        struct err err = { 0 };

        ok(json_parse(&j, str_from(rows[i].text), NULL, &err) == 0 &&
               j.nodes[0].flags == rows[i].root && j.nodes[1].flags == rows[i].inner,
           "marks of row %zu", i);
    }
}

static void test_unescapes(void)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf b = { 0 };
    struct err err = { 0 };

    ok(json_parse(
           &j, STR("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\\ud800z\\u0000\""),
           NULL, &err) == 0,
       "a string with every escape");
    json_unescape(&j, JSON_ROOT, &b);
    ok(str_equal(buf_str(&b),
                 STR("a\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80\xed\xa0\x80z\0")),
       "is unescaped");
}

/* `n` times `piece` with commas, between two brackets. */
static void repeat(struct buf *b, char open, const char *piece, size_t n, char shut)
{
    buf_reset(b);
    buf_add_char(b, open);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_char(b, ',');
        buf_printf(b, "%s", piece);
    }
    buf_add_char(b, shut);
}

static bool limit_says(str text, struct json_limits limits, enum err_code want)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    int result = json_parse(&j, text, &limits, &err);

    if (err.code == ERR_LIMIT)
        printf("# %s\n", err.msg);
    return err.code == want && (result == 0) == (want == ERR_NONE);
}

static void nest(struct buf *b, size_t depth)
{
    buf_reset(b);
    for (size_t i = 0; i < depth; i++)
        buf_add_char(b, '[');
    for (size_t i = 0; i < depth; i++)
        buf_add_char(b, ']');
}

static void test_limits_on_both_sides(void)
{
    CLEANUP(buf_release) struct buf b = { .max = (size_t)64 << 20 };
    struct json_limits none = { 0 };
    struct json_limits ten = { .max_bytes = 10, .max_nodes = 10, .max_depth = 10 };

    ok(limit_says(STR("[1,2,3,4 ]"), ten, ERR_NONE), "10 bytes of 10");
    ok(limit_says(STR("[1,2,3,4  ]"), ten, ERR_LIMIT), "11 bytes of 10");
    ten.max_bytes = 0;
    repeat(&b, '[', "1", 9, ']');
    ok(limit_says(buf_str(&b), ten, ERR_NONE), "10 nodes of 10");
    repeat(&b, '[', "1", 10, ']');
    ok(limit_says(buf_str(&b), ten, ERR_LIMIT), "11 nodes of 10");
    nest(&b, 10);
    ok(limit_says(buf_str(&b), ten, ERR_NONE), "depth 10 of 10");
    nest(&b, 11);
    ten.max_nodes = 0;
    ok(limit_says(buf_str(&b), ten, ERR_LIMIT), "depth 11 of 10");
    nest(&b, JSON_MAX_DEPTH);
    ok(limit_says(buf_str(&b), none, ERR_NONE), "the default depth");
    nest(&b, JSON_MAX_DEPTH + 1);
    ok(limit_says(buf_str(&b), none, ERR_LIMIT), "one level more");
    nest(&b, 1000000);
    ten.max_depth = 1000000;
    ok(limit_says(buf_str(&b), ten, ERR_NONE), "a million levels when asked for");
    repeat(&b, '[', "0", JSON_MAX_NODES - 1, ']');
    ok(limit_says(buf_str(&b), none, ERR_NONE), "the default number of nodes");
    repeat(&b, '[', "0", JSON_MAX_NODES, ']');
    ok(limit_says(buf_str(&b), none, ERR_LIMIT), "one node more");
    ok(limit_says(str_of(b.p, JSON_MAX_BYTES), none, ERR_LIMIT),
       "4 GiB are refused before they are read");
}

static void test_an_index_is_reused(void)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    uint32_t cap;

    ok(json_parse(&j, STR("[1,2,3]"), NULL, &err) == 0 && j.count == 4, "first text");
    cap = j.cap;
    ok(json_parse(&j, STR("[1,2"), NULL, &err) < 0 && j.count == 0,
       "a bad one empties it");
    ok(json_parse(&j, STR("[]"), NULL, &err) == 0 && j.count == 1 && j.cap == cap,
       "the memory stays");
}

/* One string of `size` bytes in a file mapping: the index stays as small as ever. */
static void test_long_strings_cost_no_memory(size_t size)
{
    CLEANUP(json_release) struct json j = { 0 };
    char path[] = "/tmp/json_test.XXXXXX";
    int fd = mkstemp(path);
    struct mapping m = { 0 };
    struct err err = { 0 };
    char block[65536];
    bool written = fd >= 0;

    memset(block, 'x', sizeof(block));
    block[0] = '[';
    block[1] = '"';
    for (size_t at = 0; written && at < size; at += sizeof(block)) {
        if (at + sizeof(block) >= size)
            memcpy(block + sizeof(block) - 2, "\"]", 2);
        written = file_write(fd, str_of(block, sizeof(block)), NULL, &err) == 0;
        memset(block, 'x', sizeof(block));
    }
    unlink(path);
    if (!written || mapping_open(&m, fd, path, &err) < 0) {
        ok(false, "a file of %zu bytes: %s", size, err.msg);
        return;
    }
    ok(json_parse(&j, m.bytes, NULL, &err) == 0 && j.nodes[1].end == size - 1,
       "a string of %zu bytes", size);
    ok(j.count == 2 && j.cap <= 64, "takes %u nodes", j.cap);
    mapping_release(&m);
    close(fd);
}

static void suite_file(const char *name)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(guard_release) struct guard g = { 0 };
    char path[FILE_PATH_MAX];
    struct err err = { 0 };
    bool duplicate = str_starts(str_from(name), STR("y_object_duplicated_key"));
    int result;

    if (path_join(path, SUITE, name, &err) < 0 || file_read(path, &text, &err) < 0) {
        ok(false, "%s: %s", name, err.msg);
        return;
    }
    result = parse_guarded(&j, &g, buf_str(&text), NULL, &err);
    if (name[0] == 'y')
        ok(result == 0 && !!(j.nodes[0].flags & JSON_DUPLICATE) == duplicate,
           "%s is accepted%s", name, duplicate ? " and marked" : "");
    else if (name[0] == 'n')
        ok(result < 0 && (err.code == ERR_FORMAT || err.code == ERR_LIMIT),
           "%s is refused", name);
    else
        ok(result == 0 || err.code != ERR_NONE, "%s does no harm", name);
}

static void test_public_suite(void)
{
    DIR *dir = opendir(SUITE);
    struct dirent *entry;
    int before = tap_count;

    if (!dir) {
        tap_skip("the public parsing suite", "../shared/testdata is not here");
        return;
    }
    while ((entry = readdir(dir))) {
        if (str_ends(str_from(entry->d_name), STR(".json")))
            suite_file(entry->d_name);
    }
    closedir(dir);
    ok(tap_count - before > 300, "%d files of the public suite", tap_count - before);
}

static void test_an_outline_of_what_is_too_deep(void)
{
    static const struct {
        const char *text;
        unsigned depth;
        uint32_t count; /* of nodes; 0: refused */
    } rows[] = {
        { "{\"a\":[[[[1]]]],\"b\":2}", 1, 5 },
        { "{\"a\":[[[[1]]]],\"b\":2}", 2, 6 },
        { "{\"a\":{\"x]\\\"}\":\"}\"},\"b\":[]}", 1, 5 },
        { "[[]]", 1, 2 },
        { "[[[]", 1, 0 },
        { "[[\"]", 1, 0 },
        { "[[\"\\x\"]]", 1, 0 },
        { "[[\"\xff\"]]", 1, 0 },
    };
    struct json j = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct json_limits limits = { .max_depth = 4,
                                            .opaque_depth = rows[i].depth };
        struct err err = { 0 };
        int result = json_parse(&j, str_from(rows[i].text), &limits, &err);

        ok((result == 0) == (rows[i].count > 0) && j.count == rows[i].count,
           "%s at depth %u: %u nodes", rows[i].text, rows[i].depth, j.count);
        ok(result < 0 || j.nodes[0].flags & JSON_TAINTED, "%s is tainted", rows[i].text);
    }
    json_release(&j);
}

static void test_an_index_is_taken_for_its_own_text_only(void)
{
    static const char text[] = "[1] [2]";
    CLEANUP(json_release) struct json mine = { 0 }, other = { 0 };
    const struct json_node *nodes;
    struct err err;

    ok(json_parse(&mine, STR("{}"), NULL, &err) == 0 &&
           json_parse(&other, str_of(text, 3), NULL, &err) == 0,
       "two indexes");
    nodes = other.nodes;
    ok(!json_take(&mine, &other, str_of(text + 4, 3), 2) &&
           !json_take(&mine, &other, str_of(text, 2), 2) &&
           !json_take(&mine, &other, str_of(text, 3), 1) &&
           !json_take(&mine, NULL, str_of(text, 3), 2) && other.nodes == nodes,
       "of another text, a part, too many nodes, none: not taken");
    ok(json_take(&mine, &other, str_of(text, 3), 2) && mine.nodes == nodes &&
           str_is(other.text, "{}"),
       "of that text: swapped");
    json_release(&other);
    ok(!json_take(&mine, &other, (str){ NULL, 0 }, 2) && mine.nodes == nodes,
       "an empty one is of no text");
}

int main(void)
{
    test_accepts_what_rfc_8259_accepts();
    test_refuses_and_says_where();
    test_index_tells_what_stands_where();
    test_integers_within_two_to_the_53();
    test_marks_what_has_no_canonical_form();
    test_unescapes();
    test_limits_on_both_sides();
    test_an_outline_of_what_is_too_deep();
    test_an_index_is_reused();
    test_an_index_is_taken_for_its_own_text_only();
    test_long_strings_cost_no_memory((size_t)64 << 20);
    test_public_suite();
    return tap_done();
}
