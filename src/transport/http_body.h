/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_body - where the body of an HTTP/1.1 message begins and ends.
 *
 * Fed with the bytes behind the head as they come, it cuts the content out of them
 * without copying. However the bytes are cut, the content and the end are the same. Chunk
 * extensions and trailers are checked, counted and passed over: nobody may act on them.
 */
#ifndef TRANSPORT_HTTP_BODY_H
#define TRANSPORT_HTTP_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "transport/http_grammar.h"

struct http_head;

#define HTTP_CHUNK_DIGITS_MAX 15                 /* of a chunk's size; cannot overflow */
#define HTTP_EXTENSION_MAX    256                /* of one chunk */
#define HTTP_EXTENSIONS_MAX   ((size_t)16 << 10) /* of one body */
#define HTTP_TRAILERS_MAX     ((size_t)16 << 10) /* with their line ends */

enum http_framing {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    HTTP_BODY_UNTIL_CLOSE, /* of a response; such a connection cannot be used again */
};

enum http_body_state {
    HTTP_BODY_SIZE,      /* at the first digit of a chunk's size */
    HTTP_BODY_DIGITS,    /* behind it */
    HTTP_BODY_EXTENSION, /* behind a ';' */
    HTTP_BODY_SIZE_LF,   /* behind the CR of that line */
    HTTP_BODY_CONTENT,
    HTTP_BODY_CHUNK_CR, /* behind a chunk's content */
    HTTP_BODY_CHUNK_LF,
    HTTP_BODY_TRAILER, /* at the first byte of a line; trailers from here on */
    HTTP_BODY_TRAILER_NAME,
    HTTP_BODY_TRAILER_VALUE,
    HTTP_BODY_TRAILER_LF,
    HTTP_BODY_LAST_LF, /* behind the CR of the empty line */
};

struct http_body {
    enum http_framing framing;
    enum http_refusal refusal;
    enum http_verdict verdict;
    bool reusable; /* another message can follow on this connection */
    enum http_body_state state;
    uint64_t left;       /* of the length, or of the chunk */
    unsigned digits;     /* of the chunk's size so far */
    uint32_t extension;  /* bytes, of this chunk */
    uint32_t extensions; /* bytes, of all */
    uint32_t trailers;   /* bytes */
};

/* The body that belongs to a head that is HTTP_DONE. A message without one is done at
 * once. */
void http_body_of_request(struct http_body *b, const struct http_head *request);

/* `to_head`: the request was HEAD, so that there is no body whatever the headers say.
 * 1xx, 204 and 304 have none either; where 1xx and 204 announce one all the same, the
 * connection is not reusable. */
void http_body_of_response(struct http_body *b, const struct http_head *response,
                           bool to_head);

/* Take from the front of *in up to the next span of content, which is *out (empty when
 * there was none). HTTP_MORE with *in not empty: call again. After HTTP_DONE *in is what
 * follows the body. */
enum http_verdict http_body_feed(struct http_body *b, str *in, str *out);

/* The connection ended: HTTP_DONE when the body may end so, or had ended. */
enum http_verdict http_body_end(struct http_body *b);

#endif
