/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "tests/tap.h"

/* Both ways; numbers by Python's datetime. */
static const struct {
    int64_t ms;
    const char *text, *stamp;
} times[] = {
    { 0, "1970-01-01T00:00:00.000Z", "19700101T000000Z" },
    { -1, "1969-12-31T23:59:59.999Z", "19691231T235959Z" },
    { 1, "1970-01-01T00:00:00.001Z", "19700101T000000Z" },
    { 1773574200000, "2026-03-15T11:30:00.000Z", "20260315T113000Z" },
    { 951782400123, "2000-02-29T00:00:00.123Z", "20000229T000000Z" },
    { 4107542399999, "2100-02-28T23:59:59.999Z", "21000228T235959Z" },
    { 4107542400000, "2100-03-01T00:00:00.000Z", "21000301T000000Z" },
    { -62135596800000, "0001-01-01T00:00:00.000Z", "00010101T000000Z" },
    { -62167219200000, "0000-01-01T00:00:00.000Z", "00000101T000000Z" },
    { 253402300799999, "9999-12-31T23:59:59.999Z", "99991231T235959Z" },
};

static void test_round_trip(void)
{
    for (size_t i = 0; i < COUNT(times); i++) {
        char text[CLOCK_TEXT], stamp[CLOCK_STAMP];
        int64_t ms = 77;

        clock_format(text, times[i].ms);
        clock_stamp(stamp, times[i].ms);
        ok(str_is(str_of(text, sizeof(text)), times[i].text) &&
               str_is(str_of(stamp, sizeof(stamp)), times[i].stamp),
           "%lld is written", (long long)times[i].ms);
        ok(clock_parse(&ms, str_from(times[i].text)) && ms == times[i].ms, "and read");
    }
}

static void test_other_spellings(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        { "2026-03-15T11:30:00Z", 1773574200000 },
        { "2026-03-15T12:30:00+01:00", 1773574200000 },
        { "2026-03-15T05:45:00-05:45", 1773574200000 },
        { "2026-03-15T11:30:00-00:00", 1773574200000 },
        { "2026-03-15T11:30:00.5Z", 1773574200500 },
        { "2026-03-15T11:30:00.0009999999999999Z", 1773574200000 },
        { "2026-03-15T11:30:00.123456+00:00", 1773574200123 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = 77;

        ok(clock_parse(&ms, str_from(rows[i].text)) && ms == rows[i].ms, "%s",
           rows[i].text);
    }
}

static void test_what_is_no_time(void)
{
    static const char *const rows[] = {
        "",
        "2026-03-15",
        "2026-03-15T11:30Z",
        "2026-03-15T11:30:00",
        "2026-03-15t11:30:00Z",
        "2026-03-15T11:30:00z",
        "2026-03-15 11:30:00Z",
        "2026-03-15T11:30:00.Z",
        "2026-03-15T11:30:00,5Z",
        "2026-03-15T11:30:00Z ",
        "2026-03-15T11:30:00+0100",
        "2026-03-15T11:30:00+24:00",
        "2026-03-15T11:30:00+01:60",
        "2026-03-15T24:00:00Z",
        "2026-03-15T11:60:00Z",
        "2026-03-15T11:30:60Z",
        "2026-00-15T11:30:00Z",
        "2026-13-15T11:30:00Z",
        "2026-03-00T11:30:00Z",
        "2026-04-31T11:30:00Z",
        "2026-02-29T11:30:00Z",
        "2100-02-29T11:30:00Z",
        "26-03-15T11:30:00Z",
        "+2026-03-15T11:30:00Z",
        "2026-3-15T11:30:00Z",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = 77;

        ok(!clock_parse(&ms, str_from(rows[i])) && ms == 77, "no time: '%s'", rows[i]);
    }
}

static void test_the_system_clock(void)
{
    int64_t a = clock_now(&clock_system), b = clock_now(&clock_system);

    ok(a > 1700000000000 && b >= a, "the system's clock tells milliseconds since 1970");
}

static void test_the_same_again(void)
{
    char a[CLOCK_TEXT], b[CLOCK_TEXT], c[CLOCK_TEXT];

    clock_format(a, 0);
    clock_format(b, 1);
    clock_format(c, 0);
    ok(memcmp(a, "1970-01-01T00:00:00.000Z", CLOCK_TEXT) == 0 &&
           memcmp(b, "1970-01-01T00:00:00.001Z", CLOCK_TEXT) == 0 &&
           memcmp(a, c, CLOCK_TEXT) == 0,
       "a time between two others leaves no trace");
}

static void test_near_times(void)
{
    static const int64_t steps[] = { 1, -1, 999, -999, 1000, -1000, 1001, 86400000 };
    int64_t ms = -2500, back = 0;
    char text[CLOCK_TEXT];
    int wrong = 0;

    for (size_t i = 0; i < 4000; i++) {
        ms += steps[i % COUNT(steps)] + (int64_t)(i % 3);
        clock_format(text, ms);
        wrong += !clock_parse(&back, str_of(text, sizeof(text))) || back != ms;
    }
    ok(wrong == 0, "times near each other, before 1970 and after, are told apart");
}

int main(void)
{
    test_the_same_again();
    test_near_times();
    test_round_trip();
    test_other_spellings();
    test_what_is_no_time();
    test_the_system_clock();
    return tap_done();
}
