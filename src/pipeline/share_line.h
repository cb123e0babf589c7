/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_line - the lines of a shared server, put together from spans. Of one that is too
 * long, its outline is kept: what stands in the outermost object, with every container
 * inside it as null; so it can still be told whose answer it was.
 */
#ifndef PIPELINE_SHARE_LINE_H
#define PIPELINE_SHARE_LINE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define LINE_MAX_BYTES   ((size_t)64 << 20) /* of a line that is held */
#define LINE_OUTLINE_MAX ((size_t)64 << 10) /* of the outline of a longer one */

/* All zero is the empty one. */
struct share_line {
    struct buf held;
    struct buf outline;
    bool too_long;
    bool in_string, escaped;
    unsigned depth;
};

void share_line_release(struct share_line *l);
void share_line_reset(struct share_line *l); /* for the next line */

/* True when the line is complete: `*line` is it, or its outline if l->too_long is set;
 * valid until share_line_reset(), which is due then. */
bool share_line_add(struct share_line *l, str span, bool end, str *line);

#endif
