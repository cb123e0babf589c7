/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/diag.h"
#include "base/err.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/terminal.h"
#include "evidence/event.h"
#include "evidence/segment.h"

#define FOLLOW_PAUSE  200000000 /* ns between two looks */
#define LINE_TEXT_MAX ((size_t)1 << 20)

/* Which events, and how. */
struct wish {
    const char *session, *type;
    uint64_t from, to; /* seqs; to exclusive */
    bool json, follow;
    uint64_t *shown; /* how many were printed */
};

/* Members that tell a person what the event is about, in this order. */
static const char *const telling[] = {
    "method",  "tool",       "id",          "call",      "verdict",
    "reason",  "policy_ref", "receipt_id",  "server_id", "transport",
    "profile", "ok",         "policy_hash", "names",     "from",
    "to",      "lost",       "mark",        "vkey"
};

/* JSON text has escapes of its own: only what it leaves as it is needs ours. */
static void add_json_text(struct buf *line, str text)
{
    for (;;) {
        const char *slash = text.n ? memchr(text.p, '\\', text.n) : NULL;

        if (!slash)
            break;
        diag_escape(line, str_first(text, (size_t)(slash - text.p)));
        buf_add_char(line, '\\');
        text = str_skip(text, (size_t)(slash - text.p) + 1);
    }
    diag_escape(line, text);
}

/* Kept in the log as the JSON source that they were: see docs/log.md. */
static bool is_source(const char *name)
{
    return strcmp(name, "method") == 0 || strcmp(name, "tool") == 0 ||
           strcmp(name, "id") == 0;
}

/* Texts are shown decoded and escaped once. */
static void add_member(struct buf *line, const struct event_view *v, const char *name)
{
    CLEANUP(buf_release) struct buf text = { .max = LINE_TEXT_MAX };
    uint32_t node = json_member(v->json, JSON_ROOT, str_from(name));

    if (node == JSON_NONE)
        return;
    buf_printf(line, "  %s=", name);
    if (!json_is(v->json, node, JSON_STRING)) {
        add_json_text(line, json_raw(v->json, node));
        return;
    }
    json_unescape(v->json, node, &text);
    if (is_source(name))
        add_json_text(line, buf_str(&text));
    else
        diag_escape(line, buf_str(&text));
}

#define TYPE_WIDTH 22

static void print_event(const struct event_view *v)
{
    CLEANUP(buf_release) struct buf rest = { .max = LINE_TEXT_MAX };
    const char *type = event_type_name(v->type);
    int pad = TYPE_WIDTH - (int)strlen(type);
    char ts[CLOCK_TEXT];

    if (v->session.n)
        buf_printf(&rest, "  %.*s#%" PRIu64, (int)v->session.n, v->session.p, v->n);
    for (size_t i = 0; i < COUNT(telling); i++)
        add_member(&rest, v, telling[i]);
    clock_format(ts, v->ts);
    printf("%" PRIu64 "  %.*s  %s%s%s%*s%s\n", v->seq, CLOCK_TEXT, ts,
           paint(stdout, PAINT_BOLD), type, paint(stdout, PAINT_END),
           rest.n && pad > 0 ? pad : 0, "", buf_cstr(&rest));
}

static bool is_wanted(const struct wish *w, const struct event_view *v)
{
    if (w->session && !str_is(v->session, w->session))
        return false;
    return !w->type || strcmp(event_type_name(v->type), w->type) == 0;
}

static int show_line(const struct wish *w, struct json *json, str line, uint64_t seq,
                     struct err *err)
{
    struct event_view v;

    if (event_parse(&v, json, line, err) < 0) {
        err_wrap(err, "event %" PRIu64 ": the line", seq);
        err->code = ERR_DAMAGE;
        return -1;
    }
    if (!is_wanted(w, &v))
        return 0;
    (*w->shown)++;
    if (w->json) {
        fwrite(line.p, 1, line.n, stdout);
        putchar('\n');
    } else {
        print_event(&v);
    }
    return 0;
}

/* Everything that is there from `*place` on; afterwards *place is where it ended. */
static int show_rest(const struct wish *w, const char *log_dir,
                     struct segment_place *place, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    enum segment_step step = SEGMENT_LINE;
    str line;

    if (segment_open_at(&r, log_dir, *place, err) < 0)
        return -1;
    while (r.next.seq < w->to) {
        if (segment_next(&r, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            break;
        if (show_line(w, &json, line, r.next.seq - 1, err) < 0)
            return -1;
    }
    if (r.list.count)
        *place = r.next;
    if (step == SEGMENT_TAIL && !w->follow)
        diag_say("the log ends in bytes that are no event; the next writer keeps them in "
                 "torn/");
    return 0;
}

static int find_start(const char *log_dir, uint64_t seq, struct segment_place *place,
                      struct err *err)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };

    if (segment_open_seq(&r, log_dir, seq, err) < 0)
        return -1;
    *place = r.next;
    return 0;
}

static int show(const struct wish *w, const char *dir, struct err *err)
{
    const struct timespec pause = { 0, FOLLOW_PAUSE };
    struct segment_place place;
    char log_dir[FILE_PATH_MAX];

    if (path_join(log_dir, dir, "log", err) < 0 ||
        find_start(log_dir, w->from, &place, err) < 0 ||
        show_rest(w, log_dir, &place, err) < 0)
        return -1;
    while (w->follow && place.seq < w->to && fflush(stdout) == 0) {
        nanosleep(&pause, NULL);
        if (show_rest(w, log_dir, &place, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_type(const char *name)
{
    for (int i = 0; i < EVENT_TYPE_COUNT; i++) {
        if (strcmp(name, event_type_name((enum event_type)i)) == 0)
            return true;
    }
    return false;
}

/* "mcp_" and 16 hex digits */
static bool is_session(const char *id)
{
    uint8_t bytes[8];

    return str_starts(str_from(id), STR("mcp_")) &&
           hex_decode(bytes, sizeof(bytes), str_skip(str_from(id), 4));
}

static int check_wish(const struct wish *w, struct err *err)
{
    if (w->type && !is_type(w->type))
        return err_set(err, ERR_FORMAT,
                       "there is no event type '%s'; docs/log.md lists them", w->type);
    if (w->session && !is_session(w->session))
        return err_set(
            err, ERR_FORMAT,
            "'%s' is not a session: mcp_ and 16 hex digits; `assay proof-pack` "
            "lists them",
            w->session);
    return 0;
}

static enum exit_code run(int argc, char **argv)
{
    uint64_t shown = 0;
    struct wish w = { .to = UINT64_MAX, .shown = &shown };
    struct option_number from = { 0 }, to = { 0 };
    const char *given = NULL;
    const struct option table[] = {
        { "session", "ID", "only events of this session", .text = &w.session },
        { "type", "TYPE", "only events of this type", .text = &w.type },
        { "from", "SEQ", "begin with this event", .number = &from },
        { "to", "SEQ", "end before this event", .number = &to },
        { "follow", NULL, "go on as events come, until interrupted", .flag = &w.follow },
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { "json", NULL, "print the lines as they stand in the log", .flag = &w.json },
        { 0 },
    };
    struct operands place = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    char dir[FILE_PATH_MAX];
    enum exit_code code;

    if (!options_parse(&log_show, table, argc, argv, &place, &code))
        return code;
    w.from = from.value;
    w.to = to.given ? to.value : w.to;
    if (check_wish(&w, &err) < 0 || place_choose(dir, &place, given, &err) < 0 ||
        show(&w, dir, &err) < 0)
        return command_fail_as(&log_show, w.json, &err);
    if (w.session && !shown)
        diag_say("no event of session %s is among these", w.session);
    return EXIT_GOOD;
}

const struct command log_show = {
    .name = "log show",
    .usage =
        "[--session ID] [--type TYPE] [--from SEQ] [--to SEQ] [--follow] [--json] [DIR]",
    .summary = "print the events, a line each",
    .run = run,
};
