/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/err.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/terminal.h"
#include "evidence/event.h"
#include "evidence/segment.h"

#define FOLLOW_PAUSE 200000000 /* ns between two looks */

/* Which events, and how. */
struct wish {
    const char *session, *type;
    uint64_t from, to; /* seqs; to exclusive */
    bool json, follow;
};

/* Members that tell a person what the event is about, in this order. */
static const char *const telling[] = { "method",  "tool",   "id",         "call",
                                       "verdict", "reason", "policy_ref", "receipt_id",
                                       "lost",    "mark",   "vkey" };

static void add_member(struct buf *line, const struct event_view *v, const char *name)
{
    uint32_t node = json_member(v->json, JSON_ROOT, str_from(name));
    str raw;

    if (node == JSON_NONE)
        return;
    raw = json_is(v->json, node, JSON_STRING) ? event_text(v, name)
                                              : json_raw(v->json, node);
    buf_printf(line, "  %s=", name);
    diag_escape(line, raw);
}

static void print_event(const struct event_view *v)
{
    CLEANUP(buf_release) struct buf line = { .max = 128 << 10 };
    char ts[CLOCK_TEXT];

    clock_format(ts, v->ts);
    buf_printf(&line, "%8" PRIu64 "  %.*s  %s%-22s%s", v->seq, CLOCK_TEXT, ts,
               paint(stdout, PAINT_BOLD), event_type_name(v->type),
               paint(stdout, PAINT_END));
    if (v->session.n)
        buf_printf(&line, "  %.*s#%" PRIu64, (int)v->session.n, v->session.p, v->n);
    for (size_t i = 0; i < COUNT(telling); i++)
        add_member(&line, v, telling[i]);
    puts(buf_cstr(&line));
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

static enum exit_code run(int argc, char **argv)
{
    struct wish w = { .to = UINT64_MAX };
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
    struct operands none = { .max = 0 };
    struct err err = { .code = ERR_NONE };
    char dir[FILE_PATH_MAX];
    enum exit_code code;

    if (!options_parse(&log_show, table, argc, argv, &none, &code))
        return code;
    w.from = from.value;
    w.to = to.given ? to.value : w.to;
    if (w.type && !is_type(w.type)) {
        err_set(&err, ERR_FORMAT, "there is no event type '%s'; docs/log.md lists them",
                w.type);
        return command_fail(&err);
    }
    if (place_find(dir, given, &err) < 0 || show(&w, dir, &err) < 0)
        return command_fail(&err);
    return EXIT_GOOD;
}

const struct command log_show = {
    .name = "log show",
    .usage = "[--session ID] [--type TYPE] [--from SEQ] [--to SEQ] [--follow] [--json]",
    .summary = "print the events, a line each",
    .run = run,
};
