/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packparts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "evidence/receipts.h"
#include "evidence/segment.h"
#include "evidence/tile.h"
#include "evidence/verify.h"

/* One session's part of the walk over the log, while its events and receipts are written.
 */
struct walk {
    struct collection *c;
    struct parts *parts;
    struct segment_place start; /* as far as it is known */
    uint64_t from;              /* the first event that it reads */
    const struct pack_request *request;
    const char *audit_dir, *log_dir;
    struct receipts_index index;
    struct receipts file; /* of the same, where it lacks lines */
    struct json *json;    /* of the line at hand */
    const struct segment_reader *reader;
    struct stream events, receipts;
    struct receipt_line line;
    struct buf needle; /* "session":"mcp_…" : what no event of ours lacks */
};

/* One reading of the log for all of them. */
struct tour {
    char log_dir[FILE_PATH_MAX];
    struct segment_reader reader;
    struct json json;
    struct walk *walks;
    size_t count;
    str needle; /* what those of all begin with; empty: there is nobody */
    struct segment_place start;
    uint64_t from, to; /* the range that all of them are in */
};

static void walk_release(struct walk *w)
{
    receipts_index_release(&w->index);
    if (w->file.name[0])
        receipts_close(&w->file);
    stream_release(&w->events);
    stream_release(&w->receipts);
    receipt_line_release(&w->line);
    buf_release(&w->needle);
}

static void tour_release(struct tour *t)
{
    segment_close(&t->reader);
    json_release(&t->json);
    for (size_t i = 0; t->walks && i < t->count; i++)
        walk_release(&t->walks[i]);
    free(t->walks);
}

void parts_release(struct parts *p)
{
    history_release(&p->own);
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
    struct history *h = w->parts->history;
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

static int know_version(struct walk *w, struct err *err)
{
    const char *known = w->request->version;

    return known ? history_set_version(w->parts->history, str_from(known), err)
                 : find_version(w, err);
}

static int compose_call(struct walk *w, const struct event_view *v, bool rebuilt,
                        struct err *err)
{
    const struct history *h = w->parts->history;
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
    m = history_metadata(w->parts->history, id, v->seq, v->ts);
    m.rebuilt = rebuilt;
    return metadata_compose(&w->line, &m, err);
}

/* The dead wrote it behind its event, or would have. */
static int restore(struct walk *w, struct err *err)
{
    const struct pack_request *r = w->request;

    if (!r->restore)
        return 0;
    if (!w->file.name[0] && receipts_init(&w->file, w->audit_dir, r->receipts, err) < 0)
        return -1;
    if (receipts_open(&w->file, false, err) < 0)
        return -1;
    return receipts_append(&w->file, w->line.line, false, err);
}

/* The line is gone; the events have all but its content. When the line that follows from
 * them has the hash that the event states, nothing was lost. Otherwise it says so. */
static int rebuild(struct walk *w, const struct event_view *v, const struct digest *want,
                   struct err *err)
{
    bool of_call = event_text(v, "call").n > 0;
    bool lost = false;

    if (!w->parts->history->session.proxy_version.p && know_version(w, err) < 0)
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
    return lost ? 0 : restore(w, err);
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
    return history_fold(w->parts->history, v, err);
}

static bool awaits(const struct walk *w, uint64_t seq)
{
    return w->c->result == 0 && seq >= w->from && seq < w->request->cut.to;
}

/* A line that has the session's id. Returns whether it is the session's. */
static bool take_line(struct walk *w, str line, uint64_t seq)
{
    struct err *err = &w->c->err;
    struct event_view v;

    if (event_parse(&v, w->json, line, err) < 0) {
        err->code = ERR_DAMAGE;
        w->c->result = err_wrap(err, "event %" PRIu64, seq);
        return false;
    }
    if (!str_is(v.session, w->request->session))
        return false;
    w->c->result = take_event(w, &v, line, err);
    w->parts->next = w->reader->next;
    return true;
}

/* `text` begins with somebody's id. Returns whether the line is theirs. */
static bool offer_to_all(const struct tour *t, str text, str line, uint64_t seq)
{
    bool taken = false;

    for (size_t i = 0; i < t->count; i++) {
        struct walk *w = &t->walks[i];

        if (awaits(w, seq) && str_starts(text, buf_str(&w->needle)))
            taken = take_line(w, line, seq) || taken;
    }
    return taken;
}

/* An id may also stand where it does not say whose event it is. */
static void offer_line(const struct tour *t, str line, uint64_t seq)
{
    const char *at;

    for (str rest = line; (at = memmem(rest.p, rest.n, t->needle.p, t->needle.n));
         rest = str_skip(rest, 1)) {
        rest = str_skip(rest, (size_t)(at - rest.p));
        if (offer_to_all(t, rest, line, seq))
            return;
    }
}

static int walk_log(struct tour *t, struct err *err)
{
    enum segment_step step;
    str line;

    if (segment_open_near(&t->reader, t->log_dir, t->start, t->from, err) < 0)
        return -1;
    while (t->reader.next.seq < t->to) {
        if (segment_next(&t->reader, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return err_set(err, ERR_DAMAGE, "the log ends before event %" PRIu64,
                           t->to - 1);
        offer_line(t, line, t->reader.next.seq - 1);
    }
    return 0;
}

static int check_walk(const struct walk *w, struct err *err)
{
    const struct parts *p = w->parts;

    if (p->count == 0 || p->seqs[p->count - 1] != w->request->cut.to - 1 ||
        strcmp(p->history->metadata_id, w->request->cut.metadata_id) != 0)
        return err_set(err, ERR_DAMAGE,
                       "session %s has no session_metadata at event %" PRIu64,
                       w->request->session, w->request->cut.to - 1);
    return 0;
}

bool parts_have_past(const struct pack_request *r)
{
    return r->past && r->past->place.seq && r->past->place.seq == r->cut.from;
}

/* A past is used up: without success it is not to be used again. */
static void begin_history(struct walk *w)
{
    const struct pack_request *r = w->request;

    w->parts->history = r->past ? &r->past->history : &w->parts->own;
    w->from = r->first;
    if (parts_have_past(r)) {
        w->start = r->past->place;
        w->from = r->past->place.seq;
        r->past->place = (struct segment_place){ 0 };
    } else if (r->past) {
        pack_past_release(r->past);
    }
}

static int begin_walk(struct walk *w, const char *audit_dir, struct err *err)
{
    begin_history(w);
    buf_printf(&w->needle, "\"session\":\"%s\"", w->request->session);
    if (buf_check(&w->needle, "an id", err) < 0 ||
        receipts_index_read(&w->index, audit_dir, w->request->receipts, err) < 0 ||
        stream_open(&w->receipts, w->c->staging, RECEIPT_PACK_NAME, err) < 0)
        return -1;
    return stream_open(&w->events, w->c->staging, LOG_EVENTS_NAME, err);
}

static int end_walk(struct walk *w, struct err *err)
{
    if (check_walk(w, err) < 0 || stream_finish(&w->receipts, err) < 0)
        return -1;
    return stream_finish(&w->events, err);
}

/* The more there are, the less their ids have in common. */
static void share_needle(struct tour *t, str needle)
{
    size_t same = 0;

    if (!t->needle.n)
        t->needle = needle;
    while (same < t->needle.n && same < needle.n && t->needle.p[same] == needle.p[same])
        same++;
    t->needle.n = same;
}

static void join(struct tour *t, struct collection *c, const char *audit_dir)
{
    const struct pack_request *request = c->request;
    struct walk *w = &t->walks[t->count];
    bool first = t->needle.n == 0;

    *w = (struct walk){ .c = c,
                        .parts = &c->parts,
                        .request = request,
                        .audit_dir = audit_dir,
                        .log_dir = t->log_dir,
                        .reader = &t->reader,
                        .json = &t->json };
    t->count++;
    c->result = begin_walk(w, audit_dir, &c->err);
    if (c->result < 0)
        return;
    share_needle(t, buf_str(&w->needle));
    if (first || w->from < t->from) {
        t->start = w->start;
        t->from = w->from;
    }
    t->to = first || request->cut.to > t->to ? request->cut.to : t->to;
}

int parts_collect(struct collection *const *list, size_t count, const char *audit_dir,
                  struct err *err)
{
    CLEANUP(tour_release) struct tour t = { .walks = calloc(count, sizeof(*t.walks)) };

    if (!t.walks)
        return err_set(err, ERR_NOMEM, "no memory for %zu packs", count);
    if (path_join(t.log_dir, audit_dir, "log", err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        join(&t, list[i], audit_dir);
    if (t.needle.n && walk_log(&t, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (list[i]->result == 0)
            list[i]->result = end_walk(&t.walks[i], &list[i]->err);
    }
    return 0;
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

static_assert(PACK_TOGETHER_MAX <= TREE_SETS_MAX, "one walk proves all");

/* The proofs of several packs. */
struct proofs {
    struct collection *of[PACK_TOGETHER_MAX];
    struct leaf_set sets[PACK_TOGETHER_MAX];
    struct buf hashes[PACK_TOGETHER_MAX];
    size_t count;
};

static void proofs_release(struct proofs *p)
{
    for (size_t i = 0; i < p->count; i++)
        buf_release(&p->hashes[i]);
}

static void add_proof(struct proofs *p, struct collection *c)
{
    p->of[p->count] = c;
    p->sets[p->count] =
        (struct leaf_set){ c->parts.seqs, c->parts.leaves, c->parts.count };
    p->hashes[p->count] = (struct buf){ .max = PACK_PROOF_MAX };
    p->count++;
}

static int make_proofs(struct proofs *p, const char *audit_dir, uint64_t size,
                       struct err *err)
{
    CLEANUP(tile_reader_release) struct tile_reader tiles = { 0 };
    struct hashes source;
    char dir[FILE_PATH_MAX];

    if (path_join(dir, audit_dir, "log/tile", err) < 0)
        return -1;
    tile_reader_init(&tiles, dir, size);
    source = tile_reader_hashes(&tiles);
    return tree_prove_sets(&source, p->sets, p->count, size, p->hashes, err);
}

static int put_proof(struct proofs *p, size_t i, const struct checkpoint *checkpoint,
                     str note, struct err *err)
{
    struct staging *staging = p->of[i]->staging;
    str hashes = buf_str(&p->hashes[i]);

    if (!tree_set_holds(&p->sets[i], checkpoint->size, hashes, &checkpoint->root))
        return err_set(err, ERR_DAMAGE,
                       "the tiles of the log do not lead to its checkpoint; `assay log "
                       "verify` says whether `assay log rebuild` can mend that");
    if (staging_add(staging, LOG_CHECKPOINT_NAME, note, err) < 0)
        return -1;
    return write_proof(staging, checkpoint->size, hashes, err);
}

int parts_prove(struct collection *const *list, size_t count, const char *audit_dir,
                const struct checkpoint *checkpoint, str note, struct err *err)
{
    CLEANUP(proofs_release) struct proofs p = { .count = 0 };

    for (size_t i = 0; i < count; i++) {
        if (list[i]->result == 0)
            add_proof(&p, list[i]);
    }
    if (make_proofs(&p, audit_dir, checkpoint->size, err) < 0)
        return -1;
    for (size_t i = 0; i < p.count; i++) {
        p.of[i]->result = put_proof(&p, i, checkpoint, note, &p.of[i]->err);
        buf_release(&p.hashes[i]);
    }
    return 0;
}
