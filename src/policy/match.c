/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/match.h"

#include "policy/glob.h"

#define HASH_START 0xcbf29ce484222325u /* FNV-1a, 64 bits */
#define HASH_TIMES 0x00000100000001b3u

struct match_entry {
    str key;     /* what it is found by: all of the name, its beginning or its end */
    str pattern; /* empty for an exact name */
    size_t index;
    struct match_entry *next; /* of the same slot, by index */
};

static inline uint64_t hash_step(uint64_t h, char c)
{
    return (h ^ (unsigned char)c) * HASH_TIMES;
}

static inline size_t slot_of(const struct match_table *t, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & (t->cap - 1);
}

static uint64_t hash_of(str key, bool backwards)
{
    uint64_t h = HASH_START;

    for (size_t i = 0; i < key.n; i++)
        h = hash_step(h, key.p[backwards ? key.n - 1 - i : i]);
    return h;
}

/* What one name of the list is looked up by. */
enum way {
    BY_NAME,
    BY_START,
    BY_END,
    BY_NOTHING,
};

static enum way way_of(str name, str *key)
{
    size_t start = glob_literal(name), end = glob_literal_end(name);

    *key = str_first(name, start);
    if (start == name.n)
        return BY_NAME;
    if (start)
        return BY_START;
    *key = str_skip(name, name.n - end);
    return end ? BY_END : BY_NOTHING;
}

static void table_make(struct match_table *t, size_t count, size_t longest,
                       struct arena *arena)
{
    size_t cap = 1;

    if (count == 0)
        return;
    while (cap < 2 * count)
        cap *= 2;
    t->slots = arena_alloc(arena, cap * sizeof(struct match_entry *));
    t->lengths = arena_alloc(arena, longest + 1);
    if (!t->slots || !t->lengths)
        return;
    t->cap = cap;
    t->longest = longest;
}

/* Called from the last name to the first, so that the least index comes first. */
static void table_put(struct match_table *t, struct match_entry *e, bool backwards)
{
    struct match_entry **slot = &t->slots[slot_of(t, hash_of(e->key, backwards))];

    e->next = *slot;
    *slot = e;
    t->lengths[e->key.n] = 1;
}

static void put(struct match *m, str name, size_t index, struct arena *arena)
{
    struct match_entry *e = arena_new(arena, struct match_entry);
    enum way way;

    if (!e)
        return;
    e->index = index;
    way = way_of(name, &e->key);
    if (way != BY_NAME)
        e->pattern = name;
    if (way == BY_NAME) {
        table_put(&m->exact, e, false);
    } else if (way == BY_START) {
        table_put(&m->prefix, e, false);
    } else if (way == BY_END) {
        table_put(&m->suffix, e, true);
    } else {
        e->next = m->rest;
        m->rest = e;
    }
}

void match_build(struct match *m, const str *names, size_t count, struct arena *arena)
{
    size_t counts[BY_NOTHING + 1] = { 0 }, longest[BY_NOTHING + 1] = { 0 };

    *m = (struct match){ 0 };
    for (size_t i = 0; i < count; i++) {
        str key;
        enum way way = way_of(names[i], &key);

        counts[way]++;
        longest[way] = key.n > longest[way] ? key.n : longest[way];
    }
    table_make(&m->exact, counts[BY_NAME], longest[BY_NAME], arena);
    table_make(&m->prefix, counts[BY_START], longest[BY_START], arena);
    table_make(&m->suffix, counts[BY_END], longest[BY_END], arena);
    if (arena->failed)
        return;
    for (size_t i = count; i > 0; i--)
        put(m, names[i - 1], i - 1, arena);
}

/* The least fitting index in a chain, below `best`; `key` is what was hashed. */
static size_t look(const struct match_entry *e, str key, str name, size_t from,
                   size_t best)
{
    for (; e && e->index < best; e = e->next) {
        if (e->index >= from && str_equal(e->key, key) &&
            (e->pattern.n == 0 || glob_match(e->pattern, name)))
            return e->index;
    }
    return best;
}

static size_t find_end(const struct match *m, str name, size_t from, size_t best)
{
    const struct match_table *t = &m->suffix;
    uint64_t h = HASH_START;

    for (size_t n = 1; n <= name.n && n <= t->longest; n++) {
        h = hash_step(h, name.p[name.n - n]);
        if (t->lengths[n])
            best = look(t->slots[slot_of(t, h)], str_skip(name, name.n - n), name, from,
                        best);
    }
    return best;
}

size_t match_find(const struct match *m, str name, size_t from)
{
    const struct match_table *t = &m->prefix;
    uint64_t h = HASH_START;
    size_t best = MATCH_NONE;

    for (size_t n = 1; n <= name.n; n++) {
        h = hash_step(h, name.p[n - 1]);
        if (n <= t->longest && t->lengths[n])
            best = look(t->slots[slot_of(t, h)], str_first(name, n), name, from, best);
    }
    if (m->exact.cap)
        best = look(m->exact.slots[slot_of(&m->exact, h)], name, name, from, best);
    best = find_end(m, name, from, best);
    return look(m->rest, STR(""), name, from, best);
}
