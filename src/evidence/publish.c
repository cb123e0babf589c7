/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing: sync, extend the tiles, sign a checkpoint. Off the path of messages, by
 * whichever process gets log/checkpoint.lock.
 *
 * What is signed is the history that the head ended when we began (extend.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/extend.h"

#define PUBLISH_WAIT 10000 /* ms that log_checkpoint(wait) waits for another process */

/* What one publication works with. */
struct publication {
    struct extension x; /* of the tiles, from the newest checkpoint to the end */
    struct checkpoint remembered; /* what we know to have signed */
    bool rotated;                 /* newest is signed by the key before ours… */
    struct signer before;         /* …which signs once more */
    const struct signer *next;    /* whose key is to sign from now on; NULL: no change */
};

/* --- signing --- */

/* Never sign what does not extend all that we signed before. */
static int check_extends(struct publication *p, struct err *err)
{
    struct tile_reader tiles;
    struct hashes hashes;
    struct digest root;
    int r;

    if (p->remembered.size == 0)
        return 0;
    if (p->remembered.size <= p->x.end.size) {
        tile_reader_init(&tiles, p->x.tile_dir, p->x.end.size);
        hashes = tile_reader_hashes(&tiles);
        r = tree_root(&hashes, p->remembered.size, &root, err);
        tile_reader_release(&tiles);
        if (r < 0)
            return -1;
        if (digest_equal(&root, &p->remembered.root))
            return 0;
    }
    return err_set(
        err, ERR_DAMAGE,
        "%" PRIu64 " events of this log were signed before, and it does not extend "
        "them: it was rolled back, restored or copied; no checkpoint is made. To "
        "begin a new log, move '%s' away",
        p->remembered.size, p->x.log->log_dir);
}

static int compose(struct publication *p, struct buf *note, struct err *err)
{
    CLEANUP(signer_release) struct signer signer = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 };
    struct checkpoint c = { .size = p->x.end.size, .root = p->x.root };

    memcpy(c.origin, p->x.log->origin.name, sizeof(c.origin));
    checkpoint_add(&text, &c);
    buf_add(note, buf_str(&text));
    buf_add_char(note, '\n');
    if (origin_signer(&p->x.log->origin, &p->x.log->keys, &signer, err) < 0 ||
        note_sign(note, buf_str(&text), &p->x.log->origin.keys[0], &signer.secret, err) <
            0)
        return -1;
    if (p->rotated && note_sign(note, buf_str(&text), &p->x.log->origin.keys[1],
                                &p->before.secret, err) < 0)
        return -1;
    return buf_check(note, "the checkpoint", err);
}

/* Does a note end with these bytes: a signature line and a blank one? */
static bool ends_note(str s)
{
    const char *nl;

    if (s.n < 2 || s.p[s.n - 1] != '\n' || s.p[s.n - 2] != '\n')
        return false;
    s.n -= 2;
    nl = memrchr(s.p, '\n', s.n);
    return str_starts(nl ? str_skip(s, (size_t)(nl - s.p) + 1) : s, STR("— "));
}

/* A crash may have left half a note at the end. */
static int cut_half_note(int fd, struct err *err)
{
    char tail[NOTE_MAX];
    uint64_t size, from;
    struct stat st;
    ssize_t n;
    str whole;

    if (fstat(fd, &st) < 0)
        return err_errno(err, "cannot look at the checkpoints");
    size = (uint64_t)st.st_size;
    from = size > sizeof(tail) ? size - sizeof(tail) : 0;
    n = file_read_at(fd, tail, sizeof(tail), from);
    if (n < 0)
        return err_errno(err, "cannot read the checkpoints");
    whole = str_of(tail, (size_t)n);
    while (whole.n && !ends_note(whole))
        whole.n--;
    if (from + whole.n == size)
        return 0;
    if (from && !whole.n)
        return err_set(err, ERR_DAMAGE, "the list of checkpoints does not end in one");
    return file_set_size(fd, from + whole.n, err);
}

/* The list of all checkpoints: each followed by a blank line. */
static int append_to_list(const struct log *log, str note, struct err *err)
{
    CLEANUP(buf_release) struct buf entry = { .max = NOTE_MAX + 1 };
    CLEANUP(file_close) int fd = -1;
    char path[FILE_PATH_MAX];
    struct err undo;

    if (path_join(path, log->log_dir, "checkpoints", err) < 0)
        return -1;
    fd = file_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, log->file_mode, err);
    if (fd < 0 || cut_half_note(fd, err) < 0)
        return -1;
    buf_add(&entry, note);
    buf_add_char(&entry, '\n');
    if (file_write(fd, buf_str(&entry), NULL, err) == 0 && file_datasync(fd, err) == 0)
        return 0;
    if (cut_half_note(fd, &undo) < 0)
        err_wrap(err, "half a note could not be undone");
    return err_wrap(err, "cannot add to '%s'", path);
}

/* Remember first: what others may see, we must not contradict later. */
static int release(struct publication *p, struct err *err)
{
    CLEANUP(buf_release) struct buf note = { .max = NOTE_MAX };
    char path[FILE_PATH_MAX];

    if (compose(p, &note, err) < 0 ||
        path_join(path, p->x.log->log_dir, "checkpoint", err) < 0 ||
        origin_remember(&p->x.log->origin, &p->x.log->keys, buf_str(&note), err) < 0 ||
        append_to_list(p->x.log, buf_str(&note), err) < 0)
        return -1;
    return file_replace(path, buf_str(&note), p->x.log->file_mode, err);
}

/* --- the whole --- */

/* First tell of what looking at the end had to mend: we may not write again. Then the end
 * with that, which is known only once it is written. */
static int snapshot(struct publication *p, struct err *err)
{
    struct log *log = p->x.log;
    int r;

    if (log_begin(log, err) < 0 || log_commit(log, NULL, err) < 0 ||
        log_lock(log, err) < 0)
        return -1;
    r = log_load(log, err);
    log->current = r == 0;
    p->x.end = log->state;
    p->x.lent = r == 0 && leaves_lend(&log->leaves, p->x.end.size, &p->x.end.last);
    log_unlock(log);
    return r;
}

/* Where the lock is not to be had, they stay lent until the next time. */
static void give_back(struct publication *p, uint64_t published)
{
    struct err ignored;

    if (!p->x.lent || log_lock(p->x.log, &ignored) < 0)
        return;
    leaves_give_back(&p->x.log->leaves, published);
    log_unlock(p->x.log);
    p->x.lent = false;
}

/* The first checkpoint of a new key carries the signature of the old one too, whoever
 * makes it: without that, nobody could tell the new key from a stranger's. */
static int see_rotation(struct publication *p, str newest, struct err *err)
{
    const struct origin *now = &p->x.log->origin;
    struct origin before = *now;
    struct err ignored;
    struct note n;

    if (now->count < 2 || newest.n == 0 || note_parse(&n, newest, &ignored) < 0 ||
        note_verify(&n, &now->keys[0], 1) == NOTE_SIGNED)
        return 0;
    before.keys[0] = now->keys[1];
    if (origin_signer(&before, &p->x.log->keys, &p->before, err) < 0)
        return err_wrap(err, "the key before the new one must hand the log over");
    p->rotated = true;
    return 0;
}

static int find_tiles(struct publication *p, struct err *err)
{
    return path_join(p->x.tile_dir, p->x.log->log_dir, "tile", err);
}

static int prepare(struct publication *p, struct err *err)
{
    CLEANUP(buf_release) struct buf newest = { .max = NOTE_MAX };
    struct log *log = p->x.log;

    if (find_tiles(p, err) < 0 || log_check_place(log, err) < 0 ||
        origin_read(&log->origin, log->log_dir, err) < 0 || snapshot(p, err) < 0 ||
        origin_checkpoint(&log->origin, log->log_dir, &p->x.newest, &newest, err) < 0)
        return -1;
    if (see_rotation(p, buf_str(&newest), err) < 0)
        return -1;
    return origin_remembered(&log->origin, &log->keys, &p->remembered, err);
}

static int publish_new(struct publication *p, struct err *err)
{
    const struct segment_place end = { p->x.end.segment, p->x.end.offset, p->x.end.size };

    if (p->x.end.size == p->x.newest.size && !p->rotated)
        return 0;
    if (log_sync(p->x.log, p->x.end.size, err) < 0 || extend_tiles(&p->x, err) < 0 ||
        check_extends(p, err) < 0 || release(p, err) < 0)
        return -1;
    head_set_published(&p->x.log->head, &end);
    return 0;
}

static int publish(struct publication *p, struct err *err)
{
    int r = prepare(p, err) < 0 ? -1 : publish_new(p, err);

    give_back(p, r == 0 ? p->x.end.size : 0);
    return r;
}

/* --- a new key --- */

static int append_rotation(struct log *log, const struct note_key *key, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(buf_release) struct buf vkey = { 0 };
    const struct event *events[] = { &e };

    note_key_add(&vkey, key);
    event_init(&e, EVENT_KEY_ROTATE);
    event_add_text(&e, "vkey", buf_str(&vkey));
    return log_append(log, events, 1, NULL, err);
}

/* All of it under checkpoint.lock: of two rotations at once, `origin` would forget one.
 */
static int rotate_key(struct publication *p, struct err *err)
{
    struct log *log = p->x.log;
    struct origin now;
    struct note_key key;

    if (publish(p, err) < 0 || origin_read(&now, log->log_dir, err) < 0 ||
        note_key_make(&key, str_from(now.name), p->next->secret.public_key, err) < 0)
        return -1;
    if (note_key_equal(&key, &now.keys[0]))
        return err_set(err, ERR_REFUSED, "this log is already signed by '%s'",
                       p->next->id);
    if (append_rotation(log, &key, err) < 0 ||
        origin_add_key(&now, log->log_dir, &key, log->file_mode, err) < 0)
        return -1;
    signer_release(&p->before);
    *p = (struct publication){ .x.log = log };
    return publish(p, err);
}

/* --- who does it --- */

/* checkpoint.lock, tried and never waited for without bound. */
static int take_lock(struct log *log, bool wait, bool *taken, struct err *err)
{
    struct timespec pause = { 0, 5000000 };

    *taken = true;
    for (int waited = 0; file_lock(log->checkpoint_fd, LOCK_EX | LOCK_NB) < 0;
         waited += 5) {
        if (errno != EWOULDBLOCK)
            return err_errno(err, "cannot lock the checkpoint");
        *taken = false;
        if (!wait)
            return 0;
        if (waited > PUBLISH_WAIT)
            return err_set(err, ERR_TIMEOUT,
                           "another process has been signing a checkpoint for %d ms",
                           PUBLISH_WAIT);
        nanosleep(&pause, NULL);
        *taken = true;
    }
    return 0;
}

static int publish_locked(struct publication *p, bool wait, struct err *err)
{
    struct log *log = p->x.log;
    bool taken;
    int r;

    pthread_mutex_lock(&log->publish_mutex);
    r = take_lock(log, wait, &taken, err);
    if (r == 0 && taken) {
        r = p->next ? rotate_key(p, err) : publish(p, err);
        file_lock(log->checkpoint_fd, LOCK_UN);
    }
    pthread_mutex_unlock(&log->publish_mutex);
    signer_release(&p->before);
    return r;
}

int log_checkpoint(struct log *log, bool wait, struct err *err)
{
    struct publication p = { .x.log = log };

    return publish_locked(&p, wait, err);
}

static int put_in_place(const struct publication *p, const char *tiles, struct err *err)
{
    if (file_remove_tree(tiles, err) < 0)
        return -1;
    if (rename(p->x.tile_dir, tiles) < 0)
        return err_errno(err, "cannot rename '%s'", p->x.tile_dir);
    return file_sync_dir(p->x.log->log_dir, err);
}

/* Beside the old ones: of a log whose events were changed, those are all that still
 * proves what was signed. */
static int rebuild_tiles(struct publication *p, struct segment_place *place,
                         struct err *err)
{
    const char *log_dir = p->x.log->log_dir;
    char tiles[FILE_PATH_MAX];
    struct err ignored;

    if (path_join(tiles, log_dir, "tile", err) < 0 ||
        path_join(p->x.tile_dir, log_dir, "tile.new", err) < 0)
        return -1;
    if (extend_anew(&p->x, place, err) == 0)
        return put_in_place(p, tiles, err);
    if (file_remove_tree(p->x.tile_dir, &ignored) < 0)
        return -1;
    return err_wrap(err, "the tiles stay as they are");
}

/* The head by recovery, the tiles by reading every line. */
static int rebuild(struct publication *p, uint64_t *events, struct err *err)
{
    struct segment_place place;
    struct log *log = p->x.log;
    int result;

    if (origin_read(&log->origin, log->log_dir, err) < 0 || log_lock(log, err) < 0)
        return -1;
    result = log_recover(log, err);
    *events = log->state.size;
    log_unlock(log);
    if (result < 0 ||
        origin_checkpoint(&log->origin, log->log_dir, &p->x.newest, NULL, err) < 0 ||
        rebuild_tiles(p, &place, err) < 0)
        return -1;
    head_set_published(&log->head, &place);
    return 0;
}

int log_rebuild(const struct log_options *options, uint64_t *events, struct err *err)
{
    struct publication p = { 0 };
    struct log *log;
    bool taken;
    int r;

    if (log_open_to_mend(&log, options, err) < 0)
        return -1;
    p.x.log = log;
    r = take_lock(log, true, &taken, err);
    if (r == 0)
        r = rebuild(&p, events, err);
    log_abandon(log);
    return r;
}

int log_signer(struct log *log, struct signer *out, struct err *err)
{
    struct origin now;

    if (origin_read(&now, log->log_dir, err) < 0)
        return -1;
    return origin_signer(&now, &log->keys, out, err);
}

int log_rotate_key(struct log *log, const struct signer *next, struct err *err)
{
    struct publication p = { .x.log = log, .next = next };

    return publish_locked(&p, true, err);
}
