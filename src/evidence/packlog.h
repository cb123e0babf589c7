/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packlog - the log files of a pack: do its events stand in a signed log, are they all
 * there, and do the receipts say what the events say?
 *
 * Checked, in this order: the checkpoint's signature, under the key that signed the
 * manifest; every event's form, order and neighbours; the proof from the events to the
 * checkpoint's root; the session's numbering without a hole; every receipt computed anew
 * from its events; the counts of session_end and session_metadata; under profile guard,
 * that nothing denied was forwarded and that every decision names a policy that was
 * loaded. What the attestation says of session, policy, mode and times must be what the
 * events say.
 *
 * A session in parts is checked part after part with one struct packlog. A later part
 * alone is checked as far as it goes: its own calls in full; of calls that began before
 * it, that their receipts are the ones in the log. Two things it cannot show, and says
 * so: what those calls looked like before the cut, and that no event was left out
 * between the cut and its first event.
 */
#ifndef EVIDENCE_PACKLOG_H
#define EVIDENCE_PACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "evidence/history.h"
#include "evidence/idset.h"
#include "evidence/verify.h"

struct err;

#define PACKLOG_POLICIES_MAX 64    /* policies that one session may load */
#define PACKLOG_CALLS_MAX    65536 /* calls of a session that are open at once */

/* What earlier parts said. All zero before the first. */
struct packlog {
    struct history history;
    uint64_t parts;                 /* checked so far */
    char root[2 * DIGEST_SIZE + 1]; /* pack_root_sha256 of the last one */
    struct digest policy[PACKLOG_POLICIES_MAX];
    size_t policies;
    struct idset begun;   /* calls that were requested */
    struct idset settled; /* under profile guard: forwarded or denied */
    bool begins_late;     /* the first part that we saw was not part 1 */
};

void packlog_release(struct packlog *p);

/* Findings go to `v`. Fails only for want of memory. */
MUST_CHECK int packlog_check(struct verify *v, struct packlog *earlier, struct err *err);

/* A pack that lists none of the log files: receipts of our recorder name events, so that
 * theirs were taken away. */
MUST_CHECK int packlog_check_absence(struct verify *v, struct err *err);

/* Which part of which session a pack says it is, unverified: to put packs in order. False
 * when it does not say so. */
struct packlog_place {
    char session[ID_MAX];
    uint64_t part;
    bool final;
};

bool packlog_peek(const char *dir, struct packlog_place *place);

#endif
