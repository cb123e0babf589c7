/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/dead.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/live.h"
#include "evidence/segment.h"
#include "evidence/session.h"
#include "evidence/staging.h"

/* A session that was open, as far as the log tells. */
struct orphan {
    const struct live_session *entry;
    struct history history;
    struct session_cut *cuts; /* parts that were cut */
    size_t count, cap;
};

/* One dead writer being finished. */
struct finish {
    struct log *log;
    const struct dead_options *options;
    struct dead_result *result;
    struct live_dead dead;
    struct orphan *orphans; /* as many as dead.count */
    struct map by_id;
    char version[64]; /* of its chain_start; "": not seen */
    bool chain_ended; /* somebody wrote chain_end{for} */
};

static void finish_release(struct finish *f)
{
    for (size_t i = 0; f->orphans && i < f->dead.count; i++) {
        history_release(&f->orphans[i].history);
        free(f->orphans[i].cuts);
    }
    free(f->orphans);
    map_release(&f->by_id);
    live_dead_release(&f->dead);
}

/* --- reading --- */

static int add_cut(struct orphan *o, const struct session_cut *cut, struct err *err)
{
    if (o->count == DEAD_CUTS_MAX)
        return err_set(err, ERR_LIMIT, "a session has more than %d parts", DEAD_CUTS_MAX);
    if (o->count == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 8;
        struct session_cut *cuts = realloc(o->cuts, cap * sizeof(*cuts));

        if (!cuts)
            return err_set(err, ERR_NOMEM, "no memory for the parts of a session");
        o->cuts = cuts;
        o->cap = cap;
    }
    o->cuts[o->count++] = *cut;
    return 0;
}

static int take_session_event(struct finish *f, const struct event_view *v,
                              struct err *err)
{
    struct orphan *o;
    struct session_cut cut;
    uint64_t key;

    if (!id_number(&key, v->session) || !(o = map_get(&f->by_id, key)))
        return 0;
    cut = (struct session_cut){ .from = o->history.part_from,
                                .to = v->seq + 1,
                                .part = o->history.part };
    if (history_fold(&o->history, v, err) < 0)
        return -1;
    if (v->type != EVENT_RECEIPT || event_text(v, "call").n)
        return 0;
    cut.final = o->history.closed;
    cut.metadata_ts = v->ts;
    memcpy(cut.metadata_id, o->history.metadata_id, sizeof(cut.metadata_id));
    return add_cut(o, &cut, err);
}

static void take_chain_event(struct finish *f, const struct event_view *v)
{
    str version = event_text(v, "version");

    if (v->type == EVENT_CHAIN_START && str_is(v->writer, f->dead.writer))
        snprintf(f->version, sizeof(f->version), STR_FMT,
                 STR_ARG(str_first(version, sizeof(f->version) - 1)));
    if (v->type == EVENT_CHAIN_END && str_is(event_text(v, "for"), f->dead.writer))
        f->chain_ended = true;
}

static int read_log(struct finish *f, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader reader = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    char path[FILE_PATH_MAX];
    enum segment_step step;
    str line;

    if (path_join(path, log_dir(f->log), "log", err) < 0 ||
        segment_open_seq(&reader, path, f->dead.from, err) < 0)
        return -1;
    for (;;) {
        struct event_view v;

        if (segment_next(&reader, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return 0; /* a tail is another writer's business, or under way */
        if (event_parse(&v, &json, line, err) < 0) {
            err->code = ERR_DAMAGE;
            return err_wrap(err, "event %" PRIu64, reader.next.seq - 1);
        }
        take_chain_event(f, &v);
        if (v.session.n && take_session_event(f, &v, err) < 0)
            return -1;
    }
}

static int list_orphans(struct finish *f, struct err *err)
{
    f->orphans = calloc(f->dead.count + 1, sizeof(*f->orphans));
    if (!f->orphans)
        return err_set(err, ERR_NOMEM, "no memory for %zu sessions", f->dead.count);
    for (size_t i = 0; i < f->dead.count; i++) {
        struct orphan *o = &f->orphans[i];
        uint64_t key;

        o->entry = &f->dead.session[i];
        memcpy(o->history.id, o->entry->id, sizeof(o->history.id));
        if (id_number(&key, str_from(o->entry->id)) &&
            map_put(&f->by_id, key, o, err) < 0)
            return -1;
    }
    return 0;
}

/* --- writing --- */

static int pack_cut(struct finish *f, const struct orphan *o,
                    const struct session_cut *cut, uint64_t first,
                    char root[static 2 * DIGEST_SIZE + 1], struct err *err)
{
    const struct pack_request request = { .session = o->entry->id,
                                          .receipts = o->entry->receipts,
                                          .first = first,
                                          .cut = *cut,
                                          .restore = true,
                                          .version = f->version[0] ? f->version : NULL };
    struct pack_result pack;

    if (pack_build(f->log, &request, &pack, err) < 0)
        return -1;
    memcpy(root, pack.root, sizeof(pack.root));
    f->result->packs += !pack.existed;
    if (f->options->packed)
        f->options->packed(f->options->ctx, &pack);
    return 0;
}

/* Calls, session_end, metadata: whatever is still missing. */
static int close_session(struct finish *f, struct orphan *o, const char *previous_root,
                         struct err *err)
{
    const struct session_ending ending = { .reason = "recorder_lost",
                                           .open_calls = "recorder_lost",
                                           .previous_root = previous_root };
    uint64_t lost = o->history.counts.lost;
    struct session *s = NULL;
    struct session_cut cut;
    bool packable = false;
    int r;

    if (history_set_version(&o->history, str_from(f->version[0] ? f->version : "unknown"),
                            err) < 0 ||
        session_resume(&s, f->log, &o->history, o->entry->receipts, err) < 0)
        return -1;
    r = session_end(s, &ending, &cut, &packable, err);
    if (r == 0)
        f->result->lost += session_history(s)->counts.lost - lost;
    session_free(s);
    return r == 0 && packable ? add_cut(o, &cut, err) : r;
}

/* Earlier parts first: the last one names the pack before it. */
static int finish_session(struct finish *f, struct orphan *o, struct err *err)
{
    char root[2 * DIGEST_SIZE + 1] = "";
    uint64_t first = o->history.first;
    bool packs = !f->options->no_packs;
    size_t packed = 0;

    if (!o->history.started)
        return 0; /* it died before session_start was written */
    for (; packs && packed < o->count; packed++) {
        if (pack_cut(f, o, &o->cuts[packed], first, root, err) < 0)
            return -1;
    }
    if (!o->history.closed) {
        if (close_session(f, o, root[0] ? root : NULL, err) < 0)
            return -1;
        f->result->sessions++;
    }
    for (; packs && packed < o->count; packed++) {
        if (pack_cut(f, o, &o->cuts[packed], first, root, err) < 0)
            return -1;
    }
    return 0;
}

static int end_chain(struct finish *f, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };
    uint64_t upto;

    if (f->chain_ended)
        return 0;
    event_init(&e, EVENT_CHAIN_END);
    event_add_cstr(&e, "for", f->dead.writer);
    if (log_append(f->log, events, 1, &upto, err) < 0)
        return -1;
    return log_sync(f->log, upto, err);
}

/* One that cannot be finished keeps nobody else from it, but the writer from being
 * buried: it is tried again. Fails for the first reason. */
static int finish_sessions(struct finish *f, struct err *err)
{
    struct err why;
    int result = 0;

    for (size_t i = 0; i < f->dead.count; i++) {
        if (finish_session(f, &f->orphans[i], &why) == 0)
            continue;
        if (result == 0)
            *err = why;
        result = -1;
    }
    return result;
}

static int finish_writer(struct finish *f, struct err *err)
{
    if (list_orphans(f, err) < 0 || read_log(f, err) < 0 || finish_sessions(f, err) < 0)
        return -1;
    if (end_chain(f, err) < 0 || live_bury(&f->dead, err) < 0)
        return -1;
    f->result->writers++;
    return 0;
}

static int take_writer(struct log *log, const struct dead_options *options,
                       const char *writer, struct dead_result *result, struct err *err)
{
    CLEANUP(finish_release)
    struct finish f = { .log = log, .options = options, .result = result };
    bool taken = false;
    struct err why = { 0 };

    f.dead.fd = -1;
    if (live_take(&f.dead, &taken, log_dir(log), writer, err) < 0)
        return -1;
    if (!taken || finish_writer(&f, &why) == 0)
        return 0;
    result->left++;
    if (options->failed)
        options->failed(options->ctx, writer, why.msg);
    return 0;
}

int dead_recover(struct log *log, const struct dead_options *options,
                 struct dead_result *result, struct err *err)
{
    CLEANUP(live_list_release) struct live_list list = { 0 };
    struct dead_result done = { 0 };
    char packs[FILE_PATH_MAX];

    if (live_list(&list, log_dir(log), err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        if (!list.entry[i].alive &&
            take_writer(log, options, list.entry[i].writer, &done, err) < 0)
            return -1;
    }
    if (path_join(packs, log_dir(log), PACKS_DIR, err) < 0)
        return -1;
    staging_sweep(packs);
    *result = done;
    return 0;
}
