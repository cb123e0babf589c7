/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema - is a JSON object of a closed shape? Tables say what it must have.
 *
 * Closed: every member is named in the table, every required one is there, nothing
 * else is. Only what the manifest of a pack needs; not JSON Schema. Integers are written
 * without fraction or exponent and lie within ±(2^53 − 1).
 */
#ifndef EVIDENCE_SCHEMA_H
#define EVIDENCE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/json.h"

enum rule_kind {
    RULE_TEXT,     /* any string */
    RULE_NAME,     /* a string of at least one character */
    RULE_VERSION,  /* [A-Za-z0-9._-]+ */
    RULE_RELEASE,  /* digits.digits.digits */
    RULE_HEX40,    /* lower-case hex digits */
    RULE_HEX64,    /* the same */
    RULE_COUNT,    /* integer, 0 or more */
    RULE_POSITIVE, /* integer, 1 or more */
    RULE_TIME,     /* strict RFC 3339 */
    RULE_ENUM,     /* one of `values` */
    RULE_OBJECT,   /* an object of `shape` */
    RULE_OBJECTS,  /* an array of at least `least` of them */
    RULE_NAMES,    /* an array of at least `least` names */
};

struct rule {
    const char *name;
    enum rule_kind kind;
    bool optional;
    bool nullable;
    unsigned least;
    const char *const *values; /* ends in NULL */
    const struct shape *shape;
};

struct shape {
    const char *what; /* "the attestation" */
    const struct rule *rules;
    size_t count;
};

/* Where faults go: a place like "/files/0/bytes" ("" is the whole text) and what is wrong
 * there, foreign bytes escaped. */
struct schema_faults {
    void (*add)(void *ctx, const char *place, const char *what);
    void *ctx;
};

/* Report every fault; none means that the node is of this shape. */
void schema_check(const struct json *j, uint32_t node, const struct shape *shape,
                  const struct schema_faults *faults);

#endif
