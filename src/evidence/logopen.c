/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of a writer's life: log_open() and log_close(). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/log_internal.h"
#include "evidence/tile.h"

#define NAMED_MAX                                                                        \
    250 /* writers that a chain_start names: more would not fit its line                 \
         */

static const char *const durability_names[] = { "write", "group", "strict" };
static const char *const on_failure_names[] = { "pass", "block" };

static void read_boot(char out[static HEAD_BOOT])
{
    CLEANUP(buf_release) struct buf text = { .max = 256 };
    struct err ignored;

    if (file_read("/proc/sys/kernel/random/boot_id", &text, &ignored) == 0 &&
        text.n >= HEAD_BOOT)
        memcpy(out, text.p, HEAD_BOOT);
}

static struct log *log_new(const struct log_options *o, struct err *err)
{
    struct log *log = calloc(1, sizeof(*log));

    if (!log) {
        err_set(err, ERR_NOMEM, "no memory");
        return NULL;
    }
    read_boot(log->boot);
    log->keys = *o->keys;
    log->clock = *o->clock;
    log->entropy = *o->entropy;
    log->durability = o->durability;
    log->on_failure = o->on_failure;
    log->pepper_check = o->pepper_check;
    log->segment_max = o->segment_max ? o->segment_max : LOG_SEGMENT_MAX;
    log->group = o->group;
    log->dir_mode = o->group == (gid_t)-1 ? 0700 : 0750;
    log->file_mode = o->group == (gid_t)-1 ? 0600 : 0640;
    log->say = o->say;
    log->say_ctx = o->say_ctx;
    log->lock_fd = log->checkpoint_fd = log->segment_fd = log->sync_fd = -1;
    log->head.fd = log->live.fd = -1;
    log->batch.max = LOG_BATCH_MAX;
    pthread_mutex_init(&log->mutex, NULL);
    pthread_mutex_init(&log->loss_mutex, NULL);
    pthread_mutex_init(&log->sync_mutex, NULL);
    pthread_mutex_init(&log->publish_mutex, NULL);
    pthread_cond_init(&log->sync_done, NULL);
    return log;
}

void log_abandon(struct log *log)
{
    if (!log)
        return;
    live_abandon(&log->live);
    head_close(&log->head);
    latch_close(&log->latch);
    file_close(&log->lock_fd);
    file_close(&log->checkpoint_fd);
    file_close(&log->segment_fd);
    file_close(&log->sync_fd);
    buf_release(&log->batch);
    leaves_release(&log->leaves);
    pthread_mutex_destroy(&log->mutex);
    pthread_mutex_destroy(&log->loss_mutex);
    pthread_mutex_destroy(&log->sync_mutex);
    pthread_mutex_destroy(&log->publish_mutex);
    pthread_cond_destroy(&log->sync_done);
    free(log);
}

/* --- directories --- */

static int check_owner(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_errno(err, "cannot look at '%s'", path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_REFUSED, "'%s' belongs to another user (uid %u)", path,
                       (unsigned)st.st_uid);
    return 0;
}

static int make_dir(const struct log *log, const char *parent, const char *name,
                    mode_t mode, struct err *err)
{
    char path[FILE_PATH_MAX];

    if (path_join(path, parent, name, err) < 0)
        return -1;
    if (mkdir(path, mode) < 0) {
        if (errno != EEXIST)
            return err_errno(err, "cannot create the directory '%s'", path);
        return check_owner(path, err);
    }
    if (mode == 0750 &&
        (chown(path, (uid_t)-1, log->group) < 0 || chmod(path, 02750) < 0))
        return err_errno(err, "cannot give '%s' to the auditors' group", path);
    return 0;
}

/* Nothing of an audit directory belongs into version control. */
static int ignore_in_git(const char *dir, struct err *err)
{
    char path[FILE_PATH_MAX];

    if (path_join(path, dir, ".gitignore", err) < 0)
        return -1;
    if (access(path, F_OK) == 0 || file_create(path, STR("*\n"), 0600, err) == 0)
        return 0;
    return err->code == ERR_EXISTS ? 0 : -1;
}

static int make_dirs(struct log *log, const char *dir, struct err *err)
{
    static const char *const private_dirs[] = { "live", "receipts", "packs" };
    static const char *const log_dirs[] = { "segments", "tile", "torn" };

    if (file_make_dirs(dir, 0700, err) < 0)
        return err_wrap(err, "no place for evidence in '%s'", dir);
    if (check_owner(dir, err) < 0)
        return -1;
    if (!realpath(dir, log->dir))
        return err_errno(err, "cannot resolve '%s'", dir);
    if (path_join(log->log_dir, log->dir, "log", err) < 0 ||
        make_dir(log, log->dir, "log", log->dir_mode, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(private_dirs); i++) {
        if (make_dir(log, log->dir, private_dirs[i], 0700, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < COUNT(log_dirs); i++) {
        if (make_dir(log, log->log_dir, log_dirs[i], log->dir_mode, err) < 0)
            return -1;
    }
    return ignore_in_git(log->dir, err);
}

static bool is_new(const struct log *log)
{
    char origin[FILE_PATH_MAX];
    struct err ignored;

    return path_join(origin, log->log_dir, "origin", &ignored) == 0 &&
           access(origin, F_OK) < 0;
}

/* Lock files are made with the log and never again: two processes with two lock files
 * would write two histories. */
static int open_lock(const struct log *log, const char *name, int *fd, struct err *err)
{
    int flags = O_RDWR | O_NOFOLLOW | (is_new(log) ? O_CREAT : 0);
    char path[FILE_PATH_MAX];

    if (path_join(path, log->log_dir, name, err) < 0)
        return -1;
    *fd = file_open(path, flags, log->file_mode, err);
    if (*fd >= 0)
        return 0;
    if (err->code == ERR_NOTFOUND)
        err_set(
            err, ERR_DAMAGE,
            "'%s' is missing, while other recorders may still hold it; stop them, then "
            "run 'assay log rebuild'",
            path);
    return -1;
}

/* With the log, the lock file gets its kind: who comes later finds it there. */
static int choose_kind(const struct log *log, struct err *err)
{
    int r;

    if (!latch_fits(log->lock_fd))
        return 0;
    if (file_lock(log->lock_fd, LOCK_EX) < 0)
        return err_errno(err, "cannot lock '%s'", log->lock_path);
    r = latch_make(log->lock_fd, err);
    file_lock(log->lock_fd, LOCK_UN);
    return r < 0 ? err_wrap(err, "cannot make '%s'", log->lock_path) : 0;
}

static int refuse_lock(const struct log *log, const char *why, struct err *err)
{
    return err_set(err, ERR_DAMAGE,
                   "'%s' %s; stop all recorders, then run 'assay log rebuild'",
                   log->lock_path, why);
}

static int open_latch(struct log *log, struct err *err)
{
    bool latch;

    if (is_new(log) && choose_kind(log, err) < 0)
        return -1;
    if (latch_is(log->lock_fd, &latch, err) < 0)
        return err->code == ERR_FORMAT ? refuse_lock(log, "is no lock file any more", err)
                                       : -1;
    if (latch && !latch_fits(log->lock_fd))
        return refuse_lock(log, "was made on another kind of file system", err);
    return latch ? latch_open(&log->latch, log->lock_fd, err) : 0;
}

static int open_files(struct log *log, struct err *err)
{
    char path[FILE_PATH_MAX];
    bool new_key;

    if (open_lock(log, "lock", &log->lock_fd, err) < 0 || log_know_lock(log, err) < 0 ||
        open_latch(log, err) < 0 ||
        open_lock(log, "checkpoint.lock", &log->checkpoint_fd, err) < 0 ||
        origin_read_or_new(&log->origin, log->log_dir, &log->keys, &log->entropy,
                           log->file_mode, &new_key, err) < 0)
        return -1;
    if (new_key)
        log_tell(log, "created the signing key '%s' in %s", KEYS_DEFAULT_SIGNER,
                 log->keys.dir);
    if (path_join(path, log->log_dir, "head", err) < 0)
        return -1;
    return head_open(&log->head, path, log->file_mode, err);
}

/* --- is this the log that we know? --- */

static int refuse_rollback(const struct log *log, const struct checkpoint *known,
                           struct err *err)
{
    return err_set(err, ERR_DAMAGE,
                   "%" PRIu64 " events of this log were signed before, and it does not "
                   "extend them: it was rolled back, restored or copied. Nothing is "
                   "written. To begin a new log, move '%s' away",
                   known->size, log->log_dir);
}

/* As far as the tiles tell at once; log_checkpoint() compares again before it signs. */
static int check_remembered(struct log *log, const struct checkpoint *newest,
                            struct err *err)
{
    struct tile_reader tiles;
    struct checkpoint known;
    struct hashes hashes;
    struct digest root;
    char path[FILE_PATH_MAX];
    struct err ignored;
    int r;

    if (origin_remembered(&log->origin, &log->keys, &known, err) < 0 ||
        path_join(path, log->log_dir, "tile", err) < 0)
        return -1;
    if (known.size > log->state.size)
        return refuse_rollback(log, &known, err);
    if (known.size == 0 || known.size > newest->size)
        return 0;
    tile_reader_init(&tiles, path, newest->size);
    hashes = tile_reader_hashes(&tiles);
    r = tree_root(&hashes, known.size, &root, &ignored);
    tile_reader_release(&tiles);
    if (r == 0 && !digest_equal(&root, &known.root))
        return refuse_rollback(log, &known, err);
    return 0;
}

static int check_history(struct log *log, struct err *err)
{
    struct checkpoint newest;

    if (origin_checkpoint(&log->origin, log->log_dir, &newest, NULL, err) < 0)
        return -1;
    if (newest.size > log->state.size)
        return err_set(err, ERR_DAMAGE,
                       "the log has %" PRIu64
                       " events, but its checkpoint was signed over "
                       "%" PRIu64 ": its end was cut off. Nothing is written. To begin a "
                       "new log, move '%s' away",
                       log->state.size, newest.size, log->log_dir);
    return check_remembered(log, &newest, err);
}

/* The signer must be here now, not when the first checkpoint is due. */
static int check_signer(struct log *log, struct err *err)
{
    CLEANUP(signer_release) struct signer signer = { 0 };

    return origin_signer(&log->origin, &log->keys, &signer, err);
}

/* Look at the end of the log before we promise anything. The quick test of log_begin()
 * trusts the head of this morning; here its last line is hashed. */
static int look_at_end(struct log *log, struct err *err)
{
    int r;

    if (log_lock(log, err) < 0)
        return -1;
    r = log_recover(log, err);
    if (r == 0)
        r = check_history(log, err);
    log_unlock(log);
    return r;
}

/* --- chain_start and chain_end --- */

static void add_writers(struct event *e, const struct live_list *all, const char *name,
                        bool alive, const char *except)
{
    str names[NAMED_MAX];
    size_t count = 0;

    for (size_t i = 0; i < all->count && count < NAMED_MAX; i++) {
        if (all->entry[i].alive == alive && strcmp(all->entry[i].writer, except) != 0)
            names[count++] = str_from(all->entry[i].writer);
    }
    event_add_texts(e, name, names, count);
}

static int append_start(struct log *log, struct err *err)
{
    CLEANUP(live_list_release) struct live_list all = { 0 };
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(buf_release) struct buf vkey = { 0 };
    const struct event *events[] = { &e };

    if (live_list(&all, log->dir, err) < 0)
        return -1;
    note_key_add(&vkey, &log->origin.keys[0]);
    event_init(&e, EVENT_CHAIN_START);
    event_add_cstr(&e, "version", ASSAY_VERSION);
    event_add_text(&e, "vkey", buf_str(&vkey));
    event_add_cstr(&e, "durability", durability_names[log->durability]);
    event_add_cstr(&e, "on_failure", on_failure_names[log->on_failure]);
    if (log->pepper_check)
        event_add_cstr(&e, "pepper_check", log->pepper_check);
    add_writers(&e, &all, "live", true, log->writer);
    add_writers(&e, &all, "dead", false, log->writer);
    return log_append(log, events, 1, NULL, err);
}

static int open_parts(struct log *log, const struct log_options *o, struct err *err)
{
    if (make_dirs(log, o->dir, err) < 0 || open_files(log, err) < 0 ||
        check_signer(log, err) < 0 || look_at_end(log, err) < 0 ||
        entropy_id(&log->entropy, log->writer, "w_", err) < 0)
        return -1;
    if (live_open(&log->live, log->dir, log->writer, log->state.size, err) < 0)
        return -1;
    if (append_start(log, err) == 0)
        return 0;
    live_close(&log->live); /* nothing of ours stands in the log */
    return -1;
}

int log_open(struct log **out, const struct log_options *o, struct err *err)
{
    struct log *log = log_new(o, err);

    if (!log)
        return -1;
    if (open_parts(log, o, err) < 0) {
        log_abandon(log);
        return -1;
    }
    *out = log;
    return 0;
}

/* With every recorder stopped, a missing lock file may be made again. */
static int remake_lock(const struct log *log, const char *name, int *fd, struct err *err)
{
    char path[FILE_PATH_MAX];

    if (path_join(path, log->log_dir, name, err) < 0)
        return -1;
    *fd = file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, log->file_mode, err);
    return *fd < 0 ? -1 : 0;
}

/* A new one, which has its kind when it gets its name: who comes meanwhile finds either
 * none or this one. */
static int replace_lock(struct log *log, const char *path, struct err *err)
{
    char temp[FILE_PATH_MAX];
    int r;

    if (path_join(temp, log->log_dir, ".lock.new", err) < 0)
        return -1;
    unlink(temp);
    log->lock_fd =
        file_open(temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, log->file_mode, err);
    if (log->lock_fd < 0)
        return -1;
    r = latch_fits(log->lock_fd) ? latch_make(log->lock_fd, err) : 0;
    if (r == 0 && rename(temp, path) < 0)
        r = err_errno(err, "cannot rename to '%s'", path);
    if (r < 0)
        unlink(temp);
    return r;
}

/* Is it there, a lock file, and one for this file system? */
static bool is_good_lock(int fd)
{
    bool latch;
    struct err ignored;

    return fd >= 0 && latch_is(fd, &latch, &ignored) == 0 && (!latch || latch_fits(fd));
}

static int remake_locks(struct log *log, struct err *err)
{
    char path[FILE_PATH_MAX];

    if (path_join(path, log->log_dir, "lock", err) < 0)
        return -1;
    log->lock_fd = file_open(path, O_RDWR | O_NOFOLLOW, 0, err);
    if (log->lock_fd < 0 && err->code != ERR_NOTFOUND)
        return -1;
    if (!is_good_lock(log->lock_fd)) {
        file_close(&log->lock_fd);
        if (replace_lock(log, path, err) < 0)
            return -1;
    }
    if (log_know_lock(log, err) < 0 || open_latch(log, err) < 0)
        return -1;
    return remake_lock(log, "checkpoint.lock", &log->checkpoint_fd, err);
}

static int open_to_mend(struct log *log, const struct log_options *o, struct err *err)
{
    char path[FILE_PATH_MAX];

    if (!realpath(o->dir, log->dir))
        return err_errno(err, "cannot resolve '%s'", o->dir);
    if (path_join(log->log_dir, log->dir, "log", err) < 0 ||
        origin_read(&log->origin, log->log_dir, err) < 0 ||
        check_owner(log->log_dir, err) < 0 || make_dirs(log, o->dir, err) < 0 ||
        remake_locks(log, err) < 0 || path_join(path, log->log_dir, "head", err) < 0)
        return -1;
    return head_open(&log->head, path, log->file_mode, err);
}

int log_open_to_mend(struct log **out, const struct log_options *o, struct err *err)
{
    struct log *log = log_new(o, err);

    if (!log)
        return -1;
    log->mending = true;
    if (open_to_mend(log, o, err) < 0) {
        log_abandon(log);
        return -1;
    }
    *out = log;
    return 0;
}

static int append_end(struct log *log, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };

    event_init(&e, EVENT_CHAIN_END);
    return log_append(log, events, 1, NULL, err);
}

/* Nobody else will: what `gap` could not say in the log is said to a person. */
static void tell_untold(const struct log *log)
{
    uint64_t untold = log->lost_total - log->told_total;

    if (untold)
        log_tell(log,
                 "evidence of %" PRIu64
                 " event%s was lost (%s), and the log does not say so",
                 untold, plural(untold), log->loss.reason);
}

int log_close(struct log *log, struct err *err)
{
    int r = append_end(log, err);

    tell_untold(log);
    if (r == 0)
        live_close(&log->live); /* our story is complete; others need not finish it */
    if (r == 0)
        r = log_checkpoint(log, true, err);
    log_abandon(log);
    return r;
}
