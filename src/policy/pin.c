/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pin.h"

#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "base/err.h"
#include "json/jcs.h"

#define FIRST_CAP 16

int pin_of(struct pin *out, const struct json *j, uint32_t tool,
           const struct pin_hasher *hasher, struct buf *text, struct err *err)
{
    static const char *const name_only[] = { "name" };
    uint32_t name = json_member(j, tool, STR("name"));
    struct pin pin = { 0 };
    size_t from = text->n;

    if (!json_is(j, name, JSON_STRING))
        return err_set(err, ERR_FORMAT, "a tool without a name");
    if (jcs_write(j, tool, JCS_RFC8785, &hasher->sink, err) < 0) {
        hasher->finish(hasher->ctx, pin.hash.bytes); /* forget what was written */
        return -1;
    }
    hasher->finish(hasher->ctx, pin.hash.bytes);
    if (jcs_write_without(j, tool, name_only, 1, JCS_RFC8785, &hasher->sink, err) < 0) {
        hasher->finish(hasher->ctx, pin.body.bytes);
        return -1;
    }
    hasher->finish(hasher->ctx, pin.body.bytes);
    json_unescape(j, name, text);
    if (buf_check(text, "the name of a tool", err) < 0)
        return -1;
    pin.name = str_skip(buf_str(text), from);
    *out = pin;
    return 0;
}

/* --- the set --- */

static void free_name(struct pin *pin)
{
    free((void *)(uintptr_t)pin->name.p);
}

void pins_release(struct pins *p)
{
    for (size_t i = 0; i < p->count; i++)
        free_name(&p->at[i]);
    free(p->at);
    *p = (struct pins){ 0 };
}

/* Where a name stands or would stand. */
static size_t place_of(const struct pins *p, str name, bool *found)
{
    size_t low = 0, high = p->count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = jcs_compare_names(p->at[middle].name, name);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct pin *pins_find(const struct pins *p, str name)
{
    bool found;
    size_t at = place_of(p, name, &found);

    return found ? &p->at[at] : NULL;
}

static bool same(const struct pin_hash *a, const struct pin_hash *b)
{
    return memcmp(a->bytes, b->bytes, PIN_HASH_SIZE) == 0;
}

enum pin_state pins_check(struct pins *p, const struct pin *now, const struct pin **was)
{
    bool found;
    size_t at = place_of(p, now->name, &found);

    *was = NULL;
    if (found) {
        *was = &p->at[at];
        p->at[at].seen = true;
        return same(&p->at[at].hash, &now->hash) ? PIN_SAME : PIN_CHANGED;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (same(&p->at[i].body, &now->body)) {
            *was = &p->at[i];
            return PIN_RENAMED;
        }
    }
    return PIN_NEW;
}

static int grow(struct pins *p, struct err *err)
{
    size_t cap = p->cap ? 2 * p->cap : FIRST_CAP;
    struct pin *at;

    if (p->count == PINS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d tools of one server", PINS_MAX);
    if (p->count < p->cap)
        return 0;
    at = realloc(p->at, cap * sizeof(*at));
    if (!at)
        return err_set(err, ERR_NOMEM, "out of memory");
    p->at = at;
    p->cap = cap;
    return 0;
}

int pins_put(struct pins *p, const struct pin *now, struct err *err)
{
    bool found;
    size_t at = place_of(p, now->name, &found);
    char *name;

    if (found) {
        p->at[at].hash = now->hash;
        p->at[at].body = now->body;
        p->at[at].seen = true;
        return 0;
    }
    if (grow(p, err) < 0)
        return -1;
    name = malloc(now->name.n + 1);
    if (!name)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (now->name.n)
        memcpy(name, now->name.p, now->name.n);
    memmove(&p->at[at + 1], &p->at[at], (p->count - at) * sizeof(p->at[0]));
    p->at[at] = *now;
    p->at[at].name = str_of(name, now->name.n);
    p->at[at].seen = true;
    p->count++;
    return 0;
}

void pins_unsee(struct pins *p)
{
    for (size_t i = 0; i < p->count; i++)
        p->at[i].seen = false;
}

/* --- as a file --- */

void pins_write(const struct pins *p, struct buf *out)
{
    buf_add(out, STR("{\"pins\":{"));
    for (size_t i = 0; i < p->count; i++) {
        buf_add(out, i ? STR(",") : STR(""));
        jcs_add_string(out, p->at[i].name);
        buf_add(out, STR(":{\"body\":\""));
        hex_add(out, p->at[i].body.bytes, PIN_HASH_SIZE);
        buf_add(out, STR("\",\"hash\":\""));
        hex_add(out, p->at[i].hash.bytes, PIN_HASH_SIZE);
        buf_add(out, STR("\"}"));
    }
    buf_add(out, STR("},\"version\":1}\n"));
}

static bool read_hash(const struct json *j, uint32_t object, str name, uint8_t *out)
{
    uint32_t node = json_member(j, object, name);
    str raw;

    if (!json_is(j, node, JSON_STRING))
        return false;
    raw = json_raw(j, node);
    return hex_decode(out, PIN_HASH_SIZE, str_of(raw.p + 1, raw.n - 2));
}

static int read_pin(struct pins *p, const struct json *j, uint32_t name, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    uint32_t value = name + 1;
    struct pin pin = { 0 };

    if (json_count(j, value) != 2 || !read_hash(j, value, STR("body"), pin.body.bytes) ||
        !read_hash(j, value, STR("hash"), pin.hash.bytes))
        return err_set(err, ERR_FORMAT, "a pin without its two hashes");
    json_unescape(j, name, &text);
    if (buf_check(&text, "the name of a tool", err) < 0)
        return -1;
    pin.name = buf_str(&text);
    return pins_put(p, &pin, err);
}

static int read_all(struct pins *p, const struct json *j, struct err *err)
{
    uint32_t pins = json_member(j, JSON_ROOT, STR("pins"));
    int64_t version = 0;

    if (j->nodes[JSON_ROOT].flags & JSON_TAINTED || json_count(j, JSON_ROOT) != 2 ||
        !json_is(j, pins, JSON_OBJECT) ||
        !json_int(j, json_member(j, JSON_ROOT, STR("version")), &version) || version != 1)
        return err_set(err, ERR_FORMAT, "not a file of pins of version 1");
    json_each (j, pins, at) {
        if (!json_is(j, at + 1, JSON_OBJECT))
            return err_set(err, ERR_FORMAT, "a pin that is no object");
        if (read_pin(p, j, at, err) < 0)
            return -1;
    }
    return 0;
}

int pins_read(struct pins *p, str bytes, struct err *err)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct pins fresh = { 0 };

    if (json_parse(&j, bytes, NULL, err) < 0)
        return -1;
    if (!json_is(&j, JSON_ROOT, JSON_OBJECT) || read_all(&fresh, &j, err) < 0) {
        pins_release(&fresh);
        return err->code ? -1 : err_set(err, ERR_FORMAT, "not a file of pins");
    }
    pins_unsee(&fresh);
    pins_release(p);
    *p = fresh;
    return 0;
}
