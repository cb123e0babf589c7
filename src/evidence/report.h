/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - verify_report.json (assay.verify_report.v0.1): a verification as a document.
 *
 * Four channels are judged apart: integrity, claim, replay (never run here) and trust.
 * The same report is written into a pack when it is built and printed when it is
 * verified; only the verifier's name, the hash of the manifest and the checks differ.
 */
#ifndef EVIDENCE_REPORT_H
#define EVIDENCE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "evidence/crypto.h"
#include "evidence/verify.h"
#include "json/pretty.h"

#define REPORT_NAME          "verify_report.json"
#define REPORT_SCHEMA        "assay.verify_report.v0.1"
#define REPORT_POLICY        "assay.verify_policy.v0.1"
#define REPORT_MAX           ((size_t)8 << 20)
#define REPORT_ID_TEXT       23 /* "vr_" and 20 hex digits */
#define REPORT_BUILDER_NAME  "assay"
#define REPORT_VERIFIER_NAME "assay verify-pack"

/* What a report says. Whoever builds a pack fills it; report_of() fills it from a
 * verification. Pointers that are NULL are written as null. */
struct report {
    const char *verifier_name;
    char verified_at[CLOCK_TEXT];
    bool passed;       /* its integrity is good */
    str claim_check;   /* of the attestation: PASS, FAIL, N/A; anything else is N/A */
    const char *trust; /* PASS, UNTRUSTED, NOT_EVALUATED */

    str pack_id, run_id, claim_set_id; /* empty: null */
    const struct digest *pack_root, *manifest_sha256, *receipt_pack_sha256;
    const struct digest *policy_sha256, *claim_set_hash, *config_sha256;
    const struct digest *head_hash;
    uint64_t receipt_count;

    const struct verify_result *result; /* NULL while a pack is built */
};

/* Borrows from `result` and, for its hash, from `lock` (NULL: none). */
void report_of(struct report *r, const struct verify_result *result,
               const struct lock *lock);

/* The members of the report, into an object that is open. */
void report_members(struct pretty *p, const struct report *r);

/* The whole document, as it lies in a pack: no newline at the end. */
void report_add(struct buf *out, const struct report *r);

void report_id(char out[static REPORT_ID_TEXT], const struct report *r); /* no NUL */

/* PASS, HONEST_FAIL, TAMPERED or UNTRUSTED. */
const char *report_overall(const struct report *r);

/* Whether the key that signed is known, for people. Not escaped for HTML. */
void report_add_key_words(struct buf *out, const struct verify_result *v);

/* Sound, and nobody here knows who signed it: not the same as verified. */
bool report_signer_unknown(const struct report *r);

/* What the verdict shows, and what it does not. */
const char *report_boundary(const struct report *r);

/* Sound, and not what the caller asked for. */
bool report_unmet(const struct report *r);

/* verify_transcript.md: the same for a reader. Both times are RFC 3339. */
struct transcript {
    const struct report *report;
    str suite_id, mode, assurance_level;
    str timestamp_start, timestamp_end;
};

void report_add_transcript(struct buf *out, const struct transcript *t);

#define REPORT_CALLS_MAX 1000 /* calls that a page lists */

/* One self-contained HTML page; `name` is what the person called the pack. Foreign text
 * is escaped; there is no script and nothing is fetched. The calls that `receipts`, the
 * bytes of the pack's receipt file, tell of are listed where nothing is wrong with it. */
void report_add_html(struct buf *out, const struct report *r, const char *name,
                     str receipts);

/* A badge "assay | verified" as SVG. */
void report_add_badge(struct buf *out, const struct report *r);

#endif
