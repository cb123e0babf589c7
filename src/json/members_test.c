/* SPDX-License-Identifier: Apache-2.0 */
#include "json/members.h"

#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "tests/tap.h"
#include "json/text.h"

/* {"<prefix>0":0,…}; then one more member called `last`. */
static void object(struct buf *b, const char *prefix, size_t count, const char *last)
{
    buf_reset(b);
    buf_add_char(b, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(b, "\"%s%zu\":0,", prefix, i);
    buf_printf(b, "\"%s\":0}", last);
}

static int is_marked(const struct buf *b)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };

    if (json_parse(&j, buf_str(b), NULL, &err) < 0) {
        printf("# %s\n", err.msg);
        return -1;
    }
    return (j.nodes[0].flags & JSON_DUPLICATE) != 0;
}

static void test_finds_a_repeated_name_at_any_size(void)
{
    static const size_t sizes[] = { 1,    2,     MEMBERS_PAIRWISE - 1, MEMBERS_PAIRWISE,
                                    1000, 300000 };
    CLEANUP(buf_release) struct buf b = { .max = (size_t)64 << 20 };

    for (size_t i = 0; i < COUNT(sizes); i++) {
        object(&b, "name", sizes[i], "name0");
        ok(is_marked(&b) == 1, "%zu members and the first again", sizes[i]);
        object(&b, "name", sizes[i], "n\\u0061me0");
        ok(is_marked(&b) == 1, "%zu members and the first again, escaped", sizes[i]);
        object(&b, "name", sizes[i], "name");
        ok(is_marked(&b) == 0, "%zu members and one like them", sizes[i]);
        object(&b, "\\u006eame\\/", sizes[i], "name/0");
        ok(is_marked(&b) == 1, "%zu escaped members and the first again, plain",
           sizes[i]);
        object(&b, "\\u006eame", sizes[i], "name/0");
        ok(is_marked(&b) == 0, "%zu escaped members, none twice", sizes[i]);
    }
}

/* mix(h, w) is a bijection of w: for any first word there is a second that leads back. */
static uint64_t second_word(uint64_t first, uint64_t target)
{
    uint64_t h = first * 0x9e3779b97f4a7c15u;

    h ^= h >> 32;
    return h ^ target;
}

static bool is_plain(uint64_t w)
{
    for (int i = 0; i < 64; i += 8) {
        unsigned c = (unsigned)(w >> i & 0xff);

        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
            return false;
    }
    return true;
}

/* Names of 16 bytes with one and the same hash: what an attacker would send. */
static size_t collisions(struct buf *b, size_t count)
{
    uint64_t state = 1;
    size_t found = 0;

    buf_reset(b);
    buf_add_char(b, '{');
    for (size_t tries = 0; found < count && tries < 400000000; tries++) {
        uint64_t first = 0, second;

        state = state * 6364136223846793005u + 1442695040888963407u;
        for (int i = 0; i < 64; i += 8)
            first |= (uint64_t)('@' + (state >> 8 >> i * 6 / 8 & 31)) << i;
        second = second_word(first, 0x4142434445464748u ^ 0x0101010101010101u);
        if (!is_plain(second) || !is_plain(first))
            continue;
        buf_printf(b, "%s\"", found++ ? "," : "");
        buf_add(b, str_of(&first, 8));
        buf_add(b, str_of(&second, 8));
        buf_add(b, STR("\":0"));
    }
    buf_add_char(b, '}');
    return found;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_made_up_collisions_are_not_quadratic(void)
{
    CLEANUP(buf_release) struct buf b = { .max = (size_t)64 << 20 };
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    size_t found = collisions(&b, 20000);
    uint32_t hash;
    bool same = true;
    double start;

    ok(json_parse(&j, buf_str(&b), NULL, &err) == 0 && found > 1000,
       "%zu names made to collide: %s", found, err.msg);
    if (j.count < 2)
        return;
    hash = text_hash(text_of(&j, 1));
    json_each (&j, JSON_ROOT, at)
        same &= text_hash(text_of(&j, at)) == hash;
    ok(same, "they do collide");
    start = seconds();
    ok(is_marked(&b) == 0, "none is there twice");
    ok(seconds() - start < 1.0, "and it takes no time to find out");
}

int main(void)
{
    test_finds_a_repeated_name_at_any_size();
    test_made_up_collisions_are_not_quadratic();
    return tap_done();
}
