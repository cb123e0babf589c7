/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extend - bring the tiles up to the end of the log, under checkpoint.lock.
 *
 * What this process wrote itself it knows the hashes of, if they are lent (leaves.h). All
 * else is read back from the segments and hashed again. Either must be the history that
 * `end` ends, which is synced by now. Tiles that do not give the root of the newest
 * checkpoint are made anew.
 */
#ifndef EVIDENCE_EXTEND_H
#define EVIDENCE_EXTEND_H

#include "evidence/log_internal.h"
#include "evidence/tile.h"

struct extension {
    struct log *log;
    char tile_dir[FILE_PATH_MAX];
    struct checkpoint newest; /* what was published before */
    struct head_state end;    /* the log as it is to be published */
    bool lent;                /* log->leaves, up to that end */
    struct digest root;       /* of all events: the answer */

    struct tile_writer tiles; /* from here on: its own affair */
    struct segment_reader lines;
    struct digest last; /* leaf of the last event in the tiles */
};

MUST_CHECK int extend_tiles(struct extension *x, struct err *err);

/* All of them anew, up to the newest checkpoint, behind which *place is then. */
MUST_CHECK int extend_anew(struct extension *x, struct segment_place *place,
                           struct err *err);

#endif
