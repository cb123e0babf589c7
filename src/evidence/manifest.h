/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest - pack_manifest.json: what a proof pack says it holds, and who signed that.
 *
 * The manifest and the attestation in it are closed objects: every type, pattern and
 * enumeration is checked, and a member that is not in the table is a fault, because the
 * public verifiers say so. Beyond them we refuse what has two meanings: duplicate
 * members, lone surrogates, integers beyond 2^53.
 *
 * Nothing here is trusted because it stands here; verify.h checks it.
 */
#ifndef EVIDENCE_MANIFEST_H
#define EVIDENCE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/str.h"
#include "evidence/crypto.h"
#include "evidence/finding.h"
#include "json/json.h"

struct err;

#define MANIFEST_NAME      "pack_manifest.json"
#define MANIFEST_MAX_BYTES ((size_t)8 << 20)
#define MANIFEST_MAX_FILES 4096 /* entries of files[], and of expected_files[] */

struct manifest_file {
    str path;
    struct digest sha256;
    uint64_t bytes;
};

/* All zero is the empty one. Strings are unescaped and live in the arena. */
struct manifest {
    struct arena arena;
    struct json json; /* over `text` */
    str text;         /* our copy */
    struct digest text_sha256;

    uint32_t attestation; /* nodes of `json` */
    uint32_t ci_binding;  /* JSON_NONE when absent or null */

    str pack_id, signer_id, signer_pubkey, signature;
    str claim_set_id;
    struct digest claim_set_hash, attestation_sha256, pack_root_sha256;
    struct digest signer_pubkey_sha256; /* the fingerprint */
    uint64_t receipt_count;

    struct manifest_file *files;
    size_t file_count;
    str *expected;
    size_t expected_count;

    /* of the attestation */
    str run_id, suite_id, mode, claim_check, receipt_integrity;
    str assurance_level, proof_tier, pack_format_version, verifier_version;
    str timestamp_start, timestamp_end, valid_until; /* valid_until may be empty */
    struct digest head_hash, policy_hash;
    uint64_t n_receipts;
    str commit_sha; /* of ci_binding; empty without one */
};

void manifest_release(struct manifest *m);

/* Read the bytes of a manifest. What is wrong with it is added to `findings` (stage
 * STAGE_SCHEMA, code E_MANIFEST_TAMPER) and *valid is set to false; then only `text` and
 * `text_sha256` mean something. Fails only for want of memory. `text` is copied. */
MUST_CHECK int manifest_read(struct manifest *m, str text, struct findings *findings,
                             bool *valid, struct err *err);

/* Does files[] list this file? */
bool manifest_lists(const struct manifest *m, const char *path);

/* The bytes that are signed: the canonical manifest without `signature` and
 * `pack_root_sha256`; and the hash of the canonical attestation. */
MUST_CHECK int manifest_signed_bytes(const struct manifest *m, struct buf *out,
                                     struct err *err);
MUST_CHECK int manifest_attestation_hash(const struct manifest *m, struct digest *out,
                                         struct err *err);

#endif
