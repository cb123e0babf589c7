/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_encode - heads and chunks, written so that they can only be read in one way.
 *
 * Nothing is escaped or repaired: what would not be read back as it was meant (a CR, LF
 * or NUL in a value, a space in a name) is refused with ERR_FORMAT and not written. A
 * buffer that is full says so itself (buf_check).
 */
#ifndef TRANSPORT_HTTP_ENCODE_H
#define TRANSPORT_HTTP_ENCODE_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"

struct err;
struct http_head;

/* "POST /mcp HTTP/1.1" */
MUST_CHECK int http_put_request(struct buf *out, str method, str target, struct err *err);

/* "HTTP/1.1 200 OK"; the usual words when `reason` has a NULL pointer. */
MUST_CHECK int http_put_status(struct buf *out, unsigned status, str reason,
                               struct err *err);

/* "Name: value"; the value without spaces at its ends. */
MUST_CHECK int http_put_header(struct buf *out, str name, str value, struct err *err);

/* Header number i of a head that was read: it is known to be one. */
void http_put_same(struct buf *out, const struct http_head *h, size_t i);

void http_put_end(struct buf *out); /* the empty line */

/* The usual words for a status; "" when there are none. */
const char *http_reason(unsigned status);

/* Content of n > 0 bytes goes between these two. */
void http_chunk_open(struct buf *out, size_t n);
void http_chunk_close(struct buf *out);

/* One chunk; nothing at all for no bytes, since an empty chunk would be the last. */
void http_chunk_add(struct buf *out, str content);
void http_chunk_last(struct buf *out); /* without trailers */

#endif
