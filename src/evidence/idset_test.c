/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/idset.h"

#include "base/err.h"
#include "tests/tap.h"

#define MANY 20000

static unsigned add_all(struct idset *s)
{
    unsigned seen_count = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        struct digest d = digest_of(str_of(&i, sizeof(i)));
        struct err err = { 0 };
        bool seen = false;

        if (idset_add(s, &d, &seen, &err) < 0)
            return MANY + 1;
        seen_count += seen;
    }
    return seen_count;
}

int main(void)
{
    struct idset s = { 0 };
    struct digest zero = { { 0 } };
    struct err err = { 0 };
    bool seen = true;

    ok(add_all(&s) == 0 && s.count == MANY, "new ids are new");
    ok(add_all(&s) == MANY && s.count == MANY, "ids that were there are seen");
    ok(idset_add(&s, &zero, &seen, &err) == 0 && !seen, "the digest of zeros is an id");
    ok(idset_add(&s, &zero, &seen, &err) == 0 && seen, "and is found again");
    ok(s.cap <= 4 * MANY, "the table has at most a few places per id");
    idset_release(&s);
    idset_release(&s);
    ok(s.places == NULL, "released twice");
    return tap_done();
}
