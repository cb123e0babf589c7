/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/tap.h"
#include "transport/loop.h"

struct seen {
    struct loop *loop;
    unsigned answers, wanted;
    struct resolved last;
};

static void note(void *ctx, const struct resolved *answer)
{
    struct seen *s = ctx;

    s->last = *answer;
    if (++s->answers == s->wanted)
        loop_stop(s->loop);
}

static bool has_loopback(const struct resolved *r)
{
    static const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };

    for (size_t i = 0; i < r->count; i++) {
        if (memcmp(r->at[i].bytes, r->at[i].v6 ? v6 : v4, r->at[i].v6 ? 16 : 4) == 0)
            return true;
    }
    return false;
}

static void test_names(struct loop *loop)
{
    struct resolver *r = NULL;
    struct err err = { 0 };
    struct seen s = { .loop = loop, .wanted = 1 };

    ok(resolver_new(&r, loop, &err) == 0, "a resolver: %s", err.msg);
    ok(resolve(r, "localhost", note, &s, &err) == 0 && s.answers == 0,
       "asked, and not answered in the call");
    loop_run(loop);
    ok(s.answers == 1 && has_loopback(&s.last), "localhost is this machine");
    ok(resolve(r, "127.0.0.1", note, &s, &err) == 0, "an address is asked for");
    s.wanted = 2;
    loop_run(loop);
    ok(s.last.count == 1 && has_loopback(&s.last), "an address is its own answer");
    ok(resolve(r, "no such name.invalid", note, &s, &err) == 0, "no name is asked for");
    s.wanted = 3;
    loop_run(loop);
    ok(s.answers == 3 && s.last.count == 0, "and has no answer");
    ok(resolve(r, "", note, &s, &err) < 0 && err.code == ERR_LIMIT, "the empty name");
    resolver_free(r);
}

static void test_limits(struct loop *loop)
{
    char name[RESOLVE_NAME_MAX + 1];
    struct resolver *r = NULL;
    struct err err = { 0 };
    struct seen s = { .loop = loop };
    unsigned asked = 0;

    ok(resolver_new(&r, loop, &err) == 0, "a resolver: %s", err.msg);
    memset(name, 'a', sizeof(name));
    name[RESOLVE_NAME_MAX] = '\0';
    ok(resolve(r, name, note, &s, &err) < 0, "a name that is too long");
    while (resolve(r, "localhost", note, &s, &err) == 0)
        asked++;
    ok(asked == RESOLVE_THREADS + RESOLVE_WAITING, "%u at once, no more: %s", asked,
       err.msg);
    s.wanted = asked;
    loop_run(loop);
    ok(s.answers == asked, "all are answered");
    ok(resolve(r, "localhost", note, &s, &err) == 0, "then there is room again");
    resolver_free(r); /* while one is under way */
    ok(s.answers == asked, "who left is not called");
}

int main(void)
{
    struct loop *loop = NULL;
    struct err err = { 0 };

    ok(loop_new(&loop, &err) == 0, "a loop: %s", err.msg);
    test_names(loop);
    test_limits(loop);
    loop_free(loop);
    return tap_done();
}
