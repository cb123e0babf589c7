/* SPDX-License-Identifier: Apache-2.0 */
#include "json/pretty.h"

#include "base/utf8.h"

void pretty_init(struct pretty *p, struct buf *out)
{
    *p = (struct pretty){ .out = out, .first = true };
}

static void add_unit(struct buf *out, uint32_t unit)
{
    buf_printf(out, "\\u%04x", unit);
}

static void add_code_point(struct buf *out, uint32_t c)
{
    static const char shorts[] = "\bb\tt\nn\ff\rr\"\"\\\\";

    for (const char *s = shorts; *s; s += 2) {
        if (c == (unsigned char)*s) {
            buf_add_char(out, '\\');
            buf_add_char(out, s[1]);
            return;
        }
    }
    if (c >= 0x20 && c < 0x80) {
        buf_add_char(out, (char)c);
    } else if (c < 0x10000) {
        add_unit(out, c);
    } else {
        add_unit(out, 0xd800 + ((c - 0x10000) >> 10));
        add_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
    }
}

void pretty_add_string(struct buf *out, str text)
{
    buf_add_char(out, '"');
    while (text.n) {
        uint32_t c = 0xfffd; /* what is not UTF-8 can only be replaced */
        size_t n = utf8_next(text, &c);

        add_code_point(out, n ? c : 0xfffd);
        text = str_skip(text, n ? n : 1);
    }
    buf_add_char(out, '"');
}

static void new_line(struct pretty *p)
{
    buf_add_char(p->out, '\n');
    for (unsigned i = 0; i < p->depth; i++)
        buf_add(p->out, STR("  "));
}

/* Everything before a value: comma, line, name. */
static void lead(struct pretty *p, const char *name)
{
    if (p->depth) {
        if (!p->first)
            buf_add_char(p->out, ',');
        new_line(p);
    }
    if (name) {
        pretty_add_string(p->out, str_from(name));
        buf_add(p->out, STR(": "));
    }
    p->first = false;
}

static void open_container(struct pretty *p, const char *name, char bracket)
{
    lead(p, name);
    buf_add_char(p->out, bracket);
    p->depth++;
    p->first = true;
}

static void close_container(struct pretty *p, char bracket)
{
    bool empty = p->first;

    p->depth--;
    p->first = false;
    if (!empty)
        new_line(p);
    buf_add_char(p->out, bracket);
}

void pretty_object(struct pretty *p, const char *name)
{
    open_container(p, name, '{');
}

void pretty_array(struct pretty *p, const char *name)
{
    open_container(p, name, '[');
}

void pretty_end_object(struct pretty *p)
{
    close_container(p, '}');
}

void pretty_end_array(struct pretty *p)
{
    close_container(p, ']');
}

void pretty_string(struct pretty *p, const char *name, str text)
{
    lead(p, name);
    pretty_add_string(p->out, text);
}

void pretty_text(struct pretty *p, const char *name, const char *text)
{
    pretty_string(p, name, str_from(text));
}

void pretty_u64(struct pretty *p, const char *name, uint64_t value)
{
    lead(p, name);
    buf_add_u64(p->out, value);
}

void pretty_bool(struct pretty *p, const char *name, bool value)
{
    pretty_raw(p, name, value ? STR("true") : STR("false"));
}

void pretty_null(struct pretty *p, const char *name)
{
    pretty_raw(p, name, STR("null"));
}

void pretty_raw(struct pretty *p, const char *name, str json)
{
    lead(p, name);
    buf_add(p->out, json);
}

static void add_node_string(struct buf *out, const struct json *j, uint32_t node)
{
    CLEANUP(buf_release) struct buf text = { .max = out->max };

    json_unescape(j, node, &text);
    out->failed |= text.failed;
    pretty_add_string(out, buf_str(&text));
}

/* After lead(): the value itself. Depth is bounded by the parser. */
static void add_value(struct pretty *p, const struct json *j, uint32_t node)
{
    bool object = json_is(j, node, JSON_OBJECT);

    if (!object && !json_is(j, node, JSON_ARRAY)) {
        if (json_is(j, node, JSON_STRING))
            add_node_string(p->out, j, node);
        else
            buf_add(p->out, json_raw(j, node));
        return;
    }
    buf_add_char(p->out, object ? '{' : '[');
    p->depth++;
    p->first = true;
    json_each (j, node, at) {
        lead(p, NULL);
        if (object) {
            add_node_string(p->out, j, at);
            buf_add(p->out, STR(": "));
        }
        add_value(p, j, object ? at + 1 : at);
    }
    close_container(p, object ? '}' : ']');
}

void pretty_node(struct pretty *p, const char *name, const struct json *j, uint32_t node)
{
    lead(p, name);
    add_value(p, j, node);
}
