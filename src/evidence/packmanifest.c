/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packmanifest.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "evidence/report.h"
#include "json/jcs.h"
#include "json/pretty.h"

#define TRANSCRIPT_NAME "verify_transcript.md"
#define SUITE_ID        "manual"
#define CLAIM_SET_ID    "none"
#define PACK_ID_MAX     64

/* What manifest, attestation and report have in common. */
struct facts {
    const struct parts *parts;
    const struct signer *signer;
    char pack_id[PACK_ID_MAX];
    char start[CLOCK_TEXT], end[CLOCK_TEXT];
    struct digest suite_hash, claim_set_hash, policy_hash;
    str mode;
    struct buf attestation; /* pretty text, */
    struct json json;       /* its index */
    struct digest root;     /* and the hash of its canonical form */
};

static void facts_release(struct facts *f)
{
    buf_release(&f->attestation);
    json_release(&f->json);
}

static void gather(struct facts *f, const struct session_cut *cut)
{
    const struct receipt_session *s = &f->parts->history->session;
    char stamp[CLOCK_STAMP];

    clock_stamp(stamp, cut->metadata_ts);
    snprintf(f->pack_id, sizeof(f->pack_id), "pack_%.*s_%.8s", CLOCK_STAMP - 1, stamp,
             cut->metadata_id + strlen("smd_"));
    clock_format(f->start, f->parts->start);
    clock_format(f->end, f->parts->end);
    f->suite_hash = digest_of(STR(SUITE_ID));
    f->claim_set_hash = digest_of(STR(CLAIM_SET_ID));
    if (!str_starts(s->policy_hash, STR("sha256:")) ||
        !digest_from_hex(&f->policy_hash, str_skip(s->policy_hash, 7)))
        f->policy_hash = digest_of(STR(PACK_DEFAULT_POLICY));
    f->mode = str_is(s->profile, "guard") ? STR("enforced") : STR("shadow");
}

static void put_digest(struct pretty *p, const char *name, const struct digest *d)
{
    char hex[2 * DIGEST_SIZE];

    digest_hex(hex, d);
    pretty_string(p, name, str_of(hex, sizeof(hex)));
}

static void put_attestation(struct pretty *p, const struct facts *f)
{
    pretty_object(p, NULL);
    pretty_text(p, "pack_format_version", "0.1.0");
    pretty_u64(p, "fingerprint_version", 1);
    pretty_text(p, "pack_id", f->pack_id);
    pretty_text(p, "run_id", f->parts->history->id);
    pretty_text(p, "suite_id", SUITE_ID);
    put_digest(p, "suite_hash", &f->suite_hash);
    pretty_text(p, "verifier_version", ASSAY_VERSION);
    pretty_text(p, "canon_version", "jcs-rfc8785");
    pretty_text(p, "canon_impl", "assay.jcs");
    pretty_text(p, "canon_impl_version", ASSAY_VERSION);
    put_digest(p, "policy_hash", &f->policy_hash);
    pretty_text(p, "claim_set_id", CLAIM_SET_ID);
    put_digest(p, "claim_set_hash", &f->claim_set_hash);
    pretty_text(p, "receipt_integrity", "PASS");
    pretty_text(p, "claim_check", "N/A");
    pretty_null(p, "discrepancy_fingerprint");
    pretty_text(p, "assurance_level", "L0");
    pretty_text(p, "proof_tier", "signed-pack");
    pretty_string(p, "mode", f->mode);
    put_digest(p, "head_hash", &f->parts->head);
    pretty_text(p, "head_hash_algorithm", "last-receipt-digest-v0");
    pretty_text(p, "time_authority", "local_clock");
    pretty_u64(p, "n_receipts", f->parts->receipts);
    pretty_string(p, "timestamp_start", str_of(f->start, sizeof(f->start)));
    pretty_string(p, "timestamp_end", str_of(f->end, sizeof(f->end)));
    pretty_null(p, "ci_binding");
    pretty_null(p, "valid_until");
    pretty_null(p, "superseded_by");
    pretty_end_object(p);
}

static int attest(struct facts *f, struct err *err)
{
    struct hasher h;
    struct pretty p;
    struct sink sink;

    pretty_init(&p, &f->attestation);
    put_attestation(&p, f);
    hasher_init(&h);
    sink = hasher_sink(&h);
    if (buf_check(&f->attestation, "the attestation", err) < 0 ||
        json_parse(&f->json, buf_str(&f->attestation), NULL, err) < 0 ||
        jcs_write(&f->json, JSON_ROOT, JCS_PACK, &sink, err) < 0)
        return -1;
    f->root = hasher_finish(&h);
    return 0;
}

/* --- report and transcript --- */

static const struct staged_file *find(const struct staging *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->files[i].name, name) == 0)
            return &s->files[i];
    }
    return NULL;
}

static int write_reports(const struct facts *f, struct staging *staging, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = REPORT_MAX };
    const struct staged_file *receipts = find(staging, RECEIPT_PACK_NAME);
    struct report r = {
        .verifier_name = REPORT_BUILDER_NAME,
        .passed = true,
        .claim_check = STR("N/A"),
        .trust = "NOT_EVALUATED",
        .pack_id = str_from(f->pack_id),
        .run_id = str_from(f->parts->history->id),
        .claim_set_id = STR(CLAIM_SET_ID),
        .pack_root = &f->root,
        .receipt_pack_sha256 = receipts ? &receipts->sha256 : NULL,
        .policy_sha256 = &f->policy_hash,
        .claim_set_hash = &f->claim_set_hash,
        .head_hash = &f->parts->head,
        .receipt_count = f->parts->receipts,
    };
    const struct transcript t = { .report = &r,
                                  .suite_id = STR(SUITE_ID),
                                  .mode = f->mode,
                                  .assurance_level = STR("L0"),
                                  .timestamp_start = str_of(f->start, sizeof(f->start)),
                                  .timestamp_end = str_of(f->end, sizeof(f->end)) };

    memcpy(r.verified_at, f->end, sizeof(r.verified_at));
    report_add(&text, &r);
    if (buf_check(&text, "the report", err) < 0 ||
        staging_add(staging, REPORT_NAME, buf_str(&text), err) < 0)
        return -1;
    buf_reset(&text);
    report_add_transcript(&text, &t);
    if (buf_check(&text, "the transcript", err) < 0)
        return -1;
    return staging_add(staging, TRANSCRIPT_NAME, buf_str(&text), err);
}

/* --- manifest --- */

/* The files that the manifest lists, those of the public format first. */
static const char *const listed[] = {
    RECEIPT_PACK_NAME, REPORT_NAME,         TRANSCRIPT_NAME,
    LOG_EVENTS_NAME,   LOG_CHECKPOINT_NAME, LOG_PROOF_NAME,
};
static const char *const unlisted[] = { MANIFEST_NAME, SIGNATURE_NAME };

static void put_files(struct pretty *p, const struct staging *staging)
{
    pretty_array(p, "files");
    for (size_t i = 0; i < COUNT(listed); i++) {
        const struct staged_file *file = find(staging, listed[i]);

        if (!file)
            continue; /* the manifest then does not verify */
        pretty_object(p, NULL);
        pretty_text(p, "path", file->name);
        put_digest(p, "sha256", &file->sha256);
        pretty_u64(p, "bytes", file->bytes);
        pretty_end_object(p);
    }
    pretty_end_array(p);
    pretty_array(p, "expected_files");
    for (size_t i = 0; i < 3; i++)
        pretty_text(p, NULL, listed[i]);
    for (size_t i = 0; i < COUNT(unlisted); i++)
        pretty_text(p, NULL, unlisted[i]);
    for (size_t i = 3; i < COUNT(listed); i++)
        pretty_text(p, NULL, listed[i]);
    pretty_end_array(p);
}

static void put_signer(struct pretty *p, const struct signer *signer)
{
    CLEANUP(buf_release) struct buf key = { 0 };
    str public_key = str_of(signer->secret.public_key, PUBLIC_SIZE);
    struct digest fingerprint = digest_of(public_key);

    base64_add(&key, public_key.p, public_key.n);
    pretty_text(p, "signer_id", signer->id);
    pretty_string(p, "signer_pubkey", buf_str(&key));
    put_digest(p, "signer_pubkey_sha256", &fingerprint);
    pretty_text(p, "signature_alg", "ed25519");
    pretty_text(p, "signature_scope",
                "JCS(pack_manifest_excluding_signature_and_pack_root_sha256)");
}

/* With a signature, the finished manifest; without, what is signed. */
static int compose_manifest(struct buf *out, const struct facts *f,
                            const struct staging *staging, const uint8_t *signature,
                            struct err *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct pretty p;

    pretty_init(&p, out);
    pretty_object(&p, NULL);
    pretty_text(&p, "pack_id", f->pack_id);
    pretty_text(&p, "pack_version", "0.1.0");
    pretty_text(&p, "manifest_version", "1.0.0");
    pretty_text(&p, "hash_alg", "sha256");
    pretty_node(&p, "attestation", &f->json, JSON_ROOT);
    put_digest(&p, "attestation_sha256", &f->root);
    put_digest(&p, "suite_hash", &f->suite_hash);
    pretty_text(&p, "claim_set_id", CLAIM_SET_ID);
    put_digest(&p, "claim_set_hash", &f->claim_set_hash);
    pretty_u64(&p, "receipt_count_expected", f->parts->receipts);
    put_files(&p, staging);
    put_signer(&p, f->signer);
    if (signature) {
        base64_add(&text, signature, SIGNATURE_SIZE);
        pretty_string(&p, "signature", buf_str(&text));
        put_digest(&p, "pack_root_sha256", &f->root);
    }
    pretty_end_object(&p);
    return buf_check(out, "the manifest", err);
}

static int sign_manifest(uint8_t out[static SIGNATURE_SIZE], const struct facts *f,
                         const struct staging *staging, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf canonical = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    struct sink sink = buf_sink(&canonical);

    if (compose_manifest(&text, f, staging, NULL, err) < 0 ||
        json_parse(&json, buf_str(&text), NULL, err) < 0 ||
        jcs_write(&json, JSON_ROOT, JCS_PACK, &sink, err) < 0 ||
        buf_check(&canonical, "the manifest", err) < 0)
        return -1;
    return sign(out, &f->signer->secret, buf_str(&canonical), err);
}

static int write_manifest(const struct facts *f, struct staging *staging, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    uint8_t signature[SIGNATURE_SIZE];

    if (sign_manifest(signature, f, staging, err) < 0 ||
        compose_manifest(&text, f, staging, signature, err) < 0 ||
        staging_add(staging, MANIFEST_NAME, buf_str(&text), err) < 0)
        return -1;
    return staging_add(staging, SIGNATURE_NAME, str_of(signature, sizeof(signature)),
                       err);
}

int packmanifest_write(const struct parts *p, const struct session_cut *cut,
                       const struct signer *signer, struct staging *staging,
                       struct digest *root, struct err *err)
{
    CLEANUP(facts_release) struct facts f = { .parts = p, .signer = signer };

    gather(&f, cut);
    if (attest(&f, err) < 0 || write_reports(&f, staging, err) < 0 ||
        write_manifest(&f, staging, err) < 0)
        return -1;
    *root = f.root;
    return 0;
}
