/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for the disk: log_sync(), and what follows when the disk says no.
 *
 * After a failed fdatasync the kernel may have marked the pages clean without writing
 * them; a second try would succeed and mean nothing. So the segment is suspect for all
 * processes until log_reseat() has written its unsynced lines into a new file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/log_internal.h"

/* --- writing anew --- */

/* Lines [from, size) of the log, from what the kernel still has, into `to`. The chain
 * tells whether they are what was written. */
static int copy_lines(struct log *log, uint64_t from, int to, struct segment_place *place,
                      struct repair *r, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader in = { 0 };
    enum segment_step step = SEGMENT_LINE;
    struct digest leaf = log->state.last;
    struct hasher h;
    int result = 0;
    str line;

    if (segment_open_seq(&in, log->log_dir, from, err) < 0)
        return -1;
    *place = in.next;
    hasher_init(&h);
    while (result == 0 && in.next.seq < log->state.size) {
        str whole;

        result = segment_next(&in, &step, &line, err);
        if (result < 0 || step != SEGMENT_LINE)
            break;
        leaf = tree_leaf(line);
        whole = str_of(line.p, line.n + 1);
        hasher_add(&h, whole);
        r->bytes += whole.n;
        result = file_write(to, whole, NULL, err);
    }
    r->sha256 = hasher_finish(&h);
    if (result == 0 && (step != SEGMENT_LINE || !digest_equal(&leaf, &log->state.last)))
        result = err_set(err, ERR_DAMAGE,
                         "events after %" PRIu64 " could not be read back", from);
    return result;
}

static int sync_segments_dir(const struct log *log, struct err *err)
{
    char dir[FILE_PATH_MAX];

    return path_join(dir, log->log_dir, "segments", err) < 0 ? -1
                                                             : file_sync_dir(dir, err);
}

/* The new file holds all from `from` on: later segments are in it. */
static int remove_later(const struct log *log, uint64_t from, struct err *err)
{
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    char path[FILE_PATH_MAX];

    if (segment_list_read(&list, log->log_dir, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        if (list.first[i] <= from)
            continue;
        if (segment_path(path, log->log_dir, list.first[i], err) < 0)
            return -1;
        if (unlink(path) < 0)
            return err_errno(err, "cannot remove '%s'", path);
    }
    return 0;
}

static int cut_file(const char *path, uint64_t size, struct err *err)
{
    CLEANUP(file_close) int fd = file_open(path, O_RDWR | O_NOFOLLOW, 0, err);

    if (fd < 0 || file_set_size(fd, size, err) < 0)
        return err_wrap(err, "cannot cut '%s'", path);
    return 0;
}

/* Put the new file in its place and cut the old one down to what is known to be on disk.
 * Whoever dies in between leaves lines twice, and a suspect: log_recover() mends it. */
static int install(struct log *log, const char *temp, uint64_t from,
                   const struct segment_place *place, const struct repair *r,
                   struct err *err)
{
    char path[FILE_PATH_MAX], old[FILE_PATH_MAX];

    if (segment_path(path, log->log_dir, from, err) < 0 ||
        segment_path(old, log->log_dir, place->segment, err) < 0)
        return -1;
    if (rename(temp, path) < 0)
        return err_errno(err, "cannot rename to '%s'", path);
    log->state.segment = from;
    log->state.offset = r->bytes;
    head_write(&log->head, &log->state);
    if (place->segment != from && cut_file(old, place->offset, err) < 0)
        return -1;
    return remove_later(log, from, err) < 0 ? -1 : sync_segments_dir(log, err);
}

static int rewrite(struct log *log, uint64_t from, struct err *err)
{
    struct repair r = { .reason = "sync_failed" };
    struct segment_place place;
    char temp[FILE_PATH_MAX];
    CLEANUP(file_close) int fd = -1;

    if (path_join(temp, log->log_dir, "segments/.reseat", err) < 0)
        return -1;
    fd = file_open(temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, log->file_mode, err);
    if (fd < 0)
        return -1;
    if (copy_lines(log, from, fd, &place, &r, err) < 0 || file_datasync(fd, err) < 0 ||
        install(log, temp, from, &place, &r, err) < 0) {
        unlink(temp);
        return -1;
    }
    r.offset = place.offset;
    return log_add_repair(log, &r, err);
}

int log_reseat(struct log *log, struct err *err)
{
    uint64_t suspect, from;

    if (!head_suspect(&log->head, &suspect))
        return 0;
    if (log_recover(log, err) < 0)
        return -1;
    from = head_synced(&log->head);
    if (from > log->state.size)
        from = log->state.size;
    if (from < log->state.size && rewrite(log, from, err) < 0)
        return err_wrap(err, "the disk refused to sync the log");
    log_tell(log,
             "the disk refused to sync the log; what was not on disk was written anew");
    head_set_synced(&log->head, log->state.size);
    head_clear_suspect(&log->head);
    file_close(&log->segment_fd);
    log->current = false;
    return 0;
}

/* --- syncing --- */

static int open_sync_fd(struct log *log, uint64_t segment, struct err *err)
{
    char path[FILE_PATH_MAX];
    struct stat st;
    int fd;

    /* Another process may have written this segment anew, under the same name. */
    if (log->sync_fd >= 0 && log->sync_segment == segment &&
        fstat(log->sync_fd, &st) == 0 && st.st_nlink > 0)
        return 0;
    if (segment_path(path, log->log_dir, segment, err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, err);
    if (fd < 0)
        return -1;
    file_close(&log->sync_fd);
    log->sync_fd = fd;
    log->sync_segment = segment;
    return 0;
}

/* fdatasync one segment; on failure it becomes suspect. */
static int sync_segment(struct log *log, uint64_t segment, struct err *err)
{
    if (open_sync_fd(log, segment, err) < 0)
        return -1;
    if (file_datasync(log->sync_fd, err) == 0)
        return 0;
    head_set_suspect(&log->head, segment);
    file_close(&log->sync_fd);
    return -1;
}

/* Every segment that may hold events from `synced` on, up to `last`. */
static int sync_segments(struct log *log, uint64_t synced, uint64_t last, struct err *err)
{
    CLEANUP(segment_list_release) struct segment_list list = { 0 };

    if (log->sync_fd >= 0 && log->sync_segment == last && synced > last)
        return sync_segment(log, last, err);
    if (segment_list_read(&list, log->log_dir, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count && list.first[i] <= last; i++) {
        if (i + 1 < list.count && list.first[i + 1] <= synced)
            continue;
        if (sync_segment(log, list.first[i], err) < 0)
            return -1;
    }
    return sync_segments_dir(log, err);
}

static int recover_from_failure(struct log *log, struct err *err)
{
    struct err later;
    int r;

    if (log_lock(log, err) < 0)
        return -1;
    r = log_reseat(log, err);
    log_unlock(log);
    /* The `repair` event at once: we may be closing. If not now, the next batch has it.
     */
    if (r == 0 && log_begin(log, &later) == 0)
        (void)!log_commit(log, NULL, &later);
    return r;
}

/* The head knows of fewer events than were promised: it was garbled under us. */
static int mend_head(struct log *log, uint64_t upto, struct err *err)
{
    uint64_t size;
    int r;

    if (log_lock(log, err) < 0)
        return -1;
    r = log_load(log, err);
    size = log->state.size;
    if (r == 0)
        head_write(&log->head, &log->state);
    log_unlock(log);
    if (r == 0 && size < upto)
        return err_set(err, ERR_DAMAGE,
                       "the log has %" PRIu64 " events, where %" PRIu64 " were written",
                       size, upto);
    return r;
}

/* What the leader does for all who wait. */
static int sync_now(struct log *log, uint64_t upto, struct err *err)
{
    uint64_t size, segment, suspect;

    head_committed(&log->head, &size, &segment);
    if (size < upto) {
        if (mend_head(log, upto, err) < 0)
            return -1;
        head_committed(&log->head, &size, &segment);
    }
    if (!head_suspect(&log->head, &suspect) &&
        sync_segments(log, head_synced(&log->head), segment, err) == 0) {
        head_set_synced(&log->head, size);
        return 0;
    }
    if (!head_suspect(&log->head, &suspect))
        return -1;
    return recover_from_failure(log, err);
}

static int be_leader(struct log *log, uint64_t upto, struct err *err)
{
    int r;

    log->syncing = true;
    pthread_mutex_unlock(&log->sync_mutex);
    r = sync_now(log, upto, err);
    pthread_mutex_lock(&log->sync_mutex);
    log->syncing = false;
    pthread_cond_broadcast(&log->sync_done);
    return r;
}

int log_sync(struct log *log, uint64_t upto, struct err *err)
{
    int r = 0;

    pthread_mutex_lock(&log->sync_mutex);
    while (r == 0 && head_synced(&log->head) < upto) {
        if (log->syncing)
            pthread_cond_wait(&log->sync_done, &log->sync_mutex);
        else
            r = be_leader(log, upto, err);
    }
    pthread_mutex_unlock(&log->sync_mutex);
    return r;
}

/* fdatasync for this caller alone, whatever others have synced. */
static int sync_strictly(struct log *log, uint64_t upto, struct err *err)
{
    int r;

    pthread_mutex_lock(&log->sync_mutex);
    while (log->syncing)
        pthread_cond_wait(&log->sync_done, &log->sync_mutex);
    r = be_leader(log, upto, err);
    pthread_mutex_unlock(&log->sync_mutex);
    return r;
}

int log_settle(struct log *log, uint64_t upto, struct err *err)
{
    switch (log->durability) {
    case LOG_WRITE:
        return 0;
    case LOG_GROUP:
        return log_sync(log, upto, err);
    case LOG_STRICT:
        return sync_strictly(log, upto, err);
    }
    return err_set(err, ERR_REFUSED, "no such durability");
}
