/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/call.h"

#include "base/codec.h"
#include "base/utf8.h"
#include "json/text.h"

/* Where a folded event comes from: its members as JSON text, {NULL, 0} when absent. */
struct source {
    enum event_type type;
    uint64_t seq;
    int64_t ts;
    const struct event_view *view;
    const struct event *event;
};

/* The JSON text of a member that is no text, or that something is there. */
static ALWAYS_INLINE str value_of(const struct source *s, const char *name)
{
    uint32_t node;

    if (s->event)
        return event_value(s->event, event_name(name));
    node = json_member(s->view->json, JSON_ROOT, str_from(name));
    return node == JSON_NONE ? (str){ NULL, 0 } : json_raw(s->view->json, node);
}

/* What stands between the quotes of a text; *escaped: with backslashes. */
static str contents_read(const struct event_view *v, str name, bool *escaped)
{
    const struct json *j = v->json;
    uint32_t node = json_member(j, JSON_ROOT, name);

    if (!json_is(j, node, JSON_STRING))
        return (str){ NULL, 0 };
    *escaped = (j->nodes[node].flags & JSON_ESCAPED) != 0;
    return text_of(j, node).raw;
}

static ALWAYS_INLINE str contents_of(const struct source *s, const char *name,
                                     bool *escaped)
{
    *escaped = false;
    if (s->event)
        return event_contents(s->event, event_name(name), escaped);
    return contents_read(s->view, str_from(name), escaped);
}

static bool is_quoted(str json)
{
    return json.n >= 2 && json.p[0] == '"' && json.p[json.n - 1] == '"';
}

static str unquoted(str json)
{
    return is_quoted(json) ? str_of(json.p + 1, json.n - 2) : (str){ NULL, 0 };
}

void call_release(struct call *c)
{
    buf_release(&c->text);
    *c = (struct call){ 0 };
}

void call_reset(struct call *c)
{
    struct buf text = c->text;

    buf_reset(&text);
    *c = (struct call){ .text = text };
}

str call_str(const struct call *c, struct call_text t)
{
    return t.at ? str_of(c->text.p + t.at - 1, t.n) : (str){ NULL, 0 };
}

bool call_is_open(const struct call *c)
{
    return c->requested && c->receipts == 0;
}

bool call_is_due(const struct call *c)
{
    return c->requested && (c->answered || c->lost || (c->denied && c->receipts == 0));
}

static struct call_text text_from(struct call *c, size_t start)
{
    return (struct call_text){ (uint32_t)start + 1, (uint32_t)(c->text.n - start) };
}

/* Append the text that the contents of a JSON string mean; false (and nothing appended)
 * when they mean none: a bad escape, or half of a surrogate pair. */
static bool add_decoded(struct buf *out, str contents)
{
    size_t before = out->n;

    while (contents.n) {
        const char *slash = memchr(contents.p, '\\', contents.n);
        size_t plain = slash ? (size_t)(slash - contents.p) : contents.n;
        uint32_t code_point;
        size_t n;

        buf_add(out, str_first(contents, plain));
        contents = str_skip(contents, plain);
        if (!contents.n)
            break;
        n = text_escape(contents, &code_point);
        if (n == 0 || text_is_surrogate(code_point)) {
            if (!out->failed)
                out->n = before;
            return false;
        }
        utf8_add(out, code_point);
        contents = str_skip(contents, n);
    }
    return true;
}

static struct call_text keep_contents(struct call *c, str contents, bool escaped)
{
    size_t start = c->text.n;

    if (!contents.p)
        return (struct call_text){ 0 };
    c->text.max = CALL_TEXT_MAX;
    if (!escaped)
        buf_add(&c->text, contents); /* one that is empty, too, gets an address */
    else if (!add_decoded(&c->text, contents))
        return (struct call_text){ 0 };
    return text_from(c, start);
}

/* Keep a text member; absent stays absent. */
static ALWAYS_INLINE struct call_text keep(struct call *c, const struct source *s,
                                           const char *name)
{
    bool escaped;
    str contents = contents_of(s, name, &escaped);

    return keep_contents(c, contents, escaped);
}

/* The event has the name as it stood between its quotes in the message; the receipt has
 * what that means. A name that was cut, or that means no text, stays as it stood. */
static struct call_text keep_tool(struct call *c, const struct source *s)
{
    struct call_text source = keep(c, s, "tool");
    size_t start = c->text.n;
    char copy[EVENT_FOREIGN_MAX + 4];
    str text = call_str(c, source);

    if (!text.n || text.n > sizeof(copy) || !memchr(text.p, '\\', text.n) ||
        value_of(s, "tool_sha256").p)
        return source;
    memcpy(copy, text.p, text.n); /* `text` may move while we append to it */
    if (!add_decoded(&c->text, str_of(copy, text.n)))
        return source;
    return text_from(c, start);
}

/* A plain integer within ±(2^53 − 1), spelled as it would be printed. */
static bool is_plain_integer(str id)
{
    bool negative = id.n && id.p[0] == '-';
    uint64_t magnitude;

    if (!u64_parse(&magnitude, str_skip(id, negative)))
        return false;
    return magnitude <= ((uint64_t)1 << 53) - 1 && !(negative && magnitude == 0);
}

/* The event has the id's JSON text. */
static void keep_request_id(struct call *c, const struct source *s)
{
    struct call_text source = keep(c, s, "id");
    size_t start = c->text.n;
    char copy[EVENT_FOREIGN_MAX + 4];
    str text = call_str(c, source);

    c->request_id = source;
    c->request_id_is_number = is_plain_integer(text);
    if (!is_quoted(text) || text.n > sizeof(copy) || value_of(s, "id_sha256").p)
        return;
    memcpy(copy, text.p, text.n);
    if (add_decoded(&c->text, unquoted(str_of(copy, text.n))))
        c->request_id = text_from(c, start);
}

static void fold_request(struct call *c, const struct source *s)
{
    c->requested = true;
    c->first = s->seq;
    c->requested_at = s->ts;
    keep_request_id(c, s);
    c->tool = keep_tool(c, s);
    c->arguments_hash = keep(c, s, "arguments_hash");
    c->request_digest = keep(c, s, "digest");
    c->trace = keep(c, s, "trace");
    c->arguments_raw = keep(c, s, "raw_reason");
}

static void fold_decision(struct call *c, const struct source *s)
{
    c->decided = true;
    c->decided_at = s->ts;
    c->verdict = keep(c, s, "verdict");
    c->policy_ref = keep(c, s, "policy_ref");
    c->policy_reason = keep(c, s, "reason");
    c->policy_hash = keep(c, s, "policy_hash");
}

/* The first of a list of texts that need no escape; absent when it does. */
static struct call_text keep_first(struct call *c, const struct source *s,
                                   const char *name)
{
    str list = value_of(s, name);
    size_t start = c->text.n;
    const char *end;

    if (list.n < 4 || list.p[0] != '[' || list.p[1] != '"')
        return (struct call_text){ 0 };
    list = str_skip(list, 2);
    end = memchr(list.p, '"', list.n);
    if (!end || memchr(list.p, '\\', (size_t)(end - list.p)))
        return (struct call_text){ 0 };
    c->text.max = CALL_TEXT_MAX;
    buf_add(&c->text, str_first(list, (size_t)(end - list.p)));
    return text_from(c, start);
}

/* A denial that names no rule is not the policy's. */
static void fold_denial(struct call *c, const struct source *s)
{
    c->denied = true;
    c->denied_at = s->ts;
    if (!value_of(s, "policy_ref").p)
        c->refusal = keep_first(c, s, "reason_codes");
    if (!c->policy_ref.at)
        c->policy_ref = keep(c, s, "policy_ref");
}

static void fold_answer(struct call *c, const struct source *s)
{
    c->answered = true;
    c->answered_at = s->ts;
    c->is_error = str_is(value_of(s, "is_error"), "true");
    c->result_hash = keep(c, s, "result_hash");
    c->result_type = keep(c, s, "result_type");
    c->response_digest = keep(c, s, "digest");
    c->result_raw = keep(c, s, "raw_reason");
}

static void fold_loss(struct call *c, const struct source *s)
{
    c->lost = true;
    c->lost_at = s->ts;
    c->lost_reason = keep(c, s, "reason");
}

/* What has been receipted is over; a task's result begins anew. */
static void fold_receipt(struct call *c, const struct source *s)
{
    bool escaped;
    str id = contents_of(s, "receipt_id", &escaped);

    c->receipts++;
    c->task = c->answered && str_is(call_str(c, c->result_type), "task");
    if (id.n && id.n < sizeof(c->receipt_id)) {
        memcpy(c->receipt_id, id.p, id.n);
        c->receipt_id[id.n] = '\0';
    }
    c->answered = c->lost = c->is_error = false;
    c->result_hash = c->result_type = c->result_raw = (struct call_text){ 0 };
    c->response_digest = c->lost_reason = (struct call_text){ 0 };
}

static void fold_notification(struct call *c, const struct source *s)
{
    bool escaped;

    if (str_is(contents_of(s, "method", &escaped), "notifications/cancelled"))
        c->cancelled = true;
    else if (value_of(s, "result_hash").p)
        fold_answer(c, s);
}

static bool is_ours(struct call *c, const struct source *s)
{
    str call = s->view ? unquoted(value_of(s, "call")) : s->event->call;

    if (call.p == c->id)
        return true; /* it was composed for this one */
    if (!call.n || call.n >= sizeof(c->id))
        return false;
    if (!c->id[0]) {
        memcpy(c->id, call.p, call.n);
        c->id[call.n] = '\0';
        c->first = s->seq;
    }
    return str_is(call, c->id);
}

static void fold(struct call *c, const struct source *s)
{
    if (!is_ours(c, s))
        return;
    if (s->type == EVENT_REQUEST_RECEIVED)
        fold_request(c, s);
    else if (s->type == EVENT_POLICY_DECIDED)
        fold_decision(c, s);
    else if (s->type == EVENT_REQUEST_DENIED)
        fold_denial(c, s);
    else if (s->type == EVENT_RESPONSE_RECEIVED)
        fold_answer(c, s);
    else if (s->type == EVENT_NOTIFICATION_RECEIVED)
        fold_notification(c, s);
    else if (s->type == EVENT_CALL_LOST)
        fold_loss(c, s);
    else if (s->type == EVENT_CALL_CANCELLED)
        c->cancelled = true;
    else if (s->type == EVENT_REQUEST_FORWARDED)
        c->forwarded = true;
    else if (s->type == EVENT_MESSAGE_MODIFIED)
        c->modified = true;
    else if (s->type == EVENT_RECEIPT)
        fold_receipt(c, s);
    c->last = s->seq;
}

void call_fold(struct call *c, const struct event_view *v)
{
    const struct source s = { v->type, v->seq, v->ts, v, NULL };

    fold(c, &s);
}

void call_fold_event(struct call *c, const struct event *e, uint64_t seq, int64_t ts)
{
    const struct source s = { e->type, seq, ts, NULL, e };

    fold(c, &s);
}

struct call call_mark(const struct call *c)
{
    return *c;
}

void call_rewind(struct call *c, const struct call *mark)
{
    struct buf text = c->text;

    text.n = mark->text.n;
    text.failed = mark->text.failed;
    *c = *mark;
    c->text = text;
}

bool id_number(uint64_t *out, str id)
{
    uint8_t bytes[ID_HEX / 2];
    const char *underscore = id.n ? memchr(id.p, '_', id.n) : NULL;

    if (!underscore ||
        !hex_decode(bytes, sizeof(bytes), str_skip(id, (size_t)(underscore - id.p) + 1)))
        return false;
    *out = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        *out = *out << 8 | bytes[i];
    return true;
}
