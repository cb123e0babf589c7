/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob - `*` any run, `?` one character, `[a-z]` one of a set, `[!…]` one not of it.
 *
 * Case-sensitive, over the whole text; `*` crosses '/' and '.' like anything else. A
 * character is a code point (a byte where the text is not UTF-8). There is no escape:
 * `[*]` is a star. Time is at most pattern times text; nothing recurses.
 */
#ifndef POLICY_GLOB_H
#define POLICY_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

bool glob_match(str pattern, str text);

/* A '[' without its ']' is an error of the policy file, not a character. */
bool glob_valid(str pattern);

/* Bytes before the first wildcard, all of them when there is none. */
size_t glob_literal(str pattern);

/* Bytes behind the last wildcard. */
size_t glob_literal_end(str pattern);

#endif
