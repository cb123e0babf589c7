/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call - what the events of one tool call say, folded together.
 *
 * A receipt is computed from a struct call. The recorder folds each event as it composes
 * it, recovery and verification fold the same events as they read them: one code, so
 * both get the same receipt.
 *
 * Events belong to a call by their member `call`. What each contributes:
 *
 *     request_received        first seq, time, tool, id, arguments_hash, digest, trace
 *     policy_decided          time, verdict, policy_ref, reason, policy_hash
 *     request_denied          that it was denied; without policy_ref: why
 *     notification_received   with method notifications/cancelled: that it was cancelled
 *     call_cancelled          the same
 *     message_modified        that an operator changed it
 *     response_received       time, result_hash, is_error, result_type, digest
 *     call_lost               time and reason
 *     receipt                 that what came before has been receipted
 *
 * Every one of them moves `last`. A second answer after the first receipt (the result of
 * a task) begins a second receipt of the same call; any event with `result_hash` counts
 * as the answer, a notification too.
 */
#ifndef EVIDENCE_CALL_H
#define EVIDENCE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/entropy.h"
#include "base/str.h"
#include "evidence/event.h"

#define CALL_TEXT_MAX ((size_t)1 << 20) /* all texts of one call */

/* A text inside call.text; all zero is "absent". */
struct call_text {
    uint32_t at; /* plus 1 */
    uint32_t n;
};

/* All zero is a call of which nothing is known. */
struct call {
    char id[ID_MAX]; /* inv_<16 hex> */
    uint64_t first, last;
    int64_t requested_at, decided_at, denied_at, answered_at, lost_at;
    bool requested, decided, denied, answered, lost; /* which times are set */
    bool is_error, modified, cancelled, forwarded;
    bool task; /* the newest receipt is that of a task whose result is still to come */
    bool request_id_is_number;
    unsigned receipts;       /* so far */
    char receipt_id[ID_MAX]; /* the newest; "" before the first */

    struct call_text tool, request_id; /* as the receipt has them */
    struct call_text arguments_hash, request_digest, trace, arguments_raw;
    struct call_text verdict, policy_ref, policy_reason, policy_hash;
    struct call_text refusal; /* denied by no policy, but for this */
    struct call_text result_hash, response_digest, result_type, result_raw, lost_reason;

    struct buf text; /* append-only; `failed` when a text did not fit */
};

void call_release(struct call *c);
void call_reset(struct call *c); /* another call may use the memory */

/* {NULL, 0} when absent. */
str call_str(const struct call *c, struct call_text t);

/* Requested and not yet receipted. */
bool call_is_open(const struct call *c);

/* Something stands in the log that asks for a receipt which is not there yet. */
bool call_is_due(const struct call *c);

/* Fold an event that was read. One of another call, or of none, changes nothing. */
void call_fold(struct call *c, const struct event_view *v);

/* The same for an event that is being composed, at its place. */
void call_fold_event(struct call *c, const struct event *e, uint64_t seq, int64_t ts);

/* An undo point: when the events that were folded since could not be written. */
struct call call_mark(const struct call *c);
void call_rewind(struct call *c, const struct call *mark);

/* The 16 hex digits of an identifier of ours as a number; false when they are none. */
bool id_number(uint64_t *out, str id);

#endif
