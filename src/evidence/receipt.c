/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/receipt.h"

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "json/jcs.h"
#include "json/text.h"

/* --- from a call to a receipt --- */

static str or_else(str a, str b)
{
    return a.p ? a : b;
}

static int64_t elapsed(int64_t from, int64_t to)
{
    return to > from ? to - from : 0;
}

static void take_policy(struct receipt *r, const struct call *c)
{
    r->policy_decided_at = c->decided  ? c->decided_at
                           : c->denied ? c->denied_at
                                       : RECEIPT_NO_TIME;
    r->policy_verdict = c->decided                    ? call_str(c, c->verdict)
                        : c->denied && !c->refusal.at ? STR("denied")
                                                      : STR("no_policy");
    r->policy_ref = call_str(c, c->policy_ref);
    r->policy_reason = call_str(c, c->policy_reason);
    r->policy_hash = call_str(c, c->policy_hash);
}

static void take_answer(struct receipt *r, const struct call *c, str content)
{
    str type = call_str(c, c->result_type);
    bool pending = str_is(type, "input_required") || str_is(type, "task");

    r->outcome = c->is_error ? "error" : "forwarded";
    r->outcome_reason =
        c->cancelled ? STR("cancelled")
        : pending    ? type
                     : or_else(call_str(c, c->arguments_raw), call_str(c, c->result_raw));
    r->response_observed_at = c->answered_at;
    r->duration_ms = elapsed(c->requested_at, c->answered_at);
    r->has_result_is_error = true;
    r->result_is_error = c->is_error;
    r->result_hash = call_str(c, c->result_hash);
    r->result_content = content;
    r->response_digest = call_str(c, c->response_digest);
}

static void take_denial(struct receipt *r, const struct call *c)
{
    r->outcome = "denied";
    r->outcome_reason = call_str(c, c->refusal);
}

static void take_loss(struct receipt *r, const struct call *c, int64_t ts)
{
    r->outcome = "timeout";
    r->outcome_reason = call_str(c, c->lost_reason);
    r->duration_ms = elapsed(c->requested_at, c->lost ? c->lost_at : ts);
}

void receipt_of_call(struct receipt *r, const struct call *c,
                     const struct receipt_place *place)
{
    str trace = call_str(c, c->trace);

    *r = (struct receipt){
        .session = place->session,
        .receipt_id = place->receipt_id,
        .timestamp = place->ts,
        .seq = place->seq,
        .invocation_id = str_from(c->id),
        .trace_id = trace.n ? trace : place->session->id,
        .parent_receipt_id = place->parent,
        .tool_name = call_str(c, c->tool),
        .mcp_request_id = call_str(c, c->request_id),
        .mcp_request_id_is_number = c->request_id_is_number,
        .request_observed_at = c->requested_at,
        .response_observed_at = RECEIPT_NO_TIME,
        .arguments_hash = call_str(c, c->arguments_hash),
        .arguments_content = place->arguments_content,
        .duration_ms = -1,
        .request_digest = call_str(c, c->request_digest),
        .modified = c->modified,
        .log_seq = { c->first, c->last },
    };
    take_policy(r, c);
    if (c->answered)
        take_answer(r, c, place->result_content);
    else if (c->denied && !c->lost)
        take_denial(r, c);
    else
        take_loss(r, c, place->ts);
}

/* --- composing; members in canonical order --- */

/* Every member with its comma; the last one's becomes the brace. `name` is a literal. */
#define NAMED(name)  STR("\"" name "\":")
#define QUOTED(text) STR("\"" text "\"") /* a literal, too */

static inline void end_at(struct receipt_line *line, const char *to)
{
    line->canonical.n = (size_t)(to - line->canonical.p);
}

static NOINLINE void add_json(struct receipt_line *line, str name, str json)
{
    str value = json.p ? json : STR("null");
    char *to = buf_room(&line->canonical, name.n + value.n + 1);

    if (!to)
        return;
    to = str_put(str_put(to, name), value);
    *to++ = ',';
    end_at(line, to);
}

static void add_content(struct receipt_line *line, str name, str json)
{
    line->odd |= json.p != NULL;
    add_json(line, name, json);
}

/* A text, for which there is room at `to`, behind its name, unless it needs escapes. */
static NOINLINE void add_value(struct receipt_line *line, char *to, str text)
{
    char *end;

    if (!text.p) {
        end_at(line, str_put(to, STR("null,")));
        return;
    }
    end = text_put_plain(to + 1, text);
    if (end) {
        *to = '"';
        end_at(line, str_put(end, STR("\",")));
        return;
    }
    end_at(line, to);
    line->odd = true;
    jcs_add_string(&line->canonical, text);
    buf_add_char(&line->canonical, ',');
}

static ALWAYS_INLINE void add_text(struct receipt_line *line, str name, str text)
{
    char *to = buf_room(&line->canonical, name.n + text.n + 5);

    if (to)
        add_value(line, str_put(to, name), text);
}

static NOINLINE void add_count(struct receipt_line *line, str name, uint64_t value)
{
    char *to = buf_room(&line->canonical, name.n + U64_DIGITS + 1);

    if (!to)
        return;
    to = str_put(to, name);
    to += u64_format(to, value);
    *to++ = ',';
    end_at(line, to);
}

static void add_bool(struct receipt_line *line, str name, bool value)
{
    add_json(line, name, value ? STR("true") : STR("false"));
}

static NOINLINE void add_time(struct receipt_line *line, str name, int64_t ms)
{
    char *to = buf_room(&line->canonical, name.n + CLOCK_TEXT + 3);

    if (!to)
        return;
    to = str_put(to, name);
    if (ms == RECEIPT_NO_TIME) {
        to = str_put(to, STR("null,"));
    } else {
        *to = '"';
        clock_format(to + 1, ms);
        to = str_put(to + 1 + CLOCK_TEXT, STR("\","));
    }
    end_at(line, to);
}

static void add_places(struct receipt_line *line, str name, const uint64_t seq[static 2])
{
    char text[2 * U64_DIGITS + 3] = "[", *to = text + 1;

    to += u64_format(to, seq[0]);
    *to++ = ',';
    to += u64_format(to, seq[1]);
    *to++ = ']';
    add_json(line, name, str_of(text, (size_t)(to - text)));
}

static void add_call_facts(struct receipt_line *line, const struct receipt *r)
{
    add_content(line, NAMED("arguments_content"), r->arguments_content);
    add_text(line, NAMED("arguments_hash"), r->arguments_hash);
    if (r->duration_ms < 0)
        add_json(line, NAMED("duration_ms"), (str){ NULL, 0 });
    else
        add_count(line, NAMED("duration_ms"), (uint64_t)r->duration_ms);
    add_json(line, NAMED("integration_source"), QUOTED(RECEIPT_SOURCE));
    add_text(line, NAMED("invocation_id"), r->invocation_id);
    add_places(line, NAMED("log_seq"), r->log_seq);
    if (r->mcp_request_id_is_number)
        add_json(line, NAMED("mcp_request_id"), r->mcp_request_id);
    else
        add_text(line, NAMED("mcp_request_id"), r->mcp_request_id);
    add_bool(line, NAMED("modified"), r->modified);
    add_text(line, NAMED("outcome"), str_from(r->outcome));
    add_text(line, NAMED("outcome_reason"), r->outcome_reason);
    add_text(line, NAMED("parent_receipt_id"), r->parent_receipt_id);
}

static void add_policy_facts(struct receipt_line *line, const struct receipt *r)
{
    add_time(line, NAMED("policy_decided_at"), r->policy_decided_at);
    add_text(line, NAMED("policy_hash"), r->policy_hash);
    add_text(line, NAMED("policy_reason"), r->policy_reason);
    add_text(line, NAMED("policy_ref"), r->policy_ref);
    add_text(line, NAMED("policy_verdict"), r->policy_verdict);
    add_text(line, NAMED("proxy_version"), r->session->proxy_version);
    if (r->rebuilt)
        add_bool(line, NAMED("rebuilt"), true);
    add_text(line, NAMED("receipt_id"), r->receipt_id);
}

static void add_wire_facts(struct receipt_line *line, const struct receipt *r)
{
    add_text(line, NAMED("request_digest"), r->request_digest);
    add_time(line, NAMED("request_observed_at"), r->request_observed_at);
    add_text(line, NAMED("response_digest"), r->response_digest);
    add_time(line, NAMED("response_observed_at"), r->response_observed_at);
    add_content(line, NAMED("result_content"), r->result_content);
    add_text(line, NAMED("result_hash"), r->result_hash);
    if (r->has_result_is_error)
        add_bool(line, NAMED("result_is_error"), r->result_is_error);
    else
        add_json(line, NAMED("result_is_error"), (str){ NULL, 0 });
}

static void add_session_facts(struct receipt_line *line, const struct receipt *r)
{
    add_json(line, NAMED("schema_version"), QUOTED(RECEIPT_SCHEMA));
    add_count(line, NAMED("seq"), r->seq);
    add_text(line, NAMED("server_id"), r->session->server_id);
    add_text(line, NAMED("server_transport"), r->session->transport);
    add_text(line, NAMED("session_id"), r->session->id);
    add_time(line, NAMED("timestamp"), r->timestamp);
    add_text(line, NAMED("tool_name"), r->tool_name);
    add_text(line, NAMED("trace_id"), r->trace_id);
    add_json(line, NAMED("type"), QUOTED("mcp_tool_call"));
}

/* What ends a line for the public verifier, in UTF-8, and how we write it. */
static const struct {
    const char *bytes;
    size_t n;
    const char *escape;
} line_ends[] = {
    { "\xc2\x85", 2, "\\u0085" },
    { "\xe2\x80\xa8", 3, "\\u2028" },
    { "\xe2\x80\xa9", 3, "\\u2029" },
};

/* The next byte that may begin one of them. */
static size_t plain_length(str s)
{
    size_t i = 0;

    while (i < s.n && s.p[i] != '\xc2' && s.p[i] != '\xe2')
        i++;
    return i;
}

static void add_escaped(struct buf *out, str s)
{
    while (s.n) {
        size_t plain = plain_length(s), taken = 0;

        buf_add(out, str_first(s, plain));
        s = str_skip(s, plain);
        for (size_t i = 0; i < COUNT(line_ends) && !taken; i++) {
            if (str_starts(s, str_of(line_ends[i].bytes, line_ends[i].n))) {
                buf_add(out, str_from(line_ends[i].escape));
                taken = line_ends[i].n;
            }
        }
        if (!taken && s.n) {
            buf_add_char(out, s.p[0]);
            taken = 1;
        }
        s = str_skip(s, taken);
    }
}

static bool has_line_end(str s)
{
    if (!memchr(s.p, '\xc2', s.n) && !memchr(s.p, '\xe2', s.n))
        return false;
    for (size_t i = 0; i < COUNT(line_ends); i++) {
        if (memmem(s.p, s.n, line_ends[i].bytes, line_ends[i].n))
            return true;
    }
    return false;
}

static int finish_line(struct receipt_line *out, struct err *err)
{
    if (!out->canonical.failed)
        out->canonical.p[out->canonical.n - 1] = '}';
    out->canonical.max = RECEIPT_MAX;
    out->canonical.failed |= out->canonical.n > RECEIPT_MAX;
    if (buf_check(&out->canonical, "the receipt", err) < 0)
        return -1;
    out->line = buf_str(&out->canonical);
    out->hash = digest_of(out->line);
    if (!out->odd || !has_line_end(out->line))
        return 0;
    add_escaped(&out->escaped, out->line);
    out->line = buf_str(&out->escaped);
    return buf_check(&out->escaped, "the receipt", err);
}

static void begin_line(struct receipt_line *out)
{
    out->canonical.max = RECEIPT_MAX + U64_DIGITS; /* more room is asked for than taken */
    out->escaped.max = RECEIPT_MAX;
    out->odd = false;
    buf_reset(&out->canonical);
    buf_reset(&out->escaped);
    buf_add_char(&out->canonical, '{');
}

int receipt_compose(struct receipt_line *out, const struct receipt *r, struct err *err)
{
    begin_line(out);
    add_call_facts(out, r);
    add_policy_facts(out, r);
    add_wire_facts(out, r);
    add_session_facts(out, r);
    return finish_line(out, err);
}

/* --- the session --- */

void receipt_counts_add(struct receipt_counts *c, enum event_type type, bool has_call)
{
    c->events++;
    if (type == EVENT_REQUEST_RECEIVED) {
        c->requests++;
        c->calls += has_call;
    } else if (type == EVENT_RESPONSE_RECEIVED)
        c->received++;
    else if (type == EVENT_RESPONSE_SENT)
        c->sent++;
    else if (type == EVENT_RECEIPT)
        c->receipts++;
    else if (type == EVENT_REQUEST_DENIED)
        c->denied++;
    else if (type == EVENT_CALL_LOST)
        c->lost++;
    else if (type == EVENT_MESSAGE_MODIFIED || type == EVENT_MESSAGE_DROPPED)
        c->interventions++;
    else if (type == EVENT_MESSAGE_CUT)
        c->cut++;
}

static void add_part_facts(struct receipt_line *line, const struct metadata *m)
{
    add_count(line, NAMED("calls"), m->counts.calls);
    add_count(line, NAMED("calls_open"), m->calls_open);
    add_text(line, NAMED("client_transport"), m->session->client_transport);
    add_count(line, NAMED("denied"), m->counts.denied);
    add_time(line, NAMED("ended_at"), m->ended_at);
    add_count(line, NAMED("events"), m->counts.events);
    add_bool(line, NAMED("final"), m->final);
    add_json(line, NAMED("integration_source"), QUOTED(RECEIPT_SOURCE));
    add_count(line, NAMED("interventions"), m->counts.interventions);
    add_count(line, NAMED("log_from"), m->log_from);
    add_count(line, NAMED("log_to"), m->log_to);
    add_count(line, NAMED("lost"), m->counts.lost);
    add_count(line, NAMED("part"), m->part);
    add_text(line, NAMED("policy_hash"), m->session->policy_hash);
    add_text(line, NAMED("previous_pack_root_sha256"), m->previous_pack_root_sha256);
    add_text(line, NAMED("profile"), m->session->profile);
    add_text(line, NAMED("proxy_version"), m->session->proxy_version);
    add_text(line, NAMED("reason"), m->reason);
    if (m->rebuilt)
        add_bool(line, NAMED("rebuilt"), true);
    add_text(line, NAMED("receipt_id"), m->receipt_id);
    add_count(line, NAMED("requests"), m->counts.requests);
}

int metadata_compose(struct receipt_line *out, const struct metadata *m, struct err *err)
{
    begin_line(out);
    add_part_facts(out, m);
    add_json(out, NAMED("schema_version"), QUOTED(RECEIPT_SCHEMA));
    add_count(out, NAMED("seq"), m->seq);
    add_text(out, NAMED("server_id"), m->session->server_id);
    add_text(out, NAMED("server_transport"), m->session->transport);
    add_bool(out, NAMED("session_complete"), m->complete);
    add_text(out, NAMED("session_id"), m->session->id);
    add_time(out, NAMED("started_at"), m->session->started_at);
    add_time(out, NAMED("timestamp"), m->timestamp);
    add_text(out, NAMED("trace_id"), m->session->id);
    add_json(out, NAMED("type"), QUOTED("session_metadata"));
    add_count(out, NAMED("undelivered"), receipt_undelivered(&m->counts));
    return finish_line(out, err);
}

void receipt_line_release(struct receipt_line *l)
{
    buf_release(&l->canonical);
    buf_release(&l->escaped);
    *l = (struct receipt_line){ 0 };
}

int receipt_hash(struct digest *out, const struct json *j, struct err *err)
{
    static const char *const left_out[] = { "signature", "signatures", "cose_signature",
                                            "receipt_hash", "anchor" };
    struct hasher h;
    struct sink sink;

    hasher_init(&h);
    sink = hasher_sink(&h);
    if (jcs_write_without(j, JSON_ROOT, left_out, COUNT(left_out), JCS_PACK, &sink, err) <
        0)
        return -1;
    *out = hasher_finish(&h);
    return 0;
}
