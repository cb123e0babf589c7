/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packparts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "evidence/receipts.h"
#include "evidence/segment.h"
#include "evidence/tile.h"
#include "evidence/verify.h"

/* The walk over the log while events and receipts are written. */
struct walk {
    struct parts *parts;
    const struct pack_request *request;
    const char *log_dir;
    struct receipts_index index;
    struct segment_reader reader;
    struct json json;
    struct stream events, receipts;
    struct receipt_line line;
    struct buf needle; /* "session":"mcp_…" : what no event of ours lacks */
};

static void walk_release(struct walk *w)
{
    receipts_index_release(&w->index);
    segment_close(&w->reader);
    json_release(&w->json);
    stream_release(&w->events);
    stream_release(&w->receipts);
    receipt_line_release(&w->line);
    buf_release(&w->needle);
}

void parts_release(struct parts *p)
{
    history_release(&p->history);
    free(p->seqs);
    free(p->leaves);
    *p = (struct parts){ 0 };
}

/* --- events --- */

static int grow(struct parts *p, struct err *err)
{
    size_t cap = p->cap ? p->cap * 2 : 256;
    uint64_t *seqs;
    struct digest *leaves;

    if (p->count >= PACK_EVENTS_MAX)
        return err_set(err, ERR_LIMIT, "a pack holds at most %d events", PACK_EVENTS_MAX);
    seqs = realloc(p->seqs, cap * sizeof(*seqs));
    p->seqs = seqs ? seqs : p->seqs;
    leaves = realloc(p->leaves, cap * sizeof(*leaves));
    p->leaves = leaves ? leaves : p->leaves;
    if (!seqs || !leaves)
        return err_set(err, ERR_NOMEM, "no memory for %zu events", cap);
    p->cap = cap;
    return 0;
}

static int add_event(struct walk *w, const struct event_view *v, str line,
                     struct err *err)
{
    struct parts *p = w->parts;

    if (p->count == p->cap && grow(p, err) < 0)
        return -1;
    p->seqs[p->count] = v->seq;
    p->leaves[p->count] = tree_leaf(line);
    p->count++;
    stream_add(&w->events, line);
    stream_add(&w->events, STR("\n"));
    return 0;
}

/* --- receipts --- */

/* Which program a writer was: its chain_start is before its sessions. */
static int find_version(struct walk *w, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader reader = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    struct history *h = &w->parts->history;
    enum segment_step step = SEGMENT_LINE;
    struct err ignored;
    str line;

    if (segment_open_seq(&reader, w->log_dir, 0, err) < 0)
        return -1;
    for (;;) {
        struct event_view v;

        if (segment_next(&reader, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE || event_parse(&v, &json, line, &ignored) < 0 ||
            v.seq >= h->first)
            return history_set_version(h, STR("unknown"), err);
        if (v.type == EVENT_CHAIN_START && str_is(v.writer, h->writer))
            return history_set_version(h, event_text(&v, "version"), err);
    }
}

static int compose_call(struct walk *w, const struct event_view *v, bool rebuilt,
                        struct err *err)
{
    const struct history *h = &w->parts->history;
    const struct open_call *c = history_call(h, event_text(v, "call"));
    const struct receipt_place place = {
        .session = &h->session,
        .receipt_id = event_text(v, "receipt_id"),
        .parent = event_text(v, "parent"),
        .ts = v->ts,
        .seq = h->counts.receipts,
    };
    struct receipt r;

    if (!c)
        return err_set(
            err, ERR_DAMAGE,
            "event %" PRIu64 " is the receipt of a call that is not in the log", v->seq);
    receipt_of_call(&r, &c->call, &place);
    r.rebuilt = rebuilt;
    return receipt_compose(&w->line, &r, err);
}

static int compose_metadata(struct walk *w, const struct event_view *v, bool rebuilt,
                            struct err *err)
{
    char id[ID_MAX];
    str text = event_text(v, "receipt_id");
    struct metadata m;

    snprintf(id, sizeof(id), STR_FMT, STR_ARG(str_first(text, sizeof(id) - 1)));
    m = history_metadata(&w->parts->history, id, v->seq, v->ts);
    m.rebuilt = rebuilt;
    return metadata_compose(&w->line, &m, err);
}

/* The line is gone; the events have all but its content. When the line that follows from
 * them has the hash that the event states, nothing was lost. Otherwise it says so. */
static int rebuild(struct walk *w, const struct event_view *v, const struct digest *want,
                   struct err *err)
{
    bool of_call = event_text(v, "call").n > 0;
    bool lost = false;

    if (!w->parts->history.session.proxy_version.p && find_version(w, err) < 0)
        return -1;
    for (int again = 0; again < 2; again++) {
        if ((of_call ? compose_call(w, v, lost, err)
                     : compose_metadata(w, v, lost, err)) < 0)
            return -1;
        if (digest_equal(&w->line.hash, want))
            break;
        lost = true;
    }
    w->parts->rebuilt++;
    w->parts->content_lost += lost;
    return 0;
}

static int add_receipt(struct walk *w, const struct event_view *v, struct err *err)
{
    struct parts *p = w->parts;
    str tagged = event_text(v, "sha256");
    struct digest want;
    str line;

    if (!str_starts(tagged, STR("sha256:")) ||
        !digest_from_hex(&want, str_skip(tagged, 7)))
        return err_set(err, ERR_DAMAGE, "event %" PRIu64 " has no hash of its receipt",
                       v->seq);
    line = receipts_find(&w->index, event_text(v, "receipt_id"), &want);
    p->head = want;
    if (!line.p) {
        if (rebuild(w, v, &want, err) < 0)
            return -1;
        line = w->line.line;
        p->head = w->line.hash;
    }
    stream_add(&w->receipts, line);
    stream_add(&w->receipts, STR("\n"));
    p->start = p->receipts == 0 || v->ts < p->start ? v->ts : p->start;
    p->end = p->receipts == 0 || v->ts > p->end ? v->ts : p->end;
    p->receipts++;
    return 0;
}

/* --- the walk --- */

/* One event of the session. Receipts are made from what stands before their event. */
static int take_event(struct walk *w, const struct event_view *v, str line,
                      struct err *err)
{
    bool inside = v->seq >= w->request->cut.from;

    if (inside && add_event(w, v, line, err) < 0)
        return -1;
    if (inside && v->type == EVENT_RECEIPT && add_receipt(w, v, err) < 0)
        return -1;
    return history_fold(&w->parts->history, v, err);
}

static int take_line(struct walk *w, str line, struct err *err)
{
    struct event_view v;

    if (!memmem(line.p, line.n, w->needle.p, w->needle.n))
        return 0;
    if (event_parse(&v, &w->json, line, err) < 0) {
        err->code = ERR_DAMAGE;
        return err_wrap(err, "event %" PRIu64, w->reader.next.seq - 1);
    }
    if (!str_is(v.session, w->request->session))
        return 0;
    return take_event(w, &v, line, err);
}

static int walk_log(struct walk *w, struct err *err)
{
    enum segment_step step;
    str line;

    if (segment_open_seq(&w->reader, w->log_dir, w->request->first, err) < 0)
        return -1;
    while (w->reader.next.seq < w->request->cut.to) {
        if (segment_next(&w->reader, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return err_set(err, ERR_DAMAGE, "the log ends before event %" PRIu64,
                           w->request->cut.to - 1);
        if (take_line(w, line, err) < 0)
            return -1;
    }
    return 0;
}

static int check_walk(const struct walk *w, struct err *err)
{
    const struct parts *p = w->parts;

    if (p->count == 0 || p->seqs[p->count - 1] != w->request->cut.to - 1 ||
        strcmp(p->history.metadata_id, w->request->cut.metadata_id) != 0)
        return err_set(err, ERR_DAMAGE,
                       "session %s has no session_metadata at event %" PRIu64,
                       w->request->session, w->request->cut.to - 1);
    return 0;
}

int parts_collect(struct parts *p, const char *audit_dir,
                  const struct pack_request *request, struct staging *staging,
                  struct err *err)
{
    CLEANUP(walk_release) struct walk w = { .parts = p, .request = request };
    char log_dir_path[FILE_PATH_MAX];

    w.log_dir = log_dir_path;
    buf_printf(&w.needle, "\"session\":\"%s\"", request->session);
    if (buf_check(&w.needle, "an id", err) < 0 ||
        path_join(log_dir_path, audit_dir, "log", err) < 0 ||
        receipts_index_read(&w.index, audit_dir, request->receipts, err) < 0 ||
        stream_open(&w.receipts, staging, RECEIPT_PACK_NAME, err) < 0 ||
        stream_open(&w.events, staging, LOG_EVENTS_NAME, err) < 0 ||
        walk_log(&w, err) < 0 || check_walk(&w, err) < 0 ||
        stream_finish(&w.receipts, err) < 0)
        return -1;
    return stream_finish(&w.events, err);
}

/* --- the proof --- */

static int write_proof(struct staging *staging, uint64_t size, str hashes,
                       struct err *err)
{
    CLEANUP(stream_release) struct stream f = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 };

    if (stream_open(&f, staging, LOG_PROOF_NAME, err) < 0)
        return -1;
    buf_printf(&text, "{\"size\":%" PRIu64 ",\"hashes\":[", size);
    for (size_t at = 0; at < hashes.n; at += DIGEST_SIZE) {
        buf_add(&text, at ? STR(",\"") : STR("\""));
        base64_add(&text, hashes.p + at, DIGEST_SIZE);
        buf_add_char(&text, '"');
        stream_add(&f, buf_str(&text));
        buf_reset(&text);
    }
    buf_add(&text, STR("]}\n"));
    stream_add(&f, buf_str(&text));
    return stream_finish(&f, err);
}

int parts_prove(const struct parts *p, const char *audit_dir,
                const struct checkpoint *checkpoint, str note, struct staging *staging,
                struct err *err)
{
    CLEANUP(tile_reader_release) struct tile_reader tiles = { 0 };
    CLEANUP(buf_release) struct buf hashes = { .max = PACK_PROOF_MAX };
    const struct leaf_set set = { p->seqs, p->leaves, p->count };
    struct hashes source;
    char dir[FILE_PATH_MAX];

    if (path_join(dir, audit_dir, "log/tile", err) < 0)
        return -1;
    tile_reader_init(&tiles, dir, checkpoint->size);
    source = tile_reader_hashes(&tiles);
    if (tree_prove_set(&source, &set, checkpoint->size, &hashes, err) < 0 ||
        buf_check(&hashes, "the proof", err) < 0)
        return -1;
    if (!tree_set_holds(&set, checkpoint->size, buf_str(&hashes), &checkpoint->root))
        return err_set(err, ERR_DAMAGE,
                       "the tiles of the log do not lead to its checkpoint; "
                       "`assay log rebuild` makes them anew");
    if (staging_add(staging, LOG_CHECKPOINT_NAME, note, err) < 0)
        return -1;
    return write_proof(staging, checkpoint->size, buf_str(&hashes), err);
}
