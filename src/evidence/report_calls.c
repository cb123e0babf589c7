/* SPDX-License-Identifier: Apache-2.0 */
/* What was called, for a reader of the page; declared in report_html.h. */
#include "base/err.h"
#include "evidence/receipt_pack.h"
#include "evidence/report.h"
#include "evidence/report_html.h"
#include "json/json.h"

static bool were_checked(const struct verify_result *v, str receipts)
{
    struct digest now = digest_of(receipts);

    for (size_t i = 0; i < v->manifest.file_count; i++) {
        if (str_is(v->manifest.files[i].path, RECEIPT_PACK_NAME))
            return digest_equal(&v->manifest.files[i].sha256, &now);
    }
    return false;
}

static uint32_t member(const struct json *j, const char *name)
{
    return json_member(j, JSON_ROOT, str_from(name));
}

/* Nothing for null. */
static void add_value(struct buf *out, const struct json *j, const char *name)
{
    CLEANUP(buf_release) struct buf text = { .max = RECEIPT_LINE_MAX };
    uint32_t node = member(j, name);

    if (json_is(j, node, JSON_STRING)) {
        json_unescape(j, node, &text);
        html_add_text(out, buf_str(&text));
    } else if (json_is(j, node, JSON_NUMBER)) {
        html_add_text(out, json_raw(j, node));
    }
}

static void add_reason(struct buf *out, const struct json *j)
{
    static const char *const names[] = { "policy_ref", "policy_reason",
                                         "outcome_reason" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!json_is(j, member(j, names[i]), JSON_STRING))
            continue;
        buf_add(out, STR("<br><span class=\"soft\">"));
        add_value(out, j, names[i]);
        buf_add(out, STR("</span>"));
    }
}

static bool is_error(const struct json *j)
{
    return json_is(j, member(j, "result_is_error"), JSON_TRUE);
}

static void add_outcome(struct buf *out, const struct json *j)
{
    bool denied = json_string_is(j, member(j, "policy_verdict"), STR("denied"));
    bool well = json_string_is(j, member(j, "outcome"), STR("forwarded"));

    buf_printf(out, "<td class=\"%s\">", well && !denied ? "good" : "warn");
    add_value(out, j, "outcome");
    if (well && denied)
        buf_add(out, STR(", though the policy denies it"));
    if (well && is_error(j))
        buf_add(out, STR(", the tool says error"));
    if (denied || !well || json_is(j, member(j, "outcome_reason"), JSON_STRING))
        add_reason(out, j);
    buf_add(out, STR("</td>"));
}

static void add_call(struct buf *out, const struct json *j)
{
    buf_add(out, STR("<tr><td class=\"n\">"));
    add_value(out, j, "seq");
    buf_add(out, STR("</td><td>"));
    add_value(out, j, "tool_name");
    buf_add(out, STR("<br><code class=\"soft w\">"));
    add_value(out, j, "receipt_id");
    buf_add(out, STR("</code></td>"));
    add_outcome(out, j);
    buf_add(out, STR("<td class=\"w\">"));
    add_value(out, j, "timestamp");
    buf_add(out, STR("</td><td class=\"n\">"));
    add_value(out, j, "duration_ms");
    buf_add(out, STR("</td></tr>\n"));
}

static bool is_call(struct json *j, str line)
{
    static const struct json_limits limits = { .max_bytes = RECEIPT_LINE_MAX };
    struct err ignored;

    return json_parse(j, line, &limits, &ignored) == 0 &&
           json_string_is(j, member(j, "type"), STR("mcp_tool_call"));
}

void html_add_calls(struct buf *out, const struct verify_result *v, str receipts)
{
    CLEANUP(json_release) struct json j = { 0 };
    size_t count = 0;
    str line;

    if (v->verdict == VERIFY_TAMPERED || !were_checked(v, receipts))
        return;
    while (receipt_line(&receipts, &line)) {
        if (!is_call(&j, line) || ++count > REPORT_CALLS_MAX)
            continue;
        if (count == 1)
            buf_add(out, STR("<section><h2>Calls</h2><table class=\"calls\">\n<tr><th>No."
                             "</th><th>Tool</th><th>Outcome</th><th>Time</th><th>ms</th>"
                             "</tr>\n"));
        add_call(out, &j);
    }
    if (count)
        buf_add(out, STR("</table>\n"));
    if (count > REPORT_CALLS_MAX)
        buf_printf(out,
                   "<p class=\"soft\">and %zu more: <code>assay packs show</code> "
                   "lists all</p>\n",
                   count - REPORT_CALLS_MAX);
    if (count)
        buf_add(out, STR("</section>\n"));
}
