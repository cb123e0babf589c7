/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pack_order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct ordered_pack *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->has_place && y->has_place && x->place.part != y->place.part)
        return x->place.part < y->place.part ? -1 : 1;
    return x->given < y->given ? -1 : 1;
}

static bool same_session(const struct ordered_pack *a, const struct ordered_pack *b)
{
    return a->has_place && b->has_place &&
           strcmp(a->place.session, b->place.session) == 0;
}

void pack_order(struct ordered_pack *packs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        packs[i].given = packs[i].group = i;
        packs[i].has_place = packlog_peek(packs[i].dir, &packs[i].place);
        for (size_t k = 0; k < i && packs[i].group == i; k++) {
            if (same_session(&packs[i], &packs[k]))
                packs[i].group = packs[k].group;
        }
    }
    qsort(packs, count, sizeof(*packs), compare);
    for (size_t i = 0; i < count; i++)
        packs[i].follows = i > 0 && packs[i].group == packs[i - 1].group &&
                           packs[i].place.part == packs[i - 1].place.part + 1;
}

size_t pack_group(const struct ordered_pack *packs, size_t count)
{
    size_t n = 1;

    while (n < count && packs[n].group == packs[0].group)
        n++;
    return n;
}

static void add_range(struct buf *out, uint64_t from, uint64_t to)
{
    if (out->n)
        buf_add(out, STR(", "));
    if (from == to)
        buf_printf(out, "part %" PRIu64, from);
    else
        buf_printf(out, "parts %" PRIu64 " to %" PRIu64, from, to);
}

void pack_add_missing(struct buf *out, const struct ordered_pack *packs, size_t count)
{
    uint64_t next = 1;
    bool final = false;

    if (!packs[0].has_place)
        return;
    for (size_t i = 0; i < count; i++) {
        uint64_t part = packs[i].place.part;

        if (part > next)
            add_range(out, next, part - 1);
        next = part + 1;
        final = final || packs[i].place.final;
    }
    if (!final)
        buf_printf(out, "%sthose after part %" PRIu64, out->n ? ", and " : "", next - 1);
}
