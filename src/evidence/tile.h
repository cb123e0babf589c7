/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile - the tree on disk: C2SP tlog-tiles hash tiles, 256 hashes each.
 *
 * Derived data: everything here can be rebuilt from the segments, and a reader of
 * proofs compares what tiles say with a signed root. Tiles are written by whoever holds
 * checkpoint.lock; a full tile never changes.
 *
 *     <dir>/<L>/<N>          full:    256 hashes, 8,192 bytes
 *     <dir>/<L>/<N>.p/<W>    partial: W hashes (1 to 255), for every checkpointed size
 */
#ifndef EVIDENCE_TILE_H
#define EVIDENCE_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "evidence/tree.h"

struct err;

#define TILE_WIDTH    256
#define TILE_BYTES    (TILE_WIDTH * DIGEST_SIZE)
#define TILE_LEVELS   8 /* 256^8 leaves: more than a log can hold */
#define TILE_PATH_MAX 64

/* "0/x001/x234/067" or "0/x001/x234/067.p/5" (width 256 is a full tile), NUL-terminated.
 */
void tile_path(char out[static TILE_PATH_MAX], unsigned level, uint64_t index,
               unsigned width);

/* Reads hashes of a tree of `size` leaves from the tiles below `dir`, keeping the few
 * tiles that a proof needs. A missing or short tile is ERR_DAMAGE. */
struct tile_reader {
    const char *dir; /* borrowed */
    uint64_t size;
    struct tile_cache *cache; /* the last tiles read */
};

void tile_reader_init(struct tile_reader *r, const char *dir, uint64_t size);
void tile_reader_release(struct tile_reader *r);
struct hashes tile_reader_hashes(struct tile_reader *r);

/* Extends the tiles from one checkpointed size to the next: open at the old size (its
 * partial tiles are read; 0 needs none), add every leaf, finish at the new size. Nothing
 * is synced. A full tile that stands is left alone; one that a power cut has emptied or
 * torn is written again. */
struct tile_writer {
    const char *dir; /* borrowed */
    uint64_t size;   /* leaves so far */
    uint64_t began;  /* and at the beginning; 0: everything is made anew */
    bool group;      /* readable by the group; set after opening */
    bool check;      /* compare instead of writing: a tile that differs is ERR_DAMAGE */
    struct digest (*edge)[TILE_WIDTH]; /* TILE_LEVELS unfinished tiles */
};

MUST_CHECK int tile_writer_open(struct tile_writer *w, const char *dir, uint64_t size,
                                struct err *err);

/* Writes the tiles that become full with this leaf and removes their .p directories. */
MUST_CHECK int tile_writer_add(struct tile_writer *w, const struct digest *leaf,
                               struct err *err);

/* Write the partial tiles of this size. */
MUST_CHECK int tile_writer_finish(struct tile_writer *w, struct err *err);

/* The root of what has been added, from the tiles' own hashes. */
struct digest tile_writer_root(const struct tile_writer *w);
void tile_writer_release(struct tile_writer *w);

#endif
