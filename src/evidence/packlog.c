/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/packlog.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "evidence/checkpoint.h"
#include "evidence/event.h"
#include "evidence/pack.h"
#include "evidence/packreceipt.h"
#include "evidence/packrules.h"
#include "evidence/tree.h"

void packlog_release(struct packlog *p)
{
    history_release(&p->history);
    idset_release(&p->begun);
    idset_release(&p->settled);
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
    bool folds; /* the session's numbers are whole so far: receipts are computed */
    int64_t start, end; /* smallest and largest time of a receipt */
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

    if (r->leaves.count == 0)
        return true;
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

/* A later part alone: what its own metadata say of the session takes the place of what
 * stood before. They are checked like any receipt when their event comes. */
static int begin_late(struct reading *r, struct err *err)
{
    struct packlog *p = r->p;
    uint64_t part;

    p->begins_late = true;
    if (packreceipts_begin_late(&r->receipts, &p->history, &r->event, &part, err) < 0)
        return -1;
    if (part != 1)
        verify_warn(r->v,
                    "this is a later part of a session: without the parts before it, "
                    "calls that span the cut are not closed, and an event left out "
                    "at its beginning would not show");
    else
        find_event(r, FINDING_PACK_OMISSION,
                   "is not the first of its session, and this is part 1: an event was "
                   "left out or moved");
    return 0;
}

/* All events of all parts are of one session. */
static bool check_session(struct reading *r)
{
    const struct history *h = &r->p->history;

    if (!h->started || str_is(r->event.session, h->id))
        return true;
    find_event(r, FINDING_MANIFEST_TAMPER, "is of another session");
    return false;
}

static int fold(struct reading *r, struct err *err)
{
    struct err why = { 0 };

    if (packrules_check(r->v, r->p, &r->event, err) < 0)
        return -1;
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

static void note_time(struct reading *r)
{
    bool first = r->receipts.seen == 1;

    r->start = first || r->event.ts < r->start ? r->event.ts : r->start;
    r->end = first || r->event.ts > r->end ? r->event.ts : r->end;
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
    if (!check_session(r) || !check_order(r))
        return 0;
    if (r->leaves.count == 0 && r->event.n > 0 && r->p->parts == 0 &&
        begin_late(r, err) < 0)
        return -1;
    if (r->p->history.calls.count > PACKLOG_CALLS_MAX) {
        find_event(r, FINDING_CHAIN_BROKEN, "comes when more calls are open than may be");
        return 0;
    }
    if (r->event.type == EVENT_RECEIPT &&
        packreceipt_check(&r->receipts, r->folds ? &r->p->history : NULL, &r->event,
                          err) < 0)
        return -1;
    if (r->event.type == EVENT_RECEIPT)
        note_time(r);
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
    bool goes_on = true;
    str line;

    while (goes_on && str_line(&text, &line)) {
        if (read_event(r, &json, line, &goes_on, err) < 0)
            return -1;
        verify_advance(r->v, VERIFY_JSON_COST * (line.n + 1));
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

static void find_attested(struct reading *r, const char *member)
{
    verify_add(r->v, FINDING_MANIFEST_TAMPER, STAGE_LOG, str_from(member),
               "the attestation's %s is not what the events say", member);
}

static bool is_time(str text, int64_t ms)
{
    int64_t said;

    return clock_parse(&said, text) && said == ms;
}

/* What the attestation repeats of the session. */
static void check_attested(struct reading *r)
{
    const struct receipt_session *s = &r->p->history.session;
    const struct manifest *m = r->v->manifest;
    struct digest policy;

    if (!str_equal(m->run_id, s->id))
        find_attested(r, "run_id");
    if (!str_is(m->mode, str_is(s->profile, "guard") ? "enforced" : "shadow"))
        find_attested(r, "mode");
    if (!str_starts(s->policy_hash, STR("sha256:")) ||
        !digest_from_hex(&policy, str_skip(s->policy_hash, 7)))
        policy = digest_of(STR(PACK_DEFAULT_POLICY));
    if (!digest_equal(&policy, &m->policy_hash))
        find_attested(r, "policy_hash");
    if (m->n_receipts != r->receipts.seen)
        find_attested(r, "n_receipts");
    if (!is_time(m->timestamp_start, r->start))
        find_attested(r, "timestamp_start");
    if (!is_time(m->timestamp_end, r->end))
        find_attested(r, "timestamp_end");
}

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
    if (r->folds && r->receipts.seen)
        check_attested(r);
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

/* Without one of them the others show nothing. */
static bool is_there(struct verify *v, const char *name, str *bytes)
{
    if (verify_file_bytes(v, name, bytes))
        return true;
    verify_add(
        v, FINDING_MANIFEST_TAMPER, STAGE_LOG, str_from(name),
        "'%s' is missing: whether the receipts are those of the log cannot be shown",
        name);
    return false;
}

int packlog_check(struct verify *v, struct packlog *earlier, struct err *err)
{
    struct reading r = { .v = v, .p = earlier, .folds = true };
    struct checkpoint c;
    str events, note, proof, receipts;
    int result = 0;

    if (!is_there(v, LOG_EVENTS_NAME, &events) ||
        !is_there(v, LOG_CHECKPOINT_NAME, &note) ||
        !is_there(v, LOG_PROOF_NAME, &proof) ||
        !is_there(v, RECEIPT_PACK_NAME, &receipts))
        return 0;
    if (!open_checkpoint(v, note, &c))
        return 0;
    r.checkpoint = &c;
    packreceipts_init(&r.receipts, v, receipts, earlier->parts ? earlier->root : NULL);
    r.receipts.late = earlier->begins_late;
    result = read_all(&r, events, proof, err);
    packreceipts_release(&r.receipts);
    leaves_release(&r.leaves);
    remember(earlier, v->manifest);
    return result;
}

/* --- packs without these files --- */

static bool names_events(const struct json *j)
{
    return json_is(j, json_member(j, JSON_ROOT, STR("log_seq")), JSON_ARRAY) ||
           json_is(j, json_member(j, JSON_ROOT, STR("log_to")), JSON_NUMBER);
}

int packlog_check_absence(struct verify *v, struct err *err)
{
    CLEANUP(json_release) struct json json = { 0 };
    struct err why = { 0 };
    str rest = STR(""), line;

    verify_file_bytes(v, RECEIPT_PACK_NAME, &rest);
    while (receipt_line(&rest, &line)) {
        if (!memmem(line.p, line.n, "\"log_", 5))
            continue;
        if (json_parse(&json, line, NULL, &why) < 0) {
            if (why.code == ERR_NOMEM)
                return err_set(err, why.code, "%s", why.msg);
            continue;
        }
        if (names_events(&json)) {
            find(v, FINDING_PACK_OMISSION, LOG_EVENTS_NAME,
                 "its receipts name events of a log, and it carries none");
            return 0;
        }
    }
    return 0;
}

/* --- order --- */

/* The last line of a text that ends in a newline. */
static str last_line(str text)
{
    const char *before;

    if (!str_ends(text, STR("\n")))
        return (str){ NULL, 0 };
    text.n--;
    before = text.n ? memrchr(text.p, '\n', text.n) : NULL;
    return before ? str_skip(text, (size_t)(before - text.p) + 1) : text;
}

static bool read_place(struct packlog_place *place, str line)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf id = { .max = ID_MAX - 1 };
    struct err ignored;
    uint32_t session;
    int64_t part;

    if (!line.p || json_parse(&j, line, NULL, &ignored) < 0)
        return false;
    session = json_member(&j, JSON_ROOT, STR("session_id"));
    if (!json_is(&j, session, JSON_STRING) ||
        !json_int(&j, json_member(&j, JSON_ROOT, STR("part")), &part) || part < 1)
        return false;
    json_unescape(&j, session, &id);
    if (id.failed || memchr(id.p ? id.p : "", '\0', id.n))
        return false;
    *place = (struct packlog_place){
        .part = (uint64_t)part,
        .final = json_is(&j, json_member(&j, JSON_ROOT, STR("final")), JSON_TRUE),
    };
    memcpy(place->session, buf_cstr(&id), id.n + 1);
    return true;
}

bool packlog_peek(const char *dir, struct packlog_place *place)
{
    CLEANUP(file_close) int fd = -1;
    struct mapping map = { { NULL, 0 } };
    struct err ignored;
    bool found;

    fd = file_open(dir, O_RDONLY | O_DIRECTORY, 0, &ignored);
    if (fd < 0 || beneath_map(fd, STR(RECEIPT_PACK_NAME), &map, &ignored) < 0)
        return false;
    found = read_place(place, last_line(map.bytes));
    mapping_release(&map);
    return found;
}
