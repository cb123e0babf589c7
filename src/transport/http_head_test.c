/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_head.h"

#include "base/err.h"
#include "tests/http_stream.h"
#include "tests/tap.h"

#define WAYS 12 /* whole, byte by byte, and so many random cuts */
#define GET  "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"

/* Feed a head, cut by `seed`; its end is found where it is, not later. */
static enum http_verdict feed(struct http_head *h, str bytes, uint32_t seed)
{
    struct cuts cuts = { .rest = bytes, .seed = seed };
    enum http_verdict v = HTTP_MORE;
    size_t used;
    str piece;

    while (cuts_next(&cuts, &piece) && v == HTTP_MORE)
        v = http_head_feed(h, piece, &used);
    free(cuts.piece);
    return v;
}

/* The refusal of a head, HTTP_NONE when it is taken; -1 when cuts make a difference, -2
 * when it has no end. */
static int refusal_of(str bytes, enum http_kind kind)
{
    int first = 0;

    for (uint32_t seed = 0; seed < WAYS; seed++) {
        struct http_head h;
        enum http_verdict v;
        int r;

        http_head_init(&h, kind);
        v = feed(&h, bytes, seed);
        r = v == HTTP_MORE ? -2 : (int)h.refusal;
        http_head_release(&h);
        if (seed && r != first)
            return -1;
        first = r;
    }
    return first;
}

static void test_requests_that_are_refused(void)
{
    const struct {
        const char *what;
        str bytes;
        enum http_refusal why;
    } rows[] = {
        /* line ends and bytes */
        { "bare LF everywhere", STR("GET / HTTP/1.1\nHost: a\n\n"), HTTP_BARE_LF },
        { "bare LF after a header", STR(GET "Host: a\n\r\n"), HTTP_BARE_LF },
        { "bare LF as the last line", STR(GET HOST "\n"), HTTP_BARE_LF },
        { "bare LF first", STR("\n" GET HOST "\r\n"), HTTP_BARE_LF },
        { "bare CR in a value", STR(GET "X: a\rb\r\n" HOST "\r\n"), HTTP_BARE_CR },
        { "bare CR for a line end", STR("GET / HTTP/1.1\rHost: a\r\r"), HTTP_BARE_CR },
        { "CR CR LF", STR(GET "Host: a\r\r\n\r\n"), HTTP_BARE_CR },
        { "NUL in a value", STR(GET HOST "X: a\0b\r\n\r\n"), HTTP_CONTROL },
        { "NUL in a name", STR(GET HOST "X\0: a\r\n\r\n"), HTTP_CONTROL },
        { "a control byte in a name", STR(GET HOST "X\x01: a\r\n\r\n"), HTTP_CONTROL },
        { "a vertical tab before a value",
          STR(GET HOST "Transfer-Encoding: \x0b"
                       "chunked\r\n\r\n"),
          HTTP_CONTROL },
        { "DEL in a value", STR(GET HOST "X: \x7f\r\n\r\n"), HTTP_CONTROL },
        { "escape in the target", STR("GET /\x1b HTTP/1.1\r\n"), HTTP_CONTROL },
        { "a TLS greeting", STR("\x16\x03\x01\x02\x00\x01\x00"), HTTP_CONTROL },
        /* the request line */
        { "two empty lines first", STR("\r\n\r\n" GET HOST "\r\n"), HTTP_METHOD },
        { "no method", STR(" / HTTP/1.1\r\n"), HTTP_METHOD },
        { "a method in lower case", STR("get / HTTP/1.1\r\n"), HTTP_METHOD },
        { "a method with a digit", STR("GET1 / HTTP/1.1\r\n"), HTTP_METHOD },
        { "a method beyond ASCII", STR("G\xc3\x89T / HTTP/1.1\r\n"), HTTP_METHOD },
        { "a header for a request line", STR("Host: a\r\n\r\n"), HTTP_METHOD },
        { "CONNECT", STR("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"), HTTP_CONNECT },
        { "no target", STR("GET HTTP/1.1\r\n"), HTTP_TARGET },
        { "only a method", STR("GET\r\n"), HTTP_TARGET },
        { "two spaces", STR("GET  / HTTP/1.1\r\n"), HTTP_TARGET },
        { "a tab for a space", STR("GET\t/ HTTP/1.1\r\n"), HTTP_METHOD },
        { "a relative target", STR("GET a HTTP/1.1\r\n"), HTTP_TARGET },
        { "a star", STR("OPTIONS * HTTP/1.1\r\n"), HTTP_TARGET },
        { "a fragment", STR("GET /#a HTTP/1.1\r\n"), HTTP_TARGET },
        { "a target with a space", STR("GET /a b HTTP/1.1\r\n"), HTTP_VERSION },
        { "a target beyond ASCII", STR("GET /\xff HTTP/1.1\r\n"), HTTP_TARGET },
        { "a path out of the root", STR("GET /../a HTTP/1.1\r\n"), HTTP_DOT_SEGMENT },
        { "HTTP/0.9", STR("GET /\r\n"), HTTP_VERSION },
        { "a space behind", STR("GET / HTTP/1.1 \r\n"), HTTP_VERSION },
        { "a version in lower case", STR("GET / http/1.1\r\n"), HTTP_VERSION },
        { "HTTP/1", STR("GET / HTTP/1\r\n"), HTTP_VERSION },
        { "HTTP/1.10", STR("GET / HTTP/1.10\r\n"), HTTP_VERSION },
        { "HTTP/01.1", STR("GET / HTTP/01.1\r\n"), HTTP_VERSION },
        { "HTTP/1,1", STR("GET / HTTP/1,1\r\n"), HTTP_VERSION },
        { "HTTP/1.2", STR("GET / HTTP/1.2\r\n"), HTTP_VERSION_UNKNOWN },
        { "HTTP/0.1", STR("GET / HTTP/0.1\r\n"), HTTP_VERSION_UNKNOWN },
        { "HTTP/2.0", STR("GET / HTTP/2.0\r\n"), HTTP_VERSION_UNKNOWN },
        { "the preface of HTTP/2", STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HTTP_TARGET },
        /* headers */
        { "a space before the colon", STR(GET "Host : a\r\n\r\n"), HTTP_NAME_SPACE },
        { "a tab before the colon", STR(GET "Host\t: a\r\n\r\n"), HTTP_NAME_SPACE },
        { "a space in a name", STR(GET HOST "X Y: a\r\n\r\n"), HTTP_NAME },
        { "no name", STR(GET HOST ": a\r\n\r\n"), HTTP_NAME },
        { "a name beyond ASCII", STR(GET HOST "\xc3\xa9: a\r\n\r\n"), HTTP_NAME },
        { "a name with a slash", STR(GET HOST "a/b: c\r\n\r\n"), HTTP_NAME },
        { "a name in quotes", STR(GET HOST "\"a\": c\r\n\r\n"), HTTP_NAME },
        { "no colon", STR(GET HOST "Connection\r\n\r\n"), HTTP_NO_COLON },
        { "a second request line", STR(GET GET HOST "\r\n"), HTTP_NO_COLON },
        { "a folded header", STR(GET HOST "X: a\r\n b\r\n\r\n"), HTTP_FOLD },
        { "folded with a tab", STR(GET HOST "X: a\r\n\tb: c\r\n\r\n"), HTTP_FOLD },
        { "a space before the first header", STR(GET " Host: a\r\n\r\n"), HTTP_FOLD },
        { "a line of one space", STR(GET HOST " \r\n\r\n"), HTTP_FOLD },
        /* framing */
        { "Content-Length twice",
          STR(GET HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
          HTTP_LENGTH_TWICE },
        { "two different Content-Length",
          STR(GET HOST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"),
          HTTP_LENGTH_TWICE },
        { "a list of lengths", STR(GET HOST "Content-Length: 5, 5\r\n\r\n"),
          HTTP_LENGTH },
        { "+5", STR(GET HOST "Content-Length: +5\r\n\r\n"), HTTP_LENGTH },
        { "-0", STR(GET HOST "Content-Length: -0\r\n\r\n"), HTTP_LENGTH },
        { "0x5", STR(GET HOST "Content-Length: 0x5\r\n\r\n"), HTTP_LENGTH },
        { "05", STR(GET HOST "Content-Length: 05\r\n\r\n"), HTTP_LENGTH },
        { "5.0", STR(GET HOST "Content-Length: 5.0\r\n\r\n"), HTTP_LENGTH },
        { "5 5", STR(GET HOST "Content-Length: 5 5\r\n\r\n"), HTTP_LENGTH },
        { "5 in quotes", STR(GET HOST "Content-Length: \"5\"\r\n\r\n"), HTTP_LENGTH },
        { "a wide digit", STR(GET HOST "Content-Length: \xef\xbc\x95\r\n\r\n"),
          HTTP_LENGTH },
        { "a tab before the length", STR(GET HOST "Content-Length: \t5\r\n\r\n"),
          HTTP_LENGTH },
        { "a tab behind the length", STR(GET HOST "Content-Length: 5 \t \r\n\r\n"),
          HTTP_LENGTH },
        { "a tab before the coding", STR(GET HOST "Transfer-Encoding:\tchunked\r\n\r\n"),
          HTTP_CODING },
        { "a tab before the host", STR(GET "Host:\ta\r\n\r\n"), HTTP_HOST },
        { "no length", STR(GET HOST "Content-Length:\r\n\r\n"), HTTP_LENGTH },
        { "19 digits", STR(GET HOST "Content-Length: 1000000000000000000\r\n\r\n"),
          HTTP_LENGTH_HUGE },
        { "two to the 64th plus 5",
          STR(GET HOST "Content-Length: 18446744073709551621\r\n\r\n"),
          HTTP_LENGTH_HUGE },
        { "19 digits and a letter",
          STR(GET HOST "Content-Length: 1000000000000000000a\r\n\r\n"), HTTP_LENGTH },
        { "length and coding",
          STR(GET HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
          HTTP_LENGTH_AND_CODING },
        { "coding and length",
          STR(GET HOST "transfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n"),
          HTTP_LENGTH_AND_CODING },
        { "length and a bad coding",
          STR(GET HOST "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\n"),
          HTTP_LENGTH_AND_CODING },
        { "gzip", STR(GET HOST "Transfer-Encoding: gzip\r\n\r\n"), HTTP_CODING },
        { "gzip, chunked", STR(GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
          HTTP_CODING },
        { "chunked, chunked", STR(GET HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"),
          HTTP_CODING },
        { "chunked, identity",
          STR(GET HOST "Transfer-Encoding: chunked, identity\r\n\r\n"), HTTP_CODING },
        { "identity", STR(GET HOST "Transfer-Encoding: identity\r\n\r\n"), HTTP_CODING },
        { "chunked;q=1", STR(GET HOST "Transfer-Encoding: chunked;q=1\r\n\r\n"),
          HTTP_CODING },
        { "a quoted coding", STR(GET HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"),
          HTTP_CODING },
        { "no coding", STR(GET HOST "Transfer-Encoding:\r\n\r\n"), HTTP_CODING },
        { "coding twice",
          STR(GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n"),
          HTTP_CODING_TWICE },
        { "the same coding twice",
          STR(GET HOST
              "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
          HTTP_CODING_TWICE },
        { "coding in HTTP/1.0",
          STR("GET / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"),
          HTTP_CODING_OLD },
        { "coding with a space before its colon",
          STR(GET HOST "Transfer-Encoding : chunked\r\n\r\n"), HTTP_NAME_SPACE },
        /* the host */
        { "no Host", STR(GET "\r\n"), HTTP_HOST_MISSING },
        { "no Host beside a URL", STR("GET http://a/ HTTP/1.1\r\n\r\n"),
          HTTP_HOST_MISSING },
        { "Host twice", STR(GET HOST HOST "\r\n"), HTTP_HOST_TWICE },
        { "two different Hosts", STR(GET HOST "host: b\r\n\r\n"), HTTP_HOST_TWICE },
        { "Host twice in HTTP/1.0", STR("GET / HTTP/1.0\r\n" HOST HOST "\r\n"),
          HTTP_HOST_TWICE },
        { "an empty Host", STR(GET "Host:\r\n\r\n"), HTTP_HOST },
        { "two Hosts in one", STR(GET "Host: a, b\r\n\r\n"), HTTP_HOST },
        { "a user in Host", STR(GET "Host: a@b\r\n\r\n"), HTTP_HOST },
        { "a path in Host", STR(GET "Host: a/b\r\n\r\n"), HTTP_HOST },
        { "a bad port", STR(GET "Host: a:99999\r\n\r\n"), HTTP_HOST },
        { "a bad Host in HTTP/1.0", STR("GET / HTTP/1.0\r\nHost: a b\r\n\r\n"),
          HTTP_HOST },
        { "Host of another URL", STR("GET http://b/ HTTP/1.1\r\n" HOST "\r\n"),
          HTTP_HOST_DIFFERS },
        { "Host with another port", STR("GET http://a:81/ HTTP/1.1\r\n" HOST "\r\n"),
          HTTP_HOST_DIFFERS },
        { "another expectation", STR(GET HOST "Expect: 200-ok\r\n\r\n"), HTTP_EXPECT },
        { "two expectations",
          STR(GET HOST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"),
          HTTP_EXPECT },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int r = refusal_of(rows[i].bytes, HTTP_REQUEST);

        ok(r == (int)rows[i].why, "refused: %s (%s%s)", rows[i].what,
           http_refusal_name(rows[i].why), r == (int)rows[i].why ? "" : ", but was not");
    }
}

static void test_responses_that_are_refused(void)
{
#define OK200 "HTTP/1.1 200 OK\r\n"
    const struct {
        const char *what;
        str bytes;
        enum http_refusal why;
    } rows[] = {
        { "an empty line first", STR("\r\n" OK200 "\r\n"), HTTP_STATUS_LINE },
        { "no version", STR("200 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "another protocol", STR("ICY 200 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "HTTP/2", STR("HTTP/2 200\r\n\r\n"), HTTP_STATUS_LINE },
        { "HTTP/2.0", STR("HTTP/2.0 200 OK\r\n\r\n"), HTTP_VERSION_UNKNOWN },
        { "no status", STR("HTTP/1.1\r\n\r\n"), HTTP_STATUS_LINE },
        { "two spaces", STR("HTTP/1.1  200 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "two digits", STR("HTTP/1.1 20 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "four digits", STR("HTTP/1.1 2000 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "099", STR("HTTP/1.1 099 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "600", STR("HTTP/1.1 600 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "+20", STR("HTTP/1.1 +20 OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "20x", STR("HTTP/1.1 20x OK\r\n\r\n"), HTTP_STATUS_LINE },
        { "a request", STR(GET HOST "\r\n"), HTTP_STATUS_LINE },
        { "bare LF", STR("HTTP/1.1 200 OK\n\n"), HTTP_BARE_LF },
        { "a folded header", STR(OK200 "A: b\r\n c\r\n\r\n"), HTTP_FOLD },
        { "length twice", STR(OK200 "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
          HTTP_LENGTH_TWICE },
        { "length and coding",
          STR(OK200 "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
          HTTP_LENGTH_AND_CODING },
        { "a coding in HTTP/1.0",
          STR("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), HTTP_CODING_OLD },
        { "a gzip coding", STR(OK200 "Transfer-Encoding: gzip, chunked\r\n\r\n"),
          HTTP_CODING },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(refusal_of(rows[i].bytes, HTTP_RESPONSE) == (int)rows[i].why,
           "refused response: %s (%s)", rows[i].what, http_refusal_name(rows[i].why));
}

static void test_heads_that_are_taken(void)
{
    const struct {
        const char *what;
        enum http_kind kind;
        str bytes;
        const char *read;
    } rows[] = {
        { "the smallest", HTTP_REQUEST, STR(GET HOST "\r\n"),
          "GET / 1.1 keep [Host=a] <>\nopen\n" },
        { "one empty line first", HTTP_REQUEST, STR("\r\n" GET HOST "\r\n"),
          "GET / 1.1 keep [Host=a] <>\nopen\n" },
        { "HTTP/1.0", HTTP_REQUEST, STR("GET / HTTP/1.0\r\n\r\n"),
          "GET / 1.0 close <>\nclosed\n" },
        { "HTTP/1.0 that stays", HTTP_REQUEST,
          STR("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
          "GET / 1.0 keep [Connection=Keep-Alive] <>\nopen\n" },
        { "HTTP/1.1 that goes", HTTP_REQUEST,
          STR(GET HOST "Connection: x, CLOSE\r\n\r\n"),
          "GET / 1.1 close [Host=a] [Connection=x, CLOSE] <>\nclosed\n" },
        { "a close on a second line", HTTP_REQUEST,
          STR(GET HOST "Connection: keep-alive\r\nConnection: close\r\n\r\n"),
          "GET / 1.1 close [Host=a] [Connection=keep-alive] [Connection=close] "
          "<>\nclosed\n" },
        { "expectation", HTTP_REQUEST,
          STR(GET HOST "Expect: 100-Continue\r\nContent-Length: 0\r\n\r\n"),
          "GET / 1.1 keep continue length=0 [Host=a] [Expect=100-Continue] "
          "[Content-Length=0] <>\nopen\n" },
        { "what HTTP/1.0 expects", HTTP_REQUEST,
          STR("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"),
          "GET / 1.0 close [Expect=100-continue] <>\nclosed\n" },
        { "a URL", HTTP_REQUEST, STR("GET http://A/b?c HTTP/1.1\r\n" HOST "\r\n"),
          "GET http://A/b?c 1.1 keep [Host=a] <>\nopen\n" },
        { "white space around values", HTTP_REQUEST,
          STR(GET
              "Host:  a  \r\nA:\r\nB: \t \r\nC:c d\r\nConnection:\tx,\tclose\t\r\n\r\n"),
          "GET / 1.1 close [Host=a] [A=] [B=\t] [C=c d] [Connection=\tx,\tclose\t] "
          "<>\nclosed\n" },
        { "bytes above ASCII in a value", HTTP_REQUEST,
          STR(GET HOST "A: \xc3\xa9\xff\r\n\r\n"),
          "GET / 1.1 keep [Host=a] [A=\xc3\xa9\xff] <>\nopen\n" },
        { "colons in a value", HTTP_REQUEST, STR(GET HOST "A::b:c\r\n\r\n"),
          "GET / 1.1 keep [Host=a] [A=:b:c] <>\nopen\n" },
        { "the largest length", HTTP_REQUEST,
          STR(GET HOST "Content-Length: 999999999999999999\r\n\r\n"),
          "GET / 1.1 keep length=999999999999999999 [Host=a] "
          "[Content-Length=999999999999999999] <\nrefused CUT 400\n" },
        { "chunked in capitals", HTTP_REQUEST,
          STR("POST / HTTP/1.1\r\n" HOST "TRANSFER-ENCODING: Chunked\r\n\r\n0\r\n\r\n"),
          "POST / 1.1 keep chunked [Host=a] [TRANSFER-ENCODING=Chunked] <>\nopen\n" },
        { "two on one connection", HTTP_REQUEST,
          STR("POST /a HTTP/1.1\r\n" HOST
              "Content-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n" HOST "\r\n"),
          "POST /a 1.1 keep length=3 [Host=a] [Content-Length=3] <abc>\n"
          "GET /b 1.1 keep [Host=a] <>\nopen\n" },
        { "a head that is cut", HTTP_REQUEST, STR(GET HOST), "open in a head\n" },
        { "a response", HTTP_RESPONSE,
          STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
          "200 OK 1.1 keep length=2 [Content-Length=2] <hi>\nopen\n" },
        { "no reason", HTTP_RESPONSE, STR("HTTP/1.1 204\r\n\r\n"),
          "204  1.1 keep <>\nopen\n" },
        { "an empty reason", HTTP_RESPONSE, STR("HTTP/1.1 204 \r\n\r\n"),
          "204  1.1 keep <>\nopen\n" },
        { "a reason of many words", HTTP_RESPONSE,
          STR("HTTP/1.0 404 Not  Found \xc3\xa9\r\nContent-Length: 0\r\n\r\n"),
          "404 Not  Found \xc3\xa9 1.0 close length=0 [Content-Length=0] <>\nclosed\n" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf out = { 0 };
        bool same = http_stream_same(&out, rows[i].bytes, rows[i].kind, WAYS);

        if (!ok(same && str_is(buf_str(&out), rows[i].read), "taken: %s", rows[i].what))
            printf("# read as: %s", buf_cstr(&out));
    }
}

/* A request of `head` bytes whose headers are at most `header` bytes long each. */
static void fill_request(struct buf *b, size_t head, size_t header)
{
    buf_reset(b);
    buf_add(b, STR(GET HOST));
    while (b->n + 2 < head) {
        size_t n = head - 2 - b->n;

        if (n > header + 2)
            n = n < header + 2 + 6 ? header - 4 : header + 2;
        buf_add(b, STR("X: "));
        for (size_t i = 0; i < n - 5; i++)
            buf_add_char(b, 'a');
        buf_add(b, STR("\r\n"));
    }
    buf_add(b, STR("\r\n"));
}

static void add_many(struct buf *b, size_t n, str what)
{
    for (size_t i = 0; i < n; i++)
        buf_add(b, what);
}

static int limit_of(const struct buf *b, enum http_kind kind)
{
    return refusal_of(buf_str(b), kind);
}

static void test_limits_of_the_head(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    fill_request(&b, HTTP_HEAD_MAX, 1000);
    ok(b.n == HTTP_HEAD_MAX && limit_of(&b, HTTP_REQUEST) == HTTP_NONE,
       "the longest head");
    fill_request(&b, HTTP_HEAD_MAX + 1, 1000);
    ok(b.n == HTTP_HEAD_MAX + 1 && limit_of(&b, HTTP_REQUEST) == HTTP_HEAD_LONG,
       "one byte more");
    fill_request(&b, 20000, HTTP_HEADER_MAX);
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_NONE, "the longest header");
    fill_request(&b, 20000, HTTP_HEADER_MAX + 1);
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_HEADER_LONG, "one byte more");
    buf_reset(&b);
    buf_add(&b, STR(GET "A: "));
    add_many(&b, HTTP_HEADER_MAX, STR("a"));
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_HEADER_LONG, "a header without end");
    buf_reset(&b);
    buf_add(&b, STR(GET HOST));
    add_many(&b, HTTP_HEADERS_MAX - 1, STR("A: b\r\n"));
    buf_add(&b, STR("\r\n"));
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_NONE, "as many headers as allowed");
    b.n -= 2;
    buf_add(&b, STR("A: b\r\n\r\n"));
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_HEADERS_MANY, "one more");
}

static void test_limits_of_the_first_line(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    for (size_t more = 0; more < 2; more++) {
        buf_reset(&b);
        buf_add(&b, STR("GET /"));
        add_many(&b, HTTP_TARGET_MAX - 1 + more, STR("a"));
        buf_add(&b, STR(" HTTP/1.1\r\n" HOST "\r\n"));
        ok(limit_of(&b, HTTP_REQUEST) == (more ? HTTP_TARGET_LONG : HTTP_NONE),
           "the longest target, and %zu more", more);
        buf_reset(&b);
        add_many(&b, HTTP_METHOD_MAX + more, STR("M"));
        buf_add(&b, STR(" / HTTP/1.1\r\n" HOST "\r\n"));
        ok(limit_of(&b, HTTP_REQUEST) == (more ? HTTP_METHOD : HTTP_NONE),
           "the longest method, and %zu more", more);
        buf_reset(&b);
        buf_add(&b, STR("HTTP/1.1 200 "));
        add_many(&b, HTTP_STATUS_LINE_MAX - b.n + more, STR("r"));
        buf_add(&b, STR("\r\n\r\n"));
        ok(limit_of(&b, HTTP_RESPONSE) == (more ? HTTP_STATUS_LINE : HTTP_NONE),
           "the longest status line, and %zu more", more);
    }
    buf_reset(&b);
    buf_add(&b, STR("GET /"));
    add_many(&b, 2 * HTTP_TARGET_MAX, STR("a"));
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_TARGET_LONG, "a target without end");
    buf_reset(&b);
    add_many(&b, 2 * HTTP_TARGET_MAX, STR("A"));
    ok(limit_of(&b, HTTP_REQUEST) == HTTP_METHOD, "a method without end");
}

static void test_spans(void)
{
    static const char bytes[] = "GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\nrest";
    str in = str_of(bytes, sizeof(bytes) - 1);
    struct err err = { 0 };
    struct http_head h;
    size_t used;
    char *copy = malloc(in.n);

    http_head_init(&h, HTTP_REQUEST);
    ok(http_head_feed(&h, in, &used) == HTTP_DONE && used == in.n - 4,
       "a head ends before its body");
    ok(h.method.p == bytes && h.own.cap == 0, "a head in one piece is not copied");
    ok(http_head_feed(&h, in, &used) == HTTP_DONE && used == 0,
       "what is done takes no more");
    http_head_reset(&h);
    memcpy(copy, bytes, in.n);
    ok(http_head_feed(&h, str_of(copy, in.n), &used) == HTTP_DONE &&
           http_head_keep(&h, &err) == 0 && http_head_keep(&h, &err) == 0,
       "a head is kept");
    free(copy);
    ok(str_is(h.method, "GET") && str_is(h.target, "http://a/b?c") &&
           str_is(h.parts.authority, "a") && str_is(h.parts.path, "/b") &&
           str_is(h.parts.query, "c") && str_is(h.host, "a") && h.count == 1 &&
           str_is(http_head_name(&h, 0), "Host"),
       "what is kept outlives the bytes");
    http_head_reset(&h);
    ok(http_head_feed(&h, STR("BAD"), &used) == HTTP_MORE && used == 3 &&
           http_head_feed(&h, STR("\n"), &used) == HTTP_REFUSED &&
           http_head_feed(&h, in, &used) == HTTP_REFUSED && used == 0,
       "what is refused stays so");
    http_head_release(&h);
    http_head_release(&h);
    ok(http_head_feed(&h, STR(""), &used) == HTTP_MORE && used == 0, "no bytes, no news");
}

static void test_looking_up(void)
{
    struct http_list l = { 0 };
    struct http_head h;
    size_t used, many, i = 0;
    str item;
    static const char *const items[] = { "application/json",
                                         "text/html;x=\"a,\\\"b\";q=1", "a\"b",
                                         "text/event-stream ; q=0.5", "\"open, c" };

    http_head_init(&h, HTTP_REQUEST);
    ok(http_head_feed(&h,
                      STR(GET HOST
                          "accept: , application/json,,text/html;x=\"a,\\\"b\";q=1 , \r\n"
                          "X: y\r\nACCEPT:\r\nAccept: a\"b\r\n"
                          "Accept: text/event-stream ; q=0.5, \"open, c\r\n\r\n"),
                      &used) == HTTP_DONE,
       "a head with lists");
    while (http_list_next(&l, &h, "Accept", &item)) {
        ok(i < COUNT(items) && str_is(item, items[i]), "element %zu", i);
        i++;
    }
    ok(i == COUNT(items), "all elements");
    ok(http_head_lists(&h, "accept", "TEXT/event-stream") &&
           http_head_lists(&h, "accept", "text/html") &&
           !http_head_lists(&h, "accept", "text") && !http_head_lists(&h, "y", "y"),
       "words of a list");
    ok(str_is(http_head_find(&h, "x", &many), "y") && many == 1, "one header");
    ok(str_starts(http_head_find(&h, "ACCEPT", &many), STR(", appl")) && many == 4,
       "the first of many");
    ok(!http_head_find(&h, "none", &many).p && many == 0 &&
           !http_head_find(&h, "", NULL).p,
       "no such header");
    http_head_release(&h);
}

int main(void)
{
    test_requests_that_are_refused();
    test_responses_that_are_refused();
    test_heads_that_are_taken();
    test_limits_of_the_head();
    test_limits_of_the_first_line();
    test_spans();
    test_looking_up();
    return tap_done();
}
