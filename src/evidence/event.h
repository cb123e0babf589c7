/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event - one line of the audit log: what happened, as canonical JSON.
 *
 * Composing: fill a struct event with the members of its type; the log adds `v`, `seq`,
 * `prev`, `ts`, `type` and `writer` and writes the line (RFC 8785, at most EVENT_LINE_MAX
 * bytes, integers only). Reading: event_parse() checks a line strictly, members and
 * canonical form included, and gives a view that borrows from it.
 *
 * docs/log.md has the table of types and members; event_view.c has it as code.
 */
#ifndef EVIDENCE_EVENT_H
#define EVIDENCE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/entropy.h"
#include "base/str.h"
#include "evidence/crypto.h"
#include "json/json.h"

struct err;

#define EVENT_LINE_MAX    16384 /* without the newline */
#define EVENT_FOREIGN_MAX 256   /* bytes of method, tool, id before they are cut */
#define EVENT_MEMBERS_MAX 32    /* beside those that every event has */
#define EVENT_INT_MAX     (((int64_t)1 << 53) - 1)

#define EVENT_TYPES(X)                                                                   \
    X(CHAIN_START, "chain_start")                                                        \
    X(CHAIN_END, "chain_end")                                                            \
    X(SESSION_START, "session_start")                                                    \
    X(SESSION_END, "session_end")                                                        \
    X(REQUEST_RECEIVED, "request_received")                                              \
    X(REQUEST_FORWARDED, "request_forwarded")                                            \
    X(RESPONSE_RECEIVED, "response_received")                                            \
    X(RESPONSE_SENT, "response_sent")                                                    \
    X(NOTIFICATION_RECEIVED, "notification_received")                                    \
    X(NOTIFICATION_FORWARDED, "notification_forwarded")                                  \
    X(MESSAGE_RECEIVED, "message_received")                                              \
    X(MESSAGE_FORWARDED, "message_forwarded")                                            \
    X(POLICY_DECIDED, "policy_decided")                                                  \
    X(REQUEST_DENIED, "request_denied")                                                  \
    X(MESSAGE_HELD, "message_held")                                                      \
    X(MESSAGE_RELEASED, "message_released")                                              \
    X(MESSAGE_MODIFIED, "message_modified")                                              \
    X(MESSAGE_DROPPED, "message_dropped")                                                \
    X(MESSAGE_CUT, "message_cut")                                                        \
    X(RESPONSE_LATE, "response_late")                                                    \
    X(CALL_LOST, "call_lost")                                                            \
    X(RECEIPT, "receipt")                                                                \
    X(POLICY_LOADED, "policy_loaded")                                                    \
    X(TOOLS_WITHHELD, "tools_withheld")                                                  \
    X(TOOL_CHANGED, "tool_changed")                                                      \
    X(GAP, "gap")                                                                        \
    X(REPAIR, "repair")                                                                  \
    X(KEY_ROTATE, "key_rotate")                                                          \
    X(HEARTBEAT, "heartbeat")                                                            \
    X(PAYLOADS_FORGOTTEN, "payloads_forgotten")                                          \
    X(TRANSPORT_FOUND, "transport_found")                                                \
    X(SERVER_ENDED, "server_ended")                                                      \
    X(CALL_CANCELLED, "call_cancelled")

enum event_type {
#define X(name, text) EVENT_##name,
    EVENT_TYPES(X)
#undef X
    EVENT_TYPE_COUNT
};

const char *event_type_name(enum event_type type);

/* What an event says of a message. Texts are JSON source: `method` and `tool` without
 * their quotes, `id` whole. {NULL, 0} leaves a member out. */
struct message {
    str dir;  /* c2s, s2c; a literal */
    str kind; /* request, response, notification, invalid; a literal */
    str method, id, tool;
    uint64_t bytes;
    str digest; /* sha256:<hex> or hmac-sha256:<hex>, of the raw frame */
    bool in_batch;
    uint64_t batch; /* index, when the frame was a batch */
};

/* An event being composed: a message, if it tells of one, and other members as canonical
 * JSON, each with its comma. */
struct event {
    enum event_type type;
    bool failed; /* too many members, two of a name, values beyond a limit */
    bool has_message;
    struct message message;
    str session; /* whose it is: members `session` and `n`; borrowed, or {NULL, 0} */
    uint64_t n;
    str call; /* the same: member `call` */
    unsigned count;
    unsigned newest; /* the member that was added last */
    struct event_member {
        uint64_t key;            /* of its name */
        uint16_t at, value, end; /* `"name":value,` in `text` */
        bool escaped;            /* a text with backslashes */
    } member[EVENT_MEMBERS_MAX]; /* sorted by name */
    struct buf text;
    struct buf kept; /* of event_keep() */
};

void event_init(struct event *e, enum event_type type); /* may be called again: reuses */
void event_release(struct event *e);
void event_copy(struct event *to, const struct event *from); /* `to` is reused */

/* Begin an event with the members of a message, which is borrowed; event_keep() makes the
 * event outlive it. A copy of the event borrows from the event. */
void message_event(struct event *e, enum event_type type, const struct message *m);
void event_keep(struct event *e);

/* The name of a member, and its first eight bytes as a number: key(a) < key(b) implies
 * a < b. */
struct event_name {
    str text;
    uint64_t key;
};

/* Of a literal this costs nothing: so is nearly every name. */
static ALWAYS_INLINE struct event_name event_name(const char *name)
{
    size_t n = strlen(name);
    uint64_t key = 0;

#define X(i) key |= n > i ? (uint64_t)(unsigned char)name[i] << (56 - 8 * i) : 0;
    X(0)
    X(1)
    X(2)
    X(3)
    X(4)
    X(5)
    X(6)
    X(7)
#undef X
    return (struct event_name){ { name, n }, key };
}

/* Members that come in their canonical order need no sorting. */
void event_add_text_as(struct event *e, struct event_name name, str utf8);
void event_add_json_as(struct event *e, struct event_name name, str canonical);
void event_add_int_as(struct event *e, struct event_name name, int64_t value);
void event_add_digest(struct event *e, const char *name, const struct digest *d);

static ALWAYS_INLINE void event_add_text(struct event *e, const char *name, str utf8)
{
    event_add_text_as(e, event_name(name), utf8);
}

static ALWAYS_INLINE void event_add_cstr(struct event *e, const char *name,
                                         const char *utf8)
{
    event_add_text_as(e, event_name(name), str_from(utf8));
}

static ALWAYS_INLINE void event_add_int(struct event *e, const char *name, int64_t value)
{
    event_add_int_as(e, event_name(name), value);
}

static ALWAYS_INLINE void event_add_bool(struct event *e, const char *name, bool value)
{
    event_add_json_as(e, event_name(name), value ? STR("true") : STR("false"));
}

void event_add_texts(struct event *e, const char *name, const str *utf8, size_t count);
void event_add_actor(struct event *e, int64_t pid, int64_t uid); /* who intervened */

/* Foreign JSON source text (method, tool, id): kept whole up to EVENT_FOREIGN_MAX bytes;
 * beyond, cut at a character, followed by '…', and `sha256_name` carries the hash of all.
 * Text that is not valid UTF-8 is replaced by its hash alone. */
void event_add_foreign(struct event *e, const char *name, const char *sha256_name,
                       str source);

/* The JSON text of a value that was added; {NULL, 0} when there is none. */
str event_value(const struct event *e, struct event_name name);

/* The same of a text, what stands between its quotes. *escaped: set when it has
 * backslashes. */
str event_find_text(const struct event *e, struct event_name name, bool *escaped);

/* The same, the texts of the message included. */
static ALWAYS_INLINE str event_contents(const struct event *e, struct event_name name,
                                        bool *escaped)
{
    const struct message *m = &e->message;
    str text = { NULL, 0 };

    if (e->has_message && name.key == event_name("digest").key)
        text = m->digest;
    else if (e->has_message && name.key == event_name("id").key)
        text = m->id;
    else if (e->has_message && name.key == event_name("method").key)
        text = m->method;
    else if (e->has_message && name.key == event_name("tool").key)
        text = m->tool;
    return text.p ? text : event_find_text(e, name, escaped);
}

/* Where an event stands. */
struct event_place {
    uint64_t seq;
    struct digest prev;
    int64_t ts; /* ms */
    str writer; /* w_<16 hex> */
};

/* Append the finished line, without newline, to `out`. */
MUST_CHECK int event_compose(struct buf *out, const struct event *e,
                             const struct event_place *place, struct err *err);

/* A line taken apart. Everything borrows from the line and from `json`. */
struct event_view {
    const struct json *json;
    uint64_t seq;
    struct digest prev;
    int64_t ts;
    enum event_type type;
    str writer;
    str session; /* empty for events outside a session */
    uint64_t n;  /* 0-based in the session; only with a session */
};

/* Check a line (without its newline) and index it into `json`, which is reused. */
MUST_CHECK int event_parse(struct event_view *v, struct json *json, str line,
                           struct err *err);

/* A text member without its quotes (still escaped if it has backslashes); empty str with
 * NULL pointer when absent. */
str event_text(const struct event_view *v, const char *name);
bool event_int(const struct event_view *v, const char *name, int64_t *value);
bool event_bool(const struct event_view *v, const char *name, bool *value);

#endif
