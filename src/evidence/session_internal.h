/* SPDX-License-Identifier: Apache-2.0 */
/* session_internal - what session.c, opening.c and ending.c share. Nobody else includes
 * it. */
#ifndef EVIDENCE_SESSION_INTERNAL_H
#define EVIDENCE_SESSION_INTERNAL_H

#include "base/err.h"
#include "evidence/receipts.h"
#include "evidence/session.h"

/* An event that waits for the next batch. */
struct later {
    struct event event;
    struct open_call *call; /* NULL: of none */
    struct call mark;       /* the call before it was folded */
    uint64_t seq;
    bool release;
};

/* What to undo should the write of what was gathered fail. */
struct undo {
    struct open_call *call;
    struct call mark; /* before the event was folded */
    bool made;        /* the call did not exist before */
};

struct gather {
    struct session *session;
    struct gather *next; /* who else gathers in this log */
    bool open;
    bool lost; /* what was gathered could not be written; session_write() will say so */
    struct err why;
    void (*undone)(void *ctx);
    void *ctx;
    struct receipt_counts counts; /* of the history, at the beginning */
    uint64_t last;
    struct undo *undo;
    size_t undo_count, undo_cap;
    struct open_call **released; /* what session_release() was told since */
    size_t released_count, released_cap;
};

/* What is being written: working memory. */
struct drafts {
    struct receipt_line line;
    struct event event; /* of the helpers */
    struct event decision;
    struct event receipt_event;
};

struct session {
    struct log *log;
    struct history history;
    struct receipts receipts;
    struct entropy_pool ids;
    struct drafts *drafts; /* NULL after session_trim() */
    uint64_t pending;      /* events of ours in the batch */
    uint64_t lost_before;  /* log_lost_total() at the beginning */
    bool pack_empty;
    bool lines_wait; /* receipts may follow their events: see session_flush() */
    bool resumed;
    struct gather *gather; /* NULL: never begun, or session_trim() */
    struct later *later;
    size_t later_count, later_cap;
};

MUST_CHECK int session_new_id(struct session *s, char id[static ID_MAX],
                              const char *prefix, struct err *err);

/* Before an event or a receipt is composed: there are drafts. What was to be recorded,
 * `events`, is lost without. */
MUST_CHECK int session_draft(struct session *s, uint64_t events, struct err *err);

/* Open a batch of `events` events, behind those that waited for it; all of them count as
 * lost when that fails. */
MUST_CHECK int session_begin(struct session *s, uint64_t events, struct err *err);

/* Put one event of ours into the batch. */
MUST_CHECK int session_add(struct session *s, struct event *e, uint64_t *seq,
                           struct err *err);

/* Write the batch. */
MUST_CHECK int session_commit(struct session *s, uint64_t *upto, struct err *err);

/* Give the batch up; `events` of it are lost. Returns -1. */
int session_give_up(struct session *s, uint64_t events, const struct err *err);

/* gather.c: room for what a batch is going to remember. */
MUST_CHECK int session_gather_room(struct session *s, struct err *err);
void session_free_gather(struct session *s); /* not while it is open */
void session_end_gather(struct session *s);  /* write it, and tell nobody how that went */

/* The call was changed by the batch that has just been gathered; nothing without
 * session_gather(). */
void session_remember(struct session *s, struct open_call *call, const struct call *mark,
                      bool made);

/* Where the next event that waits goes; NULL: it is lost, and that is known. */
struct later *session_next_later(struct session *s, struct err *err);

/* They do not stand in the log, and never will. The newest is undone first. */
void session_lose_later(struct session *s, size_t folded);

/* Before a batch with a receipt: the file is open, and a new id is made. */
MUST_CHECK int session_prepare_receipt(struct session *s, char id[static ID_MAX],
                                       const char *prefix, uint64_t events,
                                       struct err *err);

/* Begin s->receipt_event for the receipt in s->line. */
void session_compose_receipt_event(struct session *s, const char *receipt_id);

#endif
