/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terms - the closed lists of words that a session may say about itself.
 *
 * A reader of the evidence relies on them, so whoever writes asks here first. NULL is
 * never one of them.
 */
#ifndef EVIDENCE_TERMS_H
#define EVIDENCE_TERMS_H

#include <stdbool.h>

#define TERM_MAX 32 /* bytes of a reason */

bool term_is_transport(const char *word);   /* stdio, sse, streamable-http */
bool term_is_profile(const char *word);     /* audit, guard */
bool term_is_policy_hash(const char *word); /* sha256: and 64 lower-case hex digits */

/* Why a call has no answer: call_timeout, cancelled, server_exit, client_gone, shutdown,
 * recorder_lost, no_id, task_unobserved. */
bool term_is_loss(const char *word);

/* Why a session ended. A proper end is client_eof, signal (or by name: sigint, sigterm),
 * server_exit or idle (over HTTP: nothing was asked for long); a session that ended for
 * any other reason is not complete. */
bool term_is_reason(const char *word); /* a-z, 0-9 and _, a letter first, TERM_MAX */
bool term_is_proper_end(const char *word);

#endif
