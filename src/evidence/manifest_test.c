/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/manifest.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

#define GOOD "tests/data/good/minimal/pack_manifest.json"

static bool read_text(struct buf *text, const char *path)
{
    struct err err = { 0 };

    buf_init(text, MANIFEST_MAX_BYTES + 16);
    return ok(file_read(path, text, &err) == 0, "%s is there", path);
}

/* `text` with the first `old` replaced; asserts that it is there. */
static void swap(struct buf *out, str text, const char *old, const char *new)
{
    const char *at = memmem(text.p, text.n, old, strlen(old));

    ok(at != NULL, "the manifest has %s", old);
    if (!at)
        return;
    buf_add(out, str_of(text.p, (size_t)(at - text.p)));
    buf_add(out, str_from(new));
    buf_add(out, str_skip(text, (size_t)(at - text.p) + strlen(old)));
}

struct row {
    const char *old, *new;
    const char *says; /* part of the first finding's message; NULL: valid */
};

static void test_each_rule_names_its_place(void)
{
    static const struct row rows[] = {
        { "\"0.1.0\"", "\"0.1.0\"", NULL },
        { "\"claim_check\": \"N/A\"", "\"claim_check\": \"maybe\"",
          "/attestation/claim_check: expected one of 'PASS', 'FAIL', 'N/A', found 'maybe'" },
        { "\"mode\": \"shadow\",", "", "/attestation/mode: the attestation lacks" },
        { "\"signer_id\": \"test-signer\"", "\"signer_id\": 7",
          "/signer_id: expected a string, found number" },
        { "\"n_receipts\": 3", "\"n_receipts\": 3.0",
          "/attestation/n_receipts: expected an integer" },
        { "\"n_receipts\": 3", "\"n_receipts\": -3",
          "/attestation/n_receipts: expected 0 or more" },
        { "\"n_receipts\": 3", "\"n_receipts\": 9007199254740991", NULL },
        { "\"n_receipts\": 3", "\"n_receipts\": 9007199254740992", "within 2^53" },
        { "\"ci_binding\": null", "\"ci_binding\": []",
          "/attestation/ci_binding: expected an object, found array" },
        { "\"valid_until\": null", "\"valid_until\": \"2025-06-01T10:00:00+02:00\"",
          NULL },
        { "\"valid_until\": null", "\"valid_until\": \"0000-06-01T10:00:00Z\"",
          "/attestation/valid_until: expected a time" },
        { "\"superseded_by\": null", "\"superseded_by\": null, \"x\\u0001\\n\": 1",
          "may not have a member" },
        { "\"path\": \"receipt_pack.jsonl\"", "\"path\": \"\"",
          "/files/0/path: expected a string that is not empty" },
        { "\"signer_id\"", "\"pack_id\": \"again\", \"signer_id\"", "pack_id" },
        { "test-signer", "\\ud800", "surrogate" },
        { "\"signer_id\"", "signer_id", "byte" },
    };
    CLEANUP(buf_release) struct buf good = { 0 };

    if (!read_text(&good, GOOD))
        return;
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf text = { 0 };
        struct findings f = { 0 };
        struct manifest m = { 0 };
        struct err err = { 0 };
        bool valid = false;

        swap(&text, buf_str(&good), rows[i].old, rows[i].new);
        ok(manifest_read(&m, buf_str(&text), &f, &valid, &err) == 0 &&
               valid == !rows[i].says,
           "%s is %s", rows[i].new, rows[i].says ? "refused" : "fine");
        ok(!rows[i].says || (f.count && memmem(f.items[0].message.p, f.items[0].message.n,
                                               rows[i].says, strlen(rows[i].says))),
           "because: " STR_FMT, STR_ARG(f.count ? f.items[0].message : STR("")));
        manifest_release(&m);
        findings_release(&f);
    }
}

static void test_members_are_taken(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct findings f = { 0 };
    struct manifest m = { 0 };
    struct err err = { 0 };
    bool valid = false;

    if (!read_text(&text, GOOD))
        return;
    ok(manifest_read(&m, buf_str(&text), &f, &valid, &err) == 0 && valid, "valid");
    ok(str_is(m.pack_id, "pack_20250601T100000_0badcafe"), "pack_id");
    ok(m.receipt_count == 3 && m.n_receipts == 3, "counts");
    ok(m.file_count == 3 && m.expected_count == 5, "files");
    ok(manifest_lists(&m, "verify_report.json") &&
           !manifest_lists(&m, "pack_manifest.json"),
       "lists");
    ok(m.ci_binding == JSON_NONE && m.commit_sha.n == 0, "no ci_binding");
    ok(str_is(m.timestamp_end, "2025-06-01T10:00:02.000Z"), "timestamp_end");
    manifest_release(&m);
    findings_release(&f);
}

/* A manifest of exactly `size` bytes: white space is allowed around it. */
static bool is_valid_at(str good, size_t size)
{
    CLEANUP(buf_release) struct buf text = { .max = MANIFEST_MAX_BYTES + 16 };
    struct findings f = { 0 };
    struct manifest m = { 0 };
    struct err err = { 0 };
    bool valid = false;
    char *pad;

    buf_add(&text, good);
    pad = buf_room(&text, size - text.n);
    if (!pad)
        return false;
    memset(pad, ' ', size - text.n);
    text.n = size;
    ok(manifest_read(&m, buf_str(&text), &f, &valid, &err) == 0, "%zu bytes are read",
       size);
    manifest_release(&m);
    findings_release(&f);
    return valid;
}

static void test_the_size_has_a_limit(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    if (!read_text(&text, GOOD))
        return;
    ok(is_valid_at(buf_str(&text), MANIFEST_MAX_BYTES), "at the limit");
    ok(!is_valid_at(buf_str(&text), MANIFEST_MAX_BYTES + 1), "one past it");
}

static bool is_valid_with(str good, unsigned more)
{
    CLEANUP(buf_release) struct buf text = { .max = MANIFEST_MAX_BYTES };
    CLEANUP(buf_release) struct buf names = { .max = MANIFEST_MAX_BYTES };
    struct findings f = { 0 };
    struct manifest m = { 0 };
    struct err err = { 0 };
    bool valid = false;

    buf_add(&names, STR("\"expected_files\": ["));
    for (unsigned i = 0; i < more; i++)
        buf_add(&names, STR("\"f\","));
    swap(&text, good, "\"expected_files\": [", buf_cstr(&names));
    ok(manifest_read(&m, buf_str(&text), &f, &valid, &err) == 0, "read");
    manifest_release(&m);
    findings_release(&f);
    return valid;
}

static void test_the_number_of_files_has_a_limit(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    if (!read_text(&text, GOOD))
        return;
    ok(is_valid_with(buf_str(&text), MANIFEST_MAX_FILES - 5), "at the limit");
    ok(!is_valid_with(buf_str(&text), MANIFEST_MAX_FILES - 4), "one past it");
}

int main(void)
{
    test_each_rule_names_its_place();
    test_members_are_taken();
    test_the_size_has_a_limit();
    test_the_number_of_files_has_a_limit();
    return tap_done();
}
