/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_grammar - what the pieces of HTTP/1.1 may look like, and why one is refused.
 *
 * One strict reading, shared by what we parse and what we write (RFC 9110, 9112, 3986).
 * Where a standard lets a recipient repair something that two recipients may repair
 * differently, we refuse: a proxy must never see another message than its neighbours.
 */
#ifndef TRANSPORT_HTTP_GRAMMAR_H
#define TRANSPORT_HTTP_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* What feeding a parser ends with. */
enum http_verdict {
    HTTP_MORE,    /* the end is not here yet */
    HTTP_DONE,    /* complete */
    HTTP_REFUSED, /* see its refusal; nothing more can be read from this connection */
};

/* name, status to answer a request with, sentence. A response that is refused is always
 * answered with 502 to whoever asked for it. */
#define HTTP_REFUSALS(X)                                                                 \
    X(NONE, 0, "nothing is wrong")                                                       \
    X(BARE_LF, 400, "a line ends in LF without CR")                                      \
    X(BARE_CR, 400, "a CR is not followed by LF")                                        \
    X(CONTROL, 400, "there is a control character in the head")                          \
    X(METHOD, 400, "the method is not a word of capital letters")                        \
    X(CONNECT, 501, "this is no tunnel: CONNECT is not supported")                       \
    X(TARGET, 400, "the request target is neither a path nor an http URL")               \
    X(TARGET_LONG, 414, "the request target is too long")                                \
    X(DOT_SEGMENT, 400, "the path has a '.' or '..' segment")                            \
    X(VERSION, 400, "the request line does not end in a version as 'HTTP/1.1'")          \
    X(VERSION_UNKNOWN, 505, "the version is neither HTTP/1.0 nor HTTP/1.1")              \
    X(STATUS_LINE, 400, "the status line is not as 'HTTP/1.1 200 OK'")                   \
    X(FOLD, 400, "a header continues on a second line")                                  \
    X(NO_COLON, 400, "a header has no colon")                                            \
    X(NAME, 400, "the name of a header is not a token")                                  \
    X(NAME_SPACE, 400, "there is white space between a header's name and its colon")     \
    X(HEADER_LONG, 431, "one header is too long")                                        \
    X(HEAD_LONG, 431, "the headers are too long")                                        \
    X(HEADERS_MANY, 431, "there are too many headers")                                   \
    X(LENGTH, 400, "Content-Length is not a plain decimal number")                       \
    X(LENGTH_HUGE, 413, "Content-Length is too large")                                   \
    X(LENGTH_TWICE, 400, "there is more than one Content-Length")                        \
    X(LENGTH_AND_CODING, 400, "there is a Content-Length beside a Transfer-Encoding")    \
    X(CODING, 501, "Transfer-Encoding is not exactly 'chunked'")                         \
    X(CODING_TWICE, 400, "there is more than one Transfer-Encoding")                     \
    X(CODING_OLD, 400, "HTTP/1.0 has no Transfer-Encoding")                              \
    X(HOST_MISSING, 400, "there is no Host")                                             \
    X(HOST_TWICE, 400, "there is more than one Host")                                    \
    X(HOST, 400, "Host is not a name or address with or without a port")                 \
    X(HOST_DIFFERS, 400, "Host is not the host of the request target")                   \
    X(EXPECT, 417, "nothing but 100-continue can be expected")                           \
    X(CHUNK_SIZE, 400, "the size of a chunk is not a plain hexadecimal number")          \
    X(CHUNK_HUGE, 413, "a chunk is too large")                                           \
    X(CHUNK_END, 400, "a chunk does not end where its size says")                        \
    X(EXTENSION, 400, "there is a control character in a chunk extension")               \
    X(EXTENSION_LONG, 413, "the chunk extensions are too long")                          \
    X(TRAILER, 400, "a trailer is not a header")                                         \
    X(TRAILERS_LONG, 431, "the trailers are too long")                                   \
    X(CUT, 400, "the connection ended in the middle of a message")                       \
    X(NO_MEMORY, 503, "there is no memory for the head")

enum http_refusal {
#define X(name, status, why) HTTP_##name,
    HTTP_REFUSALS(X)
#undef X
};

const char *http_refusal_name(enum http_refusal r); /* "BARE_LF" */
const char *http_refusal_why(enum http_refusal r);  /* the sentence */
unsigned http_refusal_status(enum http_refusal r);

/* Classes of bytes, as bits; CR and LF are in none. */
enum http_class {
    HTTP_TEXT = 1,       /* of a header's value: printable, space, tab, above ASCII */
    HTTP_TOKEN = 2,      /* of a name */
    HTTP_CAPITAL = 4,    /* of a method */
    HTTP_PATH = 8,       /* of a path, with '%' and '/' */
    HTTP_QUERY = 16,     /* of a query */
    HTTP_HOST_NAME = 32, /* of a registered name or an IPv4 address */
    HTTP_DIGIT = 64,
};

extern const uint8_t http_classes[256];

static inline bool http_is(char c, enum http_class wanted)
{
    return http_classes[(uint8_t)c] & wanted;
}

bool http_all(str s, enum http_class wanted); /* every byte; true when empty */
size_t http_text_length(str s);               /* bytes before the first that is no text */

/* Around a header's value only spaces go: nginx, for one, takes a tab for a part of it,
 * so that a length or coding behind a tab has two readings and must have none. */
str http_trim_spaces(str s);
str http_trim(str s);          /* without spaces and tabs: the words of a list */
bool http_token_valid(str s);  /* the name of a header, a list's word */
bool http_value_valid(str s);  /* a header's value, without its spaces; may be empty */
bool http_method_valid(str s); /* at most HTTP_METHOD_MAX capital letters and '-' */

#define HTTP_METHOD_MAX    32
#define HTTP_TARGET_MAX    ((size_t)8 << 10)
#define HTTP_HOST_NAME_MAX 255

/* The two forms of a target that we take: "/path?query", or the same behind
 * "http://authority" (or https). Everything borrows from the target; `path` is "/" where
 * a URL has none; `authority` and `query` have a NULL pointer where there is none. */
struct http_target {
    str authority, path, query;
};

/* HTTP_NONE, or why it is none. The path is not decoded. What a browser leaves bare in
 * a URL is taken; a broken or NUL escape in the path, a '#' and dot segments are not. */
enum http_refusal http_target_parse(struct http_target *t, str target);

/* "name", "1.2.3.4:80", "[::1]:8080". False when it is none; *port is 0 when there is
 * none. The name of an IPv6 address comes without its brackets. */
bool http_host_parse(str *name, uint16_t *port, str host);

#endif
