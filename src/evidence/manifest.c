/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/manifest.h"

#include "base/err.h"
#include "evidence/schema.h"
#include "json/jcs.h"

#define MANIFEST_MEMORY (8 * MANIFEST_MAX_BYTES) /* text, strings, tables */

static const char *const hash_algs[] = { "sha256", NULL };
static const char *const signature_algs[] = { "ed25519", NULL };
static const char *const signature_scopes[] = {
    "JCS(pack_manifest_excluding_signature_and_pack_root_sha256)",
    "JCS(pack_manifest_without_signature)", /* packs before 1.14 say this, same bytes */
    NULL,
};
static const char *const integrities[] = { "PASS", "FAIL", NULL };
static const char *const claim_checks[] = { "PASS", "FAIL", "N/A", NULL };
static const char *const levels[] = { "L0", "L1", "L2", "L3", NULL };
static const char *const tiers[] = { "hash-only", "signed-pack", "signed-receipts",
                                     NULL };
static const char *const modes[] = { "shadow", "enforced", "breakglass", NULL };
static const char *const providers[] = { "github_actions", "gitlab_ci", "circleci",
                                         "jenkins",        "local",     NULL };

static const struct rule ci_rules[] = {
    { .name = "provider", .kind = RULE_ENUM, .values = providers },
    { .name = "commit_sha", .kind = RULE_HEX40 },
    { .name = "repo", .kind = RULE_TEXT, .optional = true },
    { .name = "ref", .kind = RULE_TEXT, .optional = true },
    { .name = "run_id", .kind = RULE_NAME, .optional = true },
    { .name = "run_attempt", .kind = RULE_NAME, .optional = true },
    { .name = "workflow_ref", .kind = RULE_TEXT, .optional = true },
    { .name = "actor", .kind = RULE_TEXT, .optional = true },
};
static const struct shape ci_shape = { "ci_binding", ci_rules, COUNT(ci_rules) };

static const struct rule attestation_rules[] = {
    { .name = "pack_format_version", .kind = RULE_RELEASE },
    { .name = "fingerprint_version", .kind = RULE_POSITIVE },
    { .name = "pack_id", .kind = RULE_NAME },
    { .name = "run_id", .kind = RULE_NAME },
    { .name = "suite_id", .kind = RULE_NAME },
    { .name = "suite_hash", .kind = RULE_HEX64 },
    { .name = "verifier_version", .kind = RULE_VERSION },
    { .name = "canon_version", .kind = RULE_VERSION },
    { .name = "canon_impl", .kind = RULE_TEXT },
    { .name = "canon_impl_version", .kind = RULE_TEXT },
    { .name = "policy_hash", .kind = RULE_HEX64 },
    { .name = "claim_set_id", .kind = RULE_NAME },
    { .name = "claim_set_hash", .kind = RULE_HEX64 },
    { .name = "receipt_integrity", .kind = RULE_ENUM, .values = integrities },
    { .name = "claim_check", .kind = RULE_ENUM, .values = claim_checks },
    { .name = "discrepancy_fingerprint",
      .kind = RULE_HEX64,
      .optional = true,
      .nullable = true },
    { .name = "assurance_level", .kind = RULE_ENUM, .values = levels },
    { .name = "proof_tier", .kind = RULE_ENUM, .values = tiers },
    { .name = "mode", .kind = RULE_ENUM, .values = modes },
    { .name = "head_hash", .kind = RULE_HEX64 },
    { .name = "head_hash_algorithm", .kind = RULE_TEXT },
    { .name = "time_authority", .kind = RULE_TEXT },
    { .name = "n_receipts", .kind = RULE_COUNT },
    { .name = "timestamp_start", .kind = RULE_TIME },
    { .name = "timestamp_end", .kind = RULE_TIME },
    { .name = "ci_binding",
      .kind = RULE_OBJECT,
      .optional = true,
      .nullable = true,
      .shape = &ci_shape },
    { .name = "valid_until", .kind = RULE_TIME, .optional = true, .nullable = true },
    { .name = "superseded_by", .kind = RULE_NAME, .optional = true, .nullable = true },
};
static const struct shape attestation_shape = { "the attestation", attestation_rules,
                                                COUNT(attestation_rules) };

static const struct rule file_rules[] = {
    { .name = "path", .kind = RULE_NAME },
    { .name = "sha256", .kind = RULE_HEX64 },
    { .name = "bytes", .kind = RULE_COUNT },
};
static const struct shape file_shape = { "an entry of files", file_rules,
                                         COUNT(file_rules) };

static const struct rule manifest_rules[] = {
    { .name = "pack_id", .kind = RULE_NAME },
    { .name = "pack_version", .kind = RULE_VERSION },
    { .name = "manifest_version", .kind = RULE_VERSION },
    { .name = "hash_alg", .kind = RULE_ENUM, .values = hash_algs },
    { .name = "attestation", .kind = RULE_OBJECT, .shape = &attestation_shape },
    { .name = "attestation_sha256", .kind = RULE_HEX64 },
    { .name = "suite_hash", .kind = RULE_HEX64 },
    { .name = "claim_set_id", .kind = RULE_NAME },
    { .name = "claim_set_hash", .kind = RULE_HEX64 },
    { .name = "redaction_policy_sha256", .kind = RULE_HEX64, .optional = true },
    { .name = "receipt_count_expected", .kind = RULE_COUNT },
    { .name = "files", .kind = RULE_OBJECTS, .least = 3, .shape = &file_shape },
    { .name = "expected_files", .kind = RULE_NAMES, .least = 5 },
    { .name = "signer_id", .kind = RULE_NAME },
    { .name = "signer_pubkey", .kind = RULE_TEXT },
    { .name = "signer_pubkey_sha256", .kind = RULE_HEX64 },
    { .name = "signature_alg", .kind = RULE_ENUM, .values = signature_algs },
    { .name = "signature_scope", .kind = RULE_ENUM, .values = signature_scopes },
    { .name = "signature", .kind = RULE_NAME },
    { .name = "pack_root_sha256", .kind = RULE_HEX64 },
};
static const struct shape manifest_shape = { "the manifest", manifest_rules,
                                             COUNT(manifest_rules) };

static void add_fault(void *ctx, const char *place, const char *what)
{
    const struct finding like = { .code = FINDING_MANIFEST_TAMPER,
                                  .stage = STAGE_SCHEMA,
                                  .field = STR(MANIFEST_NAME) };

    findings_add(ctx, &like, "the manifest is not valid: %s%s%s", place,
                 *place ? ": " : "", what);
}

static void discard(void *ctx, str bytes)
{
    (void)ctx;
    (void)bytes;
}

/* Duplicate members and lone surrogates: the canonical writer knows which. */
static void check_meaning(const struct json *j, struct findings *f)
{
    const struct sink nowhere = { discard, NULL };
    struct err why = { 0 };

    if (!(j->nodes[JSON_ROOT].flags & JSON_TAINTED))
        return;
    if (jcs_write(j, JSON_ROOT, JCS_PACK, &nowhere, &why) < 0)
        add_fault(f, "", why.msg);
    else
        add_fault(f, "", "it has no single meaning");
}

static bool check_shape(const struct json *j, struct findings *f)
{
    struct schema_faults faults = { add_fault, f };
    uint64_t before = f->count + f->left_out;
    uint32_t files = json_member(j, JSON_ROOT, STR("files"));
    uint32_t expected = json_member(j, JSON_ROOT, STR("expected_files"));

    check_meaning(j, f);
    schema_check(j, JSON_ROOT, &manifest_shape, &faults);
    if (json_is(j, files, JSON_ARRAY) && json_count(j, files) > MANIFEST_MAX_FILES)
        add_fault(f, "/files", "more than 4096 entries");
    if (json_is(j, expected, JSON_ARRAY) && json_count(j, expected) > MANIFEST_MAX_FILES)
        add_fault(f, "/expected_files", "more than 4096 entries");
    return f->count + f->left_out == before;
}

/* From here on every member is there and has its type. */

static str text_at(struct manifest *m, uint32_t node)
{
    CLEANUP(buf_release) struct buf text = { .max = MANIFEST_MAX_BYTES };
    str s;

    if (!json_is(&m->json, node, JSON_STRING))
        return (str){ NULL, 0 };
    json_unescape(&m->json, node, &text);
    s = arena_dup(&m->arena, buf_str(&text));
    m->arena.failed |= text.failed;
    return s;
}

static str text_of(struct manifest *m, uint32_t object, const char *name)
{
    return text_at(m, json_member(&m->json, object, str_from(name)));
}

static struct digest digest_of_member(struct manifest *m, uint32_t object,
                                      const char *name)
{
    struct digest d = { { 0 } };

    if (!digest_from_hex(&d, text_of(m, object, name)))
        m->arena.failed = true; /* only without memory: the schema was checked */
    return d;
}

static uint64_t count_of(struct manifest *m, uint32_t object, const char *name)
{
    int64_t value = 0;

    if (!json_int(&m->json, json_member(&m->json, object, str_from(name)), &value))
        return 0;
    return (uint64_t)value;
}

static void take_files(struct manifest *m)
{
    uint32_t files = json_member(&m->json, JSON_ROOT, STR("files"));
    uint32_t expected = json_member(&m->json, JSON_ROOT, STR("expected_files"));
    size_t n = json_count(&m->json, files), e = json_count(&m->json, expected);

    m->files = arena_alloc(&m->arena, n * sizeof(*m->files));
    m->expected = arena_alloc(&m->arena, e * sizeof(*m->expected));
    if (!m->files || !m->expected)
        return;
    json_each (&m->json, files, at) {
        m->files[m->file_count++] = (struct manifest_file){
            .path = text_of(m, at, "path"),
            .sha256 = digest_of_member(m, at, "sha256"),
            .bytes = count_of(m, at, "bytes"),
        };
    }
    json_each (&m->json, expected, at)
        m->expected[m->expected_count++] = text_at(m, at);
}

static void take_attestation(struct manifest *m)
{
    uint32_t a = json_member(&m->json, JSON_ROOT, STR("attestation"));
    uint32_t ci = json_member(&m->json, a, STR("ci_binding"));

    m->attestation = a;
    m->ci_binding = json_is(&m->json, ci, JSON_OBJECT) ? ci : JSON_NONE;
    m->run_id = text_of(m, a, "run_id");
    m->suite_id = text_of(m, a, "suite_id");
    m->mode = text_of(m, a, "mode");
    m->claim_check = text_of(m, a, "claim_check");
    m->receipt_integrity = text_of(m, a, "receipt_integrity");
    m->assurance_level = text_of(m, a, "assurance_level");
    m->proof_tier = text_of(m, a, "proof_tier");
    m->pack_format_version = text_of(m, a, "pack_format_version");
    m->verifier_version = text_of(m, a, "verifier_version");
    m->timestamp_start = text_of(m, a, "timestamp_start");
    m->timestamp_end = text_of(m, a, "timestamp_end");
    m->valid_until = text_of(m, a, "valid_until");
    m->head_hash = digest_of_member(m, a, "head_hash");
    m->policy_hash = digest_of_member(m, a, "policy_hash");
    m->n_receipts = count_of(m, a, "n_receipts");
    m->commit_sha = text_of(m, m->ci_binding, "commit_sha");
}

static void take_members(struct manifest *m)
{
    m->pack_id = text_of(m, JSON_ROOT, "pack_id");
    m->signer_id = text_of(m, JSON_ROOT, "signer_id");
    m->signer_pubkey = text_of(m, JSON_ROOT, "signer_pubkey");
    m->signature = text_of(m, JSON_ROOT, "signature");
    m->claim_set_id = text_of(m, JSON_ROOT, "claim_set_id");
    m->claim_set_hash = digest_of_member(m, JSON_ROOT, "claim_set_hash");
    m->attestation_sha256 = digest_of_member(m, JSON_ROOT, "attestation_sha256");
    m->pack_root_sha256 = digest_of_member(m, JSON_ROOT, "pack_root_sha256");
    m->signer_pubkey_sha256 = digest_of_member(m, JSON_ROOT, "signer_pubkey_sha256");
    m->receipt_count = count_of(m, JSON_ROOT, "receipt_count_expected");
    take_attestation(m);
    take_files(m);
}

void manifest_release(struct manifest *m)
{
    json_release(&m->json);
    arena_release(&m->arena);
    *m = (struct manifest){ 0 };
}

static int parse(struct manifest *m, struct findings *f, bool *valid, struct err *err)
{
    const struct json_limits limits = { .max_bytes = MANIFEST_MAX_BYTES };
    struct err why = { 0 };

    if (json_parse(&m->json, m->text, &limits, &why) < 0) {
        if (why.code == ERR_NOMEM)
            return err_set(err, ERR_NOMEM, "%s", why.msg);
        add_fault(f, "", why.msg);
        *valid = false;
        return 0;
    }
    *valid = check_shape(&m->json, f);
    if (*valid)
        take_members(m);
    return 0;
}

int manifest_read(struct manifest *m, str text, struct findings *findings, bool *valid,
                  struct err *err)
{
    struct manifest read = { .ci_binding = JSON_NONE, .attestation = JSON_NONE };
    bool good = false;

    read.text_sha256 = digest_of(text);
    if (text.n > MANIFEST_MAX_BYTES) {
        add_fault(findings, "", "it is larger than 8388608 bytes");
    } else {
        arena_init(&read.arena, MANIFEST_MEMORY);
        read.text = arena_dup(&read.arena, text);
        if (!read.arena.failed && parse(&read, findings, &good, err) < 0) {
            manifest_release(&read);
            return -1;
        }
    }
    if (read.arena.failed) {
        manifest_release(&read);
        return err_set(err, ERR_NOMEM, "no memory for the manifest");
    }
    *m = read;
    *valid = good;
    return 0;
}

bool manifest_lists(const struct manifest *m, const char *path)
{
    for (size_t i = 0; i < m->file_count; i++) {
        if (str_is(m->files[i].path, path))
            return true;
    }
    return false;
}

int manifest_signed_bytes(const struct manifest *m, struct buf *out, struct err *err)
{
    static const char *const unsigned_members[] = { "signature", "pack_root_sha256" };
    struct sink sink = buf_sink(out);

    if (jcs_write_without(&m->json, JSON_ROOT, unsigned_members, COUNT(unsigned_members),
                          JCS_PACK, &sink, err) < 0)
        return -1;
    return buf_check(out, "the canonical manifest", err);
}

int manifest_attestation_hash(const struct manifest *m, struct digest *out,
                              struct err *err)
{
    struct hasher h;
    struct sink sink;

    hasher_init(&h);
    sink = hasher_sink(&h);
    if (jcs_write(&m->json, m->attestation, JCS_PACK, &sink, err) < 0)
        return -1;
    *out = hasher_finish(&h);
    return 0;
}
