/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_body.h"

#include "tests/http_stream.h"
#include "tests/tap.h"
#include "transport/http_encode.h"

#define WAYS    12 /* whole, byte by byte, and so many random cuts */
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
#define NEXT    "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"

/* What follows the line of the first message's head in what was read. */
static str body_of(const struct buf *read)
{
    const char *end = read->n ? memchr(read->p, '<', read->n) : NULL;

    return end ? str_skip(buf_str(read), (size_t)(end + 1 - read->p)) : buf_str(read);
}

static void test_chunked_requests(void)
{
    static const char next[] = ">\nGET /next 1.1 keep [Host=a] <>\nopen\n";
    const struct {
        const char *what;
        str bytes;
        const char *content; /* NULL: refused */
        enum http_refusal why;
    } rows[] = {
        { "no content", STR("0\r\n\r\n"), "", HTTP_NONE },
        { "one chunk", STR("5\r\nhello\r\n0\r\n\r\n"), "hello", HTTP_NONE },
        { "two chunks", STR("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), "hello", HTTP_NONE },
        { "hexadecimal in both cases",
          STR("A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n"),
          "01234567890123456789a", HTTP_NONE },
        { "zeros in front", STR("0000000000005\r\nhello\r\n000\r\n\r\n"), "hello",
          HTTP_NONE },
        { "line ends in the content", STR("6\r\n\r\n0\r\n\n\r\n0\r\n\r\n"), "\r\n0\r\n\n",
          HTTP_NONE },
        { "an extension", STR("5;a=b;c=\"d e\"\r\nhello\r\n0;x\r\n\r\n"), "hello",
          HTTP_NONE },
        { "an empty extension", STR("5;\r\nhello\r\n0\r\n\r\n"), "hello", HTTP_NONE },
        { "trailers", STR("0\r\nA: b\r\nC:\t\xff d\r\nE:\r\n\r\n"), "", HTTP_NONE },
        { "a trailer that would be a length", STR("0\r\nContent-Length: 99\r\n\r\n"), "",
          HTTP_NONE },
        { "0x5", STR("0x5\r\nhello\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "+5", STR("+5\r\nhello\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "-5", STR("-5\r\nhello\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "a space first", STR(" 5\r\nhello\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "a space behind", STR("5 \r\nhello\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "a space before an extension", STR("5 ;a\r\nhello\r\n0\r\n\r\n"), NULL,
          HTTP_CHUNK_SIZE },
        { "no size", STR("\r\nhello\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "only an extension", STR(";a\r\nhello\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "a letter", STR("g\r\nhello\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "a comma", STR("5,\r\nhello\r\n"), NULL, HTTP_CHUNK_SIZE },
        { "bare LF behind the size", STR("5\nhello\r\n0\r\n\r\n"), NULL,
          HTTP_CHUNK_SIZE },
        { "bare CR behind the size", STR("5\rhello\r\n0\r\n\r\n"), NULL, HTTP_BARE_CR },
        { "bare LF behind an extension", STR("5;a\nhello\r\n0\r\n\r\n"), NULL,
          HTTP_EXTENSION },
        { "bare CR in an extension", STR("5;a\rb\r\nhello\r\n"), NULL, HTTP_BARE_CR },
        { "NUL in an extension", STR("5;a\0\r\nhello\r\n"), NULL, HTTP_EXTENSION },
        { "content too long", STR("5\r\nhello!\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_END },
        { "another byte for the CR", STR("5\r\nhello!\n0\r\n\r\n"), NULL,
          HTTP_CHUNK_END },
        { "content too short", STR("5\r\nhell\r\n0\r\n\r\n"), NULL, HTTP_CHUNK_END },
        { "bare LF behind the content", STR("5\r\nhello\n0\r\n\r\n"), NULL,
          HTTP_CHUNK_END },
        { "bare CR behind the content", STR("5\r\nhello\r0\r\n\r\n"), NULL,
          HTTP_CHUNK_END },
        { "16 digits", STR("0000000000000005\r\nhello\r\n"), NULL, HTTP_CHUNK_HUGE },
        { "two to the 64th plus 5", STR("10000000000000005\r\nhello\r\n"), NULL,
          HTTP_CHUNK_HUGE },
        { "a trailer without colon", STR("0\r\nA\r\n\r\n"), NULL, HTTP_TRAILER },
        { "a trailer without name", STR("0\r\n: a\r\n\r\n"), NULL, HTTP_TRAILER },
        { "a trailer with a space before its colon", STR("0\r\nA : b\r\n\r\n"), NULL,
          HTTP_TRAILER },
        { "a folded trailer", STR("0\r\nA: b\r\n c\r\n\r\n"), NULL, HTTP_TRAILER },
        { "NUL in a trailer", STR("0\r\nA: \0\r\n\r\n"), NULL, HTTP_TRAILER },
        { "bare LF in trailers", STR("0\r\nA: b\n\r\n"), NULL, HTTP_TRAILER },
        { "bare CR in trailers", STR("0\r\nA: b\rc\r\n\r\n"), NULL, HTTP_BARE_CR },
        { "bare LF for the last line", STR("0\r\n\n"), NULL, HTTP_TRAILER },
        { "bare CR for the last line", STR("0\r\n\rX"), NULL, HTTP_BARE_CR },
        { "the next request as a trailer", STR("0\r\n"), NULL, HTTP_TRAILER },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf in = { 0 }, out = { 0 }, want = { 0 };
        bool same;

        buf_add(&in, STR(CHUNKED));
        buf_add(&in, rows[i].bytes);
        buf_add(&in, STR(NEXT));
        buf_add(&want, str_from(rows[i].content));
        buf_add(&want, str_from(next));
        same = http_stream_same(&out, buf_str(&in), HTTP_REQUEST, WAYS);
        if (!rows[i].content) {
            buf_reset(&want);
            buf_printf(&want, "refused %s %u\n", http_refusal_name(rows[i].why),
                       http_refusal_status(rows[i].why));
        }
        if (!ok(same && str_ends(body_of(&out), buf_str(&want)) &&
                    (!rows[i].content || str_equal(body_of(&out), buf_str(&want))),
                "chunked: %s (%s)", rows[i].what, http_refusal_name(rows[i].why)))
            printf("# read as: %s\n", buf_cstr(&out));
    }
}

static void test_streams(void)
{
    const struct {
        const char *what;
        enum http_kind kind;
        bool to_head;
        str bytes;
        const char *read;
    } rows[] = {
        { "a body that is cut", HTTP_REQUEST, false,
          STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell"),
          "POST /\nrefused CUT 400\n" },
        { "chunks that are cut", HTTP_REQUEST, false, STR(CHUNKED "5\r\nhello\r\n"),
          "POST /\nrefused CUT 400\n" },
        { "trailers that are cut", HTTP_REQUEST, false, STR(CHUNKED "0\r\nA: b\r\n"),
          "POST /\nrefused CUT 400\n" },
        { "until the end", HTTP_RESPONSE, false, STR("HTTP/1.1 200 OK\r\n\r\nhello"),
          "200 OK 5\nclosed\n" },
        { "until the end, empty", HTTP_RESPONSE, false, STR("HTTP/1.0 200 OK\r\n\r\n"),
          "200 OK 0\nclosed\n" },
        { "a length that is cut", HTTP_RESPONSE, false,
          STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
          "200 OK\nrefused CUT 400\n" },
        { "100, then the answer", HTTP_RESPONSE, false,
          STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
              "hi"),
          "100 Continue 0\n200 OK 2\nopen\n" },
        { "204", HTTP_RESPONSE, false,
          STR("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
              "\r\n"),
          "204 No Content 0\n200 OK 0\nopen\n" },
        { "204 with a length of 0", HTTP_RESPONSE, false,
          STR("HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n"), "204 N 0\nopen\n" },
        { "204 that announces a body", HTTP_RESPONSE, false,
          STR("HTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\nhello"), "204 N 0\nclosed\n" },
        { "204 that announces chunks", HTTP_RESPONSE, false,
          STR("HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
          "204 N 0\nclosed\n" },
        { "304 with the length of what it does not send", HTTP_RESPONSE, false,
          STR("HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\nHTTP/1.1 304 N\r\n\r\n"),
          "304 N 0\n304 N 0\nopen\n" },
        { "answers to HEAD", HTTP_RESPONSE, true,
          STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              "HTTP/1.1 200 OK\r\n\r\n"),
          "200 OK 0\n200 OK 0\n200 OK 0\nopen\n" },
        { "a chunked answer", HTTP_RESPONSE, false,
          STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
              "5\r\nhello\r\n0\r\n\r\n"),
          "200 OK 5\nclosed\n" },
        { "GET with a body", HTTP_REQUEST, false,
          STR("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" NEXT),
          "GET / 2\nGET /next 0\nopen\n" },
        { "POST without one", HTTP_REQUEST, false,
          STR("POST / HTTP/1.1\r\nHost: a\r\n\r\n" NEXT),
          "POST / 0\nGET /next 0\nopen\n" },
        { "an empty line between two", HTTP_REQUEST, false,
          STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\n" NEXT),
          "POST / 2\nGET /next 0\nopen\n" },
        { "what follows the last one is not read", HTTP_REQUEST, false,
          STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" NEXT),
          "GET / 0\nclosed\n" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t good = 0;

        for (uint32_t seed = 0; seed < WAYS; seed++) {
            CLEANUP(buf_release) struct buf out = { 0 };

            http_stream_read(&out, rows[i].bytes, rows[i].kind, seed, true,
                             rows[i].to_head);
            good += str_is(buf_str(&out), rows[i].read);
        }
        ok(good == WAYS, "%s", rows[i].what);
    }
}

/* A body of `n` chunks of one byte with an extension of `extension` bytes each, then a
 * trailer: `trailers` bytes with its line end and the last line. */
static void add_chunks(struct buf *b, size_t n, size_t extension, size_t trailers)
{
    for (size_t i = 0; i < n; i++) {
        buf_add(b, extension ? STR("1;") : STR("1"));
        for (size_t k = 0; k < extension; k++)
            buf_add_char(b, 'e');
        buf_add(b, STR("\r\nx\r\n"));
    }
    buf_add(b, trailers ? STR("0\r\nT:") : STR("0\r\n"));
    for (size_t k = 6; k < trailers; k++)
        buf_add_char(b, 't');
    buf_add(b, trailers ? STR("\r\n\r\n") : STR("\r\n"));
}

static bool ends_with(size_t n, size_t extension, size_t trailers, const char *end)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    buf_add(&b, STR(CHUNKED));
    add_chunks(&b, n, extension, trailers);
    for (uint32_t seed = 0; seed < WAYS; seed++) {
        CLEANUP(buf_release) struct buf out = { 0 };

        http_stream_read(&out, buf_str(&b), HTTP_REQUEST, seed, true, false);
        if (!str_ends(buf_str(&out), str_from(end)))
            return false;
    }
    return true;
}

static void test_limits(void)
{
    const size_t many = HTTP_EXTENSIONS_MAX / HTTP_EXTENSION_MAX;

    ok(ends_with(1, HTTP_EXTENSION_MAX, 0, " 1\nopen\n"), "the longest extension");
    ok(ends_with(1, HTTP_EXTENSION_MAX + 1, 0, "refused EXTENSION_LONG 413\n"),
       "one byte more");
    ok(ends_with(many, HTTP_EXTENSION_MAX, 0, " 64\nopen\n"),
       "the longest extensions together");
    ok(ends_with(HTTP_EXTENSIONS_MAX, 1, 0, " 16384\nopen\n"), "or many short ones");
    ok(ends_with(HTTP_EXTENSIONS_MAX + 1, 1, 0, "refused EXTENSION_LONG 413\n"),
       "one byte more");
    ok(ends_with(1, 0, HTTP_TRAILERS_MAX, " 1\nopen\n"), "the longest trailers");
    ok(ends_with(1, 0, HTTP_TRAILERS_MAX + 1, "refused TRAILERS_LONG 431\n"),
       "one byte more");
    ok(ends_with(50000, 0, 0, " 50000\nopen\n"), "many chunks of one byte");
}

static void test_largest_chunk(void)
{
    struct http_head head = { .chunked = true, .keep_alive = true };
    struct http_body b;
    str in = STR("fffffffffffffff\r\nhello"), out;

    http_body_of_request(&b, &head);
    ok(http_body_feed(&b, &in, &out) == HTTP_MORE && str_is(out, "hello") && in.n == 0 &&
           b.left == ((uint64_t)1 << 60) - 1 - 5,
       "the largest chunk");
}

static void test_content_is_not_copied(void)
{
    static const char bytes[] = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET";
    struct http_head head = { .chunked = true, .keep_alive = true };
    str in = str_of(bytes, sizeof(bytes) - 1), out;
    struct http_body b;

    http_body_of_request(&b, &head);
    ok(http_body_feed(&b, &in, &out) == HTTP_MORE && out.p == bytes + 3 && out.n == 3 &&
           http_body_feed(&b, &in, &out) == HTTP_MORE && str_is(out, "de") &&
           http_body_feed(&b, &in, &out) == HTTP_DONE && out.n == 0 &&
           str_is(in, "GET") && b.reusable,
       "content is cut out of the bytes");
    ok(http_body_feed(&b, &in, &out) == HTTP_DONE && str_is(in, "GET") &&
           http_body_end(&b) == HTTP_DONE,
       "what is done takes no more");
}

int main(void)
{
    test_chunked_requests();
    test_streams();
    test_limits();
    test_largest_chunk();
    test_content_is_not_copied();
    return tap_done();
}
