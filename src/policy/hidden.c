/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hidden.h"

#include "base/attr.h"
#include "base/utf8.h"
#include "json/text.h"

/* In order of code points. */
static const struct {
    uint32_t from, to;
    enum hidden_kind kind;
} ranges[] = {
    { 0x00, 0x08, HIDDEN_CONTROL },          { 0x0b, 0x0c, HIDDEN_CONTROL },
    { 0x0e, 0x1f, HIDDEN_CONTROL },          { 0x7f, 0x9f, HIDDEN_CONTROL },
    { 0xad, 0xad, HIDDEN_ZERO_WIDTH },       { 0x34f, 0x34f, HIDDEN_ZERO_WIDTH },
    { 0x61c, 0x61c, HIDDEN_BIDI },           { 0x115f, 0x1160, HIDDEN_ZERO_WIDTH },
    { 0x17b4, 0x17b5, HIDDEN_ZERO_WIDTH },   { 0x180b, 0x180e, HIDDEN_ZERO_WIDTH },
    { 0x200b, 0x200d, HIDDEN_ZERO_WIDTH },   { 0x200e, 0x200f, HIDDEN_BIDI },
    { 0x2028, 0x2029, HIDDEN_CONTROL },      { 0x202a, 0x202e, HIDDEN_BIDI },
    { 0x2060, 0x2064, HIDDEN_ZERO_WIDTH },   { 0x2066, 0x2069, HIDDEN_BIDI },
    { 0x206a, 0x206f, HIDDEN_ZERO_WIDTH },   { 0x3164, 0x3164, HIDDEN_ZERO_WIDTH },
    { 0xfe00, 0xfe0d, HIDDEN_VARIATION },    { 0xfeff, 0xfeff, HIDDEN_ZERO_WIDTH },
    { 0xffa0, 0xffa0, HIDDEN_ZERO_WIDTH },   { 0xfff9, 0xfffb, HIDDEN_CONTROL },
    { 0x1d173, 0x1d17a, HIDDEN_ZERO_WIDTH }, { 0xe0000, 0xe007f, HIDDEN_TAG },
    { 0xe0100, 0xe01ef, HIDDEN_VARIATION },
};

const char *hidden_name(enum hidden_kind kind)
{
    static const char *const names[] = {
        [HIDDEN_NONE] = "none",
        [HIDDEN_BIDI] = "bidi",
        [HIDDEN_ZERO_WIDTH] = "zero_width",
        [HIDDEN_TAG] = "tag",
        [HIDDEN_VARIATION] = "variation",
        [HIDDEN_CONTROL] = "control",
    };

    return names[kind];
}

static enum hidden_kind kind_of(uint32_t c)
{
    if (c >= 0x20 && c < 0x7f)
        return HIDDEN_NONE;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        if (c >= ranges[i].from && c <= ranges[i].to)
            return ranges[i].kind;
    }
    return HIDDEN_NONE;
}

static void note(struct hidden *h, uint32_t c, size_t at)
{
    enum hidden_kind kind = kind_of(c);

    if (kind == HIDDEN_NONE)
        return;
    if (h->count++ == 0) {
        h->kind = kind;
        h->code_point = c;
        h->at = at;
    }
}

/* Joins the parts of one emoji: a family, a flag. Between letters it joins nothing. */
static bool joins_emoji(uint32_t before, uint32_t c)
{
    return c == 0x200d && before >= 0x2190;
}

struct hidden hidden_find(str text)
{
    struct hidden h = { 0 };
    uint32_t c = 0, before = 0;

    for (size_t at = 0, n; at < text.n; at += n, before = c) {
        n = utf8_next(str_skip(text, at), &c);
        if (n == 0) { /* no text: as hidden as a control */
            n = 1;
            c = 0x80;
        }
        if (!joins_emoji(before, c))
            note(&h, c, at);
    }
    return h;
}

/* Between its quotes; escapes are decoded on the way. */
static void look_in_string(struct hidden *h, const struct json *j, uint32_t node)
{
    struct text t = text_of(j, node);
    size_t from = j->nodes[node].start;
    uint32_t c = 0, before = 0;

    for (size_t at = 0, n; at < t.raw.n; at += n, before = c) {
        str rest = str_skip(t.raw, at);

        n = rest.p[0] == '\\' ? text_escape(rest, &c) : utf8_next(rest, &c);
        if (n == 0 || text_is_surrogate(c)) {
            n = n ? n : 1;
            c = 0x80;
        }
        if (!joins_emoji(before, c))
            note(h, c, from);
    }
}

struct hidden hidden_in(const struct json *j, uint32_t node)
{
    struct hidden h = { 0 };

    for (uint32_t i = node; i < j->nodes[node].next; i++) {
        if (json_is(j, i, JSON_STRING))
            look_in_string(&h, j, i);
    }
    return h;
}
