/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml - a YAML text as a tree that knows its lines. The only file that includes libyaml.
 *
 * What makes two readers see two files is refused: duplicate keys, anchors, aliases,
 * tags, more than one document, keys that are no plain text. Scalars are not typed here;
 * whoever expects a type asks with the functions below, which follow the YAML 1.2 core
 * schema: yes, no, on and off are words.
 */
#ifndef POLICY_YAML_H
#define POLICY_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/str.h"

struct err;

#define YAML_MAX_DEPTH 16
#define YAML_MAX_NODES 200000

enum yaml_kind {
    YAML_TEXT,
    YAML_LIST,
    YAML_MAP,
};

/* Line numbers begin with 1. */
struct yaml {
    enum yaml_kind kind;
    unsigned line;
    bool quoted; /* a text in quotes or in a block: always a string */
    str text;    /* of a YAML_TEXT */
    str key;     /* of a value in a map */
    unsigned key_line;
    size_t count; /* of children */
    struct yaml *first, *last, *next;
};

/* The one document of a text; all memory comes from the arena. ERR_FORMAT and ERR_LIMIT
 * say "name:line: …"; ERR_NOMEM. */
MUST_CHECK int yaml_parse(struct yaml **out, str bytes, const char *name,
                          struct arena *arena, struct err *err);

/* What a text means in the core schema. */
bool yaml_is_null(const struct yaml *y);
bool yaml_is_bool(const struct yaml *y, bool *value);
bool yaml_is_u64(const struct yaml *y, uint64_t *value); /* 10, 0o17, 0x1f */
bool yaml_is_string(const struct yaml *y); /* quoted, or nothing of null, bool, number */

/* What kind of thing stands there, for a message: "a list", "a number". */
const char *yaml_kind_name(const struct yaml *y);

#endif
