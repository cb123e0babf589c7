/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packlog.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "evidence/checkpoint.h"
#include "evidence/event.h"
#include "evidence/packreceipt.h"
#include "evidence/tree.h"

void packlog_release(struct packlog *p)
{
    history_release(&p->history);
    *p = (struct packlog){ .parts = 0 };
}

/* The leaves of the pack, for the proof. */
struct leaves {
    uint64_t *index;
    struct digest *leaf;
    size_t count, cap;
};

static int leaves_add(struct leaves *l, uint64_t index, const struct digest *leaf,
                      struct err *err)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        uint64_t *more_index = realloc(l->index, cap * sizeof(*more_index));
        struct digest *more_leaf;

        if (more_index)
            l->index = more_index;
        more_leaf = more_index ? realloc(l->leaf, cap * sizeof(*more_leaf)) : NULL;
        if (!more_leaf)
            return err_set(err, ERR_NOMEM, "no memory for the events of a pack");
        l->leaf = more_leaf;
        l->cap = cap;
    }
    l->index[l->count] = index;
    l->leaf[l->count++] = *leaf;
    return 0;
}

static void leaves_release(struct leaves *l)
{
    free(l->index);
    free(l->leaf);
}

/* --- the checkpoint and the proof --- */

static void find(struct verify *v, enum finding_code code, const char *file,
                 const char *what)
{
    verify_add(v, code, STAGE_LOG, str_from(file), "%s", what);
}

/* The note must verify under the key of the manifest, by whatever name it signs. */
static bool open_checkpoint(struct verify *v, str bytes, struct checkpoint *c)
{
    uint8_t public_key[PUBLIC_SIZE];
    struct note_key key;
    struct note note;
    struct err err = { 0 };

    if (note_parse(&note, bytes, &err) < 0 || checkpoint_parse(c, note.text, &err) < 0) {
        find(v, FINDING_MANIFEST_TAMPER, LOG_CHECKPOINT_NAME, err.msg);
        return false;
    }
    if (!base64_decode_exact(public_key, sizeof(public_key),
                             v->manifest->signer_pubkey) ||
        note_key_make(&key, str_from(c->origin), public_key, &err) < 0 ||
        note_verify(&note, &key, 1) != NOTE_SIGNED) {
        find(v, FINDING_PACK_SIG_INVALID, LOG_CHECKPOINT_NAME,
             "the checkpoint is not signed by the key that signed the pack");
        return false;
    }
    return true;
}

/* "hashes" of log_proof.json, decoded one behind the other. */
static bool decode_hashes(const struct json *j, uint32_t array, struct buf *out)
{
    json_each (j, array, at) {
        str raw = json_raw(j, at);
        uint8_t hash[DIGEST_SIZE];

        if (!json_is(j, at, JSON_STRING) ||
            !base64_decode_exact(hash, sizeof(hash), str_of(raw.p + 1, raw.n - 2)))
            return false;
        buf_add(out, str_of(hash, sizeof(hash)));
    }
    return !out->failed;
}

static bool parse_proof(struct verify *v, str bytes, uint64_t size, struct buf *hashes)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct err err = { 0 };
    uint32_t array;
    int64_t said;

    if (json_parse(&j, bytes, NULL, &err) < 0) {
        find(v, FINDING_MANIFEST_TAMPER, LOG_PROOF_NAME, err.msg);
        return false;
    }
    array = json_member(&j, JSON_ROOT, STR("hashes"));
    if (!json_int(&j, json_member(&j, JSON_ROOT, STR("size")), &said) ||
        (uint64_t)said != size || !json_is(&j, array, JSON_ARRAY) ||
        json_count(&j, JSON_ROOT) != 2 || (j.nodes[JSON_ROOT].flags & JSON_TAINTED) ||
        !decode_hashes(&j, array, hashes)) {
        find(
            v, FINDING_MANIFEST_TAMPER, LOG_PROOF_NAME,
            "the proof is not {\"size\":N,\"hashes\":[…]} with the checkpoint's size and "
            "hashes of 32 bytes");
        return false;
    }
    return true;
}

static void check_proof(struct verify *v, const struct leaves *l,
                        const struct checkpoint *c, str proof)
{
    CLEANUP(buf_release) struct buf hashes = { .max = (size_t)2 << 30 };
    const struct leaf_set set = { l->index, l->leaf, l->count };

    if (!parse_proof(v, proof, c->size, &hashes))
        return;
    if (!tree_set_holds(&set, c->size, buf_str(&hashes), &c->root))
        find(v, FINDING_CHAIN_BROKEN, LOG_PROOF_NAME,
             "the events of this pack do not stand in the log that was signed: one was "
             "changed, left out or added, or the proof is of other events");
}

/* --- the events --- */

/* One reading of the events, with everything that it compares them to. */
struct reading {
    struct verify *v;
    struct packlog *p;
    struct packreceipts receipts;
    struct leaves leaves;
    const struct checkpoint *checkpoint;
    bool folds; /* the session's story from its beginning is known: receipts are computed
                 */
    struct event_view event;
    struct digest last;
    uint64_t last_seq, last_n;
};

static void find_event(struct reading *r, enum finding_code code, const char *what)
{
    verify_add(r->v, code, STAGE_LOG, STR(LOG_EVENTS_NAME), "event %" PRIu64 " %s",
               r->event.seq, what);
}

/* Order, neighbours, numbering. False when reading on would mean nothing. */
static bool check_order(struct reading *r)
{
    const struct event_view *e = &r->event;

    if (r->leaves.count == 0) {
        r->folds = e->n == 0 || r->p->parts > 0;
        if (!r->folds)
            verify_warn(r->v, "this pack is a later part of a session: name all parts to "
                              "check the calls that span a cut");
        return true;
    }
    if (e->seq <= r->last_seq) {
        find_event(r, FINDING_CHAIN_BROKEN, "is out of order");
        return false;
    }
    if (e->seq == r->last_seq + 1 && !digest_equal(&e->prev, &r->last))
        find_event(r, FINDING_CHAIN_BROKEN, "does not continue the event before it");
    if (e->n != r->last_n + 1) {
        find_event(r, FINDING_PACK_OMISSION,
                   "does not have the next number of its session: an event was left out");
        return false;
    }
    return true;
}

static bool policy_known(const struct packlog *p, str text)
{
    struct digest d;

    if (!str_starts(text, STR("sha256:")) || !digest_from_hex(&d, str_skip(text, 7)))
        return false;
    for (size_t i = 0; i < p->policies; i++) {
        if (digest_equal(&p->policy[i], &d))
            return true;
    }
    return false;
}

static void learn_policy(struct reading *r, str text)
{
    struct packlog *p = r->p;

    if (text.n == 0 || policy_known(p, text))
        return;
    if (p->policies == PACKLOG_POLICIES_MAX)
        find_event(r, FINDING_MANIFEST_TAMPER,
                   "loads one policy more than a session may");
    else if (!str_starts(text, STR("sha256:")) ||
             !digest_from_hex(&p->policy[p->policies], str_skip(text, 7)))
        find_event(r, FINDING_MANIFEST_TAMPER, "has no policy_hash like sha256:<hex>");
    else
        p->policies++;
}

/* What only the profile guard promises. */
static void check_guard(struct reading *r, const struct open_call *c)
{
    const struct event_view *e = &r->event;

    if (!str_is(r->p->history.session.profile, "guard") || !c)
        return;
    if (e->type == EVENT_REQUEST_FORWARDED &&
        (c->call.denied || !str_is(call_str(&c->call, c->call.verdict), "allowed")))
        find_event(r, FINDING_MANIFEST_TAMPER,
                   "forwards a call that the policy has not allowed");
    if (e->type == EVENT_REQUEST_DENIED && c->call.forwarded)
        find_event(r, FINDING_MANIFEST_TAMPER, "denies a call that was forwarded before");
}

static void check_policy(struct reading *r)
{
    const struct event_view *e = &r->event;
    bool loaded = false;

    if (e->type == EVENT_SESSION_START)
        learn_policy(r, event_text(e, "policy_hash"));
    if (e->type == EVENT_POLICY_LOADED && event_bool(e, "ok", &loaded) && loaded)
        learn_policy(r, event_text(e, "policy_hash"));
    if (e->type == EVENT_POLICY_DECIDED &&
        str_is(r->p->history.session.profile, "guard") &&
        !policy_known(r->p, event_text(e, "policy_hash")))
        find_event(r, FINDING_MANIFEST_TAMPER,
                   "decides by a policy that was never loaded");
}

static void check_call(struct reading *r)
{
    const struct event_view *e = &r->event;
    str id = event_text(e, "call");
    const struct open_call *c = id.n ? history_call(&r->p->history, id) : NULL;

    if (id.n == 0)
        return;
    check_guard(r, c);
    if (e->type == EVENT_REQUEST_RECEIVED) {
        if (c)
            find_event(r, FINDING_CHAIN_BROKEN, "begins a call that has begun already");
        else if (r->p->history.calls.count >= PACKLOG_CALLS_MAX)
            find_event(r, FINDING_CHAIN_BROKEN, "opens one call more than may be open");
    } else if (!c && (e->type == EVENT_RESPONSE_RECEIVED || e->type == EVENT_RECEIPT ||
                      e->type == EVENT_CALL_LOST || e->type == EVENT_REQUEST_DENIED)) {
        find_event(r, FINDING_CHAIN_BROKEN, "belongs to a call that is not open");
    }
}

/* session_end says how often things happened; the events say it too. */
static void check_end(struct reading *r)
{
    const struct receipt_counts *c = &r->p->history.counts;
    const struct {
        const char *name;
        uint64_t counted;
    } counts[] = {
        { "requests", c->requests },
        { "calls", c->calls },
        { "denied", c->denied },
        { "lost", c->lost },
        { "interventions", c->interventions },
        { "undelivered", receipt_undelivered(c) },
        { "events", c->events + 1 },
    };
    int64_t said;
    bool complete = false;

    for (size_t i = 0; i < COUNT(counts); i++) {
        if (!event_int(&r->event, counts[i].name, &said) ||
            (uint64_t)said != counts[i].counted)
            verify_add(r->v, FINDING_PACK_OMISSION, STAGE_LOG, STR(LOG_EVENTS_NAME),
                       "session_end counts %" PRId64 " %s, the events %" PRIu64, said,
                       counts[i].name, counts[i].counted);
    }
    if (event_bool(&r->event, "complete", &complete) && complete && (c->lost || c->cut))
        find_event(r, FINDING_MANIFEST_TAMPER,
                   "calls a session complete in which calls were lost or messages cut");
}

static int fold(struct reading *r, struct err *err)
{
    struct err why = { 0 };

    check_policy(r);
    check_call(r);
    if (r->event.type == EVENT_SESSION_END)
        check_end(r);
    if (history_fold(&r->p->history, &r->event, &why) == 0)
        return 0;
    r->folds = false;
    if (why.code != ERR_DAMAGE && why.code != ERR_FORMAT) {
        *err = why;
        return -1;
    }
    find(r->v, FINDING_PACK_OMISSION, LOG_EVENTS_NAME, why.msg);
    return 0;
}

/* *goes_on is false when reading on would mean nothing. */
static int read_event(struct reading *r, struct json *json, str line, bool *goes_on,
                      struct err *err)
{
    struct err bad = { 0 };

    *goes_on = false;
    if (event_parse(&r->event, json, line, &bad) < 0) {
        verify_add(r->v, FINDING_MANIFEST_TAMPER, STAGE_LOG, STR(LOG_EVENTS_NAME),
                   "line %zu %s", r->leaves.count + 1, bad.msg);
        return 0;
    }
    if (r->event.session.n == 0) {
        find_event(r, FINDING_MANIFEST_TAMPER, "does not belong to a session");
        return 0;
    }
    if (!check_order(r))
        return 0;
    if (r->event.type == EVENT_RECEIPT &&
        packreceipt_check(&r->receipts, r->folds ? &r->p->history : NULL, &r->event,
                          err) < 0)
        return -1;
    if (r->folds && fold(r, err) < 0)
        return -1;
    r->last = tree_leaf(line);
    r->last_seq = r->event.seq;
    r->last_n = r->event.n;
    *goes_on = true;
    return leaves_add(&r->leaves, r->event.seq, &r->last, err);
}

/* True when all lines could be read. */
static int read_events(struct reading *r, str text, bool *whole, struct err *err)
{
    CLEANUP(json_release) struct json json = { 0 };
    char session[ID_MAX] = "";
    bool goes_on = true;
    str line;

    while (goes_on && str_line(&text, &line)) {
        if (read_event(r, &json, line, &goes_on, err) < 0)
            return -1;
        if (!goes_on)
            break;
        if (session[0] == '\0')
            memcpy(session, r->event.session.p, r->event.session.n);
        if (!str_is(r->event.session, session)) {
            find_event(r, FINDING_MANIFEST_TAMPER, "is of another session");
            goes_on = false;
        }
    }
    if (goes_on && text.n) {
        find(r->v, FINDING_MANIFEST_TAMPER, LOG_EVENTS_NAME,
             "the last line does not end");
        goes_on = false;
    }
    *whole = goes_on;
    return 0;
}

/* --- the end of the pack --- */

static void check_close(struct reading *r)
{
    const struct history *h = &r->p->history;

    if (r->leaves.count == 0) {
        find(r->v, FINDING_PACK_OMISSION, LOG_EVENTS_NAME, "there is no event");
        return;
    }
    packreceipts_finish(&r->receipts);
    if (r->receipts.metadata != r->receipts.seen)
        find(r->v, FINDING_PACK_OMISSION, RECEIPT_PACK_NAME,
             "the last receipt is not the session's metadata");
    else if (r->receipts.log_to != r->last_seq + 1 ||
             r->receipts.log_from > r->leaves.index[0])
        find(r->v, FINDING_PACK_OMISSION, LOG_EVENTS_NAME,
             "the events are not those of the range that the session's metadata names");
    if (r->folds && h->closed && history_open_calls(h) > 0)
        find(r->v, FINDING_PACK_OMISSION, LOG_EVENTS_NAME,
             "the session has ended, and calls of it have no receipt");
}

static int read_all(struct reading *r, str events, str proof, struct err *err)
{
    bool whole;

    if (read_events(r, events, &whole, err) < 0)
        return -1;
    if (whole && r->leaves.count && r->last_seq >= r->checkpoint->size) {
        find(r->v, FINDING_CHAIN_BROKEN, LOG_EVENTS_NAME,
             "events stand behind the end of the log that was signed");
        return 0;
    }
    if (whole) {
        check_close(r);
        check_proof(r->v, &r->leaves, r->checkpoint, proof);
    }
    return 0;
}

/* The next part must name this one. */
static void remember(struct packlog *p, const struct manifest *m)
{
    digest_hex(p->root, &m->pack_root_sha256);
    p->root[2 * DIGEST_SIZE] = '\0';
    p->parts++;
}

int packlog_check(struct verify *v, struct packlog *earlier, struct err *err)
{
    struct reading r = { .v = v, .p = earlier };
    struct checkpoint c;
    str events, note, proof, receipts;
    int result = 0;

    if (!verify_file_bytes(v, LOG_EVENTS_NAME, &events) ||
        !verify_file_bytes(v, LOG_CHECKPOINT_NAME, &note) ||
        !verify_file_bytes(v, LOG_PROOF_NAME, &proof) ||
        !verify_file_bytes(v, RECEIPT_PACK_NAME, &receipts)) {
        find(v, FINDING_PACK_OMISSION, LOG_EVENTS_NAME,
             "of log_events.jsonl, log_checkpoint and log_proof.json some are missing");
        return 0;
    }
    if (!open_checkpoint(v, note, &c))
        return 0;
    r.checkpoint = &c;
    packreceipts_init(&r.receipts, v, receipts, earlier->parts ? earlier->root : NULL);
    result = read_all(&r, events, proof, err);
    packreceipts_release(&r.receipts);
    leaves_release(&r.leaves);
    remember(earlier, v->manifest);
    return result;
}
