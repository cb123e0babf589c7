/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>

#include "base/err.h"

#define FIRST_CAP 16

void map_release(struct map *m)
{
    free(m->slots);
    *m = (struct map){ 0 };
}

/* Random keys need no more than this; it spreads those of tests, too. */
static size_t home(const struct map *m, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (m->cap - 1);
}

/* The slot of `key`, or the free one where it would go. cap > count. */
static size_t find(const struct map *m, uint64_t key)
{
    size_t i = home(m, key);

    while (m->slots[i].value && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *map_get(const struct map *m, uint64_t key)
{
    return m->cap ? m->slots[find(m, key)].value : NULL;
}

static int grow(struct map *m, struct err *err)
{
    struct map bigger = { .cap = m->cap ? m->cap * 2 : FIRST_CAP, .count = m->count };

    if (m->count >= MAP_MAX)
        return err_set(err, ERR_LIMIT, "a map has more than %zu entries", MAP_MAX);
    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return err_set(err, ERR_NOMEM, "no memory for a map of %zu", bigger.cap);
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].value)
            bigger.slots[find(&bigger, m->slots[i].key)] = m->slots[i];
    }
    free(m->slots);
    *m = bigger;
    return 0;
}

int map_put(struct map *m, uint64_t key, void *value, struct err *err)
{
    size_t i;

    if (m->count + 1 > m->cap / 4 * 3 && grow(m, err) < 0)
        return -1;
    i = find(m, key);
    m->count += m->slots[i].value == NULL;
    m->slots[i] = (struct map_slot){ key, value };
    return 0;
}

/* Pull back what the hole at `hole` would cut off from its home. */
static void close_hole(struct map *m, size_t hole)
{
    size_t mask = m->cap - 1;

    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t want = home(m, m->slots[i].key);

        if (((i - want) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (struct map_slot){ 0 };
}

void *map_take(struct map *m, uint64_t key)
{
    size_t i;
    void *value;

    if (!m->cap)
        return NULL;
    i = find(m, key);
    value = m->slots[i].value;
    if (!value)
        return NULL;
    m->count--;
    close_hole(m, i);
    return value;
}

void *map_next(const struct map *m, size_t *at)
{
    while (*at < m->cap) {
        void *value = m->slots[(*at)++].value;

        if (value)
            return value;
    }
    return NULL;
}
