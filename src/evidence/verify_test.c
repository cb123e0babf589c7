/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/verify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"
#include "json/json.h"

#define VECTORS "../shared/testdata/assay-vectors"

static int64_t test_now(void *ctx)
{
    (void)ctx;
    return INT64_C(1767225600000); /* 2026-01-01T00:00:00Z */
}

static const struct clock test_clock = { test_now, NULL };

/* 2026-07-01: the public vectors are from January of that year. */
static int64_t later_now(void *ctx)
{
    (void)ctx;
    return INT64_C(1782864000000);
}

static const struct clock later_clock = { later_now, NULL };

static int verify_at(const char *dir, const struct clock *clock,
                     struct verify_result *result, struct err *err)
{
    const struct verify_options options = { .clock = clock };

    return verify_pack(dir, &options, result, err);
}

static bool has_code(const struct findings *f, str code, str field)
{
    for (size_t i = 0; i < f->count; i++) {
        if (str_is(code, finding_info(f->items[i].code)->name) &&
            (str_is(field, "-") || str_equal(field, f->items[i].field)))
            return true;
    }
    return false;
}

static void say_findings(const struct findings *f)
{
    for (size_t i = 0; i < f->count; i++)
        printf("# %s [" STR_FMT "] " STR_FMT "\n", finding_info(f->items[i].code)->name,
               STR_ARG(f->items[i].field), STR_ARG(f->items[i].message));
}

static str column(str *rest)
{
    const char *tab = memchr(rest->p, '\t', rest->n);
    str s = str_first(*rest, tab ? (size_t)(tab - rest->p) : rest->n);

    *rest = str_skip(*rest, s.n + 1);
    return s;
}

/* One line of expect.tsv: directory, exit code, code of the finding, its field. */
static void check_row(str line)
{
    struct verify_result r = { 0 };
    struct err err = { 0 };
    str name = column(&line), exit_code = column(&line), code = column(&line);
    char dir[FILE_PATH_MAX];
    bool good;

    snprintf(dir, sizeof(dir), "tests/data/" STR_FMT, STR_ARG(name));
    if (verify_at(dir, &test_clock, &r, &err) < 0) {
        ok(false, "%s: %s", dir, err.msg);
        verify_result_release(&r);
        return;
    }
    if (str_is(exit_code, "0"))
        good = r.verdict == VERIFY_SOUND && r.findings.count == 0;
    else
        good = r.verdict == VERIFY_TAMPERED && has_code(&r.findings, code, line);
    if (!ok(good, "%s gives " STR_FMT, dir, STR_ARG(code)))
        say_findings(&r.findings);
    verify_result_release(&r);
}

static void test_own_packs_give_what_their_name_says(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };
    str rest, line;

    if (!ok(file_read("tests/data/expect.tsv", &text, &err) == 0, "expect.tsv is there"))
        return;
    for (rest = buf_str(&text); str_line(&rest, &line);)
        check_row(line);
}

struct vector {
    const char *dir;
    const char *code; /* NULL: sound */
    enum stage stage;
};

static void test_public_vectors_give_their_codes(void)
{
    static const struct vector vectors[] = {
        { "pack/golden_minimal", NULL, 0 },
        { "semantic/claim_pass", NULL, 0 },
        { "semantic/claim_insufficient", NULL, 0 },
        { "pack/tampered_receipt_content", "E_MANIFEST_TAMPER", STAGE_FILE_HASHES },
        { "pack/tampered_signature", "E_PACK_SIG_INVALID", STAGE_SIGNATURE },
        { "pack/missing_kernel_file", "E_MANIFEST_TAMPER", STAGE_FILE_HASHES },
        { "pack/d12_invariant_break", "E_MANIFEST_TAMPER", STAGE_D12 },
        { "pack/path_traversal", "E_PATH_ESCAPE", STAGE_PATHS },
        { "pack/duplicate_receipt_id", "E_DUPLICATE_ID", STAGE_RECEIPTS },
        { "pack/duplicate_receipt_id", "E_MANIFEST_TAMPER", STAGE_RECEIPTS },
        { "pack-schema-depth/schema_attestation_bad_proof_tier", "E_MANIFEST_TAMPER",
          STAGE_SCHEMA },
        { "pack-schema-depth/schema_attestation_missing_proof_tier", "E_MANIFEST_TAMPER",
          STAGE_SCHEMA },
        { "pack-schema-depth/schema_bad_hash_alg", "E_MANIFEST_TAMPER", STAGE_SCHEMA },
        { "pack-schema-depth/schema_bad_signature_alg", "E_MANIFEST_TAMPER",
          STAGE_SCHEMA },
        { "pack-schema-depth/schema_extra_top_level_field", "E_MANIFEST_TAMPER",
          STAGE_SCHEMA },
        { "pack-schema-depth/schema_malformed_file_entry", "E_MANIFEST_TAMPER",
          STAGE_SCHEMA },
        { "pack-schema-depth/schema_missing_pack_id", "E_MANIFEST_TAMPER", STAGE_SCHEMA },
    };

    for (size_t i = 0; i < COUNT(vectors); i++) {
        const struct vector *v = &vectors[i];
        struct verify_result r = { 0 };
        struct err err = { 0 };
        char dir[FILE_PATH_MAX];
        bool good;

        snprintf(dir, sizeof(dir), "%s/%s", VECTORS, v->dir);
        if (access(VECTORS, R_OK) < 0) {
            tap_skip(v->dir, "the public vectors are not on this machine");
            continue;
        }
        good = verify_at(dir, &later_clock, &r, &err) == 0;
        if (good && !v->code)
            good = r.verdict == VERIFY_SOUND;
        else if (good)
            good = r.verdict == VERIFY_TAMPERED && r.stages[v->stage] == STAGE_FAILED &&
                   has_code(&r.findings, str_from(v->code), STR("-"));
        if (!ok(good, "%s gives %s", v->dir, v->code ? v->code : "sound"))
            say_findings(&r.findings);
        verify_result_release(&r);
    }
}

static void test_golden_facts_are_those_of_the_public_tool(void)
{
    static const char head[] =
        "8070489bebfc93df39263ef96c5791a1ed5650072ce4b66ed86384ad0c5cff84";
    struct verify_result r = { 0 };
    struct err err = { 0 };
    char hex[2 * DIGEST_SIZE];

    if (access(VECTORS, R_OK) < 0) {
        tap_skip("facts of golden_minimal", "the public vectors are not on this machine");
        return;
    }
    ok(verify_at(VECTORS "/pack/golden_minimal", &later_clock, &r, &err) == 0,
       "verified");
    digest_hex(hex, &r.receipts.head);
    ok(str_is(str_of(hex, sizeof(hex)), head), "head_hash");
    ok(r.receipts.count == 2, "receipt count");
    ok(str_is(r.manifest.pack_id, "pack_deterministic_ddef95aa"), "pack_id");
    ok(str_is(r.manifest.signer_id, "conformance-test-signer"), "signer_id");
    ok(r.key == KEY_UNKNOWN && r.signature_good, "signed by a key that nobody knows");
    ok(!r.has_log && r.warning_count == 2,
       "says that there is no log proof and no known key");
    verify_result_release(&r);
}

static void test_no_answer_is_an_error(void)
{
    static const char *const dirs[] = {
        "tests/data/not-there",
        "tests/data/expect.tsv",
        "tests/data/bad",
        "/dev/null",
        "tests/data/good/minimal/pack_manifest.json",
        "",
    };

    for (size_t i = 0; i < COUNT(dirs); i++) {
        struct verify_result r = { 0 };
        struct err err = { 0 };

        ok(verify_at(dirs[i], &test_clock, &r, &err) < 0 && err.msg[0],
           "'%s' is not a pack: %s", dirs[i], err.msg);
        verify_result_release(&r);
    }
}

struct wish {
    const char *what;
    const char *dir;
    struct verify_options options;
    enum requirement_kind kind;
    bool met;
};

static const char fingerprint_hex[] =
    "46f6ab042566114ebf8c2a494f13e8a3b66c456b14ae64b1e11282e511d58a60";

static void test_requirements_are_not_integrity(void)
{
    static struct digest signer, other;
    static const char commit[] = "cccccccccccccccccccccccccccccccccccccccc";
    const struct wish wishes[] = {
        { "the signer", "good/minimal", { .signer = &signer }, REQUIRE_SIGNER, true },
        { "another signer", "good/minimal", { .signer = &other }, REQUIRE_SIGNER, false },
        { "214 days",
          "good/minimal",
          { .limit_age = true, .max_age_hours = 214 * 24 },
          REQUIRE_AGE,
          true },
        { "213 days",
          "good/minimal",
          { .limit_age = true, .max_age_hours = 213 * 24 },
          REQUIRE_AGE,
          false },
        { "any age",
          "good/minimal",
          { .limit_age = true, .max_age_hours = 1000000 },
          REQUIRE_AGE,
          true },
        { "a build",
          "good/ci-binding",
          { .require_ci_binding = true },
          REQUIRE_CI_BINDING,
          true },
        { "a build",
          "good/minimal",
          { .require_ci_binding = true },
          REQUIRE_CI_BINDING,
          false },
        { "the commit",
          "good/ci-binding",
          { .expected_commit = commit },
          REQUIRE_COMMIT,
          true },
        { "another commit",
          "good/ci-binding",
          { .expected_commit = "d" },
          REQUIRE_COMMIT,
          false },
        { "a commit",
          "good/minimal",
          { .expected_commit = commit },
          REQUIRE_COMMIT,
          false },
        { "completeness",
          "good/minimal",
          { .require_complete = true },
          REQUIRE_COMPLETE,
          true },
        { "completeness",
          "good/session-incomplete",
          { .require_complete = true },
          REQUIRE_COMPLETE,
          false },
        { "completeness",
          "good/no-receipts",
          { .require_complete = true },
          REQUIRE_COMPLETE,
          false },
        { "claims",
          "good/claims-passed",
          { .require_claim_pass = true },
          REQUIRE_CLAIM_PASS,
          true },
        { "claims",
          "good/claims-failed",
          { .require_claim_pass = true },
          REQUIRE_CLAIM_PASS,
          false },
        { "claims",
          "good/minimal",
          { .require_claim_pass = true },
          REQUIRE_CLAIM_PASS,
          false },
    };

    ok(digest_from_hex(&signer, str_from(fingerprint_hex)), "the fingerprint is one");
    for (size_t i = 0; i < COUNT(wishes); i++) {
        struct verify_options options = wishes[i].options;
        struct verify_result r = { 0 };
        struct err err = { 0 };
        char dir[FILE_PATH_MAX];
        const struct requirement *got = &r.requirements[wishes[i].kind];

        options.clock = &test_clock;
        snprintf(dir, sizeof(dir), "tests/data/%s", wishes[i].dir);
        ok(verify_pack(dir, &options, &r, &err) == 0 && r.findings.count == 0 &&
               got->asked && got->met == wishes[i].met &&
               r.verdict == (wishes[i].met ? VERIFY_SOUND : VERIFY_UNMET),
           "%s %s %s", wishes[i].dir, wishes[i].met ? "meets" : "does not meet",
           wishes[i].what);
        ok(wishes[i].met == (got->message.n == 0), "and says why it does not");
        verify_result_release(&r);
    }
}

static void test_a_tampered_pack_meets_nothing(void)
{
    const struct verify_options options = { .clock = &test_clock,
                                            .require_complete = true };
    struct verify_result r = { 0 };
    struct err err = { 0 };

    ok(verify_pack("tests/data/bad/file-changed", &options, &r, &err) == 0 &&
           r.verdict == VERIFY_TAMPERED && !r.requirements[REQUIRE_COMPLETE].met,
       "a tampered pack meets no requirement");
    verify_result_release(&r);
}

/* The lock file's rules; each row changes one thing of a lock that fits. */
static void test_lock(void)
{
    static const struct {
        const char *what, *format, *claims, *policy, *min;
        bool met;
    } rows[] = {
        { "fits", "0.1.0",
          "140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
          "{\"mode\":\"any\"}", "1.0.0", true },
        { "allow-list", "0.1.0",
          "140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
          "{\"mode\":\"allowlist\",\"allowed_fingerprints\":[\"46f6ab042566114ebf8c2a494f13e8a3b66c456b14ae64b1e11282e511d58a60\"]}",
          "1.24.0", true },
        { "empty allow-list", "0.1.0",
          "140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
          "{\"mode\":\"allowlist\",\"allowed_fingerprints\":[]}", "1.24.0", false },
        { "other format", "0.2.0",
          "140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
          "{\"mode\":\"any\"}", "1.0.0", false },
        { "other claims", "0.1.0",
          "240bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
          "{\"mode\":\"any\"}", "1.0.0", false },
        { "newer rules", "0.1.0",
          "140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
          "{\"mode\":\"any\"}", "1.25", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct verify_result r = { 0 };
        struct lock lock = { 0 };
        struct err err = { 0 };
        const struct verify_options options = { .clock = &test_clock, .lock = &lock };
        char text[1000];

        snprintf(text, sizeof(text),
                 "{\"lock_version\":\"1.0\",\"assay_version_min\":\"%s\","
                 "\"assay_version_max\":\"2.0.0\",\"pack_format_version\":\"%s\","
                 "\"run_cards\":[],\"run_cards_composite_hash\":\"\","
                 "\"claim_set_hash\":\"%s\",\"exit_contract\":{},\"signer_policy\":%s}",
                 rows[i].min, rows[i].format, rows[i].claims, rows[i].policy);
        ok(lock_read(&lock, str_from(text), &err) == 0, "lock '%s' reads", rows[i].what);
        ok(verify_pack("tests/data/good/minimal", &options, &r, &err) == 0 &&
               r.requirements[REQUIRE_LOCK].met == rows[i].met,
           "lock '%s' %s", rows[i].what, rows[i].met ? "is met" : "is not met");
        ok(r.key == (strcmp(rows[i].what, "allow-list") == 0 ? KEY_PINNED : KEY_UNKNOWN),
           "only an allow-list makes the key known");
        verify_result_release(&r);
        lock_release(&lock);
    }
}

static void test_bad_locks_are_refused(void)
{
    static const char *const texts[] = {
        "", "[]", "{}", "{\"lock_version\":\"2.0\"}", "{\"a\":1,\"a\":2}", "\xff",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct lock lock = { 0 };
        struct err err = { 0 };

        ok(lock_read(&lock, str_from(texts[i]), &err) < 0, "lock %zu: %s", i, err.msg);
    }
}

/* A pack with a fifo, a socket or a device in it must not block or be read. */
static void test_a_fifo_is_not_a_file(void)
{
    char dir[] = "/tmp/assay-verify-XXXXXX", command[FILE_PATH_MAX];
    struct verify_result r = { 0 };
    struct err err = { 0 };

    if (!mkdtemp(dir)) {
        tap_skip("a fifo in a pack", "no temporary directory");
        return;
    }
    snprintf(command, sizeof(command),
             "cp tests/data/good/minimal/* %s && rm %s/verify_report.json && "
             "mkfifo %s/verify_report.json",
             dir, dir, dir);
    ok(system(command) == 0, "a pack with a fifo is made");
    ok(verify_at(dir, &test_clock, &r, &err) == 0 &&
           has_code(&r.findings, STR("E_MANIFEST_TAMPER"), STR("verify_report.json")),
       "a fifo is no file of a pack");
    verify_result_release(&r);
    ok(file_remove_tree(dir, &err) == 0, "cleaned up");
}

#define FLIP_DIR "tests/data/good/minimal"

/* Flip one bit of a copy of `name`, verify, flip it back; returns how many were missed.
 */
static unsigned flip_all(const char *dir, const char *name, unsigned *tried)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(file_close) int fd = -1;
    char from[FILE_PATH_MAX], to[FILE_PATH_MAX];
    struct err err = { 0 };
    bool every = getenv("ASSAY_SOAK") != NULL;
    unsigned missed = 0;

    snprintf(from, sizeof(from), "%s/%s", FLIP_DIR, name);
    snprintf(to, sizeof(to), "%s/%s", dir, name);
    fd = open(to, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || file_read(from, &text, &err) < 0)
        return 1;
    for (size_t bit = 0; bit < 8 * text.n; bit += every ? 1 : 9) {
        char changed = (char)(text.p[bit / 8] ^ (1 << bit % 8));
        struct verify_result r = { 0 };

        if (pwrite(fd, &changed, 1, (off_t)(bit / 8)) != 1 ||
            verify_at(dir, &test_clock, &r, &err) < 0 || r.verdict != VERIFY_TAMPERED) {
            printf("# %s: bit %zu of byte %zu is not authenticated\n", name, bit % 8,
                   bit / 8);
            missed++;
        }
        verify_result_release(&r);
        ++*tried;
        if (pwrite(fd, &text.p[bit / 8], 1, (off_t)(bit / 8)) != 1)
            return missed + 1;
    }
    return missed;
}

/* All bits with ASSAY_SOAK set, else one bit of nearly every byte. */
static void test_every_flipped_bit_is_found(void)
{
    static const char *const names[] = { "pack_manifest.json", "pack_signature.sig",
                                         "receipt_pack.jsonl", "verify_report.json",
                                         "verify_transcript.md" };
    char dir[] = "/tmp/assay-verify-XXXXXX", command[FILE_PATH_MAX];
    struct verify_result r = { 0 };
    struct err err = { 0 };

    if (!mkdtemp(dir)) {
        tap_skip("flipped bits", "no temporary directory");
        return;
    }
    snprintf(command, sizeof(command), "cp " FLIP_DIR "/* %s", dir);
    ok(system(command) == 0, "a pack to spoil");
    for (size_t i = 0; i < COUNT(names); i++) {
        unsigned tried = 0, missed = flip_all(dir, names[i], &tried);

        ok(missed == 0 && tried > 0, "%s: each of %u flipped bits is found", names[i],
           tried);
    }
    ok(verify_at(dir, &test_clock, &r, &err) == 0 && r.verdict == VERIFY_SOUND,
       "and the pack is sound again");
    verify_result_release(&r);
    ok(file_remove_tree(dir, &err) == 0, "cleaned up");
}

int main(void)
{
    test_own_packs_give_what_their_name_says();
    test_public_vectors_give_their_codes();
    test_golden_facts_are_those_of_the_public_tool();
    test_no_answer_is_an_error();
    test_requirements_are_not_integrity();
    test_a_tampered_pack_meets_nothing();
    test_lock();
    test_bad_locks_are_refused();
    test_a_fifo_is_not_a_file();
    test_every_flipped_bit_is_found();
    return tap_done();
}
