/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While a container is open, its node's `next` holds the container around it: the nodes
 * are the stack. Its `end` has a bit for each name that was seen in it, and `spare` says
 * that two of them had the same one.
 */
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/utf8.h"
#include "json/members.h"
#include "json/text.h"

#define FIRST_NODES 64

struct parser {
    struct json *j;
    const char *end;
    uint32_t open; /* the innermost open container, or JSON_NONE */
    uint32_t room; /* nodes that there may be, as things are */
    uint32_t max_nodes;
    unsigned depth;
    unsigned max_depth;
    unsigned opaque_depth;
    bool done;
    struct members members;
    struct err *err;
};

/* The functions below take the place in the text and return the place after what they
 * read, NULL when they failed. */

static size_t offset(const struct parser *p, const char *at)
{
    return (size_t)(at - p->j->text.p);
}

static const char *fail(struct parser *p, const char *at, const char *expected)
{
    char found[32] = "the end of the text";

    if (at<p->end && * at> ' ' && *at < 0x7f)
        snprintf(found, sizeof(found), "'%c'", *at);
    else if (at < p->end)
        snprintf(found, sizeof(found), "the byte 0x%02x", (unsigned char)*at);
    err_set(p->err, ERR_FORMAT, "not JSON at byte %zu: expected %s, found %s",
            offset(p, at), expected, found);
    return NULL;
}

static int more_nodes(struct parser *p, const char *at)
{
    struct json *j = p->j;
    uint64_t cap = j->cap ? (uint64_t)j->cap * 2 : FIRST_NODES;
    struct json_node *nodes;

    if (j->count >= p->max_nodes)
        return err_set(p->err, ERR_LIMIT,
                       "too much JSON at byte %zu: more than %u values and names",
                       offset(p, at), p->max_nodes);
    if (cap > p->max_nodes)
        cap = p->max_nodes;
    nodes = realloc(j->nodes, cap * sizeof(*nodes));
    if (!nodes)
        return err_set(p->err, ERR_NOMEM, "no memory for an index of %llu values",
                       (unsigned long long)cap);
    j->nodes = nodes;
    j->cap = p->room = (uint32_t)cap;
    return 0;
}

static inline struct json_node *add(struct parser *p, const char *at, enum json_kind kind)
{
    struct json *j = p->j;
    struct json_node *n;

    if (j->count >= p->room && more_nodes(p, at) < 0)
        return NULL;
    n = &j->nodes[j->count++];
    *n = (struct json_node){ .start = (uint32_t)offset(p, at),
                             .next = j->count,
                             .kind = (uint8_t)kind };
    return n;
}

#if defined(__SSE2__)

static const char *skip_blanks(const char *at, const char *end)
{
    for (; end - at >= 16; at += 16) {
        __m128i v = text_load(at);
        __m128i blank =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')),
                                      _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'))),
                         _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\r')),
                                      _mm_cmpeq_epi8(v, _mm_set1_epi8('\t'))));
        unsigned other = ~(unsigned)_mm_movemask_epi8(blank) & 0xffff;

        if (other)
            return at + __builtin_ctz(other);
    }
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

#else

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

#endif

static inline const char *skip_space(const char *at, const char *end)
{
    if (at < end && (unsigned char)*at > ' ')
        return at;
    return skip_blanks(at, end);
}

static const char *bad_contents(struct parser *p, const char *at)
{
    if (at == p->end)
        return fail(p, at, "'\"' at the end of the string");
    if (*at != '\\')
        return fail(p, at,
                    (unsigned char)*at < 0x20 ? "an escape for this control character"
                                              : "valid UTF-8");
    if (at + 1 < p->end && at[1] == 'u')
        return fail(p, at, "four hexadecimal digits after '\\u'");
    return fail(p, at + 1, "one of \"\\/bfnrtu after '\\'");
}

/* From the first backslash to the closing quote. */
static const char *escaped_rest(struct parser *p, const char *at, struct json_node *n)
{
    n->flags |= JSON_ESCAPED;
    while (at < p->end && *at == '\\') {
        uint32_t c;
        size_t used = text_escape(str_of(at, (size_t)(p->end - at)), &c);

        if (used == 0)
            break;
        if (text_is_surrogate(c))
            n->flags |= JSON_LONE_SURROGATE | JSON_TAINTED;
        at = text_scan(at + used, p->end);
    }
    if (n->flags & JSON_TAINTED && p->open != JSON_NONE)
        p->j->nodes[p->open].flags |= JSON_TAINTED;
    return at;
}

/* A string's node is the last one when this returns. */
static inline const char *string(struct parser *p, const char *at)
{
    struct json_node *n = add(p, at, JSON_STRING);

    if (!n)
        return NULL;
    at = text_scan(at + 1, p->end);
    if (at < p->end && *at == '\\')
        at = escaped_rest(p, at, n);
    if (at == p->end || *at != '"')
        return bad_contents(p, at);
    n->end = (uint32_t)offset(p, at + 1);
    return at + 1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *skip_digits(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t w;

        memcpy(&w, at, 8);
        if ((w & (w + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) != 0x3030303030303030u)
            break;
        at += 8;
    }
    while (at < end && is_digit(*at))
        at++;
    return at;
}

static inline const char *some_digits(struct parser *p, const char *at, const char *what)
{
    if (at == p->end || !is_digit(*at))
        return fail(p, at, what);
    return skip_digits(at, p->end);
}

static const char *fraction(struct parser *p, const char *at)
{
    if (at < p->end && *at == '.')
        at = some_digits(p, at + 1, "a digit after '.'");
    if (at && at < p->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < p->end && (*at == '+' || *at == '-'))
            at++;
        at = some_digits(p, at, "a digit in the exponent");
    }
    return at;
}

static inline const char *number(struct parser *p, const char *at)
{
    struct json_node *n = add(p, at, JSON_NUMBER);
    const char *whole;

    if (!n)
        return NULL;
    if (*at == '-')
        at++;
    whole = at;
    at = some_digits(p, at, "a digit after '-'");
    if (!at)
        return NULL;
    if (*whole == '0' && at - whole > 1)
        return fail(p, whole + 1, "no digit after a leading 0");
    if (at < p->end && (*at == '.' || *at == 'e' || *at == 'E'))
        at = fraction(p, at);
    else
        n->flags = JSON_INTEGER;
    if (at)
        n->end = (uint32_t)offset(p, at);
    return at;
}

static const char *word(struct parser *p, const char *at, str spelling,
                        enum json_kind kind)
{
    struct json_node *n;

    if ((size_t)(p->end - at) < spelling.n || memcmp(at, spelling.p, spelling.n) != 0)
        return fail(p, at, "a value (true, false and null are the only words)");
    n = add(p, at, kind);
    if (!n)
        return NULL;
    at += spelling.n;
    n->end = (uint32_t)offset(p, at);
    return at;
}

/* At the closing bracket of the innermost container. */
static const char *close_container(struct parser *p, const char *at)
{
    struct json *j = p->j;
    struct json_node *n = &j->nodes[p->open];
    uint32_t around = n->next;
    bool alike = n->spare != 0;
    int duplicate = 0;

    n->end = (uint32_t)offset(p, at + 1);
    n->next = j->count;
    n->spare = 0;
    if (alike)
        duplicate = members_repeat(&p->members, j, p->open, p->err);
    if (duplicate < 0)
        return NULL;
    if (duplicate)
        n->flags |= JSON_DUPLICATE | JSON_TAINTED;
    if (around != JSON_NONE)
        j->nodes[around].flags |= n->flags & JSON_TAINTED;
    p->open = around;
    p->depth--;
    return at + 1;
}

/* The string in [from, to) is a name in the innermost container. Most objects have a few
 * names, no two of which look alike at a glance. */
static inline void note_name(struct parser *p, const char *from, const char *to)
{
    struct json_node *object = &p->j->nodes[p->open];
    unsigned glance =
        (unsigned char)from[1] + 3u * (unsigned char)to[-2] + 5u * (unsigned)(to - from);
    uint32_t bit = 1u << (glance & 31);
    unsigned flags = p->j->nodes[p->j->count - 1].flags;

    object->spare |= (object->end & bit) != 0 || (flags & JSON_ESCAPED);
    object->end |= bit;
}

/* A member's name and colon, up to its value. */
static inline const char *name(struct parser *p, const char *at)
{
    const char *from = at;

    if (at == p->end || *at != '"')
        return fail(p, at, "a member name in quotes");
    at = string(p, at);
    if (!at)
        return NULL;
    note_name(p, from, at);
    if (p->end - at > 1 && at[0] == ':' && (unsigned char)at[1] > ' ')
        return at + 1;
    at = skip_space(at, p->end);
    if (at == p->end || *at != ':')
        return fail(p, at, "':' after the member name");
    return skip_space(at + 1, p->end);
}

static const char *skip_string(struct parser *p, const char *at)
{
    struct json_node ignored = { 0 };

    at = text_scan(at + 1, p->end);
    if (at < p->end && *at == '\\')
        at = escaped_rest(p, at, &ignored);
    return at < p->end && *at == '"' ? at + 1 : bad_contents(p, at);
}

/* To the bracket that closes this one. */
static const char *skip_inside(struct parser *p, const char *at)
{
    size_t depth = 0;

    while (at && at < p->end) {
        if (*at == '"') {
            at = skip_string(p, at);
            continue;
        }
        if (*at == '[' || *at == '{')
            depth++;
        if ((*at == ']' || *at == '}') && --depth == 0)
            return at + 1;
        at++;
    }
    return at ? fail(p, at, "a closing bracket") : NULL;
}

static const char *skip_container(struct parser *p, const char *at, enum json_kind kind)
{
    struct json_node *n = add(p, at, kind);

    if (!n)
        return NULL;
    at = skip_inside(p, at);
    if (!at)
        return NULL;
    n->end = (uint32_t)offset(p, at);
    n->flags = JSON_OPAQUE | JSON_TAINTED;
    if (p->open != JSON_NONE)
        p->j->nodes[p->open].flags |= JSON_TAINTED;
    return at;
}

/* Leaves *complete false when it stopped before the first value inside. */
static const char *open_container(struct parser *p, const char *at, bool *complete)
{
    enum json_kind kind = *at == '{' ? JSON_OBJECT : JSON_ARRAY;
    struct json_node *n;

    if (p->opaque_depth && p->depth >= p->opaque_depth) {
        *complete = true;
        return skip_container(p, at, kind);
    }
    if (p->depth >= p->max_depth) {
        err_set(p->err, ERR_LIMIT,
                "too much JSON at byte %zu: nested deeper than %u levels", offset(p, at),
                p->max_depth);
        return NULL;
    }
    n = add(p, at, kind);
    if (!n)
        return NULL;
    n->next = p->open;
    p->open = p->j->count - 1;
    p->depth++;
    at = skip_space(at + 1, p->end);
    if (at < p->end && *at == (kind == JSON_OBJECT ? '}' : ']')) {
        *complete = true;
        return close_container(p, at);
    }
    return kind == JSON_OBJECT ? name(p, at) : at;
}

static const char *no_value(struct parser *p, const char *at)
{
    if (p->end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        return fail(p, at, "a value without a byte order mark before it");
    return fail(p, at, "a value");
}

static inline const char *value(struct parser *p, const char *at, bool *complete)
{
    *complete = true;
    if (at == p->end)
        return no_value(p, at);
    switch (*at) {
    case '"':
        return string(p, at);
    case '{':
    case '[':
        *complete = false;
        return open_container(p, at, complete);
    case 't':
        return word(p, at, STR("true"), JSON_TRUE);
    case 'f':
        return word(p, at, STR("false"), JSON_FALSE);
    case 'n':
        return word(p, at, STR("null"), JSON_NULL);
    default:
        return *at == '-' || is_digit(*at) ? number(p, at) : no_value(p, at);
    }
}

/* After a complete value: close what ends here, up to the next value. NULL with
 * p->done at the end of the text. */
static inline const char *follow(struct parser *p, const char *at)
{
    for (;;) {
        bool in_object;

        at = skip_space(at, p->end);
        if (p->open == JSON_NONE) {
            p->done = at == p->end;
            return p->done ? NULL : fail(p, at, "nothing after the value");
        }
        in_object = p->j->nodes[p->open].kind == JSON_OBJECT;
        if (at < p->end && *at == ',') {
            at = skip_space(at + 1, p->end);
            return in_object ? name(p, at) : at;
        }
        if (at == p->end || *at != (in_object ? '}' : ']'))
            return fail(p, at, in_object ? "',' or '}'" : "',' or ']'");
        at = close_container(p, at);
        if (!at)
            return NULL;
    }
}

static int parse(struct parser *p)
{
    const char *at = skip_space(p->j->text.p, p->end);

    while (at) {
        bool complete;

        at = value(p, at, &complete);
        if (at && complete)
            at = follow(p, at);
    }
    members_release(&p->members);
    return p->done ? 0 : -1;
}

int json_parse(struct json *j, str text, const struct json_limits *limits,
               struct err *err)
{
    struct json_limits l = limits ? *limits : (struct json_limits){ 0 };
    size_t max_bytes = l.max_bytes ? l.max_bytes : JSON_MAX_BYTES - 1;
    struct parser p = {
        .j = j,
        .open = JSON_NONE,
        .room = j->cap,
        .max_nodes = l.max_nodes ? l.max_nodes : JSON_MAX_NODES,
        .max_depth = l.max_depth ? l.max_depth : JSON_MAX_DEPTH,
        .opaque_depth = l.opaque_depth,
        .err = err,
    };

    j->count = 0;
    j->text = (str){ NULL, 0 };
    if (text.n > max_bytes || text.n >= JSON_MAX_BYTES)
        return err_set(err, ERR_LIMIT, "too much JSON: %zu bytes, the limit is %zu",
                       text.n,
                       max_bytes < JSON_MAX_BYTES ? max_bytes : JSON_MAX_BYTES - 1);
    j->text = text.n ? text : STR("");
    p.end = j->text.p + text.n;
    if (p.room > p.max_nodes)
        p.room = p.max_nodes;
    if (parse(&p) == 0)
        return 0;
    j->count = 0;
    j->text = (str){ NULL, 0 };
    return -1;
}

void json_release(struct json *j)
{
    free(j->nodes);
    *j = (struct json){ 0 };
}

bool json_take(struct json *j, struct json *from, str text, uint32_t max_nodes)
{
    struct json old = *j;

    if (!from || from->count == 0 || from->count > max_nodes || from->text.p != text.p ||
        from->text.n != text.n)
        return false;
    *j = *from;
    *from = old;
    return true;
}

uint32_t json_member(const struct json *j, uint32_t object, str name)
{
    uint32_t end;

    if (!json_is(j, object, JSON_OBJECT))
        return JSON_NONE;
    end = j->nodes[object].next;
    for (uint32_t at = object + 1; at < end; at = j->nodes[at + 1].next) {
        const struct json_node *n = &j->nodes[at];

        if ((n->end - n->start == name.n + 2 || (n->flags & JSON_ESCAPED)) &&
            json_string_is(j, at, name))
            return at + 1;
    }
    return JSON_NONE;
}

uint32_t json_count(const struct json *j, uint32_t container)
{
    uint32_t n = 0;

    if (!json_is(j, container, JSON_ARRAY) && !json_is(j, container, JSON_OBJECT))
        return 0;
    json_each (j, container, at)
        n++;
    return n;
}

bool json_escaped_is(const struct json *j, uint32_t node, str value)
{
    return text_equal(text_of(j, node), (struct text){ value, false });
}

void json_unescape(const struct json *j, uint32_t node, struct buf *out)
{
    str rest = text_of(j, node).raw;

    while (rest.n) {
        const char *slash = memchr(rest.p, '\\', rest.n);
        size_t plain = slash ? (size_t)(slash - rest.p) : rest.n;
        uint32_t c = 0;
        size_t used;

        buf_add(out, str_first(rest, plain));
        rest = str_skip(rest, plain);
        used = text_escape(rest, &c);
        if (used == 0)
            return;
        utf8_add(out, c);
        rest = str_skip(rest, used);
    }
}

bool json_int(const struct json *j, uint32_t node, int64_t *value)
{
    const int64_t max = ((int64_t)1 << 53) - 1;
    int64_t v = 0;
    str raw;
    bool negative;

    if (!json_is(j, node, JSON_NUMBER) || !(j->nodes[node].flags & JSON_INTEGER))
        return false;
    raw = json_raw(j, node);
    negative = raw.p[0] == '-';
    for (size_t i = negative; i < raw.n; i++) {
        v = v * 10 + (raw.p[i] - '0');
        if (v > max)
            return false;
    }
    *value = negative ? -v : v;
    return true;
}
