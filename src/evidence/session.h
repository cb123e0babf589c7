/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - the recorder of one session: its events, its receipts, its parts.
 *
 *     session_open        session_start
 *     session_request     a tools/call came: request_received, before it goes on
 *     session_note        any other event of that call
 *     session_respond     its answer came: response_received and the receipt
 *     session_deny, session_lose   it ended otherwise
 *     session_release     the call is over; no more events of it
 *     session_put         any event that is not of a call
 *     session_transport   the server's transport is another one than was assumed
 *     session_end         session_end and session_metadata; then pack_build()
 *
 * Evidence before effect: when a call returns 0, what it recorded is written, and when
 * session_settle() returns 0 it is as durable as the log promises. A call that returns
 * -1 has recorded nothing, and the session's numbering did not move; the log knows of
 * the loss (see log.h), and the session cannot be complete any more.
 *
 * No loop, no thread, no waiting: everything here takes the log's lock for one write and
 * leaves. What may wait for the disk is session_settle(), the first request (which
 * creates the receipts file) when the durability is above `write`, and nothing else.
 * One thread at a time per session; sessions of one log are independent of each other.
 */
#ifndef EVIDENCE_SESSION_H
#define EVIDENCE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"
#include "evidence/event.h"
#include "evidence/history.h"
#include "evidence/live.h"
#include "evidence/log.h"

struct err;
struct session;

struct session_options {
    struct log *log; /* borrowed for the session's life */
    const char *server_id;
    const char *transport;        /* stdio, sse, streamable-http */
    const char *client_transport; /* the same */
    const char *profile;          /* audit, guard */
    const char *policy_hash;      /* sha256:<hex>, or NULL */
    bool pack_empty;              /* write session_metadata even without a call */
    bool investigation;           /* whole messages are kept: see investigation.h */
    bool flushed; /* session_flush() comes soon after each receipt: its line may wait */
};

MUST_CHECK int session_open(struct session **out, const struct session_options *options,
                            struct err *err);

/* Go on where a dead writer stopped. Takes over what `h` holds (and empties it); `by` us
 * is said in session_end. `receipts` is the name of its receipts file. */
MUST_CHECK int session_resume(struct session **out, struct log *log, struct history *h,
                              const char *receipts, struct err *err);

/* Forget it. Without session_end() before, it is a session that somebody has to
 * recover. */
void session_free(struct session *s);

/* Give back what the next event would need: for one that idles among many. */
void session_trim(struct session *s);

const char *session_id(const struct session *s);
const char *session_receipts(const struct session *s); /* name in receipts/ */
const struct history *session_history(const struct session *s);

/* Record an event that is not of a call. `session` and `n` are added to it, so it must be
 * composed anew before it is tried again. *upto (may be NULL): see session_settle(). */
MUST_CHECK int session_put(struct session *s, struct event *e, uint64_t *upto,
                           struct err *err);

/* The server turned out to speak another transport than session_start says: receipts from
 * now on say so. Once in a session. */
MUST_CHECK int session_transport(struct session *s, const char *transport,
                                 struct err *err);

#define SESSION_LATER_MAX 64 /* events that may wait; one more writes them all */

/* Record an event of a call (or, `call` NULL, of none) with the next batch, whichever
 * comes first: what may be told after its effect need not cost a write of its own.
 * `release`: the call is over then, as by session_release(). */
MUST_CHECK int session_later(struct session *s, struct open_call *call,
                             enum event_type type, const struct message *m, bool release,
                             struct err *err);

/* The same with an event that is composed already; it is taken over and left empty. */
MUST_CHECK int session_later_event(struct session *s, struct open_call *call,
                                   struct event *e, bool release, struct err *err);

/* Write them now, and the lines of receipts that wait. With `flushed` a line may follow
 * its event, where durability is `write`, failure means pass, and it stores no content:
 * when we die before it is written, what the log says of the call makes the same line
 * anew. */
MUST_CHECK int session_flush(struct session *s, struct err *err);
bool session_has_later(const struct session *s);

#define SESSION_GATHER_MAX ((size_t)256 << 10) /* bytes that should wait, no more */

/* From here on to session_write() what is recorded is only composed, and then written
 * together: for messages that came at once and go on at once, while log_hold() holds.
 * session_write() fails for all of them: none of it stands in the log, the numbering and
 * the calls are as they were at session_gather(), and those that were made since are
 * gone; `undone` is told before it returns. session_transport(), session_part() and
 * session_end() begin with session_write(). Not with a durability above `write`.
 *
 * Several sessions of a log may gather at once: whoever of them writes, or whoever else
 * puts something into the log, writes what all of them have. session_write() of each one
 * says how it went. */
void session_gather(struct session *s, void (*undone)(void *ctx), void *ctx);
MUST_CHECK int session_write(struct session *s, struct err *err); /* safe without */
bool session_is_gathering(const struct session *s);
size_t session_gathered(const struct session *s); /* bytes that wait */

struct call_decision {
    const char *verdict; /* allowed, denied */
    str policy_ref;
    str reason; /* {NULL, 0} for none */
    str policy_hash;
};

/* A tools/call. */
struct call_request {
    str arguments_hash;
    str raw_reason;     /* why the hash is a raw one; {NULL, 0} when it is not */
    str trace;          /* {NULL, 0}: the session's */
    str content;        /* from content_add(), or {NULL, 0}: not stored */
    const char *parent; /* receipt of the leg before, or NULL */
    const struct call_decision *decision; /* of the policy, in the same write; or NULL */
};

/* *call is valid until session_release() or session_free(). */
MUST_CHECK int session_request(struct session *s, const struct message *m,
                               const struct call_request *request,
                               struct open_call **call, uint64_t *upto, struct err *err);

/* Record an event of a call; its member `call` is added as well. */
MUST_CHECK int session_note(struct session *s, struct open_call *call, struct event *e,
                            uint64_t *upto, struct err *err);

/* The same, and the receipt of the call in the same write. */
MUST_CHECK int session_conclude(struct session *s, struct open_call *call,
                                struct event *e, str content, uint64_t *upto,
                                struct err *err);

struct call_response {
    str result_hash;
    str raw_reason;
    bool is_error;
    str result_type; /* {NULL, 0} when the result has none */
    str content;     /* from content_add(), or {NULL, 0} */
};

MUST_CHECK int session_respond(struct session *s, struct open_call *call,
                               const struct message *m,
                               const struct call_response *response, uint64_t *upto,
                               struct err *err);

struct call_denial {
    const str *reason_codes;
    size_t reason_count;
    str policy_ref;
};

MUST_CHECK int session_deny(struct session *s, struct open_call *call,
                            const struct message *m, const struct call_denial *denial,
                            uint64_t *upto, struct err *err);

MUST_CHECK int session_decide(struct session *s, struct open_call *call,
                              const struct call_decision *decision, uint64_t *upto,
                              struct err *err);

/* Forwarded and not answered: call_timeout, cancelled, server_exit, client_gone,
 * shutdown, recorder_lost, no_id, task_unobserved. */
MUST_CHECK int session_lose(struct session *s, struct open_call *call, const char *reason,
                            uint64_t *upto, struct err *err);

/* Only the receipt of what the log already says of the call (recovery). */
MUST_CHECK int session_receipt(struct session *s, struct open_call *call, uint64_t *upto,
                               struct err *err);

/* No more of it. If the log has no end of it (its evidence could not be written), it
 * stays open, and session_end() loses it. */
void session_release(struct session *s, struct open_call *call);

/* Do what the log's durability promises for everything up to `upto`: the receipts file
 * first, then the segment. May wait for the disk. */
MUST_CHECK int session_settle(struct session *s, uint64_t upto, struct err *err);

/* The same in three steps, so that the waiting can be another thread's: the first and the
 * last are the session's thread's, and the session must not be freed in between. */
struct session_wait {
    struct log *log;
    int receipts; /* descriptor, or -1: nothing new */
    uint64_t upto;
};

void session_wait_begin(struct session *s, uint64_t upto, struct session_wait *w);
MUST_CHECK int session_wait(const struct session_wait *w, struct err *err);
void session_wait_end(struct session *s, const struct session_wait *w, int result);

/* The last receipt of a pack has been written: what pack_build() needs. */
struct session_cut {
    uint64_t from, to; /* log range of the part */
    uint64_t part;
    bool final;
    char metadata_id[ID_MAX];
    int64_t metadata_ts;
};

/* End the present part: session_metadata with final false. `previous_root` is the hex
 * pack_root_sha256 of the part before; NULL for part 1. */
MUST_CHECK int session_part(struct session *s, const char *previous_root,
                            struct session_cut *cut, struct err *err);

struct session_ending {
    const char *reason;        /* a proper end of terms.h, or why it is none */
    bool clean;                /* a proper end, and the exit was 0 */
    const char *open_calls;    /* reason of call_lost for calls still open */
    const char *previous_root; /* as in session_part() */
};

/* Lose what is open (a task without its result as task_unobserved), then session_end and
 * the final session_metadata in one write. A session without a call gets no metadata,
 * unless pack_empty: then *packable is false. May be called again after a failure. */
MUST_CHECK int session_end(struct session *s, const struct session_ending *ending,
                           struct session_cut *cut, bool *packable, struct err *err);

#endif
