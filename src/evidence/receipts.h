/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipts - the file with the receipts of one session, a line each:
 * <audit directory>/receipts/session_<time>_<8 hex>.jsonl.
 *
 * A line counts only when the log has its `receipt` event; what else stands in the file
 * is void. So nothing here is repaired: bytes that a dead writer left half written get a
 * newline and stay.
 */
#ifndef EVIDENCE_RECEIPTS_H
#define EVIDENCE_RECEIPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "evidence/crypto.h"
#include "evidence/live.h"

struct err;

#define RECEIPTS_DIR "receipts"

#define RECEIPTS_LATE_MAX                                                                \
    ((size_t)16 << 10) /* bytes that may wait; then receipts_flush() */

/* The file being written. Only a name until the first receipts_open(). */
struct receipts {
    const char *audit_dir; /* borrowed */
    char name[LIVE_NAME_MAX];
    int fd;           /* -1 while it is not open */
    uint64_t size;    /* bytes that stand in it, and those that wait */
    uint64_t mark;    /* its size at receipts_mark() */
    uint64_t before;  /* its size at receipts_gather() */
    bool dirty;       /* lines not yet on disk */
    bool gathering;   /* since receipts_gather() */
    bool due;         /* a line among those that wait must stand before its event */
    bool hurry;       /* lines are to go with receipts_write(), if they can */
    struct buf lines; /* that wait */
};

/* True when this is a name such as we give: no path of a stranger gets in here. */
bool receipts_name_valid(str name);

MUST_CHECK int receipts_init(struct receipts *r, const char *audit_dir, const char *name,
                             struct err *err);

/* Open the file unless it is open; made if it is not there. `sync`: its directory entry
 * is on disk when this returns. */
MUST_CHECK int receipts_open(struct receipts *r, bool sync, struct err *err);
void receipts_close(struct receipts *r); /* it may be opened again */

/* Append a line and its newline, behind those that wait. After a failure nothing of it
 * stands. `late`: all that it says is in the log, too, so it may wait for
 * receipts_flush() or for the next line that may not. */
MUST_CHECK int receipts_append(struct receipts *r, str line, bool late, struct err *err);

/* Write the lines that wait; while it gathers, with receipts_write(), which does not fail
 * because of them. After a failure they wait on, and so may others. */
MUST_CHECK int receipts_flush(struct receipts *r, struct err *err);
size_t receipts_waiting(const struct receipts *r); /* bytes */

/* From here on all lines wait, until receipts_write() writes them together, if one of
 * them must be written: all, or none of them stands. Then as before. receipts_drop()
 * takes back all that was appended since. */
void receipts_gather(struct receipts *r);
MUST_CHECK int receipts_write(struct receipts *r, struct err *err);
void receipts_drop(struct receipts *r);

/* Take back what was appended since the mark, as far as that is possible: lines without
 * their events are void anyway. */
void receipts_mark(struct receipts *r);
void receipts_undo(struct receipts *r);

MUST_CHECK int receipts_sync(struct receipts *r, struct err *err);

/* What stands in the file of a session, by receipt id. */
struct receipts_entry {
    uint64_t offset;
    uint32_t length; /* without the newline */
    struct digest hash;
    struct receipts_entry *next; /* of the same id: a void line before */
};

struct receipts_index {
    struct mapping map;
    struct map entries;
};

/* Index the lines that are receipts. A file that is not there is empty. */
MUST_CHECK int receipts_index_read(struct receipts_index *x, const char *audit_dir,
                                   const char *name, struct err *err);
void receipts_index_release(struct receipts_index *x);

/* The line with this id and this hash; {NULL, 0} when there is none. */
str receipts_find(const struct receipts_index *x, str id, const struct digest *hash);

/* The name of the receipts file of a session: the one whose name ends in its first eight
 * digits. ERR_NOTFOUND when there is none. */
MUST_CHECK int receipts_find_file(char name[static LIVE_NAME_MAX], const char *audit_dir,
                                  const char *session, struct err *err);

#endif
