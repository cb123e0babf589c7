/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/err.h"
#include "tests/tap.h"

#define MANY 20000

static char things[MANY];

static void test_what_is_put_is_found_and_what_is_taken_is_gone(void)
{
    struct map m = { 0 };
    struct err err = { 0 };
    bool good = true;
    size_t at = 0, seen = 0;

    ok(map_get(&m, 7) == NULL && map_take(&m, 7) == NULL, "an empty map has nothing");
    for (uint64_t i = 0; i < MANY; i++)
        good = good && map_put(&m, i * 64, &things[i], &err) == 0;
    ok(good && m.count == MANY, "all went in");
    for (uint64_t i = 0; i < MANY; i += 3)
        good = good && map_take(&m, i * 64) == &things[i];
    ok(good, "a third is taken, each its own");
    for (uint64_t i = 0; i < MANY; i++)
        good = good && map_get(&m, i * 64) == (i % 3 ? &things[i] : NULL);
    ok(good, "the others are still found, the taken are not");
    while (map_next(&m, &at))
        seen++;
    ok(seen == m.count, "a walk sees each once");
    map_release(&m);
}

static void test_a_key_has_one_value(void)
{
    struct map m = { 0 };
    struct err err = { 0 };

    ok(map_put(&m, 5, &things[1], &err) == 0 && map_put(&m, 5, &things[2], &err) == 0,
       "put twice");
    ok(m.count == 1 && map_get(&m, 5) == &things[2], "the second replaced the first");
    map_release(&m);
}

int main(void)
{
    test_what_is_put_is_found_and_what_is_taken_is_gone();
    test_a_key_has_one_value();
    return tap_done();
}
