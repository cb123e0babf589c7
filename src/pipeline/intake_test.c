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

/* --- whole messages --- */

static char chunk[INTAKE_HOLD];

struct fed {
    bool failed;     /* with ERR_LIMIT */
    size_t first;    /* bytes that had come when the first ones passed; 0: at the end */
    size_t passed;   /* bytes, the last ones included */
    bool in_order;   /* and they are those that came */
    bool frame_good; /* all of it */
    bool streamed;
};

/* Does `bytes` stand at `at` of what feed_chunks() gives? */
static bool stands_at(str bytes, size_t at)
{
    while (bytes.n) {
        size_t from = at % sizeof(chunk);
        str part = str_first(bytes, sizeof(chunk) - from);

        if (memcmp(part.p, chunk + from, part.n) != 0)
            return false;
        bytes = str_skip(bytes, part.n);
        at += part.n;
    }
    return true;
}

static struct fed feed_chunks(struct intake *in, size_t size)
{
    struct fed f = { .in_order = true };
    struct intake_result r = { .step = INTAKE_MORE };
    struct err err = { 0 };

    for (size_t done = 0, n; done < size && !f.failed; done += n) {
        n = size - done < sizeof(chunk) ? size - done : sizeof(chunk);
        f.failed = intake_add(in, str_of(chunk, n), done + n == size, &r, &err) < 0;
        if (f.failed || r.step == INTAKE_MORE)
            continue;
        if (r.step == INTAKE_PASS && !f.first)
            f.first = done + n;
        f.in_order = f.in_order && stands_at(r.pass, f.passed);
        f.passed += r.pass.n;
    }
    f.failed = f.failed && err.code == ERR_LIMIT;
    f.frame_good = !f.failed && r.frame.n == size && stands_at(r.frame, 0);
    f.streamed = r.streamed;
    intake_done(in);
    return f;
}

static void test_what_is_to_be_judged_passes_whole(void)
{
    static const struct {
        size_t size;
        bool yields, failed, streamed;
    } cases[] = {
        { INTAKE_HOLD, false, false, false },
        { INTAKE_HOLD + 1, false, false, false },
        { 5 * INTAKE_HOLD + 17, false, false, false },
        { INTAKE_WHOLE, false, false, false },
        { INTAKE_WHOLE + 1, false, true, false },
        { INTAKE_WHOLE, true, false, false },
        { INTAKE_WHOLE + 1, true, false, false }, /* that byte is its end */
        { INTAKE_WHOLE + INTAKE_HOLD + 1, true, false, true },
        { INTAKE_WHOLE + 9 * INTAKE_HOLD, true, false, true },
    };
    struct intake in;

    for (size_t i = 0; i < sizeof(chunk); i++)
        chunk[i] = (char)('a' + i * 7 % 26);
    intake_init(&in, "/tmp", (uint64_t)1 << 30);
    in.whole = true;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fed f;

        in.yields = cases[i].yields;
        f = feed_chunks(&in, cases[i].size);
        ok(f.failed == cases[i].failed && f.in_order &&
               f.passed == (f.failed ? 0 : cases[i].size) && (f.failed || f.frame_good) &&
               f.streamed == cases[i].streamed && (f.first > INTAKE_WHOLE) == f.streamed,
           "%zu bytes that must be whole%s: %zu passed, %zu first", cases[i].size,
           cases[i].yields ? ", if they can" : "", f.passed, f.first);
    }
    intake_release(&in);
}

/* It is decided when the message becomes long. */
static void test_a_message_that_passes_already_passes_on(void)
{
    struct intake_result r;
    struct intake in;
    struct err err = { 0 };
    str span = str_of(chunk, sizeof(chunk));

    intake_init(&in, "/tmp", (uint64_t)1 << 30);
    ok(intake_add(&in, span, false, &r, &err) == 0 && r.step == INTAKE_MORE &&
           intake_add(&in, span, false, &r, &err) == 0 && r.step == INTAKE_PASS,
       "a long message passes");
    in.whole = true;
    ok(intake_add(&in, span, false, &r, &err) == 0 && r.step == INTAKE_PASS &&
           intake_add(&in, span, true, &r, &err) == 0 && r.streamed,
       "to its end");
    intake_done(&in);
    ok(intake_add(&in, span, false, &r, &err) == 0 && r.step == INTAKE_MORE &&
           intake_add(&in, span, false, &r, &err) == 0 && r.step == INTAKE_MORE,
       "the next one does not");
    in.whole = false;
    ok(intake_add(&in, span, true, &r, &err) == 0 && r.step == INTAKE_MESSAGE &&
           !r.streamed && r.pass.n == 3 * sizeof(chunk),
       "before its end");
    intake_release(&in);
}

int main(void)
{
    test_what_is_to_be_judged_passes_whole();
    test_a_message_that_passes_already_passes_on();
    test_every_byte_goes_on_once();
    test_limits();
    return tap_done();
}
