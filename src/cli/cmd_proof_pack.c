/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/entropy.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/progress.h"
#include "evidence/dead.h"
#include "evidence/live.h"
#include "evidence/pack.h"
#include "evidence/receipts.h"
#include "evidence/sessions.h"
#include "json/pretty.h"

/* What is printed at the end. */
struct answer {
    bool json;
    struct buf text;
    struct pretty pretty;
    struct err failed; /* why there are not more */
};

static void answer_begin(struct answer *a, bool json)
{
    *a = (struct answer){ .json = json };
    pretty_init(&a->pretty, &a->text);
    if (json) {
        pretty_object(&a->pretty, NULL);
        pretty_array(&a->pretty, "packs");
    }
}

/* A pack that stands: its path at once, or a member of the JSON at the end. */
static void tell_pack(void *ctx, const struct pack_result *pack)
{
    struct answer *a = ctx;
    struct pretty *p = &a->pretty;

    if (pack->content_lost)
        diag_say("receipts made again from the log: %" PRIu64
                 "; of those with stored content, which is gone: %" PRIu64,
                 pack->rebuilt, pack->content_lost);
    else if (pack->rebuilt)
        diag_say("receipts made again from the log, nothing of them is lost: %" PRIu64,
                 pack->rebuilt);
    if (!a->json) {
        printf("%s\n", pack->path);
        return;
    }
    pretty_object(p, NULL);
    pretty_text(p, "path", pack->path);
    pretty_text(p, "pack_root_sha256", pack->root);
    pretty_bool(p, "existed", pack->existed);
    pretty_u64(p, "receipts", pack->receipts);
    if (!pack->existed) {
        pretty_u64(p, "events", pack->events);
        pretty_u64(p, "rebuilt", pack->rebuilt);
        pretty_u64(p, "content_lost", pack->content_lost);
    }
    pretty_end_object(p);
}

/* Said at once, and part of the JSON at the end. */
static enum exit_code fail(struct answer *a, const struct err *err)
{
    a->failed = *err;
    return command_fail(err);
}

static void answer_end(struct answer *a, const struct dead_result *recovered)
{
    struct pretty *p = &a->pretty;

    if (!a->json)
        return;
    pretty_end_array(p);
    if (recovered) {
        pretty_u64(p, "writers", recovered->writers);
        pretty_u64(p, "sessions", recovered->sessions);
        pretty_u64(p, "calls_lost", recovered->lost);
        pretty_u64(p, "left", recovered->left);
    }
    if (a->failed.code) {
        pretty_text(p, "command", "proof-pack");
        pretty_text(p, "error", a->failed.msg);
        pretty_text(p, "status", "error");
    }
    pretty_end_object(p);
    printf("%s\n", buf_cstr(&a->text));
}

static int open_log(struct log **log, struct keys *keys, const char *dir, struct err *err)
{
    const struct log_options options = place_log_options(dir, keys);

    return keys_open(keys, NULL, err) < 0 ? -1 : log_open(log, &options, err);
}

/* --- one session --- */

static int pack_parts(struct log *log, const struct sessions_entry *e, const char *dir,
                      struct answer *a, struct err *err)
{
    char receipts[LIVE_NAME_MAX];

    if (receipts_find_file(receipts, dir, e->id, err) < 0) {
        char stamp[CLOCK_STAMP];

        /* Gone: the name that it had is as good as any, everything is rebuilt. */
        clock_stamp(stamp, e->started_at);
        snprintf(receipts, sizeof(receipts), "session_%.*s_%.8s.jsonl", CLOCK_STAMP,
                 stamp, e->id + strlen("mcp_"));
    }
    for (const struct sessions_part *p = e->parts; p; p = p->next) {
        const struct pack_request request = {
            .session = e->id, .receipts = receipts, .first = e->first, .cut = p->cut
        };
        struct pack_result pack;

        if (pack_build(log, &request, &pack, err) < 0)
            return -1;
        tell_pack(a, &pack);
    }
    return 0;
}

/* Why there is nothing to pack; NULL when there is. */
static const char *why_not(const struct sessions_entry *e)
{
    if (e->parts)
        return NULL;
    if (!e->ended)
        return "has not ended; if its process is dead, `assay proof-pack --recover` ends it";
    return "has no tool call, and so nothing to pack";
}

static enum exit_code pack_session(const char *dir, const char *id, struct answer *a)
{
    CLEANUP(sessions_release) struct sessions list = { 0 };
    CLEANUP(progress_finish) struct progress bar = { 0 };
    const struct sessions_options options = { id, progress_report, &bar };
    struct err err = { 0 }, closing = { 0 };
    struct log *log;
    struct keys keys;
    int r;

    progress_start(&bar, "reading the log", &clock_system);
    if (sessions_read(&list, dir, &options, &err) < 0)
        return fail(a, &err);
    progress_finish(&bar);
    if (!list.first) {
        err_set(&err, ERR_NOTFOUND, "there is no session '%s' in '%s'", id, dir);
        return fail(a, &err);
    }
    if (why_not(list.first)) {
        err_set(&err, ERR_REFUSED, "session %s %s", id, why_not(list.first));
        fail(a, &err);
        return EXIT_NO;
    }
    if (open_log(&log, &keys, dir, &err) < 0)
        return fail(a, &err);
    r = pack_parts(log, list.first, dir, a, &err);
    if (log_close(log, &closing) < 0 && r == 0)
        return fail(a, &closing);
    return r < 0 ? fail(a, &err) : EXIT_GOOD;
}

/* --- recovery --- */

static void tell_failure(void *ctx, const char *writer, const char *why)
{
    (void)ctx;
    diag_say("cannot finish what %s left: %s", writer, why);
}

static enum exit_code recover(const char *dir, struct answer *a, struct dead_result *done)
{
    const struct dead_options options = { .packed = tell_pack,
                                          .failed = tell_failure,
                                          .ctx = a };
    struct err err = { 0 }, closing = { 0 };
    struct log *log;
    struct keys keys;
    int r;

    if (open_log(&log, &keys, dir, &err) < 0)
        return fail(a, &err);
    r = dead_recover(log, &options, done, &err);
    if (log_close(log, &closing) < 0 && r == 0)
        return fail(a, &closing);
    if (r < 0)
        return fail(a, &err);
    if (!a->json)
        diag_say(
            "%" PRIu64 " dead writer%s; %" PRIu64 " session%s ended for %s, with %" PRIu64
            " call%s that had no answer yet",
            done->writers, plural(done->writers), done->sessions, plural(done->sessions),
            done->writers == 1 ? "it" : "them", done->lost, plural(done->lost));
    return done->left ? EXIT_INTEGRITY : EXIT_GOOD;
}

/* --- the list --- */

struct listing {
    const char *dir;
    struct live_list live;
    size_t dead;
};

static bool is_alive(const struct live_list *live, const char *writer)
{
    for (size_t i = 0; i < live->count; i++) {
        if (strcmp(live->entry[i].writer, writer) == 0)
            return live->entry[i].alive;
    }
    return false;
}

static const char *state_of(struct listing *l, const struct sessions_entry *e)
{
    char packs[FILE_PATH_MAX], path[FILE_PATH_MAX], name[PACK_NAME_MAX];
    struct err ignored;

    if (!e->ended && is_alive(&l->live, e->writer))
        return "open";
    l->dead += !e->ended;
    if (!e->ended)
        return "dead";
    if (!e->parts)
        return "no calls";
    pack_name(name, &e->last->cut);
    if (path_join(packs, l->dir, PACKS_DIR, &ignored) == 0 &&
        path_join(path, packs, name, &ignored) == 0 && access(path, F_OK) == 0)
        return "packed";
    return "not packed";
}

static void print_session(struct listing *l, const struct sessions_entry *e)
{
    CLEANUP(buf_release) struct buf server = { 0 };
    char started[CLOCK_TEXT];

    clock_format(started, e->started_at);
    diag_escape(&server, e->server_id);
    printf("%-20s  %.*s  %8" PRIu64 " %-5s  %-10s  %s\n", e->id, CLOCK_TEXT, started,
           e->calls, e->calls == 1 ? "call" : "calls", state_of(l, e), buf_cstr(&server));
}

static void list_as_json(struct listing *l, const struct sessions *list)
{
    CLEANUP(buf_release) struct buf text = { .max = SESSIONS_MEMORY };
    struct pretty p;
    char started[CLOCK_TEXT];

    pretty_init(&p, &text);
    pretty_object(&p, NULL);
    pretty_array(&p, "sessions");
    for (const struct sessions_entry *e = list->first; e; e = e->next) {
        clock_format(started, e->started_at);
        pretty_object(&p, NULL);
        pretty_text(&p, "session_id", e->id);
        pretty_string(&p, "server_id", e->server_id);
        pretty_string(&p, "started_at", str_of(started, sizeof(started)));
        pretty_u64(&p, "calls", e->calls);
        pretty_u64(&p, "events", e->events);
        pretty_bool(&p, "ended", e->ended);
        pretty_bool(&p, "complete", e->complete);
        pretty_text(&p, "state", state_of(l, e));
        pretty_end_object(&p);
    }
    pretty_end_array(&p);
    pretty_end_object(&p);
    printf("%s\n", buf_cstr(&text));
}

static void list_as_text(struct listing *l, const struct sessions *list)
{
    for (const struct sessions_entry *e = list->first; e; e = e->next)
        print_session(l, e);
    if (!list->first)
        diag_say("the log has no session");
    if (l->dead)
        diag_say(
            "dead: its recorder died; 'assay proof-pack --recover' ends and packs it");
}

static void listing_release(struct listing *l)
{
    live_list_release(&l->live);
}

static enum exit_code list_sessions(const char *dir, bool json)
{
    CLEANUP(listing_release) struct listing l = { .dir = dir };
    CLEANUP(sessions_release) struct sessions list = { 0 };
    CLEANUP(progress_finish) struct progress bar = { 0 };
    const struct sessions_options options = { NULL, progress_report, &bar };
    struct err err = { 0 };

    progress_start(&bar, "reading the log", &clock_system);
    if (sessions_read(&list, dir, &options, &err) < 0 ||
        live_list(&l.live, dir, &err) < 0)
        return command_fail_as(&cmd_proof_pack, json, &err);
    progress_finish(&bar);
    if (json)
        list_as_json(&l, &list);
    else
        list_as_text(&l, &list);
    return EXIT_GOOD;
}

static enum exit_code run(int argc, char **argv)
{
    const char *given = NULL;
    bool json = false, all_dead = false;
    struct operands session = { .min = 0, .max = 1 };
    const struct option table[] = {
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { "recover", NULL, "end and pack the sessions of processes that died",
          .flag = &all_dead },
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    char dir[FILE_PATH_MAX];
    struct dead_result done = { 0 };
    struct answer a;
    enum exit_code code;
    struct err err = { 0 };

    if (!options_parse(&cmd_proof_pack, table, argc, argv, &session, &code))
        return code;
    if (all_dead && session.count) {
        err_set(&err, ERR_FORMAT,
                "--recover takes no session: it ends all that are dead");
        return command_fail_as(&cmd_proof_pack, json, &err);
    }
    if (place_find(dir, given, &err) < 0)
        return command_fail_as(&cmd_proof_pack, json, &err);
    if (!all_dead && !session.count)
        return list_sessions(dir, json);
    answer_begin(&a, json);
    code = all_dead ? recover(dir, &a, &done) : pack_session(dir, session.at[0], &a);
    answer_end(&a, all_dead ? &done : NULL);
    buf_release(&a.text);
    return code;
}

const struct command cmd_proof_pack = {
    .name = "proof-pack",
    .usage = "[SESSION] [--recover] [--audit-dir DIR] [--json]",
    .summary = "pack a finished session, or list the sessions of a log",
    .run = run,
};
