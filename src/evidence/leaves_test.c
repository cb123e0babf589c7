/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/leaves.h"

#include "tests/tap.h"

/* The hash of event `seq` in one of several histories. */
static struct digest leaf(uint64_t seq, uint64_t history)
{
    const uint64_t both[2] = { seq, history };

    return digest_of(str_of(both, sizeof(both)));
}

static void put(struct leaves *l, uint64_t seq, uint64_t history)
{
    struct digest before = leaf(seq - 1, history), mine = leaf(seq, history);

    leaves_put(l, seq, &before, &mine);
}

static void put_all(struct leaves *l, uint64_t from, uint64_t upto)
{
    for (uint64_t seq = from; seq < upto; seq++)
        put(l, seq, 0);
}

static bool lend(struct leaves *l, uint64_t upto)
{
    struct digest last = leaf(upto - 1, 0);

    return leaves_lend(l, upto, &last);
}

static bool holds(const struct leaves *l, uint64_t first, uint64_t end)
{
    bool same = l->first == first && l->end == end;

    for (uint64_t seq = first; seq < end && same; seq++) {
        struct digest expected = leaf(seq, 0);

        same = digest_equal(leaves_at(l, seq), &expected);
    }
    if (!same)
        printf("# has [%llu, %llu)\n", (unsigned long long)l->first,
               (unsigned long long)l->end);
    return same;
}

static void test_one_history(void)
{
    struct leaves l = { 0 };

    ok(!lend(&l, 1), "nothing is there at first");
    put_all(&l, 5, 9);
    ok(holds(&l, 4, 9), "what follows is kept");
    put_all(&l, 7, 12);
    ok(holds(&l, 4, 12), "what was taken back and written again, too");
    put_all(&l, 20, 22);
    ok(holds(&l, 19, 22), "after a gap it begins anew");
    ok(!lend(&l, 19) && !lend(&l, 23), "not what is not here");
    ok(lend(&l, 22) && lend(&l, 21), "what is here");
    ok(!lend(&l, 23) && l.lent == 0, "and who asks has nothing of what was lent before");
    leaves_release(&l);
    leaves_release(&l);
}

/* We take back 12; another process writes one in its place; we go on with 13. */
static void test_another_history(void)
{
    struct digest before = leaf(12, 1), mine = leaf(13, 0), last;
    struct leaves l = { 0 };

    put_all(&l, 10, 13);
    leaves_put(&l, 13, &before, &mine);
    ok(l.first == 12 && l.end == 14 && digest_equal(leaves_at(&l, 12), &before),
       "an event of a history that we do not know begins anew");
    last = leaf(13, 1);
    ok(!leaves_lend(&l, 14, &last), "and what ends otherwise is not lent");
    leaves_release(&l);
}

static void test_the_limit(void)
{
    struct leaves l = { 0 };

    put_all(&l, 1, LEAVES_MAX);
    ok(holds(&l, 0, LEAVES_MAX), "%d of them", LEAVES_MAX);
    put(&l, LEAVES_MAX, 0);
    ok(holds(&l, 1, 1 + LEAVES_MAX), "one more, and the oldest goes");
    leaves_release(&l);
}

static void test_lending(void)
{
    struct leaves l = { 0 };

    put_all(&l, 0, 100);
    ok(lend(&l, 90), "lent");
    put_all(&l, 90, 95);
    ok(holds(&l, 0, 95), "what was not lent may be written again");
    put(&l, 50, 0);
    put(&l, 200, 0);
    ok(holds(&l, 0, 95), "what is lent stays");
    put_all(&l, 95, 2 * LEAVES_MAX);
    ok(holds(&l, 0, LEAVES_MAX), "whatever comes");
    leaves_give_back(&l, 90);
    ok(holds(&l, 89, LEAVES_MAX), "given back, all but the last of it goes");
    put(&l, 2 * LEAVES_MAX, 0);
    ok(holds(&l, 2 * LEAVES_MAX - 1, 2 * LEAVES_MAX + 1),
       "and what was missed is missed");
    leaves_release(&l);
}

static void test_giving_back(void)
{
    struct leaves l = { 0 };

    put_all(&l, 10, 20);
    leaves_give_back(&l, 0);
    ok(holds(&l, 9, 20), "nothing was signed: all is needed");
    leaves_give_back(&l, 5);
    ok(holds(&l, 9, 20), "nor when it was before these");
    leaves_give_back(&l, 20);
    ok(holds(&l, 19, 20), "the last one is for who follows it");
    put_all(&l, 20, 25);
    ok(holds(&l, 19, 25), "and they do");
    leaves_give_back(&l, 40);
    ok(l.first == l.end, "others have signed more than is here");
    put_all(&l, 40, 42);
    ok(holds(&l, 39, 42), "it begins anew");
    leaves_release(&l);
}

int main(void)
{
    test_one_history();
    test_another_history();
    test_the_limit();
    test_lending();
    test_giving_back();
    return tap_done();
}
