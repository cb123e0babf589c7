/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdlib.h>

#include "base/err.h"
#include "tests/tap.h"

static void test_adding(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct sink s = buf_sink(&b);

    ok(str_is(str_from(buf_cstr(&b)), ""), "an empty buffer is an empty string");
    buf_add(&b, STR("a\0b"));
    buf_add(&b, (str){ NULL, 0 });
    buf_add_char(&b, 'c');
    buf_add_u64(&b, UINT64_MAX);
    buf_add_i64(&b, INT64_MIN);
    buf_add_i64(&b, 0);
    buf_printf(&b, "[%s]", "x");
    sink_write(&s, STR("!"));
    ok(str_equal(buf_str(&b), STR("a\0bc18446744073709551615-92233720368547758080[x]!")),
       "everything that was added is there");
    ok(buf_cstr(&b)[b.n] == '\0', "and a NUL behind it");
    buf_reset(&b);
    ok(b.n == 0 && b.cap > 0, "reset keeps the memory");
    buf_release(&b);
    buf_release(&b);
    ok(!b.p && !b.failed, "release twice is fine");
}

static void test_the_maximum(void)
{
    static const size_t maxima[] = { 1, 63, 64, 65, 1000 };

    for (size_t i = 0; i < COUNT(maxima); i++) {
        CLEANUP(buf_release) struct buf b = { .max = maxima[i] };
        struct err err = { 0 };

        for (size_t n = 0; n < maxima[i]; n++)
            buf_add_char(&b, 'x');
        ok(!b.failed && b.n == maxima[i] && strlen(buf_cstr(&b)) == maxima[i] &&
               buf_check(&b, "it", &err) == 0 && err.code == ERR_NONE,
           "%zu bytes fit a maximum of %zu", maxima[i], maxima[i]);
        buf_add_char(&b, 'x');
        ok(b.failed && b.n == maxima[i] && buf_check(&b, "it", &err) < 0 &&
               err.code == ERR_LIMIT,
           "one more does not: %s", err.msg);
        buf_add(&b, STR(""));
        buf_printf(&b, "%d", 1);
        ok(b.n == maxima[i] && !buf_room(&b, 0) && str_is(str_from(buf_cstr(&b)), ""),
           "a failed buffer stays as it is");
        buf_reset(&b);
        buf_add_char(&b, 'y');
        ok(str_is(buf_str(&b), "y"), "until it is reset");
    }
}

static bool malloc_works(size_t n)
{
    void *p = malloc(n);

    free(p);
    return p != NULL;
}

static void test_the_default_maximum(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    CLEANUP(buf_release) struct buf large = { 0 };
    char *room = buf_room(&b, BUF_MAX_DEFAULT);

    ok(room != NULL, "a zeroed buffer holds BUF_MAX_DEFAULT");
    ok(!buf_room(&b, BUF_MAX_DEFAULT + 1) && b.failed, "and not a byte more");
    buf_init(&large, SIZE_MAX);
    buf_add(&large, STR("x"));
    ok(str_is(buf_str(&large), "x") && !buf_room(&large, SIZE_MAX) && large.failed,
       "a maximum beyond all memory does not wrap");
    buf_release(&large);
    ok(!buf_room(&large, BUF_MAX + 1) && large.failed, "BUF_MAX is the most there is");
    buf_reset(&large);
    if (malloc_works(BUF_MAX))
        ok(buf_room(&large, BUF_MAX) != NULL, "and that much there is");
    else
        tap_skip("and that much there is", "this machine has not so much memory");
}

static void test_growth(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    bool same = true;

    for (unsigned i = 0; i < 100000; i++)
        buf_add_char(&b, (char)('a' + i % 26));
    for (unsigned i = 0; i < 100000; i++)
        same = same && b.p[i] == (char)('a' + i % 26);
    ok(same && b.n == 100000, "growing keeps what was there");
}

int main(void)
{
    test_adding();
    test_the_maximum();
    test_the_default_maximum();
    test_growth();
    return tap_done();
}
