/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - an index into a JSON text: what stands where, without copying it.
 *
 * json_parse() checks a whole text strictly (RFC 8259, UTF-8, no BOM, nothing after the
 * value) and leaves one 16-byte node per value or member name. The text is borrowed
 * and never changed: raw number spellings, escapes and white space stay as they came,
 * so a message can be forwarded byte for byte and parts of it hashed, cut or replaced.
 * Memory grows with the number of values, never with the length of strings.
 *
 * A text may be valid JSON and still have no canonical form: duplicate member names
 * and lone surrogates are accepted and marked (JSON_DUPLICATE, JSON_LONE_SURROGATE, and
 * JSON_TAINTED on every container around them). Whoever hashes or decides looks at the
 * mark.
 */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"

struct err;

#define JSON_MAX_BYTES ((size_t)4 << 30) /* offsets are 32 bits; exclusive */
#define JSON_MAX_DEPTH 128
#define JSON_MAX_NODES 4000000 /* a million members: names and values, and more */

enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

enum json_flag {
    JSON_ESCAPED = 1,        /* a string with at least one backslash */
    JSON_LONE_SURROGATE = 2, /* a string that is not Unicode */
    JSON_DUPLICATE = 4,      /* an object with two members of the same name */
    JSON_TAINTED = 8,        /* this value, or one inside it, has one of the two above */
    JSON_INTEGER = 16,       /* a number without '.', 'e' or 'E' */
    JSON_OPAQUE = 32,        /* a container that was not looked into; tainted, too */
};

struct json_node {
    uint32_t start; /* first byte of the value; of a string: its opening quote */
    uint32_t end;   /* one past the last byte */
    uint32_t next;  /* index of the node after this value and everything in it */
    uint8_t kind;   /* enum json_kind */
    uint8_t flags;  /* enum json_flag */
    uint16_t spare;
};

struct json_limits {
    size_t max_bytes;   /* 0: JSON_MAX_BYTES - 1 */
    uint32_t max_nodes; /* 0: JSON_MAX_NODES */
    unsigned max_depth; /* 0: JSON_MAX_DEPTH */

    /* Containers this deep are one node without children, JSON_OPAQUE: the outline of a
     * text that is beyond the other limits. Strings inside are checked, brackets only
     * counted. 0: none. */
    unsigned opaque_depth;
};

/* All zero is the empty index. May be parsed into again and again: nodes are reused. */
struct json {
    str text; /* borrowed */
    struct json_node *nodes;
    uint32_t count;
    uint32_t cap;
};

/* Index `text`. ERR_FORMAT (not JSON) and ERR_LIMIT say at which byte and what was
 * expected; ERR_NOMEM. On failure the index is empty. */
MUST_CHECK int json_parse(struct json *j, str text, const struct json_limits *limits,
                          struct err *err);
void json_release(struct json *j);

/* Swap *j for *from, if that is an index of this very text, where it stands, of at most
 * so many nodes: somebody has indexed it before. `from` may be NULL. */
bool json_take(struct json *j, struct json *from, str text, uint32_t max_nodes);

/* Node 0 is the whole text. An object's children are name, value, name, value, …; the
 * first child of a container is the node after it, and `next` leads to its sibling. */
#define JSON_ROOT 0u
#define JSON_NONE UINT32_MAX

static inline enum json_kind json_kind_of(const struct json *j, uint32_t node)
{
    return (enum json_kind)j->nodes[node].kind;
}

static inline bool json_is(const struct json *j, uint32_t node, enum json_kind kind)
{
    return node != JSON_NONE && j->nodes[node].kind == kind;
}

/* The source bytes of a value, quotes and white space inside it included. */
static inline str json_raw(const struct json *j, uint32_t node)
{
    const struct json_node *n = &j->nodes[node];

    return str_of(j->text.p + n->start, n->end - n->start);
}

/* Walk the elements of an array, or the names of an object (the value is at + 1):
 *     json_each (j, array, at) { … }
 */
#define json_each(j, container, at)                                                      \
    for (uint32_t at = (container) + 1; at < (j)->nodes[container].next;                 \
         at = json_after(j, container, at))

static inline uint32_t json_after(const struct json *j, uint32_t container, uint32_t at)
{
    if (j->nodes[container].kind == JSON_OBJECT)
        return j->nodes[at + 1].next;
    return j->nodes[at].next;
}

/* The value of the first member called `name`, or JSON_NONE; JSON_NONE too when `object`
 * is JSON_NONE or not an object. Names are compared after unescaping. */
uint32_t json_member(const struct json *j, uint32_t object, str name);

/* How many elements or members a container has. */
uint32_t json_count(const struct json *j, uint32_t container);

bool json_escaped_is(const struct json *j, uint32_t node, str value);

/* Is this node a string with exactly these (unescaped) bytes? */
static ALWAYS_INLINE bool json_string_is(const struct json *j, uint32_t node, str value)
{
    const struct json_node *n;

    if (!json_is(j, node, JSON_STRING))
        return false;
    n = &j->nodes[node];
    /* Nearly every name that is looked up, and nearly every one that is not it. */
    if (!(n->flags & JSON_ESCAPED))
        return n->end - n->start == value.n + 2 &&
               (value.n == 0 || memcmp(j->text.p + n->start + 1, value.p, value.n) == 0);
    return json_escaped_is(j, node, value);
}

/* Append the unescaped string to `out`. A lone surrogate becomes its three-byte
 * generalized UTF-8 form, which no valid text contains. */
void json_unescape(const struct json *j, uint32_t node, struct buf *out);

/* An integer node within ±(2^53 − 1), written without fraction or exponent. */
bool json_int(const struct json *j, uint32_t node, int64_t *value);

#endif
