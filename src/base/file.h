/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - files as evidence needs them: whole reads with a limit, atomic writes,
 * directories that are synced, mappings.
 *
 * Every descriptor is O_CLOEXEC. Paths are ours; a name that came from outside is
 * opened relative to a directory descriptor with O_NOFOLLOW. Interrupted calls are
 * retried here and nowhere else.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"

struct err;

#define FILE_PATH_MAX 4096

/* "dir/name" into `out`; fails with ERR_LIMIT when it does not fit. */
MUST_CHECK int path_join(char out[static FILE_PATH_MAX], const char *dir,
                         const char *name, struct err *err);

/* open(2) with O_CLOEXEC, retried on EINTR. Returns a descriptor or -1. */
MUST_CHECK int file_open(const char *path, int flags, mode_t mode, struct err *err);

/* flock(2), retried on EINTR; -1 with errno. */
int file_lock(int fd, int operation);

void file_close(int *fd); /* for CLEANUP; ignores -1 and sets *fd to -1 */

/* Write all of it; a short write is continued. On failure *written (may be NULL)
 * tells how much stands in the file. */
MUST_CHECK int file_write(int fd, str bytes, size_t *written, struct err *err);

/* ftruncate(2) and pread(2), retried on EINTR. */
MUST_CHECK int file_set_size(int fd, uint64_t size, struct err *err);
MUST_CHECK ssize_t file_read_at(int fd, void *out, size_t n, uint64_t offset);

MUST_CHECK int file_datasync(int fd, struct err *err);
MUST_CHECK int file_sync_dir(const char *path, struct err *err);

/* Append the whole of a regular file to `out`. A directory, a device, a fifo or more
 * than out's maximum is refused with a clear message. */
MUST_CHECK int file_read(const char *path, struct buf *out, struct err *err);

/* The same for an open descriptor, from its current offset ("-" for stdin). */
MUST_CHECK int file_read_fd(int fd, const char *name, struct buf *out, struct err *err);

/* Read exactly n bytes from the current offset into the caller's memory, with no copy
 * anywhere else: for secrets. ERR_FORMAT when the file ends before. */
MUST_CHECK int file_read_exact(int fd, const char *name, void *out, size_t n,
                               struct err *err);

/* Replace `path` by `bytes` or leave it as it was: temporary file beside it, write,
 * fsync, rename, fsync of the directory. */
MUST_CHECK int file_replace(const char *path, str bytes, mode_t mode, struct err *err);

/* The same, but fails with ERR_EXISTS when `path` is already there (link(2)), so
 * that of many racers one wins. */
MUST_CHECK int file_create(const char *path, str bytes, mode_t mode, struct err *err);

/* The same without any sync, for what can be made again: after a power cut the file may
 * be old, new or empty. */
MUST_CHECK int file_put(const char *path, str bytes, mode_t mode, struct err *err);

/* A new file, ERR_EXISTS if there is one. Until this returns, and after a crash, there
 * may be half of it: for what nobody looks at yet, and its writer looks at again. */
MUST_CHECK int file_make(const char *path, str bytes, mode_t mode, struct err *err);

/* mkdir -p with this mode for what is created. */
MUST_CHECK int file_make_dirs(const char *path, mode_t mode, struct err *err);

/* Visit the name of every entry of a directory but "." and "..", until one visit returns
 * other than 0; that is returned. A directory that could not be read to its end is an
 * error, not a shorter one. */
MUST_CHECK int file_each(const char *dir,
                         int (*visit)(void *ctx, const char *name, struct err *err),
                         void *ctx, struct err *err);

/* Remove a directory and everything in it; never follows a link. */
MUST_CHECK int file_remove_tree(const char *path, struct err *err);

/* A read-only mapping of a whole regular file; zero is the empty one. */
struct mapping {
    str bytes;
};

MUST_CHECK int mapping_open(struct mapping *m, int fd, const char *name, struct err *err);
void mapping_release(struct mapping *m);

#endif
