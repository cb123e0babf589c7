/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/correlate.h"

#include <stdio.h>

#include "base/err.h"
#include "tests/tap.h"

static struct pending *add(struct correlate *c, const char *raw, const char *key)
{
    struct err err = { 0 };
    struct pending *p = NULL;

    return correlate_add(c, str_from(raw), str_from(key), &p, &err) < 0 ? NULL : p;
}

static void test_equal_ids_come_back_in_order(void)
{
    struct correlate c = { .seed = 7 };
    struct pending *first = add(&c, "1", "1"), *second = add(&c, "1", "1");
    struct pending *text = add(&c, "\"1\"", "\"1\"");

    ok(correlate_find(&c, STR("\"1\""), STR("\"1\""), NULL) == text,
       "1 and \"1\" are two ids");
    ok(correlate_find(&c, STR("1"), STR("1"), NULL) == first, "the oldest first");
    correlate_remove(&c, first);
    ok(correlate_find(&c, STR("1"), STR("1"), NULL) == second, "then the next");
    correlate_remove(&c, second);
    ok(!correlate_find(&c, STR("1"), STR("1"), NULL) && c.count == 1, "then none");
    correlate_release(&c);
    ok(c.count == 0 && !c.oldest && !c.newest, "released");
}

static void test_spellings(void)
{
    struct correlate c = { .seed = 7 };
    struct pending *a = add(&c, "9007199254740992", "9007199254740992");
    struct pending *b = add(&c, "9007199254740993", "9007199254740992");

    ok(correlate_find(&c, STR("9007199254740993"), STR("9007199254740992"), NULL) == b,
       "the very text wins");
    ok(correlate_find(&c, STR("9007199254740992.0"), STR("9007199254740992"), NULL) == a,
       "another spelling finds the oldest that is alike");
    correlate_release(&c);
}

static void test_exchanges(void)
{
    struct correlate c = { .seed = 7 };
    struct pending *a = add(&c, "1", "1"), *b = add(&c, "1", "1");
    char places[3];

    a->exchange = (struct exchange *)&places[0];
    b->exchange = (struct exchange *)&places[1];
    ok(correlate_find(&c, STR("1"), STR("1"), b->exchange) == b,
       "one id in two exchanges: the answer is for the one in which it comes");
    ok(correlate_find(&c, STR("1"), STR("1"), (struct exchange *)&places[2]) == a,
       "in a third one: for the oldest");
    correlate_release(&c);
}

static void test_the_limit(void)
{
    struct correlate c = { .seed = 7 };
    struct pending *second = NULL, *third = NULL;
    char id[16];

    for (int i = 0; i < CORRELATE_MAX; i++) {
        struct pending *p;

        snprintf(id, sizeof(id), "%d", i);
        p = add(&c, id, id);
        if (i == 1)
            second = p;
        if (i == 2)
            third = p;
    }
    ok(c.count == CORRELATE_MAX && !add(&c, "x", "x"), "full is full");
    ok(!correlate_spare(&c), "all are awaited");
    third->answered = true;
    ok(correlate_spare(&c) == third, "but one that we have answered");
    second->cancelled = true;
    ok(correlate_spare(&c) == second, "or cancelled: the oldest first");
    correlate_remove(&c, second);
    ok(add(&c, "x", "x") && c.count == CORRELATE_MAX, "it makes room");
    ok(!correlate_find(&c, STR("1"), STR("1"), NULL), "and is gone");
    correlate_release(&c);
}

/* What goes is kept for what comes, and shows nothing of it. */
static void test_kept(void)
{
    static char longer[CORRELATE_LITTLE + 2];
    struct correlate c = { .seed = 7 };
    struct pending *all[CORRELATE_KEPT + 1], *p;
    char id[16];

    for (int i = 0; i <= CORRELATE_KEPT; i++) {
        snprintf(id, sizeof(id), "%d", i);
        all[i] = add(&c, id, id);
        all[i]->cancelled = true;
        all[i]->task = 7;
    }
    for (int i = 0; i <= CORRELATE_KEPT; i++)
        correlate_remove(&c, all[i]);
    ok(c.kept_count == CORRELATE_KEPT, "some are kept, not all");
    p = add(&c, "x", "y");
    ok(p == all[CORRELATE_KEPT - 1] && !p->cancelled && !p->task && !p->newer,
       "one of them is as new");
    ok(correlate_find(&c, STR("x"), STR("y"), NULL) == p &&
           !correlate_find(&c, STR("63"), STR("63"), NULL),
       "and found by its own id");
    memset(longer, '1', CORRELATE_LITTLE / 2);
    ok((p = add(&c, longer, longer)) && c.kept_count == CORRELATE_KEPT - 2,
       "ids of %d bytes find room", CORRELATE_LITTLE);
    correlate_remove(&c, p);
    longer[CORRELATE_LITTLE / 2] = '1';
    p = add(&c, longer, longer);
    ok(p && c.kept_count == CORRELATE_KEPT - 1 && p->key_n == CORRELATE_LITTLE / 2 + 1,
       "longer ones have memory of their own");
    correlate_remove(&c, p);
    ok(c.kept_count == CORRELATE_KEPT - 1, "and are not kept");
    correlate_remove(&c, c.oldest);
    correlate_trim(&c);
    ok(!c.kept && !c.kept_count, "one that idles keeps nothing");
    correlate_release(&c);
}

int main(void)
{
    test_equal_ids_come_back_in_order();
    test_spellings();
    test_exchanges();
    test_the_limit();
    test_kept();
    return tap_done();
}
