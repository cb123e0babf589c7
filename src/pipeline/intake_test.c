/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake.h"

#include <stdlib.h>

#include "base/err.h"
#include "tests/tap.h"

/* Feed `text` in spans of `span` bytes; what went on, and what the frame was. */
static bool feed(struct intake *in, str text, size_t span, struct buf *passed,
                 struct buf *frame, bool *streamed)
{
    struct intake_result r = { .step = INTAKE_MORE };
    struct err err = { 0 };

    buf_reset(passed);
    buf_reset(frame);
    for (str rest = text; rest.n; rest = str_skip(rest, span)) {
        str part = str_first(rest, span);

        if (intake_add(in, part, part.n == rest.n, &r, &err) < 0) {
            printf("# %s\n", err.msg);
            intake_done(in);
            return false;
        }
        if (r.step != INTAKE_MORE)
            buf_add(passed, r.pass);
        /* Only what is behind the window may have gone on. */
        if (r.step == INTAKE_PASS && text.n - rest.n + part.n - passed->n < INTAKE_HOLD)
            return false;
    }
    buf_add(frame, r.frame);
    *streamed = r.streamed;
    intake_done(in);
    return r.step == INTAKE_MESSAGE;
}

static void test_every_byte_goes_on_once(void)
{
    static const size_t sizes[] = { 1,
                                    100,
                                    INTAKE_HOLD - 1,
                                    INTAKE_HOLD,
                                    INTAKE_HOLD + 1,
                                    2 * INTAKE_HOLD,
                                    5 * INTAKE_HOLD + 17 };
    static const size_t spans[] = { 7, 4096, INTAKE_HOLD };
    struct buf passed = { .max = 1 << 20 }, frame = { .max = 1 << 20 };
    char *text = malloc(sizes[COUNT(sizes) - 1]);
    struct intake in;

    for (size_t i = 0; i < sizes[COUNT(sizes) - 1]; i++)
        text[i] = (char)('a' + i * 7 % 26);
    intake_init(&in, "/tmp", (uint64_t)1 << 30);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (size_t j = 0; j < COUNT(spans); j++) {
            str whole = str_of(text, sizes[i]);
            bool streamed = false,
                 good = feed(&in, whole, spans[j], &passed, &frame, &streamed);

            ok(good && str_equal(buf_str(&passed), whole) &&
                   str_equal(buf_str(&frame), whole) &&
                   streamed == (sizes[i] > INTAKE_HOLD),
               "%zu bytes in spans of %zu", sizes[i], spans[j]);
        }
    }
    intake_release(&in);
    buf_release(&passed);
    buf_release(&frame);
    free(text);
}

static void test_limits(void)
{
    struct buf passed = { .max = 1 << 20 }, frame = { .max = 1 << 20 };
    struct intake in;
    bool streamed;

    intake_init(&in, "/tmp", 10);
    ok(feed(&in, STR("0123456789"), 3, &passed, &frame, &streamed),
       "as long as it may be");
    ok(!feed(&in, STR("0123456789a"), 3, &passed, &frame, &streamed), "one byte more");
    intake_release(&in);
    buf_release(&passed);
    buf_release(&frame);
}

int main(void)
{
    test_every_byte_goes_on_once();
    test_limits();
    return tap_done();
}
