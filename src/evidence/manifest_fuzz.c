/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest is valid or has a finding; a valid one has canonical bytes and a hash. */
#include <assert.h>
#include <stdint.h>

#include "base/err.h"
#include "evidence/manifest.h"
#include "evidence/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct verify_result v = { 0 };
    struct err err = { 0 };
    int r = manifest_read(&v.manifest, str_of(data, size), &v.findings, &v.has_manifest,
                          &err);

    assert(r == 0);
    assert(v.has_manifest == (v.findings.count == 0));
    if (v.has_manifest) {
        CLEANUP(buf_release) struct buf bytes = { .max = 8 * MANIFEST_MAX_BYTES };
        CLEANUP(buf_release) struct buf page = { .max = 64 * MANIFEST_MAX_BYTES };
        struct digest hash;
        struct report report;

        r = manifest_signed_bytes(&v.manifest, &bytes, &err);
        assert(r == 0 && bytes.n > 0);
        r = manifest_attestation_hash(&v.manifest, &hash, &err);
        assert(r == 0);
        report_of(&report, &v, NULL);
        report_add_html(&page, &report, "pack", STR(""));
        assert(!memmem(page.p, page.n, "<script", 7));
    }
    verify_result_release(&v);
    return 0;
}
