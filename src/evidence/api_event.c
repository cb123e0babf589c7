/* SPDX-License-Identifier: Apache-2.0 */
/* assay_session_event(): an event from the outside, checked as a reader would. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "evidence/api_internal.h"

/* Written by other functions of this interface, or by the log itself. */
static bool is_managed(enum event_type type)
{
    return type == EVENT_CHAIN_START || type == EVENT_CHAIN_END ||
           type == EVENT_SESSION_START || type == EVENT_SESSION_END ||
           type == EVENT_RECEIPT || type == EVENT_CALL_LOST || type == EVENT_GAP ||
           type == EVENT_REPAIR || type == EVENT_KEY_ROTATE ||
           type == EVENT_PAYLOADS_FORGOTTEN || type == EVENT_POLICY_DECIDED ||
           type == EVENT_REQUEST_DENIED || type == EVENT_TRANSPORT_FOUND;
}

static bool find_type(enum event_type *out, const char *name)
{
    for (unsigned i = 0; i < EVENT_TYPE_COUNT; i++) {
        if (strcmp(event_type_name((enum event_type)i), name) == 0) {
            *out = (enum event_type)i;
            return !is_managed(*out);
        }
    }
    return false;
}

static const char *const taken_names[] = { "v",      "seq",     "prev", "ts",  "type",
                                           "writer", "session", "n",    "call" };

static bool is_taken(const char *name)
{
    for (size_t i = 0; i < COUNT(taken_names); i++) {
        if (strcmp(taken_names[i], name) == 0)
            return true;
    }
    return false;
}

static int add_texts(struct event *e, const char *name, const struct json *j,
                     uint32_t node, struct arena *arena, struct err *err)
{
    str *texts = arena_alloc(arena, (json_count(j, node) + 1) * sizeof(*texts));
    size_t count = 0;

    json_each (j, node, at) {
        CLEANUP(buf_release) struct buf text = { .max = EVENT_LINE_MAX };

        if (!json_is(j, at, JSON_STRING))
            return err_set(err, ERR_FORMAT, "'%s' holds something that is no text", name);
        json_unescape(j, at, &text);
        if (texts)
            texts[count++] = arena_dup(arena, buf_str(&text));
    }
    if (arena->failed)
        return err_set(err, ERR_LIMIT, "the members of the event are too large");
    event_add_texts(e, name, texts, count);
    return 0;
}

/* As all names in the log are: they need no escapes, and sort as bytes. */
static bool is_name(const char *name)
{
    size_t n = 0;

    while ((name[n] >= 'a' && name[n] <= 'z') || (name[n] >= 'A' && name[n] <= 'Z') ||
           (name[n] >= '0' && name[n] <= '9') || name[n] == '_')
        n++;
    return n > 0 && name[n] == '\0';
}

static int add_member(struct event *e, const char *name, const struct json *j,
                      uint32_t node, struct arena *arena, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = EVENT_LINE_MAX };
    int64_t number;

    if (!is_name(name))
        return err_set(err, ERR_FORMAT,
                       "the name of a member is letters, digits and '_', not '%s'", name);
    if (is_taken(name))
        return err_set(err, ERR_FORMAT, "'%s' is not for the caller to set", name);
    if (json_is(j, node, JSON_ARRAY))
        return add_texts(e, name, j, node, arena, err);
    if (json_is(j, node, JSON_STRING)) {
        json_unescape(j, node, &text);
        event_add_text(e, name, buf_str(&text));
        return buf_check(&text, "a text in the event", err);
    }
    if (json_is(j, node, JSON_TRUE) || json_is(j, node, JSON_FALSE))
        event_add_bool(e, name, json_is(j, node, JSON_TRUE));
    else if (json_int(j, node, &number))
        event_add_int(e, name, number);
    else
        return err_set(err, ERR_FORMAT, "'%s' has a value that no event has", name);
    return 0;
}

static int add_members(struct event *e, const struct json *j, struct arena *arena,
                       struct err *err)
{
    json_each (j, JSON_ROOT, at) {
        CLEANUP(buf_release) struct buf name = { .max = EVENT_LINE_MAX };
        str copy;

        json_unescape(j, at, &name);
        buf_add_char(&name, '\0');
        copy = arena_dup(arena, buf_str(&name));
        if (!copy.p || name.failed || strlen(copy.p) + 1 != copy.n)
            return err_set(err, ERR_FORMAT, "a member of the event has no good name");
        if (add_member(e, copy.p, j, at + 1, arena, err) < 0)
            return -1;
    }
    return 0;
}

/* What a reader would refuse must never be written. */
static int check_event(const struct event *e, struct err *err)
{
    CLEANUP(buf_release) struct buf line = { .max = EVENT_LINE_MAX };
    CLEANUP(json_release) struct json json = { 0 };
    const struct event_place place = { .writer = STR("w_0000000000000000") };
    struct event_view v;

    if (event_compose(&line, e, &place, err) < 0 ||
        event_parse(&v, &json, buf_str(&line), err) < 0)
        return err_wrap(err, "the event '%s'", event_type_name(e->type));
    return 0;
}

static int record_event(struct assay_session *s, const char *name, str members,
                        struct event *e, struct err *err)
{
    static const struct json_limits limits = { .max_bytes = EVENT_LINE_MAX };
    CLEANUP(arena_release) struct arena arena = { 0 };
    enum event_type type;
    uint64_t upto;

    arena_init(&arena, 16 * EVENT_LINE_MAX);
    if (s->sealed)
        return err_set(err, ERR_REFUSED, "the session has ended");
    if (!name || !find_type(&type, name))
        return err_set(err, ERR_FORMAT, "'%s' is no type of event to append",
                       name ? name : "");
    if (json_parse(&s->json, members, &limits, err) < 0)
        return err_wrap(err, "the members of the event");
    if (!json_is(&s->json, JSON_ROOT, JSON_OBJECT) ||
        (s->json.nodes[JSON_ROOT].flags & (JSON_TAINTED | JSON_DUPLICATE)))
        return err_set(err, ERR_FORMAT,
                       "the members of the event are not an object with one value each");
    event_init(e, type);
    if (add_members(e, &s->json, &arena, err) < 0 || check_event(e, err) < 0 ||
        session_put(s->session, e, &upto, err) < 0)
        return -1;
    return session_settle(s->session, upto, err);
}

int assay_session_event(struct assay_session *session, const char *type,
                        const char *members, size_t length, struct assay_error *error)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct err err = { 0 };

    if (record_event(session, type, str_of(members, length), &e, &err) < 0)
        return api_fail(error, &err);
    return 0;
}
