/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/event.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"
#include "json/jcs.h"
#include "json/text.h"

static const str type_names[] = {
#define X(name, text) [EVENT_##name] = { text, sizeof(text) - 1 },
    EVENT_TYPES(X)
#undef X
};

const char *event_type_name(enum event_type type)
{
    return type_names[type].p;
}

void event_init(struct event *e, enum event_type type)
{
    e->type = type;
    e->failed = e->has_message = false;
    e->session = e->call = (str){ NULL, 0 };
    e->count = 0;
    e->text.max = EVENT_LINE_MAX;
    buf_reset(&e->text);
}

void event_release(struct event *e)
{
    buf_release(&e->text);
    buf_release(&e->kept);
}

void event_copy(struct event *to, const struct event *from)
{
    event_init(to, from->type);
    memcpy(to->member, from->member, from->count * sizeof(to->member[0]));
    to->failed = from->failed;
    to->has_message = from->has_message;
    to->message = from->message;
    to->session = from->session;
    to->n = from->n;
    to->call = from->call;
    to->count = from->count;
    buf_add(&to->text, buf_str(&from->text));
    to->failed |= to->text.failed;
}

/* --- members --- */

static str name_of(const struct event *e, const struct event_member *m)
{
    return str_of(e->text.p + m->at + 1, (size_t)(m->value - m->at - 3));
}

static int compare(const struct event *e, const struct event_member *m,
                   struct event_name name)
{
    if (m->key != name.key)
        return m->key < name.key ? -1 : 1;
    if (name.text.n < sizeof(name.key))
        return 0; /* it is all in the key */
    return jcs_compare_names(name_of(e, m), name.text);
}

/* Where a member of this name belongs among the sorted ones. */
static unsigned place_of(struct event *e, struct event_name name)
{
    unsigned i = e->count;

    for (; i > 0; i--) {
        int order = compare(e, &e->member[i - 1], name);

        e->failed |= order == 0;
        if (order < 0)
            break;
        e->member[i] = e->member[i - 1];
    }
    return i;
}

/* `"name":` and room for `more` bytes and a comma behind it, which end_member() takes;
 * NULL when it does not fit. */
static inline char *begin_member(struct event *e, struct event_name name, size_t more)
{
    size_t at = e->text.n, n = name.text.n;
    char *to = e->count < EVENT_MEMBERS_MAX ? buf_room(&e->text, n + 4 + more) : NULL;

    if (!to) {
        e->failed = true;
        return NULL;
    }
    e->newest = e->count;
    if (e->count && e->member[e->count - 1].key >= name.key)
        e->newest = place_of(e, name);
    e->member[e->newest] =
        (struct event_member){ name.key, (uint16_t)at, (uint16_t)(at + n + 3), 0, false };
    *to = '"';
    to = str_put(to + 1, name.text);
    to[0] = '"';
    to[1] = ':';
    return to + 2;
}

/* The value ends here. */
static inline void end_member(struct event *e, char *end)
{
    *end++ = ',';
    e->text.n = (size_t)(end - e->text.p);
    e->member[e->newest].end = (uint16_t)e->text.n;
    e->count++;
}

void event_add_json_as(struct event *e, struct event_name name, str canonical)
{
    char *to = begin_member(e, name, canonical.n);

    if (to)
        end_member(e, str_put(to, canonical));
}

/* The value stands behind what the text had: one that is not written at once. */
static void end_long_member(struct event *e)
{
    char *to = buf_room(&e->text, 1);

    if (to)
        end_member(e, to);
    else
        e->failed = true;
}

/* One that needs escapes, or is no text. */
static void add_escaped(struct event *e, const char *to, str utf8)
{
    e->text.n = (size_t)(to - e->text.p);
    e->member[e->newest].escaped = true;
    e->failed |= !jcs_add_text(&e->text, utf8);
    end_long_member(e);
}

void event_add_text_as(struct event *e, struct event_name name, str utf8)
{
    char *to = begin_member(e, name, utf8.n + 2), *end;

    if (!to)
        return;
    end = text_put_plain(to + 1, utf8);
    if (!end) {
        add_escaped(e, to, utf8);
        return;
    }
    *to = *end = '"';
    end_member(e, end + 1);
}

void event_add_int_as(struct event *e, struct event_name name, int64_t value)
{
    char *to = begin_member(e, name, 1 + U64_DIGITS);

    if (!to)
        return;
    if (value > EVENT_INT_MAX || value < -EVENT_INT_MAX)
        e->failed = true;
    if (value < 0)
        *to++ = '-';
    end_member(e, to + u64_format(to, value < 0 ? 0 - (uint64_t)value : (uint64_t)value));
}

void event_add_digest(struct event *e, const char *name, const struct digest *d)
{
    char text[7 + 2 * DIGEST_SIZE] = "sha256:";

    digest_hex(text + 7, d);
    event_add_text(e, name, str_of(text, sizeof(text)));
}

void event_add_texts(struct event *e, const char *name, const str *utf8, size_t count)
{
    char *to = begin_member(e, event_name(name), 0);

    if (!to)
        return;
    e->text.n = (size_t)(to - e->text.p);
    buf_add_char(&e->text, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(&e->text, ',');
        e->failed |= !jcs_add_text(&e->text, utf8[i]);
    }
    buf_add_char(&e->text, ']');
    end_long_member(e);
}

void event_add_actor(struct event *e, int64_t pid, int64_t uid)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "{\"pid\":%" PRId64 ",\"uid\":%" PRId64 "}", pid,
                     uid);

    event_add_json_as(e, event_name("actor"), str_of(text, (size_t)n));
}

static const struct event_member *find(const struct event *e, struct event_name name)
{
    for (unsigned i = 0; i < e->count; i++) {
        const struct event_member *m = &e->member[i];

        if (m->key == name.key &&
            (name.text.n < sizeof(name.key) || str_equal(name_of(e, m), name.text)))
            return m;
    }
    return NULL;
}

static str value_of(const struct event *e, const struct event_member *m)
{
    return str_of(e->text.p + m->value, (size_t)(m->end - m->value - 1));
}

str event_value(const struct event *e, struct event_name name)
{
    const struct event_member *m = find(e, name);

    return m ? value_of(e, m) : (str){ NULL, 0 };
}

str event_find_text(const struct event *e, struct event_name name, bool *escaped)
{
    const struct event_member *m = find(e, name);
    str text;

    if (!m || e->text.p[m->value] != '"')
        return (str){ NULL, 0 };
    *escaped = m->escaped;
    text = value_of(e, m);
    return str_of(text.p + 1, text.n - 2);
}

/* The longest prefix of at most `max` bytes that does not split a character. */
static str cut_at_character(str s, size_t max)
{
    size_t n = max;

    while (n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return str_first(s, n);
}

void event_add_foreign(struct event *e, const char *name, const char *sha256_name,
                       str source)
{
    char shown[EVENT_FOREIGN_MAX + 4];
    struct digest d;
    str head;

    if (source.n <= EVENT_FOREIGN_MAX && (text_is_plain(source) || utf8_valid(source))) {
        event_add_text(e, name, source);
        return;
    }
    head = utf8_valid(source) ? cut_at_character(source, EVENT_FOREIGN_MAX) : STR("");
    if (head.n)
        memcpy(shown, head.p, head.n);
    memcpy(shown + head.n, "\xe2\x80\xa6", 3);
    d = digest_of(source);
    event_add_text(e, name, str_of(shown, head.n + 3));
    event_add_digest(e, sha256_name, &d);
}

/* --- messages --- */

static bool is_simple(str source)
{
    return source.n <= EVENT_FOREIGN_MAX && text_is_plain(source);
}

/* One that is not what it mostly is becomes a member like others. */
static ALWAYS_INLINE void take_foreign(struct event *e, const char *name,
                                       const char *sha256_name, str *source)
{
    if (is_simple(*source))
        return;
    event_add_foreign(e, name, sha256_name, *source);
    *source = (str){ NULL, 0 };
}

void message_event(struct event *e, enum event_type type, const struct message *m)
{
    event_init(e, type);
    e->has_message = true;
    e->message = *m;
    e->failed = m->bytes > EVENT_INT_MAX || m->batch > EVENT_INT_MAX;
    take_foreign(e, "id", "id_sha256", &e->message.id);
    take_foreign(e, "method", "method_sha256", &e->message.method);
    take_foreign(e, "tool", "tool_sha256", &e->message.tool);
}

void event_keep(struct event *e)
{
    struct message *m = &e->message;
    str *const texts[] = { &m->digest, &m->id, &m->method, &m->tool };
    char *to;

    if (!e->has_message || (e->kept.p && m->digest.p == e->kept.p))
        return; /* there is nothing, or it is ours already */
    buf_reset(&e->kept);
    to = buf_room(&e->kept, m->digest.n + m->id.n + m->method.n + m->tool.n);
    e->failed |= !to;
    for (size_t i = 0; i < COUNT(texts) && to; i++) {
        if (!texts[i]->p)
            continue;
        str_put(to, *texts[i]);
        texts[i]->p = to;
        to += texts[i]->n;
    }
}

/* --- the line --- */

#define COMMON_ROOM 512 /* bytes of what has no other measure: names, numbers, ids */

/* Members that are still to come. */
struct rest {
    const char *text;
    const struct event_member *next, *end;
    uint64_t key; /* of the next one; UINT64_MAX without */
};

static uint64_t next_key(const struct rest *r)
{
    return r->next < r->end ? r->next->key : UINT64_MAX;
}

static NOINLINE char *put_some(char *to, struct rest *r, uint64_t key)
{
    for (; r->key < key; r->key = next_key(r)) {
        to = str_put(to,
                     str_of(r->text + r->next->at, (size_t)(r->next->end - r->next->at)));
        r->next++;
    }
    return to;
}

/* Those before one that every event has, or every message. */
static ALWAYS_INLINE char *put_before(char *to, struct rest *r, uint64_t key)
{
    return r->key < key ? put_some(to, r, key) : to;
}

static NOINLINE char *put_value(char *to, str text)
{
    return str_put(str_put(to, text), STR("\","));
}

/* Names are literals here. */
#define NAMED(name) event_name(name).key, STR("\"" name "\":")

static ALWAYS_INLINE char *put_text(char *to, struct rest *r, uint64_t key, str name,
                                    str text)
{
    to = str_put(put_before(to, r, key), name);
    *to = '"';
    return put_value(to + 1, text);
}

static ALWAYS_INLINE char *put_number(char *to, struct rest *r, uint64_t key, str name,
                                      uint64_t value)
{
    to = str_put(put_before(to, r, key), name);
    to += u64_format(to, value);
    *to = ',';
    return to + 1;
}

static ALWAYS_INLINE char *put_prev(char *to, struct rest *r, const struct digest *prev)
{
    to = put_before(to, r, event_name("prev").key);
    to = str_put(to, STR("\"prev\":\""));
    digest_hex(to, prev);
    return str_put(to + 2 * DIGEST_SIZE, STR("\","));
}

static ALWAYS_INLINE char *put_ts(char *to, struct rest *r, int64_t ts)
{
    to = put_before(to, r, event_name("ts").key);
    to = str_put(to, STR("\"ts\":\""));
    clock_format(to, ts);
    return str_put(to + CLOCK_TEXT, STR("\","));
}

/* In canonical order. Every member has its comma; the last one's becomes the brace. */
static char *put_members(char *to, const struct event *e, const struct event_place *place)
{
    struct rest r = { e->text.p, e->member, e->member + e->count, 0 };
    const struct message *m = e->has_message ? &e->message : NULL;

    r.key = next_key(&r);
    *to++ = '{';
    if (m && m->in_batch)
        to = put_number(to, &r, NAMED("batch"), m->batch);
    if (m)
        to = put_number(to, &r, NAMED("bytes"), m->bytes);
    if (e->call.p)
        to = put_text(to, &r, NAMED("call"), e->call);
    if (m) {
        to = put_text(to, &r, NAMED("digest"), m->digest);
        to = put_text(to, &r, NAMED("dir"), m->dir);
        if (m->id.p)
            to = put_text(to, &r, NAMED("id"), m->id);
        to = put_text(to, &r, NAMED("kind"), m->kind);
        if (m->method.p)
            to = put_text(to, &r, NAMED("method"), m->method);
    }
    if (e->session.p)
        to = put_number(to, &r, NAMED("n"), e->n);
    to = put_prev(to, &r, &place->prev);
    to = put_number(to, &r, NAMED("seq"), place->seq);
    if (e->session.p)
        to = put_text(to, &r, NAMED("session"), e->session);
    if (m && m->tool.p)
        to = put_text(to, &r, NAMED("tool"), m->tool);
    to = put_ts(to, &r, place->ts);
    to = put_text(to, &r, NAMED("type"), type_names[e->type]);
    to = str_put(put_before(to, &r, event_name("v").key), STR("\"v\":1,"));
    to = put_text(to, &r, NAMED("writer"), place->writer);
    to = put_before(to, &r, UINT64_MAX);
    to[-1] = '}';
    return to;
}

/* An id of ours, as entropy_id() makes them, or what stood between the quotes of one in a
 * canonical line that was read: it may stand there again as it is. */
static bool is_id(str id)
{
    return id.n < ID_MAX;
}

static size_t message_room(const struct event *e)
{
    const struct message *m = &e->message;

    if (!e->has_message)
        return 0;
    return m->digest.n + m->dir.n + m->id.n + m->kind.n + m->method.n + m->tool.n;
}

int event_compose(struct buf *out, const struct event *e, const struct event_place *place,
                  struct err *err)
{
    bool good = !e->failed && is_id(place->writer) && is_id(e->session) && is_id(e->call);
    char *to = good ? buf_room(out, COMMON_ROOM + e->text.n + message_room(e)) : NULL;
    char *end;

    if (!good)
        return err_set(err, ERR_LIMIT,
                       "event '%s' has a member or byte too many, or text that is not "
                       "UTF-8",
                       type_names[e->type].p);
    if (!to)
        return buf_check(out, "the batch of events", err);
    end = put_members(to, e, place);
    if (end - to > EVENT_LINE_MAX)
        return err_set(err, ERR_LIMIT, "event '%s' is larger than %d bytes",
                       type_names[e->type].p, EVENT_LINE_MAX);
    out->n += (size_t)(end - to);
    return 0;
}
