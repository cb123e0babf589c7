/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "tests/tap.h"

static void test_equal_but_for_case(void)
{
    const struct {
        str a, b;
        bool equal;
    } rows[] = {
        { STR(""), STR(""), true },
        { { NULL, 0 }, STR(""), true },
        { STR("Content-Length"), STR("content-LENGTH"), true },
        { STR("az"), STR("AZ"), true },
        { STR("a"), STR("ab"), false },
        { STR("a"), STR("b"), false },
        { STR("@"), STR("`"), false }, /* the neighbours of the letters are not letters */
        { STR("["), STR("{"), false },
        { STR("a\0b"), STR("A\0B"), true },
        { STR("a\0b"), STR("a\0c"), false },
        { STR("\xc3\xa9"), STR("\xc3\x89"), false }, /* ASCII only */
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(str_equal_nocase(rows[i].a, rows[i].b) == rows[i].equal &&
               str_equal_nocase(rows[i].b, rows[i].a) == rows[i].equal,
           "row %zu is %s", i, rows[i].equal ? "equal" : "not equal");
}

static void test_put_copies_exactly(void)
{
    const char from[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    int wrong = 0;

    for (size_t n = 0; n <= 40; n++) {
        char to[42];

        memset(to, '#', sizeof(to));
        wrong += str_put(to + 1, str_of(from, n)) != to + 1 + n;
        wrong += to[0] != '#' || memcmp(to + 1, from, n) != 0;
        for (size_t i = n + 1; i < sizeof(to); i++)
            wrong += to[i] != '#';
    }
    ok(wrong == 0, "as many bytes as there are, and no other");
}

int main(void)
{
    test_put_copies_exactly();
    test_equal_but_for_case();
    return tap_done();
}
