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
    e->session = e->call = NULL;
    e->count = 0;
    e->failed = false;
    e->text.max = EVENT_LINE_MAX;
    buf_reset(&e->text);
}

void event_release(struct event *e)
{
    buf_release(&e->text);
}

void event_copy(struct event *to, const struct event *from)
{
    event_init(to, from->type);
    memcpy(to->member, from->member, from->count * sizeof(to->member[0]));
    to->session = from->session;
    to->n = from->n;
    to->call = from->call;
    to->count = from->count;
    to->failed = from->failed;
    buf_add(&to->text, buf_str(&from->text));
}

/* Where a member of this name belongs among the sorted ones. Names are literals, often
 * the same ones; most members come in order. */
static unsigned place_of(struct event *e, const char *name)
{
    unsigned i = e->count;

    for (; i > 0; i--) {
        const char *before = e->member[i - 1].name;
        int order = before[0] - name[0];

        if (order == 0)
            order = strcmp(before, name);
        if (order == 0)
            e->failed = true;
        if (order < 0)
            break;
        e->member[i] = e->member[i - 1];
    }
    return i;
}

/* `"name":` and room for `more` bytes behind it, which end_member() takes; NULL when it
 * does not fit. */
static char *begin_member(struct event *e, const char *name, size_t n, size_t more)
{
    size_t at = e->text.n;
    char *to = e->count < EVENT_MEMBERS_MAX ? buf_room(&e->text, n + 3 + more) : NULL;
    struct event_member *m;

    if (!to) {
        e->failed = true;
        return NULL;
    }
    to[0] = '"';
    to = str_put(to + 1, str_of(name, n));
    to[0] = '"';
    to[1] = ':';
    e->newest = place_of(e, name);
    m = &e->member[e->newest];
    m->name = name;
    m->at = (uint16_t)at;
    m->value = (uint16_t)(at + n + 3);
    return to + 2;
}

/* The value ends here. */
static void end_member(struct event *e, const char *end)
{
    struct event_member *m = &e->member[e->newest];

    e->text.n = (size_t)(end - e->text.p);
    m->n = (uint16_t)(e->text.n - m->at);
    e->count++;
}

void event_add_json_as(struct event *e, const char *name, size_t n, str canonical)
{
    char *to = begin_member(e, name, n, canonical.n);

    if (to)
        end_member(e, str_put(to, canonical));
}

/* One that needs escapes, or is no text. */
static void add_escaped(struct event *e, const char *name, size_t n, str utf8)
{
    char *to = begin_member(e, name, n, 0);

    if (!to)
        return;
    e->text.n = (size_t)(to - e->text.p);
    e->failed |= !jcs_add_text(&e->text, utf8) || e->text.failed;
    end_member(e, e->text.p + e->text.n);
}

void event_add_text_as(struct event *e, const char *name, size_t n, str utf8)
{
    char *to;

    if (!text_is_plain(utf8)) {
        add_escaped(e, name, n, utf8);
        return;
    }
    to = begin_member(e, name, n, utf8.n + 2);
    if (!to)
        return;
    *to = '"';
    to = str_put(to + 1, utf8);
    *to = '"';
    end_member(e, to + 1);
}

void event_add_int_as(struct event *e, const char *name, size_t n, int64_t value)
{
    char *to = begin_member(e, name, n, 1 + U64_DIGITS);

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
    char *to = begin_member(e, name, strlen(name), 0);

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
    e->failed |= e->text.failed;
    end_member(e, e->text.p + e->text.n);
}

void event_add_actor(struct event *e, int64_t pid, int64_t uid)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "{\"pid\":%" PRId64 ",\"uid\":%" PRId64 "}", pid,
                     uid);

    event_add_json_as(e, "actor", 5, str_of(text, (size_t)n));
}

str event_value(const struct event *e, const char *name)
{
    for (unsigned i = 0; i < e->count; i++) {
        const struct event_member *m = &e->member[i];

        if (m->name[0] == name[0] && strcmp(m->name, name) == 0)
            return str_of(e->text.p + m->value, (size_t)(m->at + m->n - m->value));
    }
    return (str){ NULL, 0 };
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

/* What tells where an event belongs, in canonical order. */
static const char *const common[] = { "call", "n",    "prev", "seq",   "session",
                                      "ts",   "type", "v",    "writer" };

#define COMMON_ROOM 512 /* bytes of them all: three of them are ids */

static char *put_id(char *to, str name, const char *id)
{
    if (!id)
        return to;
    to = str_put(str_put(to, name), str_from(id));
    return str_put(to, STR("\","));
}

static char *put_common(char *to, unsigned which, const struct event *e,
                        const struct event_place *place)
{
    switch (which) {
    case 0:
        return put_id(to, STR("\"call\":\""), e->call);
    case 1:
        if (!e->session)
            return to;
        to = str_put(to, STR("\"n\":"));
        to += u64_format(to, e->n);
        return str_put(to, STR(","));
    case 2:
        to = str_put(to, STR("\"prev\":\""));
        digest_hex(to, &place->prev);
        return str_put(to + 2 * DIGEST_SIZE, STR("\","));
    case 3:
        to = str_put(to, STR("\"seq\":"));
        to += u64_format(to, place->seq);
        return str_put(to, STR(","));
    case 4:
        return put_id(to, STR("\"session\":\""), e->session);
    case 5:
        to = str_put(to, STR("\"ts\":\""));
        clock_format(to, place->ts);
        return str_put(to + CLOCK_TEXT, STR("\","));
    case 6:
        to = str_put(str_put(to, STR("\"type\":\"")), type_names[e->type]);
        return str_put(to, STR("\","));
    case 7:
        return str_put(to, STR("\"v\":1,"));
    default:
        return put_id(to, STR("\"writer\":\""), place->writer);
    }
}

/* An id of ours, as entropy_id() makes them; all that may stand between quotes. */
static bool is_id(const char *id)
{
    str s = str_from(id);

    return s.n < ID_MAX && text_is_plain(s);
}

/* Does the common member come before this one? */
static bool comes_first(const char *common_name, const char *name)
{
    return common_name[0] < name[0] ||
           (common_name[0] == name[0] && strcmp(common_name, name) < 0);
}

/* Every member with its comma; the last one's becomes the brace. */
static char *put_members(char *to, const struct event *e, const struct event_place *place)
{
    unsigned next = 0;

    *to++ = '{';
    for (unsigned i = 0; i < e->count; i++) {
        while (next < COUNT(common) && comes_first(common[next], e->member[i].name))
            to = put_common(to, next++, e, place);
        to = str_put(to, str_of(e->text.p + e->member[i].at, e->member[i].n));
        *to++ = ',';
    }
    while (next < COUNT(common))
        to = put_common(to, next++, e, place);
    to[-1] = '}';
    return to;
}

int event_compose(struct buf *out, const struct event *e, const struct event_place *place,
                  struct err *err)
{
    bool good = !e->failed && is_id(place->writer) && is_id(e->session) && is_id(e->call);
    char *to = good ? buf_room(out, COMMON_ROOM + e->text.n + e->count) : NULL, *end;

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
