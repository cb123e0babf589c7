/* SPDX-License-Identifier: Apache-2.0 */
/* Events that tell of a message: message_event() and event_keep() of event.h. */
#include "base/err.h"
#include "evidence/event.h"
#include "tests/tap.h"

#define WRITER "w_0123456789abcdef"
#define HASH   "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char long_text[EVENT_FOREIGN_MAX + 1];

static const struct {
    const char *what;
    str id, method, tool;
    bool in_batch;
} messages[] = {
    { "a message", { "17", 2 }, { "tools/call", 10 }, { "echo", 4 }, false },
    { "one without any of these", { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, false },
    { "empty ones", { "", 0 }, { "", 0 }, { "", 0 }, true },
    { "a text as its id", { "\"a\"", 3 }, { "x", 1 }, { NULL, 0 }, false },
    { "escapes", { "\"\\n\"", 4 }, { "a\\u0041", 7 }, { "\\\"", 2 }, true },
    { "letters", { "1", 1 }, { "\xc3\xa9", 2 }, { "\xf0\x9f\x98\x80", 4 }, false },
    { "no UTF-8", { "\xff", 1 }, { "\xc3", 1 }, { "a\x80", 2 }, false },
    { "just not too long", { long_text, 256 }, { long_text, 256 }, { "t", 1 }, true },
    { "too long", { long_text, 257 }, { long_text, 257 }, { long_text, 257 }, false },
};

static struct message message_of(size_t i)
{
    return (struct message){ .dir = STR("c2s"),
                             .kind = STR("request"),
                             .method = messages[i].method,
                             .id = messages[i].id,
                             .tool = messages[i].tool,
                             .bytes = 100 + i,
                             .digest = STR(HASH),
                             .in_batch = messages[i].in_batch,
                             .batch = i };
}

static void add_foreign(struct event *e, const char *name, const char *sha256_name, str s)
{
    if (s.p)
        event_add_foreign(e, name, sha256_name, s);
}

/* The same, member by member, in no order. */
static void add_members(struct event *e, const struct message *m)
{
    event_init(e, EVENT_REQUEST_RECEIVED);
    add_foreign(e, "tool", "tool_sha256", m->tool);
    event_add_text(e, "kind", m->kind);
    add_foreign(e, "method", "method_sha256", m->method);
    event_add_int(e, "bytes", (int64_t)m->bytes);
    event_add_text(e, "dir", m->dir);
    if (m->in_batch)
        event_add_int(e, "batch", (int64_t)m->batch);
    add_foreign(e, "id", "id_sha256", m->id);
    event_add_text(e, "digest", m->digest);
}

static void add_others(struct event *e)
{
    event_add_text(e, "trace", STR("t"));
    event_add_text(e, "arguments_hash", STR(HASH));
    event_add_bool(e, "is_error", true);
    event_add_int(e, "a", 1);
    event_add_int(e, "z", 2);
    e->session = STR("mcp_0123456789abcdef");
    e->n = 12345;
    e->call = STR("inv_0123456789abcdef");
}

static void test_messages_are_like_members(void)
{
    const struct event_place place = { .seq = 7, .writer = STR(WRITER) };

    memset(long_text, 'l', sizeof(long_text));
    for (size_t i = 0; i < COUNT(messages); i++) {
        CLEANUP(event_release) struct event one = { 0 }, many = { 0 };
        CLEANUP(buf_release) struct buf line = { 0 }, expected = { 0 };
        const struct message m = message_of(i);
        struct err err = { 0 };

        message_event(&one, EVENT_REQUEST_RECEIVED, &m);
        add_others(&one);
        add_members(&many, &m);
        add_others(&many);
        ok(event_compose(&line, &one, &place, &err) == 0 &&
               event_compose(&expected, &many, &place, &err) == 0 &&
               str_equal(buf_str(&line), buf_str(&expected)),
           "%s: the line of its members: %s", messages[i].what, err.msg);
    }
}

static void test_a_kept_event_outlives_its_message(void)
{
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 }, again = { 0 };
    const struct event_place place = { .writer = STR(WRITER) };
    char id[] = "4711", tool[] = "echo", digest[] = HASH;
    struct message m = message_of(0);
    struct err err = { 0 };

    m.id = str_from(id);
    m.tool = str_from(tool);
    m.digest = str_from(digest);
    message_event(&e, EVENT_REQUEST_RECEIVED, &m);
    event_keep(&e);
    if (event_compose(&line, &e, &place, &err) < 0)
        ok(false, "it composes: %s", err.msg);
    memset(id, 'x', sizeof(id));
    memset(tool, 'x', sizeof(tool));
    memset(digest, 'x', sizeof(digest));
    event_keep(&e); /* once more changes nothing */
    ok(event_compose(&again, &e, &place, &err) == 0 && line.n &&
           str_equal(buf_str(&line), buf_str(&again)),
       "what is kept does not change with the message");
}

static void test_message_limits(void)
{
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    const struct event_place place = { .writer = STR(WRITER) };
    struct message m = message_of(0);
    struct err err = { 0 };

    m.bytes = EVENT_INT_MAX;
    message_event(&e, EVENT_REQUEST_RECEIVED, &m);
    ok(event_compose(&line, &e, &place, &err) == 0, "2^53 - 1 bytes: %s", err.msg);
    m.bytes++;
    message_event(&e, EVENT_REQUEST_RECEIVED, &m);
    ok(event_compose(&line, &e, &place, &err) < 0 && err.code == ERR_LIMIT,
       "one more: %s", err.msg);
}

int main(void)
{
    test_messages_are_like_members();
    test_a_kept_event_outlives_its_message();
    test_message_limits();
    return tap_done();
}
