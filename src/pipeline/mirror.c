/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/mirror.h"

#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "base/err.h"

static const str mark = { "x-mcp-header", 12 };
static const str prefix = { "Mcp-Param-", 10 };

/* --- values --- */

bool mirror_is_safe(str text)
{
    if (text.n && (text.p[0] == ' ' || text.p[0] == '\t' || text.p[text.n - 1] == ' ' ||
                   text.p[text.n - 1] == '\t'))
        return false;
    if (str_starts(text, STR("=?base64?")) && str_ends(text, STR("?=")))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\t' && (text.p[i] < 0x20 || text.p[i] > 0x7e))
            return false;
    }
    return true;
}

void mirror_add_value(struct buf *out, str text)
{
    if (mirror_is_safe(text)) {
        buf_add(out, text);
        return;
    }
    buf_add(out, STR("=?base64?"));
    base64_add(out, text.p, text.n);
    buf_add(out, STR("?="));
}

/* --- what tools say --- */

static str name_of(const struct mirror_tool *t)
{
    return str_of(t->text, t->name);
}

static struct mirror_tool *find(struct mirror *m, str name)
{
    for (size_t i = 0; i < m->count; i++) {
        if (str_equal(name_of(&m->tools[i]), name))
            return &m->tools[i];
    }
    return NULL;
}

static void forget(struct mirror *m, struct mirror_tool *t)
{
    m->bytes -= t->name + t->schema;
    free(t->text);
    *t = m->tools[--m->count];
}

static void remember(struct mirror *m, str name, str schema)
{
    struct mirror_tool *t;

    if (m->count == MIRROR_TOOLS_MAX || name.n + schema.n > MIRROR_BYTES_MAX - m->bytes)
        return;
    if (!m->tools)
        m->tools = calloc(MIRROR_TOOLS_MAX, sizeof(*m->tools));
    if (!m->tools)
        return;
    t = &m->tools[m->count];
    *t = (struct mirror_tool){ malloc(name.n + schema.n + 1), name.n, schema.n };
    if (!t->text)
        return;
    if (name.n)
        memcpy(t->text, name.p, name.n);
    memcpy(t->text + name.n, schema.p, schema.n);
    m->bytes += name.n + schema.n;
    m->count++;
}

static void learn_one(struct mirror *m, const struct json *j, uint32_t tool)
{
    uint32_t name = json_member(j, tool, STR("name"));
    uint32_t schema = json_member(j, tool, STR("inputSchema"));
    struct mirror_tool *known;
    str raw;

    if (!json_is(j, name, JSON_STRING))
        return;
    m->word.max = MIRROR_BYTES_MAX;
    buf_reset(&m->word);
    json_unescape(j, name, &m->word);
    known = find(m, buf_str(&m->word));
    if (known)
        forget(m, known);
    if (!json_is(j, schema, JSON_OBJECT) || m->word.failed)
        return;
    raw = json_raw(j, schema);
    if (memmem(raw.p, raw.n, mark.p, mark.n))
        remember(m, buf_str(&m->word), raw);
}

void mirror_learn(struct mirror *m, const struct json *j, uint32_t tools)
{
    if (!json_is(j, tools, JSON_ARRAY))
        return;
    json_each (j, tools, tool)
        learn_one(m, j, tool);
}

/* --- a call --- */

/* The header's name, at the end of the text; false: it is no mark. */
static bool add_name(struct mirror *m, uint32_t property)
{
    static const str types[] = { { "string", 6 }, { "integer", 7 }, { "boolean", 7 } };
    uint32_t type = json_member(&m->schema, property, STR("type"));
    uint32_t token = json_member(&m->schema, property, mark);
    size_t i = 0;

    if (!json_is(&m->schema, token, JSON_STRING) ||
        !json_is(&m->schema, type, JSON_STRING))
        return false;
    while (i < COUNT(types) && !json_string_is(&m->schema, type, types[i]))
        i++;
    buf_reset(&m->word);
    json_unescape(&m->schema, token, &m->word);
    if (i == COUNT(types) || m->word.n > MIRROR_TOKEN_MAX ||
        !http_token_valid(buf_str(&m->word)))
        return false;
    buf_add(&m->text, prefix);
    buf_add(&m->text, buf_str(&m->word));
    return true;
}

static bool add_value(struct mirror *m, const struct json *j, uint32_t value)
{
    buf_reset(&m->plain);
    buf_reset(&m->value);
    switch (json_kind_of(j, value)) {
    case JSON_STRING:
        json_unescape(j, value, &m->plain);
        break;
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
        buf_add(&m->plain, json_raw(j, value));
        break;
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        return false;
    }
    mirror_add_value(&m->value, buf_str(&m->plain));
    buf_add(&m->text, buf_str(&m->value));
    return !m->plain.failed && !m->value.failed && !m->text.failed;
}

static bool is_taken(const struct mirror *m, str name)
{
    for (size_t i = 0; i < m->header_count; i++) {
        if (str_equal_nocase(
                name, str_of(m->text.p + m->at[i].name, m->at[i].value - m->at[i].name)))
            return true;
    }
    return false;
}

static void add_header(struct mirror *m, uint32_t property, const struct json *j,
                       uint32_t value)
{
    size_t from = m->text.n, middle;

    if (m->header_count == MIRROR_HEADERS_MAX || m->text.failed)
        return;
    if (add_name(m, property)) {
        middle = m->text.n;
        if (!m->text.failed && !is_taken(m, str_of(m->text.p + from, middle - from)) &&
            add_value(m, j, value)) {
            m->at[m->header_count].name = from;
            m->at[m->header_count].value = middle;
            m->at[m->header_count++].end = m->text.n;
            return;
        }
    }
    m->text.n = from;
}

static void walk(struct mirror *m, uint32_t schema, const struct json *j, uint32_t given,
                 unsigned depth)
{
    uint32_t properties = json_member(&m->schema, schema, STR("properties"));

    if (!json_is(&m->schema, properties, JSON_OBJECT) || depth == MIRROR_DEPTH_MAX)
        return;
    json_each (&m->schema, properties, at) {
        uint32_t value;

        buf_reset(&m->word);
        json_unescape(&m->schema, at, &m->word);
        value = json_member(j, given, buf_str(&m->word));
        if (value == JSON_NONE)
            continue;
        add_header(m, at + 1, j, value);
        walk(m, at + 1, j, value, depth + 1);
    }
}

size_t mirror_call(struct mirror *m, str tool, const struct json *j, uint32_t arguments)
{
    const struct mirror_tool *t = m->count ? find(m, tool) : NULL;
    struct err ignored;

    m->header_count = 0;
    if (!t ||
        json_parse(&m->schema, str_of(t->text + t->name, t->schema), NULL, &ignored) < 0)
        return 0;
    m->plain.max = m->value.max = MIRROR_VALUE_MAX;
    m->text.max = MIRROR_TEXT_MAX;
    buf_reset(&m->text);
    walk(m, JSON_ROOT, j, arguments, 0);
    for (size_t i = 0; i < m->header_count; i++) {
        const char *p = m->text.p;

        m->headers[i].name = str_of(p + m->at[i].name, m->at[i].value - m->at[i].name);
        m->headers[i].value = str_of(p + m->at[i].value, m->at[i].end - m->at[i].value);
    }
    return m->header_count;
}

void mirror_release(struct mirror *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->tools[i].text);
    free(m->tools);
    json_release(&m->schema);
    buf_release(&m->word);
    buf_release(&m->plain);
    buf_release(&m->value);
    buf_release(&m->text);
    *m = (struct mirror){ 0 };
}
