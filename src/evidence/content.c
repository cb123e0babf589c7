/* SPDX-License-Identifier: Apache-2.0 */
/* What a receipt may store of foreign JSON; declared in receipt.h. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/codec.h"
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

static void put_hash(struct content_hash *out, str tag, const struct digest *d)
{
    char *to = str_put(out->text, tag);

    assert(tag.n + 1 + 2 * DIGEST_SIZE < sizeof(out->text));
    *to++ = ':';
    digest_hex(to, d);
    to[2 * DIGEST_SIZE] = '\0';
    out->n = tag.n + 1 + 2 * DIGEST_SIZE;
    out->reason[0] = '\0';
}

void content_digest(struct content_hash *out, str bytes, str pepper)
{
    struct digest d = pepper.n ? hmac_of(pepper, bytes) : digest_of(bytes);

    put_hash(out, pepper.n ? STR("hmac-sha256") : STR("sha256"), &d);
}

/* There is no canonical form: hash what stands there, and say why. */
static void hash_raw(struct content_hash *out, str raw, str pepper, const struct err *why)
{
    struct digest d = pepper.n ? hmac_of(pepper, raw) : digest_of(raw);

    put_hash(out, pepper.n ? STR("hmac-sha256") : STR("raw-sha256"), &d);
    snprintf(out->reason, sizeof(out->reason), "no canonical form: %.*s",
             CONTENT_REASON_MAX - 32, why->msg);
}

static int hash_keyed(struct content_hash *out, const struct json *j, uint32_t node,
                      str pepper, struct err *why, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = CONTENT_HASH_BYTES };
    struct sink sink = buf_sink(&text);

    if (jcs_write(j, node, JCS_RFC8785, &sink, why) < 0) {
        hash_raw(out, json_raw(j, node), pepper, why);
        return 0;
    }
    if (buf_check(&text, "a value that is hashed with a key", err) < 0)
        return -1;
    content_digest(out, buf_str(&text), pepper);
    return 0;
}

int content_hash(struct content_hash *out, const struct json *j, uint32_t node,
                 str pepper, struct err *err)
{
    UNINITIALIZED struct hasher h;
    UNINITIALIZED struct err why;
    struct digest d;
    struct sink sink;

    if (pepper.n)
        return hash_keyed(out, j, node, pepper, &why, err);
    hasher_init(&h);
    sink = hasher_sink(&h);
    if (jcs_write(j, node, JCS_RFC8785, &sink, &why) < 0) {
        if (why.code == ERR_NOMEM)
            return err_set(err, ERR_NOMEM, "%s", why.msg);
        hash_raw(out, json_raw(j, node), pepper, &why);
        return 0;
    }
    d = hasher_finish(&h);
    put_hash(out, STR("sha256"), &d);
    return 0;
}
