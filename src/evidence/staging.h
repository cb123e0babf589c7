/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging - a directory that is built out of sight and appears at once.
 *
 * Files are written through a buffer and hashed on the way, so that nothing is read
 * twice and nothing large is held. Nothing has its final name before everything in it is
 * on disk. Until then it is `.staging_…`, and its maker holds a lock on it, so that what
 * one that died left behind can be told from what is being made.
 */
#ifndef EVIDENCE_STAGING_H
#define EVIDENCE_STAGING_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "evidence/crypto.h"

struct err;

#define STAGING_FILES_MAX 16
#define STAGING_NAME_MAX  64

/* A file that stands. */
struct staged_file {
    char name[STAGING_NAME_MAX];
    struct digest sha256;
    uint64_t bytes;
};

/* All zero is none. */
struct staging {
    char parent[FILE_PATH_MAX];
    char path[FILE_PATH_MAX]; /* "" when there is nothing to clean up */
    int fd;                   /* its lock, while there is a path */
    struct staged_file files[STAGING_FILES_MAX];
    size_t count;
};

/* Make an empty directory below `parent`, which is made too. */
MUST_CHECK int staging_open(struct staging *s, const char *parent, struct err *err);

/* A whole file. */
MUST_CHECK int staging_add(struct staging *s, const char *name, str bytes,
                           struct err *err);

/* A file that is written bit by bit. Failures wait for stream_finish(). */
struct stream {
    struct staging *staging;
    char name[STAGING_NAME_MAX];
    int fd;
    struct buf pending;
    struct hasher hasher;
    uint64_t bytes;
    bool failed;
    int error; /* errno of the first failed write */
};

MUST_CHECK int stream_open(struct stream *f, struct staging *s, const char *name,
                           struct err *err);
void stream_add(struct stream *f, str bytes);
MUST_CHECK int stream_finish(struct stream *f, struct err *err);
void stream_release(struct stream *f); /* safe on a zeroed or finished one */

/* Sync everything and give the directory its name below `parent`. ERR_EXISTS when the
 * name is taken. */
MUST_CHECK int staging_publish(struct staging *s, const char *name, struct err *err);

/* Remove what was not published. */
void staging_release(struct staging *s);

/* Remove what died below `parent`, which need not exist. What cannot be locked or removed
 * stays: it is in nobody's way. */
void staging_sweep(const char *parent);

#endif
