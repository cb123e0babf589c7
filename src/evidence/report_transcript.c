/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/report.h"

/* A cell of a table: foreign text must not end it or begin markup. */
static void add_cell(struct buf *out, str text)
{
    static const char special[] = "\\`*_{}[]<>()#+!|~";

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (c < 0x20 || c == 0x7f) {
            buf_printf(out, "\\\\x%02x", c);
            continue;
        }
        if (c < 0x80 && memchr(special, c, sizeof(special) - 1))
            buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
    }
}

static void add_row(struct buf *out, const char *name, str value)
{
    buf_printf(out, "| %s | ", name);
    add_cell(out, value);
    buf_add(out, STR(" |\n"));
}

static void add_digest_row(struct buf *out, const char *name, const struct digest *d)
{
    if (!d)
        return;
    buf_printf(out, "| %s | `", name);
    digest_add_hex(out, d);
    buf_add(out, STR("` |\n"));
}

static void add_table(struct buf *out, const struct transcript *t)
{
    const struct report *r = t->report;

    buf_add(out, STR("| | |\n|---|---|\n"));
    add_row(out, "Pack ID", r->pack_id);
    add_row(out, "Run ID", r->run_id);
    add_row(out, "Receipt Integrity", r->passed ? STR("PASS") : STR("FAIL"));
    add_row(out, "Claim Check", r->claim_check);
    add_row(out, "Assurance Level", t->assurance_level);
    add_row(out, "Mode", t->mode);
    buf_printf(out, "| Receipts | %llu |\n", (unsigned long long)r->receipt_count);
    add_digest_row(out, "Head Hash", r->head_hash);
    add_digest_row(out, "Policy Hash", r->policy_sha256);
    add_row(out, "Suite ID", t->suite_id);
    buf_add(out, STR("| Time Range | "));
    add_cell(out, t->timestamp_start);
    buf_add(out, STR(" to "));
    add_cell(out, t->timestamp_end);
    buf_add(out, STR(" |\n\n"));
}

static void add_findings(struct buf *out, const struct verify_result *v)
{
    for (size_t i = 0; i < v->findings.count; i++) {
        buf_printf(out, "- **%s** ", finding_info(v->findings.items[i].code)->name);
        add_cell(out, v->findings.items[i].message);
        buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < v->warning_count; i++) {
        buf_add(out, STR("- note: "));
        add_cell(out, v->warnings[i]);
        buf_add_char(out, '\n');
    }
    if (v->findings.count || v->warning_count)
        buf_add_char(out, '\n');
}

void report_add_transcript(struct buf *out, const struct transcript *t)
{
    buf_add(out, STR("# Verification transcript\n\n"));
    add_table(out, t);
    if (t->report->result)
        add_findings(out, t->report->result);
    buf_printf(out,
               "## What this means\n\nIn short: %s.\n\n"
               "To check this pack: `assay verify-pack DIR`.\n\n",
               report_boundary(t->report));
    buf_printf(out, "Written by %s %s at %.24s.\n", t->report->verifier_name,
               ASSAY_VERSION, t->report->verified_at);
}
