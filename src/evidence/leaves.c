/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/leaves.h"

#include <stdlib.h>
#include <string.h>

void leaves_release(struct leaves *l)
{
    free(l->ring);
    *l = (struct leaves){ 0 };
}

/* The event before is known by its hash, too. */
static void begin(struct leaves *l, uint64_t seq, const struct digest *prev)
{
    l->first = seq ? seq - 1 : 0;
    l->ring[l->first % LEAVES_MAX] = *prev;
}

static bool continues(const struct leaves *l, uint64_t seq, const struct digest *prev)
{
    /* Not digest_equal(): each event asks, and there is no secret in it. */
    return seq > l->first && seq <= l->end &&
           memcmp(leaves_at(l, seq - 1)->bytes, prev->bytes, DIGEST_SIZE) == 0;
}

/* Nothing that is lent gives way: what finds no room then is missing later. */
static bool make_room(struct leaves *l, uint64_t seq, const struct digest *prev)
{
    if (!l->ring)
        l->ring = malloc(LEAVES_MAX * sizeof(l->ring[0]));
    if (!l->ring)
        return false;
    if (continues(l, seq, prev)) {
        if (seq - l->first < LEAVES_MAX)
            return seq >= l->lent;
        if (l->lent)
            return false;
        l->first = seq - LEAVES_MAX + 1;
        return true;
    }
    if (l->lent)
        return false;
    begin(l, seq, prev);
    return true;
}

void leaves_put(struct leaves *l, uint64_t seq, const struct digest *prev,
                const struct digest *leaf)
{
    if (!make_room(l, seq, prev))
        return;
    l->ring[seq % LEAVES_MAX] = *leaf;
    l->end = seq + 1;
}

bool leaves_lend(struct leaves *l, uint64_t upto, const struct digest *last)
{
    l->lent = 0; /* whoever had them last is done */
    if (upto <= l->first || upto > l->end || !digest_equal(leaves_at(l, upto - 1), last))
        return false;
    l->lent = upto;
    return true;
}

void leaves_give_back(struct leaves *l, uint64_t upto)
{
    uint64_t first = upto && upto - 1 < l->end ? upto - 1 : l->end;

    l->lent = 0;
    if (upto && first > l->first)
        l->first = first;
}
