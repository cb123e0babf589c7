/* SPDX-License-Identifier: Apache-2.0 */
/* Events as they are read: a line, checked strictly; declared in event.h. */
#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"
#include "evidence/event.h"
#include "json/jcs.h"

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
    { EVENT_TRANSPORT_FOUND, "transport", VALUE_TEXT, MUST },
    { EVENT_SERVER_ENDED, "reason", VALUE_TEXT, MUST },
    { EVENT_SERVER_ENDED, "status", VALUE_COUNT, MAY },
    { EVENT_CALL_CANCELLED, "call", VALUE_TEXT, MUST },
};

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
                           event_type_name(v->type), members[i].name);
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
