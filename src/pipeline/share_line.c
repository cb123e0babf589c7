/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/share_line.h"

#define KEPT ((size_t)1 << 20) /* of memory between lines */

void share_line_release(struct share_line *l)
{
    buf_release(&l->held);
    buf_release(&l->outline);
    *l = (struct share_line){ 0 };
}

void share_line_reset(struct share_line *l)
{
    if (l->held.cap > KEPT)
        buf_release(&l->held);
    buf_reset(&l->held);
    buf_reset(&l->outline);
    l->too_long = l->in_string = l->escaped = false;
    l->depth = 0;
}

static void outline_string(struct share_line *l, char c)
{
    if (l->escaped)
        l->escaped = false;
    else if (c == '\\')
        l->escaped = true;
    else if (c == '"')
        l->in_string = false;
}

static void outline_byte(struct share_line *l, char c)
{
    bool opens = !l->in_string && (c == '{' || c == '[');
    bool closes = !l->in_string && (c == '}' || c == ']');

    if (closes && l->depth)
        l->depth--;
    if (l->depth <= 1 && !(l->depth == 1 && (opens || closes)))
        buf_add_char(&l->outline, c);
    else if (l->depth == 1 && opens)
        buf_add(&l->outline, STR("null"));
    if (l->in_string)
        outline_string(l, c);
    else if (c == '"')
        l->in_string = true;
    l->depth += opens;
}

static void outline(struct share_line *l, str bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        outline_byte(l, bytes.p[i]);
}

bool share_line_add(struct share_line *l, str span, bool end, str *line)
{
    l->held.max = LINE_MAX_BYTES;
    l->outline.max = LINE_OUTLINE_MAX;
    if (!l->too_long && (l->held.failed || l->held.n + span.n > LINE_MAX_BYTES)) {
        l->too_long = true;
        l->outline.failed = l->held.failed; /* no memory: bytes are missing */
        outline(l, buf_str(&l->held));
        buf_release(&l->held);
    }
    if (l->too_long)
        outline(l, span);
    else
        buf_add(&l->held, span);
    if (!end)
        return false;
    if (!l->too_long && l->held.failed)
        l->too_long = l->outline.failed = true;
    *line = !l->too_long        ? buf_str(&l->held)
            : l->outline.failed ? STR("")
                                : buf_str(&l->outline);
    return true;
}
