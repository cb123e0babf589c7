/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_head.h"

#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"

#define VERSION_SIZE     (sizeof("HTTP/1.1") - 1)
#define REQUEST_LINE_MAX (HTTP_METHOD_MAX + 1 + HTTP_TARGET_MAX + 1 + VERSION_SIZE)
#define HEADERS_AT_FIRST 16

void http_head_init(struct http_head *h, enum http_kind kind)
{
    *h = (struct http_head){ .kind = kind, .own = { .max = HTTP_HEAD_MAX } };
}

void http_head_reset(struct http_head *h)
{
    struct http_head empty = {
        .kind = h->kind, .headers = h->headers, .room = h->room, .own = h->own
    };

    buf_reset(&empty.own);
    *h = empty;
}

void http_head_release(struct http_head *h)
{
    buf_release(&h->own);
    free(h->headers);
    http_head_init(h, h->kind);
}

struct http_head *http_head_make(struct http_head **h, enum http_kind kind)
{
    if (!*h && (*h = malloc(sizeof(**h))))
        http_head_init(*h, kind);
    return *h;
}

void http_head_free(struct http_head **h)
{
    if (*h)
        http_head_release(*h);
    free(*h);
    *h = NULL;
}

static int refuse(struct http_head *h, enum http_refusal why)
{
    h->refusal = why;
    h->verdict = HTTP_REFUSED;
    return -1;
}

static str text_of(const struct http_head *h, struct http_span s)
{
    return str_of(h->block.p + s.at, s.n);
}

static struct http_span span_of(const struct http_head *h, str s)
{
    return (struct http_span){ (uint32_t)(s.p - h->block.p), (uint32_t)s.n };
}

str http_head_name(const struct http_head *h, size_t i)
{
    return text_of(h, h->headers[i].name);
}

str http_head_value(const struct http_head *h, size_t i)
{
    return text_of(h, h->headers[i].value);
}

/* In any case, but most are written as we write them. */
static bool is_name(str a, str b)
{
    return a.n == b.n && (memcmp(a.p, b.p, a.n) == 0 || str_equal_nocase(a, b));
}

str http_head_find_str(const struct http_head *h, str name, size_t *many)
{
    str found = { NULL, 0 };
    size_t count = 0;

    for (size_t i = 0; i < h->count; i++) {
        if (!is_name(http_head_name(h, i), name))
            continue;
        if (count++ == 0)
            found = http_head_value(h, i);
        if (!many)
            break;
    }
    if (many)
        *many = count;
    return found;
}

/* The first line */

static int take_version(struct http_head *h, str version)
{
    bool formed = version.n == VERSION_SIZE && str_starts(version, STR("HTTP/")) &&
                  http_is(version.p[5], HTTP_DIGIT) && version.p[6] == '.' &&
                  http_is(version.p[7], HTTP_DIGIT);

    if (!formed)
        return refuse(h, h->kind == HTTP_REQUEST ? HTTP_VERSION : HTTP_STATUS_LINE);
    if (version.p[5] != '1' || version.p[7] > '1')
        return refuse(h, HTTP_VERSION_UNKNOWN);
    h->minor = version.p[7] == '1';
    return 0;
}

/* Take the word before the next space off *rest; all of it when there is no space. */
static str take_word(str *rest)
{
    const char *space = rest->n ? memchr(rest->p, ' ', rest->n) : NULL;
    str word = space ? str_first(*rest, (size_t)(space - rest->p)) : *rest;

    *rest = str_skip(*rest, word.n + 1);
    return word;
}

static int take_request_line(struct http_head *h, str line)
{
    str method = take_word(&line), target = take_word(&line);
    enum http_refusal r;

    if (!http_method_valid(method))
        return refuse(h, HTTP_METHOD);
    if (target.n > HTTP_TARGET_MAX)
        return refuse(h, HTTP_TARGET_LONG);
    if (str_is(method, "CONNECT"))
        return refuse(h, HTTP_CONNECT);
    if ((r = http_target_parse(&h->parts, target)) != HTTP_NONE)
        return refuse(h, r);
    h->first[0] = span_of(h, method);
    h->first[1] = span_of(h, target);
    return take_version(h, line);
}

static int take_status_line(struct http_head *h, str line)
{
    str version = take_word(&line), status = take_word(&line);
    uint64_t code;

    if (take_version(h, version) < 0)
        return -1;
    if (status.n != 3 || !u64_parse(&code, status) || code < 100 || code > 599)
        return refuse(h, HTTP_STATUS_LINE);
    h->status = (unsigned)code;
    if (line.n)
        h->first[0] = span_of(h, line);
    return 0;
}

/* Headers */

static int make_room(struct http_head *h)
{
    size_t room = h->room ? 2 * h->room : HEADERS_AT_FIRST;
    struct http_header *more;

    if (h->count == HTTP_HEADERS_MAX)
        return refuse(h, HTTP_HEADERS_MANY);
    if (h->count < h->room)
        return 0;
    more = realloc(h->headers, room * sizeof(*more));
    if (!more)
        return refuse(h, HTTP_NO_MEMORY);
    h->headers = more;
    h->room = room;
    return 0;
}

static int take_header(struct http_head *h, str line)
{
    const char *colon = memchr(line.p, ':', line.n);
    str name, value;

    if (line.p[0] == ' ' || line.p[0] == '\t')
        return refuse(h, HTTP_FOLD);
    if (!colon)
        return refuse(h, HTTP_NO_COLON);
    name = str_first(line, (size_t)(colon - line.p));
    value = http_trim_spaces(str_of(colon + 1, line.n - name.n - 1));
    if (!http_token_valid(name))
        return refuse(h, http_token_valid(http_trim(name)) ? HTTP_NAME_SPACE : HTTP_NAME);
    if (make_room(h) < 0)
        return -1;
    h->headers[h->count++] = (struct http_header){ span_of(h, name), span_of(h, value) };
    h->marks |= http_name_mark(name);
    return 0;
}

/* What the headers mean together */

static int take_length(struct http_head *h, str length, size_t many)
{
    if (many == 0)
        return 0;
    if (many > 1)
        return refuse(h, HTTP_LENGTH_TWICE);
    if (length.n > HTTP_LENGTH_DIGITS_MAX && http_all(length, HTTP_DIGIT))
        return refuse(h, HTTP_LENGTH_HUGE);
    if (!u64_parse(&h->length, length))
        return refuse(h, HTTP_LENGTH);
    h->has_length = true;
    return 0;
}

static int take_framing(struct http_head *h)
{
    size_t lengths, codings;
    str length = http_head_find(h, "Content-Length", &lengths);
    str coding = http_head_find(h, "Transfer-Encoding", &codings);

    if (lengths && codings)
        return refuse(h, HTTP_LENGTH_AND_CODING);
    if (codings > 1)
        return refuse(h, HTTP_CODING_TWICE);
    if (codings && h->minor == 0)
        return refuse(h, HTTP_CODING_OLD);
    if (codings && !str_equal_nocase(coding, STR("chunked")))
        return refuse(h, HTTP_CODING);
    h->chunked = codings == 1;
    return take_length(h, length, lengths);
}

static int take_host(struct http_head *h)
{
    size_t many;
    uint16_t port;
    str name, host = http_head_find(h, "Host", &many);

    if (many > 1)
        return refuse(h, HTTP_HOST_TWICE);
    if (many == 0 && h->minor > 0)
        return refuse(h, HTTP_HOST_MISSING);
    if (many && !http_host_parse(&name, &port, host))
        return refuse(h, HTTP_HOST);
    if (many && h->parts.authority.p && !str_equal_nocase(host, h->parts.authority))
        return refuse(h, HTTP_HOST_DIFFERS);
    h->host = host;
    return 0;
}

static int take_expectation(struct http_head *h)
{
    size_t many;
    str what = http_head_find(h, "Expect", &many);

    if (many == 0 || h->minor == 0) /* RFC 9110, 10.1.1: HTTP/1.0 expects nothing */
        return 0;
    if (many > 1 || !str_equal_nocase(what, STR("100-continue")))
        return refuse(h, HTTP_EXPECT);
    h->expect_continue = true;
    return 0;
}

/* A head that came in pieces has moved since its first line was read. */
static void set_spans(struct http_head *h)
{
    if (h->kind == HTTP_RESPONSE) {
        h->reason = text_of(h, h->first[0]);
        return;
    }
    h->method = text_of(h, h->first[0]);
    h->target = text_of(h, h->first[1]);
    if (h->own.n)
        http_target_parse(&h->parts, h->target);
}

static int finish(struct http_head *h)
{
    set_spans(h);
    if (take_framing(h) < 0)
        return -1;
    if (h->kind == HTTP_REQUEST && (take_host(h) < 0 || take_expectation(h) < 0))
        return -1;
    h->keep_alive = !http_head_lists(h, "Connection", "close") &&
                    (h->minor > 0 || http_head_lists(h, "Connection", "keep-alive"));
    h->verdict = HTTP_DONE;
    return 0;
}

/* Lines */

static int take_line(struct http_head *h, str line)
{
    if (h->started)
        return line.n ? take_header(h, line) : finish(h);
    if (line.n == 0 && h->kind == HTTP_REQUEST && !h->blank) {
        h->blank = true;
        return 0;
    }
    h->started = true;
    return h->kind == HTTP_REQUEST ? take_request_line(h, line)
                                   : take_status_line(h, line);
}

static size_t line_max(const struct http_head *h)
{
    if (h->started)
        return HTTP_HEADER_MAX;
    return h->kind == HTTP_REQUEST ? REQUEST_LINE_MAX : HTTP_STATUS_LINE_MAX;
}

/* The line is longer than any that we take: which part of it is? */
static int refuse_length(struct http_head *h)
{
    str line = str_skip(h->block, h->line);

    if (h->started)
        return refuse(h, HTTP_HEADER_LONG);
    if (h->kind == HTTP_RESPONSE)
        return refuse(h, HTTP_STATUS_LINE);
    return refuse(h,
                  http_method_valid(take_word(&line)) ? HTTP_TARGET_LONG : HTTP_METHOD);
}

static int refuse_byte(struct http_head *h, char c)
{
    return refuse(h, c == '\n' ? HTTP_BARE_LF : c == '\r' ? HTTP_BARE_CR : HTTP_CONTROL);
}

/* Read to the end of the present line: 1 when it is there, 0 when it is not. What is
 * decided depends on the bytes up to `at` only, never on how many more there are. */
static int scan_line(struct http_head *h)
{
    const char *p = h->block.p;
    size_t stop = h->line + line_max(h), at = h->at;

    if (stop > h->block.n)
        stop = h->block.n;
    at += http_text_length(str_of(p + at, stop - at));
    h->at = at;
    if (at == h->block.n)
        return 0;
    if (http_is(p[at], HTTP_TEXT))
        return refuse_length(h);
    if (p[at] != '\r')
        return refuse_byte(h, p[at]);
    if (at + 1 == h->block.n)
        return 0;
    return p[at + 1] == '\n' ? 1 : refuse_byte(h, '\r');
}

static void scan(struct http_head *h)
{
    while (h->verdict == HTTP_MORE && scan_line(h) > 0) {
        str line = str_of(h->block.p + h->line, h->at - h->line);

        h->at += 2;
        h->line = h->at;
        take_line(h, line);
    }
    if (h->verdict == HTTP_MORE && h->block.n == HTTP_HEAD_MAX)
        refuse(h, HTTP_HEAD_LONG);
}

enum http_verdict http_head_feed(struct http_head *h, str in, size_t *used)
{
    size_t had = h->own.n;
    str room = str_first(in, HTTP_HEAD_MAX - had);

    *used = 0;
    if (h->verdict != HTTP_MORE || in.n == 0)
        return h->verdict;
    if (had)
        buf_add(&h->own, room);
    if (h->own.failed)
        refuse(h, HTTP_NO_MEMORY);
    h->block = had ? buf_str(&h->own) : room;
    scan(h);
    *used = h->verdict == HTTP_DONE ? h->at - had : in.n;
    if (h->verdict != HTTP_MORE)
        return h->verdict;
    if (!had)
        buf_add(&h->own, room);
    if (h->own.failed)
        refuse(h, HTTP_NO_MEMORY);
    h->block = buf_str(&h->own);
    return h->verdict;
}

int http_head_keep(struct http_head *h, struct err *err)
{
    if (h->own.n)
        return 0;
    buf_add(&h->own, str_first(h->block, h->at));
    if (buf_check(&h->own, "the head", err) < 0)
        return -1;
    h->block = buf_str(&h->own);
    set_spans(h);
    if (h->host.p)
        h->host = http_head_find(h, "Host", NULL);
    return 0;
}

/* Lists */

/* How much there is before a comma that is not in a quoted string. */
static size_t item_length(str s)
{
    bool quoted = false;
    size_t n = 0;

    while (n < s.n && (quoted || s.p[n] != ',')) {
        if (quoted && s.p[n] == '\\' && n + 1 < s.n)
            n++;
        else if (s.p[n] == '"')
            quoted = !quoted;
        n++;
    }
    return n;
}

/* Take one element off *rest, which is not empty. */
static str take_item(str *rest)
{
    const char *comma = memchr(rest->p, ',', rest->n);
    size_t n = comma ? (size_t)(comma - rest->p) : rest->n;
    str item;

    if (memchr(rest->p, '"', n))
        n = item_length(*rest);
    item = str_first(*rest, n);
    *rest = str_skip(*rest, n + 1);
    return http_trim(item);
}

bool http_list_next(struct http_list *l, const struct http_head *h, const char *name,
                    str *item)
{
    str wanted = str_from(name);

    if (!(h->marks & http_name_mark(wanted)))
        return false;
    for (;;) {
        while (l->rest.n) {
            *item = take_item(&l->rest);
            if (item->n)
                return true;
        }
        while (l->next < h->count && !is_name(http_head_name(h, l->next), wanted))
            l->next++;
        if (l->next == h->count)
            return false;
        l->rest = http_head_value(h, l->next++);
    }
}

str http_item_word(str item)
{
    const char *end = item.n ? memchr(item.p, ';', item.n) : NULL;

    return http_trim(end ? str_first(item, (size_t)(end - item.p)) : item);
}

bool http_head_lists(const struct http_head *h, const char *name, const char *word)
{
    struct http_list l = { 0 };
    str item;

    while (http_list_next(&l, h, name, &item)) {
        if (str_equal_nocase(http_item_word(item), str_from(word)))
            return true;
    }
    return false;
}

bool http_head_is_type(const struct http_head *h, const char *type)
{
    return str_equal_nocase(http_item_word(http_head_find(h, "Content-Type", NULL)),
                            str_from(type));
}

bool http_head_is_encoded(const struct http_head *h)
{
    str coding = http_head_find(h, "Content-Encoding", NULL);

    return coding.n && !str_equal_nocase(coding, STR("identity"));
}
