/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sse - Server-Sent Events (the HTML standard's text/event-stream), read and written.
 *
 * The data of an event is handed on in spans as it comes, because an event may be larger
 * than memory; its type, id and retry time are known at its end. However the bytes are
 * cut, the events are the same. Bytes of data are passed as they are, valid UTF-8 or not.
 */
#ifndef TRANSPORT_SSE_H
#define TRANSPORT_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"

struct err;

#define SSE_DATA_MAX  ((uint64_t)1 << 30) /* of one event, unless said otherwise */
#define SSE_TYPE_MAX  256
#define SSE_ID_MAX    ((size_t)4 << 10)
#define SSE_RETRY_MAX 86400000u /* ms; what is longer counts as this */

enum sse_token {
    SSE_MORE,    /* all of the input is used */
    SSE_DATA,    /* the next bytes of the present event's data */
    SSE_COMMENT, /* a line that says nothing: the other side is alive */
    SSE_EVENT,   /* the end of a block: see `type`, `id`, `retry`, `has_…` */
    SSE_REFUSED, /* one of the limits; the stream is of no use any more */
};

enum sse_state {
    SSE_LINE, /* at the first byte of a line */
    SSE_IN_NAME,
    SSE_COLON, /* behind it: one space is not part of the value */
    SSE_IN_VALUE,
    SSE_IN_COMMENT,
    SSE_IN_NOTHING, /* a field that nobody knows */
};

enum sse_field {
    SSE_FIELD_NONE,
    SSE_FIELD_DATA,
    SSE_FIELD_TYPE,
    SSE_FIELD_ID,
    SSE_FIELD_RETRY,
};

struct sse {
    /* Valid at SSE_EVENT, until the next call. */
    struct buf type; /* empty: "message" */
    struct buf id;   /* the last one of the stream, of this block or one before it */
    bool has_data;   /* without it a block is no event, but its id and retry count */
    bool has_id, has_retry; /* this block has one */
    uint32_t retry;         /* ms */

    enum sse_state state; /* from here on: its own affair */
    enum sse_field field;
    uint64_t data, data_max; /* bytes of this event */
    bool started, ended, after_cr, newline, refused;
    unsigned mark;    /* bytes of the byte order mark so far */
    char name[5];     /* of the field, as far as it can matter */
    size_t name_n;    /* its whole length */
    struct buf value; /* of an id or retry field */
};

void sse_init(struct sse *s, uint64_t data_max); /* 0: SSE_DATA_MAX */
void sse_release(struct sse *s);                 /* safe on a released one */

/* Take from the front of *in up to the next token. *out is set for SSE_DATA only. What
 * was begun when the stream ends was no event: whoever took its data drops it. */
enum sse_token sse_feed(struct sse *s, str *in, str *out);

/* Writing. A message may come in pieces: open, add…, close. Every line end in it (LF,
 * CR, CRLF) begins a new data line and is read back as LF. */
struct sse_writer {
    bool after_cr;
};

/* "event: type", always written, since some clients know no default; "id: …" unless its
 * pointer is NULL. A line end or NUL in one is refused with ERR_FORMAT. */
MUST_CHECK int sse_open(struct sse_writer *w, struct buf *out, str type, str id,
                        struct err *err);
void sse_add(struct sse_writer *w, struct buf *out, str piece);
void sse_close(struct sse_writer *w, struct buf *out);

void sse_put_comment(struct buf *out);            /* keeps a connection alive */
void sse_put_retry(struct buf *out, uint32_t ms); /* a block of its own */

#endif
