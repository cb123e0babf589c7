/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_body.h"

#include "transport/http_head.h"

static void set_framing(struct http_body *b, const struct http_head *h,
                        enum http_framing otherwise)
{
    *b = (struct http_body){
        .framing = h->chunked      ? HTTP_BODY_CHUNKED
                   : h->has_length ? HTTP_BODY_LENGTH
                                   : otherwise,
        .state = h->chunked ? HTTP_BODY_SIZE : HTTP_BODY_CONTENT,
        .left = h->has_length ? h->length : 0,
    };
    b->reusable = h->keep_alive && b->framing != HTTP_BODY_UNTIL_CLOSE;
    if (b->framing == HTTP_BODY_NONE || (h->has_length && b->left == 0))
        b->verdict = HTTP_DONE;
}

void http_body_of_request(struct http_body *b, const struct http_head *request)
{
    set_framing(b, request, HTTP_BODY_NONE);
}

void http_body_of_response(struct http_body *b, const struct http_head *response,
                           bool to_head)
{
    bool never = response->status < 200 || response->status == 204;
    bool announced = response->chunked || response->length > 0;

    set_framing(b, response, HTTP_BODY_UNTIL_CLOSE);
    if (!never && !to_head && response->status != 304)
        return;
    *b = (struct http_body){ .framing = HTTP_BODY_NONE,
                             .verdict = HTTP_DONE,
                             .reusable = response->keep_alive && !(never && announced) };
}

static void refuse(struct http_body *b, enum http_refusal why)
{
    b->refusal = why;
    b->verdict = HTTP_REFUSED;
}

/* -1 for what is no digit. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void take_digit(struct http_body *b, char c)
{
    int digit = hex_digit(c);

    if (digit < 0)
        refuse(b, HTTP_CHUNK_SIZE);
    else if (b->digits == HTTP_CHUNK_DIGITS_MAX)
        refuse(b, HTTP_CHUNK_HUGE);
    else {
        b->left = b->left << 4 | (unsigned)digit;
        b->digits++;
        b->state = HTTP_BODY_DIGITS;
    }
}

static void begin_chunk(struct http_body *b)
{
    b->left = 0;
    b->digits = 0;
    b->extension = 0;
    b->state = HTTP_BODY_SIZE;
}

/* The byte that must follow: `wanted`, or what is wrong without it. */
static void expect(struct http_body *b, char c, char wanted, enum http_body_state next,
                   enum http_refusal otherwise)
{
    if (c == wanted)
        b->state = next;
    else
        refuse(b, otherwise);
}

static void take_extension(struct http_body *b, char c)
{
    if (c == '\r')
        b->state = HTTP_BODY_SIZE_LF;
    else if (!http_is(c, HTTP_TEXT))
        refuse(b, HTTP_EXTENSION);
    else if (++b->extension > HTTP_EXTENSION_MAX || ++b->extensions > HTTP_EXTENSIONS_MAX)
        refuse(b, HTTP_EXTENSION_LONG);
}

static void take_trailer(struct http_body *b, char c)
{
    bool first = b->state == HTTP_BODY_TRAILER;

    if (first && c == '\r')
        b->state = HTTP_BODY_LAST_LF;
    else if (b->state == HTTP_BODY_TRAILER_VALUE && c == '\r')
        b->state = HTTP_BODY_TRAILER_LF;
    else if (b->state == HTTP_BODY_TRAILER_VALUE && http_is(c, HTTP_TEXT))
        ;
    else if (b->state != HTTP_BODY_TRAILER_VALUE && http_is(c, HTTP_TOKEN))
        b->state = HTTP_BODY_TRAILER_NAME;
    else if (b->state == HTTP_BODY_TRAILER_NAME && c == ':')
        b->state = HTTP_BODY_TRAILER_VALUE;
    else
        refuse(b, HTTP_TRAILER);
}

/* One byte of what stands between the contents of chunks. */
static void take_byte(struct http_body *b, char c)
{
    if (b->state >= HTTP_BODY_TRAILER && ++b->trailers > HTTP_TRAILERS_MAX) {
        refuse(b, HTTP_TRAILERS_LONG);
        return;
    }
    switch (b->state) {
    case HTTP_BODY_SIZE:
        take_digit(b, c);
        break;
    case HTTP_BODY_DIGITS:
        if (c == '\r')
            b->state = HTTP_BODY_SIZE_LF;
        else if (c == ';')
            b->state = HTTP_BODY_EXTENSION;
        else
            take_digit(b, c);
        break;
    case HTTP_BODY_EXTENSION:
        take_extension(b, c);
        break;
    case HTTP_BODY_SIZE_LF:
        expect(b, c, '\n', b->left ? HTTP_BODY_CONTENT : HTTP_BODY_TRAILER, HTTP_BARE_CR);
        break;
    case HTTP_BODY_CONTENT:
        break; /* never here */
    case HTTP_BODY_CHUNK_CR:
        expect(b, c, '\r', HTTP_BODY_CHUNK_LF, HTTP_CHUNK_END);
        break;
    case HTTP_BODY_CHUNK_LF:
        if (c == '\n')
            begin_chunk(b);
        else
            refuse(b, HTTP_CHUNK_END);
        break;
    case HTTP_BODY_TRAILER:
    case HTTP_BODY_TRAILER_NAME:
    case HTTP_BODY_TRAILER_VALUE:
        take_trailer(b, c);
        break;
    case HTTP_BODY_TRAILER_LF:
        expect(b, c, '\n', HTTP_BODY_TRAILER, HTTP_BARE_CR);
        break;
    case HTTP_BODY_LAST_LF:
        if (c == '\n')
            b->verdict = HTTP_DONE;
        else
            refuse(b, HTTP_BARE_CR);
        break;
    }
}

static void take_content(struct http_body *b, str *in, str *out)
{
    bool counted = b->framing != HTTP_BODY_UNTIL_CLOSE;

    *out = counted && in->n > b->left ? str_first(*in, (size_t)b->left) : *in;
    *in = str_skip(*in, out->n);
    if (!counted)
        return;
    b->left -= out->n;
    if (b->left)
        return;
    if (b->framing == HTTP_BODY_CHUNKED)
        b->state = HTTP_BODY_CHUNK_CR;
    else
        b->verdict = HTTP_DONE;
}

enum http_verdict http_body_feed(struct http_body *b, str *in, str *out)
{
    *out = (str){ NULL, 0 };
    while (b->verdict == HTTP_MORE && in->n && out->n == 0) {
        if (b->state == HTTP_BODY_CONTENT) {
            take_content(b, in, out);
        } else {
            take_byte(b, in->p[0]);
            *in = str_skip(*in, 1);
        }
    }
    return b->verdict;
}

enum http_verdict http_body_end(struct http_body *b)
{
    if (b->verdict == HTTP_MORE && b->framing == HTTP_BODY_UNTIL_CLOSE)
        b->verdict = HTTP_DONE;
    else if (b->verdict == HTTP_MORE)
        refuse(b, HTTP_CUT);
    return b->verdict;
}
