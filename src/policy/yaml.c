/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"

struct reader {
    yaml_parser_t parser;
    const char *name;
    str text; /* all of it */
    struct arena *arena;
    struct err *err;
    struct yaml *root;
    struct yaml *open[YAML_MAX_DEPTH];
    size_t depth;
    size_t nodes;
    str key; /* of the next value in the open map; p is NULL while a key is due */
    unsigned key_line;
};

static unsigned line_of(const yaml_event_t *e)
{
    return (unsigned)e->start_mark.line + 1;
}

static int complain(struct reader *r, enum err_code code, unsigned line, const char *what)
{
    return err_set(r->err, code, "%s:%u: %s", r->name, line, what);
}

static str line_at(str text, size_t line)
{
    str at;

    for (size_t i = 0; str_line(&text, &at); i++) {
        if (i == line)
            return at;
    }
    return text;
}

/* The mistakes that everybody makes once. */
static const char *hint_for(str line)
{
    if (line.n && memchr(line.p, '\t', line.n))
        return "; there is a tab: indent with spaces";
    for (size_t i = 0; i < line.n; i++) {
        if (memchr("*!&@%`", line.p[i], 6))
            return "; a text that begins with * ! & @ % or ` needs quotes";
    }
    return "";
}

static int parser_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line;

    if (p->error == YAML_MEMORY_ERROR)
        return err_set(r->err, ERR_NOMEM, "out of memory");
    return err_set(r->err, ERR_FORMAT, "%s:%zu: not YAML: %s%s", r->name, line + 1,
                   p->problem ? p->problem : "unreadable",
                   hint_for(line_at(r->text, line)));
}

/* --- the tree --- */

static int compare_keys(const void *a, const void *b)
{
    const struct yaml *x = *(struct yaml *const *)a, *y = *(struct yaml *const *)b;
    size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
    int order = n ? memcmp(x->key.p, y->key.p, n) : 0;

    if (order == 0 && x->key.n != y->key.n)
        order = x->key.n < y->key.n ? -1 : 1;
    if (order == 0)
        order = x->key_line < y->key_line ? -1 : x->key_line > y->key_line;
    return order;
}

/* Sorted once, when the map ends: however many keys, n log n. */
static int check_duplicates(struct reader *r, const struct yaml *map)
{
    struct yaml **sorted;
    size_t n = 0;

    if (map->count < 2)
        return 0;
    sorted = arena_alloc(r->arena, map->count * sizeof(struct yaml *));
    if (!sorted)
        return err_set(r->err, ERR_NOMEM, "out of memory");
    for (struct yaml *y = map->first; y; y = y->next)
        sorted[n++] = y;
    qsort(sorted, n, sizeof(struct yaml *), compare_keys);
    for (size_t i = 1; i < n; i++) {
        if (str_equal(sorted[i - 1]->key, sorted[i]->key))
            return err_set(r->err, ERR_FORMAT,
                           "%s:%u: '%.*s' stands here a second time (first in line %u)",
                           r->name, sorted[i]->key_line,
                           (int)(sorted[i]->key.n < 64 ? sorted[i]->key.n : 64),
                           sorted[i]->key.p, sorted[i - 1]->key_line);
    }
    return 0;
}

static void hang(struct reader *r, struct yaml *y)
{
    struct yaml *parent = r->depth ? r->open[r->depth - 1] : NULL;

    if (!parent) {
        r->root = y;
        return;
    }
    if (parent->kind == YAML_MAP) {
        y->key = r->key;
        y->key_line = r->key_line;
        r->key = (str){ NULL, 0 };
    }
    *(parent->last ? &parent->last->next : &parent->first) = y;
    parent->last = y;
    parent->count++;
}

static bool wants_key(const struct reader *r)
{
    return r->depth && r->open[r->depth - 1]->kind == YAML_MAP && !r->key.p;
}

static int add(struct reader *r, enum yaml_kind kind, const yaml_event_t *e,
               struct yaml **out)
{
    struct yaml *y;

    if (++r->nodes > YAML_MAX_NODES)
        return complain(r, ERR_LIMIT, line_of(e), "too many values in one file");
    y = arena_new(r->arena, struct yaml);
    if (!y)
        return err_set(r->err, ERR_NOMEM, "out of memory");
    y->kind = kind;
    y->line = line_of(e);
    hang(r, y);
    *out = y;
    return 0;
}

static int add_container(struct reader *r, enum yaml_kind kind, const yaml_event_t *e)
{
    struct yaml *y;

    if (wants_key(r))
        return complain(r, ERR_FORMAT, line_of(e), "expected a name as key");
    if (r->depth == YAML_MAX_DEPTH)
        return complain(r, ERR_LIMIT, line_of(e), "nested deeper than 16 levels");
    if (add(r, kind, e, &y) < 0)
        return -1;
    r->open[r->depth++] = y;
    return 0;
}

static int add_scalar(struct reader *r, const yaml_event_t *e)
{
    str text = str_of(e->data.scalar.value, e->data.scalar.length);
    struct yaml *y;

    text = text.n ? arena_dup(r->arena, text) : STR("");
    if (!text.p)
        return err_set(r->err, ERR_NOMEM, "out of memory");
    if (wants_key(r)) {
        if (++r->nodes > YAML_MAX_NODES)
            return complain(r, ERR_LIMIT, line_of(e), "too many values in one file");
        r->key = text;
        r->key_line = line_of(e);
        return 0;
    }
    if (add(r, YAML_TEXT, e, &y) < 0)
        return -1;
    y->text = text;
    y->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

/* --- events --- */

static int refuse_extras(struct reader *r, const yaml_event_t *e)
{
    bool anchored = false, tagged = false;

    switch ((int)e->type) {
    case YAML_SCALAR_EVENT:
        anchored = e->data.scalar.anchor;
        tagged = e->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchored = e->data.sequence_start.anchor;
        tagged = e->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchored = e->data.mapping_start.anchor;
        tagged = e->data.mapping_start.tag;
        break;
    case YAML_DOCUMENT_START_EVENT:
        tagged = e->data.document_start.tag_directives.start !=
                 e->data.document_start.tag_directives.end;
        break;
    case YAML_ALIAS_EVENT:
        anchored = true;
        break;
    default:
        break;
    }
    if (anchored)
        return complain(r, ERR_FORMAT, line_of(e),
                        "anchors and aliases (& and *) are not accepted; quote a name "
                        "that begins with one of them");
    if (tagged)
        return complain(r, ERR_FORMAT, line_of(e),
                        "tags (!) are not accepted; quote a text that begins with '!'");
    return 0;
}

static int on_event(struct reader *r, const yaml_event_t *e)
{
    if (refuse_extras(r, e) < 0)
        return -1;
    switch ((int)e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->root)
            return complain(r, ERR_FORMAT, line_of(e),
                            "expected one document, here begins a second");
        return 0;
    case YAML_SCALAR_EVENT:
        return add_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return add_container(r, YAML_LIST, e);
    case YAML_MAPPING_START_EVENT:
        return add_container(r, YAML_MAP, e);
    case YAML_MAPPING_END_EVENT:
        return check_duplicates(r, r->open[--r->depth]);
    case YAML_SEQUENCE_END_EVENT:
        r->depth--;
        return 0;
    default:
        return 0;
    }
}

static int read_events(struct reader *r)
{
    for (;;) {
        yaml_event_t e;
        bool end;
        int result;

        if (!yaml_parser_parse(&r->parser, &e))
            return parser_error(r);
        end = e.type == YAML_STREAM_END_EVENT;
        result = on_event(r, &e);
        yaml_event_delete(&e);
        if (result < 0 || end)
            return result;
    }
}

/* libyaml would guess UTF-16, and says nothing of a line where bytes are no text. */
static int check_text(str bytes, const char *name, struct err *err)
{
    unsigned line = 1;

    while (bytes.n) {
        uint32_t c;
        size_t n = utf8_next(bytes, &c);

        if (n == 0)
            return err_set(err, ERR_FORMAT, "%s:%u: expected UTF-8", name, line);
        if (c == 0)
            return err_set(err, ERR_FORMAT, "%s:%u: expected text, found a NUL byte",
                           name, line);
        line += c == '\n';
        bytes = str_skip(bytes, n);
    }
    return 0;
}

int yaml_parse(struct yaml **out, str bytes, const char *name, struct arena *arena,
               struct err *err)
{
    struct reader r = { .name = name, .arena = arena, .err = err };
    int result;

    if (str_starts(bytes, STR("\xef\xbb\xbf")))
        bytes = str_skip(bytes, 3);
    if (check_text(bytes, name, err) < 0)
        return -1;
    r.text = bytes;
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_NOMEM, "out of memory");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &r.parser, (const unsigned char *)(bytes.n ? bytes.p : ""), bytes.n);
    result = read_events(&r);
    yaml_parser_delete(&r.parser);
    if (result == 0 && !r.root)
        return err_set(err, ERR_FORMAT, "%s:1: the file is empty", name);
    if (result == 0)
        *out = r.root;
    return result;
}

/* --- the core schema --- */

static bool is_one_of(str text, const char *const *words)
{
    for (; *words; words++) {
        if (str_is(text, *words))
            return true;
    }
    return false;
}

bool yaml_is_null(const struct yaml *y)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };

    return y->kind == YAML_TEXT && !y->quoted && is_one_of(y->text, nulls);
}

bool yaml_is_bool(const struct yaml *y, bool *value)
{
    static const char *const yes[] = { "true", "True", "TRUE", NULL };
    static const char *const no[] = { "false", "False", "FALSE", NULL };

    if (y->kind != YAML_TEXT || y->quoted)
        return false;
    if (is_one_of(y->text, yes)) {
        *value = true;
        return true;
    }
    if (!is_one_of(y->text, no))
        return false;
    *value = false;
    return true;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static bool read_digits(str digits, unsigned base, uint64_t *value)
{
    uint64_t v = 0;

    for (size_t i = 0; i < digits.n; i++) {
        unsigned d = (unsigned)digit_of(digits.p[i]);

        if (d >= base || v > (UINT64_MAX - d) / base)
            return false;
        v = v * base + d;
    }
    *value = v;
    return digits.n > 0;
}

bool yaml_is_u64(const struct yaml *y, uint64_t *value)
{
    if (y->kind != YAML_TEXT || y->quoted)
        return false;
    if (str_starts(y->text, STR("0x")))
        return read_digits(str_skip(y->text, 2), 16, value);
    if (str_starts(y->text, STR("0o")))
        return read_digits(str_skip(y->text, 2), 8, value);
    return read_digits(str_skip(y->text, y->text.n && y->text.p[0] == '+'), 10, value);
}

static size_t skip_digits(str t, size_t i)
{
    while (i < t.n && t.p[i] >= '0' && t.p[i] <= '9')
        i++;
    return i;
}

/* [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)? and the three words. */
static bool is_number(str t)
{
    static const char *const words[] = { ".inf", ".Inf", ".INF", ".nan",
                                         ".NaN", ".NAN", NULL };
    size_t i = t.n && (t.p[0] == '-' || t.p[0] == '+'), from = i, digits;

    if (is_one_of(str_skip(t, i), words))
        return true;
    i = skip_digits(t, i);
    digits = i - from;
    if (i < t.n && t.p[i] == '.') {
        from = i + 1;
        i = skip_digits(t, from);
        digits += i - from;
    }
    if (digits == 0)
        return false;
    if (i < t.n && (t.p[i] == 'e' || t.p[i] == 'E')) {
        i++;
        i += i < t.n && (t.p[i] == '-' || t.p[i] == '+');
        from = i;
        i = skip_digits(t, from);
        if (i == from)
            return false;
    }
    return i == t.n;
}

bool yaml_is_string(const struct yaml *y)
{
    bool flag;
    uint64_t number;

    if (y->kind != YAML_TEXT)
        return false;
    return y->quoted || !(yaml_is_null(y) || yaml_is_bool(y, &flag) ||
                          yaml_is_u64(y, &number) || is_number(y->text));
}

const char *yaml_kind_name(const struct yaml *y)
{
    bool flag;

    if (y->kind != YAML_TEXT)
        return y->kind == YAML_LIST ? "a list" : "a map";
    if (yaml_is_null(y))
        return "nothing";
    if (yaml_is_bool(y, &flag))
        return "true or false";
    return yaml_is_string(y) ? "a text" : "a number";
}
