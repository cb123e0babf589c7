/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/report.h"

#include "base/utf8.h"
#include "evidence/report_html.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n"
    "<title>Proof pack verification</title>\n<style>\n"
    ":root{--ink:#1c2430;--soft:#5b6675;--line:#dfe4ea;--paper:#fff;--ground:#f3f5f8;"
    "--good:#17794a;--bad:#b3261e;--warn:#9a5b00}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e7ebf0;--soft:#9aa6b5;--line:#303a47;"
    "--paper:#18202a;--ground:#0f151c;--good:#4cc38a;--bad:#ff8a80;--warn:#f0b35a}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:860px;margin:32px auto;padding:0 16px}\n"
    "section,header{background:var(--paper);border:1px solid var(--line);"
    "border-radius:10px;padding:20px 24px;margin-bottom:16px}\n"
    "header{border-left:8px solid var(--c)}h1{margin:0 0 4px;font-size:26px;color:var(--c)}\n"
    "h2{margin:0 0 12px;font-size:17px}p{margin:6px 0}.soft{color:var(--soft)}\n"
    "table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:500;"
    "color:var(--soft);padding:5px 16px 5px 0;vertical-align:top;white-space:nowrap;width:190px}\n"
    "td{padding:5px 0;overflow-wrap:anywhere}tr+tr{border-top:1px solid var(--line)}\n"
    "code{font:13px/1.5 ui-monospace,monospace;overflow-wrap:anywhere}\n"
    "ul{margin:0;padding:0;list-style:none}li+li{margin-top:14px;padding-top:14px;"
    "border-top:1px solid var(--line)}\n"
    ".calls th{width:auto}.calls td{padding-right:12px;vertical-align:top}"
    ".calls .n{text-align:right}.calls .w{white-space:nowrap}\n"
    ".good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}\n"
    "</style>\n</head>\n<body>\n<main>\n";

void html_add_text(struct buf *out, str text)
{
    while (text.n) {
        uint32_t c = 0;
        size_t n = utf8_next(text, &c);

        if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) ||
            (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
            buf_add(out, STR("&#xfffd;"));
        else if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            buf_printf(out, "&#%u;", (unsigned)c);
        else
            buf_add(out, str_first(text, n));
        text = str_skip(text, n ? n : 1);
    }
}

static void add_row(struct buf *out, const char *name, str value)
{
    buf_printf(out, "<tr><th>%s</th><td>", name);
    html_add_text(out, value);
    buf_add(out, STR("</td></tr>\n"));
}

static void add_digest_row(struct buf *out, const char *name, const struct digest *d)
{
    if (!d)
        return;
    buf_printf(out, "<tr><th>%s</th><td><code>", name);
    digest_add_hex(out, d);
    buf_add(out, STR("</code></td></tr>\n"));
}

struct banner {
    const char *title, *colour, *words;
};

static struct banner banner_of(const struct report *r)
{
    if (!r->passed)
        return (struct banner){ "Tampered", "--bad",
                                "This pack is not what was signed. Do not rely on it." };
    if (report_unmet(r))
        return (struct banner){ "Sound, but not what you asked for", "--warn",
                                "Nothing was changed; a requirement is not met." };
    if (report_signer_unknown(r))
        return (struct banner){ "Sound &mdash; signed by a key that is not known here",
                                "--warn",
                                "Nothing was changed since this pack was signed. But "
                                "whoever made the pack may have made the key." };
    return (struct banner){ "Sound", "--good",
                            "Nothing was changed since this pack was signed." };
}

/* What to do about a key that nobody here knows. */
static void add_advice(struct buf *out, const struct digest *key)
{
    buf_add(out,
            STR("<p>Compare this fingerprint with one that you got another way, from "
                "the person or the machine that signed:<br><code>"));
    digest_add_hex(out, key);
    buf_add(out, STR("</code></p>\n<p>If they are the same, <code>assay verify-pack "
                     "--signer FINGERPRINT</code> checks it for you.</p>\n"));
}

static void add_header(struct buf *out, const struct report *r, const char *name)
{
    struct banner b = banner_of(r);

    buf_printf(out, "<header style=\"--c:var(%s)\"><h1>%s</h1>\n<p>%s</p>\n", b.colour,
               b.title, b.words);
    if (report_signer_unknown(r))
        add_advice(out, &r->result->manifest.signer_pubkey_sha256);
    buf_add(out, STR("<p class=\"soft\">"));
    html_add_text(out, str_from(name));
    buf_printf(out, " &middot; checked %.24s by assay %s</p></header>\n", r->verified_at,
               ASSAY_VERSION);
}

static void add_facts(struct buf *out, const struct report *r)
{
    CLEANUP(buf_release) struct buf key = { 0 };
    CLEANUP(buf_release) struct buf count = { 0 };
    CLEANUP(buf_release) struct buf session = { 0 };
    const struct verify_result *v = r->result;
    const struct manifest *m = &v->manifest;

    if (!v->has_manifest)
        return;
    buf_add(out, STR("<section><h2>What the pack says</h2><table>\n"));
    add_row(out, "Pack", m->pack_id);
    add_row(out, "Run", m->run_id);
    add_row(out, "Signed by", m->signer_id);
    add_digest_row(out, "Fingerprint", &m->signer_pubkey_sha256);
    report_add_key_words(&key, v);
    add_row(out, "Key", buf_str(&key));
    receipt_facts_add_count(&count, &v->receipts);
    add_row(out, "Receipts", buf_str(&count));
    add_row(out, "From", m->timestamp_start);
    add_row(out, "To", m->timestamp_end);
    add_row(out, "Claims", m->claim_check);
    if (v->receipts.has_session) {
        receipt_facts_add_session(&session, &v->receipts);
        add_row(out, "Session", buf_str(&session));
    }
    add_digest_row(out, "Pack root", r->pack_root);
    add_digest_row(out, "Head", r->head_hash);
    buf_add(out, STR("</table></section>\n"));
}

/* All findings with this code, and then what it means. */
static void add_code(struct buf *out, const struct findings *f, enum finding_code code)
{
    const struct finding_info *info = finding_info(code);

    buf_add(out, STR("<li>"));
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].code != code)
            continue;
        buf_printf(out, "<code class=\"bad\">%s</code> ", info->name);
        html_add_text(out, f->items[i].message);
        buf_add(out, STR("<br>\n"));
    }
    buf_printf(out, "<span class=\"soft\">It means: %s. What to do: %s.</span></li>\n",
               info->meaning, info->advice);
}

static void add_findings(struct buf *out, const struct findings *f)
{
    if (!f->count)
        return;
    buf_add(out, STR("<section><h2>What is wrong</h2><ul>\n"));
    for (size_t i = 0; i < f->count; i++) {
        if (findings_first(f, i))
            add_code(out, f, f->items[i].code);
    }
    buf_add(out, STR("</ul>"));
    if (f->left_out)
        buf_printf(out, "<p>and %llu more</p>", (unsigned long long)f->left_out);
    buf_add(out, STR("</section>\n"));
}

static void add_requirements(struct buf *out, const struct verify_result *v)
{
    bool any = false;

    for (unsigned i = 0; i < REQUIREMENTS; i++) {
        const struct requirement *q = &v->requirements[i];

        if (!q->asked)
            continue;
        if (!any)
            buf_add(out, STR("<section><h2>What you asked for</h2><table>\n"));
        any = true;
        buf_printf(out, "<tr><th>%s</th><td class=\"%s\">",
                   requirement_flag((enum requirement_kind)i), q->met ? "good" : "warn");
        buf_add(out, q->met ? STR("met") : STR("not met: "));
        html_add_text(out, q->message);
        buf_add(out, STR("</td></tr>\n"));
    }
    if (any)
        buf_add(out, STR("</table></section>\n"));
}

static void add_stages(struct buf *out, const struct verify_result *v)
{
    buf_add(out, STR("<section><h2>Checks</h2><table>\n"));
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        if (v->stages[i] == STAGE_NOT_RUN)
            continue;
        buf_printf(out, "<tr><th><code>%s</code></th><td class=\"%s\">%s</td></tr>\n",
                   stage_name((enum stage)i), v->stages[i] == STAGE_OK ? "good" : "bad",
                   v->stages[i] == STAGE_OK ? "ok" : "failed");
    }
    buf_add(out, STR("</table></section>\n"));
}

static void add_warnings(struct buf *out, const struct verify_result *v)
{
    if (!v->warning_count)
        return;
    buf_add(out, STR("<section><h2>Worth knowing</h2><ul>\n"));
    for (size_t i = 0; i < v->warning_count; i++) {
        buf_add(out, STR("<li>"));
        html_add_text(out, v->warnings[i]);
        buf_add(out, STR("</li>\n"));
    }
    buf_add(out, STR("</ul></section>\n"));
}

void report_add_html(struct buf *out, const struct report *r, const char *name,
                     str receipts)
{
    buf_add(out, str_from(head));
    add_header(out, r, name);
    add_findings(out, &r->result->findings);
    add_requirements(out, r->result);
    add_facts(out, r);
    html_add_calls(out, r->result, receipts);
    add_stages(out, r->result);
    add_warnings(out, r->result);
    buf_printf(out,
               "<section><h2>What this shows</h2><p class=\"soft\">In short: %s."
               "</p></section>\n</main>\n</body>\n</html>\n",
               report_boundary(r));
}
