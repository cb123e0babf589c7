/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head - where the log ends: a small mapped file that saves every writer a search.
 *
 * Derived data, never trusted against the segments. Two slots, written in turn, each with
 * a checksum: a writer that is killed in the middle of one leaves the other. The file is
 * shared memory between processes; slots are read and written under log/lock, the atomic
 * members without it.
 */
#ifndef EVIDENCE_HEAD_H
#define EVIDENCE_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "evidence/crypto.h"
#include "evidence/segment.h"

struct err;

#define HEAD_BYTES 4096

/* The end of the log. */
struct head_state {
    uint64_t segment;   /* first seq of the segment that is written to */
    uint64_t offset;    /* its length */
    uint64_t size;      /* events */
    struct digest last; /* leaf hash of the last event; zeros for none */
};

struct head_file;

struct head {
    int fd;
    struct head_file *file;        /* the mapping */
    uint64_t left_sum, generation; /* of the slot that we wrote last; 0 for none */
};

/* Open or make it (full of zeros: no state). A file of a wrong size is set right. */
MUST_CHECK int head_open(struct head *h, const char *path, mode_t mode, struct err *err);
MUST_CHECK int head_open_to_read(struct head *h, const char *path, struct err *err);
void head_close(struct head *h); /* safe on a zeroed or closed one */

bool head_read(const struct head *h, struct head_state *out); /* false: no valid slot */
void head_write(struct head *h, const struct head_state *s);

/* Has nobody written since our own head_write()? Then the state is the one we wrote. */
bool head_is_as_left(const struct head *h);

/* How many events are known to be on disk. Only ever grows, except by head_forget(). */
uint64_t head_synced(const struct head *h);
void head_set_synced(struct head *h, uint64_t size);

/* Size and segment of the last commit, for a sync that does not take the lock. */
void head_committed(const struct head *h, uint64_t *size, uint64_t *segment);

/* A segment whose fdatasync failed, until it has been written anew. */
bool head_suspect(const struct head *h, uint64_t *segment);
void head_set_suspect(struct head *h, uint64_t segment);
void head_clear_suspect(struct head *h);

/* Which start of the machine last wrote here. What was written before the present one and
 * never synced may be gone, in any part. */
#define HEAD_BOOT 36 /* bytes of the kernel's boot_id */
bool head_is_of_boot(const struct head *h, const char boot[static HEAD_BOOT]);
void head_set_boot(struct head *h, const char boot[static HEAD_BOOT]);

/* Where the newest checkpoint's size stands, under checkpoint.lock. False: unknown. */
bool head_published(const struct head *h, struct segment_place *place);
void head_set_published(struct head *h, const struct segment_place *place);

/* Forget everything; the next user rebuilds it. `synced` restarts at a known value. */
void head_forget(struct head *h, uint64_t synced);

#endif
