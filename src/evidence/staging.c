/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define STREAM_PENDING ((size_t)64 << 10) /* bytes gathered before a write */
#define PREFIX         ".staging_"
#define RANDOM         "XXXXXX"
#define TRIES          100 /* at a directory that no sweep takes away */

/* --- the directory --- */

/* Where directories cannot be locked, nobody sweeps either. */
static bool is_kept(int fd)
{
    struct stat st;

    if (file_lock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* A sweep may come between the making and the locking. */
static int make_dir(struct staging *s, struct err *err)
{
    for (int i = 0; i < TRIES; i++) {
        char path[FILE_PATH_MAX];
        struct err why;

        if (path_join(path, s->parent, PREFIX RANDOM, err) < 0)
            return -1;
        if (!mkdtemp(path))
            return err_errno(err, "cannot make a directory in '%s'", s->parent);
        s->fd = file_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &why);
        if (s->fd >= 0 && is_kept(s->fd)) {
            memcpy(s->path, path, sizeof(path));
            return 0;
        }
        if (s->fd < 0 && why.code != ERR_NOTFOUND) {
            rmdir(path);
            *err = why;
            return -1;
        }
        file_close(&s->fd);
    }
    return err_set(err, ERR_IO, "whatever is made in '%s' is taken away", s->parent);
}

int staging_open(struct staging *s, const char *parent, struct err *err)
{
    *s = (struct staging){ .fd = -1 };
    if (file_make_dirs(parent, 0700, err) < 0)
        return -1;
    snprintf(s->parent, sizeof(s->parent), "%s", parent);
    return make_dir(s, err);
}

static int sweep_one(void *ctx, const char *name, struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    const char *const *parent = ctx;
    char path[FILE_PATH_MAX];
    struct err ignored;

    (void)err;
    if (!str_starts(str_from(name), STR(PREFIX)) ||
        strlen(name) != strlen(PREFIX RANDOM) ||
        path_join(path, *parent, name, &ignored) < 0)
        return 0;
    fd = file_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &ignored);
    if (fd >= 0 && file_lock(fd, LOCK_EX | LOCK_NB) == 0 &&
        file_remove_tree(path, &ignored) < 0)
        return 0;
    return 0;
}

void staging_sweep(const char *parent)
{
    struct err ignored;

    if (file_each(parent, sweep_one, &parent, &ignored) < 0)
        return;
}

/* --- its files --- */

int stream_open(struct stream *f, struct staging *s, const char *name, struct err *err)
{
    char path[FILE_PATH_MAX];
    int fd;

    if (s->count == STAGING_FILES_MAX || strlen(name) >= STAGING_NAME_MAX)
        return err_set(err, ERR_LIMIT, "too many files, or a name too long: '%s'", name);
    if (path_join(path, s->path, name, err) < 0)
        return -1;
    fd = file_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
    if (fd < 0)
        return -1;
    *f = (struct stream){ .staging = s, .fd = fd };
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->pending.max = 2 * STREAM_PENDING;
    hasher_init(&f->hasher);
    return 0;
}

static void write_out(struct stream *f, str bytes)
{
    struct err ignored;

    if (f->failed || file_write(f->fd, bytes, NULL, &ignored) == 0)
        return;
    f->failed = true;
    f->error = errno;
}

static void flush(struct stream *f)
{
    write_out(f, buf_str(&f->pending));
    buf_reset(&f->pending);
}

void stream_add(struct stream *f, str bytes)
{
    hasher_add(&f->hasher, bytes);
    f->bytes += bytes.n;
    if (f->pending.n + bytes.n > STREAM_PENDING)
        flush(f);
    if (bytes.n > STREAM_PENDING)
        write_out(f, bytes);
    else
        buf_add(&f->pending, bytes);
    if (f->pending.failed) {
        f->failed = true;
        f->error = ENOMEM;
    }
}

int stream_finish(struct stream *f, struct err *err)
{
    struct staged_file *done = &f->staging->files[f->staging->count];

    flush(f);
    if (f->failed) {
        errno = f->error;
        return err_errno(err, "cannot write '%s'", f->name);
    }
    if (file_datasync(f->fd, err) < 0)
        return err_wrap(err, "cannot write '%s'", f->name);
    memcpy(done->name, f->name, sizeof(done->name));
    done->bytes = f->bytes;
    done->sha256 = hasher_finish(&f->hasher);
    f->staging->count++;
    stream_release(f);
    return 0;
}

void stream_release(struct stream *f)
{
    if (!f->staging)
        return;
    file_close(&f->fd);
    buf_release(&f->pending);
    f->staging = NULL;
}

int staging_add(struct staging *s, const char *name, str bytes, struct err *err)
{
    CLEANUP(stream_release) struct stream f = { 0 };

    if (stream_open(&f, s, name, err) < 0)
        return -1;
    stream_add(&f, bytes);
    return stream_finish(&f, err);
}

int staging_publish(struct staging *s, const char *name, struct err *err)
{
    char target[FILE_PATH_MAX];

    if (path_join(target, s->parent, name, err) < 0 || file_sync_dir(s->path, err) < 0)
        return -1;
    if (renameat2(AT_FDCWD, s->path, AT_FDCWD, target, RENAME_NOREPLACE) < 0) {
        if (errno == EEXIST || errno == ENOTEMPTY)
            return err_set(err, ERR_EXISTS, "'%s' is already there", target);
        if (errno != EINVAL && errno != ENOSYS)
            return err_errno(err, "cannot rename '%s' to '%s'", s->path, target);
        /* A file system without that flag: rename(2) replaces only an empty directory. */
        if (rename(s->path, target) < 0)
            return err_errno(err, "cannot rename '%s' to '%s'", s->path, target);
    }
    s->path[0] = '\0';
    file_close(&s->fd);
    return file_sync_dir(s->parent, err);
}

void staging_release(struct staging *s)
{
    struct err ignored;

    if (!s->path[0])
        return;
    if (file_remove_tree(s->path, &ignored) == 0) /* else a sweep may */
        s->path[0] = '\0';
    file_close(&s->fd);
}
