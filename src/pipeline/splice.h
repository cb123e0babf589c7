/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splice - a message with pieces cut out or replaced; every other byte stays as it came.
 *
 *     splice_begin    of this text
 *     splice_replace  this span of it, by that; in any order
 *     splice_array    cut elements out of an array, with the commas that go with them
 *     splice_end      the new text
 *
 * A span inside one that is cut goes with it.
 */
#ifndef PIPELINE_SPLICE_H
#define PIPELINE_SPLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "json/json.h"

struct err;

#define SPLICE_MAX ((size_t)64 << 20) /* bytes of a message that is changed */

struct splice {
    str from;
    struct edit {
        size_t from, to;
        str by;
    } * edits;
    size_t count, cap;
    bool failed; /* no memory for an edit */
    struct buf out;
};

void splice_begin(struct splice *s, str from); /* may be called again: reuses */
void splice_release(struct splice *s);

/* `what` lies in the text; `by` is borrowed until splice_end(). */
void splice_replace(struct splice *s, str what, str by);

/* Cut the elements for which `keep` is false; how many are left. The index is of s->from.
 */
size_t splice_array(struct splice *s, const struct json *j, uint32_t array,
                    bool (*keep)(void *ctx, uint32_t node), void *ctx);

static inline bool splice_is_needed(const struct splice *s)
{
    return s->count > 0 || s->failed;
}

/* *out is valid until the next splice_begin(). ERR_LIMIT beyond SPLICE_MAX, ERR_NOMEM. */
MUST_CHECK int splice_end(struct splice *s, str *out, struct err *err);

#endif
