/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/event.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"
#include "json/jcs.h"

static const char *const type_names[] = {
#define X(name, text) [EVENT_##name] = text,
    EVENT_TYPES(X)
#undef X
};

const char *event_type_name(enum event_type type)
{
    return type_names[type];
}

enum value_kind {
    VALUE_TEXT,
    VALUE_COUNT, /* an integer of 0 or more */
    VALUE_INT,
    VALUE_BOOL,
    VALUE_TEXTS,
    VALUE_ACTOR, /* {"pid":…,"uid":…} */
};

enum presence {
    MUST,
    MAY,
};

/* What every message event carries. */
#define MESSAGE(type)                                                                    \
    { EVENT_##type, "dir", VALUE_TEXT, MUST },                                           \
        { EVENT_##type, "kind", VALUE_TEXT, MUST },                                      \
        { EVENT_##type, "bytes", VALUE_COUNT, MUST },                                    \
        { EVENT_##type, "digest", VALUE_TEXT, MUST },                                    \
        { EVENT_##type, "method", VALUE_TEXT, MAY },                                     \
        { EVENT_##type, "id", VALUE_TEXT, MAY },                                         \
        { EVENT_##type, "tool", VALUE_TEXT, MAY },                                       \
        { EVENT_##type, "call", VALUE_TEXT, MAY },                                       \
    {                                                                                    \
        EVENT_##type, "batch", VALUE_COUNT, MAY                                          \
    }

/* What an operator did to a message. */
#define INTERVENTION(type)                                                               \
    { EVENT_##type, "actor", VALUE_ACTOR, MUST },                                        \
        { EVENT_##type, "action", VALUE_TEXT, MUST },                                    \
        { EVENT_##type, "digest_before", VALUE_TEXT, MAY },                              \
        { EVENT_##type, "digest_after", VALUE_TEXT, MAY },                               \
        { EVENT_##type, "call", VALUE_TEXT, MAY },                                       \
    {                                                                                    \
        EVENT_##type, "held_ms", VALUE_COUNT, MAY                                        \
    }

/* Every member that has a meaning, by type. Others pass unread. */
static const struct {
    enum event_type type;
    const char *name;
    enum value_kind kind;
    enum presence presence;
} members[] = {
    { EVENT_CHAIN_START, "version", VALUE_TEXT, MUST },
    { EVENT_CHAIN_START, "vkey", VALUE_TEXT, MUST },
    { EVENT_CHAIN_START, "durability", VALUE_TEXT, MUST },
    { EVENT_CHAIN_START, "on_failure", VALUE_TEXT, MUST },
    { EVENT_CHAIN_START, "pepper_check", VALUE_TEXT, MAY },
    { EVENT_CHAIN_START, "live", VALUE_TEXTS, MUST },
    { EVENT_CHAIN_START, "dead", VALUE_TEXTS, MUST },
    { EVENT_CHAIN_END, "for", VALUE_TEXT, MAY },
    { EVENT_SESSION_START, "server_id", VALUE_TEXT, MUST },
    { EVENT_SESSION_START, "transport", VALUE_TEXT, MUST },
    { EVENT_SESSION_START, "client_transport", VALUE_TEXT, MUST },
    { EVENT_SESSION_START, "profile", VALUE_TEXT, MUST },
    { EVENT_SESSION_START, "policy_hash", VALUE_TEXT, MAY },
    { EVENT_SESSION_START, "investigation", VALUE_BOOL, MAY },
    { EVENT_SESSION_END, "complete", VALUE_BOOL, MUST },
    { EVENT_SESSION_END, "reason", VALUE_TEXT, MUST },
    { EVENT_SESSION_END, "requests", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "calls", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "denied", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "lost", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "interventions", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "undelivered", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "events", VALUE_COUNT, MUST },
    { EVENT_SESSION_END, "by", VALUE_TEXT, MAY },
    MESSAGE(REQUEST_RECEIVED),
    { EVENT_REQUEST_RECEIVED, "arguments_hash", VALUE_TEXT, MAY },
    { EVENT_REQUEST_RECEIVED, "trace", VALUE_TEXT, MAY },
    MESSAGE(REQUEST_FORWARDED),
    MESSAGE(RESPONSE_RECEIVED),
    { EVENT_RESPONSE_RECEIVED, "result_hash", VALUE_TEXT, MAY },
    { EVENT_RESPONSE_RECEIVED, "is_error", VALUE_BOOL, MAY },
    { EVENT_RESPONSE_RECEIVED, "result_type", VALUE_TEXT, MAY },
    MESSAGE(RESPONSE_SENT),
    MESSAGE(NOTIFICATION_RECEIVED),
    MESSAGE(NOTIFICATION_FORWARDED),
    MESSAGE(MESSAGE_RECEIVED),
    MESSAGE(MESSAGE_FORWARDED),
    { EVENT_POLICY_DECIDED, "call", VALUE_TEXT, MUST },
    { EVENT_POLICY_DECIDED, "verdict", VALUE_TEXT, MUST },
    { EVENT_POLICY_DECIDED, "policy_ref", VALUE_TEXT, MUST },
    { EVENT_POLICY_DECIDED, "reason", VALUE_TEXT, MAY },
    { EVENT_POLICY_DECIDED, "policy_hash", VALUE_TEXT, MUST },
    MESSAGE(REQUEST_DENIED),
    { EVENT_REQUEST_DENIED, "reason_codes", VALUE_TEXTS, MUST },
    { EVENT_REQUEST_DENIED, "policy_ref", VALUE_TEXT, MAY },
    INTERVENTION(MESSAGE_HELD),
    INTERVENTION(MESSAGE_RELEASED),
    INTERVENTION(MESSAGE_MODIFIED),
    INTERVENTION(MESSAGE_DROPPED),
    MESSAGE(MESSAGE_CUT),
    { EVENT_MESSAGE_CUT, "reason", VALUE_TEXT, MUST },
    MESSAGE(RESPONSE_LATE),
    { EVENT_CALL_LOST, "call", VALUE_TEXT, MUST },
    { EVENT_CALL_LOST, "reason", VALUE_TEXT, MUST },
    { EVENT_RECEIPT, "receipt_id", VALUE_TEXT, MUST },
    { EVENT_RECEIPT, "sha256", VALUE_TEXT, MUST },
    { EVENT_RECEIPT, "call", VALUE_TEXT, MAY },
    { EVENT_RECEIPT, "parent", VALUE_TEXT, MAY },
    { EVENT_POLICY_LOADED, "policy_hash", VALUE_TEXT, MUST },
    { EVENT_POLICY_LOADED, "ok", VALUE_BOOL, MUST },
    { EVENT_TOOLS_WITHHELD, "names", VALUE_TEXTS, MUST },
    { EVENT_TOOL_CHANGED, "names", VALUE_TEXTS, MUST },
    { EVENT_TOOL_CHANGED, "from", VALUE_TEXT, MAY },
    { EVENT_TOOL_CHANGED, "to", VALUE_TEXT, MAY },
    { EVENT_GAP, "lost", VALUE_COUNT, MUST },
    { EVENT_GAP, "reason", VALUE_TEXT, MUST },
    { EVENT_GAP, "from_ts", VALUE_TEXT, MUST },
    { EVENT_GAP, "to_ts", VALUE_TEXT, MUST },
    { EVENT_REPAIR, "offset", VALUE_COUNT, MUST },
    { EVENT_REPAIR, "bytes", VALUE_COUNT, MUST },
    { EVENT_REPAIR, "sha256", VALUE_TEXT, MUST },
    { EVENT_REPAIR, "reason", VALUE_TEXT, MUST },
    { EVENT_KEY_ROTATE, "vkey", VALUE_TEXT, MUST },
    { EVENT_PAYLOADS_FORGOTTEN, "of", VALUE_TEXT, MUST },
    { EVENT_PAYLOADS_FORGOTTEN, "files", VALUE_COUNT, MUST },
};

void event_init(struct event *e, enum event_type type)
{
    e->type = type;
    e->count = 0;
    e->failed = false;
    e->text.max = EVENT_LINE_MAX;
    buf_reset(&e->text);
}

void event_release(struct event *e)
{
    buf_release(&e->text);
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

/* `"name":` stands; the value follows, then end_member(). */
static struct event_member *begin_member(struct event *e, const char *name)
{
    static struct event_member nowhere;
    size_t n = strlen(name), at = e->text.n;
    char *to = e->count < EVENT_MEMBERS_MAX ? buf_room(&e->text, n + 3) : NULL;
    struct event_member *m;

    if (!to) {
        e->failed = true;
        return &nowhere;
    }
    to[0] = '"';
    memcpy(to + 1, name, n);
    to[n + 1] = '"';
    to[n + 2] = ':';
    e->text.n += n + 3;
    m = &e->member[place_of(e, name)];
    e->count++;
    m->name = name;
    m->at = (uint16_t)at;
    m->value = (uint16_t)e->text.n;
    return m;
}

static void end_member(struct event *e, struct event_member *m)
{
    e->failed |= e->text.failed;
    m->n = (uint16_t)(e->text.n - m->at);
}

void event_add_text(struct event *e, const char *name, str utf8)
{
    struct event_member *m = begin_member(e, name);

    e->failed |= !jcs_add_text(&e->text, utf8);
    end_member(e, m);
}

void event_add_cstr(struct event *e, const char *name, const char *utf8)
{
    event_add_text(e, name, str_from(utf8));
}

static void add_quoted(struct buf *out, str plain)
{
    char *to = buf_room(out, plain.n + 2);

    if (!to)
        return;
    to[0] = '"';
    if (plain.n)
        memcpy(to + 1, plain.p, plain.n);
    to[plain.n + 1] = '"';
    out->n += plain.n + 2;
}

void event_add_plain(struct event *e, const char *name, str ascii)
{
    struct event_member *m = begin_member(e, name);

    add_quoted(&e->text, ascii);
    end_member(e, m);
}

void event_add_int(struct event *e, const char *name, int64_t value)
{
    struct event_member *m = begin_member(e, name);

    if (value > EVENT_INT_MAX || value < -EVENT_INT_MAX)
        e->failed = true;
    buf_add_i64(&e->text, value);
    end_member(e, m);
}

void event_add_bool(struct event *e, const char *name, bool value)
{
    struct event_member *m = begin_member(e, name);

    buf_add(&e->text, value ? STR("true") : STR("false"));
    end_member(e, m);
}

void event_add_digest(struct event *e, const char *name, const struct digest *d)
{
    struct event_member *m = begin_member(e, name);

    buf_add_char(&e->text, '"');
    digest_add_tagged(&e->text, d);
    buf_add_char(&e->text, '"');
    end_member(e, m);
}

void event_add_texts(struct event *e, const char *name, const str *utf8, size_t count)
{
    struct event_member *m = begin_member(e, name);

    buf_add_char(&e->text, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(&e->text, ',');
        e->failed |= !jcs_add_text(&e->text, utf8[i]);
    }
    buf_add_char(&e->text, ']');
    end_member(e, m);
}

void event_add_actor(struct event *e, int64_t pid, int64_t uid)
{
    struct event_member *m = begin_member(e, "actor");

    buf_printf(&e->text, "{\"pid\":%" PRId64 ",\"uid\":%" PRId64 "}", pid, uid);
    end_member(e, m);
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

    if (source.n <= EVENT_FOREIGN_MAX && utf8_valid(source)) {
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

/* The members that every event has, in their canonical order. */
static const char *const common[] = { "prev", "seq", "ts", "type", "v", "writer" };

#define COMMON_ROOM 256 /* bytes of them all, beside the name of the writer */

static char *put(char *to, str s)
{
    memcpy(to, s.p, s.n);
    return to + s.n;
}

static char *put_number(char *to, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return put(to, str_of(digits + at, sizeof(digits) - at));
}

static char *put_common(char *to, unsigned which, const struct event *e,
                        const struct event_place *place)
{
    switch (which) {
    case 0:
        to = put(to, STR("\"prev\":\""));
        digest_hex(to, &place->prev);
        return put(to + 2 * DIGEST_SIZE, STR("\","));
    case 1:
        to = put_number(put(to, STR("\"seq\":")), place->seq);
        return put(to, STR(","));
    case 2:
        to = put(to, STR("\"ts\":\""));
        clock_format(to, place->ts);
        return put(to + CLOCK_TEXT, STR("\","));
    case 3:
        to = put(put(to, STR("\"type\":\"")), str_from(type_names[e->type]));
        return put(to, STR("\","));
    case 4:
        return put(to, STR("\"v\":1,"));
    default:
        to = put(put(to, STR("\"writer\":\"")), str_from(place->writer));
        return put(to, STR("\","));
    }
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
        to = put(to, str_of(e->text.p + e->member[i].at, e->member[i].n));
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
    size_t room = COMMON_ROOM + strlen(place->writer) + e->text.n + e->count;
    char *to = e->failed ? NULL : buf_room(out, room), *end;

    if (e->failed)
        return err_set(err, ERR_LIMIT,
                       "event '%s' has a member or byte too many, or text that is not "
                       "UTF-8",
                       type_names[e->type]);
    if (!to)
        return buf_check(out, "the batch of events", err);
    end = put_members(to, e, place);
    if (end - to > EVENT_LINE_MAX)
        return err_set(err, ERR_LIMIT, "event '%s' is larger than %d bytes",
                       type_names[e->type], EVENT_LINE_MAX);
    out->n += (size_t)(end - to);
    return 0;
}

/* --- reading --- */

static uint32_t member(const struct event_view *v, const char *name)
{
    return json_member(v->json, JSON_ROOT, str_from(name));
}

str event_text(const struct event_view *v, const char *name)
{
    uint32_t node = member(v, name);
    str raw;

    if (!json_is(v->json, node, JSON_STRING))
        return (str){ NULL, 0 };
    raw = json_raw(v->json, node);
    return str_of(raw.p + 1, raw.n - 2);
}

bool event_int(const struct event_view *v, const char *name, int64_t *value)
{
    uint32_t node = member(v, name);

    return node != JSON_NONE && json_int(v->json, node, value);
}

bool event_bool(const struct event_view *v, const char *name, bool *value)
{
    uint32_t node = member(v, name);

    if (!json_is(v->json, node, JSON_TRUE) && !json_is(v->json, node, JSON_FALSE))
        return false;
    *value = json_is(v->json, node, JSON_TRUE);
    return true;
}

static bool is_id(str s, str prefix)
{
    uint8_t bytes[ID_HEX / 2];

    return str_starts(s, prefix) &&
           hex_decode(bytes, sizeof(bytes), str_skip(s, prefix.n));
}

static bool find_type(enum event_type *type, str name)
{
    static const struct {
        const char *text;
        size_t n;
    } types[] = {
#define X(symbol, text) { text, sizeof(text) - 1 },
        EVENT_TYPES(X)
#undef X
    };

    for (unsigned i = 0; i < EVENT_TYPE_COUNT; i++) {
        if (name.n == types[i].n && memcmp(name.p, types[i].text, name.n) == 0) {
            *type = (enum event_type)i;
            return true;
        }
    }
    return false;
}

static int parse_common(struct event_view *v, struct err *err)
{
    int64_t number;
    str ts = event_text(v, "ts");

    if (!event_int(v, "v", &number) || number != 1)
        return err_set(err, ERR_FORMAT, "has no 'v' of 1");
    if (!event_int(v, "seq", &number) || number < 0)
        return err_set(err, ERR_FORMAT, "has no 'seq'");
    v->seq = (uint64_t)number;
    if (!digest_from_hex(&v->prev, event_text(v, "prev")))
        return err_set(err, ERR_FORMAT, "has no 'prev' of 64 hex digits");
    if (ts.n != CLOCK_TEXT || ts.p[CLOCK_TEXT - 1] != 'Z' || !clock_parse(&v->ts, ts))
        return err_set(err, ERR_FORMAT, "has no 'ts' like 2026-03-15T11:30:00.000Z");
    v->writer = event_text(v, "writer");
    if (!is_id(v->writer, STR("w_")))
        return err_set(err, ERR_FORMAT, "has no 'writer' like w_0123456789abcdef");
    if (!find_type(&v->type, event_text(v, "type")))
        return err_set(err, ERR_FORMAT, "has no 'type' that this version knows");
    return 0;
}

static int parse_session(struct event_view *v, struct err *err)
{
    bool has_session = member(v, "session") != JSON_NONE;
    int64_t n = 0;

    if (has_session != (member(v, "n") != JSON_NONE))
        return err_set(err, ERR_FORMAT, "has only one of 'session' and 'n'");
    if (!has_session)
        return 0;
    v->session = event_text(v, "session");
    if (!is_id(v->session, STR("mcp_")))
        return err_set(err, ERR_FORMAT, "has no 'session' like mcp_0123456789abcdef");
    if (!event_int(v, "n", &n) || n < 0)
        return err_set(err, ERR_FORMAT, "has no 'n'");
    v->n = (uint64_t)n;
    return 0;
}

static bool is_texts(const struct json *j, uint32_t node)
{
    if (!json_is(j, node, JSON_ARRAY))
        return false;
    json_each (j, node, at) {
        if (!json_is(j, at, JSON_STRING))
            return false;
    }
    return true;
}

static bool is_kind(const struct json *j, uint32_t node, enum value_kind kind)
{
    int64_t number;

    switch (kind) {
    case VALUE_TEXT:
        return json_is(j, node, JSON_STRING);
    case VALUE_COUNT:
        return json_int(j, node, &number) && number >= 0;
    case VALUE_INT:
        return json_int(j, node, &number);
    case VALUE_BOOL:
        return json_is(j, node, JSON_TRUE) || json_is(j, node, JSON_FALSE);
    case VALUE_TEXTS:
        return is_texts(j, node);
    case VALUE_ACTOR:
        return json_int(j, json_member(j, node, STR("pid")), &number) &&
               json_int(j, json_member(j, node, STR("uid")), &number);
    }
    return false;
}

/* Absent facts are left out, never null, and no number needs a fraction. */
static int check_values(const struct json *j, struct err *err)
{
    int64_t number;

    for (uint32_t i = 0; i < j->count; i++) {
        if (json_is(j, i, JSON_NULL))
            return err_set(err, ERR_FORMAT, "has a null");
        if (json_is(j, i, JSON_NUMBER) && !json_int(j, i, &number))
            return err_set(err, ERR_FORMAT,
                           "has a number that is no integer within "
                           "±(2^53 − 1)");
    }
    return 0;
}

static int check_members(const struct event_view *v, struct err *err)
{
    for (size_t i = 0; i < COUNT(members); i++) {
        uint32_t node;

        if (members[i].type != v->type)
            continue;
        node = member(v, members[i].name);
        if (node == JSON_NONE && members[i].presence == MAY)
            continue;
        if (node == JSON_NONE || !is_kind(v->json, node, members[i].kind))
            return err_set(err, ERR_FORMAT, "'%s' without a good '%s'",
                           type_names[v->type], members[i].name);
    }
    return 0;
}

int event_parse(struct event_view *v, struct json *json, str line, struct err *err)
{
    static const struct json_limits limits = { .max_bytes = EVENT_LINE_MAX,
                                               .max_depth = 8 };
    struct event_view made = { .json = json };

    if (json_parse(json, line, &limits, err) < 0)
        return -1;
    if (!json_is(json, JSON_ROOT, JSON_OBJECT))
        return err_set(err, ERR_FORMAT, "is not an object");
    if (!jcs_is_canonical(json))
        return err_set(err, ERR_FORMAT, "is not in canonical form (RFC 8785)");
    if (parse_common(&made, err) < 0 || parse_session(&made, err) < 0 ||
        check_values(json, err) < 0 || check_members(&made, err) < 0)
        return -1;
    *v = made;
    return 0;
}
