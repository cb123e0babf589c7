/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lookup.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/err.h"
#include "transport/loop.h"
#include "transport/resolve.h"

/* All names of one call. */
struct inquiry {
    struct loop *loop;
    struct arena *arena;
    size_t open; /* names without an answer yet */
};

/* One of them. */
struct question {
    struct inquiry *of;
    struct answer_view *answer;
    char name[RESOLVE_NAME_MAX];
};

static void on_answer(void *ctx, const struct resolved *r)
{
    struct question *q = ctx;
    struct address *a =
        r->count ? arena_alloc(q->of->arena, r->count * sizeof(*a)) : NULL;

    for (size_t i = 0; a && i < r->count; i++)
        a[i] = r->at[i].v6 ? address_v6(r->at[i].bytes) : address_v4(r->at[i].bytes);
    if (a)
        *q->answer = (struct answer_view){ a, r->count };
    if (--q->of->open == 0)
        loop_stop(q->of->loop);
}

static void ask(struct resolver *r, struct question *q, str name)
{
    struct err ignored;

    if (name.n >= sizeof(q->name))
        return;
    memcpy(q->name, name.p, name.n);
    if (resolve(r, q->name, on_answer, q, &ignored) == 0)
        q->of->open++;
}

void lookup_names(const str *names, struct answer_view *answers, size_t count,
                  struct arena *arena)
{
    struct question questions[DECIDE_NAMES_MAX] = { 0 };
    struct inquiry all = { .arena = arena };
    struct resolver *r = NULL;
    struct err ignored;

    if (loop_new(&all.loop, &ignored) < 0)
        return;
    if (resolver_new(&r, all.loop, &ignored) == 0) {
        for (size_t i = 0; i < count && i < DECIDE_NAMES_MAX; i++) {
            questions[i] = (struct question){ .of = &all, .answer = &answers[i] };
            if (!answers[i].count)
                ask(r, &questions[i], names[i]);
        }
        if (all.open)
            loop_run(all.loop);
    }
    resolver_free(r);
    loop_free(all.loop);
}

bool lookup_parse(struct address *out, const char *text)
{
    uint8_t bytes[16];

    if (inet_pton(AF_INET, text, bytes) == 1)
        *out = address_v4(bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        *out = address_v6(bytes);
    else
        return false;
    return true;
}
