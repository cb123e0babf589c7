/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/splice.h"

#include "base/err.h"
#include "tests/tap.h"

/* Elements that are numbers above 9 go. */
static bool is_small(void *ctx, uint32_t node)
{
    const struct json *j = ctx;

    return json_raw(j, node).n == 1;
}

static const struct {
    const char *text, *expected;
    size_t kept;
} rows[] = {
    { "[1,2,3]\n", "[1,2,3]\n", 3 },
    { "[10,2,3]\r\n", "[2,3]\r\n", 2 },
    { "[1,20,3]", "[1,3]", 2 },
    { "[1,2,30]", "[1,2]", 2 },
    { "[10,20,3]", "[3]", 1 },
    { "[1,20,30]", "[1]", 1 },
    { "[10,2,30]", "[2]", 1 },
    { "[10,20,30]", "[]", 0 },
    { "[10]", "[]", 0 },
    { "[]", "[]", 0 },
    { " [ 10 , 2 ,\t3 , 40 ] ", " [ 2 ,\t3 ] ", 2 },
    { "[1 ,20, 3 ,40 ,5]", "[1, 3 ,5]", 3 },
};

static void test_arrays(void)
{
    struct splice s = { 0 };
    struct json j = { 0 };
    struct err err = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        str text = str_from(rows[i].text), out = { 0 };
        size_t kept;

        ok(json_parse(&j, text, NULL, &err) == 0, "row %zu is JSON: %s", i, err.msg);
        splice_begin(&s, text);
        kept = splice_array(&s, &j, JSON_ROOT, is_small, &j);
        ok(splice_end(&s, &out, &err) == 0 && str_is(out, rows[i].expected),
           "row %zu becomes what it should", i);
        ok(kept == rows[i].kept, "%zu are left", kept);
    }
    json_release(&j);
    splice_release(&s);
}

static void test_limit(void)
{
    CLEANUP(buf_release) struct buf big = { .max = SPLICE_MAX + 1 };
    struct splice s = { 0 };
    struct err err = { 0 };
    char *to = buf_room(&big, SPLICE_MAX + 1);
    str out;

    memset(to, 'x', SPLICE_MAX + 1);
    splice_begin(&s, str_of(to, SPLICE_MAX));
    ok(splice_end(&s, &out, &err) == 0 && out.n == SPLICE_MAX, "as large as it may be");
    splice_begin(&s, str_of(to, SPLICE_MAX + 1));
    ok(splice_end(&s, &out, &err) < 0 && err.code == ERR_LIMIT, "one more: %s", err.msg);
    splice_release(&s);
}

static void test_replacing(void)
{
    struct splice s = { 0 };
    struct err err = { 0 };
    str text = STR("one two three"), out = { 0 };

    splice_begin(&s, text);
    splice_replace(&s, str_of(text.p, 3), STR("1"));
    splice_replace(&s, str_of(text.p + 8, 5), STR("3"));
    ok(splice_end(&s, &out, &err) == 0 && str_is(out, "1 two 3"), "two spans");
    splice_begin(&s, text);
    splice_replace(&s, str_of(text.p + 4, 3), STR("2"));
    splice_replace(&s, str_of(text.p, 3), STR("1"));
    ok(splice_end(&s, &out, &err) == 0 && str_is(out, "1 2 three"), "in any order");
    splice_begin(&s, text);
    splice_replace(&s, str_of(text.p + 4, 3), STR("2"));
    splice_replace(&s, str_of(text.p, 8), STR(""));
    ok(splice_end(&s, &out, &err) == 0 && str_is(out, "three"), "one inside another");
    splice_begin(&s, text);
    ok(!splice_is_needed(&s) && splice_end(&s, &out, &err) == 0 && str_equal(out, text),
       "none");
    splice_release(&s);
}

int main(void)
{
    test_arrays();
    test_replacing();
    test_limit();
    return tap_done();
}
