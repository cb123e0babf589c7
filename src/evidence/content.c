/* SPDX-License-Identifier: Apache-2.0 */
/* What a receipt may store of foreign JSON; declared in receipt.h. */
#include <math.h>

#include "base/err.h"
#include "base/utf8.h"
#include "evidence/receipt.h"
#include "json/jcs.h"
#include "json/number.h"

/* Integers from here on are told apart by some readers and not by others; from the other
 * on they are written with an exponent, and read as doubles by all. */
#define FIRST_UNSAFE   9007199254740992.0
#define FIRST_EXPONENT 1e21

static bool number_fits(const struct json *j, uint32_t node)
{
    int64_t integer;
    double value;

    if (j->nodes[node].flags & JSON_INTEGER)
        return json_int(j, node, &integer);
    if (!number_parse(&value, json_raw(j, node)))
        return false;
    return fabs(value) < FIRST_UNSAFE || fabs(value) >= FIRST_EXPONENT;
}

static bool is_ascii(const struct json *j, uint32_t name)
{
    CLEANUP(buf_release) struct buf text = { .max = CONTENT_MAX };
    str raw = json_raw(j, name);

    if (j->nodes[name].flags & JSON_ESCAPED) {
        json_unescape(j, name, &text);
        raw = buf_str(&text);
    }
    for (size_t i = 0; i < raw.n; i++) {
        if ((unsigned char)raw.p[i] >= 0x80)
            return false;
    }
    return !text.failed;
}

/* `depth` levels, the receipt's own included, stand around this value. */
static bool fits(const struct json *j, uint32_t node, unsigned depth)
{
    bool object = json_is(j, node, JSON_OBJECT);

    if (json_is(j, node, JSON_NUMBER))
        return number_fits(j, node);
    if (!object && !json_is(j, node, JSON_ARRAY))
        return true;
    if (depth >= JSON_MAX_DEPTH)
        return false;
    json_each (j, node, at) {
        if (object && !is_ascii(j, at))
            return false;
        if (!fits(j, object ? at + 1 : at, depth + 1))
            return false;
    }
    return true;
}

static bool add_value(struct buf *out, const struct json *j, uint32_t node)
{
    struct sink sink = buf_sink(out);
    struct err ignored;

    if (j->nodes[node].flags & (JSON_TAINTED | JSON_DUPLICATE | JSON_LONE_SURROGATE))
        return false;
    return fits(j, node, 1) && jcs_write(j, node, JCS_PACK, &sink, &ignored) == 0;
}

/* Undo what was appended since `start` unless it may stay. */
static bool settle(struct buf *out, size_t start, bool good)
{
    if (good && !out->failed && out->n - start <= CONTENT_MAX)
        return true;
    if (!out->failed)
        out->n = start;
    return false;
}

bool content_add_raw(struct buf *out, str raw)
{
    size_t start = out->n;

    if (raw.n > CONTENT_MAX || !utf8_valid(raw))
        return false;
    jcs_add_string(out, raw);
    return settle(out, start, true);
}

bool content_add(struct buf *out, const struct json *j, uint32_t node)
{
    size_t start = out->n;

    if (settle(out, start, add_value(out, j, node)))
        return true;
    return content_add_raw(out, json_raw(j, node));
}
