/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packreceipt.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "json/jcs.h"

void packreceipts_init(struct packreceipts *p, struct verify *v, str lines,
                       const char *previous_root)
{
    *p = (struct packreceipts){ .v = v,
                                .rest = lines,
                                .previous_root = previous_root,
                                .arguments = { .max = RECEIPT_MAX },
                                .result = { .max = RECEIPT_MAX } };
}

void packreceipts_release(struct packreceipts *p)
{
    json_release(&p->json);
    receipt_line_release(&p->line);
    buf_release(&p->arguments);
    buf_release(&p->result);
    buf_release(&p->id);
    buf_release(&p->parent);
    buf_release(&p->root);
}

static void find(const struct packreceipts *p, enum finding_code code, const char *fmt,
                 ...) PRINTF_LIKE(3, 4);

static void find(const struct packreceipts *p, enum finding_code code, const char *fmt,
                 ...)
{
    char message[FINDING_MESSAGE_MAX];
    const struct finding like = { .code = code,
                                  .stage = STAGE_LOG,
                                  .receipt = p->seen + 1,
                                  .field = STR(RECEIPT_PACK_NAME) };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    findings_add(&p->v->result->findings, &like, "%s", message);
}

/* A text member, unescaped into `out`; {NULL, 0} when it is null or absent. */
static str text_of(const struct json *j, const char *name, struct buf *out)
{
    uint32_t node = json_member(j, JSON_ROOT, str_from(name));

    buf_reset(out);
    if (!json_is(j, node, JSON_STRING))
        return (str){ NULL, 0 };
    buf_add(out, STR("")); /* an empty text is not an absent one */
    json_unescape(j, node, out);
    return str_of(out->p ? out->p : "", out->n);
}

/* Stored content in canonical form; {NULL, 0} when there is none. */
static str content_of(const struct json *j, const char *name, struct buf *out)
{
    uint32_t node = json_member(j, JSON_ROOT, str_from(name));
    struct sink sink = buf_sink(out);
    struct err ignored;

    buf_reset(out);
    if (node == JSON_NONE || json_is(j, node, JSON_NULL) ||
        jcs_write(j, node, JCS_PACK, &sink, &ignored) < 0)
        return (str){ NULL, 0 };
    return buf_str(out);
}

static bool is_rebuilt(const struct json *j)
{
    return json_is(j, json_member(j, JSON_ROOT, STR("rebuilt")), JSON_TRUE);
}

/* The name of a member that the line has otherwise than it should. */
static void find_difference(struct packreceipts *p)
{
    CLEANUP(json_release) struct json mine = { 0 };
    struct err ignored;

    if (json_parse(&mine, p->line.line, NULL, &ignored) < 0)
        return;
    json_each (&mine, JSON_ROOT, at) {
        str name = json_raw(&mine, at);
        uint32_t theirs =
            json_member(&p->json, JSON_ROOT, str_of(name.p + 1, name.n - 2));

        if (theirs != JSON_NONE &&
            str_equal(json_raw(&p->json, theirs), json_raw(&mine, at + 1)))
            continue;
        find(p, FINDING_MANIFEST_TAMPER,
             "a receipt does not say what its events say: its %.*s is %s", (int)name.n,
             name.p, theirs == JSON_NONE ? "missing" : "another");
        return;
    }
    find(p, FINDING_MANIFEST_TAMPER, "a receipt has members that no receipt has");
}

static uint64_t count_of(const struct json *j, const char *name)
{
    int64_t value = 0;

    json_int(j, json_member(j, JSON_ROOT, str_from(name)), &value);
    return value < 0 ? 0 : (uint64_t)value;
}

/* The last line, indexed; false when there is none that says what session it is of. */
static bool parse_last(struct json *j, str lines)
{
    str line = { NULL, 0 };
    struct err ignored;

    while (receipt_line(&lines, &line))
        continue;
    return line.p && json_parse(j, line, NULL, &ignored) == 0 &&
           json_string_is(j, json_member(j, JSON_ROOT, STR("type")),
                          STR("session_metadata"));
}

static uint64_t first_seq(struct packreceipts *p)
{
    str rest = p->rest, line;
    struct err ignored;

    if (!receipt_line(&rest, &line) || json_parse(&p->json, line, NULL, &ignored) < 0)
        return 0;
    return count_of(&p->json, "seq");
}

int packreceipts_begin_late(struct packreceipts *p, struct history *h,
                            const struct event_view *e, uint64_t *part, struct err *err)
{
    static const char *const names[] = { "server_id", "server_transport",
                                         "client_transport", "profile", "policy_hash" };
    CLEANUP(json_release) struct json last = { 0 };
    struct buf text[COUNT(names)] = { 0 };
    str said[COUNT(names)] = { { NULL, 0 } };
    struct receipt_session facts = { .id = e->session };
    int r;

    if (parse_last(&last, p->rest)) {
        for (size_t i = 0; i < COUNT(names); i++)
            said[i] = text_of(&last, names[i], &text[i]);
        clock_parse(&facts.started_at, text_of(&last, "started_at", &p->root));
        h->part_from = count_of(&last, "log_from");
    }
    facts.server_id = said[0];
    facts.transport = said[1];
    facts.client_transport = said[2];
    facts.profile = said[3];
    facts.policy_hash = said[4];
    r = history_begin(h, &facts, HISTORY_TEXT_MAX, err);
    h->part = *part = last.count ? count_of(&last, "part") : 0;
    h->counts.events = e->n;
    h->counts.receipts = first_seq(p);
    p->late = true;
    for (size_t i = 0; i < COUNT(names); i++)
        buf_release(&text[i]);
    return r;
}

/* A call of which we have not seen the beginning. That must be because it lies before
 * this part; then the hash in its event vouches for its receipt. */
static void look_at_spanning(struct packreceipts *p, const struct history *h)
{
    uint32_t range = json_member(&p->json, JSON_ROOT, STR("log_seq"));
    int64_t first = -1;

    if (!p->late)
        return; /* said by whoever looks at the calls */
    if (json_is(&p->json, range, JSON_ARRAY) && json_count(&p->json, range))
        json_int(&p->json, range + 1, &first);
    if (first < 0 || (uint64_t)first >= h->part_from)
        find(p, FINDING_PACK_OMISSION,
             "a receipt is of a call whose first events were left out of this part");
    else if (is_rebuilt(&p->json))
        p->unchecked++;
}

/* The line as the events give it. Content that a rebuilt receipt stores would be vouched
 * for by nobody. */
static int compute_call(struct packreceipts *p, const struct history *h,
                        const struct event_view *e, struct err *err)
{
    const struct open_call *c = history_call(h, event_text(e, "call"));
    struct receipt_place place = { .session = &h->session,
                                   .ts = e->ts,
                                   .seq = h->counts.receipts };
    bool rebuilt = is_rebuilt(&p->json);
    struct receipt r;

    if (!c) {
        look_at_spanning(p, h);
        return 0;
    }
    place.receipt_id = event_text(e, "receipt_id");
    place.parent = event_text(e, "parent");
    if (!rebuilt) {
        place.arguments_content =
            content_of(&p->json, "arguments_content", &p->arguments);
        place.result_content = content_of(&p->json, "result_content", &p->result);
    }
    receipt_of_call(&r, &c->call, &place);
    r.rebuilt = rebuilt;
    return receipt_compose(&p->line, &r, err);
}

/* What was counted before a part that stands alone is not known. */
static void take_counts(struct metadata *m, const struct json *j)
{
    m->counts.requests = count_of(j, "requests");
    m->counts.calls = count_of(j, "calls");
    m->counts.denied = count_of(j, "denied");
    m->counts.lost = count_of(j, "lost");
    m->counts.interventions = count_of(j, "interventions");
    m->counts.received = count_of(j, "undelivered");
    m->counts.sent = 0;
    m->calls_open = count_of(j, "calls_open");
}

static int compute_metadata(struct packreceipts *p, const struct history *h,
                            const struct event_view *e, struct err *err)
{
    char id[ID_MAX] = "";
    str said = event_text(e, "receipt_id");
    struct metadata m;

    memcpy(id, said.p, said.n < ID_MAX ? said.n : ID_MAX - 1);
    m = history_metadata(h, id, e->seq, e->ts);
    m.rebuilt = is_rebuilt(&p->json);
    if (!m.rebuilt)
        m.previous_pack_root_sha256 =
            text_of(&p->json, "previous_pack_root_sha256", &p->root);
    if (p->late)
        take_counts(&m, &p->json);
    return metadata_compose(&p->line, &m, err);
}

/* The version of the recorder is in no event of the session: all receipts must agree. */
static int learn_version(struct packreceipts *p, struct history *h, struct err *err)
{
    str version = text_of(&p->json, "proxy_version", &p->id);

    if (p->version_known || h->session.proxy_version.n)
        return 0;
    p->version_known = true;
    return history_set_version(h, version, err);
}

static int compare_computed(struct packreceipts *p, struct history *h,
                            const struct event_view *e, const struct digest *hash,
                            struct err *err)
{
    bool is_call = event_text(e, "call").n > 0;
    struct err why = { 0 };
    int r;

    p->line.line = (str){ NULL, 0 };
    if (learn_version(p, h, err) < 0)
        return -1;
    r = is_call ? compute_call(p, h, e, &why) : compute_metadata(p, h, e, &why);
    if (r < 0 && why.code == ERR_NOMEM) {
        *err = why;
        return -1;
    }
    if (r < 0)
        find(p, FINDING_MANIFEST_TAMPER, "a receipt cannot be computed: %s", why.msg);
    else if (p->line.line.p && !digest_equal(&p->line.hash, hash))
        find_difference(p);
    return 0;
}

static void note_metadata(struct packreceipts *p)
{
    str root = text_of(&p->json, "previous_pack_root_sha256", &p->root);

    p->metadata = p->seen + 1;
    p->log_from = count_of(&p->json, "log_from");
    p->log_to = count_of(&p->json, "log_to");
    if (is_rebuilt(&p->json))
        return; /* which pack came before was lost with the line */
    if (count_of(&p->json, "part") == 1 && root.p)
        find(p, FINDING_CHAIN_BROKEN, "part 1 of a session names a part before it");
    if (p->previous_root && !str_is(root, p->previous_root))
        find(p, FINDING_CHAIN_BROKEN,
             "this part does not follow the one before: its previous_pack_root_sha256 is "
             "another");
}

/* The line and the event speak of the same receipt. */
static void compare_event(struct packreceipts *p, const struct event_view *e,
                          const struct digest *hash)
{
    struct digest said;
    str text = event_text(e, "sha256");

    if (!json_string_is(&p->json, json_member(&p->json, JSON_ROOT, STR("receipt_id")),
                        event_text(e, "receipt_id")))
        find(p, FINDING_PACK_OMISSION,
             "event %" PRIu64 " speaks of another receipt than the one in its place",
             e->seq);
    else if (is_rebuilt(&p->json))
        p->rebuilt++; /* its line was lost: only the events can vouch for it */
    else if (!str_starts(text, STR("sha256:")) ||
             !digest_from_hex(&said, str_skip(text, 7)) || !digest_equal(&said, hash))
        find(p, FINDING_MANIFEST_TAMPER,
             "a receipt was changed: its hash is not the one in event %" PRIu64, e->seq);
}

/* Over all members: the public format leaves some out of a receipt's hash, and nothing
 * would vouch for those. */
static int hash_whole(struct digest *out, const struct json *j, struct err *err)
{
    struct hasher h;
    struct sink sink;

    hasher_init(&h);
    sink = hasher_sink(&h);
    if (jcs_write(j, JSON_ROOT, JCS_PACK, &sink, err) < 0)
        return -1;
    *out = hasher_finish(&h);
    return 0;
}

int packreceipt_check(struct packreceipts *p, struct history *h,
                      const struct event_view *e, struct err *err)
{
    struct digest hash;
    struct err why = { 0 };
    str line;
    int r = 0;

    if (!receipt_line(&p->rest, &line)) {
        find(p, FINDING_PACK_OMISSION, "event %" PRIu64 " has no receipt in the pack",
             e->seq);
        return 0;
    }
    if (json_parse(&p->json, line, NULL, &why) < 0 ||
        !json_is(&p->json, JSON_ROOT, JSON_OBJECT) ||
        hash_whole(&hash, &p->json, &why) < 0) {
        p->seen++; /* said already, by the check of the receipts themselves */
        return 0;
    }
    compare_event(p, e, &hash);
    if (json_string_is(&p->json, json_member(&p->json, JSON_ROOT, STR("type")),
                       STR("session_metadata")))
        note_metadata(p);
    if (h && h->started)
        r = compare_computed(p, h, e, &hash, err);
    p->seen++;
    return r;
}

void packreceipts_finish(struct packreceipts *p)
{
    str line;

    for (; receipt_line(&p->rest, &line); p->seen++)
        find(p, FINDING_PACK_OMISSION, "a receipt has no event in the log");
    if (p->rebuilt)
        verify_warn(p->v,
                    "receipts lost and made again from their events: %" PRIu64
                    "; content that they stored is gone",
                    p->rebuilt);
    if (p->unchecked)
        verify_warn(p->v,
                    "%" PRIu64 " of them began in an earlier part, and nothing in this "
                    "one shows what they should say",
                    p->unchecked);
}
