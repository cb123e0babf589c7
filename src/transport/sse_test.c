/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sse.h"

#include "base/err.h"
#include "tests/http_stream.h"
#include "tests/tap.h"

#define WAYS 24 /* whole, byte by byte, and so many random cuts */

/* Reads `bytes`, cut by `seed`: (type|id|retry|data), one group for each block. */
static void read_events(struct buf *out, str bytes, uint32_t seed, uint64_t max)
{
    struct cuts cuts = { .rest = bytes, .seed = seed };
    CLEANUP(buf_release) struct buf data = { 0 };
    CLEANUP(sse_release) struct sse s;
    enum sse_token token = SSE_MORE;
    str piece, span;

    sse_init(&s, max);
    while (cuts_next(&cuts, &piece)) {
        while ((token = sse_feed(&s, &piece, &span)) != SSE_MORE &&
               token != SSE_REFUSED) {
            if (token == SSE_DATA)
                buf_add(&data, span);
            if (token == SSE_COMMENT)
                buf_add(out, STR("#"));
            if (token != SSE_EVENT)
                continue;
            buf_add_char(out, s.has_data ? '(' : '[');
            buf_add(out, buf_str(&s.type));
            buf_add(out, s.has_id ? STR("|id=") : STR("|"));
            buf_add(out, buf_str(&s.id));
            if (s.has_retry)
                buf_printf(out, "|retry=%u", s.retry);
            buf_add_char(out, '|');
            buf_add(out, buf_str(&data));
            buf_add_char(out, s.has_data ? ')' : ']');
            buf_reset(&data);
        }
    }
    if (token == SSE_REFUSED)
        buf_printf(out, "refused after %zu", data.n);
    else if (data.n || s.has_data)
        buf_add(out, STR("cut")); /* begun, and no event */
    free(cuts.piece);
}

/* The examples and rules of the HTML standard, 9.2.6. */
static void test_streams(void)
{
    const struct {
        const char *what;
        str bytes;
        const char *read;
    } rows[] = {
        { "nothing", STR(""), "" },
        { "one event", STR("data: hello\n\n"), "(||hello)" },
        { "three lines", STR("data: YHOO\ndata: +2\ndata: 10\n\n"), "(||YHOO\n+2\n10)" },
        { "the standard's example of four blocks",
          STR(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
              "data:  third event\n\n"),
          "#(|id=1|first event)(|id=|second event)(|| third event)" },
        { "empty data, and the last block is none", STR("data\n\ndata\ndata\n\ndata:"),
          "(||)(||\n)cut" },
        { "a space behind the colon or none", STR("data:test\n\ndata: test\n\n"),
          "(||test)(||test)" },
        { "only one space goes", STR("data:  a \n\n"), "(|| a )" },
        { "CR", STR("data: a\rdata: b\r\r"), "(||a\nb)" },
        { "CRLF", STR("data: a\r\ndata: b\r\n\r\n"), "(||a\nb)" },
        { "line ends mixed", STR("data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\n"),
          "(||a\nb\nc)(||d)" },
        { "LF CR is two ends", STR("data: a\n\rdata: b\n\n"), "(||a)(||b)" },
        { "CR CRLF is two ends", STR("data: a\r\r\ndata: b\r\r\n"), "(||a)(||b)" },
        { "a byte order mark",
          STR("\xef\xbb\xbf"
              "data: a\n\n"),
          "(||a)" },
        { "two byte order marks",
          STR("\xef\xbb\xbf\xef\xbb\xbf"
              "data: a\n\ndata: b\n\n"),
          "(||b)" },
        { "half a byte order mark",
          STR("\xef\xbb"
              "data: a\n\ndata: b\n\n"),
          "(||b)" },
        { "half a byte order mark alone", STR("\xef\ndata: b\n\n"), "(||b)" },
        { "a mark before nothing", STR("\xef\xbb\xbf\n\ndata: b\n\n"), "(||b)" },
        { "a byte order mark later",
          STR("data: a\n\n\xef\xbb\xbf"
              "data: b\n\n"),
          "(||a)" },
        { "comments", STR(":\n: a\n:data: b\n\ndata: c\n:d\n\n"), "####(||c)" },
        { "a type", STR("event: add\ndata: 1\n\ndata: 2\n\n"), "(add||1)(||2)" },
        { "the type behind the data", STR("data: 1\nevent: add\n\n"), "(add||1)" },
        { "the last type counts", STR("event: a\nevent: b\ndata: 1\n\n"), "(b||1)" },
        { "an empty type", STR("event: a\nevent:\ndata: 1\n\n"), "(||1)" },
        { "a type without data is gone", STR("event: a\n\ndata: 1\n\n"), "(||1)" },
        { "an id stays", STR("id: 7\ndata: a\n\ndata: b\n\n"), "(|id=7|a)(|7|b)" },
        { "an id alone", STR("id: 7\n\ndata: b\n\n"), "[|id=7|](|7|b)" },
        { "an id with a NUL", STR("id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n"),
          "(|id=7|a)(|7|b)" },
        { "the priming event", STR("id: X\ndata: \n\n"), "(|id=X|)" },
        { "an id of spaces", STR("id:  \ndata: a\n\n"), "(|id= |a)" },
        { "retry", STR("retry: 3000\ndata: a\n\nretry:0\n\n"),
          "(||retry=3000|a)[||retry=0|]" },
        { "retry that is none",
          STR("retry: 3a\nretry: -1\nretry:\nretry\nretry: 1 \n"
              "data: a\n\n"),
          "(||a)" },
        { "retry with zeros", STR("retry: 0010\n\n"), "[||retry=10|]" },
        { "the longest retry", STR("retry: 86400000\n\n"), "[||retry=86400000|]" },
        { "a longer one", STR("retry: 86400001\n\nretry: 99999999999999999999999999\n\n"),
          "[||retry=86400000|][||retry=86400000|]" },
        { "unknown fields",
          STR("foo: bar\ndatax: 1\nDATA: 2\ndat: 3\n data: 4\ndata : 5\n"
              "eventful: 1\nidx: 3\ndata: a\n\n"),
          "(||a)" },
        { "colons in data", STR("data: a: b:c\n\n"), "(||a: b:c)" },
        { "bytes of all kinds", STR("data: \x01\xff\xfe\t\x7f\n\n"),
          "(||\x01\xff\xfe\t\x7f)" },
        { "blank lines", STR("\n\n\r\n\r\rdata: a\n\n\n\n"), "(||a)" },
        { "an event that is cut", STR("data: a\n\ndata: b\n"), "(||a)cut" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t good = 0;
        CLEANUP(buf_release) struct buf out = { 0 };

        for (uint32_t seed = 0; seed < WAYS; seed++) {
            buf_reset(&out);
            read_events(&out, rows[i].bytes, seed, 0);
            good += str_is(buf_str(&out), rows[i].read);
        }
        if (!ok(good == WAYS, "read: %s", rows[i].what))
            printf("# read as: %s\n", buf_cstr(&out));
    }
}

static bool reads_as(const struct buf *in, uint64_t max, const char *want)
{
    for (uint32_t seed = 0; seed < WAYS; seed++) {
        CLEANUP(buf_release) struct buf out = { 0 };

        read_events(&out, buf_str(in), seed, max);
        if (!str_ends(buf_str(&out), str_from(want)))
            return false;
    }
    return true;
}

static void add_line(struct buf *b, const char *name, size_t n)
{
    buf_reset(b);
    buf_add(b, str_from(name));
    for (size_t i = 0; i < n; i++)
        buf_add_char(b, '1');
    buf_add(b, STR("\ndata: end\n\n"));
}

static void test_limits(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    buf_add(&b, STR("data: 12345\ndata: 789\n\ndata: 123456789\n\n"));
    ok(reads_as(&b, 9, "(||12345\n789)(||123456789)"), "the largest data");
    ok(reads_as(&b, 8, "refused after 8"), "one byte more");
    ok(reads_as(&b, 5, "refused after 5"), "a line end more");
    add_line(&b, "event: ", SSE_TYPE_MAX);
    ok(reads_as(&b, 0, "1||end)"), "the longest type");
    add_line(&b, "event: ", SSE_TYPE_MAX + 1);
    ok(reads_as(&b, 0, "refused after 0"), "one byte more");
    add_line(&b, "id: ", SSE_ID_MAX);
    ok(reads_as(&b, 0, "1|end)"), "the longest id");
    add_line(&b, "id: ", SSE_ID_MAX + 1);
    ok(reads_as(&b, 0, "refused after 0"), "one byte more");
    add_line(&b, ": ", 100000);
    ok(reads_as(&b, 0, "#(||end)"), "a comment has no limit");
    add_line(&b, "other", 100000);
    ok(reads_as(&b, 0, "(||end)"), "nor has a field that nobody knows");
}

static void test_data_is_not_copied(void)
{
    static const char bytes[] = "data: hello\n\n";
    CLEANUP(sse_release) struct sse s;
    str in = str_of(bytes, sizeof(bytes) - 1), out;

    sse_init(&s, 0);
    ok(sse_feed(&s, &in, &out) == SSE_DATA && out.p == bytes + 6 && out.n == 5 &&
           sse_feed(&s, &in, &out) == SSE_EVENT && in.n == 0 &&
           sse_feed(&s, &in, &out) == SSE_MORE,
       "data is cut out of the bytes");
    sse_release(&s);
}

static void test_writing(void)
{
    const struct {
        const char *what;
        str message;
        const char *written;
        const char *read;
    } rows[] = {
        { "a message", STR("{\"a\":1}"), "event: message\nid: 9\ndata: {\"a\":1}\n\n",
          "(message|id=9|{\"a\":1})" },
        { "nothing", STR(""), "event: message\nid: 9\ndata: \n\n", "(message|id=9|)" },
        { "two lines", STR("a\nb"), "event: message\nid: 9\ndata: a\ndata: b\n\n",
          "(message|id=9|a\nb)" },
        { "CRLF", STR("a\r\nb"), "event: message\nid: 9\ndata: a\ndata: b\n\n",
          "(message|id=9|a\nb)" },
        { "CR", STR("a\rb"), "event: message\nid: 9\ndata: a\ndata: b\n\n",
          "(message|id=9|a\nb)" },
        { "line ends only", STR("\n\r\n\r"),
          "event: message\nid: 9\ndata: \ndata: \ndata: \ndata: \n\n",
          "(message|id=9|\n\n\n)" },
        { "a space first", STR(" a"), "event: message\nid: 9\ndata:  a\n\n",
          "(message|id=9| a)" },
    };
    CLEANUP(buf_release) struct buf b = { 0 }, out = { 0 };
    struct sse_writer w;
    struct err err = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t good = 0;

        for (uint32_t seed = 0; seed < WAYS; seed++) {
            struct cuts cuts = { .rest = rows[i].message, .seed = seed };
            str piece;

            buf_reset(&b);
            buf_reset(&out);
            if (sse_open(&w, &b, STR("message"), STR("9"), &err) < 0)
                break;
            while (cuts_next(&cuts, &piece))
                sse_add(&w, &b, piece);
            sse_close(&w, &b);
            read_events(&out, buf_str(&b), CUT_WHOLE, 0);
            good += str_is(buf_str(&b), rows[i].written) &&
                    str_is(buf_str(&out), rows[i].read);
        }
        ok(good == WAYS, "written: %s", rows[i].what);
    }
    buf_reset(&b);
    buf_reset(&out);
    sse_put_comment(&b);
    sse_put_retry(&b, 1500);
    ok(sse_open(&w, &b, STR("endpoint"), (str){ NULL, 0 }, &err) == 0, "without an id");
    sse_add(&w, &b, STR("/messages"));
    sse_close(&w, &b);
    read_events(&out, buf_str(&b), CUT_WHOLE, 0);
    ok(str_is(buf_str(&out), "#[||retry=1500|](endpoint||/messages)"),
       "a comment, a retry time, an event");
}

static void test_what_is_not_written(void)
{
    static char many[SSE_ID_MAX + 1];
    const str none = { NULL, 0 };
    CLEANUP(buf_release) struct buf b = { 0 };
    struct sse_writer w;
    struct err err = { 0 };

    memset(many, 'i', sizeof(many));
    ok(sse_open(&w, &b, STR("a\nb"), none, &err) < 0 &&
           sse_open(&w, &b, STR("a\rb"), none, &err) < 0 &&
           sse_open(&w, &b, STR("a\0b"), none, &err) < 0 &&
           sse_open(&w, &b, STR("a"), STR("1\n2"), &err) < 0 &&
           sse_open(&w, &b, STR("a"), STR("1\r"), &err) < 0 &&
           sse_open(&w, &b, STR("a"), STR("\0"), &err) < 0 && b.n == 0 &&
           err.code == ERR_FORMAT,
       "a line end or NUL in a type or an id");
    ok(sse_open(&w, &b, str_of(many, SSE_TYPE_MAX + 1), none, &err) < 0 &&
           sse_open(&w, &b, STR("a"), str_of(many, SSE_ID_MAX + 1), &err) < 0 && b.n == 0,
       "a type or an id that nobody would read");
    ok(sse_open(&w, &b, str_of(many, SSE_TYPE_MAX), str_of(many, SSE_ID_MAX), &err) == 0,
       "the longest that one would");
}

int main(void)
{
    test_streams();
    test_limits();
    test_data_is_not_copied();
    test_writing();
    test_what_is_not_written();
    return tap_done();
}
