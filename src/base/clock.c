/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

static int64_t system_now(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const struct clock clock_system = { system_now, NULL };

struct date {
    int64_t year;
    unsigned month, day; /* from 1 */
};

/* Howard Hinnant's civil-from-days: exact for the whole proleptic Gregorian calendar. */
static struct date date_of_days(int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    unsigned month = mp < 10 ? mp + 3 : mp - 9;

    return (struct date){ (int64_t)yoe + era * 400 + (month <= 2), month,
                          doy - (153 * mp + 2) / 5 + 1 };
}

static int64_t days_of_date(struct date d)
{
    int64_t y = d.year - (d.month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (d.month > 2 ? d.month - 3 : d.month + 9) + 2) / 5 + d.day - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + (int64_t)doe - 719468;
}

static void put(char *out, uint64_t value, int digits)
{
    while (digits-- > 0) {
        out[digits] = (char)('0' + value % 10);
        value /= 10;
    }
}

static void format(char out[static CLOCK_TEXT], int64_t ms)
{
    int64_t days = (ms >= 0 ? ms : ms - 86399999) / 86400000;
    uint64_t rest = (uint64_t)(ms - days * 86400000);
    struct date d = date_of_days(days);

    memcpy(out, "0000-00-00T00:00:00.000Z", CLOCK_TEXT);
    put(out, (uint64_t)d.year, 4);
    put(out + 5, d.month, 2);
    put(out + 8, d.day, 2);
    put(out + 11, rest / 3600000, 2);
    put(out + 14, rest / 60000 % 60, 2);
    put(out + 17, rest / 1000 % 60, 2);
    put(out + 20, rest % 1000, 3);
}

/* What happens at once is told with one time, over and over, and what happens next in the
 * same second mostly. */
void clock_format(char out[static CLOCK_TEXT], int64_t ms)
{
    static _Thread_local struct {
        bool known;
        int64_t ms, second; /* when it began, ms */
        char text[CLOCK_TEXT];
    } last;

    if (!last.known || (uint64_t)ms - (uint64_t)last.second >= 1000) {
        format(last.text, ms);
        last.second = ms - (ms % 1000 + 1000) % 1000;
        last.known = true;
    } else if (last.ms != ms) {
        put(last.text + 20, (uint64_t)(ms - last.second), 3);
    }
    last.ms = ms;
    memcpy(out, last.text, CLOCK_TEXT);
}

void clock_stamp(char out[static CLOCK_STAMP], int64_t ms)
{
    static const unsigned char from[] = { 0,  1,  2,  3,  5,  6,  8, 9,
                                          10, 11, 12, 14, 15, 17, 18 };
    char text[CLOCK_TEXT];

    clock_format(text, ms);
    for (unsigned i = 0; i < sizeof(from); i++)
        out[i] = text[from[i]];
    out[15] = 'Z';
}

/* Exactly `digits` decimal digits off the front of *s. */
static bool take_number(str *s, unsigned digits, unsigned *value)
{
    unsigned v = 0;

    if (s->n < digits)
        return false;
    for (unsigned i = 0; i < digits; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        v = v * 10 + (unsigned)(s->p[i] - '0');
    }
    *s = str_skip(*s, digits);
    *value = v;
    return true;
}

static bool take_char(str *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = str_skip(*s, 1);
    return true;
}

/* An optional fraction of a second, of any length, cut to milliseconds. */
static bool take_fraction(str *s, unsigned *ms)
{
    unsigned scale = 100, digits = 0;

    *ms = 0;
    if (!take_char(s, '.'))
        return true;
    for (; s->n && s->p[0] >= '0' && s->p[0] <= '9'; *s = str_skip(*s, 1), digits++) {
        *ms += scale * (unsigned)(s->p[0] - '0');
        scale /= 10;
    }
    return digits > 0;
}

static bool take_offset(str *s, int64_t *ms)
{
    unsigned hours, minutes;
    int sign = 1;

    *ms = 0;
    if (take_char(s, 'Z'))
        return s->n == 0;
    if (take_char(s, '-'))
        sign = -1;
    else if (!take_char(s, '+'))
        return false;
    if (!take_number(s, 2, &hours) || !take_char(s, ':') || !take_number(s, 2, &minutes))
        return false;
    *ms = sign * (int64_t)(hours * 60 + minutes) * 60000;
    return s->n == 0 && hours < 24 && minutes < 60;
}

static bool is_date(struct date d)
{
    static const unsigned char days[] = {
        31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    };
    bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;

    if (d.month < 1 || d.month > 12 || d.day < 1 || d.day > days[d.month - 1])
        return false;
    return d.month != 2 || d.day < 29 || leap;
}

/* What clock_format() can write: an offset may lead out of the four-digit years. */
#define FIRST_MS (-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define LAST_MS  253402300799999   /* 9999-12-31T23:59:59.999Z */

bool clock_parse(int64_t *ms, str text)
{
    unsigned year, month, day, hour, minute, second, fraction;
    int64_t offset, at;
    struct date d;

    if (!take_number(&text, 4, &year) || !take_char(&text, '-') ||
        !take_number(&text, 2, &month) || !take_char(&text, '-') ||
        !take_number(&text, 2, &day) || !take_char(&text, 'T'))
        return false;
    if (!take_number(&text, 2, &hour) || !take_char(&text, ':') ||
        !take_number(&text, 2, &minute) || !take_char(&text, ':') ||
        !take_number(&text, 2, &second))
        return false;
    if (!take_fraction(&text, &fraction) || !take_offset(&text, &offset))
        return false;
    d = (struct date){ year, month, day };
    if (!is_date(d) || hour > 23 || minute > 59 || second > 59)
        return false;
    at = days_of_date(d) * 86400000 +
         (int64_t)((hour * 60 + minute) * 60 + second) * 1000 + fraction - offset;
    if (at < FIRST_MS || at > LAST_MS)
        return false;
    *ms = at;
    return true;
}
