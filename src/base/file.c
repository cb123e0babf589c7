/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

int path_join(char out[static FILE_PATH_MAX], const char *dir, const char *name,
              struct err *err)
{
    int n = snprintf(out, FILE_PATH_MAX, "%s/%s", dir, name);

    if (n < 0 || n >= FILE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the path of '%s' is longer than %d bytes", name,
                       FILE_PATH_MAX - 1);
    return 0;
}

int file_open(const char *path, int flags, mode_t mode, struct err *err)
{
    int fd;

    /* Who follows no link wants a file of ours: a pipe put there must not hold us up. */
    if (flags & O_NOFOLLOW)
        flags |= O_NONBLOCK;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        return fd;
    err_errno(err, "cannot open '%s'", path);
    if (errno == EEXIST)
        err->code = ERR_EXISTS;
    return -1;
}

int file_lock(int fd, int operation)
{
    int r;

    do
        r = flock(fd, operation);
    while (r < 0 && errno == EINTR);
    return r;
}

void file_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int file_write(int fd, str bytes, size_t *written, struct err *err)
{
    size_t done = 0;

    while (done < bytes.n) {
        ssize_t n = write(fd, bytes.p + done, bytes.n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        done += (size_t)n;
    }
    if (written)
        *written = done;
    return done == bytes.n ? 0 : err_errno(err, "write");
}

int file_set_size(int fd, uint64_t size, struct err *err)
{
    int r;

    do
        r = ftruncate(fd, (off_t)size);
    while (r < 0 && errno == EINTR);
    return r < 0 ? err_errno(err, "ftruncate") : 0;
}

ssize_t file_read_at(int fd, void *out, size_t n, uint64_t offset)
{
    ssize_t r;

    do
        r = pread(fd, out, n, (off_t)offset);
    while (r < 0 && errno == EINTR);
    return r;
}

int file_datasync(int fd, struct err *err)
{
    int r;

    do
        r = fdatasync(fd);
    while (r < 0 && errno == EINTR);
    return r < 0 ? err_errno(err, "fdatasync") : 0;
}

static int sync_fd(int fd, const char *path, struct err *err)
{
    int r;

    do
        r = fsync(fd);
    while (r < 0 && errno == EINTR);
    return r < 0 ? err_errno(err, "cannot sync '%s'", path) : 0;
}

int file_sync_dir(const char *path, struct err *err)
{
    CLEANUP(file_close) int fd = file_open(path, O_RDONLY | O_DIRECTORY, 0, err);

    return fd < 0 ? -1 : sync_fd(fd, path, err);
}

/* A full buffer may be exactly the file: only one byte more tells. */
static int at_end(int fd, const char *name, size_t max, struct err *err)
{
    char more;
    ssize_t n;

    do
        n = read(fd, &more, 1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, "cannot read '%s'", name);
    return n == 0 ? 0
                  : err_set(err, ERR_LIMIT, "'%s' is larger than %zu bytes", name, max);
}

static int read_all(int fd, const char *name, struct buf *out, struct err *err)
{
    size_t max = out->max ? out->max : BUF_MAX_DEFAULT;

    while (out->n < max) {
        size_t want = max - out->n < 65536 ? max - out->n : 65536;
        char *to = buf_room(out, want);
        ssize_t n;

        if (!to)
            return err_set(err, ERR_NOMEM, "no memory to read '%s'", name);
        n = read(fd, to, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, "cannot read '%s'", name);
        if (n == 0)
            return 0;
        out->n += (size_t)n;
    }
    return at_end(fd, name, max, err);
}

int file_read_fd(int fd, const char *name, struct buf *out, struct err *err)
{
    size_t before = out->n;

    if (read_all(fd, name, out, err) == 0)
        return 0;
    out->n = before;
    return -1;
}

int file_read_exact(int fd, const char *name, void *out, size_t n, struct err *err)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = read(fd, (char *)out + done, n - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, "cannot read '%s'", name);
        if (got == 0)
            return err_set(err, ERR_FORMAT, "'%s' is shorter than %zu bytes", name, n);
        done += (size_t)got;
    }
    return 0;
}

int file_read(const char *path, struct buf *out, struct err *err)
{
    CLEANUP(file_close)
    int fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_errno(err, "cannot look at '%s'", path);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is a directory, not a file", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is not a regular file", path);
    return file_read_fd(fd, path, out, err);
}

static int parent_of(char out[static FILE_PATH_MAX], const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 1;

    if (n >= FILE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "path is too long");
    if (slash == path)
        n = 1;
    memcpy(out, slash ? path : ".", n);
    out[n] = '\0';
    return 0;
}

/* A new file beside `path`; its name goes to `temp`. */
static int open_temp(char temp[static FILE_PATH_MAX], const char *path, struct err *err)
{
    int fd;

    do {
        int n = snprintf(temp, FILE_PATH_MAX, "%s.tmp-XXXXXX", path);

        if (n < 0 || n >= FILE_PATH_MAX)
            return err_set(err, ERR_LIMIT, "path is too long");
        fd = mkostemp(temp, O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? err_errno(err, "cannot write '%s'", path) : fd;
}

/* A finished temporary file beside `path`; its name goes to `temp`. */
/* What the new file at `path` is to hold. When that fails, it is gone. */
static int fill(int fd, const char *path, str bytes, mode_t mode, bool synced,
                struct err *err)
{
    if (fchmod(fd, mode) < 0)
        err_errno(err, "cannot set the mode of '%s'", path);
    else if (file_write(fd, bytes, NULL, err) < 0)
        err_wrap(err, "cannot write '%s'", path);
    else if (!synced || sync_fd(fd, path, err) == 0) {
        close(fd);
        return 0;
    }
    close(fd);
    unlink(path);
    return -1;
}

static int write_temp(char temp[static FILE_PATH_MAX], const char *path, str bytes,
                      mode_t mode, bool synced, struct err *err)
{
    int fd = open_temp(temp, path, err);

    return fd < 0 ? -1 : fill(fd, temp, bytes, mode, synced, err);
}

static int sync_parent(const char *path, struct err *err)
{
    char parent[FILE_PATH_MAX];

    return parent_of(parent, path, err) < 0 ? -1 : file_sync_dir(parent, err);
}

static int replace(const char *path, str bytes, mode_t mode, bool synced, struct err *err)
{
    char temp[FILE_PATH_MAX];

    if (write_temp(temp, path, bytes, mode, synced, err) < 0)
        return -1;
    if (rename(temp, path) < 0) {
        err_errno(err, "cannot rename to '%s'", path);
        unlink(temp);
        return -1;
    }
    return synced ? sync_parent(path, err) : 0;
}

int file_replace(const char *path, str bytes, mode_t mode, struct err *err)
{
    return replace(path, bytes, mode, true, err);
}

int file_put(const char *path, str bytes, mode_t mode, struct err *err)
{
    return replace(path, bytes, mode, false, err);
}

int file_make(const char *path, str bytes, mode_t mode, struct err *err)
{
    int fd = file_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600, err);

    return fd < 0 ? -1 : fill(fd, path, bytes, mode, false, err);
}

int file_create(const char *path, str bytes, mode_t mode, struct err *err)
{
    char temp[FILE_PATH_MAX];
    int failed;

    if (write_temp(temp, path, bytes, mode, true, err) < 0)
        return -1;
    failed = link(temp, path) < 0 ? errno : 0;
    unlink(temp);
    if (failed == EEXIST)
        return err_set(err, ERR_EXISTS, "'%s' is already there", path);
    errno = failed;
    if (failed)
        return err_errno(err, "cannot create '%s'", path);
    return sync_parent(path, err);
}

int file_make_dirs(const char *path, mode_t mode, struct err *err)
{
    char part[FILE_PATH_MAX];
    size_t n = strlen(path);
    struct stat st;

    if (n == 0 || n >= sizeof(part))
        return err_set(err, ERR_LIMIT, "the path of a directory is empty or too long");
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return err_errno(err, "cannot create the directory '%s'", part);
    }
    if (stat(path, &st) < 0)
        return err_errno(err, "cannot look at '%s'", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is not a directory", path);
    return 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int file_each(const char *path,
              int (*visit)(void *ctx, const char *name, struct err *err), void *ctx,
              struct err *err)
{
    struct dirent *entry;
    DIR *dir;
    int r = 0;

    do
        dir = opendir(path);
    while (!dir && errno == EINTR);
    if (!dir)
        return err_errno(err, "cannot list '%s'", path);
    while (r == 0) {
        errno = 0;
        entry = readdir(dir);
        if (!entry && errno)
            r = err_errno(err, "cannot list '%s'", path);
        if (!entry)
            break;
        if (!is_dots(entry->d_name))
            r = visit(ctx, entry->d_name, err);
    }
    closedir(dir);
    return r;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int file_remove_tree(const char *path, struct err *err)
{
    int r;

    do
        r = nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    while (r < 0 && errno == EINTR);
    return r < 0 && errno != ENOENT ? err_errno(err, "cannot remove '%s'", path) : 0;
}

int mapping_open(struct mapping *m, int fd, const char *name, struct err *err)
{
    struct stat st;
    void *p;

    if (fstat(fd, &st) < 0)
        return err_errno(err, "cannot look at '%s'", name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is not a regular file", name);
    if (st.st_size == 0) {
        *m = (struct mapping){ .bytes = STR("") };
        return 0;
    }
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_errno(err, "cannot map '%s'", name);
    m->bytes = str_of(p, (size_t)st.st_size);
    return 0;
}

void mapping_release(struct mapping *m)
{
    union {
        const char *in;
        void *out;
    } p = { m->bytes.p }; /* munmap takes what mmap gave */

    if (m->bytes.n)
        munmap(p.out, m->bytes.n);
    *m = (struct mapping){ .bytes = { NULL, 0 } };
}
