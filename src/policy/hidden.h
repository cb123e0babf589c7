/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hidden - characters that a person does not see and a model reads: bidirectional
 * controls, zero-width characters, tag characters, variation selectors beyond emoji use.
 */
#ifndef POLICY_HIDDEN_H
#define POLICY_HIDDEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "json/json.h"

enum hidden_kind {
    HIDDEN_NONE,
    HIDDEN_BIDI,
    HIDDEN_ZERO_WIDTH,
    HIDDEN_TAG,
    HIDDEN_VARIATION, /* U+FE00..FE0D and U+E0100..: can carry bytes */
    HIDDEN_CONTROL,   /* C0 and C1 but tab, line feed, carriage return; not text */
};

const char *hidden_name(enum hidden_kind kind); /* "bidi" … */

struct hidden {
    enum hidden_kind kind; /* of the first one; HIDDEN_NONE: there is none */
    uint32_t code_point;
    size_t at;    /* byte offset of the first one */
    size_t count; /* of all */
};

/* In decoded text. */
struct hidden hidden_find(str text);

/* In every string and member name of a tool's definition (names, titles, descriptions,
 * schemas). `at` is the offset in the source text of the string it stands in. */
struct hidden hidden_in(const struct json *j, uint32_t node);

#endif
