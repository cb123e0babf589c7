/* SPDX-License-Identifier: Apache-2.0 */
#include "json/jcs.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "json/number.h"
#include "json/text.h"

#define CHUNK         4096 /* what a sink sees at once, unless one string is longer */
#define FIRST_SCRATCH 32   /* of each kind, without asking for memory */
#define SORT_IN_PLACE 16
#define NAME_SHOWN    64 /* bytes of a foreign name in a message */

/* One member of an open object. */
struct member {
    uint64_t key; /* text_key() of the name */
    uint32_t name;
};

/* One open container. */
struct frame {
    uint32_t node;
    uint32_t at;    /* array: the next element */
    size_t members; /* object: where its members start in the scratch … */
    size_t next;    /* … and which comes next */
};

struct writer {
    const struct json *j;
    const struct sink *sink;
    struct err *err;
    bool capital_e;
    struct member *members; /* of all open objects, innermost last */
    size_t members_n, members_cap;
    struct frame *frames;
    size_t frames_n, frames_cap;
    size_t n;
    struct member first_members[FIRST_SCRATCH];
    struct frame first_frames[FIRST_SCRATCH];
    char chunk[CHUNK];
};

static void flush(struct writer *w)
{
    if (w->n)
        sink_write(w->sink, str_of(w->chunk, w->n));
    w->n = 0;
}

static void put_long(struct writer *w, const char *p, size_t n)
{
    flush(w);
    if (n >= CHUNK / 4) {
        sink_write(w->sink, str_of(p, n));
        return;
    }
    memcpy(w->chunk, p, n);
    w->n = n;
}

static inline void put(struct writer *w, const char *p, size_t n)
{
    if (n > CHUNK - w->n) {
        put_long(w, p, n);
        return;
    }
    memcpy(w->chunk + w->n, p, n);
    w->n += n;
}

/* What stands in the text, as it stands there. */
static inline void put_source(struct writer *w, uint32_t node)
{
    str raw = json_raw(w->j, node);

    if (raw.n > CHUNK - w->n)
        put_long(w, raw.p, raw.n);
    else
        w->n = (size_t)(str_put(w->chunk + w->n, raw) - w->chunk);
}

static inline void put_char(struct writer *w, char c)
{
    if (w->n == CHUNK)
        flush(w);
    w->chunk[w->n++] = c;
}

/* The only spelling of a code point inside a canonical string. Returns its length. */
static size_t spell(char out[static 6], uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
    };
    char letter = c < 32 ? letters[c] : c == '"' || c == '\\' ? (char)c : '\0';

    if (letter) {
        out[0] = '\\';
        out[1] = letter;
        return 2;
    }
    if (c >= 32)
        return utf8_put(out, c);
    memcpy(out, "\\u00", 4);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}

/* A canonical escape stays in the run of bytes that are written as they are. */
static bool is_canonical_escape(const char *at)
{
    switch (at[1]) {
    case '"':
    case '\\':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return true;
    default:
        return false;
    }
}

/* From `at` to the next escape that has another canonical spelling. */
static const char *next_respelled(const char *at, const char *end)
{
    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        if (!is_canonical_escape(at))
            return at;
        at += 2;
    }
    return end;
}

static int write_escaped(struct writer *w, str raw)
{
    const char *at = raw.p, *end = raw.p + raw.n;

    for (;;) {
        const char *stop = next_respelled(at, end);
        uint32_t c = 0;
        char bytes[6];
        size_t used;

        put(w, at, (size_t)(stop - at));
        if (stop == end)
            return 0;
        used = text_escape(str_of(stop, (size_t)(end - stop)), &c);
        if (used == 0 || text_is_surrogate(c))
            return err_set(w->err, ERR_FORMAT,
                           "no canonical form: a lone surrogate at byte %zu",
                           (size_t)(stop - w->j->text.p));
        put(w, bytes, spell(bytes, c));
        at = stop + used;
    }
}

static inline int write_string(struct writer *w, uint32_t node)
{
    if (w->j->nodes[node].flags & JSON_ESCAPED)
        return write_escaped(w, json_raw(w->j, node));
    put_source(w, node);
    return 0;
}

static int write_number(struct writer *w, uint32_t node)
{
    size_t n;

    if (CHUNK - w->n < NUMBER_TEXT_MAX)
        flush(w);
    n = number_canonical(w->chunk + w->n, json_raw(w->j, node), w->capital_e);
    if (n == 0)
        return err_set(w->err, ERR_FORMAT,
                       "no canonical form: the number at byte %u is beyond a double",
                       w->j->nodes[node].start);
    w->n += n;
    return 0;
}

static int compare_members(const void *a, const void *b, void *ctx)
{
    const struct member *x = a, *y = b;
    const struct json *j = ctx;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return text_compare(text_of(j, x->name), text_of(j, y->name));
}

/* Few members are inserted one by one; so are many that come in order already. */
static void sort_members(struct writer *w, struct member *m, size_t n)
{
    union {
        const struct json *j;
        void *ctx;
    } u = { w->j };

    for (size_t i = 1; i < n; i++) {
        struct member moving = m[i];
        size_t k = i;

        if (compare_members(&m[i - 1], &moving, u.ctx) <= 0)
            continue;
        if (n > SORT_IN_PLACE) {
            qsort_r(m, n, sizeof(*m), compare_members, u.ctx);
            return;
        }
        for (; k > 0 && compare_members(&m[k - 1], &moving, u.ctx) > 0; k--)
            m[k] = m[k - 1];
        m[k] = moving;
    }
}

/* `first` is not from malloc(). */
static int grow(void **items, const void *first, size_t *cap, size_t size,
                struct err *err)
{
    size_t more = *cap * 2;
    void *p = realloc(*items == first ? NULL : *items, more * size);

    if (!p)
        return err_set(err, ERR_NOMEM, "no memory to sort %zu members", more);
    if (*items == first)
        memcpy(p, first, *cap * size);
    *items = p;
    *cap = more;
    return 0;
}

static inline int add_member(struct writer *w, uint32_t name)
{
    if (w->members_n == w->members_cap) {
        void *items = w->members;

        if (grow(&items, w->first_members, &w->members_cap, sizeof(*w->members), w->err) <
            0)
            return -1;
        w->members = items;
    }
    w->members[w->members_n++] =
        (struct member){ .key = text_key(text_of(w->j, name)), .name = name };
    return 0;
}

static int duplicate(struct writer *w, const struct member *m, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct text a = text_of(w->j, m[i - 1].name), b = text_of(w->j, m[i].name);

        if (text_equal(a, b))
            return err_set(w->err, ERR_FORMAT,
                           "no canonical form: duplicate member '" STR_FMT "' at byte %u",
                           STR_ARG(str_first(b.raw, NAME_SHOWN)),
                           w->j->nodes[m[i].name].start);
    }
    return err_set(w->err, ERR_FORMAT, "no canonical form: duplicate members");
}

static bool is_dropped(const struct json *j, uint32_t name, const char *const *drop,
                       size_t drop_count)
{
    for (size_t i = 0; i < drop_count; i++) {
        if (json_string_is(j, name, str_from(drop[i])))
            return true;
    }
    return false;
}

static int push(struct writer *w, uint32_t node)
{
    if (w->frames_n == w->frames_cap) {
        void *items = w->frames;

        if (grow(&items, w->first_frames, &w->frames_cap, sizeof(*w->frames), w->err) < 0)
            return -1;
        w->frames = items;
    }
    w->frames[w->frames_n++] = (struct frame){
        .node = node, .at = node + 1, .members = w->members_n, .next = w->members_n
    };
    return 0;
}

static int open_object(struct writer *w, uint32_t node, const char *const *drop,
                       size_t drop_count)
{
    bool repeats = (w->j->nodes[node].flags & JSON_DUPLICATE) != 0;
    size_t first = w->members_n;

    if (push(w, node) < 0)
        return -1;
    json_each (w->j, node, name) {
        if ((repeats || !is_dropped(w->j, name, drop, drop_count)) &&
            add_member(w, name) < 0)
            return -1;
    }
    sort_members(w, w->members + first, w->members_n - first);
    if (repeats)
        return duplicate(w, w->members + first, w->members_n - first);
    put_char(w, '{');
    return 0;
}

static int begin(struct writer *w, uint32_t node)
{
    if (w->j->nodes[node].flags & JSON_OPAQUE)
        return err_set(w->err, ERR_LIMIT, "too deep or too many values at byte %u",
                       w->j->nodes[node].start);
    switch (json_kind_of(w->j, node)) {
    case JSON_STRING:
        return write_string(w, node);
    case JSON_NUMBER:
        if (!jcs_is_as_written(w->j, node))
            return write_number(w, node);
        put_source(w, node);
        return 0;
    case JSON_OBJECT:
        return open_object(w, node, NULL, 0);
    case JSON_ARRAY:
        if (push(w, node) < 0)
            return -1;
        put_char(w, '[');
        return 0;
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
    default:
        put_source(w, node);
        return 0;
    }
}

/* Most values are strings without an escape. */
static inline int write_value(struct writer *w, uint32_t node)
{
    const struct json_node *n = &w->j->nodes[node];

    if (n->kind != JSON_STRING || (n->flags & JSON_ESCAPED))
        return begin(w, node);
    put_source(w, node);
    return 0;
}

static int step_array(struct writer *w, struct frame *f)
{
    uint32_t at = f->at;

    if (at == w->j->nodes[f->node].next) {
        put_char(w, ']');
        w->frames_n--;
        return 0;
    }
    if (at != f->node + 1)
        put_char(w, ',');
    f->at = w->j->nodes[at].next;
    return write_value(w, at);
}

static int step_object(struct writer *w, struct frame *f)
{
    uint32_t name;

    if (f->next == w->members_n) {
        put_char(w, '}');
        w->members_n = f->members;
        w->frames_n--;
        return 0;
    }
    if (f->next != f->members)
        put_char(w, ',');
    name = w->members[f->next++].name;
    if (write_string(w, name) < 0)
        return -1;
    put_char(w, ':');
    return write_value(w, name + 1);
}

/* Everything that is open, to its end. */
static int finish(struct writer *w, int result)
{
    while (result == 0 && w->frames_n) {
        struct frame *f = &w->frames[w->frames_n - 1];

        if (json_is(w->j, f->node, JSON_OBJECT))
            result = step_object(w, f);
        else
            result = step_array(w, f);
    }
    flush(w);
    if (w->members != w->first_members)
        free(w->members);
    if (w->frames != w->first_frames)
        free(w->frames);
    return result;
}

static void set_up(struct writer *w, const struct json *j, enum jcs_form form,
                   const struct sink *sink, struct err *err)
{
    w->j = j;
    w->sink = sink;
    w->err = err;
    w->capital_e = form == JCS_PACK;
    w->members = w->first_members;
    w->frames = w->first_frames;
    w->members_cap = w->frames_cap = FIRST_SCRATCH;
    w->members_n = w->frames_n = w->n = 0;
}

int jcs_write(const struct json *j, uint32_t node, enum jcs_form form,
              const struct sink *sink, struct err *err)
{
    UNINITIALIZED struct writer w;

    set_up(&w, j, form, sink, err);
    return finish(&w, begin(&w, node));
}

int jcs_write_without(const struct json *j, uint32_t object, const char *const *drop,
                      size_t drop_count, enum jcs_form form, const struct sink *sink,
                      struct err *err)
{
    UNINITIALIZED struct writer w;

    set_up(&w, j, form, sink, err);
    return finish(&w, json_is(j, object, JSON_OBJECT)
                          ? open_object(&w, object, drop, drop_count)
                          : begin(&w, object));
}

static void add_escaped(struct buf *out, const char *at, const char *end, bool *good)
{
    while (at < end) {
        const char *stop = text_scan(at, end);
        char bytes[6];
        size_t n;

        buf_add(out, str_of(at, (size_t)(stop - at)));
        if (stop == end)
            break;
        n = (unsigned char)*stop < 0x80 ? spell(bytes, (unsigned char)*stop) : 0;
        for (size_t i = 0; i < n; i++)
            buf_add_char(out, bytes[i]);
        *good &= n > 0;
        at = stop + 1;
    }
}

bool jcs_add_text(struct buf *out, str text)
{
    bool good = true;
    char *to = buf_room(out, text.n + 2);

    if (!to)
        return true; /* the buffer says what is wrong */
    *to = '"';
    if (text_is_plain(text)) {
        *str_put(to + 1, text) = '"';
        out->n += text.n + 2;
        return true;
    }
    out->n++;
    add_escaped(out, text.p, text.p + text.n, &good);
    buf_add_char(out, '"');
    return good;
}

void jcs_add_string(struct buf *out, str text)
{
    jcs_add_text(out, text);
}

int jcs_compare_names(str a, str b)
{
    return text_compare((struct text){ a, false }, (struct text){ b, false });
}

/* Compares what is written with a text. */
struct comparison {
    str rest;
    bool equal;
};

static void compare_bytes(void *ctx, str bytes)
{
    struct comparison *c = ctx;

    if (!str_starts(c->rest, bytes))
        c->equal = false;
    c->rest = str_skip(c->rest, bytes.n);
}

static bool is_canonical_by_writing(const struct json *j)
{
    struct comparison c = { j->text, true };
    const struct sink sink = { compare_bytes, &c };
    struct err ignored;

    return jcs_write(j, JSON_ROOT, JCS_RFC8785, &sink, &ignored) == 0 && c.equal &&
           c.rest.n == 0;
}

/* Plain decimal digits that a double holds exactly are their own shortest form. */
static bool is_plain_integer(const struct json_node *n, str raw)
{
    return (n->flags & JSON_INTEGER) && raw.n <= 15 && raw.p[0] != '-';
}

bool jcs_is_as_written(const struct json *j, uint32_t node)
{
    const struct json_node *n = &j->nodes[node];

    if (n->kind == JSON_NUMBER)
        return is_plain_integer(n, json_raw(j, node));
    return n->kind == JSON_STRING && !(n->flags & JSON_ESCAPED);
}

/* The names of an object ascend. */
static bool names_ascend(const struct json *j, uint32_t object)
{
    uint32_t before = JSON_NONE;

    json_each (j, object, at) {
        if (before != JSON_NONE && text_compare(text_of(j, before), text_of(j, at)) >= 0)
            return false;
        before = at;
    }
    return true;
}

bool jcs_is_canonical(const struct json *j)
{
    size_t length = 0; /* of the text without any white space */

    for (uint32_t i = 0; i < j->count; i++) {
        const struct json_node *n = &j->nodes[i];
        uint32_t inside;

        if (n->flags & (JSON_ESCAPED | JSON_TAINTED))
            return is_canonical_by_writing(j);
        if (n->kind == JSON_NUMBER && !jcs_is_as_written(j, i))
            return is_canonical_by_writing(j);
        if (n->kind != JSON_ARRAY && n->kind != JSON_OBJECT) {
            length += n->end - n->start;
            continue;
        }
        if (n->kind == JSON_OBJECT && !names_ascend(j, i))
            return false;
        inside = json_count(j, i); /* brackets, commas, colons */
        length += 2 + (inside ? inside - 1 : 0) + (n->kind == JSON_OBJECT ? inside : 0);
    }
    return length == j->text.n;
}
