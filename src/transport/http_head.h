/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_head - the head of an HTTP/1.x request or response, read strictly.
 *
 * Bytes are fed as they come; however they are cut, the result is the same. A head that
 * comes in one piece is not copied. What it says borrows from the bytes fed or from the
 * head's own copy: valid until the next feed, reset or release, and no longer than the
 * last bytes fed, unless http_head_keep() was called.
 *
 * A head that is HTTP_DONE has exactly one reading: at most one of Content-Length and
 * "Transfer-Encoding: chunked", one valid Host (HTTP/1.0 may have none), no bare CR or
 * LF, no folded line. One empty line before a request is passed over (RFC 9112, 2.2).
 */
#ifndef TRANSPORT_HTTP_HEAD_H
#define TRANSPORT_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "transport/http_grammar.h"

struct err;

#define HTTP_HEAD_MAX          ((size_t)64 << 10) /* with the empty line at its end */
#define HTTP_HEADER_MAX        ((size_t)16 << 10) /* one, without its line end */
#define HTTP_HEADERS_MAX       128
#define HTTP_STATUS_LINE_MAX   ((size_t)1 << 10)
#define HTTP_LENGTH_DIGITS_MAX 18 /* of Content-Length; cannot overflow */

enum http_kind {
    HTTP_REQUEST,
    HTTP_RESPONSE,
};

struct http_span { /* of the head */
    uint32_t at, n;
};

struct http_header {
    struct http_span name, value;
};

/* The first group is valid when the verdict is HTTP_DONE. */
struct http_head {
    str method, target;       /* of a request */
    struct http_target parts; /* of its target */
    str host;                 /* as sent; NULL pointer when HTTP/1.0 has none */
    unsigned status;          /* of a response */
    unsigned minor;           /* of the version: 0 or 1 */
    str reason;
    size_t count; /* of headers */
    bool chunked, has_length;
    uint64_t length;
    bool keep_alive;      /* the sender will use the connection again */
    bool expect_continue; /* the sender waits for 100 before it sends the body */

    enum http_refusal refusal;
    enum http_verdict verdict;

    enum http_kind kind; /* from here on: its own affair */
    uint32_t marks; /* of the names of all headers: what is not marked is not there */
    bool started, blank; /* the first line has come; an empty one before it */
    size_t line, at;     /* where the present line begins, how far it is read */
    struct http_span first[2];
    struct http_header *headers;
    size_t room; /* for headers */
    str block;   /* all that was read */
    struct buf own;
};

void http_head_init(struct http_head *h, enum http_kind kind);

/* One on the heap, for who idles without one most of the time: *h if there is one, else
 * made; NULL without memory. http_head_free() sets *h to NULL. */
struct http_head *http_head_make(struct http_head **h, enum http_kind kind);
void http_head_free(struct http_head **h);

void http_head_reset(struct http_head *h); /* for the next head; keeps the memory */

/* Frees; afterwards it is as after init. For connections that idle, too: a head that came
 * in pieces leaves up to HTTP_HEAD_MAX bytes behind. Safe on a zeroed or released one. */
void http_head_release(struct http_head *h);

/* Read on. *used is how much of `in` belongs to the head: all of it, or up to its end
 * when HTTP_DONE. A head that is done or refused stays so until it is reset. */
enum http_verdict http_head_feed(struct http_head *h, str in, size_t *used);

/* Copy a head that is done, so that it outlives the bytes fed. */
MUST_CHECK int http_head_keep(struct http_head *h, struct err *err);

/* Header number i of `count`, in order; names as they were sent. */
str http_head_name(const struct http_head *h, size_t i);
str http_head_value(const struct http_head *h, size_t i);

/* The value of the first header of that name in any case; NULL pointer when there is
 * none. *many, when asked for, is how many there are. */
str http_head_find_str(const struct http_head *h, str name, size_t *many);

/* The bit of a name in `marks`, the same in any case. */
static inline uint32_t http_name_mark(str name)
{
    return 1u << ((name.n * 5 + ((uint8_t)name.p[0] | 0x20u)) % 32);
}

/* Most headers that are looked for are not there. */
static inline str http_head_find(const struct http_head *h, const char *name,
                                 size_t *many)
{
    if (h->marks & http_name_mark(str_from(name)))
        return http_head_find_str(h, str_from(name), many);
    if (many)
        *many = 0;
    return (str){ NULL, 0 };
}

/* Walk the elements of a list that may be spread over several headers of one name:
 *     struct http_list l = { 0 };
 *     while (http_list_next(&l, h, "Accept", &item)) …
 * Elements come trimmed and not empty; a comma in a quoted string does not separate. */
struct http_list {
    size_t next;
    str rest;
};

bool http_list_next(struct http_list *l, const struct http_head *h, const char *name,
                    str *item);

/* The element without its parameters: "text/html" of "text/html;q=0.5". */
str http_item_word(str item);

/* True when that list has this word, in any case, with or without parameters. */
bool http_head_lists(const struct http_head *h, const char *name, const char *word);

/* Is its content of this type, with or without parameters; is it compressed, or such? */
bool http_head_is_type(const struct http_head *h, const char *type);
bool http_head_is_encoded(const struct http_head *h);

#endif
