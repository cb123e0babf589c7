/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pretty - JSON for people and for the files of a pack: two spaces, one member a line,
 * ASCII only, members in the order in which they are written. No newline at the end.
 *
 * Nothing that is hashed by its meaning is written with this (see jcs); files that are
 * hashed by their bytes are. A member takes its name; an element of an array has NULL.
 */
#ifndef JSON_PRETTY_H
#define JSON_PRETTY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "json/json.h"

struct pretty {
    struct buf *out;
    unsigned depth;
    bool first; /* nothing stands yet in the container that is open */
};

void pretty_init(struct pretty *p, struct buf *out);

void pretty_object(struct pretty *p, const char *name); /* open one */
void pretty_array(struct pretty *p, const char *name);
void pretty_end_object(struct pretty *p);
void pretty_end_array(struct pretty *p);

void pretty_string(struct pretty *p, const char *name, str text); /* valid UTF-8 */
void pretty_text(struct pretty *p, const char *name, const char *text);
void pretty_u64(struct pretty *p, const char *name, uint64_t value);
void pretty_bool(struct pretty *p, const char *name, bool value);
void pretty_null(struct pretty *p, const char *name);

/* Raw JSON text of one value that we made ourselves, e.g. a number. */
void pretty_raw(struct pretty *p, const char *name, str json);

/* A value that was parsed; numbers keep their spelling. */
void pretty_node(struct pretty *p, const char *name, const struct json *j, uint32_t node);

/* A string with its quotes, everything above ASCII as \uXXXX. */
void pretty_add_string(struct buf *out, str text);

#endif
