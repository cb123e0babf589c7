/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec - bytes as text: lower-case hex and standard padded base64.
 *
 * Decoding is strict: one spelling per value. Upper-case hex, missing padding, set
 * trailing bits, white space: all refused, so that what we accept is what we write.
 */
#ifndef BASE_CODEC_H
#define BASE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Writes 2n digits and no NUL. */
void hex_encode(char *out, const void *bytes, size_t n);
void hex_add(struct buf *b, const void *bytes, size_t n);

/* True when `text` is exactly 2n lower-case hex digits. */
bool hex_decode(void *out, size_t n, str text);

void base64_add(struct buf *b, const void *bytes, size_t n);

/* Decode at most `max` bytes; *n is set on success. */
bool base64_decode(void *out, size_t max, size_t *n, str text);

/* True when `text` is base64; *n is the number of bytes that it stands for. */
bool base64_length(size_t *n, str text);

/* True when `text` decodes to exactly n bytes. */
bool base64_decode_exact(void *out, size_t n, str text);

/* A decimal number without sign, leading zero or overflow; false otherwise. */
bool u64_parse(uint64_t *out, str text);

#define U64_DIGITS 20

/* The same the other way; how many digits were written. */
size_t u64_format(char out[static U64_DIGITS], uint64_t value);

#endif
