/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the tables do, the answer is that of trying one name after the other. */
#include "policy/match.h"

#include <stdio.h>
#include <stdlib.h>

#include "policy/glob.h"
#include "tests/tap.h"

static size_t slowly(const str *names, size_t count, str name, size_t from)
{
    for (size_t i = from; i < count; i++) {
        if (glob_match(names[i], name))
            return i;
    }
    return MATCH_NONE;
}

static void test_order(void)
{
    const str names[] = { STR("b*"),  STR("abc"), STR("*c"), STR("a*"),
                          STR("abc"), STR("*"),   STR("b*"), STR("ab") };
    static const struct {
        const char *name;
        size_t from, want;
    } cases[] = {
        { "abc", 0, 1 }, { "abc", 2, 2 }, { "abc", 3, 3 },
        { "abc", 4, 4 }, { "abc", 5, 5 }, { "abc", 6, MATCH_NONE },
        { "ab", 0, 3 },  { "ab", 6, 7 },  { "b", 0, 0 },
        { "b", 1, 5 },   { "b", 6, 6 },   { "", 0, 5 },
        { "zc", 0, 2 },  { "z", 0, 5 },
    };
    struct arena arena;
    struct match m;

    arena_init(&arena, (size_t)1 << 20);
    match_build(&m, names, COUNT(names), &arena);
    for (size_t i = 0; i < COUNT(cases); i++)
        ok(match_find(&m, str_from(cases[i].name), cases[i].from) == cases[i].want,
           "'%s' from %zu", cases[i].name, cases[i].from);
    arena_release(&arena);
}

static void test_empty(void)
{
    struct match m = { 0 };
    struct arena arena;

    ok(match_find(&m, STR("x"), 0) == MATCH_NONE, "zero matches nothing");
    arena_init(&arena, 1 << 16);
    match_build(&m, NULL, 0, &arena);
    ok(match_find(&m, STR("x"), 0) == MATCH_NONE, "neither does an empty list");
    arena_release(&arena);
    arena_init(&arena, 64);
    match_build(&m, (str[]){ STR("x") }, 1, &arena);
    ok(arena.failed, "too little memory shows in the arena");
    arena_release(&arena);
}

static size_t random_word(char *out, unsigned *seed, bool wild)
{
    static const char letters[] = "aabbc_*?[";
    size_t n = 1 + (size_t)rand_r(seed) % 6, used = 0;

    for (size_t i = 0; i < n; i++) {
        char c = letters[(size_t)rand_r(seed) % (wild ? 9 : 6)];

        if (c == '[') {
            memcpy(out + used, "[ab]", 4);
            used += 4;
        } else {
            out[used++] = c;
        }
    }
    return used;
}

static void test_like_one_by_one(void)
{
    static char texts[300][32];
    str names[300];
    unsigned seed = 1, differences = 0;
    struct arena arena;
    struct match m;
    char name[32];

    arena_init(&arena, (size_t)1 << 22);
    for (size_t i = 0; i < COUNT(names); i++)
        names[i] = str_of(texts[i], random_word(texts[i], &seed, i % 3 != 0));
    for (size_t count = 0; count <= COUNT(names); count += 30) {
        match_build(&m, names, count, &arena);
        for (int k = 0; k < 2000; k++) {
            str n = str_of(name, random_word(name, &seed, false));
            size_t from = (size_t)rand_r(&seed) % (count + 1);

            differences += match_find(&m, n, from) != slowly(names, count, n, from);
        }
    }
    ok(differences == 0, "22,000 random names: the same as one by one (%u differ)",
       differences);
    arena_release(&arena);
}

int main(void)
{
    test_order();
    test_empty();
    test_like_one_by_one();
    return tap_done();
}
