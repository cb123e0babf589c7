/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack - a proof pack: the receipts of a session, the events behind them, and the proof
 * that those events stand in the log; signed, in one directory.
 *
 *     <audit directory>/packs/proof_pack_<time>_<8 hex>/
 *         receipt_pack.jsonl    one receipt a line, session_metadata last
 *         log_events.jsonl      the session's events, lines as they stand in the log
 *         log_checkpoint        signed note: size and root of the log
 *         log_proof.json        the hashes that lead from the events to that root
 *         verify_report.json, verify_transcript.md
 *         pack_manifest.json    the hashes of all of them, signed
 *         pack_signature.sig    64 bytes
 *
 * The name follows from the session's metadata, so that one part of a session has one
 * pack, however often it is asked for. docs/pack.md has every byte.
 */
#ifndef EVIDENCE_PACK_H
#define EVIDENCE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/file.h"
#include "evidence/crypto.h"
#include "evidence/history.h"
#include "evidence/live.h"
#include "evidence/log.h"
#include "evidence/segment.h"
#include "evidence/session.h"

#define PACKS_DIR           "packs"
#define PACK_NAME_MAX       64
#define PACK_TOGETHER_MAX   16
#define PACK_EVENTS_MAX     100000000 /* events of one pack: 40 bytes of memory each */
#define PACK_PROOF_MAX      ((size_t)2 << 30)   /* bytes of hashes in one proof */
#define PACK_DEFAULT_POLICY "default-policy-v0" /* hashed where there is no policy */

/* What the pack of a part has read of its session: that of the next part reads on from
 * there. All zero is nothing. It must not move. */
struct pack_past {
    struct history history;     /* up to here: */
    struct segment_place place; /* seq 0: not to be used */
};

void pack_past_release(struct pack_past *p); /* safe on a zeroed one */

/* Which part of which session. */
struct pack_request {
    const char *session;
    const char *receipts; /* name of its receipts file */
    uint64_t first;       /* seq of its session_start */
    struct session_cut cut;
    struct pack_past *past; /* of this session; NULL: read all of it, remember nothing */
    bool restore; /* its writer is dead: lines that its receipts file lacks are put in */
    const char
        *version; /* of the program that it was; NULL: it is looked for if needed */
};

/* What came of it. */
struct pack_result {
    char path[FILE_PATH_MAX];
    char root[2 * DIGEST_SIZE + 1]; /* pack_root_sha256 */
    bool existed;                   /* the pack was there already, and verifies */
    uint64_t receipts;              /* lines of receipt_pack.jsonl */
    uint64_t events;  /* 0 when the pack was there already, like the next two */
    uint64_t rebuilt; /* receipts whose line was lost and that were made from events */
    uint64_t content_lost; /* of those: with stored content, which is gone */
};

/* proof_pack_<time>_<8 hex>, NUL-terminated. */
void pack_name(char out[static PACK_NAME_MAX], const struct session_cut *cut);

/* Make sure that a signed checkpoint covers the part, build the pack, verify it with the
 * code that `assay verify-pack` runs. Only then it has its name. ERR_DAMAGE when the
 * result, or the pack that was there, does not verify. Memory does not grow with the
 * receipts' content; it holds a hash per event. The log is read from the beginning of the
 * session on; with a past, from the end of the part before. */
MUST_CHECK int pack_build(struct log *log, const struct pack_request *request,
                          struct pack_result *result, struct err *err);

/* One of several packs. */
struct pack_job {
    struct pack_request request;
    struct pack_result result;
    struct err err;
    int failed; /* -1: `err` says why; the others do not suffer */
};

/* As pack_build() for each, but PACK_TOGETHER_MAX of them at a time: one checkpoint
 * covers these, and the log is read once for them. Memory is that of so many packs. */
void pack_build_all(struct log *log, struct pack_job *jobs, size_t count);

#endif
