/* SPDX-License-Identifier: Apache-2.0 */
/* What is open: requests of members, requests of the server, subscriptions. */
#include <stdlib.h>

#include "pipeline/share_internal.h"

/* Of memory between messages. */
#define NODES_KEPT 65536
#define EDITS_KEPT 4096
#define BYTES_KEPT ((size_t)1 << 20)

str share_key(struct share *s, const struct json *j, uint32_t id)
{
    s->key.max = SPLICE_MAX;
    buf_reset(&s->key);
    rpc_add_id_key(&s->key, j, id);
    return s->key.failed ? STR("") : buf_str(&s->key);
}

void share_trim(struct share *s)
{
    while (s->dead) {
        struct ask *a = s->dead;

        s->dead = a->newer;
        free(a);
    }
    if (s->json.cap > NODES_KEPT)
        json_release(&s->json);
    if (s->splice.out.cap > BYTES_KEPT || s->splice.cap > EDITS_KEPT)
        splice_release(&s->splice);
    if (s->key.cap > BYTES_KEPT)
        buf_release(&s->key);
    if (s->scratch.cap > BYTES_KEPT)
        buf_release(&s->scratch);
}

/* --- requests of members --- */

str share_ask_number(const struct ask *a)
{
    return str_of(a->text, a->number_n);
}

str share_ask_id(const struct ask *a)
{
    return str_of(a->bytes, a->id_n);
}

str share_ask_token(const struct ask *a)
{
    return str_of(a->bytes + a->id_n, a->token_n);
}

static str key_of(const struct ask *a)
{
    return str_of(a->bytes + a->id_n + a->token_n, a->key_n);
}

static bool is_open(const struct ask *a)
{
    return !a->cancelled && !a->answered;
}

/* The oldest whose answer nobody waits for. */
static struct ask *spare(const struct share *s)
{
    struct ask *a = s->first_ask;

    while (a &&
           (a->held || (is_open(a) && a->member) || (a->is_ours && a->is_initialize)))
        a = a->newer;
    return a;
}

static bool make_room(struct share *s)
{
    struct ask *a;

    if (s->asks.count < SHARE_OPEN_MAX)
        return true;
    a = spare(s);
    if (a)
        share_ask_free(s, a);
    return a != NULL;
}

/* FNV-1a over whose it is and its key. Ids come from strangers, but addresses do not. */
static uint32_t bucket_of(const struct member *m, str key)
{
    uint32_t h = 2166136261u ^ (uint32_t)((uintptr_t)m >> 4);

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * 16777619u;
    return (h ^ h >> 15) % SHARE_BUCKETS;
}

static void into_bucket(struct share *s, struct ask *a)
{
    struct bucket *b = &s->buckets[a->bucket];

    a->before = b->last;
    if (b->last)
        b->last->after = a;
    else
        b->first = a;
    b->last = a;
}

static void out_of_bucket(struct share *s, struct ask *a)
{
    struct bucket *b = &s->buckets[a->bucket];

    if (a->before)
        a->before->after = a->after;
    else
        b->first = a->after;
    if (a->after)
        a->after->before = a->before;
    else
        b->last = a->before;
    a->before = a->after = NULL;
}

static void fill(struct ask *a, str id, str key, str token)
{
    a->id_n = (uint32_t)id.n;
    a->token_n = (uint32_t)token.n;
    a->key_n = (uint32_t)key.n;
    a->has_token = token.n > 0;
    memcpy(a->bytes, id.p, id.n);
    memcpy(a->bytes + id.n, token.p, token.n);
    memcpy(a->bytes + id.n + token.n, key.p, key.n);
    a->number_n = (uint32_t)snprintf(a->text, sizeof(a->text), "%llu",
                                     (unsigned long long)a->number);
}

static void link_in(struct share *s, struct ask *a)
{
    a->older = s->last_ask;
    if (s->last_ask)
        s->last_ask->newer = a;
    else
        s->first_ask = a;
    s->last_ask = a;
    into_bucket(s, a);
    if (a->member)
        a->member->open++;
}

struct ask *share_ask_add(struct share *s, struct member *m, struct exchange *x, str id,
                          str key, str token)
{
    struct ask *a;
    struct err ignored;

    if (!make_room(s))
        return NULL;
    a = calloc(1, sizeof(*a) + id.n + key.n + token.n);
    if (!a)
        return NULL;
    a->number = s->number + 1;
    a->member = m;
    a->exchange = x;
    a->is_ours = !m;
    fill(a, id, key, token);
    a->bucket = bucket_of(m, key);
    if (map_put(&s->asks, a->number, a, &ignored) < 0) {
        free(a);
        return NULL;
    }
    s->number++;
    link_in(s, a);
    return a;
}

struct ask *share_ask_get(const struct share *s, uint64_t number)
{
    return number ? map_get(&s->asks, number) : NULL;
}

struct ask *share_ask_find(const struct share *s, const struct member *m, str id, str key)
{
    struct ask *alike = NULL;

    for (struct ask *a = s->buckets[bucket_of(m, key)].first; a; a = a->after) {
        if (a->member != m || !str_equal(key_of(a), key))
            continue;
        if (str_equal(share_ask_id(a), id))
            return a;
        alike = alike ? alike : a;
    }
    return alike;
}

struct ask *share_ask_newest(const struct share *s)
{
    struct ask *a = s->last_ask;

    while (a && (!a->member || a->member->finishing || !is_open(a)))
        a = a->older;
    return a;
}

void share_ask_close(struct share *s, struct ask *a, bool answered)
{
    if (is_open(a))
        out_of_bucket(s, a);
    if (a->member && is_open(a))
        a->member->open--;
    if (answered)
        a->answered = true;
    else
        a->cancelled = true;
}

void share_ask_free(struct share *s, struct ask *a)
{
    share_ask_close(s, a, true);
    if (a->number == s->hello_number && !s->hello_ok)
        s->hello_number = 0;
    if (a->older)
        a->older->newer = a->newer;
    else
        s->first_ask = a->newer;
    if (a->newer)
        a->newer->older = a->older;
    else
        s->last_ask = a->older;
    map_take(&s->asks, a->number);
    a->newer = s->dead;
    s->dead = a;
}

/* initialize must not be cancelled, and what was is not cancelled again. */
void share_ask_cancel(struct share *s, struct ask *a)
{
    bool tell = is_open(a) && !a->is_initialize;

    share_ask_close(s, a, false);
    if (tell)
        share_send_cancel(s, a);
}

void share_ask_forget(struct share *s, struct ask *a)
{
    if (a->answered) {
        share_ask_free(s, a);
        return;
    }
    share_ask_cancel(s, a);
    a->member = NULL;
    a->exchange = NULL;
}

void share_ask_lose(struct share *s, bool held, const struct err *why)
{
    struct ask *a, *next;

    for (a = s->first_ask; a; a = next) {
        next = a->newer;
        if (a->held != held)
            continue;
        if (a->member && is_open(a))
            share_put(a->member, PARCEL_LOST, a->exchange, share_ask_id(a), why);
        share_ask_free(s, a);
    }
}

/* --- requests of the server --- */

str share_asked_raw(const struct asked *a)
{
    return str_of(a->bytes, a->raw_n);
}

int share_asked_add(struct share *s, struct member *m, str raw, str key)
{
    struct asked **end = &s->asked;
    struct asked *a;

    if (s->asked_count >= SHARE_ASKED_MAX)
        return -1;
    a = calloc(1, sizeof(*a) + raw.n + key.n);
    if (!a)
        return -1;
    a->member = m;
    a->raw_n = raw.n;
    a->key_n = key.n;
    memcpy(a->bytes, raw.p, raw.n);
    memcpy(a->bytes + raw.n, key.p, key.n);
    while (*end)
        end = &(*end)->next;
    *end = a;
    s->asked_count++;
    return 0;
}

/* Of any member, when `m` is NULL. */
struct asked *share_asked_find(const struct share *s, const struct member *m, str key)
{
    for (struct asked *a = s->asked; a; a = a->next) {
        if ((!m || a->member == m) &&
            str_equal(str_of(a->bytes + a->raw_n, a->key_n), key))
            return a;
    }
    return NULL;
}

bool share_asked_of(const struct share *s, const struct member *m)
{
    const struct asked *a = s->asked;

    while (a && a->member != m)
        a = a->next;
    return a != NULL;
}

void share_asked_free(struct share *s, struct asked *a)
{
    struct asked **at = &s->asked;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    s->asked_count--;
    free(a);
}

void share_asked_clear(struct share *s)
{
    while (s->asked)
        share_asked_free(s, s->asked);
}

/* --- subscriptions of 2025 and before --- */

static struct subscription **find(struct member *m, str uri)
{
    struct subscription **at = &m->subscriptions;

    while (*at && !str_equal(str_of((*at)->uri, (*at)->n), uri))
        at = &(*at)->next;
    return at;
}

bool share_subscribe(struct member *m, str uri)
{
    struct subscription **at = find(m, uri);

    if (*at)
        return true;
    if (m->subscribed >= SHARE_SUBSCRIBE_MAX)
        return false;
    *at = calloc(1, sizeof(**at) + uri.n);
    if (!*at)
        return false;
    (*at)->n = uri.n;
    memcpy((*at)->uri, uri.p, uri.n);
    m->subscribed++;
    return true;
}

bool share_unsubscribe(struct member *m, str uri)
{
    struct subscription **at = find(m, uri), *gone = *at;

    if (!gone)
        return false;
    *at = gone->next;
    free(gone);
    m->subscribed--;
    return true;
}

/* Both texts end with a quote. */
static bool is_above(str above, str uri)
{
    str a = str_first(above, above.n - 1);

    return uri.n > a.n && str_starts(uri, a) &&
           (a.p[a.n - 1] == '/' || memchr("/?#\"", uri.p[a.n], 4) != NULL);
}

bool share_is_subscribed(const struct member *m, str uri, bool exactly)
{
    for (const struct subscription *u = m->subscriptions; u; u = u->next) {
        str mine = str_of(u->uri, u->n);

        if (exactly ? str_equal(mine, uri) : is_above(mine, uri))
            return true;
    }
    return false;
}
