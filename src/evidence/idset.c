/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/idset.h"

#include <stdlib.h>

#include "base/err.h"

void idset_release(struct idset *s)
{
    free(s->places);
    *s = (struct idset){ 0 };
}

static bool is_free(const struct idset_key *k)
{
    return !k->half[0] && !k->half[1];
}

/* Where the key stands, or the free place where it belongs. */
static struct idset_key *find(struct idset_key *places, size_t cap,
                              const struct idset_key *key)
{
    size_t at = (size_t)key->half[0] & (cap - 1);

    while (!is_free(&places[at]) &&
           (places[at].half[0] != key->half[0] || places[at].half[1] != key->half[1]))
        at = (at + 1) & (cap - 1);
    return &places[at];
}

static int grow(struct idset *s, struct err *err)
{
    size_t cap = s->cap ? 2 * s->cap : 64;
    struct idset_key *places;

    if (s->count >= IDSET_MAX)
        return err_set(err, ERR_LIMIT, "more than %zu different ids", IDSET_MAX);
    places = calloc(cap, sizeof(*places));
    if (!places)
        return err_set(err, ERR_NOMEM, "no memory for the ids of the receipts");
    for (size_t i = 0; i < s->cap; i++) {
        if (!is_free(&s->places[i]))
            *find(places, cap, &s->places[i]) = s->places[i];
    }
    free(s->places);
    s->places = places;
    s->cap = cap;
    return 0;
}

int idset_add(struct idset *s, const struct digest *id, bool *seen, struct err *err)
{
    struct idset_key key, *at;

    if (s->count >= s->cap / 2 && grow(s, err) < 0)
        return -1;
    memcpy(&key, id->bytes, sizeof(key));
    if (is_free(&key))
        key.half[1] = 1;
    at = find(s->places, s->cap, &key);
    *seen = !is_free(at);
    if (!*seen) {
        *at = key;
        s->count++;
    }
    return 0;
}
