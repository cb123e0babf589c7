/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/receipt_pack.h"

#include <fcntl.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/err.h"
#include "evidence/idset.h"
#include "json/jcs.h"
#include "json/json.h"

struct checker {
    const struct receipt_watch *watch;
    struct findings *findings;
    struct receipt_facts *facts;
    struct json json;
    struct idset ids;
    struct hasher hasher;
    struct buf text; /* one unescaped string at a time */
    bool starved;    /* there was no memory for one */
};

static bool is_blank(str line)
{
    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] != ' ' && line.p[i] != '\t' && line.p[i] != '\r')
            return false;
    }
    return true;
}

int receipt_pack_map(struct mapping *m, const char *dir, struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    char path[FILE_PATH_MAX];

    if (path_join(path, dir, RECEIPT_PACK_NAME, err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, err);
    return fd < 0 ? -1 : mapping_open(m, fd, path, err);
}

bool receipt_line(str *rest, str *line)
{
    while (rest->n) {
        if (!str_line(rest, line)) {
            *line = *rest;
            *rest = (str){ NULL, 0 };
        }
        if (line->n && line->p[line->n - 1] == '\r')
            line->n--;
        if (!is_blank(*line))
            return true;
    }
    return false;
}

bool receipt_type_allowed(str type)
{
    static const char *const flat[] = {
        "ai_workflow",    "capability_use",   "challenge",
        "decision_v1",    "grace_check",      "governance_posture_snapshot",
        "guardian_check", "guardian_verdict", "mcp_tool_call",
        "model_call",     "refusal",          "revocation",
        "supersession",   "session_metadata",
    };
    unsigned dots = 0, slashes = 0, run = 0;

    for (size_t i = 0; i < COUNT(flat); i++) {
        if (str_is(type, flat[i]))
            return true;
    }
    for (size_t i = 0; i < type.n; i++) {
        char c = type.p[i];

        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
            run++;
            continue;
        }
        dots += c == '.';
        slashes += c == '/';
        if (run == 0 || (c != '.' && c != '/') || slashes > 1 || (c == '.' && slashes))
            return false;
        run = 0;
    }
    return run && dots && !str_starts(type, STR("loom."));
}

#define TIME_MAX 48

static size_t find_offset(str clock)
{
    size_t n = 0;

    while (n < clock.n && clock.p[n] != 'Z' && clock.p[n] != '+' && clock.p[n] != '-')
        n++;
    return n;
}

/* Fill in what was left out, so that the strict parser can judge the whole. */
bool receipt_time_valid(str text)
{
    CLEANUP(buf_release) struct buf full = { .max = TIME_MAX + 16 };
    str clock = str_skip(text, 11), offset;
    int64_t ms;

    if (text.n < 10 || text.n > TIME_MAX || str_starts(text, STR("0000")))
        return false;
    if (text.n > 10 && text.p[10] != 'T' && text.p[10] != 't' && text.p[10] != ' ')
        return false;
    offset = str_skip(clock, find_offset(clock));
    clock.n -= offset.n;
    buf_add(&full, str_first(text, 10));
    buf_add_char(&full, 'T');
    buf_add(&full, text.n == 10 ? STR("00") : clock);
    if (text.n == 10 || clock.n == 2)
        buf_add(&full, STR(":00:00"));
    else if (clock.n == 5)
        buf_add(&full, STR(":00"));
    buf_add(&full, offset.n ? offset : STR("Z"));
    return !full.failed && clock_parse(&ms, buf_str(&full));
}

/* An error of the receipt that is being looked at; its index is the count so far. */
static void fault(struct checker *c, enum finding_code code, const char *field,
                  const char *what)
{
    const struct finding like = { .code = code,
                                  .stage = STAGE_RECEIPTS,
                                  .receipt = c->facts->count + 1,
                                  .field = str_from(field) };

    c->facts->faults++;
    findings_add(c->findings, &like, "receipt %llu: %s",
                 (unsigned long long)c->facts->count, what);
}

static void bad_line(struct checker *c, uint64_t number, const char *what)
{
    const struct finding like = { .code = FINDING_MANIFEST_TAMPER,
                                  .stage = STAGE_RECEIPTS,
                                  .field = STR(RECEIPT_PACK_NAME) };

    c->facts->bad_lines++;
    findings_add(c->findings, &like, "line %llu of %s: %s", (unsigned long long)number,
                 RECEIPT_PACK_NAME, what);
}

/* Characters at which the public Python verifier cuts a line and others do not. */
static const char *hidden_line_end(str line)
{
    for (size_t i = 0; i < line.n; i++) {
        str at = str_skip(line, i);

        if (at.p[0] == '\r')
            return "a carriage return stands inside the line; some readers end it there";
        if (str_starts(at, STR("\xc2\x85")) || str_starts(at, STR("\xe2\x80\xa8")) ||
            str_starts(at, STR("\xe2\x80\xa9")))
            return "a raw U+0085, U+2028 or U+2029 stands in it; some readers end the line there (write it as an escape)";
    }
    return NULL;
}

/* Unescape a string node into c->text. */
static str text_of(struct checker *c, uint32_t node)
{
    buf_reset(&c->text);
    json_unescape(&c->json, node, &c->text);
    c->starved |= c->text.failed;
    return buf_str(&c->text);
}

/* Missing in the sense of the public verifiers: absent, null, false, 0, "" or []. */
static bool is_missing(const struct checker *c, uint32_t node)
{
    const struct json *j = &c->json;
    str raw;

    if (node == JSON_NONE || json_is(j, node, JSON_NULL) || json_is(j, node, JSON_FALSE))
        return true;
    raw = json_raw(j, node);
    if (json_is(j, node, JSON_STRING))
        return raw.n == 2;
    if (json_is(j, node, JSON_NUMBER)) {
        for (size_t i = 0; i < raw.n && raw.p[i] != 'e' && raw.p[i] != 'E'; i++) {
            if (raw.p[i] >= '1' && raw.p[i] <= '9')
                return false;
        }
        return true;
    }
    return (json_is(j, node, JSON_ARRAY) || json_is(j, node, JSON_OBJECT)) &&
           json_count(j, node) == 0;
}

static bool is_scalar(const struct checker *c, uint32_t node)
{
    return !json_is(&c->json, node, JSON_ARRAY) && !json_is(&c->json, node, JSON_OBJECT);
}

static int check_id(struct checker *c, struct err *err)
{
    uint32_t id = json_member(&c->json, JSON_ROOT, STR("receipt_id"));
    struct sink sink = hasher_sink(&c->hasher);
    struct err why = { 0 };
    struct digest d;
    bool seen;

    if (is_missing(c, id) || !is_scalar(c, id)) {
        fault(c, FINDING_SCHEMA_UNKNOWN, "receipt_id",
              "the required member receipt_id is missing or empty");
        return 0;
    }
    if (jcs_write(&c->json, id, JCS_PACK, &sink, &why) < 0) {
        hasher_finish(&c->hasher);
        return 0; /* said by check_form */
    }
    d = hasher_finish(&c->hasher);
    if (idset_add(&c->ids, &d, &seen, err) < 0)
        return -1;
    if (seen)
        fault(c, FINDING_DUPLICATE_ID, "receipt_id",
              "its receipt_id has been used by a receipt before it");
    return 0;
}

static void check_time(struct checker *c)
{
    uint32_t node = json_member(&c->json, JSON_ROOT, STR("timestamp"));

    if (is_missing(c, node))
        fault(c, FINDING_SCHEMA_UNKNOWN, "timestamp",
              "the required member timestamp is missing or empty");
    else if (!json_is(&c->json, node, JSON_STRING))
        fault(c, FINDING_TIMESTAMP_INVALID, "timestamp", "its timestamp is not a string");
    else if (!receipt_time_valid(text_of(c, node)))
        fault(c, FINDING_TIMESTAMP_INVALID, "timestamp",
              "its timestamp is not an ISO 8601 time");
}

static uint32_t member(const struct checker *c, const char *name)
{
    return json_member(&c->json, JSON_ROOT, str_from(name));
}

static void note_session(struct checker *c)
{
    struct receipt_facts *f = c->facts;
    uint32_t reason = member(c, "reason");
    int64_t lost = 0, part = 0;
    str text;

    f->has_session = true;
    f->session_complete = json_is(&c->json, member(c, "session_complete"), JSON_TRUE);
    f->session_goes_on = json_is(&c->json, member(c, "final"), JSON_FALSE);
    f->session_part =
        json_int(&c->json, member(c, "part"), &part) && part > 0 ? (uint64_t)part : 0;
    f->calls_lost =
        json_int(&c->json, member(c, "lost"), &lost) && lost > 0 ? (uint64_t)lost : 0;
    f->session_reason[0] = '\0';
    if (!json_is(&c->json, reason, JSON_STRING))
        return;
    text = str_first(text_of(c, reason), sizeof(f->session_reason) - 1);
    if (text.n && !memchr(text.p, '\0', text.n)) {
        memcpy(f->session_reason, text.p, text.n);
        f->session_reason[text.n] = '\0';
    }
}

static void check_type(struct checker *c)
{
    uint32_t node = json_member(&c->json, JSON_ROOT, STR("type"));
    struct finding like = { .code = FINDING_SCHEMA_UNKNOWN,
                            .stage = STAGE_TYPES,
                            .receipt = c->facts->count + 1,
                            .field = STR("type") };
    str type;

    if (is_missing(c, node)) {
        fault(c, FINDING_SCHEMA_UNKNOWN, "type",
              "the required member type is missing or empty");
        return;
    }
    if (!json_is(&c->json, node, JSON_STRING)) {
        findings_add(c->findings, &like, "receipt %llu: its type is not a string",
                     (unsigned long long)c->facts->count);
        return;
    }
    type = text_of(c, node);
    if (!receipt_type_allowed(type))
        findings_add(c->findings, &like,
                     "receipt %llu: a pack may not hold receipts of type '%s'",
                     (unsigned long long)c->facts->count, quoted(type).text);
    c->facts->calls += str_is(type, "mcp_tool_call");
    if (str_is(type, "session_metadata"))
        note_session(c);
}

static bool is_ascii(struct checker *c, uint32_t name)
{
    str raw = c->json.nodes[name].flags & JSON_ESCAPED ? text_of(c, name)
                                                       : json_raw(&c->json, name);

    for (size_t i = 0; i < raw.n; i++) {
        if ((unsigned char)raw.p[i] >= 0x80)
            return false;
    }
    return true;
}

/* Member names and integers on which readers disagree; the first of each is said. */
static bool check_values(struct checker *c)
{
    const struct json *j = &c->json;
    bool names = true, integers = true;
    int64_t value;

    for (uint32_t i = 0; i < j->count; i++) {
        if (integers && j->nodes[i].kind == JSON_NUMBER &&
            (j->nodes[i].flags & JSON_INTEGER) && !json_int(j, i, &value)) {
            fault(
                c, FINDING_CANON_MISMATCH, "",
                "it holds an integer beyond 2^53: verifiers disagree on its digits, so its hash means nothing (such a number belongs into a string)");
            integers = false;
        }
        if (!names || j->nodes[i].kind != JSON_OBJECT)
            continue;
        json_each (j, i, name)
            names = names && is_ascii(c, name);
        if (!names)
            fault(
                c, FINDING_CANON_MISMATCH, "",
                "a member name is not pure ASCII; lookalikes of reserved names are refused");
    }
    return names && integers;
}

/* The canonical form and its hash; the last receipt's is the head. */
static void check_form(struct checker *c)
{
    static const char *const unsigned_members[] = {
        "signature", "signatures", "cose_signature", "receipt_hash", "anchor",
    };
    struct sink sink = hasher_sink(&c->hasher);
    bool tainted = c->json.nodes[JSON_ROOT].flags & JSON_TAINTED;
    bool good = check_values(c);
    struct err why = { 0 };
    int r;

    if (tainted)
        r = jcs_write(&c->json, JSON_ROOT, JCS_PACK, &sink, &why);
    else
        r = jcs_write_without(&c->json, JSON_ROOT, unsigned_members,
                              COUNT(unsigned_members), JCS_PACK, &sink, &why);
    c->facts->head = hasher_finish(&c->hasher);
    c->facts->head_known = r == 0 && good && !tainted;
    if (r < 0 || tainted)
        fault(c, FINDING_CANON_MISMATCH, "",
              r < 0 ? why.msg : "it has no canonical form");
}

static int check_line(struct checker *c, str line, uint64_t number, struct err *err)
{
    const struct json_limits limits = { .max_bytes = RECEIPT_LINE_MAX };
    const char *hidden = hidden_line_end(line);
    struct err why = { 0 };

    if (hidden)
        bad_line(c, number, hidden);
    else if (json_parse(&c->json, line, &limits, &why) < 0 && why.code == ERR_NOMEM)
        return err_set(err, ERR_NOMEM, "%s", why.msg);
    else if (why.code)
        bad_line(c, number, why.msg);
    else if (!json_is(&c->json, JSON_ROOT, JSON_OBJECT))
        bad_line(c, number, "it is JSON but not an object");
    else {
        if (check_id(c, err) < 0)
            return -1;
        check_type(c);
        check_time(c);
        check_form(c);
        c->facts->count++;
        return 0;
    }
    c->facts->head_known = false;
    return 0;
}

static uint64_t lines_between(const char *from, const char *to)
{
    uint64_t n = 0;

    while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
        n++;
        from++;
    }
    return n;
}

static int check_lines(struct checker *c, str text, struct err *err)
{
    const char *counted = text.p;
    uint64_t number = 1;

    for (str rest = text, line; receipt_line(&rest, &line);) {
        number += lines_between(counted, line.p);
        if (c->watch)
            c->watch->on_bytes(c->watch->ctx, (uint64_t)(line.p - counted));
        counted = line.p;
        if (check_line(c, line, number, err) < 0)
            return -1;
    }
    return c->starved ? err_set(err, ERR_NOMEM, "no memory for a receipt") : 0;
}

int receipt_pack_check(str text, const struct receipt_watch *watch,
                       struct findings *findings, struct receipt_facts *facts,
                       struct err *err)
{
    struct receipt_facts found = { .head_known = true, .head = digest_of(STR("empty")) };
    struct checker c = { .watch = watch,
                         .findings = findings,
                         .facts = &found,
                         .text = { .max = RECEIPT_LINE_MAX } };
    int r;

    hasher_init(&c.hasher);
    r = check_lines(&c, text, err);
    json_release(&c.json);
    idset_release(&c.ids);
    buf_release(&c.text);
    if (r == 0)
        *facts = found;
    return r;
}

/* --- for people --- */

static void add_number(struct buf *out, uint64_t n, const char *noun)
{
    buf_printf(out, "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
}

void receipt_facts_add_count(struct buf *out, const struct receipt_facts *f)
{
    bool whole = f->has_session && f->calls + 1 == f->count;

    if (whole) {
        add_number(out, f->calls, "call");
        buf_add(out, STR(", and the session's record ("));
    }
    add_number(out, f->count, "receipt");
    buf_add(out, whole ? STR(")") : STR(""));
}

/* Why the session is not complete. */
static void add_why(struct buf *out, const struct receipt_facts *f)
{
    const char *between = ": ";

    if (f->session_reason[0]) {
        buf_printf(out, ": it ended with '%s'", quoted(str_from(f->session_reason)).text);
        between = ", ";
    }
    if (f->calls_lost) {
        buf_add(out, str_from(between));
        add_number(out, f->calls_lost, "call");
        buf_add(out, f->calls_lost == 1 ? STR(" has no answer") : STR(" have no answer"));
    }
}

static void add_last_part(struct buf *out, const struct receipt_facts *f)
{
    buf_printf(out, "part %" PRIu64 ", the last; ", f->session_part);
    if (f->session_complete) {
        buf_add(out, STR("with the parts before it the session is complete"));
        return;
    }
    buf_add(out, STR("the session is not complete"));
    add_why(out, f);
}

void receipt_facts_add_session(struct buf *out, const struct receipt_facts *f)
{
    if (f->session_goes_on && f->session_part) {
        buf_printf(out, "part %" PRIu64 ", and not the last", f->session_part);
    } else if (f->session_goes_on) {
        buf_add(out, STR("a part, and not the last"));
    } else if (f->session_part > 1) {
        add_last_part(out, f);
    } else if (f->session_complete) {
        buf_add(out, STR("complete"));
    } else {
        buf_add(out, STR("not complete"));
        add_why(out, f);
    }
}
