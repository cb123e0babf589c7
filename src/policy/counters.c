/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/counters.h"

#include <stdlib.h>

#include "base/err.h"
#include "policy/policy.h"

/* One more than there are entries: calloc(0) may be NULL. */
static uint64_t *new_entries(const struct policy *p, struct err *err)
{
    uint64_t *entries = calloc(p->constraint_count + 1, sizeof(*entries));

    if (!entries)
        err_set(err, ERR_NOMEM, "out of memory");
    return entries;
}

int counters_init(struct counters *c, const struct policy *p, int64_t started_at,
                  struct err *err)
{
    uint64_t *entries = new_entries(p, err);

    if (!entries)
        return -1;
    *c = (struct counters){ .by_entry = entries, .started_at = started_at };
    return 0;
}

void counters_release(struct counters *c)
{
    free(c->by_entry);
    c->by_entry = NULL;
}

void counters_advance(struct counters *c, const struct policy *p, str tool)
{
    size_t i = match_find(&p->constraint_names, tool, 0);

    c->calls++;
    for (; i != MATCH_NONE; i = match_find(&p->constraint_names, tool, i + 1))
        c->by_entry[i]++;
}

int counters_move(struct counters *c, const struct policy *from, const struct policy *to,
                  struct err *err)
{
    uint64_t *entries = new_entries(to, err);

    if (!entries)
        return -1;
    for (size_t i = 0; i < to->constraint_count; i++) {
        for (size_t k = 0; k < from->constraint_count; k++) {
            if (str_equal(to->constraints[i].name, from->constraints[k].name))
                entries[i] = c->by_entry[k];
        }
    }
    free(c->by_entry);
    c->by_entry = entries;
    return 0;
}
