/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packreceipt.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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

/* The line as the events give it. */
static int compute_call(struct packreceipts *p, const struct history *h,
                        const struct event_view *e, struct err *err)
{
    const struct open_call *c = history_call(h, event_text(e, "call"));
    struct receipt_place place = { .session = &h->session,
                                   .ts = e->ts,
                                   .seq = h->counts.receipts };
    struct receipt r;

    if (!c)
        return 0; /* said by whoever looks at the calls */
    place.receipt_id = event_text(e, "receipt_id");
    place.parent = event_text(e, "parent");
    place.arguments_content = content_of(&p->json, "arguments_content", &p->arguments);
    place.result_content = content_of(&p->json, "result_content", &p->result);
    receipt_of_call(&r, &c->call, &place);
    r.rebuilt = is_rebuilt(&p->json);
    return receipt_compose(&p->line, &r, err);
}

static int compute_metadata(struct packreceipts *p, const struct history *h,
                            const struct event_view *e, struct err *err)
{
    char id[ID_MAX] = "";
    str said = event_text(e, "receipt_id");
    struct metadata m;

    memcpy(id, said.p, said.n < ID_MAX ? said.n : ID_MAX - 1);
    m = history_metadata(h, id, e->seq, e->ts);
    m.previous_pack_root_sha256 =
        text_of(&p->json, "previous_pack_root_sha256", &p->root);
    m.rebuilt = is_rebuilt(&p->json);
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
    int64_t from = 0, to = 0;
    str root = text_of(&p->json, "previous_pack_root_sha256", &p->root);

    json_int(&p->json, json_member(&p->json, JSON_ROOT, STR("log_from")), &from);
    json_int(&p->json, json_member(&p->json, JSON_ROOT, STR("log_to")), &to);
    p->metadata = p->seen + 1;
    p->log_from = (uint64_t)from;
    p->log_to = (uint64_t)to;
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
        receipt_hash(&hash, &p->json, &why) < 0) {
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
                    "%" PRIu64 " receipts were lost and computed anew from their "
                    "events; content that they stored is gone",
                    p->rebuilt);
}
