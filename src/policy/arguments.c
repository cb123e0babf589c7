/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/arguments.h"

#include <stdio.h>

#include "base/err.h"
#include "base/sink.h"
#include "policy/pattern.h"
#include "json/jcs.h"

/* --- the canonical text --- */

struct writing {
    char *p; /* NULL: only count */
    size_t n;
};

static void write_to(void *ctx, str bytes)
{
    struct writing *w = ctx;

    if (w->p)
        memcpy(w->p + w->n, bytes.p, bytes.n);
    w->n += bytes.n;
}

static bool write_canonical(struct arguments *a, struct writing *w)
{
    struct sink sink = { write_to, w };
    struct err err = { 0 };

    w->n = 0;
    return jcs_write(a->json, a->node, JCS_RFC8785, &sink, &err) == 0;
}

/* Twice over the text, once for its length: what memory it takes is known before. */
static bool canonical(struct arguments *a, str *out)
{
    struct writing w = { 0 };

    if (!a->has_canonical) {
        a->has_canonical = true;
        a->canonical = STR("{}");
        if (a->json && a->node != JSON_NONE) {
            a->no_canonical = !write_canonical(a, &w) ||
                              !(w.p = arena_alloc(a->arena, w.n + 1)) ||
                              !write_canonical(a, &w);
            a->canonical = str_of(w.p, w.n);
        }
    }
    *out = a->canonical;
    return !a->no_canonical;
}

str arguments_refuse_size(struct arguments *a, const struct constraint *c)
{
    struct writing w = { .n = 2 };

    if (a->json && a->node != JSON_NONE && !write_canonical(a, &w))
        return STR("the arguments have no canonical form");
    return w.n > c->max_argument_bytes.value
               ? STR("the arguments are larger than max_argument_bytes")
               : (str){ NULL, 0 };
}

str arguments_refuse_patterns(struct arguments *a, const struct constraint *c,
                              size_t *index)
{
    str text;

    *index = 0;
    if (!canonical(a, &text))
        return STR("the arguments have no canonical form");
    for (size_t i = 0; i < c->deny_pattern_count; i++) {
        *index = i;
        switch (pattern_search(c->deny_patterns[i], text)) {
        case PATTERN_ABSENT:
            break;
        case PATTERN_FOUND:
            return STR("a pattern of deny_patterns was found in the arguments");
        case PATTERN_LIMIT:
            return STR("a pattern of deny_patterns took too many steps");
        }
    }
    return (str){ NULL, 0 };
}

/* --- going through all texts --- */

/* Which of the arguments a search is about. */
struct search {
    struct arguments *arguments;
    const struct constraint *constraint;
    const struct policy_names *keys; /* beside the usual ones */
    bool (*is_key)(str key);
    const char *(*judge)(struct search *s, str text, bool is_keyed);
    bool odd_too; /* also the names of members, and numbers under a key */
    size_t seen;
};

/* Decoded: where the text has escapes, a copy in the arena. */
static bool text_at(struct arguments *a, uint32_t node, str *out)
{
    str raw = json_raw(a->json, node);
    struct buf b = { 0 };

    *out = str_of(raw.p + 1, raw.n - 2);
    if (!(a->json->nodes[node].flags & JSON_ESCAPED))
        return true;
    b.p = arena_alloc(a->arena, raw.n);
    if (!b.p)
        return false;
    b.cap = (uint32_t)raw.n; /* decoding never makes it longer, so this never grows */
    b.max = raw.n;
    json_unescape(a->json, node, &b);
    *out = buf_str(&b);
    return !b.failed;
}

/* To Go the long s is an s and the Kelvin sign a k, just as a capital is its letter. */
static bool fold(struct arguments *a, str *key)
{
    size_t n = 0, used;
    char *p;

    if (key->n == 0 || (!memchr(key->p, 0xc5, key->n) && !memchr(key->p, 0xe2, key->n)))
        return true;
    p = arena_alloc(a->arena, key->n);
    for (str rest = *key; p && rest.n; rest = str_skip(rest, used)) {
        bool is_s = str_starts(rest, STR("\xc5\xbf"));
        bool is_k = str_starts(rest, STR("\xe2\x84\xaa"));

        used = is_s ? 2 : is_k ? 3 : 1;
        p[n++] = is_s ? 's' : is_k ? 'k' : rest.p[0];
    }
    *key = str_of(p, n);
    return p != NULL;
}

static bool is_listed(const struct policy_names *names, str key)
{
    for (size_t i = 0; i < names->count; i++) {
        if (str_equal_nocase(names->at[i], key))
            return true;
    }
    return false;
}

static const char *visit(struct search *s, uint32_t node, bool is_keyed);

static const char *visit_text(struct search *s, uint32_t node, bool is_keyed)
{
    str text;

    if (!text_at(s->arguments, node, &text))
        return "not decided: out of memory";
    return s->judge(s, text, is_keyed);
}

static const char *visit_object(struct search *s, uint32_t node, bool is_keyed)
{
    const struct json *j = s->arguments->json;
    const char *what = NULL;

    json_each (j, node, at) {
        bool keyed = is_keyed;
        str key;

        if (!text_at(s->arguments, at, &key))
            return "not decided: out of memory";
        if (s->odd_too)
            what = s->judge(s, key, false);
        if (!fold(s->arguments, &key))
            return "not decided: out of memory";
        keyed = keyed || s->is_key(key) || is_listed(s->keys, key);
        if (!what)
            what = visit(s, at + 1, keyed);
        if (what)
            return what;
    }
    return NULL;
}

/* As deep as a JSON text may be: JSON_MAX_DEPTH. */
static const char *visit(struct search *s, uint32_t node, bool is_keyed)
{
    const struct json *j = s->arguments->json;
    const char *what = NULL;

    switch (json_kind_of(j, node)) {
    case JSON_STRING:
        return visit_text(s, node, is_keyed);
    case JSON_OBJECT:
        return visit_object(s, node, is_keyed);
    case JSON_ARRAY:
        json_each (j, node, at) {
            what = visit(s, at, is_keyed);
            if (what)
                return what;
        }
        return NULL;
    case JSON_NUMBER: /* {"host": 2130706433} */
        return is_keyed && s->odd_too ? s->judge(s, json_raw(j, node), is_keyed) : NULL;
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        break;
    }
    return NULL;
}

static const char *search(struct search *s)
{
    if (!s->arguments->json || s->arguments->node == JSON_NONE)
        return NULL;
    return visit(s, s->arguments->node, false);
}

/* --- hosts --- */

static const char *judge_host(struct search *s, str text, bool is_keyed)
{
    const char *what = host_refuse(&s->arguments->hosts, text, is_keyed);

    if (what)
        s->arguments->detail = s->arguments->hosts.found;
    return what;
}

str arguments_refuse_hosts(struct arguments *a, const struct constraint *c)
{
    struct search s = { .arguments = a,
                        .constraint = c,
                        .keys = &c->url_arguments,
                        .is_key = host_is_key,
                        .judge = judge_host,
                        .odd_too = true };
    const char *what;
    char sentence[160];
    int n;

    a->hosts.arena = a->arena;
    what = search(&s);
    if (!what)
        return (str){ NULL, 0 };
    n = snprintf(sentence, sizeof(sentence), "a host in the arguments is %s", what);
    what = "a host in the arguments is private";
    if (n > 0 && (size_t)n < sizeof(sentence)) {
        str copy = arena_dup(a->arena, str_of(sentence, (size_t)n));

        return copy.p ? copy : str_from(what);
    }
    return str_from(what);
}

/* --- paths --- */

static const char *judge_path(struct search *s, str text, bool is_keyed)
{
    const char *what;

    if (!is_keyed && !path_is_uri(text))
        return NULL;
    s->seen++;
    what = path_refuse(&s->constraint->allowed_paths, text, s->arguments->cwd);
    if (what)
        s->arguments->detail = text;
    return what;
}

str arguments_refuse_paths(struct arguments *a, const struct constraint *c)
{
    struct search s = { .arguments = a,
                        .constraint = c,
                        .keys = &c->path_arguments,
                        .is_key = path_is_key,
                        .judge = judge_path };
    const char *what = search(&s);

    if (!what && s.seen == 0)
        what = "the call has no path argument, which this tool must have";
    return what ? str_from(what) : (str){ NULL, 0 };
}
