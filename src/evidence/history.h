/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history - what a session's events say so far: its facts, its counts, its open calls.
 *
 * The recorder keeps one while it writes; recovery and packing make one by reading the
 * log. Memory grows with the calls that are open, not with the session.
 */
#ifndef EVIDENCE_HISTORY_H
#define EVIDENCE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/entropy.h"
#include "base/map.h"
#include "evidence/call.h"
#include "evidence/event.h"
#include "evidence/receipt.h"

struct err;

#define HISTORY_REASON_MAX 64                 /* of session_end's reason, with NUL */
#define HISTORY_TEXT_MAX   ((size_t)64 << 10) /* of what session_start says */

/* A call with what the recorder has beside the events. */
struct open_call {
    struct call call;
    uint64_t key;         /* the number of its id */
    struct buf arguments; /* content for the receipt; used by the recorder only */
    bool has_arguments;
    char parent[ID_MAX];    /* receipt that this one continues; "" for none */
    struct open_call *next; /* in the list of spare ones */
};

/* All zero is the history of nothing. */
struct history {
    char id[ID_MAX];
    char writer[ID_MAX];            /* of session_start */
    struct receipt_session session; /* borrows from `text`, `id` */
    struct buf text;
    struct receipt_counts counts;
    uint64_t first; /* seq of session_start */
    uint64_t last;  /* seq of the newest event */
    bool started;
    bool transport_found;

    bool ended; /* session_end is there; then: */
    bool complete;
    int64_t ended_at;
    char reason[HISTORY_REASON_MAX];

    uint64_t part;            /* that is being written: 1, and 1 more after every cut */
    uint64_t part_from;       /* where it begins */
    bool closed;              /* the final session_metadata has its event */
    char metadata_id[ID_MAX]; /* of the newest session_metadata */
    int64_t metadata_ts;

    struct map calls; /* struct open_call by the number of its id */
    struct open_call *spare;
};

void history_release(struct history *h);
void history_trim(struct history *h); /* give back what the next call would use again */

/* Give back the room of texts that never came; `room` stays for those that still may. */
MUST_CHECK int history_shrink(struct history *h, size_t room, struct err *err);

/* Keep a copy of what session_start says; `room` is for all the texts that it will ever
 * have. */
MUST_CHECK int history_begin(struct history *h, const struct receipt_session *facts,
                             size_t room, struct err *err);

/* The version that receipts state; after history_begin(). */
MUST_CHECK int history_set_version(struct history *h, str version, struct err *err);

/* The server's transport, from now on; after history_begin(). */
MUST_CHECK int history_set_transport(struct history *h, str transport, struct err *err);

/* A new open call, or the one that there is. NULL when absent. */
struct open_call *history_new_call(struct history *h, const char *id, struct err *err);
struct open_call *history_call(const struct history *h, str id);
void history_drop_call(struct history *h, struct open_call *c); /* its memory is kept */

/* How many calls were requested and have no receipt. */
uint64_t history_open_calls(const struct history *h);

/* Count an event that was written; `has_call`: it has a member `call`. */
void history_count(struct history *h, enum event_type type, bool has_call, uint64_t seq);

/* A session_metadata receipt was written at `seq`. */
void history_cut(struct history *h, const char *receipt_id, uint64_t seq, int64_t ts);

/* What session_metadata says at this point: its `receipt` event will stand at `seq`.
 * Final when session_end is there. Without previous_pack_root_sha256, which no event has.
 */
struct metadata history_metadata(const struct history *h, const char *receipt_id,
                                 uint64_t seq, int64_t ts);

/* Fold an event that was read. Events of other sessions change nothing; one whose `n` is
 * not the next is ERR_DAMAGE. Calls with their receipt are dropped, except tasks. */
MUST_CHECK int history_fold(struct history *h, const struct event_view *v,
                            struct err *err);

#endif
