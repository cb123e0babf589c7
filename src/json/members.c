/* SPDX-License-Identifier: Apache-2.0 */
#include "json/members.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "json/text.h"

/* Length and first four bytes of a plain name: mostly enough to tell two apart. A member
 * is at least `"":0` long, so that four bytes can be read. */
static uint64_t tag_of(struct text t)
{
    uint32_t first;

    memcpy(&first, t.raw.p, 4);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (t.raw.n < 4)
        first &= (1u << 8 * t.raw.n) - 1;
#else
    if (t.raw.n < 4)
        first = t.raw.n ? first >> 8 * (4 - t.raw.n) : 0;
#endif
    return (uint64_t)t.raw.n << 32 | first;
}

static bool pair_repeats(const struct json *j, uint32_t object, uint32_t count)
{
    UNINITIALIZED uint64_t tags[MEMBERS_PAIRWISE];
    UNINITIALIZED uint32_t names[MEMBERS_PAIRWISE];
    bool escaped = false;
    uint32_t n = 0;

    json_each (j, object, at) {
        if (n == count)
            break;
        names[n] = at;
        tags[n++] = tag_of(text_of(j, at));
        escaped |= (j->nodes[at].flags & JSON_ESCAPED) != 0;
    }
    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if ((escaped || tags[i] == tags[k]) &&
                text_equal(text_of(j, names[i]), text_of(j, names[k])))
                return true;
        }
    }
    return false;
}

static int reserve(struct members *m, uint32_t count, struct err *err)
{
    size_t cap = (size_t)count + count / 2;
    uint64_t *keys;

    if (m->cap >= count)
        return 0;
    keys = realloc(m->keys, 2 * cap * sizeof(*keys));
    if (!keys)
        return err_set(err, ERR_NOMEM, "no memory to compare %u member names", count);
    m->keys = keys;
    m->cap = (uint32_t)cap;
    return 0;
}

/* One pass of a radix sort, by eight bits. */
static void sort_pass(const uint64_t *from, uint64_t *to, uint32_t n, int shift)
{
    uint32_t starts[257] = { 0 };

    for (uint32_t i = 0; i < n; i++)
        starts[(from[i] >> shift & 0xff) + 1]++;
    for (int i = 1; i < 256; i++)
        starts[i] += starts[i - 1];
    for (uint32_t i = 0; i < n; i++)
        to[starts[from[i] >> shift & 0xff]++] = from[i];
}

static int compare_names(const void *a, const void *b, void *ctx)
{
    uint32_t x = (uint32_t) * (const uint64_t *)a, y = (uint32_t) * (const uint64_t *)b;

    return text_compare(text_of(ctx, x), text_of(ctx, y));
}

/* Names with one hash. */
static bool run_repeats(const struct json *j, uint64_t *keys, uint32_t n)
{
    union {
        const struct json *j;
        void *ctx;
    } u = { j };

    if (n < 2)
        return false;
    qsort_r(keys, n, sizeof(*keys), compare_names, u.ctx);
    for (uint32_t i = 1; i < n; i++) {
        if (compare_names(&keys[i - 1], &keys[i], u.ctx) == 0)
            return true;
    }
    return false;
}

static bool sorted_repeats(struct members *m, const struct json *j, uint32_t n)
{
    uint64_t *keys = m->keys, *spare = m->keys + m->cap;
    uint32_t first = 0;

    for (int shift = 32; shift < 64; shift += 16) {
        sort_pass(keys, spare, n, shift);
        sort_pass(spare, keys, n, shift + 8);
    }
    for (uint32_t i = 1; i <= n; i++) {
        if (i < n && keys[i] >> 32 == keys[first] >> 32)
            continue;
        if (run_repeats(j, keys + first, i - first))
            return true;
        first = i;
    }
    return false;
}

int members_repeat(struct members *m, const struct json *j, uint32_t object,
                   struct err *err)
{
    uint32_t count = json_count(j, object), n = 0;

    if (count <= MEMBERS_PAIRWISE)
        return pair_repeats(j, object, count);
    if (reserve(m, count, err) < 0)
        return -1;
    json_each (j, object, at)
        m->keys[n++] = (uint64_t)text_hash(text_of(j, at)) << 32 | at;
    return sorted_repeats(m, j, n);
}

void members_release(struct members *m)
{
    free(m->keys);
    *m = (struct members){ 0 };
}
