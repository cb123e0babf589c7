/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin - tool definitions, known again by their hash.
 *
 * A definition is one element of the `tools` of a tools/list result. Its hash is over the
 * canonical form of the whole element, its body hash over the element without `name`, so
 * that a tool that only changed its name is recognised. Which hash function is the
 * caller's: nothing here does cryptography or touches a file.
 */
#ifndef POLICY_PIN_H
#define POLICY_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/codec.h"
#include "base/sink.h"
#include "base/str.h"
#include "json/json.h"

struct err;

#define PIN_HASH_SIZE 32
#define PINS_MAX      100000 /* tools of one server */

struct pin_hash {
    uint8_t bytes[PIN_HASH_SIZE];
};

#define PIN_HEX (2 * PIN_HASH_SIZE + 1) /* with its NUL */

static inline void pin_hex(char out[static PIN_HEX], const struct pin_hash *h)
{
    hex_encode(out, h->bytes, sizeof(h->bytes));
    out[PIN_HEX - 1] = '\0';
}

/* A running hash of the caller: what is written goes in, finish() gives the result and
 * starts anew. */
struct pin_hasher {
    struct sink sink;
    void (*finish)(void *ctx, uint8_t out[static PIN_HASH_SIZE]);
    void *ctx;
};

struct pin {
    str name; /* decoded; owned by the set, else borrowed */
    struct pin_hash hash, body;
    bool seen; /* since pins_unsee() */
};

/* Hash the definition at `tool`. ERR_FORMAT: no object, no name, no canonical form. The
 * name is put into `text` and borrowed from there. */
MUST_CHECK int pin_of(struct pin *out, const struct json *j, uint32_t tool,
                      const struct pin_hasher *hasher, struct buf *text, struct err *err);

/* The pins of one server, by name. All zero is empty. */
struct pins {
    struct pin *at; /* sorted by name */
    size_t count, cap;
};

void pins_release(struct pins *p);

enum pin_state {
    PIN_NEW,     /* nothing is known under this name */
    PIN_SAME,    /* as it was pinned */
    PIN_CHANGED, /* a definition that was pinned reads otherwise now */
    PIN_RENAMED, /* new name, but the body of a tool that was pinned: *was */
};

/* Compare a definition with its pin and mark the pin as seen. Never changes a hash. */
enum pin_state pins_check(struct pins *p, const struct pin *now, const struct pin **was);

const struct pin *pins_find(const struct pins *p, str name);

/* Pin, or replace the pin: for a definition that is new or was accepted by a person. */
MUST_CHECK int pins_put(struct pins *p, const struct pin *now, struct err *err);

/* Before the first page of a list; after its last page, what is not seen was removed. */
void pins_unsee(struct pins *p);

/* As a file: one canonical JSON object,
 * {"pins":{name:{"body":hex,"hash":hex}},"version":1} and a newline. Reading replaces the
 * set; ERR_FORMAT leaves it as it was. */
void pins_write(const struct pins *p, struct buf *out);
MUST_CHECK int pins_read(struct pins *p, str bytes, struct err *err);

#endif
