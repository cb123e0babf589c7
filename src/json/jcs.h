/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jcs - RFC 8785 canonical JSON, streamed into a sink. The only JSON writer we have.
 *
 * JCS_RFC8785 is the RFC. JCS_PACK is what proof packs of the public tool are hashed
 * over: the same, but a number with an exponent reads 1E21 and 1E-7 (capital E, no plus).
 */
#ifndef JSON_JCS_H
#define JSON_JCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/sink.h"
#include "base/str.h"
#include "json/json.h"

struct err;

enum jcs_form {
    JCS_RFC8785,
    JCS_PACK,
};

/* Write the canonical form of a value. Fails with ERR_FORMAT and the reason when there is
 * none (duplicate member 'x', lone surrogate, a number beyond a double); then the sink
 * may have received a part. */
MUST_CHECK int jcs_write(const struct json *j, uint32_t node, enum jcs_form form,
                         const struct sink *sink, struct err *err);

/* The same for an object without some of its own members (nested ones stay). */
MUST_CHECK int jcs_write_without(const struct json *j, uint32_t object,
                                 const char *const *drop, size_t drop_count,
                                 enum jcs_form form, const struct sink *sink,
                                 struct err *err);

/* Is the whole text already its own canonical form (JCS_RFC8785)? Quicker than writing it
 * again, for texts without escapes and odd numbers. */
bool jcs_is_canonical(const struct json *j);

/* Is this string or number, as it is written, its canonical form? Said of the plain ones
 * only: neither escapes, nor signs, fractions, exponents and very many digits. */
bool jcs_is_as_written(const struct json *j, uint32_t node);

/* For what we compose ourselves, piece by piece, members in order. `text` is valid
 * UTF-8 (asserted by the caller's parser); the result has its quotes. */
void jcs_add_string(struct buf *out, str text);
bool jcs_add_text(struct buf *out, str text); /* false: it was not valid UTF-8 */

/* As they are sorted in a canonical object: by UTF-16 code units. <0, 0, >0. */
int jcs_compare_names(str a, str b);

#endif
