/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify - is this proof pack what its signer signed?
 *
 * Every check of the public verifiers, and where they differ the stricter one. The
 * answer is a verdict with its findings; an error (-1) means only "could not find
 * out": no directory, no manifest, no permission, no memory.
 *
 * Integrity and wishes are kept apart. Findings say that the pack is not sound. What the
 * caller asked for beyond that (a signer, an age, a commit) are requirements: a
 * sound pack may fail them. A key is never trusted because the pack carries it; whether
 * it is known is a fact beside the verdict.
 *
 * Nothing outside the directory is opened, and no link in it is followed.
 */
#ifndef EVIDENCE_VERIFY_H
#define EVIDENCE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "evidence/finding.h"
#include "evidence/keys.h"
#include "evidence/lock.h"
#include "evidence/manifest.h"
#include "evidence/receipt_pack.h"

struct err;
struct packlog;

/* What sound evidence shows, and what it does not. */
#define VERIFY_LIMITS                                                                    \
    "it does not show that the server told the truth, nor calls that went around the "   \
    "proxy"
#define VERIFY_BOUNDARY                                                                  \
    "this shows what crossed the proxy and that the record was not changed "             \
    "since; " VERIFY_LIMITS
#define VERIFY_BOUNDARY_TAMPERED                                                         \
    "this shows that the pack is not what was signed; it does not show who changed it, " \
    "nor what crossed the proxy"

#define SIGNATURE_NAME      "pack_signature.sig"
#define LOG_EVENTS_NAME     "log_events.jsonl"
#define LOG_CHECKPOINT_NAME "log_checkpoint"
#define LOG_PROOF_NAME      "log_proof.json"

#define VERIFY_WARNINGS_MAX 50
#define VERIFY_JSON_COST    14 /* times what hashing a byte takes, as measured */
#define VERIFY_FUTURE_HOURS 24 /* a clock may be wrong by this much */

enum verify_verdict {
    VERIFY_SOUND,
    VERIFY_UNMET, /* sound, but a requirement of the caller is not met */
    VERIFY_TAMPERED,
};

struct verify_options {
    const struct clock *clock;
    const struct keys *keys;     /* the local key directory; NULL: none */
    const struct lock *lock;     /* NULL: none */
    const struct digest *signer; /* the fingerprint that must have signed; NULL: any */
    bool limit_age;
    uint64_t max_age_hours;
    bool require_ci_binding;
    const char *expected_commit; /* 40 hex digits, or NULL */
    bool require_complete;
    bool require_claim_pass;
    struct packlog *parts; /* what earlier parts of the session said; NULL: alone */
    void (*on_progress)(void *ctx, uint64_t done, uint64_t total); /* or NULL */
    void *progress;
};

enum requirement_kind {
    REQUIRE_SIGNER,
    REQUIRE_LOCK,
    REQUIRE_AGE,
    REQUIRE_CI_BINDING,
    REQUIRE_COMMIT,
    REQUIRE_COMPLETE,
    REQUIRE_CLAIM_PASS,
    REQUIREMENTS,
};

/* The flag that asks for it: "--signer". */
const char *requirement_flag(enum requirement_kind kind);

struct requirement {
    bool asked;
    bool met;               /* false while the pack is not sound */
    enum finding_code code; /* FINDING_NONE where the public format has no code */
    str message;            /* why not; empty when met */
};

enum key_standing {
    KEY_UNKNOWN, /* nobody here has seen it */
    KEY_LOCAL,   /* in the local key directory */
    KEY_PINNED,  /* named by --signer or by an allow-list */
};

/* What such an answer shows: VERIFY_BOUNDARY, or of a tampered pack the other one. */
const char *verify_boundary(enum verify_verdict verdict);

/* All zero is the empty one; release it whatever verify_pack() returned. */
struct verify_result {
    enum verify_verdict verdict;
    struct findings findings; /* owns the texts of everything here */
    enum stage_status stages[STAGE_COUNT];
    struct requirement requirements[REQUIREMENTS];
    str warnings[VERIFY_WARNINGS_MAX];
    size_t warning_count;
    uint64_t warnings_left_out;

    bool has_manifest; /* it is of its schema; then: */
    struct manifest manifest;
    bool signature_good;
    enum key_standing key;
    char local_id[KEYS_ID_MAX + 1]; /* of KEY_LOCAL */
    bool local_secret;              /* its secret half lies here, too */
    bool has_log;                   /* it lists our log files */
    bool begins_late; /* a later part, and not all parts before it were checked with it */

    struct receipt_facts receipts;
    bool has_receipt_pack; /* the file could be read; then: */
    struct digest receipt_pack_sha256;
    int64_t verified_at;
};

MUST_CHECK int verify_pack(const char *dir, const struct verify_options *options,
                           struct verify_result *result, struct err *err);
void verify_result_release(struct verify_result *r);

/* A file of the pack, mapped while it is being verified. */
struct verify_file {
    str name;
    struct mapping map;
};

/* One verification under way: what a check needs and where it puts what it finds. */
struct verify {
    const struct verify_options *options;
    struct verify_result *result;
    int dir;
    const struct manifest *manifest;
    uint64_t done, total;      /* units of work, for on_progress */
    struct verify_file *files; /* those of files[] that are there, in that order */
    size_t file_count;
};

/* The bytes of a file that files[] lists; false when it is not there. */
bool verify_file_bytes(const struct verify *v, const char *name, str *bytes);

/* Add a finding. `field` may be "". */
void verify_add(struct verify *v, enum finding_code code, enum stage stage, str field,
                const char *fmt, ...) PRINTF_LIKE(5, 6);

/* So many units of v->total are done: a byte hashed is one, a byte of JSON that is
 * checked VERIFY_JSON_COST. */
void verify_advance(struct verify *v, uint64_t units);

/* Add something worth knowing that changes no verdict. */
void verify_warn(struct verify *v, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
