/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/report.h"

#include <stdio.h>

#include "json/jcs.h"

static const char *integrity_of(const struct report *r)
{
    return r->passed ? "PASS" : "TAMPERED";
}

static const char *claim_of(const struct report *r)
{
    if (str_is(r->claim_check, "PASS"))
        return "PASS";
    return str_is(r->claim_check, "FAIL") ? "HONEST_FAIL" : "NOT_EVALUATED";
}

static bool claim_evaluated(const struct report *r)
{
    return strcmp(claim_of(r), "NOT_EVALUATED") != 0;
}

static bool trust_evaluated(const struct report *r)
{
    return strcmp(r->trust, "NOT_EVALUATED") != 0;
}

const char *report_overall(const struct report *r)
{
    if (!r->passed)
        return "TAMPERED";
    if (strcmp(r->trust, "UNTRUSTED") == 0)
        return "UNTRUSTED";
    return strcmp(claim_of(r), "HONEST_FAIL") == 0 ? "HONEST_FAIL" : "PASS";
}

/* The channel that decided against the pack, or NULL. */
static const char *blocking_channel(const struct report *r)
{
    const char *overall = report_overall(r);

    if (strcmp(overall, "TAMPERED") == 0)
        return "integrity";
    if (strcmp(overall, "UNTRUSTED") == 0)
        return "trust";
    return strcmp(overall, "HONEST_FAIL") == 0 ? "claim" : NULL;
}

static const char *trust_of(const struct verify_result *v)
{
    const struct requirement *signer = &v->requirements[REQUIRE_SIGNER];
    const struct requirement *lock = &v->requirements[REQUIRE_LOCK];

    if (!v->findings.count &&
        ((signer->asked && !signer->met) || (lock->asked && !lock->met)))
        return "UNTRUSTED";
    return !v->findings.count && v->key == KEY_PINNED ? "PASS" : "NOT_EVALUATED";
}

void report_of(struct report *r, const struct verify_result *v, const struct lock *lock)
{
    const struct manifest *m = &v->manifest;

    *r = (struct report){
        .verifier_name = REPORT_VERIFIER_NAME,
        .passed = v->verdict != VERIFY_TAMPERED,
        .trust = trust_of(v),
        .manifest_sha256 = m->text.p ? &m->text_sha256 : NULL,
        .receipt_pack_sha256 = v->has_receipt_pack ? &v->receipt_pack_sha256 : NULL,
        .config_sha256 = lock ? &lock->file_sha256 : NULL,
        .head_hash = v->receipts.head_known ? &v->receipts.head : NULL,
        .receipt_count = v->receipts.count,
        .result = v,
    };
    clock_format(r->verified_at, v->verified_at);
    if (!v->has_manifest)
        return;
    r->claim_check = m->claim_check;
    r->pack_id = m->pack_id;
    r->run_id = m->run_id;
    r->claim_set_id = m->claim_set_id;
    r->pack_root = &m->pack_root_sha256;
    r->policy_sha256 = &m->policy_hash;
    r->claim_set_hash = &m->claim_set_hash;
}

void report_add_key_words(struct buf *out, const struct verify_result *v)
{
    if (!v->signature_good)
        buf_add(out, STR("its signature is not good: nobody vouches for this pack"));
    else if (v->key == KEY_PINNED)
        buf_add(out, STR("known: it is the key that you named"));
    else if (v->key == KEY_LOCAL && v->local_secret)
        buf_printf(out, "known: it is the key '%s' of this machine", v->local_id);
    else if (v->key == KEY_LOCAL)
        buf_printf(out,
                   "known: this machine has its public half, as '%s', and not the secret "
                   "one",
                   v->local_id);
    else
        buf_add(out,
                STR("unknown: compare this fingerprint with one that you got another "
                    "way"));
}

bool report_signer_unknown(const struct report *r)
{
    return r->passed && r->result && r->result->key == KEY_UNKNOWN;
}

const char *report_boundary(const struct report *r)
{
    return verify_boundary(r->passed ? VERIFY_SOUND : VERIFY_TAMPERED);
}

bool report_unmet(const struct report *r)
{
    return r->result && r->result->verdict == VERIFY_UNMET;
}

static void add_seed_digest(struct buf *b, const struct digest *d)
{
    if (!d) {
        buf_add(b, STR("null"));
        return;
    }
    buf_add_char(b, '"');
    digest_add_hex(b, d);
    buf_add_char(b, '"');
}

void report_id(char out[static REPORT_ID_TEXT], const struct report *r)
{
    CLEANUP(buf_release) struct buf seed = { 0 };
    char hex[2 * DIGEST_SIZE];
    struct digest d;

    buf_printf(&seed, "{\"claim_verdict\":\"%s\",\"integrity_verdict\":\"%s\"",
               claim_of(r), integrity_of(r));
    buf_add(&seed, STR(",\"pack_root_sha256\":"));
    add_seed_digest(&seed, r->pack_root);
    buf_printf(&seed,
               ",\"replay_verdict\":\"NOT_RUN\",\"trust_verdict\":\"%s\","
               "\"verified_at\":\"%.24s\",\"verifier_version\":\"%s\"}",
               r->trust, r->verified_at, ASSAY_VERSION);
    d = digest_of(buf_str(&seed));
    digest_hex(hex, &d);
    memcpy(out, "vr_", 3);
    memcpy(out + 3, hex, REPORT_ID_TEXT - 3);
}

static void put_digest(struct pretty *p, const char *name, const struct digest *d)
{
    char hex[2 * DIGEST_SIZE];

    if (!d) {
        pretty_null(p, name);
        return;
    }
    digest_hex(hex, d);
    pretty_string(p, name, str_of(hex, sizeof(hex)));
}

static void put_optional(struct pretty *p, const char *name, str text)
{
    if (text.n)
        pretty_string(p, name, text);
    else
        pretty_null(p, name);
}

/* "integrity" and what else was evaluated, or the others. */
static void put_channels(struct pretty *p, const char *name, const struct report *r,
                         bool required)
{
    pretty_array(p, name);
    if (required)
        pretty_text(p, NULL, "integrity");
    if (claim_evaluated(r) == required)
        pretty_text(p, NULL, "claim");
    if (!required)
        pretty_text(p, NULL, "replay");
    if (trust_evaluated(r) == required)
        pretty_text(p, NULL, "trust");
    pretty_end_array(p);
}

static void put_overall(struct pretty *p, const struct report *r)
{
    const char *claim = claim_evaluated(r) ? "_claim" : "";
    const char *trust = trust_evaluated(r) ? "_trust" : "";
    const char *channel = blocking_channel(r);
    char text[128];

    snprintf(text, sizeof(text), "integrity%s%s_required", claim, trust);
    pretty_text(p, "evaluation_profile", text);
    put_channels(p, "required_channels", r, true);
    put_channels(p, "optional_channels", r, false);
    put_channels(p, "unevaluated_channels", r, false);
    pretty_text(p, "overall_verdict", report_overall(r));
    if (channel)
        snprintf(text, sizeof(text), "%s_verdict=%s", channel, report_overall(r));
    else
        snprintf(text, sizeof(text),
                 "required_channels_passed; optional_channels_not_evaluated=%sreplay%s",
                 claim_evaluated(r) ? "" : "claim,", trust_evaluated(r) ? "" : ",trust");
    pretty_text(p, "overall_reason", text);
    if (channel)
        pretty_text(p, "blocking_channel", channel);
    else
        pretty_null(p, "blocking_channel");
}

static void put_expectations(struct pretty *p, const struct report *r)
{
    pretty_object(p, "verifier");
    pretty_text(p, "name", r->verifier_name);
    pretty_text(p, "version", ASSAY_VERSION);
    pretty_text(p, "policy_id", REPORT_POLICY);
    pretty_end_object(p);
    pretty_object(p, "expectations");
    pretty_text(p, "policy_id", REPORT_POLICY);
    put_digest(p, "policy_sha256", r->policy_sha256);
    put_optional(p, "claim_set_id", r->claim_set_id);
    put_digest(p, "claim_set_hash", r->claim_set_hash);
    pretty_end_object(p);
    put_digest(p, "verification_inputs_sha256", r->pack_root);
    put_digest(p, "verifier_config_sha256", r->config_sha256);
}

static void put_evidence_ref(struct pretty *p, const char *kind, const char *path,
                             const struct digest *d)
{
    pretty_object(p, NULL);
    pretty_text(p, "kind", kind);
    pretty_text(p, "path", path);
    put_digest(p, "sha256", d);
    pretty_end_object(p);
}

static void put_provenance(struct pretty *p, const struct report *r)
{
    const struct verify_result *v = r->result;

    if (v && v->has_manifest && v->manifest.ci_binding != JSON_NONE) {
        pretty_node(p, "provenance", &v->manifest.json, v->manifest.ci_binding);
    } else {
        pretty_object(p, "provenance");
        pretty_end_object(p);
    }
    pretty_array(p, "evidence_refs");
    put_evidence_ref(p, "pack_manifest", MANIFEST_NAME, r->manifest_sha256);
    put_evidence_ref(p, "receipt_pack", RECEIPT_PACK_NAME, r->receipt_pack_sha256);
    pretty_end_array(p);
}

/* The first finding of a stage; NULL when it has none. */
static const struct finding *reason_of(const struct verify_result *v, enum stage stage)
{
    for (size_t i = 0; i < v->findings.count; i++) {
        if (v->findings.items[i].stage == stage)
            return &v->findings.items[i];
    }
    return NULL;
}

static void put_check(struct pretty *p, const char *name, const char *verdict,
                      const struct finding *why)
{
    pretty_object(p, NULL);
    pretty_text(p, "name", name);
    pretty_text(p, "verdict", verdict);
    if (why)
        pretty_string(p, "detail", why->message);
    pretty_end_object(p);
}

static void put_checks(struct pretty *p, const struct report *r)
{
    const struct verify_result *v = r->result;

    pretty_array(p, "checks");
    if (!v)
        put_check(p, "receipt_pack_integrity", integrity_of(r), NULL);
    for (unsigned i = 0; v && i < STAGE_COUNT; i++) {
        if (v->stages[i] != STAGE_NOT_RUN)
            put_check(p, stage_name((enum stage)i),
                      v->stages[i] == STAGE_OK ? "PASS" : "TAMPERED",
                      reason_of(v, (enum stage)i));
    }
    put_check(p, "claim_check", claim_of(r), NULL);
    put_check(p, "replay", "NOT_RUN", NULL);
    put_check(p, "trust", r->trust, NULL);
    pretty_end_array(p);
}

static const char *claim_summary(const struct report *r)
{
    if (!claim_evaluated(r))
        return "No claim set was evaluated.";
    return strcmp(claim_of(r), "PASS") == 0
               ? "The evidence satisfied the evaluated claims."
               : "The evidence is intact but does not satisfy the claims.";
}

static const char *trust_summary(const struct report *r)
{
    if (!trust_evaluated(r))
        return "The signer was not compared with a pinned key.";
    return strcmp(r->trust, "PASS") == 0 ? "The signer is the one that was asked for."
                                         : "The signer is not one that was asked for.";
}

static void put_summary(struct pretty *p, const struct report *r)
{
    pretty_object(p, "summary");
    pretty_text(p, "integrity",
                r->passed ? "Manifest, file hashes, receipts and signature agree."
                          : "The pack is not what was signed.");
    pretty_text(p, "claim", claim_summary(r));
    pretty_text(p, "replay", "Replay was not run.");
    pretty_text(p, "trust", trust_summary(r));
    pretty_end_object(p);
}

static void put_finding(struct pretty *p, const struct finding *f)
{
    const struct finding_info *info = finding_info(f->code);

    pretty_object(p, NULL);
    pretty_text(p, "code", info->name);
    pretty_string(p, "message", f->message);
    if (f->receipt)
        pretty_u64(p, "receipt_index", f->receipt - 1);
    if (f->field.n)
        pretty_string(p, "field", f->field);
    pretty_text(p, "failure_mechanism", info->mechanism);
    pretty_text(p, "stage", stage_name(f->stage));
    pretty_end_object(p);
}

static void put_findings(struct pretty *p, const struct verify_result *v)
{
    pretty_array(p, "errors");
    for (size_t i = 0; v && i < v->findings.count; i++)
        put_finding(p, &v->findings.items[i]);
    pretty_end_array(p);
    if (v && v->findings.left_out)
        pretty_u64(p, "errors_left_out", v->findings.left_out);
    pretty_array(p, "warnings");
    for (size_t i = 0; v && i < v->warning_count; i++)
        pretty_string(p, NULL, v->warnings[i]);
    pretty_end_array(p);
    if (v && v->warnings_left_out)
        pretty_u64(p, "warnings_left_out", v->warnings_left_out);
}

/* What the caller asked for, and whether it is so. */
static void put_requirements(struct pretty *p, const struct verify_result *v)
{
    pretty_array(p, "requirements");
    for (unsigned i = 0; i < REQUIREMENTS; i++) {
        const struct requirement *r = &v->requirements[i];

        if (!r->asked)
            continue;
        pretty_object(p, NULL);
        pretty_text(p, "requirement", requirement_flag((enum requirement_kind)i));
        pretty_bool(p, "met", r->met);
        if (r->code)
            pretty_text(p, "code", finding_info(r->code)->name);
        if (r->message.n)
            pretty_string(p, "message", r->message);
        pretty_end_object(p);
    }
    pretty_end_array(p);
}

static void put_stages(struct pretty *p, const struct verify_result *v)
{
    pretty_array(p, "stages");
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        const struct finding *why = reason_of(v, (enum stage)i);

        if (v->stages[i] == STAGE_NOT_RUN)
            continue;
        pretty_object(p, NULL);
        pretty_text(p, "stage", stage_name((enum stage)i));
        pretty_text(p, "status", v->stages[i] == STAGE_OK ? "ok" : "fail");
        if (why)
            pretty_string(p, "reason", why->message);
        pretty_end_object(p);
    }
    pretty_end_array(p);
}

/* How often each family of faults occurs among the errors above. */
static void put_mechanisms(struct pretty *p, const struct findings *f)
{
    bool done[FINDING_CODES] = { false };

    if (!f->count)
        return;
    pretty_object(p, "failure_mechanisms");
    for (size_t i = 0; i < f->count; i++) {
        const char *family = finding_info(f->items[i].code)->mechanism;
        uint64_t n = 0;

        if (done[f->items[i].code])
            continue;
        for (size_t k = 0; k < f->count; k++) {
            if (strcmp(finding_info(f->items[k].code)->mechanism, family) == 0) {
                done[f->items[k].code] = true;
                n++;
            }
        }
        pretty_u64(p, family, n);
    }
    pretty_end_object(p);
}

static void put_list(struct pretty *p, const char *name, const char *const *texts)
{
    pretty_array(p, name);
    for (; *texts; texts++)
        pretty_text(p, NULL, *texts);
    pretty_end_array(p);
}

static void put_scope(struct pretty *p, const struct report *r)
{
    static const char *const intact[] = { "pack_integrity", "receipt_sequence_integrity",
                                          "signature_validity", NULL };
    static const char *const broken[] = { "tamper_evidence_detected", NULL };
    static const char *const not_proven[] = {
        "output_correctness",
        "output_safety",
        "business_policy_fitness",
        "legal_compliance",
        "instrumentation_completeness",
        "signer_authority_beyond_configured_trust",
        NULL,
    };

    pretty_object(p, "scope");
    pretty_text(p, "schema", "assay.verify.scope.v1");
    pretty_object(p, "channels");
    pretty_text(p, "integrity", "ran");
    pretty_text(p, "claim", claim_evaluated(r) ? "ran" : "not_evaluated");
    pretty_text(p, "replay", "not_run");
    pretty_text(p, "trust", trust_evaluated(r) ? "ran" : "not_evaluated");
    pretty_end_object(p);
    pretty_object(p, "extensions");
    pretty_end_object(p);
    put_list(p, "proves", r->passed ? intact : broken);
    put_list(p, "does_not_prove", not_proven);
    pretty_text(p, "note", report_boundary(r));
    pretty_end_object(p);
}

void report_members(struct pretty *p, const struct report *r)
{
    char id[REPORT_ID_TEXT];

    report_id(id, r);
    pretty_text(p, "schema_version", REPORT_SCHEMA);
    pretty_string(p, "report_id", str_of(id, sizeof(id)));
    put_optional(p, "pack_id", r->pack_id);
    put_optional(p, "run_id", r->run_id);
    put_digest(p, "pack_root_sha256", r->pack_root);
    put_digest(p, "pack_manifest_sha256", r->manifest_sha256);
    pretty_text(p, "integrity_verdict", integrity_of(r));
    pretty_text(p, "claim_verdict", claim_of(r));
    pretty_text(p, "replay_verdict", "NOT_RUN");
    pretty_text(p, "trust_verdict", r->trust);
    put_overall(p, r);
    pretty_string(p, "verified_at", str_of(r->verified_at, CLOCK_TEXT));
    put_expectations(p, r);
    put_provenance(p, r);
    put_checks(p, r);
    put_summary(p, r);
    pretty_bool(p, "passed", r->passed && !report_unmet(r));
    put_findings(p, r->result);
    pretty_u64(p, "receipt_count", r->receipt_count);
    put_digest(p, "head_hash", r->head_hash);
    if (r->result) {
        put_requirements(p, r->result);
        put_stages(p, r->result);
        put_mechanisms(p, &r->result->findings);
    }
    put_scope(p, r);
}

void report_add(struct buf *out, const struct report *r)
{
    struct pretty p;

    pretty_init(&p, out);
    pretty_object(&p, NULL);
    report_members(&p, r);
    pretty_end_object(&p);
}
