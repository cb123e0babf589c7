/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number - JSON numbers as ECMAScript prints them: the shortest text that reads back
 * as the same double (RFC 8785 §3.2.2.3).
 */
#ifndef JSON_NUMBER_H
#define JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define NUMBER_TEXT_MAX 32

/* The double that a valid JSON number means, correctly rounded; false when it is
 * beyond the range of doubles (infinity). Independent of the locale. */
bool number_parse(double *out, str raw);

/* The shortest form of a finite double, -0 as "0". `capital_e`: 1E21 instead of 1e+21.
 * Returns the length; no NUL. */
size_t number_format(char out[static NUMBER_TEXT_MAX], double value, bool capital_e);

/* number_parse + number_format, quicker for the common spellings. Returns the length, 0
 * when the number is beyond the range of doubles. */
size_t number_canonical(char out[static NUMBER_TEXT_MAX], str raw, bool capital_e);

#endif
