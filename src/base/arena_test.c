/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>

#include "tests/tap.h"

static void test_memory_is_zeroed_aligned_and_apart(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    unsigned char *p[1000];
    bool zero = true, aligned = true, apart = true;

    arena_init(&a, (size_t)1 << 20);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(p); i++) {
            p[i] = arena_alloc(&a, i);
            if (!p[i]) {
                ok(false, "allocation %zu", i);
                return;
            }
            aligned = aligned && (uintptr_t)p[i] % _Alignof(max_align_t) == 0;
            for (size_t k = 0; k < i; k++)
                zero = zero && p[i][k] == 0;
            memset(p[i], (int)(i % 255 + 1), i);
        }
        for (size_t i = 0; i < COUNT(p); i++) {
            for (size_t k = 0; k < i; k++)
                apart = apart && p[i][k] == i % 255 + 1;
        }
        arena_reset(&a);
    }
    ok(zero, "memory is zeroed, after a reset too");
    ok(aligned, "memory is aligned");
    ok(apart, "allocations do not touch");
}

static void test_the_limit(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };

    arena_init(&a, 1024);
    ok(arena_alloc(&a, 1024) != NULL, "an arena holds its limit");
    ok(!arena_alloc(&a, 1) && a.failed, "and not a byte more");
    arena_reset(&a);
    ok(!a.failed && arena_alloc(&a, 1) != NULL, "a reset heals it");
    ok(!arena_alloc(&a, 1025) && !arena_alloc(&a, 1), "once failed it stays so");
    arena_reset(&a);
    ok(!arena_alloc(&a, SIZE_MAX) && a.failed, "a size that wraps is refused");
}

static void test_odds_and_ends(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct point {
        int x, y;
    } * point;
    str copy;

    ok(!arena_alloc(&a, 1) && a.failed, "a zeroed arena holds nothing");
    arena_init(&a, 4096);
    ok(arena_alloc(&a, 0) != NULL && !a.failed, "no bytes have an address");
    copy = arena_dup(&a, STR("a\0b"));
    ok(str_equal(copy, STR("a\0b")), "a copy is the same");
    copy = arena_dup(&a, (str){ NULL, 0 });
    ok(copy.p && copy.n == 0, "the copy of nothing is empty and not NULL");
    point = arena_new(&a, struct point);
    ok(point && point->x == 0 && point->y == 0, "an object is zeroed");
    arena_release(&a);
    arena_release(&a);
    ok(arena_alloc(&a, 1) != NULL, "a released arena can be used again");
    arena_reset(&a);
    arena_init(&a, 1);
    copy = arena_dup(&a, STR("too long for that"));
    ok(!copy.p && copy.n == 0 && a.failed, "a copy that does not fit is {NULL, 0}");
}

int main(void)
{
    test_memory_is_zeroed_aligned_and_apart();
    test_the_limit();
    test_odds_and_ends();
    return tap_done();
}
