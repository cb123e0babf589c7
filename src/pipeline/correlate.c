/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/correlate.h"

#include <stdlib.h>

#include "base/err.h"

/* FNV-1a from a secret start. */
static uint32_t hash_of(const struct correlate *c, str key)
{
    uint32_t h = 2166136261u ^ c->seed;

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * 16777619u;
    return h ^ h >> 15;
}

static str raw_of(const struct pending *p)
{
    return str_of(p->bytes, p->raw_n);
}

static str key_of(const struct pending *p)
{
    return str_of(p->bytes + p->raw_n, p->key_n);
}

void correlate_release(struct correlate *c)
{
    while (c->oldest)
        correlate_remove(c, c->oldest);
    correlate_trim(c);
}

static void free_kept(struct correlate *c)
{
    while (c->kept) {
        struct pending *p = c->kept;

        c->kept = p->next;
        free(p);
    }
    c->kept_count = 0;
}

void correlate_trim(struct correlate *c)
{
    if (c->count)
        return;
    free_kept(c);
    free(c->bucket);
    c->bucket = NULL;
    c->buckets = 0;
}

static struct pending **bucket_of(const struct correlate *c, uint32_t hash)
{
    return &c->bucket[hash & (c->buckets - 1)];
}

static void enter(struct correlate *c, struct pending *p)
{
    struct pending **end = bucket_of(c, p->hash);

    while (*end)
        end = &(*end)->next;
    *end = p;
    p->next = NULL;
}

/* The oldest go first, so that each bucket keeps its order. */
static int make_buckets(struct correlate *c, struct err *err)
{
    uint32_t count = c->buckets ? c->buckets * 2 : CORRELATE_BUCKETS;
    struct pending **bucket = calloc(count, sizeof(struct pending *));

    if (!bucket)
        return err_set(err, ERR_NOMEM, "no memory for a request");
    free(c->bucket);
    c->bucket = bucket;
    c->buckets = count;
    for (struct pending *p = c->oldest; p; p = p->newer)
        enter(c, p);
    return 0;
}

struct pending *correlate_spare(const struct correlate *c)
{
    struct pending *p = c->oldest;

    while (p && !p->cancelled && !p->answered)
        p = p->newer;
    return p;
}

static void link_in(struct correlate *c, struct pending *p)
{
    enter(c, p);
    p->older = c->newest;
    if (c->newest)
        c->newest->newer = p;
    else
        c->oldest = p;
    c->newest = p;
    p->serial = ++c->serial;
    c->count++;
}

/* Nearly all are small, and one comes as the other goes. */
static struct pending *new_pending(struct correlate *c, size_t bytes)
{
    struct pending *p = c->kept;

    if (!p || bytes > CORRELATE_LITTLE)
        return calloc(1,
                      sizeof(*p) + (bytes > CORRELATE_LITTLE ? bytes : CORRELATE_LITTLE));
    c->kept = p->next;
    c->kept_count--;
    *p = (struct pending){ 0 };
    return p;
}

static void drop_pending(struct correlate *c, struct pending *p)
{
    if (p->raw_n + p->key_n > CORRELATE_LITTLE || c->kept_count == CORRELATE_KEPT) {
        free(p);
        return;
    }
    p->next = c->kept;
    c->kept = p;
    c->kept_count++;
}

int correlate_add(struct correlate *c, str raw, str key, struct pending **out,
                  struct err *err)
{
    struct pending *p;

    if (c->count >= CORRELATE_MAX)
        return err_set(err, ERR_LIMIT, "more than %d requests wait for their answers",
                       CORRELATE_MAX);
    if (raw.n + key.n > UINT32_MAX / 2)
        return err_set(err, ERR_LIMIT, "the id of a request is too long");
    if (c->count >= c->buckets && make_buckets(c, err) < 0)
        return -1;
    p = new_pending(c, raw.n + key.n);
    if (!p)
        return err_set(err, ERR_NOMEM, "no memory for a request");
    p->hash = hash_of(c, key);
    p->raw_n = (uint32_t)raw.n;
    p->key_n = (uint32_t)key.n;
    memcpy(p->bytes, raw.p, raw.n);
    memcpy(p->bytes + raw.n, key.p, key.n);
    link_in(c, p);
    *out = p;
    return 0;
}

struct pending *correlate_find(const struct correlate *c, str raw, str key,
                               const struct exchange *x)
{
    uint32_t hash = hash_of(c, key);
    struct pending *found = NULL;
    int best = -1, fits;

    for (struct pending *p = c->buckets ? *bucket_of(c, hash) : NULL; p; p = p->next) {
        if (p->hash != hash || !str_equal(key_of(p), key))
            continue;
        fits = 2 * (x && p->exchange == x) + str_equal(raw_of(p), raw);
        if (fits > best) {
            found = p;
            best = fits;
        }
    }
    return found;
}

void correlate_remove(struct correlate *c, struct pending *p)
{
    struct pending **at = bucket_of(c, p->hash);

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (p->older)
        p->older->newer = p->newer;
    else
        c->oldest = p->newer;
    if (p->newer)
        p->newer->older = p->older;
    else
        c->newest = p->older;
    c->count--;
    drop_pending(c, p);
}
