/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment - the files that hold the events: log/segments/<first seq, 20 digits>.jsonl.
 *
 * Reading only, a line at a time, in memory that does not grow with the log. Whether the
 * lines are what they should be is for others to say: see event.h and logcheck.h.
 */
#ifndef EVIDENCE_SEGMENT_H
#define EVIDENCE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

struct err;

#define SEGMENTS_MAX 1000000 /* files that one log may have: 64 TiB of events */

/* The first seqs of all segments, ascending. Other files are passed over. */
struct segment_list {
    uint64_t *first;
    size_t count;
};

/* `log_dir` is <audit directory>/log. No segments directory: an empty list. */
MUST_CHECK int segment_list_read(struct segment_list *l, const char *log_dir,
                                 struct err *err);
void segment_list_release(struct segment_list *l);

MUST_CHECK int segment_path(char out[static FILE_PATH_MAX], const char *log_dir,
                            uint64_t first, struct err *err);

/* Where a line begins. */
struct segment_place {
    uint64_t segment; /* first seq of its file */
    uint64_t offset;
    uint64_t seq; /* of the line that begins here */
};

/* Reads lines on from a place, over segment borders. */
struct segment_reader {
    char log_dir[FILE_PATH_MAX];
    struct segment_list list;
    size_t current; /* index into list */
    int fd;
    struct buf window;         /* what has been read ahead */
    size_t at;                 /* next unread byte of the window */
    struct segment_place next; /* place of the line that segment_next() gives next */
};

/* Open at an exact place (ERR_DAMAGE when there is none), or at the line of event `seq`
 * (the lines of its segment before it are counted, so this costs at most one segment's
 * length). */
MUST_CHECK int segment_open_at(struct segment_reader *r, const char *log_dir,
                               struct segment_place place, struct err *err);
MUST_CHECK int segment_open_seq(struct segment_reader *r, const char *log_dir,
                                uint64_t seq, struct err *err);

/* The same, but what is before `known`, a place that was once the reader's, need not be
 * counted again. Where its segment no longer has the event, or it is behind, that costs
 * as much as without it. */
MUST_CHECK int segment_open_near(struct segment_reader *r, const char *log_dir,
                                 struct segment_place known, uint64_t seq,
                                 struct err *err);

enum segment_step {
    SEGMENT_LINE, /* *line is the next one, without its newline; valid until the next call
                   */
    SEGMENT_TAIL, /* the segment ends in bytes without newline, or in a line longer than
                     EVENT_LINE_MAX: *line is their beginning; r->next is where they begin
                   */
    SEGMENT_END,  /* nothing more */
};

/* Fails only when the system does. A segment that does not begin with the seq its
 * predecessor ended with is ERR_DAMAGE. */
MUST_CHECK int segment_next(struct segment_reader *r, enum segment_step *step, str *line,
                            struct err *err);
void segment_close(struct segment_reader *r); /* safe on a zeroed or closed one */

#endif
