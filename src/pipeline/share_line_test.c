/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/share_line.h"

#include <stdlib.h>

#include "base/attr.h"
#include "tests/tap.h"

/* A line of `n` bytes 'y' between two texts, in spans of a pipe's size. */
static str add(struct share_line *l, str before, size_t n, str after)
{
    static char block[1 << 16];
    str line = { 0 };

    memset(block, 'y', sizeof(block));
    if (share_line_add(l, before, false, &line))
        return STR("too early");
    for (; n; n -= n < sizeof(block) ? n : sizeof(block)) {
        if (share_line_add(l, str_of(block, n < sizeof(block) ? n : sizeof(block)), false,
                           &line))
            return STR("too early");
    }
    return share_line_add(l, after, true, &line) ? line : STR("no line");
}

static void test_limit(void)
{
    struct share_line l = { 0 };
    str before = STR("{\"a\":[{\"id\":1,\"s\":\""),
        after = STR("]\\\"\"}],\"id\":7,\"b\":{}}\n");
    size_t room = LINE_MAX_BYTES - before.n - after.n;
    str line = add(&l, before, room, after);

    ok(!l.too_long && line.n == LINE_MAX_BYTES && str_starts(line, before) &&
           str_ends(line, after),
       "as long as it may be");
    share_line_reset(&l);
    line = add(&l, before, room + 1, after);
    ok(l.too_long && str_is(line, "{\"a\":null,\"id\":7,\"b\":null}\n"),
       "one byte more: its outline");
    share_line_reset(&l);
    line = add(&l, STR("{"), 3, STR("}\n"));
    ok(!l.too_long && str_is(line, "{yyy}\n"), "the next line is whole again");
    share_line_release(&l);
}

static void test_outline_limit(void)
{
    struct share_line l = { 0 };
    str line;

    line = add(&l, STR("[\""), LINE_MAX_BYTES, STR("\"]\n"));
    ok(l.too_long && line.n == 0, "an outline that is too long, too: nothing");
    share_line_reset(&l);
    line = add(&l, STR("{\"a\":[\""), LINE_MAX_BYTES,
               STR("\"],\"b\":\"]}\\\\\",\"id\":[1]}\n"));
    ok(l.too_long && str_is(line, "{\"a\":null,\"b\":\"]}\\\\\",\"id\":null}\n"),
       "brackets in strings are none");
    share_line_reset(&l);
    line = add(&l, STR("}]}"), LINE_MAX_BYTES, STR("\n"));
    ok(l.too_long && line.n == 0, "what is no JSON has none");
    share_line_release(&l);
}

/* The outline alone: a message that is padded between its braces. */
static void test_outline_size(void)
{
    CLEANUP(buf_release) struct buf b = { .max = LINE_OUTLINE_MAX * 2 };
    struct share_line l = { 0 };
    str line = { 0 }, tail = STR("\"}\n");
    size_t fixed = sizeof("{\"a\":null,\"b\":\"") - 1 + tail.n;

    for (size_t more = 0; more < 2; more++) {
        add(&l, STR("{\"a\":[\""), LINE_MAX_BYTES, STR("\"],\"b\":\""));
        buf_reset(&b);
        for (size_t i = fixed; i < LINE_OUTLINE_MAX + more; i++)
            buf_add_char(&b, 'z');
        buf_add(&b, tail);
        ok(share_line_add(&l, buf_str(&b), true, &line) &&
               line.n == (more ? 0 : LINE_OUTLINE_MAX),
           "an outline of %zu bytes", LINE_OUTLINE_MAX + more);
        share_line_reset(&l);
    }
    share_line_release(&l);
}

int main(void)
{
    test_limit();
    test_outline_limit();
    test_outline_size();
    return tap_done();
}
