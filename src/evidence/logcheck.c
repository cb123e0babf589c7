/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/logcheck.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/map.h"
#include "evidence/event.h"
#include "evidence/investigation.h"
#include "evidence/logcheck_internal.h"
#include "evidence/origin.h"
#include "evidence/segment.h"
#include "evidence/tile.h"
#include "evidence/tree.h"

#define PROGRESS_EVERY 4096 /* events */

static const char *const code_names[] = {
#define X(name) [LOGCHECK_##name] = "LOG_" #name,
    LOGCHECK_CODES(X)
#undef X
};

const char *logcheck_code_name(enum logcheck_code code)
{
    return code_names[code];
}

enum logcheck_verdict logcheck_verdict_of(const struct logcheck *c)
{
    if (c->serious)
        return LOGCHECK_DAMAGED;
    return c->findings ? LOGCHECK_MENDABLE : LOGCHECK_SOUND;
}

/* Does it mean that evidence is not what was written, or cannot be shown to be? */
static bool is_serious(enum logcheck_code code)
{
    return code != LOGCHECK_TILE && code != LOGCHECK_HEAD && code != LOGCHECK_TORN &&
           code != LOGCHECK_PENDING && code != LOGCHECK_MISSING;
}

void logcheck_find(struct walk *w, enum logcheck_code code, const char *fmt, ...)
{
    struct logcheck *out = w->out;
    struct logcheck_finding *f;
    va_list ap;

    out->serious += is_serious(code);
    if (out->findings++ >= LOGCHECK_FINDINGS_MAX)
        return;
    f = &out->finding[out->findings - 1];
    f->code = code;
    f->seq = w->range.size;
    va_start(ap, fmt);
    vsnprintf(f->message, sizeof(f->message), fmt, ap);
    va_end(ap);
}

/* --- checkpoints --- */

static bool open_note(struct walk *w, str note, struct checkpoint *c)
{
    struct err err = { 0 };

    if (origin_open_note(&w->origin, "a note of 'checkpoints'", note, c, &err) == 0)
        return true;
    logcheck_find(w, LOGCHECK_CHECKPOINT, "%s", err.msg);
    return false;
}

void logcheck_next_checkpoint(struct walk *w)
{
    struct checkpoint c;
    str note;

    w->have_next = false;
    while (origin_next_note(&w->rest, &note)) {
        w->out->checkpoints++;
        if (!open_note(w, note, &c))
            continue;
        if (c.size < w->range.size) {
            logcheck_find(w, LOGCHECK_CHECKPOINT,
                          "a checkpoint of %" PRIu64 " event%s stands after a larger one",
                          c.size, plural(c.size));
            continue;
        }
        w->next = c;
        w->have_next = true;
        return;
    }
    if (w->rest.n)
        logcheck_find(w, LOGCHECK_CHECKPOINT,
                      "the list of checkpoints ends in half a note");
    w->rest.n = 0;
}

static void compare_root(struct walk *w, const struct checkpoint *c, const char *which)
{
    struct digest root = range_root(&w->range);

    if (!digest_equal(&root, &c->root))
        logcheck_find(w, LOGCHECK_ROOT,
                      "%s of %" PRIu64 " event%s was signed over other events", which,
                      c->size, plural(c->size));
    else if (c->size > w->out->signed_size)
        w->out->signed_size = c->size;
}

static void check_partial_tiles(struct walk *w)
{
    struct err err;

    if (!w->tiles_bad && tile_writer_finish(&w->tiles, &err) < 0) {
        logcheck_find(w, LOGCHECK_TILE, "%s; 'assay log rebuild' writes it anew",
                      err.msg);
        w->tiles_bad = true;
    }
}

/* All that was signed at exactly this size. */
static void compare_checkpoints(struct walk *w)
{
    uint64_t size = w->range.size;
    bool any = w->newest.size == size && size > 0;

    if (any)
        compare_root(w, &w->newest, "the newest checkpoint");
    while (w->have_next && w->next.size == size) {
        compare_root(w, &w->next, "a checkpoint");
        logcheck_next_checkpoint(w);
        any = true;
    }
    if (w->out->remembered && w->remembered.size == size) {
        struct digest root = range_root(&w->range);

        if (!digest_equal(&root, &w->remembered.root))
            logcheck_find(w, LOGCHECK_ROLLBACK,
                          "this machine signed other events as the first %" PRIu64
                          " of this log",
                          size);
    }
    if (any)
        check_partial_tiles(w);
}

/* --- events --- */

static int check_session(struct walk *w, const struct event_view *v, struct err *err)
{
    uint8_t id[ID_HEX / 2];
    uint64_t key = 0, next;

    if (v->session.n == 0)
        return 0;
    if (!hex_decode(id, sizeof(id), str_skip(v->session, 4)))
        return 0; /* event_parse() has seen to its form */
    for (size_t i = 0; i < sizeof(id); i++)
        key = key << 8 | id[i];
    next = (uint64_t)(uintptr_t)map_get(&w->sessions, key);
    if (next == 0) {
        w->out->sessions++;
        next = 1;
    }
    if (v->n != next - 1)
        logcheck_find(w, LOGCHECK_SESSION,
                      "event %" PRIu64 " is number %" PRIu64
                      " of its session, where %" PRIu64 " should stand",
                      v->seq, v->n, next - 1);
    return map_put(&w->sessions, key, (void *)(uintptr_t)(v->n + 2), err);
}

static void count_event(struct walk *w, const struct event_view *v)
{
    int64_t lost;

    if (v->type == EVENT_GAP) {
        w->out->gaps++;
        if (event_int(v, "lost", &lost))
            w->out->lost += (uint64_t)lost;
    } else if (v->type == EVENT_REPAIR) {
        w->out->repairs++;
    }
}

/* The log itself says which keys may sign it: the first by its first chain_start (only a
 * `repair` of a torn one can stand before), every other by a key_rotate. `origin` alone
 * could be exchanged. */
static void learn_key(struct walk *w, const struct event_view *v)
{
    struct note_key key;
    struct err ignored;
    bool listed = false;

    if (v->type != EVENT_KEY_ROTATE && (v->type != EVENT_CHAIN_START || w->started))
        return;
    w->started = true;
    if (note_key_parse(&key, event_text(v, "vkey"), &ignored) == 0) {
        for (size_t i = 0; i < w->origin.count; i++) {
            if (note_key_equal(&key, &w->origin.keys[i]))
                listed = w->key_known[i] = true; /* may come back, and stand twice */
        }
    }
    /* A rotation that failed half-way: the log is signed by the key before, and by that
     * one alone, or its checkpoints are found. */
    if (listed || v->type == EVENT_KEY_ROTATE)
        return;
    logcheck_find(w, LOGCHECK_CHECKPOINT,
                  "event %" PRIu64 " names a key that 'origin' does not list", v->seq);
}

/* False when the walk cannot go on behind this line. */
static bool check_place(struct walk *w, const struct event_view *v)
{
    if (v->seq != w->range.size) {
        logcheck_find(w, LOGCHECK_ORDER,
                      "event %" PRIu64 " stands where event %" PRIu64
                      " should: lines were removed, added or moved",
                      v->seq, w->range.size);
        return false;
    }
    if (!digest_equal(&v->prev, &w->last)) {
        logcheck_find(w, LOGCHECK_CHAIN,
                      "event %" PRIu64
                      " does not continue the event before it: one of the two was "
                      "changed",
                      v->seq);
        return false;
    }
    return true;
}

static int take_line(struct walk *w, const struct event_view *v, str line,
                     struct err *err)
{
    struct err tile_err;

    w->last = tree_leaf(line);
    w->last_ts = v->ts;
    range_append(&w->range, &w->last);
    w->out->events++;
    w->out->bytes += line.n + 1;
    count_event(w, v);
    learn_key(w, v);
    if (check_session(w, v, err) < 0 ||
        (w->options->investigation &&
         investigation_check_event(&w->payloads, v, err) < 0))
        return -1;
    if (!w->tiles_bad && w->range.size <= w->newest.size &&
        tile_writer_add(&w->tiles, &w->last, &tile_err) < 0) {
        logcheck_find(w, LOGCHECK_TILE, "%s; 'assay log rebuild' writes it anew",
                      tile_err.msg);
        w->tiles_bad = true;
    }
    compare_checkpoints(w);
    if (w->options->progress && w->range.size % PROGRESS_EVERY == 0)
        w->options->progress(w->options->progress_ctx, w->out->bytes, w->total);
    return 0;
}

static void find_tail(struct walk *w, const struct segment_reader *r)
{
    if (r->current + 1 < r->list.count)
        logcheck_find(w, LOGCHECK_SEGMENT,
                      "segment %020" PRIu64 ".jsonl has bytes after its last event",
                      r->next.segment);
    else if (w->range.size < w->newest.size)
        logcheck_find(w, LOGCHECK_LINE, "event %" PRIu64 " is damaged", w->range.size);
    else
        logcheck_find(
            w, LOGCHECK_TORN,
            "the log ends in bytes that are no event, after event %" PRIu64
            " and after all that was signed; the next writer keeps them in torn/ and "
            "goes on",
            w->range.size);
}

static int walk_events(struct walk *w, struct segment_reader *r, struct err *err)
{
    CLEANUP(json_release) struct json json = { 0 };
    const struct timespec pause = { 0, 20000000 };
    enum segment_step step;
    struct event_view v;
    struct err bad = { 0 };
    unsigned looks = 0;
    str line;

    for (;;) {
        if (segment_next(r, &step, &line, &bad) < 0) {
            if (bad.code != ERR_DAMAGE) {
                *err = bad;
                return -1;
            }
            logcheck_find(w, LOGCHECK_SEGMENT, "%s", bad.msg);
            return 0;
        }
        if (step == SEGMENT_END)
            return 0;
        if (step == SEGMENT_TAIL) {
            /* A writer may be in the middle of this line: look again. */
            if (r->current + 1 == r->list.count && looks++ < TAIL_LOOKS) {
                nanosleep(&pause, NULL);
                continue;
            }
            find_tail(w, r);
            return 0;
        }
        if (event_parse(&v, &json, line, &bad) < 0) {
            logcheck_find(w, LOGCHECK_LINE, "event %" PRIu64 ": the line %s",
                          w->range.size, bad.msg);
            return 0;
        }
        if (!check_place(w, &v))
            return 0;
        if (take_line(w, &v, line, err) < 0)
            return -1;
    }
}

/* --- payloads --- */

static void on_payload_finding(void *ctx, const char *sentence)
{
    logcheck_find(ctx, LOGCHECK_PAYLOAD, "%s", sentence);
}

static int open_payloads(struct walk *w, const char *audit_dir, struct err *err)
{
    if (investigation_check_init(&w->payloads, audit_dir, w->options->pepper, err) < 0)
        return -1;
    w->payloads.on_finding = on_payload_finding;
    w->payloads.ctx = w;
    return 0;
}

static int end_payloads(struct walk *w, struct err *err)
{
    if (!w->options->investigation)
        return 0;
    if (investigation_check_end(&w->payloads, err) < 0)
        return -1;
    w->out->payloads = w->payloads.compared;
    w->out->forgotten = w->payloads.forgotten;
    return 0;
}

/* --- the whole --- */

static int add_up(struct walk *w, const struct segment_list *list, struct err *err)
{
    char path[FILE_PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < list->count; i++) {
        if (segment_path(path, w->log_dir, list->first[i], err) < 0)
            return -1;
        if (stat(path, &st) == 0)
            w->total += (uint64_t)st.st_size;
    }
    w->out->segments = list->count;
    return 0;
}

static int open_list(struct walk *w, struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    struct err missing = { 0 };
    char path[FILE_PATH_MAX];

    if (path_join(path, w->log_dir, "checkpoints", err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &missing);
    if (fd < 0 && missing.code == ERR_NOTFOUND)
        return 0;
    if (fd < 0 || mapping_open(&w->list, fd, path, &missing) < 0) {
        *err = missing;
        return -1;
    }
    w->rest = w->list.bytes;
    return 0;
}

static int open_signed(struct walk *w, struct err *err)
{
    struct err bad = { 0 };

    if (origin_checkpoint(&w->origin, w->log_dir, &w->newest, NULL, &bad) < 0) {
        if (bad.code != ERR_DAMAGE) {
            *err = bad;
            return -1;
        }
        logcheck_find(w, LOGCHECK_CHECKPOINT, "%s", bad.msg);
    }
    if (open_list(w, err) < 0)
        return -1;
    logcheck_next_checkpoint(w);
    if (!w->options->keys)
        return 0;
    if (origin_remembered(&w->origin, w->options->keys, &w->remembered, &bad) < 0)
        logcheck_find(w, LOGCHECK_ROLLBACK, "what this machine remembers is unusable: %s",
                      bad.msg);
    else
        w->out->remembered = w->remembered.size > 0;
    return 0;
}

static int open_walk(struct walk *w, const char *audit_dir, struct err *err)
{
    if (path_join(w->log_dir, audit_dir, "log", err) < 0 ||
        path_join(w->tile_dir, w->log_dir, "tile", err) < 0)
        return -1;
    if (origin_read(&w->origin, w->log_dir, err) < 0) {
        if (err->code == ERR_NOTFOUND)
            return err_set(err, ERR_NOTFOUND, "there is no log in '%s'", audit_dir);
        return -1;
    }
    memcpy(w->out->origin, w->origin.name, sizeof(w->out->origin));
    memcpy(w->out->public_key, w->origin.keys[0].public_key, PUBLIC_SIZE);
    if (tile_writer_open(&w->tiles, w->tile_dir, 0, err) < 0)
        return -1;
    w->tiles.check = true;
    if (open_payloads(w, audit_dir, err) < 0)
        return -1;
    return open_signed(w, err);
}

static int run(struct walk *w, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };

    if (segment_open_seq(&r, w->log_dir, 0, err) < 0) {
        if (err->code != ERR_DAMAGE)
            return -1;
        logcheck_find(w, LOGCHECK_SEGMENT, "%s", err->msg);
    } else if (add_up(w, &r.list, err) < 0 || walk_events(w, &r, err) < 0) {
        return -1;
    }
    logcheck_end(w);
    return end_payloads(w, err);
}

int logcheck_run(struct logcheck *out, const char *audit_dir,
                 const struct logcheck_options *options, struct err *err)
{
    struct walk w = { .out = out, .options = options };
    int r;

    *out = (struct logcheck){ .events = 0 };
    r = open_walk(&w, audit_dir, err);
    if (r == 0)
        r = run(&w, err);
    mapping_release(&w.list);
    map_release(&w.sessions);
    tile_writer_release(&w.tiles);
    investigation_check_release(&w.payloads);
    return r;
}
