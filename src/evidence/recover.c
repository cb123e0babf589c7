/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: where does the log really end?
 *
 * From a state that is known to be true (the head, if the last line agrees with it; else
 * the newest signed checkpoint; else the beginning) every line behind it is checked and
 * adopted. Bytes that are no line any more are what a dying writer left: they are kept in
 * torn/, cut off, and a `repair` event tells it. A line that is whole but does not follow
 * the one before is not a crash: nothing is repaired, nothing is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/log_internal.h"
#include "evidence/tile.h"

int log_know_lock(struct log *log, struct err *err)
{
    if (path_join(log->lock_path, log->log_dir, "lock", err) < 0)
        return -1;
    if (fstat(log->lock_fd, &log->lock_id) < 0)
        return err_errno(err, "cannot look at '%s'", log->lock_path);
    if (!(log->lock_id.st_mode & LOG_CLOSED) &&
        (fchmod(log->lock_fd, log->file_mode | LOG_CLOSED) < 0 ||
         fstat(log->lock_fd, &log->lock_id) < 0))
        return 0; /* nobody relies on it, then */
    log->can_mark = (log->lock_id.st_mode & LOG_CLOSED) != 0;
    return 0;
}

int log_check_place(const struct log *log, struct err *err)
{
    struct stat there;

    if (stat(log->lock_path, &there) < 0 || log->lock_id.st_ino != there.st_ino ||
        log->lock_id.st_dev != there.st_dev)
        return err_set(err, ERR_DAMAGE,
                       "'%s' was removed or replaced while the log was in use",
                       log->lock_path);
    return 0;
}

/* The head file may have been removed and made anew by another process. The old mapping
 * is left as it is: another thread may be reading it. */
static int reopen_head(struct log *log, struct err *err)
{
    struct stat ours, there;
    struct head fresh;
    char path[FILE_PATH_MAX];

    if (path_join(path, log->log_dir, "head", err) < 0)
        return -1;
    if (fstat(log->head.fd, &ours) == 0 && stat(path, &there) == 0 &&
        ours.st_ino == there.st_ino && there.st_size == HEAD_BYTES)
        return 0;
    if (head_open(&fresh, path, log->file_mode, err) < 0)
        return -1;
    file_close(&log->head.fd);
    log->head = fresh;
    return 0;
}

/* --- a true state to begin with --- */

/* By the keys that `origin` has now: another process may have rotated them. */
static int newest_checkpoint(const struct log *log, struct checkpoint *c, struct err *err)
{
    struct origin now;

    if (origin_read(&now, log->log_dir, err) < 0)
        return -1;
    if (strcmp(now.name, log->origin.name) != 0)
        return err_set(err, ERR_DAMAGE, "'origin' is of another log now, '%s'", now.name);
    return origin_checkpoint(&now, log->log_dir, c, NULL, err);
}

/* The line that ends at `offset`, without its newline; empty when there is none. */
static str line_before(int fd, uint64_t offset, struct buf *window)
{
    size_t want = offset < EVENT_LINE_MAX + 2 ? (size_t)offset : EVENT_LINE_MAX + 2;
    char *to = buf_room(window, want);
    const char *nl;
    str s;

    if (!to || file_read_at(fd, to, want, offset - want) != (ssize_t)want)
        return STR("");
    s = str_of(to, want);
    if (s.n < 2 || s.p[s.n - 1] != '\n')
        return STR("");
    s.n--;
    nl = memrchr(s.p, '\n', s.n);
    if (!nl && want != offset)
        return STR("");
    return nl ? str_skip(s, (size_t)(nl - s.p) + 1) : s;
}

bool log_ends_so(const struct log *log, const struct head_state *s)
{
    CLEANUP(buf_release) struct buf window = { .max = EVENT_LINE_MAX + 2 };
    CLEANUP(file_close) int fd = -1;
    char path[FILE_PATH_MAX];
    struct digest leaf;
    struct err ignored;
    str line;

    if (s->size == 0)
        return s->offset == 0 && s->segment == 0;
    if (segment_path(path, log->log_dir, s->segment, &ignored) < 0)
        return false;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &ignored);
    if (fd < 0)
        return false;
    line = line_before(fd, s->offset, &window);
    leaf = tree_leaf(line);
    return line.n && digest_equal(&leaf, &s->last);
}

static int shorter_than(const struct checkpoint *c, struct err *err)
{
    return err_set(err, ERR_DAMAGE,
                   "the log is shorter than its signed checkpoint of %" PRIu64
                   " event%s: its end was cut off. Nothing is written",
                   c->size, plural(c->size));
}

/* Read the line before the checkpoint's size; the state then stands right behind it. */
static int stand_behind(struct log *log, const struct checkpoint *c,
                        const struct digest *leaf, struct head_state *s, struct err *err)
{
    struct segment_reader r = { 0 };
    enum segment_step step = SEGMENT_END;
    str line;
    int result = segment_open_seq(&r, log->log_dir, c->size - 1, err);

    if (result == 0)
        result = segment_next(&r, &step, &line, err);
    if ((result < 0 && err->code == ERR_NOTFOUND) ||
        (result == 0 && step != SEGMENT_LINE))
        result = shorter_than(c, err);
    if (result == 0) {
        s->last = tree_leaf(line);
        s->segment = r.next.segment;
        s->offset = r.next.offset;
        if (!digest_equal(&s->last, leaf))
            result =
                err_set(err, ERR_DAMAGE,
                        "event %" PRIu64 " is not what was signed: the log was changed "
                        "before its newest checkpoint. Nothing is written",
                        c->size - 1);
    }
    segment_close(&r);
    return result;
}

/* The state at the newest checkpoint, by its tiles. *usable is false when they do not
 * give the signed root. */
static int state_by_tiles(struct log *log, const struct checkpoint *c,
                          struct head_state *s, bool *usable, struct err *err)
{
    struct tile_reader tiles;
    struct hashes hashes;
    struct digest leaf;
    struct err ignored;
    char path[FILE_PATH_MAX];

    if (path_join(path, log->log_dir, "tile", err) < 0)
        return -1;
    tile_reader_init(&tiles, path, c->size);
    hashes = tile_reader_hashes(&tiles);
    *usable = tree_last_leaf(&hashes, c->size, &c->root, &leaf, &ignored) == 0;
    tile_reader_release(&tiles);
    s->size = c->size;
    return *usable ? stand_behind(log, c, &leaf, s, err) : 0;
}

static int base_state(struct log *log, const struct checkpoint *c, struct head_state *s,
                      struct err *err)
{
    bool usable = false;

    if (c->size > 0 && state_by_tiles(log, c, s, &usable, err) < 0)
        return -1;
    if (!usable)
        *s = (struct head_state){ .segment = 0 };
    return 0;
}

/* --- every line behind it --- */

/* What is walked over: from a true state to the end of the log. */
struct walk {
    struct log *log;
    const struct checkpoint *c; /* the newest */
    struct head_state *s;       /* where we stand */
    struct range range;         /* of all before, until the checkpoint is reached */
    bool torn;                  /* whole lines end before the segment does */
    uint64_t next; /* first seq of the segment behind that; UINT64_MAX: there is none */
};

static int check_follows(const struct head_state *s, const struct event_view *v,
                         struct err *err)
{
    uint64_t size = s->size;

    if (v->seq != size)
        return err_set(err, ERR_DAMAGE,
                       "event %" PRIu64 " stands where event %" PRIu64
                       " should: lines were removed, added or moved. Nothing is written",
                       v->seq, size);
    if (!digest_equal(&v->prev, &s->last))
        return err_set(err, ERR_DAMAGE,
                       "event %" PRIu64 " does not continue the event before it: the log "
                       "was changed. Nothing is written",
                       size);
    return 0;
}

/* Those before the newest checkpoint must be what it covers. */
static int check_signed(struct walk *w, const struct digest *leaf, struct err *err)
{
    struct digest root;

    if (w->s->size >= w->c->size)
        return 0;
    range_append(&w->range, leaf);
    if (w->range.size != w->c->size)
        return 0;
    root = range_root(&w->range);
    if (digest_equal(&root, &w->c->root))
        return 0;
    return err_set(err, ERR_DAMAGE,
                   "the first %" PRIu64
                   " events are not those that were signed. Nothing is "
                   "written",
                   w->c->size);
}

static int adopt_line(struct walk *w, const struct event_view *v, str line,
                      struct err *err)
{
    struct digest leaf = tree_leaf(line);

    if (check_follows(w->s, v, err) < 0 || check_signed(w, &leaf, err) < 0)
        return -1;
    w->s->last = leaf;
    w->s->size++;
    return 0;
}

/* Walk on from the state, to the end or to where whole lines end. */
static int walk(struct walk *w, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    struct segment_place start = { w->s->segment, w->s->offset, w->s->size };
    enum segment_step step = SEGMENT_END;
    struct event_view v;
    struct err bad;
    str line;

    if (segment_open_at(&r, w->log->log_dir, start, err) < 0)
        return -1;
    for (;;) {
        if (segment_next(&r, &step, &line, err) < 0) {
            /* A hole between two segments, after a crash: what was not synced is gone. */
            if (err->code != ERR_DAMAGE || !w->log->crashed || w->s->size < w->c->size)
                return -1;
            step = SEGMENT_TAIL;
            break;
        }
        if (step != SEGMENT_LINE || event_parse(&v, &json, line, &bad) < 0)
            break;
        if (adopt_line(w, &v, line, err) < 0)
            return -1;
    }
    w->torn = step != SEGMENT_END;
    w->next = r.current + 1 < r.list.count ? r.list.first[r.current + 1] : UINT64_MAX;
    w->s->segment = r.next.segment;
    w->s->offset = r.next.offset - (step == SEGMENT_LINE ? line.n + 1 : 0);
    return 0;
}

/* --- a torn tail --- */

static int torn_file(const struct log *log, uint64_t seq, struct err *err)
{
    char path[FILE_PATH_MAX];
    char name[64];

    for (int i = 0; i < 100; i++) {
        int fd;

        snprintf(name, sizeof(name), i ? "torn/%020" PRIu64 ".%d" : "torn/%020" PRIu64,
                 seq, i);
        if (path_join(path, log->log_dir, name, err) < 0)
            return -1;
        fd = file_open(path, O_WRONLY | O_CREAT | O_EXCL, log->file_mode, err);
        if (fd >= 0 || err->code != ERR_EXISTS)
            return fd;
    }
    return -1;
}

static int copy_tail(int from, uint64_t offset, int to, struct repair *r, struct err *err)
{
    struct hasher h;
    char chunk[16384];
    ssize_t n;
    int result = 0;

    hasher_init(&h);
    while (result == 0 &&
           (n = file_read_at(from, chunk, sizeof(chunk), offset + r->bytes)) != 0) {
        if (n < 0) {
            result = err_errno(err, "cannot read the torn tail");
            break;
        }
        hasher_add(&h, str_of(chunk, (size_t)n));
        result = file_write(to, str_of(chunk, (size_t)n), NULL, err);
        r->bytes += (uint64_t)n;
    }
    r->sha256 = hasher_finish(&h);
    return result == 0 ? file_datasync(to, err) : result;
}

static int cut_tail(struct log *log, const struct head_state *s, struct err *err)
{
    struct repair r = { .offset = s->offset, .reason = "torn_tail" };
    CLEANUP(file_close) int to = -1;

    if (log_open_segment(log, s->segment, false, err) < 0)
        return -1;
    to = torn_file(log, s->size, err);
    if (to < 0 || copy_tail(log->segment_fd, s->offset, to, &r, err) < 0)
        return err_wrap(err, "cannot keep the torn tail of the log");
    if (file_set_size(log->segment_fd, s->offset, err) < 0)
        return err_wrap(err, "cannot cut off the torn tail of the log");
    log_tell(log, "the log ended in %" PRIu64 " torn bytes; they are kept in %s/torn",
             r.bytes, log->log_dir);
    return log_add_repair(log, &r, err);
}

/* Whole segments behind a hole: they cannot be reached from what is left of the log. */
static int set_aside(struct log *log, uint64_t segment, struct hasher *h,
                     struct repair *r, struct err *err)
{
    char from[FILE_PATH_MAX], to[FILE_PATH_MAX], name[64];
    CLEANUP(mapping_release) struct mapping map = { 0 };
    CLEANUP(file_close) int fd = -1;

    snprintf(name, sizeof(name), "torn/%020" PRIu64 ".jsonl", segment);
    if (segment_path(from, log->log_dir, segment, err) < 0 ||
        path_join(to, log->log_dir, name, err) < 0)
        return -1;
    fd = file_open(from, O_RDONLY | O_NOFOLLOW, 0, err);
    if (fd < 0 || mapping_open(&map, fd, from, err) < 0)
        return -1;
    hasher_add(h, map.bytes);
    r->bytes += map.bytes.n;
    return rename(from, to) < 0 ? err_errno(err, "cannot set '%s' aside", from) : 0;
}

static int set_later_aside(struct log *log, uint64_t after, struct err *err)
{
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct hasher h;
    struct repair r = { .reason = "behind_a_hole" };

    if (segment_list_read(&list, log->log_dir, err) < 0)
        return -1;
    hasher_init(&h);
    for (size_t i = 0; i < list.count; i++) {
        if (list.first[i] > after && set_aside(log, list.first[i], &h, &r, err) < 0)
            return -1;
    }
    r.sha256 = hasher_finish(&h);
    log_tell(log,
             "a crash left a hole in the log; %" PRIu64 " bytes behind it are kept in "
             "%s/torn",
             r.bytes, log->log_dir);
    return log_add_repair(log, &r, err);
}

/* --- all of it --- */

/* Lines that the next segment holds too are what a writer left that died while it wrote
 * them anew (sync.c): they are cut off here. */
static int walk_to_end(struct walk *w, struct err *err)
{
    for (;;) {
        if (walk(w, err) < 0)
            return -1;
        if (!w->torn || w->next != w->s->size || w->s->size < w->c->size)
            return 0;
        if (cut_tail(w->log, w->s, err) < 0)
            return -1;
        w->s->segment = w->next;
        w->s->offset = 0;
    }
}

static int adopt(struct log *log, const struct checkpoint *c, struct head_state *s,
                 struct err *err)
{
    struct walk w = { .log = log, .c = c, .s = s };

    if (walk_to_end(&w, err) < 0)
        return -1;
    if (s->size < c->size && w.torn)
        return err_set(err, ERR_DAMAGE,
                       "event %" PRIu64 " is damaged, and it lies before the signed "
                       "checkpoint of %" PRIu64 " event%s. Nothing is written",
                       s->size, c->size, plural(c->size));
    if (s->size < c->size)
        return shorter_than(c, err);
    if (w.torn && w.next != UINT64_MAX && log->crashed && !log->mending)
        return set_later_aside(log, s->segment, err) < 0 ? -1 : cut_tail(log, s, err);
    if (w.torn && w.next != UINT64_MAX)
        return err_set(err, ERR_DAMAGE,
                       "event %" PRIu64
                       " is damaged, and more segments follow it. Nothing "
                       "is written",
                       s->size);
    return w.torn && !log->mending ? cut_tail(log, s, err) : 0;
}

/* The head knew of more events than there are: a power cut took what was not synced. */
static void note_lost_tail(struct log *log, uint64_t known, uint64_t found)
{
    if (known > found)
        log_lost(log, known - found, "the end of the log was lost before it was synced");
}

int log_recover(struct log *log, struct err *err)
{
    struct head_state head, s;
    struct checkpoint c;
    bool have_head, trusted, failed_sync;
    uint64_t suspect;

    log->current = false;
    if (log_check_place(log, err) < 0 || reopen_head(log, err) < 0 ||
        newest_checkpoint(log, &c, err) < 0)
        return -1;
    have_head = head_read(&log->head, &head);
    failed_sync = head_suspect(&log->head, &suspect);
    log->crashed = have_head && !head_is_of_boot(&log->head, log->boot);
    trusted = have_head && !log->crashed && !failed_sync && !log->mending &&
              head.size >= c.size && log_ends_so(log, &head);
    if (trusted)
        s = head;
    else if (base_state(log, &c, &s, err) < 0)
        return -1;
    if (adopt(log, &c, &s, err) < 0)
        return -1;
    if (log_open_segment(log, s.segment, s.size == 0, err) < 0)
        return -1;
    if (log->mending && have_head && head.size > s.size)
        return err_set(err, ERR_REFUSED,
                       "the head knows of %" PRIu64 " events, the segments have %" PRIu64
                       "; start a recorder, so that it writes down the loss",
                       head.size, s.size);
    if (!trusted && !(failed_sync && have_head))
        head_forget(&log->head, c.size);
    if (have_head && !trusted)
        note_lost_tail(log, head.size, s.size);
    head_write(&log->head, &s);
    head_set_boot(&log->head, log->boot);
    log->state = s;
    return 0;
}
