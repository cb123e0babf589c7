/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/event.h"

#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/guard.h"
#include "tests/tap.h"

#define PREV   "0000000000000000000000000000000000000000000000000000000000000000"
#define WRITER "w_0123456789abcdef"

/* --- the recipes of tests/data/make_events.py --- */

#define FIELDS_MAX  40
#define SPARE_BYTES 65536 /* taken at once, so that nothing moves */

struct recipe {
    struct event e;
    struct event_place place;
    struct buf spare; /* decoded texts live here until the line is composed */
    bool seen[EVENT_TYPE_COUNT];
    int number;
};

static unsigned split(char *line, char *field[FIELDS_MAX])
{
    unsigned n = 0;

    for (char *at = line; at && n < FIELDS_MAX; n++) {
        field[n] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = '\0';
    }
    return n;
}

static str unhex(struct recipe *r, const char *hex)
{
    size_t n = strlen(hex) / 2;
    bool fits = r->spare.n || buf_room(&r->spare, SPARE_BYTES);
    char *to = fits && r->spare.n + n < SPARE_BYTES ? buf_room(&r->spare, n + 1) : NULL;

    if (!to || !hex_decode(to, n, str_from(hex)))
        return STR("?");
    r->spare.n += n;
    return str_of(to, n);
}

static void begin(struct recipe *r, char **field)
{
    unsigned type = 0;

    while (type < EVENT_TYPE_COUNT &&
           strcmp(event_type_name((enum event_type)type), field[1]) != 0)
        type++;
    ok(type < EVENT_TYPE_COUNT, "there is a type %s", field[1]);
    if (type == EVENT_TYPE_COUNT)
        return;
    r->seen[type] = true;
    event_init(&r->e, (enum event_type)type);
    buf_reset(&r->spare);
    r->place.seq = strtoull(field[2], NULL, 10);
    if (!digest_from_hex(&r->place.prev, str_from(field[3])))
        ok(false, "prev in the data");
    r->place.ts = strtoll(field[4], NULL, 10);
    r->place.writer = str_from(field[5]);
}

static void add(struct recipe *r, char **field, unsigned n)
{
    str texts[FIELDS_MAX];

    if (strcmp(field[0], "text") == 0) {
        event_add_text(&r->e, field[1], unhex(r, field[2]));
    } else if (strcmp(field[0], "int") == 0) {
        event_add_int(&r->e, field[1], strtoll(field[2], NULL, 10));
    } else if (strcmp(field[0], "bool") == 0) {
        event_add_bool(&r->e, field[1], field[2][0] == '1');
    } else if (strcmp(field[0], "foreign") == 0) {
        event_add_foreign(&r->e, field[1], field[2], unhex(r, field[3]));
    } else if (strcmp(field[0], "actor") == 0) {
        event_add_actor(&r->e, strtoll(field[1], NULL, 10), strtoll(field[2], NULL, 10));
    } else if (strcmp(field[0], "texts") == 0) {
        for (unsigned i = 2; i < n; i++)
            texts[i - 2] = unhex(r, field[i]);
        event_add_texts(&r->e, field[1], texts, n - 2);
    } else {
        ok(false, "a recipe with '%s'", field[0]);
    }
}

/* Everything but this one spelling is refused: each byte removed or doubled, a blank
 * anywhere, the line cut anywhere. */
static bool only_this_spelling(str line)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf other = { 0 };
    struct event_view v;
    struct err err;

    for (size_t i = 0; i < line.n; i++) {
        bool inside_text = false;

        for (size_t k = 0; k < i; k++)
            inside_text ^= line.p[k] == '"' && (k == 0 || line.p[k - 1] != '\\');
        if (event_parse(&v, &json, str_first(line, i), &err) == 0)
            return false;
        buf_reset(&other);
        buf_add(&other, str_first(line, i));
        buf_add_char(&other, ' ');
        buf_add(&other, str_skip(line, i));
        if (!inside_text && event_parse(&v, &json, buf_str(&other), &err) == 0)
            return false;
    }
    return true;
}

static void compare(struct recipe *r, const char *hex)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    str expected = unhex(r, hex);
    const char *name = event_type_name(r->e.type);
    struct event_view v = { 0 };
    struct guard g = { 0 };
    struct err err = { 0 };
    bool same;

    ok(event_compose(&line, &r->e, &r->place, &err) == 0, "%d %s composes: %s", r->number,
       name, err.msg);
    same = str_equal(buf_str(&line), expected);
    ok(same, "%d %s is the line that other code computes", r->number, name);
    if (!same)
        printf("# got  %s\n# want %.*s\n", buf_cstr(&line), (int)expected.n, expected.p);
    guard_init(&g, expected);
    ok(event_parse(&v, &json, g.bytes, &err) == 0, "%d %s parses: %s", r->number, name,
       err.msg);
    ok(v.type == r->e.type && v.seq == r->place.seq && v.ts == r->place.ts &&
           digest_equal(&v.prev, &r->place.prev) && str_equal(v.writer, r->place.writer),
       "%d %s: what went in comes out", r->number, name);
    ok(v.session.n
           ? str_is(v.session, "mcp_0123456789abcdef") && v.n == (uint64_t)r->number
           : r->number % 2 == 0,
       "%d %s: its session", r->number, name);
    ok(only_this_spelling(expected), "%d %s has one spelling", r->number, name);
    guard_release(&g);
    r->number++;
}

static void test_vectors(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct recipe r = { 0 };
    struct err err = { 0 };
    char *field[FIELDS_MAX];

    ok(file_read("tests/data/events.tsv", &text, &err) == 0, "the vectors: %s", err.msg);
    if (!text.n || !buf_cstr(&text))
        return;
    for (char *line = text.p, *end; (end = strchr(line, '\n')); line = end + 1) {
        unsigned n;

        *end = '\0';
        n = split(line, field);
        if (strcmp(field[0], "event") == 0)
            begin(&r, field);
        else if (strcmp(field[0], "line") == 0)
            compare(&r, field[1]);
        else
            add(&r, field, n);
    }
    for (unsigned i = 0; i < EVENT_TYPE_COUNT; i++)
        ok(r.seen[i], "%s has a vector", event_type_name((enum event_type)i));
    event_release(&r.e);
    buf_release(&r.spare);
}

/* --- what is refused --- */

#define HEARTBEAT(rest)                                                                  \
    "\"prev\":\"" PREV "\",\"seq\":0,\"ts\":\"2026-03-15T11:30:00.000Z\","               \
    "\"type\":\"heartbeat\",\"v\":1,\"writer\":\"" WRITER "\"" rest "}"

static const struct {
    const char *what;
    const char *line;
    bool good;
} lines[] = {
    { "a heartbeat", "{" HEARTBEAT(""), true },
    { "a member without meaning", "{\"mark\":7," HEARTBEAT(""), true },
    { "the least integer", "{\"mark\":-9007199254740991," HEARTBEAT(""), true },
    { "an integer below it", "{\"mark\":-9007199254740992," HEARTBEAT(""), false },
    { "an integer of 2^53", "{\"mark\":9007199254740992," HEARTBEAT(""), false },
    { "a fraction", "{\"mark\":1.5," HEARTBEAT(""), false },
    { "a large float", "{\"mark\":1e+21," HEARTBEAT(""), false },
    { "a float inside", "{\"mark\":[{\"x\":0.5}]," HEARTBEAT(""), false },
    { "a null", "{\"mark\":null," HEARTBEAT(""), false },
    { "a null inside", "{\"mark\":[null]," HEARTBEAT(""), false },
    { "seven inner levels", "{\"mark\":[[[[[[[1]]]]]]]," HEARTBEAT(""), true },
    { "eight inner levels", "{\"mark\":[[[[[[[[1]]]]]]]]," HEARTBEAT(""), false },
    { "a needless escape", "{\"mark\":\"\\u0041\"," HEARTBEAT(""), false },
    { "an escaped slash", "{\"mark\":\"\\/\"," HEARTBEAT(""), false },
    { "a lone surrogate", "{\"mark\":\"\\ud800\"," HEARTBEAT(""), false },
    { "bytes that are not UTF-8", "{\"mark\":\"\xc3\"," HEARTBEAT(""), false },
    { "minus zero", "{\"mark\":-0," HEARTBEAT(""), false },
    { "two members of a name", "{\"mark\":1,\"mark\":1," HEARTBEAT(""), false },
    { "members out of order", "{" HEARTBEAT(",\"mark\":7"), false },
    { "a blank at the end", "{" HEARTBEAT("") " ", false },
    { "two lines", "{" HEARTBEAT("") "\n{" HEARTBEAT(""), false },
    { "nothing", "", false },
    { "an array", "[]", false },
    { "a number", "7", false },
};

/* One change to a good line, by name. */
static const struct {
    const char *what, *from, *to;
} changes[] = {
    { "prev of 63 digits", "\"prev\":\"0", "\"prev\":\"" },
    { "prev in capitals", "\"prev\":\"00", "\"prev\":\"AA" },
    { "no prev", "\"prev\":\"" PREV "\",", "" },
    { "a negative seq", "\"seq\":0", "\"seq\":-1" },
    { "seq as text", "\"seq\":0", "\"seq\":\"0\"" },
    { "no seq", "\"seq\":0,", "" },
    { "ts without milliseconds", ".000Z", "Z" },
    { "ts with microseconds", ".000Z", ".000000Z" },
    { "ts with an offset", ".000Z", "+00:00" },
    { "ts on no day", "2026-03-15", "2026-02-30" },
    { "ts in lower case", "T11", "t11" },
    { "no ts", "\"ts\":\"2026-03-15T11:30:00.000Z\",", "" },
    { "an unknown type", "heartbeat", "heartbeats" },
    { "no type", "\"type\":\"heartbeat\",", "" },
    { "another version", "\"v\":1", "\"v\":2" },
    { "no version", "\"v\":1,", "" },
    { "a short writer", "w_01", "w_1" },
    { "a writer of another kind", "w_01", "x_01" },
    { "a writer in capitals", "abcdef", "ABCDEF" },
    { "no writer", ",\"writer\":\"" WRITER "\"", "" },
    { "n without a session", "{", "{\"n\":0," },
    { "a session without n", ",\"ts\"", ",\"session\":\"mcp_0123456789abcdef\",\"ts\"" },
};

/* `from` replaced by `to`, once. */
static void change(struct buf *out, str line, const char *from, const char *to)
{
    const char *at = memmem(line.p, line.n, from, strlen(from));

    buf_reset(out);
    if (!at)
        return;
    buf_add(out, str_first(line, (size_t)(at - line.p)));
    buf_add(out, str_from(to));
    buf_add(out, str_skip(line, (size_t)(at - line.p) + strlen(from)));
}

static void test_lines(void)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    struct event_view v;
    struct guard g;

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct err err = { 0 };
        int r;

        guard_init(&g, str_from(lines[i].line));
        r = event_parse(&v, &json, g.bytes, &err);
        ok((r == 0) == lines[i].good && (r == 0 || err.msg[0]), "%s: %s", lines[i].what,
           r == 0 ? "good" : err.msg);
        guard_release(&g);
    }
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct err err = { 0 };

        change(&line, str_from(lines[0].line), changes[i].from, changes[i].to);
        ok(line.n && event_parse(&v, &json, buf_str(&line), &err) < 0, "%s: %s",
           changes[i].what, err.msg);
    }
}

static const struct {
    const char *what, *member;
} sessions[] = {
    { "a session of another kind", "\"n\":0,%s\"session\":\"xcp_0123456789abcdef\"" },
    { "a session that is too long", "\"n\":0,%s\"session\":\"mcp_0123456789abcdef0\"" },
    { "a negative n", "\"n\":-1,%s\"session\":\"mcp_0123456789abcdef\"" },
    { "n as text", "\"n\":\"0\",%s\"session\":\"mcp_0123456789abcdef\"" },
};

static void test_sessions(void)
{
    CLEANUP(json_release) struct json json = { 0 };
    struct event_view v;

    for (size_t i = 0; i < COUNT(sessions); i++) {
        CLEANUP(buf_release) struct buf placed = { 0 };
        const char *rest = strstr(sessions[i].member, "%s");
        struct err err = { 0 };

        buf_add_char(&placed, '{');
        buf_add(&placed, str_of(sessions[i].member, (size_t)(rest - sessions[i].member)));
        buf_add(&placed, STR("\"prev\":\"" PREV "\",\"seq\":0,"));
        buf_add(&placed, str_from(rest + 2));
        buf_add(&placed, STR(",\"ts\":\"2026-03-15T11:30:00.000Z\",\"type\":\"heartbeat\""
                             ",\"v\":1,\"writer\":\"" WRITER "\"}"));
        ok(event_parse(&v, &json, buf_str(&placed), &err) < 0 && strstr(err.msg, "no '"),
           "%s: %s", sessions[i].what, err.msg);
    }
}

/* --- every member of every type, missing and of a wrong kind --- */

/* The JSON text of member `name` without that member, or with `value` in its place. */
static void without(struct buf *out, const struct json *j, str line, uint32_t name,
                    const char *value)
{
    size_t from = j->nodes[name].start, to = j->nodes[name + 1].end;

    buf_reset(out);
    if (value) {
        buf_add(out, str_first(line, j->nodes[name + 1].start));
        buf_add(out, str_from(value));
        buf_add(out, str_skip(line, to));
        return;
    }
    if (to < line.n && line.p[to] == ',')
        to++;
    else
        from--;
    buf_add(out, str_first(line, from));
    buf_add(out, str_skip(line, to));
}

static const struct {
    enum event_type type;
    const char *may; /* members that may be left out, each between blanks */
} optional[] = {
    { EVENT_CHAIN_START, " pepper_check " },
    { EVENT_CHAIN_END, " for " },
    { EVENT_SESSION_START, " policy_hash investigation " },
    { EVENT_SESSION_END, " by " },
    { EVENT_REQUEST_RECEIVED, " arguments_hash trace " },
    { EVENT_RESPONSE_RECEIVED, " result_hash is_error result_type " },
    { EVENT_POLICY_DECIDED, " reason " },
    { EVENT_REQUEST_DENIED, " policy_ref " },
    { EVENT_RECEIPT, " call parent " },
    { EVENT_TOOL_CHANGED, " from to " },
    { EVENT_SERVER_ENDED, " status " },
};

static const char message_may[] = " method id tool call batch ";
static const char operator_may[] = " digest_before digest_after call held_ms ";
static const char common_names[] = " n session ";

static bool lists(const char *names, str name)
{
    char with[64];

    snprintf(with, sizeof(with), " %.*s ", (int)name.n, name.p);
    return strstr(names, with) != NULL;
}

static bool may_be_absent(enum event_type type, str name, bool is_message)
{
    for (size_t i = 0; i < COUNT(optional); i++) {
        if (optional[i].type == type && lists(optional[i].may, name))
            return true;
    }
    if (type >= EVENT_MESSAGE_HELD && type <= EVENT_MESSAGE_DROPPED)
        return lists(operator_may, name);
    return is_message && lists(message_may, name);
}

static void spoil_members(str line)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(json_release) struct json other_json = { 0 };
    CLEANUP(buf_release) struct buf other = { 0 };
    struct event_view v, other_view;
    struct err err = { 0 };
    bool missing_right = true, wrong_right = true;

    if (event_parse(&v, &json, line, &err) < 0)
        return;
    json_each (&json, JSON_ROOT, at) {
        str name = json_raw(&json, at);
        bool is_message = event_text(&v, "kind").n > 0;
        int r;

        name = str_of(name.p + 1, name.n - 2);
        if (lists(common_names, name))
            continue;
        without(&other, &json, line, at, NULL);
        r = event_parse(&other_view, &other_json, buf_str(&other), &err);
        if ((r == 0) != may_be_absent(v.type, name, is_message)) {
            printf("# without %.*s\n", (int)name.n, name.p);
            missing_right = false;
        }
        without(&other, &json, line, at, "{}");
        if (event_parse(&other_view, &other_json, buf_str(&other), &err) == 0) {
            printf("# {} as %.*s\n", (int)name.n, name.p);
            wrong_right = false;
        }
        without(&other, &json, line, at, "-1");
        if (event_parse(&other_view, &other_json, buf_str(&other), &err) == 0) {
            printf("# -1 as %.*s\n", (int)name.n, name.p);
            wrong_right = false;
        }
    }
    ok(missing_right, "%s: only what may be left out may be left out",
       event_type_name(v.type));
    ok(wrong_right, "%s: every member has its kind", event_type_name(v.type));
}

static void test_members(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct recipe r = { 0 };
    struct err err = { 0 };
    str rest, line;
    int count = 0;

    if (file_read("tests/data/events.tsv", &text, &err) < 0)
        return;
    rest = buf_str(&text);
    while (count < EVENT_TYPE_COUNT && str_line(&rest, &line)) {
        char hex[4096];

        if (!str_starts(line, STR("line\t")) || line.n >= sizeof(hex))
            continue;
        memcpy(hex, line.p + 5, line.n - 5);
        hex[line.n - 5] = '\0';
        buf_reset(&r.spare);
        spoil_members(unhex(&r, hex));
        count++;
    }
    ok(count == EVENT_TYPE_COUNT, "every type was spoiled");
    buf_release(&r.spare);
}

/* --- limits --- */

static int compose_filled(struct buf *line, size_t fill, struct err *err)
{
    static char text[EVENT_LINE_MAX + 2];
    CLEANUP(event_release) struct event e = { 0 };
    const struct event_place place = { .writer = STR(WRITER) };

    memset(text, 'x', sizeof(text));
    event_init(&e, EVENT_HEARTBEAT);
    event_add_text(&e, "mark", str_of(text, fill));
    buf_reset(line);
    return event_compose(line, &e, &place, err);
}

static void test_line_limit(void)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    struct event_view v;
    struct err err = { 0 };
    size_t most;

    if (compose_filled(&line, 0, &err) < 0)
        ok(false, "an empty text: %s", err.msg);
    most = EVENT_LINE_MAX - line.n;
    ok(compose_filled(&line, most, &err) == 0 && line.n == EVENT_LINE_MAX,
       "a line of %d bytes", EVENT_LINE_MAX);
    ok(event_parse(&v, &json, buf_str(&line), &err) == 0, "is read: %s", err.msg);
    ok(compose_filled(&line, most + 1, &err) < 0 && err.code == ERR_LIMIT,
       "one byte more is refused: %s", err.msg);
    ok(compose_filled(&line, EVENT_LINE_MAX + 1, &err) < 0 && err.code == ERR_LIMIT,
       "and a value beyond the whole line: %s", err.msg);
    if (compose_filled(&line, most, &err) == 0) {
        CLEANUP(buf_release) struct buf longer = { 0 };

        change(&longer, buf_str(&line), "xxx", "xxxx");
        ok(event_parse(&v, &json, buf_str(&longer), &err) < 0 && err.code == ERR_LIMIT,
           "a line of one byte more is not read: %s", err.msg);
    }
}

static void test_member_limit(void)
{
    static char names[EVENT_MEMBERS_MAX + 1][8];
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    const struct event_place place = { .writer = STR(WRITER) };
    struct event_view v;
    struct err err = { 0 };

    event_init(&e, EVENT_HEARTBEAT);
    for (unsigned i = 0; i < EVENT_MEMBERS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "m%02u", (i * 7) % EVENT_MEMBERS_MAX);
        event_add_int(&e, names[i], i);
    }
    ok(event_compose(&line, &e, &place, &err) == 0, "%d members: %s", EVENT_MEMBERS_MAX,
       err.msg);
    ok(event_parse(&v, &json, buf_str(&line), &err) == 0, "in order: %s", err.msg);
    event_add_int(&e, "one_more", 1);
    ok(event_compose(&line, &e, &place, &err) < 0 && err.code == ERR_LIMIT,
       "one more is refused: %s", err.msg);
    event_init(&e, EVENT_HEARTBEAT);
    buf_reset(&line);
    ok(event_compose(&line, &e, &place, &err) == 0, "and begun again it is good");
}

static void test_wrong_events(void)
{
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    const struct event_place place = { .writer = STR(WRITER) };
    struct err err = { 0 };

    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", EVENT_INT_MAX);
    ok(event_compose(&line, &e, &place, &err) == 0, "2^53 - 1 fits");
    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", EVENT_INT_MAX + 1);
    ok(event_compose(&line, &e, &place, &err) < 0, "2^53 does not: %s", err.msg);
    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", -EVENT_INT_MAX - 1);
    ok(event_compose(&line, &e, &place, &err) < 0, "nor does -2^53: %s", err.msg);
    event_init(&e, EVENT_HEARTBEAT);
    event_add_int(&e, "mark", 1);
    event_add_int(&e, "mark", 2);
    ok(event_compose(&line, &e, &place, &err) < 0, "two of a name: %s", err.msg);
    event_init(&e, EVENT_HEARTBEAT);
    event_add_cstr(&e, "text", "\xc3");
    ok(event_compose(&line, &e, &place, &err) < 0, "text that is not UTF-8: %s", err.msg);
    event_init(&e, EVENT_HEARTBEAT);
    event_add_texts(&e, "texts", (str[]){ STR("a"), STR("\xff") }, 2);
    ok(event_compose(&line, &e, &place, &err) < 0, "nor in a list: %s", err.msg);
}

static void test_copy(void)
{
    CLEANUP(event_release) struct event from = { 0 }, to = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 }, again = { 0 };
    const struct event_place place = { .writer = STR(WRITER) };
    struct err err = { 0 };

    event_init(&from, EVENT_HEARTBEAT);
    event_add_text(&from, "mark", STR("a"));
    event_init(&to, EVENT_REPAIR);
    event_add_int(&to, "offset", 7);
    event_copy(&to, &from);
    event_add_int(&from, "late", 1);
    ok(event_compose(&line, &to, &place, &err) == 0 &&
           event_compose(&again, &from, &place, &err) == 0 && again.n > line.n,
       "a copy does not change with what it is a copy of");
    event_add_int(&to, "late", 1);
    buf_reset(&line);
    ok(event_compose(&line, &to, &place, &err) == 0 &&
           str_equal(buf_str(&line), buf_str(&again)),
       "and can be the same again");
}

int main(void)
{
    test_copy();
    test_vectors();
    test_lines();
    test_sessions();
    test_members();
    test_line_limit();
    test_member_limit();
    test_wrong_events();
    return tap_done();
}
