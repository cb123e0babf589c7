/* SPDX-License-Identifier: Apache-2.0 */
/* utf8 - one code point at a time, strictly (RFC 3629: no overlongs, no surrogates). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Decode the first code point of s; returns its length in bytes, 0 when s is empty or
 * does not begin with valid UTF-8. */
size_t utf8_next(str s, uint32_t *code_point);

/* Writes 1 to 4 bytes and returns how many. */
size_t utf8_put(char out[static 4], uint32_t code_point);
void utf8_add(struct buf *out, uint32_t code_point);

bool utf8_valid(str s);

#endif
