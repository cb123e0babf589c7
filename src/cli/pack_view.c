/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pack_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/err.h"
#include "evidence/receipt_pack.h"
#include "evidence/report.h"

void pack_view_release(struct pack_view *v)
{
    manifest_release(&v->manifest);
    findings_release(&v->findings);
    mapping_release(&v->receipts);
    json_release(&v->metadata);
    *v = (struct pack_view){ 0 };
}

static int read_manifest(struct pack_view *v, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = MANIFEST_MAX_BYTES };
    char path[FILE_PATH_MAX];
    bool valid = false;

    if (path_join(path, v->path, MANIFEST_NAME, err) < 0 ||
        file_read(path, &text, err) < 0 ||
        manifest_read(&v->manifest, buf_str(&text), &v->findings, &valid, err) < 0)
        return -1;
    if (!valid)
        return err_set(err, ERR_DAMAGE, "'%s' has no valid manifest", v->path);
    return 0;
}

static bool parse_receipt(struct json *j, str line)
{
    static const struct json_limits limits = { .max_bytes = RECEIPT_LINE_MAX };
    struct err ignored;

    return json_parse(j, line, &limits, &ignored) == 0 &&
           json_is(j, JSON_ROOT, JSON_OBJECT);
}

static void find_metadata(struct pack_view *v)
{
    str rest = v->receipts.bytes, line, last = { NULL, 0 };

    while (receipt_line(&rest, &line))
        last = line;
    v->has_metadata =
        last.n && parse_receipt(&v->metadata, last) &&
        json_string_is(&v->metadata, json_member(&v->metadata, JSON_ROOT, STR("type")),
                       STR("session_metadata"));
}

int pack_view_open(struct pack_view *v, const char *path, struct err *err)
{
    *v = (struct pack_view){ 0 };
    if (path_join(v->path, path, "", err) < 0)
        return -1;
    v->path[strlen(v->path) - 1] = '\0'; /* the slash of path_join() */
    if (read_manifest(v, err) < 0 || receipt_pack_map(&v->receipts, v->path, err) < 0) {
        pack_view_release(v);
        return -1;
    }
    find_metadata(v);
    return 0;
}

static bool is_receipt(const struct json *j, str id)
{
    return json_string_is(j, json_member(j, JSON_ROOT, STR("receipt_id")), id);
}

enum pack_match pack_view_match(const struct pack_view *v, str id)
{
    CLEANUP(json_release) struct json j = { 0 };
    str rest = v->receipts.bytes, line;

    if (str_equal(id, v->manifest.pack_id) || str_equal(id, v->manifest.run_id))
        return PACK_WHOLE;
    while (receipt_line(&rest, &line)) {
        if (id.n && memmem(line.p, line.n, id.p, id.n) && parse_receipt(&j, line) &&
            is_receipt(&j, id))
            return PACK_RECEIPT;
    }
    return PACK_NO;
}

static bool is_wanted(const struct pack_view *v, const struct json *j)
{
    return v->only.n == 0 || is_receipt(j, v->only);
}

/* --- for people --- */

/* A member as text: strings without quotes, everything escaped; "-" for null. */
static void add_value(struct buf *out, const struct json *j, const char *name)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    uint32_t node = json_member(j, JSON_ROOT, str_from(name));

    if (node == JSON_NONE || json_is(j, node, JSON_NULL)) {
        buf_add_char(out, '-');
    } else if (json_is(j, node, JSON_STRING)) {
        json_unescape(j, node, &text);
        diag_escape(out, buf_str(&text));
    } else {
        diag_escape(out, json_raw(j, node));
    }
}

static bool is_true(const struct json *j, const char *name)
{
    return json_is(j, json_member(j, JSON_ROOT, str_from(name)), JSON_TRUE);
}

/* One part is not the session: its last one says only how that ended. */
static void add_completeness(struct buf *out, const struct pack_view *v)
{
    const struct json *j = &v->metadata;
    bool complete = is_true(j, "session_complete"), final = is_true(j, "final");
    int64_t part = 0;

    if (!v->has_metadata)
        buf_add(out, STR("no session facts"));
    else if (json_int(j, json_member(j, JSON_ROOT, STR("part")), &part) &&
             (part > 1 || !final))
        buf_printf(out, "part %" PRId64 "%s", part,
                   !final     ? ""
                   : complete ? ", the last; session complete"
                              : ", the last; session not complete");
    else if (!final)
        buf_add(out, STR("a part"));
    else
        buf_add(out, complete ? STR("complete") : STR("not complete"));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void pack_view_print_line(const struct pack_view *v)
{
    CLEANUP(buf_release) struct buf session = { 0 };
    CLEANUP(buf_release) struct buf ended = { 0 };
    CLEANUP(buf_release) struct buf complete = { 0 };
    uint64_t record = v->has_metadata && v->manifest.receipt_count; /* the session's */
    uint64_t count = v->manifest.receipt_count - record;
    char what[16];

    diag_escape(&session, v->manifest.run_id);
    diag_escape(&ended, v->manifest.timestamp_end);
    add_completeness(&complete, v);
    snprintf(what, sizeof(what), "%s%s", record ? "call" : "receipt", plural(count));
    printf("%s  %s  %8" PRIu64 " %-8s  %s  %s\n", base_name(v->path), buf_cstr(&ended),
           count, what, buf_cstr(&session), buf_cstr(&complete));
}

static void print_fact(const char *name, str value)
{
    CLEANUP(buf_release) struct buf text = { .max = 4096 };

    diag_escape(&text, value);
    printf("  %-12s %s\n", name, buf_cstr(&text));
}

static void print_cell(const struct json *j, const char *name, int width)
{
    CLEANUP(buf_release) struct buf text = { .max = 4096 };

    add_value(&text, j, name);
    printf("%*s ", width, buf_cstr(&text));
}

/* Why it was denied, or did not end as others do. */
static void print_reason(const struct json *j)
{
    static const char *const names[] = { "policy_ref", "policy_reason",
                                         "outcome_reason" };
    CLEANUP(buf_release) struct buf text = { .max = 4096 };

    for (size_t i = 0; i < COUNT(names); i++) {
        uint32_t node = json_member(j, JSON_ROOT, str_from(names[i]));

        if (node == JSON_NONE || json_is(j, node, JSON_NULL))
            continue;
        buf_add(&text, text.n ? STR(": ") : STR(""));
        add_value(&text, j, names[i]);
    }
    if (text.n)
        printf("%6s   %s\n", "", buf_cstr(&text));
}

static bool has_reason(const struct json *j)
{
    uint32_t verdict = json_member(j, JSON_ROOT, STR("policy_verdict"));
    uint32_t reason = json_member(j, JSON_ROOT, STR("outcome_reason"));

    return json_is(j, reason, JSON_STRING) || json_string_is(j, verdict, STR("denied")) ||
           json_string_is(j, json_member(j, JSON_ROOT, STR("outcome")), STR("denied"));
}

/* A call that was denied took no time. */
static void print_duration(const struct json *j)
{
    bool known = json_is(j, json_member(j, JSON_ROOT, STR("duration_ms")), JSON_NUMBER);

    print_cell(j, "duration_ms", 8);
    printf("%s  ", known ? "ms" : "  ");
}

static void print_receipt(const struct json *j)
{
    CLEANUP(buf_release) struct buf tool = { .max = 4096 };

    print_cell(j, "seq", 6);
    print_cell(j, "timestamp", 24);
    print_cell(j, "outcome", -10);
    print_cell(j, "policy_verdict", -10);
    print_duration(j);
    print_cell(j, "receipt_id", -20);
    add_value(&tool, j, "tool_name");
    printf("%s\n", buf_cstr(&tool));
    if (has_reason(j))
        print_reason(j);
}

/* What the check found out about the pack that it does not say itself. */
static void print_checked(const struct verify_result *r)
{
    CLEANUP(buf_release) struct buf count = { 0 };
    CLEANUP(buf_release) struct buf session = { 0 };
    CLEANUP(buf_release) struct buf key = { 0 };
    CLEANUP(buf_release) struct buf words = { 0 };

    receipt_facts_add_count(&count, &r->receipts);
    print_fact("receipts", buf_str(&count));
    if (r->receipts.has_session)
        receipt_facts_add_session(&session, &r->receipts);
    print_fact("record", session.n ? buf_str(&session) : STR("no session facts"));
    print_fact("signer", r->manifest.signer_id);
    digest_add_hex(&key, &r->manifest.signer_pubkey_sha256);
    print_fact("key", buf_str(&key));
    report_add_key_words(&words, r);
    print_fact("", buf_str(&words));
}

void pack_view_print(const struct pack_view *v, const struct verify_result *r)
{
    CLEANUP(json_release) struct json j = { 0 };
    str rest = v->receipts.bytes, line;

    print_fact("pack", v->manifest.pack_id);
    print_fact("session", v->manifest.run_id);
    print_fact("from", v->manifest.timestamp_start);
    print_fact("to", v->manifest.timestamp_end);
    print_checked(r);
    printf("\n");
    while (receipt_line(&rest, &line)) {
        if (parse_receipt(&j, line) &&
            json_string_is(&j, json_member(&j, JSON_ROOT, STR("type")),
                           STR("mcp_tool_call")) &&
            is_wanted(v, &j))
            print_receipt(&j);
    }
}

/* --- for machines --- */

static void put_digest(struct pretty *p, const char *name, const struct digest *d)
{
    char hex[2 * DIGEST_SIZE];

    digest_hex(hex, d);
    pretty_string(p, name, str_of(hex, sizeof(hex)));
}

static void put_receipts(const struct pack_view *v, struct pretty *p)
{
    CLEANUP(json_release) struct json j = { 0 };
    str rest = v->receipts.bytes, line;

    pretty_array(p, "receipts");
    while (receipt_line(&rest, &line)) {
        if (parse_receipt(&j, line) && is_wanted(v, &j))
            pretty_node(p, NULL, &j, JSON_ROOT);
    }
    pretty_end_array(p);
}

void pack_view_members(const struct pack_view *v, struct pretty *p, bool receipts)
{
    const struct manifest *m = &v->manifest;

    pretty_text(p, "path", v->path);
    pretty_string(p, "pack_id", m->pack_id);
    pretty_string(p, "session_id", m->run_id);
    put_digest(p, "pack_root_sha256", &m->pack_root_sha256);
    pretty_string(p, "timestamp_start", m->timestamp_start);
    pretty_string(p, "timestamp_end", m->timestamp_end);
    pretty_u64(p, "receipt_count", m->receipt_count);
    pretty_string(p, "signer_id", m->signer_id);
    put_digest(p, "signer_pubkey_sha256", &m->signer_pubkey_sha256);
    if (v->has_metadata)
        pretty_node(p, "session_metadata", &v->metadata, JSON_ROOT);
    else
        pretty_null(p, "session_metadata");
    if (receipts)
        put_receipts(v, p);
}
