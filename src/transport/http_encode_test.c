/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_encode.h"

#include "base/err.h"
#include "tests/http_stream.h"
#include "tests/tap.h"

static void test_a_request_is_read_back(void)
{
    CLEANUP(buf_release) struct buf b = { 0 }, out = { 0 };
    struct err err = { 0 };

    ok(http_put_request(&b, STR("POST"), STR("/mcp?a"), &err) == 0 &&
           http_put_header(&b, STR("Host"), STR("[::1]:80"), &err) == 0 &&
           http_put_header(&b, STR("X-Empty"), STR(""), &err) == 0 &&
           http_put_header(&b, STR("Transfer-Encoding"), STR("chunked"), &err) == 0,
       "a head is written");
    http_put_end(&b);
    http_chunk_add(&b, STR("hello, "));
    http_chunk_add(&b, STR(""));
    http_chunk_open(&b, 27);
    buf_add(&b, STR("a chunk of twenty-seven, \r\n"));
    http_chunk_close(&b);
    http_chunk_last(&b);
    ok(str_is(buf_str(&b), "POST /mcp?a HTTP/1.1\r\nHost: [::1]:80\r\nX-Empty: \r\n"
                           "Transfer-Encoding: chunked\r\n\r\n7\r\nhello, \r\n"
                           "1b\r\na chunk of twenty-seven, \r\n\r\n0\r\n\r\n"),
       "as it must be");
    http_stream_read(&out, buf_str(&b), HTTP_REQUEST, CUT_WHOLE, false, false);
    ok(str_is(
           buf_str(&out),
           "POST /mcp?a 1.1 keep chunked [Host=[::1]:80] [X-Empty=] "
           "[Transfer-Encoding=chunked] <hello, a chunk of twenty-seven, \r\n>\nopen\n"),
       "and read back");
}

static void test_a_header_is_written_as_it_was_read(void)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nx-A:b  c \r\nEmpty:\r\n\r\n";
    CLEANUP(http_head_release) struct http_head h;
    CLEANUP(buf_release) struct buf b = { 0 };
    size_t used;

    http_head_init(&h, HTTP_RESPONSE);
    ok(http_head_feed(&h, str_from(text), &used) == HTTP_DONE && h.count == 2, "a head");
    http_put_same(&b, &h, 0);
    http_put_same(&b, &h, 1);
    ok(str_is(buf_str(&b), "x-A: b  c\r\nEmpty: \r\n"),
       "name and value of a header that was read, written anew");
}

static void test_a_response_is_read_back(void)
{
    CLEANUP(buf_release) struct buf b = { 0 }, out = { 0 };
    struct err err = { 0 };

    ok(http_put_status(&b, 413, (str){ NULL, 0 }, &err) == 0 &&
           http_put_header(&b, STR("Content-Length"), STR("0"), &err) == 0,
       "a status is written");
    http_put_end(&b);
    ok(http_put_status(&b, 299, STR("As It Was"), &err) == 0 &&
           http_put_header(&b, STR("Content-Length"), STR("0"), &err) == 0,
       "with the reason that it had");
    http_put_end(&b);
    ok(http_put_status(&b, 204, STR(""), &err) == 0, "or none");
    http_put_end(&b);
    http_stream_read(&out, buf_str(&b), HTTP_RESPONSE, CUT_WHOLE, true, false);
    ok(str_is(buf_str(&out), "413 Content Too Large 0\n299 As It Was 0\n204  0\nopen\n"),
       "and read back");
    ok(*http_reason(503) && !*http_reason(299) && !*http_reason(0), "the usual words");
    for (int r = HTTP_NONE + 1; r <= HTTP_NO_MEMORY; r++) {
        unsigned status = http_refusal_status((enum http_refusal)r);

        if (!*http_reason(status))
            ok(false, "there are words for %u", status);
    }
}

static void test_what_cannot_be_read_back_is_not_written(void)
{
    const struct {
        const char *what;
        str name, value;
    } headers[] = {
        { "a CRLF in a value", STR("A"), STR("b\r\nC: d") },
        { "an LF in a value", STR("A"), STR("b\nC: d") },
        { "a CR in a value", STR("A"), STR("b\rc") },
        { "a NUL in a value", STR("A"), STR("b\0c") },
        { "a control byte in a value", STR("A"), STR("\x1b") },
        { "a space at the end of a value", STR("A"), STR("b ") },
        { "a space at the front of a value", STR("A"), STR(" b") },
        { "no name", STR(""), STR("b") },
        { "a colon in a name", STR("A:"), STR("b") },
        { "a space in a name", STR("A B"), STR("c") },
        { "a CRLF in a name", STR("A\r\nB"), STR("c") },
        { "a NUL in a name", STR("A\0"), STR("c") },
    };
    const struct {
        const char *what;
        str method, target;
    } lines[] = {
        { "a space in a target", STR("GET"), STR("/ HTTP/1.1") },
        { "a CRLF in a target", STR("GET"), STR("/\r\nA: b") },
        { "no target", STR("GET"), STR("") },
        { "a space in a method", STR("GET /"), STR("/") },
        { "a method in lower case", STR("get"), STR("/") },
        { "a CRLF in a method", STR("A\r\nB"), STR("/") },
    };
    CLEANUP(buf_release) struct buf b = { 0 };

    for (size_t i = 0; i < COUNT(headers); i++) {
        struct err err = { 0 };

        ok(http_put_header(&b, headers[i].name, headers[i].value, &err) < 0 &&
               err.code == ERR_FORMAT && b.n == 0,
           "not written: %s", headers[i].what);
    }
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct err err = { 0 };

        ok(http_put_request(&b, lines[i].method, lines[i].target, &err) < 0 &&
               err.code == ERR_FORMAT && b.n == 0,
           "not written: %s", lines[i].what);
    }
}

static void test_statuses_that_are_not_written(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct err err = { 0 };

    ok(http_put_status(&b, 99, STR(""), &err) < 0 &&
           http_put_status(&b, 600, STR(""), &err) < 0 &&
           http_put_status(&b, 200, STR("a\r\nb: c"), &err) < 0 &&
           http_put_status(&b, 200, STR("\0"), &err) < 0 && b.n == 0,
       "not written: what is no status");
}

/* What the longest allowed is, both sides agree on. */
static void test_limits(void)
{
    static char many[HTTP_HEADER_MAX + 1];
    CLEANUP(buf_release) struct buf b = { 0 };
    struct err err = { 0 };

    memset(many, 'a', sizeof(many));
    many[0] = '/';
    ok(http_put_request(&b, STR("GET"), str_of(many, HTTP_TARGET_MAX), &err) == 0 &&
           http_put_request(&b, STR("GET"), str_of(many, HTTP_TARGET_MAX + 1), &err) < 0,
       "the longest target, and one more");
    ok(http_put_header(&b, STR("A"), str_of(many, HTTP_HEADER_MAX - 3), &err) == 0 &&
           http_put_header(&b, STR("A"), str_of(many, HTTP_HEADER_MAX - 2), &err) < 0,
       "the longest header, and one more");
    many[0] = 'a';
    ok(http_put_header(&b, str_of(many, HTTP_HEADER_MAX - 2), STR(""), &err) == 0 &&
           http_put_header(&b, str_of(many, HTTP_HEADER_MAX - 1), STR(""), &err) < 0 &&
           http_put_header(&b, str_of(many, HTTP_HEADER_MAX + 1), STR(""), &err) < 0,
       "the longest name, and one more");
    ok(http_put_status(&b, 200, str_of(many, HTTP_STATUS_LINE_MAX - 13), &err) == 0 &&
           http_put_status(&b, 200, str_of(many, HTTP_STATUS_LINE_MAX - 12), &err) < 0,
       "the longest reason, and one more");
}

int main(void)
{
    test_a_request_is_read_back();
    test_a_header_is_written_as_it_was_read();
    test_a_response_is_read_back();
    test_what_cannot_be_read_back_is_not_written();
    test_statuses_that_are_not_written();
    test_limits();
    return tap_done();
}
