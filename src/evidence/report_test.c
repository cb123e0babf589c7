/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/report.h"

#include "base/err.h"
#include "evidence/receipt_pack.h"
#include "evidence/report_html.h"
#include "tests/tap.h"
#include "json/json.h"

static int64_t test_now(void *ctx)
{
    (void)ctx;
    return INT64_C(1767225600000); /* 2026-01-01T00:00:00Z */
}

static const struct clock test_clock = { test_now, NULL };

static bool contains(const struct buf *b, const char *text)
{
    return memmem(b->p, b->n, text, strlen(text)) != NULL;
}

static struct report report_of_root(const struct digest *root)
{
    struct report r = { .verifier_name = REPORT_BUILDER_NAME,
                        .passed = true,
                        .claim_check = STR("N/A"),
                        .trust = "NOT_EVALUATED",
                        .pack_root = root };

    memcpy(r.verified_at, "2026-03-15T11:30:00.000Z", CLOCK_TEXT);
    return r;
}

/* Computed by the public tool: "vr_" + sha256(jcs.canonicalize(seed)).hexdigest()[:20]
 * with verifier_version 0.1.0. */
static void test_report_id_is_the_public_one(void)
{
    static const struct {
        const char *claim, *trust, *id;
        bool passed, has_root;
    } rows[] = {
        { "N/A", "NOT_EVALUATED", "vr_8a08174b332576807aba", true, true },
        { "PASS", "PASS", "vr_5319250d265f65f93fae", true, true },
        { "FAIL", "UNTRUSTED", "vr_1ebdba48457737deb695", false, true },
        { "N/A", "NOT_EVALUATED", "vr_590af1e24334ff2f4565", false, false },
    };
    struct digest root = digest_of(STR("attestation"));

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct report r = report_of_root(rows[i].has_root ? &root : NULL);
        char id[REPORT_ID_TEXT];

        r.passed = rows[i].passed;
        r.claim_check = str_from(rows[i].claim);
        r.trust = rows[i].trust;
        report_id(id, &r);
        ok(str_is(str_of(id, sizeof(id)), rows[i].id), "report_id of row %zu is %s", i,
           rows[i].id);
    }
}

static void test_overall_verdict_has_a_precedence(void)
{
    static const struct {
        bool passed;
        const char *claim, *trust, *overall;
    } rows[] = {
        { true, "N/A", "NOT_EVALUATED", "PASS" },
        { true, "PASS", "PASS", "PASS" },
        { true, "FAIL", "PASS", "HONEST_FAIL" },
        { true, "FAIL", "UNTRUSTED", "UNTRUSTED" },
        { false, "FAIL", "UNTRUSTED", "TAMPERED" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct report r = report_of_root(NULL);

        r.passed = rows[i].passed;
        r.claim_check = str_from(rows[i].claim);
        r.trust = rows[i].trust;
        ok(strcmp(report_overall(&r), rows[i].overall) == 0, "%s over %s is %s",
           rows[i].trust, rows[i].claim, rows[i].overall);
    }
}

static void test_every_required_key_is_there(void)
{
    static const char *const keys[] = {
        "schema_version",
        "report_id",
        "pack_root_sha256",
        "pack_manifest_sha256",
        "integrity_verdict",
        "claim_verdict",
        "replay_verdict",
        "trust_verdict",
        "evaluation_profile",
        "required_channels",
        "optional_channels",
        "unevaluated_channels",
        "overall_verdict",
        "overall_reason",
        "blocking_channel",
        "verified_at",
        "verifier",
        "expectations",
        "evidence_refs",
        "checks",
        "errors",
        "warnings",
        "summary",
        "passed",
        "receipt_count",
        "head_hash",
    };
    CLEANUP(buf_release) struct buf out = { .max = REPORT_MAX };
    CLEANUP(json_release) struct json j = { 0 };
    struct report r = report_of_root(NULL);
    struct err err = { 0 };

    report_add(&out, &r);
    ok(!out.failed && json_parse(&j, buf_str(&out), NULL, &err) == 0,
       "the report is JSON");
    for (size_t i = 0; i < COUNT(keys); i++)
        ok(json_member(&j, JSON_ROOT, str_from(keys[i])) != JSON_NONE, "has %s", keys[i]);
    ok(!(j.nodes[JSON_ROOT].flags & JSON_TAINTED), "no member twice");
}

struct views {
    struct buf json, html, badge, transcript;
};

static void views_release(struct views *v)
{
    buf_release(&v->json);
    buf_release(&v->html);
    buf_release(&v->badge);
    buf_release(&v->transcript);
}

static void look_with(struct views *v, const char *dir,
                      const struct verify_options *asked)
{
    struct verify_options options = *asked;
    struct verify_result result = { 0 };
    struct err err = { 0 };
    struct report r;

    options.clock = &test_clock;
    ok(verify_pack(dir, &options, &result, &err) == 0, "%s", dir);
    report_of(&r, &result, NULL);
    v->json.max = v->html.max = v->badge.max = v->transcript.max = REPORT_MAX;
    report_add(&v->json, &r);
    report_add_html(&v->html, &r, dir, STR(""));
    report_add_badge(&v->badge, &r);
    report_add_transcript(&v->transcript, &(struct transcript){ .report = &r });
    verify_result_release(&result);
}

static void look(struct views *v, const char *dir)
{
    look_with(v, dir, &(struct verify_options){ .signer = NULL });
}

static void test_every_view_says_the_boundary(void)
{
    CLEANUP(views_release) struct views v = { 0 };

    look(&v, "tests/data/good/minimal");
    ok(contains(&v.json, VERIFY_BOUNDARY), "JSON");
    ok(contains(&v.html, VERIFY_BOUNDARY), "HTML");
    ok(contains(&v.transcript, VERIFY_BOUNDARY), "transcript");
}

static size_t count_of(const struct buf *b, str what)
{
    str rest = buf_str(b);
    const char *at;
    size_t n = 0;

    while (rest.n && (at = memmem(rest.p, rest.n, what.p, what.n))) {
        rest = str_skip(rest, (size_t)(at - rest.p) + what.n);
        n++;
    }
    return n;
}

/* A page with so many calls, whose receipts were checked or are others. */
static void list_calls(struct buf *page, size_t calls, bool checked)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct manifest_file file = { .path = STR(RECEIPT_PACK_NAME) };
    struct verify_result v = { .manifest = { .files = &file, .file_count = 1 } };

    for (size_t i = 0; i < calls; i++)
        buf_printf(&text,
                   "{\"seq\":%zu,\"tool_name\":\"<b>\",\"type\":\"mcp_tool_call\"}\n", i);
    buf_add(&text, STR("{\"type\":\"session_metadata\"}\n"));
    if (checked)
        file.sha256 = digest_of(buf_str(&text));
    page->max = REPORT_MAX;
    html_add_calls(page, &v, buf_str(&text));
}

static void test_the_page_lists_calls(void)
{
    CLEANUP(buf_release) struct buf all = { 0 };
    CLEANUP(buf_release) struct buf more = { 0 };
    CLEANUP(buf_release) struct buf none = { 0 };
    CLEANUP(buf_release) struct buf other = { 0 };

    list_calls(&all, REPORT_CALLS_MAX, true);
    ok(count_of(&all, STR("&#60;b&#62;")) == REPORT_CALLS_MAX &&
           !contains(&all, " more:"),
       "as many as it lists at most");
    list_calls(&more, REPORT_CALLS_MAX + 1, true);
    ok(count_of(&more, STR("&#60;b&#62;")) == REPORT_CALLS_MAX &&
           contains(&more, "and 1 more:"),
       "one more is only counted");
    list_calls(&none, 0, true);
    list_calls(&other, 3, false);
    ok(none.n == 0 && other.n == 0, "none, where there are none, or others were checked");
}

static void test_a_signer_that_nobody_knows_is_not_called_verified(void)
{
    CLEANUP(views_release) struct views v = { 0 }, known = { 0 };
    struct digest key;

    ok(digest_from_hex(&key, STR("46f6ab042566114ebf8c2a494f13e8a3"
                                 "b66c456b14ae64b1e11282e511d58a60")),
       "the fingerprint of the pack");
    look(&v, "tests/data/good/minimal");
    ok(contains(&v.badge, ">sound, unknown key<"), "badge of an unknown signer");
    ok(contains(&v.html, "<h1>Sound &mdash; signed by a key that is not known here</h1>"),
       "page of an unknown signer");
    look_with(&known, "tests/data/good/minimal",
              &(struct verify_options){ .signer = &key });
    ok(contains(&known.badge, ">verified<"), "badge of a named signer");
    ok(contains(&known.html, "<h1>Sound</h1>"), "page of a named signer");
}

static void test_what_is_not_as_asked_has_not_passed(void)
{
    CLEANUP(views_release) struct views v = { 0 };

    look_with(&v, "tests/data/good/session-incomplete",
              &(struct verify_options){ .require_complete = true });
    ok(contains(&v.json, "\"passed\": false") && contains(&v.json, "\"met\": false"),
       "JSON");
    ok(contains(&v.json, "\"integrity_verdict\": \"PASS\""), "its integrity is good");
    ok(contains(&v.html, "<h1>Sound, but not what you asked for</h1>"), "HTML");
    ok(contains(&v.badge, ">requirement not met<"), "badge");
}

static void test_tampering_is_seen_in_every_view(void)
{
    CLEANUP(views_release) struct views v = { 0 };

    look(&v, "tests/data/bad/file-changed");
    ok(contains(&v.json, "\"integrity_verdict\": \"TAMPERED\""), "JSON");
    ok(contains(&v.json, "\"failure_mechanism\": \"tamper_detected\""), "its mechanism");
    ok(contains(&v.html, "<h1>Tampered</h1>") && contains(&v.html, "E_MANIFEST_TAMPER"),
       "HTML");
    ok(contains(&v.badge, ">tampered<"), "badge");
    ok(contains(&v.transcript, "E_MANIFEST_TAMPER"), "transcript");
    ok(!contains(&v.json, VERIFY_BOUNDARY) && contains(&v.json, VERIFY_BOUNDARY_TAMPERED),
       "JSON does not say that nothing was changed");
    ok(!contains(&v.html, VERIFY_BOUNDARY) && contains(&v.html, VERIFY_BOUNDARY_TAMPERED),
       "nor HTML");
    ok(!contains(&v.transcript, VERIFY_BOUNDARY), "nor the transcript");
}

/* The manifest of this pack holds markup where names should be. */
static void test_foreign_markup_is_escaped(void)
{
    CLEANUP(views_release) struct views v = { 0 };

    look(&v, "tests/data/good/hostile-names");
    ok(!contains(&v.html, "<script") && contains(&v.html, "&#60;script"), "HTML");
    ok(contains(&v.transcript, "\\<script"), "transcript");
}

static void test_an_invalid_manifest_still_has_a_report(void)
{
    CLEANUP(views_release) struct views v = { 0 };

    look(&v, "tests/data/bad/manifest-is-not-json");
    ok(contains(&v.json, "\"pack_root_sha256\": null"), "the root is null");
    ok(contains(&v.html, "<h1>Tampered</h1>"), "HTML");
}

int main(void)
{
    test_report_id_is_the_public_one();
    test_overall_verdict_has_a_precedence();
    test_every_required_key_is_there();
    test_every_view_says_the_boundary();
    test_the_page_lists_calls();
    test_a_signer_that_nobody_knows_is_not_called_verified();
    test_what_is_not_as_asked_has_not_passed();
    test_tampering_is_seen_in_every_view();
    test_foreign_markup_is_escaped();
    test_an_invalid_manifest_still_has_a_report();
    return tap_done();
}
