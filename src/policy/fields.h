/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields - the typed values of a policy file: a map as a table of keys, and readers that
 * say what they expected, in which line.
 */
#ifndef POLICY_FIELDS_H
#define POLICY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/policy.h"
#include "policy/yaml.h"

/* What a loader carries along. */
struct loading {
    struct policy *policy;
    const char *name; /* of the file */
    const struct policy_note **notes_end;
    struct err *err;
};

/* One key that a map may have. */
struct field {
    const char *key;
    int (*read)(struct loading *l, const struct yaml *value, void *into);
};

/* Read a map, each key by its row; `rows` ends with { 0 }. A key without a row is refused
 * with the keys that there are; so is a value that is no map. `what` calls the map. */
MUST_CHECK int fields_read(struct loading *l, const struct yaml *map, const char *what,
                           const struct field *rows, void *into);

/* "file:line: 'key': expected <expected>, found <what stands there>". Returns -1. */
int fields_expected(struct loading *l, const struct yaml *value, const char *expected);

/* "file:line: <sentence>". Returns -1. */
int fields_refuse(struct loading *l, unsigned line, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

int fields_bool(struct loading *l, const struct yaml *value, void *into /* bool */);
int fields_limit(struct loading *l, const struct yaml *value,
                 void *into /* struct policy_limit */);
int fields_string(struct loading *l, const struct yaml *value, void *into /* str */);
int fields_names(struct loading *l, const struct yaml *value,
                 void *into /* struct policy_names */);

/* The same, and every one is a glob that has its brackets. */
int fields_globs(struct loading *l, const struct yaml *value,
                 void *into /* struct policy_names */);

/* A text of our own out of pieces, in the policy's memory. {NULL, 0} when that is full.
 */
str fields_text(struct loading *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
