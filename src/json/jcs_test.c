/* SPDX-License-Identifier: Apache-2.0 */
#include "json/jcs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/guard.h"
#include "tests/tap.h"

#define PUBLIC  "../shared/testdata/jcs"
#define VECTORS "../shared/testdata/assay-vectors/jcs_vectors.json"

/* Computed by Node: names sorted by Array.prototype.sort(), the rest by JSON.stringify().
 */
static const struct {
    const char *text, *canonical;
} cases[] = {
    { "{\"\\r\":2,\"::\":78}", "{\"\\r\":2,\"::\":78}" },
    { " { \"b\" : [ 1.0 , 2e0 ] , \"a\" : { } } ", "{\"a\":{},\"b\":[1,2]}" },
    { "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,\"\\u00f6\":7}",
      "{\"\\r\":2,\"1\":4,\"\302\200\":6,\"\303\266\":7,\"\342\202\254\":1,\"\360\237\230\200\":5,\"\357\254\263\":3}" },
    { "{\"\357\277\277\":1,\"\360\220\200\200\":2,\"\356\200\200\":3,\"\355\237\277\":4,\"z\":5}",
      "{\"z\":5,\"\355\237\277\":4,\"\360\220\200\200\":2,\"\356\200\200\":3,\"\357\277\277\":1}" },
    { "{\"\\uffff\":1,\"\360\220\200\200\":2,\"\\ue000\":3,\"\\ud7ff\":4}",
      "{\"\355\237\277\":4,\"\360\220\200\200\":2,\"\356\200\200\":3,\"\357\277\277\":1}" },
    { "[\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\u0020\\\"\\\\\\/\\u007f\\u0080\\u2028\\u00e9\"]",
      "[\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\177\302\200\342\200\250\303\251\"]" },
    { "[\"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0022\\u005c\\u002f\"]",
      "[\"\\b\\t\\n\\f\\r\\\"\\\\/\"]" },
    { "{\"aaaaaaaab\":1,\"aaaaaaaaa\":2,\"aaaaaaaa\":3,\"aaaaaaaa\\u0000\":4,\"aaaaaaa\":5,\"\":6}",
      "{\"\":6,\"aaaaaaa\":5,\"aaaaaaaa\":3,\"aaaaaaaa\\u0000\":4,\"aaaaaaaaa\":2,\"aaaaaaaab\":1}" },
    { "{\"a\\u0000\":1,\"a\":2,\"a\\u0001\":3}",
      "{\"a\":2,\"a\\u0000\":1,\"a\\u0001\":3}" },
    { "[-0,0.0,1e21,1e-7,123456789012345678901234567890]",
      "[0,0,1e+21,1e-7,1.2345678901234568e+29]" },
    { "[[[]],[{}],null,true,false]", "[[[]],[{}],null,true,false]" },
    { "\"\\ud83d\\ude00 \\u65e5\346\227\245\"",
      "\"\360\237\230\200 \346\227\245\346\227\245\"" },
    { "{\"17\":1,\"16\":1,\"15\":1,\"14\":1,\"13\":1,\"12\":1,\"11\":1,\"10\":1,\"9\":1,\"8\":1,\"7\":1,\"6\":1,\"5\":1,\"4\":1,\"3\":1,\"2\":1,\"1\":1,\"0\":1}",
      "{\"0\":1,\"1\":1,\"10\":1,\"11\":1,\"12\":1,\"13\":1,\"14\":1,\"15\":1,\"16\":1,\"17\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1}" },
    { "{\"x\":{\"d\":1,\"c\":{\"b\":1,\"a\":2}},\"w\":[{\"b\":1,\"a\":2},3]}",
      "{\"w\":[{\"a\":2,\"b\":1},3],\"x\":{\"c\":{\"a\":2,\"b\":1},\"d\":1}}" },
};

/* The canonical form of a text; the reason in `err` when there is none. */
static int canonical(struct buf *out, str text, enum jcs_form form, struct err *err)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(guard_release) struct guard g = { 0 };
    struct sink sink = buf_sink(out);

    guard_init(&g, text);
    buf_reset(out);
    if (json_parse(&j, g.bytes, NULL, err) < 0)
        return -1;
    return jcs_write(&j, JSON_ROOT, form, &sink, err);
}

static bool is_canonical(str text)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };

    return json_parse(&j, text, NULL, &err) == 0 && jcs_is_canonical(&j);
}

static void test_writes_as_node(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP(buf_release) struct buf first = { 0 }, second = { 0 };
        struct err err = { 0 };

        ok(canonical(&first, str_from(cases[i].text), JCS_RFC8785, &err) == 0 &&
               str_is(buf_str(&first), cases[i].canonical),
           "row %zu is canonical: %s", i, err.msg);
        ok(canonical(&second, buf_str(&first), JCS_RFC8785, &err) == 0 &&
               str_equal(buf_str(&first), buf_str(&second)),
           "row %zu stays as it is", i);
        ok(is_canonical(buf_str(&first)), "row %zu is seen to be canonical", i);
        ok(is_canonical(str_from(cases[i].text)) ==
               (strcmp(cases[i].text, cases[i].canonical) == 0),
           "row %zu was seen to be or not to be", i);
    }
}

static void test_refuses_with_the_reason(void)
{
    static const struct {
        const char *text, *said;
    } rows[] = {
        { "{\"x\":1,\"y\":2,\"x\":3}", "duplicate member 'x' at byte 13" },
        { "[{\"x\":1,\"\\u0078\":3}]", "duplicate member" },
        { "[\"a\\ud800\"]", "a lone surrogate at byte 3" },
        { "{\"\\udc00\":1}", "a lone surrogate at byte 2" },
        { "[1,1e400]", "the number at byte 3 is beyond a double" },
        { "{\"a\":{\"b\":-1e400}}", "the number at byte 10 is beyond a double" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf out = { 0 };
        struct err err = { 0 };

        ok(canonical(&out, str_from(rows[i].text), JCS_RFC8785, &err) < 0 &&
               err.code == ERR_FORMAT && strstr(err.msg, rows[i].said),
           "row %zu: %s", i, err.msg);
    }
}

static void test_drops_members_of_the_root_only(void)
{
    static const char *const drop[] = { "sig", "hash" };
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct sink sink = buf_sink(&out);
    struct err err = { 0 };

    ok(json_parse(&j, STR("{\"s\\u0069g\":1,\"b\":{\"sig\":2},\"hash\":[],\"a\":0}"),
                  NULL, &err) == 0 &&
           jcs_write_without(&j, JSON_ROOT, drop, 2, JCS_RFC8785, &sink, &err) == 0 &&
           str_is(buf_str(&out), "{\"a\":0,\"b\":{\"sig\":2}}"),
       "two are dropped, the nested one stays");
    buf_reset(&out);
    ok(jcs_write_without(&j, JSON_ROOT, drop, 0, JCS_RFC8785, &sink, &err) == 0 &&
           str_is(buf_str(&out), "{\"a\":0,\"b\":{\"sig\":2},\"hash\":[],\"sig\":1}"),
       "nothing is dropped");
    buf_reset(&out);
    ok(json_parse(&j, STR("{\"sig\":1,\"sig\":2}"), NULL, &err) == 0 &&
           jcs_write_without(&j, JSON_ROOT, drop, 2, JCS_RFC8785, &sink, &err) < 0,
       "a repeated name is refused even where it would be dropped");
}

static void test_composes_strings(void)
{
    CLEANUP(buf_release) struct buf out = { 0 };

    jcs_add_string(&out, STR("plain, long enough for a whole block \xe2\x82\xac"));
    jcs_add_string(&out, STR(""));
    jcs_add_string(&out, STR("\0\x01\b\t\n\v\f\r\x1f \"\\/\x7f\xf0\x9f\x98\x80"));
    ok(str_is(
           buf_str(&out),
           "\"plain, long enough for a whole block \xe2\x82\xac\"\"\""
           "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\x7f\xf0\x9f\x98\x80\""),
       "with the escapes of RFC 8785 and no other");
}

static void test_names_sort_by_utf16(void)
{
    /* ascending, as Node sorts them */
    static const char *const names[] = {
        "",
        "\r",
        "1",
        "a",
        "aa",
        "ab",
        "b",
        "\xc2\x80",
        "\xc3\xb6",
        "\xe2\x82\xac",
        "\xed\x9f\xbf",
        "\xf0\x90\x80\x80",
        "\xf0\x9f\x98\x80",
        "\xf4\x8f\xbf\xbf",
        "\xee\x80\x80",
        "\xef\xac\xb3",
        "\xef\xbf\xbf",
    };
    int wrong = 0;

    for (size_t i = 0; i < COUNT(names); i++) {
        for (size_t k = 0; k < COUNT(names); k++) {
            int c = jcs_compare_names(str_from(names[i]), str_from(names[k]));

            wrong += (c > 0) - (c < 0) != (i > k) - (i < k);
        }
    }
    ok(wrong == 0, "every pair of %zu names", COUNT(names));
}

struct counter {
    size_t calls;
    size_t bytes;
};

static void count_write(void *ctx, str bytes)
{
    struct counter *c = ctx;

    c->calls++;
    c->bytes += bytes.n;
}

static void test_a_sink_sees_chunks(void)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 };
    struct counter counter = { 0 };
    struct sink sink = { count_write, &counter };
    struct err err = { 0 };

    buf_add_char(&text, '[');
    for (int i = 0; i < 40000; i++)
        buf_add(&text, STR("1,"));
    buf_add(&text, STR("1]"));
    ok(json_parse(&j, buf_str(&text), NULL, &err) == 0 &&
           jcs_write(&j, JSON_ROOT, JCS_RFC8785, &sink, &err) == 0 &&
           counter.bytes == text.n && counter.calls <= text.n / 2000,
       "%zu writes for %zu bytes", counter.calls, counter.bytes);
}

/* 200,000 members in reverse order with long common beginnings, half of them escaped. */
static void test_many_members(void)
{
    CLEANUP(buf_release) struct buf text = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf want = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf out = { .max = (size_t)64 << 20 };
    struct err err = { 0 };

    buf_add_char(&text, '{');
    buf_add_char(&want, '{');
    for (int i = 0; i < 200000; i++) {
        buf_printf(&text, "%s\"the same beginning %s%06d\":%d", i ? "," : "",
                   i & 1 ? "\\u0041" : "A", 199999 - i, 199999 - i);
        buf_printf(&want, "%s\"the same beginning A%06d\":%d", i ? "," : "", i, i);
    }
    buf_add_char(&text, '}');
    buf_add_char(&want, '}');
    ok(canonical(&out, buf_str(&text), JCS_RFC8785, &err) == 0 &&
           str_equal(buf_str(&out), buf_str(&want)),
       "200000 members are sorted");
}

static void test_deep_texts(void)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 }, out = { 0 };
    struct json_limits limits = { .max_depth = 50000 };
    struct sink sink = buf_sink(&out);
    struct err err = { 0 };

    for (int i = 0; i < 50000; i++)
        buf_add(&text, i & 1 ? STR("{\"a\":") : STR("["));
    buf_add_char(&text, '1');
    for (int i = 49999; i >= 0; i--)
        buf_add_char(&text, i & 1 ? '}' : ']');
    ok(json_parse(&j, buf_str(&text), &limits, &err) == 0 &&
           jcs_write(&j, JSON_ROOT, JCS_RFC8785, &sink, &err) == 0 &&
           str_equal(buf_str(&out), buf_str(&text)),
       "50000 levels");
}

static void public_file(const char *name)
{
    CLEANUP(buf_release) struct buf input = { 0 }, want = { 0 }, out = { 0 };
    char path[FILE_PATH_MAX];
    struct err err = { 0 };

    if (path_join(path, PUBLIC "/input", name, &err) < 0 ||
        file_read(path, &input, &err) < 0 ||
        path_join(path, PUBLIC "/output", name, &err) < 0 ||
        file_read(path, &want, &err) < 0) {
        ok(false, "%s: %s", name, err.msg);
        return;
    }
    ok(canonical(&out, buf_str(&input), JCS_RFC8785, &err) == 0 &&
           str_equal(buf_str(&out), buf_str(&want)),
       "%s as published", name);
}

static void test_public_vectors(void)
{
    DIR *dir = opendir(PUBLIC "/input");
    struct dirent *entry;
    int before = tap_count;

    if (!dir) {
        tap_skip("the published vectors of RFC 8785", "../shared/testdata is not here");
        return;
    }
    while ((entry = readdir(dir))) {
        if (str_ends(str_from(entry->d_name), STR(".json")))
            public_file(entry->d_name);
    }
    closedir(dir);
    ok(tap_count - before >= 6, "%d published files", tap_count - before);
}

static void pack_vector(const struct json *j, uint32_t vector)
{
    CLEANUP(buf_release) struct buf out = { 0 }, want = { 0 };
    struct sink sink = buf_sink(&out);
    struct err err = { 0 };
    str id = json_raw(j, json_member(j, vector, STR("id")));

    json_unescape(j, json_member(j, vector, STR("expected_canonical_utf8")), &want);
    ok(jcs_write(j, json_member(j, vector, STR("input")), JCS_PACK, &sink, &err) == 0 &&
           str_equal(buf_str(&out), buf_str(&want)),
       STR_FMT " has the expected bytes", STR_ARG(id));
}

static void test_pack_vectors(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    uint32_t vectors;

    if (file_read(VECTORS, &text, &err) < 0) {
        tap_skip("the vectors of the public tool", "../shared/testdata is not here");
        return;
    }
    if (!ok(json_parse(&j, buf_str(&text), NULL, &err) == 0, "read the vectors"))
        return;
    vectors = json_member(&j, JSON_ROOT, STR("vectors"));
    json_each (&j, vectors, at)
        pack_vector(&j, at);
    ok(json_count(&j, vectors) == 16, "all of them");
}

int main(void)
{
    test_writes_as_node();
    test_refuses_with_the_reason();
    test_drops_members_of_the_root_only();
    test_composes_strings();
    test_names_sort_by_utf16();
    test_a_sink_sees_chunks();
    test_many_members();
    test_deep_texts();
    test_public_vectors();
    test_pack_vectors();
    return tap_done();
}
