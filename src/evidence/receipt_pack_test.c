/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/receipt_pack.h"

#include "base/err.h"
#include "tests/tap.h"

static void test_times(void)
{
    static const struct {
        const char *text;
        bool valid; /* as Python 3.11's datetime.fromisoformat after Z -> +00:00 */
    } rows[] = {
        { "2026-01-15T11:59:00Z", true },
        { "2026-01-15T11:59:00+00:00", true },
        { "2026-01-15T11:59:00", true },
        { "2026-01-15 11:59:00", true },
        { "2026-01-15", true },
        { "2026-01-15T11", true },
        { "2026-01-15T11:59", true },
        { "2026-01-15T11:59:00.5", true },
        { "2026-01-15T11:59:00.123456+05:30", true },
        { "2026-01-15T11:59Z", true },
        { "2024-02-29", true },
        { "2026-02-29", false },
        { "2026-01-15T24:00:00Z", false },
        { "2026-01-15T11:60:00Z", false },
        { "yesterday", false },
        { "", false },
        { "2026-01-15T", false },
        { "2026-1-15", false },
        { "0000-01-15", false },
        { "2026-01-15T11:59:00.Z", false },
        { "2026-01-15T11:5", false },
        { "2026-01-15T11:59:00+25:00", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(receipt_time_valid(str_from(rows[i].text)) == rows[i].valid, "'%s' is %s",
           rows[i].text, rows[i].valid ? "a time" : "no time");
}

static void test_types(void)
{
    static const struct {
        const char *type;
        bool allowed;
    } rows[] = {
        { "mcp_tool_call", true },
        { "session_metadata", true },
        { "a.b", true },
        { "a.b.c/v1", true },
        { "mcp.tool_requested", true },
        { "a", false },
        { "a/b", false },
        { "a.", false },
        { ".a", false },
        { "a..b", false },
        { "a.b/", false },
        { "a.b/c/d", false },
        { "a.b/c.d", false },
        { "A.b", false },
        { "loom.x", false },
        { "looms.x", true },
        { "", false },
        { "policy_impact", false },
        { "breakglass", false },
        { "a.b\n", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(receipt_type_allowed(str_from(rows[i].type)) == rows[i].allowed, "'%s' is %s",
           rows[i].type, rows[i].allowed ? "allowed" : "not allowed");
}

static void test_lines(void)
{
    static const char text[] = "\n \t\r\n{1}\r\n\r{2}\n\n{3}";
    str rest = str_from(text), line;

    ok(receipt_line(&rest, &line) && str_is(line, "{1}"), "CR LF is not part of a line");
    ok(receipt_line(&rest, &line) && str_is(line, "\r{2}"), "a CR elsewhere is");
    ok(receipt_line(&rest, &line) && str_is(line, "{3}"), "a tail is a line");
    ok(!receipt_line(&rest, &line), "then there is none");
}

static struct receipt_facts check(const char *text, struct findings *f)
{
    struct receipt_facts facts = { 0 };
    struct err err = { 0 };

    ok(receipt_pack_check(str_from(text), NULL, f, &facts, &err) == 0, "checked");
    return facts;
}

#define LINE(id)                                                                         \
    "{\"receipt_id\":\"" id "\",\"timestamp\":\"2026-01-01\",\"type\":\"a.b\"}\n"

static void test_facts(void)
{
    struct findings f = { 0 };
    struct receipt_facts facts = check(LINE("1") "\n7\n{\n" LINE("2") LINE("1"), &f);

    ok(facts.count == 3 && facts.bad_lines == 2 && facts.faults == 1, "counts");
    ok(f.count == 3 && f.items[2].code == FINDING_DUPLICATE_ID && f.items[2].receipt == 3,
       "the index of a receipt is one less than its place");
    ok(memmem(f.items[0].message.p, f.items[0].message.n, "line 3 ", 7) != NULL,
       "a bad line is named by its number: " STR_FMT, STR_ARG(f.items[0].message));
    ok(facts.head_known, "the last receipt has a hash");
    findings_release(&f);
}

static void test_one_part_is_not_the_session(void)
{
    static const struct {
        const char *members, *words;
    } rows[] = {
        { "\"session_complete\":true", "complete" },
        { "\"session_complete\":true,\"part\":1,\"final\":true", "complete" },
        { "\"session_complete\":false,\"reason\":\"crash\",\"lost\":1",
          "not complete: it ended with 'crash', 1 call has no answer" },
        { "\"session_complete\":false,\"part\":1,\"final\":false",
          "part 1, and not the last" },
        { "\"session_complete\":true,\"final\":false", "a part, and not the last" },
        { "\"session_complete\":true,\"part\":2,\"final\":true",
          "part 2, the last; with the parts before it the session is complete" },
        { "\"session_complete\":false,\"part\":2,\"final\":true,\"lost\":2",
          "part 2, the last; the session is not complete: 2 calls have no answer" },
        { "\"session_complete\":true,\"part\":-2", "complete" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf line = { 0 }, words = { 0 };
        struct findings f = { 0 };
        struct receipt_facts facts;

        buf_printf(&line,
                   "{\"receipt_id\":\"1\",\"timestamp\":\"2026-01-01\",\"type\":"
                   "\"session_metadata\",%s}\n",
                   rows[i].members);
        facts = check(buf_cstr(&line), &f);
        receipt_facts_add_session(&words, &facts);
        ok(str_is(buf_str(&words), rows[i].words), "%s: %s", rows[i].members,
           buf_cstr(&words));
        findings_release(&f);
    }
}

static void test_findings_are_bounded(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct findings f = { 0 };
    struct receipt_facts facts;

    for (int i = 0; i < 5000; i++)
        buf_add(&text, STR("[]\n"));
    facts = check(buf_cstr(&text), &f);
    ok(facts.bad_lines == 5000 && f.count == FINDINGS_MAX &&
           f.left_out == 5000 - FINDINGS_MAX,
       "a hostile file fills no endless report");
    findings_release(&f);
}

int main(void)
{
    test_times();
    test_types();
    test_lines();
    test_facts();
    test_one_part_is_not_the_session();
    test_findings_are_bounded();
    return tap_done();
}
