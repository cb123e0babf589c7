/* SPDX-License-Identifier: Apache-2.0 */
/* Packs forged by somebody who has the key: what the log still tells. */
#include "evidence/packlog.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/pack.h"
#include "tests/forge.h"
#include "tests/recording.h"
#include "tests/tap.h"

static const struct session_ending well = { "client_eof", true, "shutdown", NULL };

/* --- good packs --- */

static void must(bool good, const struct err *err)
{
    if (good)
        return;
    printf("Bail out! %s\n", err->msg);
    exit(1);
}

static void note(struct session *s, struct open_call *c, enum event_type type)
{
    const struct message m = recording_message("c2s", "request", STR("1"));
    CLEANUP(event_release) struct event e = { 0 };
    struct err err = { 0 };

    message_event(&e, type, &m);
    must(session_note(s, c, &e, NULL, &err) == 0, &err);
}

static void allow(struct session *s, struct open_call *c)
{
    const struct call_decision yes = { "allowed", STR("default"), STR("not denied"),
                                       STR(RECORDING_POLICY) };
    struct err err = { 0 };

    must(session_decide(s, c, &yes, NULL, &err) == 0, &err);
    note(s, c, EVENT_REQUEST_FORWARDED);
}

static void good_call(struct recording *r, struct session *s, str id, str content)
{
    struct open_call *c = recording_call(r, s, id, STR("read"), content);

    allow(s, c);
    recording_answer(r, s, c, false, content);
    session_release(s, c);
}

static void denied_call(struct recording *r, struct session *s, str id)
{
    struct open_call *c = recording_call(r, s, id, STR("delete"), (str){ NULL, 0 });

    recording_deny(r, s, c);
    session_release(s, c);
}

static struct pack_result pack(struct recording *r, struct session *s,
                               const struct session_cut *cut)
{
    const struct pack_request request = { .session = session_id(s),
                                          .receipts = session_receipts(s),
                                          .first = session_history(s)->first,
                                          .cut = *cut };
    struct pack_result made;
    struct err err = { 0 };

    must(pack_build(r->log, &request, &made, &err) == 0, &err);
    return made;
}

static struct pack_result finish(struct recording *r, struct session *s,
                                 const char *previous)
{
    struct session_ending ending = well;
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;

    ending.previous_root = previous;
    must(session_end(s, &ending, &cut, &packable, &err) == 0 && packable, &err);
    return pack(r, s, &cut);
}

static struct pack_result cut_part(struct recording *r, struct session *s,
                                   const char *previous)
{
    struct session_cut cut;
    struct err err = { 0 };

    must(session_part(s, previous, &cut, &err) == 0, &err);
    return pack(r, s, &cut);
}

/* The key of the log, which signs its packs. */
static struct secret_key key_of(struct recording *r)
{
    CLEANUP(signer_release) struct signer signer = { 0 };
    struct err err = { 0 };

    must(log_signer(r->log, &signer, &err) == 0, &err);
    return signer.secret;
}

static struct secret_key strange_key(void)
{
    const uint8_t seed[SEED_SIZE] = "a key that nobody here has seen";
    struct secret_key key;
    struct err err = { 0 };

    must(secret_key_from_seed(&key, seed, &err) == 0, &err);
    return key;
}

/* Two sessions in one log, their packs, and room for forgeries. */
struct bench {
    struct recording r;
    struct pack_result good, other;
    struct secret_key key;
    char dir[FILE_PATH_MAX];
};

static void bench_open(struct bench *b)
{
    struct session *s = recording_session(&b->r, "guard");
    struct session *t = recording_another(&b->r, "guard");

    good_call(&b->r, s, STR("1"), STR("{\"a\":1}"));
    good_call(&b->r, t, STR("1"), (str){ NULL, 0 });
    denied_call(&b->r, s, STR("\"two\""));
    good_call(&b->r, s, STR("3"), (str){ NULL, 0 });
    denied_call(&b->r, t, STR("2"));
    b->good = finish(&b->r, s, NULL);
    b->other = finish(&b->r, t, NULL);
    b->key = key_of(&b->r);
    snprintf(b->dir, sizeof(b->dir), "%s/forged", b->r.root);
    session_free(s);
    session_free(t);
}

/* --- verdicts --- */

static bool says(const struct verify_result *v, const char *text)
{
    for (size_t i = 0; i < v->findings.count; i++) {
        str m = v->findings.items[i].message;

        if (memmem(m.p, m.n, text, strlen(text)))
            return true;
    }
    return false;
}

static bool warns(const struct verify_result *v, const char *text)
{
    for (size_t i = 0; i < v->warning_count; i++) {
        if (memmem(v->warnings[i].p, v->warnings[i].n, text, strlen(text)))
            return true;
    }
    return false;
}

static void show(const struct verify_result *v)
{
    for (size_t i = 0; i < v->findings.count; i++)
        printf("# finding: " STR_FMT "\n", STR_ARG(v->findings.items[i].message));
    for (size_t i = 0; i < v->warning_count; i++)
        printf("# note: " STR_FMT "\n", STR_ARG(v->warnings[i]));
}

static struct verify_result verdict_on(const char *dir, struct packlog *parts)
{
    const struct verify_options options = { .clock = &clock_system, .parts = parts };
    struct verify_result v = { 0 };
    struct err err = { 0 };

    must(verify_pack(dir, &options, &v, &err) == 0, &err);
    return v;
}

/* `text` NULL: sound. */
static void expect(const char *dir, struct packlog *parts, const char *text,
                   const char *what)
{
    struct verify_result v = verdict_on(dir, parts);
    bool right =
        text ? v.verdict == VERIFY_TAMPERED && says(&v, text) : v.verdict == VERIFY_SOUND;

    if (!ok(right, "%s: %s", what, text ? text : "sound"))
        show(&v);
    verify_result_release(&v);
}

/* --- forgeries --- */

static struct forge other; /* the pack of the other session */

#define EVENTS(f)   (&(f)->file[FORGE_EVENTS])
#define RECEIPTS(f) (&(f)->file[FORGE_RECEIPTS])

static void nothing(struct forge *f)
{
    (void)f;
}

static void event_left_out(struct forge *f)
{
    forge_drop(EVENTS(f), 4);
}

static void first_event_left_out(struct forge *f)
{
    forge_drop(EVENTS(f), 0);
}

static void last_event_left_out(struct forge *f)
{
    forge_drop(EVENTS(f), forge_lines(EVENTS(f)) - 1);
}

static void last_event_and_receipt_left_out(struct forge *f)
{
    last_event_left_out(f);
    forge_drop(RECEIPTS(f), forge_lines(RECEIPTS(f)) - 1);
}

static void all_events_left_out(struct forge *f)
{
    buf_reset(EVENTS(f));
}

static void event_edited(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "request_received", 0), "bytes",
                   STR("101"));
}

static void events_swapped(struct forge *f)
{
    forge_swap(EVENTS(f), 3);
}

static void event_doubled(struct forge *f)
{
    forge_insert(EVENTS(f), 5, forge_line(EVENTS(f), 5));
}

static void event_of_another_session(struct forge *f)
{
    forge_insert(EVENTS(f), 3, forge_line(EVENTS(&other), 3));
}

/* Behind the end of everything, with good numbers: a second request. */
static void event_added(struct forge *f)
{
    size_t end = forge_lines(EVENTS(f)),
           k = forge_typed(EVENTS(f), "request_received", 0);
    char text[32];

    forge_insert(EVENTS(f), end, forge_line(EVENTS(f), k));
    snprintf(text, sizeof(text), "%zu", end);
    forge_set_line(EVENTS(f), end, "n", str_from(text));
    snprintf(text, sizeof(text), "%" PRIu64, forge_seq(f, end - 1) + 1);
    forge_set_line(EVENTS(f), end, "seq", str_from(text));
}

static void renumbered(struct forge *f)
{
    event_left_out(f);
    for (size_t k = 4; k < forge_lines(EVENTS(f)); k++) {
        char n[32];

        snprintf(n, sizeof(n), "%zu", k);
        forge_set_line(EVENTS(f), k, "n", str_from(n));
    }
}

static void session_renamed(struct forge *f)
{
    forge_set_line(EVENTS(f), 6, "session", STR("\"mcp_0000000000000000\""));
}

static void event_not_canonical(struct forge *f)
{
    str line = forge_line(EVENTS(f), 2);

    forge_splice(EVENTS(f), (size_t)(line.p - EVENTS(f)->p) + 1, 0, STR(" "));
}

static void last_line_cut(struct forge *f)
{
    EVENTS(f)->n--;
}

static void empty_line_added(struct forge *f)
{
    forge_insert(EVENTS(f), 3, STR(""));
}

static void receipt_left_out(struct forge *f)
{
    forge_drop(RECEIPTS(f), 1);
}

static void last_receipt_left_out(struct forge *f)
{
    forge_drop(RECEIPTS(f), forge_lines(RECEIPTS(f)) - 1);
}

static void receipt_added(struct forge *f)
{
    forge_insert(RECEIPTS(f), 1, forge_line(RECEIPTS(&other), 0));
}

static void receipt_appended(struct forge *f)
{
    forge_insert(RECEIPTS(f), forge_lines(RECEIPTS(f)), forge_line(RECEIPTS(&other), 0));
}

static void receipt_doubled(struct forge *f)
{
    forge_insert(RECEIPTS(f), 1, forge_line(RECEIPTS(f), 1));
}

static void receipts_swapped(struct forge *f)
{
    forge_swap(RECEIPTS(f), 0);
}

static void receipt_with_anchor(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "anchor", STR("\"notary\""));
}

static void receipt_with_signature(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "signature", STR("\"notary\""));
}

static void receipt_claims_to_be_rebuilt(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), 0, "arguments_content", STR("{\"amount\":1000000}"));
}

static void result_claims_to_be_rebuilt(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), 0, "arguments_content", STR("null"));
    forge_set_line(RECEIPTS(f), 0, "result_content", STR("\"paid\""));
}

static void metadata_claims_to_be_rebuilt(struct forge *f)
{
    size_t last = forge_lines(RECEIPTS(f)) - 1;

    forge_add_line(RECEIPTS(f), last, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), last, "previous_pack_root_sha256",
                   STR("\"0000000000000000000000000000000000000000000000000000000000000"
                       "000\""));
}

static void metadata_not_last(struct forge *f)
{
    forge_swap(RECEIPTS(f), forge_lines(RECEIPTS(f)) - 2);
}

static void checkpoint_by_another_key(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);
    struct secret_key key = strange_key();

    forge_checkpoint(f, c.origin, c.size, &c.root, &key);
}

static void checkpoint_of_another_log(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);
    struct digest root = digest_of(STR("another log"));

    forge_checkpoint(f, "assay.local/ffffffffffffffff", c.size, &root, &f->key);
}

static void checkpoint_larger(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);

    forge_checkpoint(f, c.origin, c.size + 1, &c.root, &f->key);
    forge_set_number(&f->file[FORGE_PROOF], "size", c.size + 1);
}

static void checkpoint_smaller(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);

    forge_checkpoint(f, c.origin, 5, &c.root, &f->key);
    forge_set_number(&f->file[FORGE_PROOF], "size", 5);
}

static void checkpoint_empty(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);
    struct digest none = tree_empty();

    forge_checkpoint(f, c.origin, 0, &none, &f->key);
    forge_set_number(&f->file[FORGE_PROOF], "size", 0);
    forge_set(&f->file[FORGE_PROOF], "hashes", STR("[]"));
}

static void checkpoint_with_another_root(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);
    struct digest root = digest_of(STR("x"));

    forge_checkpoint(f, c.origin, c.size, &root, &f->key);
}

static void checkpoint_without_signature(struct forge *f)
{
    struct buf *b = &f->file[FORGE_CHECKPOINT];

    b->n = (size_t)((const char *)memmem(b->p, b->n, "\n\n", 2) - b->p) + 2;
}

static void checkpoint_garbled(struct forge *f)
{
    forge_splice(&f->file[FORGE_CHECKPOINT], 0, 0, STR("\n"));
}

static void proof_hash_changed(struct forge *f)
{
    forge_set(&f->file[FORGE_PROOF], "hashes.0",
              STR("\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\""));
}

static void proof_hash_removed(struct forge *f)
{
    struct buf *p = &f->file[FORGE_PROOF];
    const char *comma = memchr(p->p + 12, ',', p->n - 12);
    const char *start = memchr(p->p, '[', p->n);

    comma = memchr(start, ',', p->n - (size_t)(start - p->p));
    forge_splice(p, (size_t)(start - p->p) + 1, (size_t)(comma - start), STR(""));
}

static void proof_hash_added(struct forge *f)
{
    struct buf *p = &f->file[FORGE_PROOF];

    forge_splice(p, p->n - 3, 0,
                 STR(",\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\""));
}

static void proof_hashes_swapped(struct forge *f)
{
    struct buf *p = &f->file[FORGE_PROOF];
    char *at = (char *)memmem(p->p, p->n, "=\",\"", 4);
    char first[44];

    memcpy(first, at - 43, sizeof(first));
    memcpy(at - 43, at + 4, sizeof(first));
    memcpy(at + 4, first, sizeof(first));
}

static void proof_base64_not_canonical(struct forge *f)
{
    struct buf *p = &f->file[FORGE_PROOF];
    char *last = (char *)memmem(p->p, p->n, "=\"", 2) - 1;

    *last = *last == 'A' ? 'B' : (char)(*last + 1); /* sets a bit that is not used */
}

static void proof_of_short_hash(struct forge *f)
{
    forge_set(&f->file[FORGE_PROOF], "hashes.0", STR("\"AAAA\""));
}

static void proof_size_wrong(struct forge *f)
{
    forge_set_number(&f->file[FORGE_PROOF], "size", forge_read_checkpoint(f).size + 1);
}

static void proof_with_member(struct forge *f)
{
    forge_splice(&f->file[FORGE_PROOF], 1, 0, STR("\"note\":1,"));
}

static void proof_not_json(struct forge *f)
{
    forge_splice(&f->file[FORGE_PROOF], 0, 1, STR(""));
}

/* Take entry `name` out of an array of the manifest. */
static void unlist(struct forge *f, const char *array, const char *path)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct buf *m = &f->file[FORGE_MANIFEST];
    uint32_t node;

    forge_parse(&j, buf_str(m));
    node = forge_find(&j, array);
    json_each (&j, node, at) {
        uint32_t said =
            json_is(&j, at, JSON_OBJECT) ? json_member(&j, at, STR("path")) : at;
        str raw = json_raw(&j, at);
        size_t from = (size_t)(raw.p - m->p);

        if (!json_string_is(&j, said, str_from(path)))
            continue;
        while (m->p[from] != ',' && m->p[from] != '[')
            from--;
        forge_must(m->p[from] == ',', "first of a list");
        forge_splice(m, from, (size_t)(raw.p + raw.n - m->p) - from, STR(""));
        return;
    }
    forge_must(false, path);
}

static void events_not_listed(struct forge *f)
{
    unlist(f, "files", LOG_EVENTS_NAME);
}

static void checkpoint_not_listed(struct forge *f)
{
    unlist(f, "files", LOG_CHECKPOINT_NAME);
}

static void proof_not_listed(struct forge *f)
{
    unlist(f, "files", LOG_PROOF_NAME);
}

static void log_not_listed(struct forge *f)
{
    for (int i = FORGE_EVENTS; i <= FORGE_PROOF; i++) {
        unlist(f, "files", forge_names[i]);
        unlist(f, "expected_files", forge_names[i]);
    }
}

static void attested_mode(struct forge *f)
{
    forge_set_text(&f->file[FORGE_MANIFEST], "attestation.mode", STR("shadow"));
}

static void attested_policy(struct forge *f)
{
    struct digest d = digest_of(STR("x"));

    forge_set_hex(&f->file[FORGE_MANIFEST], "attestation.policy_hash", &d);
}

static void attested_run(struct forge *f)
{
    forge_set_text(&f->file[FORGE_MANIFEST], "attestation.run_id",
                   STR("mcp_0000000000000000"));
}

static void attested_start(struct forge *f)
{
    forge_set_text(&f->file[FORGE_MANIFEST], "attestation.timestamp_start",
                   STR("2026-03-15T00:00:00.000Z"));
}

static void attested_end(struct forge *f)
{
    forge_set_text(&f->file[FORGE_MANIFEST], "attestation.timestamp_end",
                   STR("2026-03-15T23:00:00.000Z"));
}

#define NOT_IN_LOG  "do not stand in the log that was signed"
#define LEFT_OUT    "an event was left out"
#define CHANGED     "a receipt was changed: its hash is not the one in event"
#define OTHER_PLACE "speaks of another receipt than the one in its place"
#define BAD_PROOF   "the proof is not {\"size\":N,\"hashes\":[…]}"
#define ANOTHER_KEY "the checkpoint is not signed by the key that signed the pack"
#define SOME_ABSENT                                                                      \
    "of log_events.jsonl, log_checkpoint and log_proof.json some are missing"

/* The forger has the key of the pack; the log is as it was. */
static const struct {
    const char *what;
    void (*forge)(struct forge *f);
    const char *says;
} forgeries[] = {
    { "nothing forged, only signed again", nothing, NULL },
    { "an event left out", event_left_out, LEFT_OUT },
    { "the first event left out", first_event_left_out, NOT_IN_LOG },
    { "the last event left out", last_event_left_out, "has no event in the log" },
    { "the last event and its receipt left out", last_event_and_receipt_left_out,
      "the last receipt is not the session's metadata" },
    { "all events left out", all_events_left_out, "there is no event" },
    { "an event edited", event_edited, NOT_IN_LOG },
    { "an event edited", event_edited, "does not continue the event before it" },
    { "two events swapped", events_swapped, LEFT_OUT },
    { "an event doubled", event_doubled, "is out of order" },
    { "an event of another session", event_of_another_session, "another session" },
    { "an event added", event_added, "behind the end of the log that was signed" },
    { "an event left out and n renumbered", renumbered, NOT_IN_LOG },
    { "an event given to another session", session_renamed, "another session" },
    { "an event with a space", event_not_canonical, "canonical" },
    { "the last line cut", last_line_cut, "the last line does not end" },
    { "an empty line", empty_line_added, "line 4" },
    { "a receipt left out", receipt_left_out, OTHER_PLACE },
    { "the last receipt left out", last_receipt_left_out, "has no receipt in the pack" },
    { "a receipt added", receipt_added, OTHER_PLACE },
    { "a receipt appended", receipt_appended, "a receipt has no event in the log" },
    { "a receipt doubled", receipt_doubled, OTHER_PLACE },
    { "two receipts swapped", receipts_swapped, OTHER_PLACE },
    { "a receipt with an anchor", receipt_with_anchor, CHANGED },
    { "a receipt with a signature", receipt_with_signature, CHANGED },
    { "content in a receipt that says it was rebuilt", receipt_claims_to_be_rebuilt,
      "its \"arguments_content\" is another" },
    { "a result in a receipt that says it was rebuilt", result_claims_to_be_rebuilt,
      "its \"result_content\" is another" },
    { "a part before, in metadata that say they were rebuilt",
      metadata_claims_to_be_rebuilt, "its \"previous_pack_root_sha256\" is another" },
    { "metadata that are not last", metadata_not_last, OTHER_PLACE },
    { "a checkpoint by another key", checkpoint_by_another_key, ANOTHER_KEY },
    { "a checkpoint without a signature", checkpoint_without_signature, "note" },
    { "a garbled checkpoint", checkpoint_garbled, "checkpoint" },
    { "a checkpoint of another log", checkpoint_of_another_log, NOT_IN_LOG },
    { "a checkpoint of a larger log", checkpoint_larger, NOT_IN_LOG },
    { "a checkpoint of a smaller log", checkpoint_smaller,
      "events stand behind the end of the log that was signed" },
    { "a checkpoint of an empty log", checkpoint_empty,
      "events stand behind the end of the log that was signed" },
    { "a checkpoint with another root", checkpoint_with_another_root, NOT_IN_LOG },
    { "a proof with a hash changed", proof_hash_changed, NOT_IN_LOG },
    { "a proof with a hash removed", proof_hash_removed, NOT_IN_LOG },
    { "a proof with a hash added", proof_hash_added, NOT_IN_LOG },
    { "a proof with two hashes swapped", proof_hashes_swapped, NOT_IN_LOG },
    { "a proof in sloppy base64", proof_base64_not_canonical, BAD_PROOF },
    { "a proof with a short hash", proof_of_short_hash, BAD_PROOF },
    { "a proof of another size", proof_size_wrong, BAD_PROOF },
    { "a proof with a member too many", proof_with_member, BAD_PROOF },
    { "a proof that is no JSON", proof_not_json, "expected" },
    { "events not listed", events_not_listed, SOME_ABSENT },
    { "a checkpoint not listed", checkpoint_not_listed, SOME_ABSENT },
    { "a proof not listed", proof_not_listed, SOME_ABSENT },
    { "the whole log not listed", log_not_listed,
      "its receipts name events of a log, and it carries none" },
    { "another mode attested", attested_mode, "the attestation's mode" },
    { "another policy attested", attested_policy, "the attestation's policy_hash" },
    { "another run attested", attested_run, "the attestation's run_id" },
    { "another start attested", attested_start, "the attestation's timestamp_start" },
    { "another end attested", attested_end, "the attestation's timestamp_end" },
};

static void test_a_forger_with_the_key_cannot_change_what_the_log_says(void)
{
    struct bench b;

    bench_open(&b);
    forge_load(&other, b.other.path, b.dir, &b.key);
    expect(b.good.path, NULL, NULL, "the pack as it was made");
    for (size_t i = 0; i < COUNT(forgeries); i++) {
        struct forge f;

        forge_load(&f, b.good.path, b.dir, &b.key);
        forgeries[i].forge(&f);
        forge_sign(&f);
        expect(b.dir, NULL, forgeries[i].says, forgeries[i].what);
        forge_release(&f);
    }
    forge_release(&other);
    recording_close(&b.r);
}

/* --- every member of every receipt --- */

/* Another value of the same kind. */
static void other_value(struct buf *out, str raw)
{
    uint64_t number;

    buf_reset(out);
    if (u64_parse(&number, raw))
        buf_add_u64(out, number + 1);
    else if (str_is(raw, "true"))
        buf_add(out, STR("false"));
    else if (str_is(raw, "false"))
        buf_add(out, STR("true"));
    else if (raw.p[0] == '[')
        buf_add(out, STR("[0,1]"));
    else if (str_ends(raw, STR("Z\"")) && raw.n == 26)
        buf_printf(out, STR_FMT "%cZ\"", STR_ARG(str_first(raw, raw.n - 3)),
                   raw.p[raw.n - 3] == '9' ? '0' : raw.p[raw.n - 3] + 1);
    else if (raw.p[0] == '"')
        buf_printf(out, STR_FMT "0\"", STR_ARG(str_first(raw, raw.n - 1)));
    else
        buf_add(out, STR("\"x\""));
}

/* Only the receipt has it; the log has its hash. */
static bool only_in_receipt(size_t k, const char *name)
{
    return strcmp(name, "arguments_content") == 0 ||
           (k != 1 && strcmp(name, "result_content") == 0); /* 1 was denied */
}

/* What is said when the log, too, is made anew to fit. */
static void expect_relogged(const struct bench *b, size_t k, const char *name,
                            const char *what)
{
    char text[100];

    if (only_in_receipt(k, name)) {
        expect(b->dir, NULL, NULL, what);
        return;
    }
    snprintf(text, sizeof(text), "its \"%s\" is another", name);
    if (strcmp(name, "proxy_version") == 0)
        snprintf(text, sizeof(text), "its \"proxy_version\"");
    if (strcmp(name, "previous_pack_root_sha256") == 0)
        snprintf(text, sizeof(text), "part 1 of a session names a part before it");
    expect(b->dir, NULL, text, what);
}

static void forge_receipt_member(struct bench *b, size_t k, const char *name)
{
    CLEANUP(buf_release) struct buf value = { 0 };
    struct forge f;
    char what[120];

    forge_load(&f, b->good.path, b->dir, &b->key);
    other_value(&value, forge_get_line(RECEIPTS(&f), k, name));
    forge_set_line(RECEIPTS(&f), k, name, buf_str(&value));
    forge_sign(&f);
    snprintf(what, sizeof(what), "receipt %zu, %s", k, name);
    expect(b->dir, NULL, strcmp(name, "receipt_id") == 0 ? OTHER_PLACE : CHANGED, what);
    snprintf(what, sizeof(what), "receipt %zu, %s, and a log to fit", k, name);
    forge_relog(&f);
    if (strcmp(name, "type") != 0) /* then it is a receipt that no pack may hold */
        expect_relogged(b, k, name, what);
    forge_release(&f);
}

static void test_no_member_of_a_receipt_can_be_changed(void)
{
    struct bench b;
    struct forge f;

    bench_open(&b);
    forge_load(&f, b.good.path, b.dir, &b.key);
    for (size_t k = 0; k < forge_lines(RECEIPTS(&f)); k++) {
        CLEANUP(json_release) struct json j = { 0 };

        forge_parse(&j, forge_line(RECEIPTS(&f), k));
        json_each (&j, JSON_ROOT, at) {
            str raw = json_raw(&j, at);
            char name[64];

            snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_of(raw.p + 1, raw.n - 2)));
            forge_receipt_member(&b, k, name);
        }
    }
    forge_release(&f);
    recording_close(&b.r);
}

/* --- the log made anew --- */

static void end_requests(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "requests",
                   STR("4"));
}

static void end_calls(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "calls",
                   STR("2"));
}

static void end_denied(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "denied",
                   STR("0"));
}

static void end_lost(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "lost", STR("1"));
}

static void end_interventions(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "interventions",
                   STR("1"));
}

static void end_undelivered(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "undelivered",
                   STR("1"));
}

static void end_events(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "events",
                   STR("1"));
}

static void end_by_another(struct forge *f)
{
    forge_add_line(EVENTS(f), forge_typed(EVENTS(f), "session_end", 0), "by",
                   STR("\"w_0000000000000000\""));
}

/* Call 3 takes the identifier of call 1 everywhere. */
static void call_reused(struct forge *f)
{
    char from[32], to[32];

    snprintf(to, sizeof(to), STR_FMT,
             STR_ARG(forge_get_line(RECEIPTS(f), 0, "invocation_id")));
    snprintf(from, sizeof(from), STR_FMT,
             STR_ARG(forge_get_line(RECEIPTS(f), 2, "invocation_id")));
    for (int i = FORGE_RECEIPTS; i <= FORGE_EVENTS; i++) {
        struct buf *b = &f->file[i];
        char *at;

        while ((at = (char *)memmem(b->p, b->n, from, strlen(from))))
            memcpy(at, to, strlen(to));
    }
}

static void request_made_a_note(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "request_received", 2), "type",
                   STR("\"request_forwarded\""));
}

static void first_policy_unknown(struct forge *f)
{
    size_t k = forge_typed(EVENTS(f), "policy_decided", 0);
    const str hash =
        STR("\"sha256:0000000000000000000000000000000000000000000000000000000"
            "000000000\"");

    forge_set_line(EVENTS(f), k, "policy_hash", hash);
    forge_set_line(RECEIPTS(f), 0, "policy_hash", hash);
}

static void session_not_started(struct forge *f)
{
    forge_set_line(EVENTS(f), 0, "type", STR("\"heartbeat\""));
}

/* The forger has remade log and pack with a key of his own. */
static const struct {
    const char *what;
    void (*forge)(struct forge *f);
    const char *says;
} inventions[] = {
    { "a log of his own", nothing, NULL },
    { "an edited event in it", event_edited, NULL },
    { "session_end with wrong requests", end_requests, "session_end counts 4 requests" },
    { "session_end with wrong calls", end_calls, "session_end counts 2 calls" },
    { "session_end with wrong denied", end_denied, "session_end counts 0 denied" },
    { "session_end with wrong lost", end_lost, "session_end counts 1 lost" },
    { "session_end with wrong interventions", end_interventions,
      "session_end counts 1 interventions" },
    { "session_end with wrong undelivered", end_undelivered,
      "session_end counts 1 undelivered" },
    { "session_end with wrong events", end_events, "session_end counts 1 events" },
    { "a complete session that another ended", end_by_another,
      "calls a session complete whose recorder did not end it" },
    { "an event behind the end", event_added, "stands behind the end of its session" },
    { "an event left out", event_left_out, LEFT_OUT },
    { "the first event left out", first_event_left_out, "an event was left out" },
    { "two calls with one identifier", call_reused,
      "begins a call that has begun already" },
    { "a call without its request", request_made_a_note,
      "belongs to a call that is not open" },
    { "a decision by an unknown policy", first_policy_unknown,
      "decides by a policy that was never loaded" },
    { "a session without a start", session_not_started, "of its session" },
    { "a receipt with an anchor", receipt_with_anchor, CHANGED },
};

static void test_a_log_of_ones_own_must_still_make_sense(void)
{
    struct bench b;

    bench_open(&b);
    b.key = strange_key();
    for (size_t i = 0; i < COUNT(inventions); i++) {
        struct forge f;

        forge_load(&f, b.good.path, b.dir, &b.key);
        inventions[i].forge(&f);
        forge_relog(&f);
        expect(b.dir, NULL, inventions[i].says, inventions[i].what);
        forge_release(&f);
    }
    recording_close(&b.r);
}

static void test_whoever_remakes_the_log_is_an_unknown_signer(void)
{
    struct bench b;
    struct forge f;
    const struct secret_key key = strange_key();
    struct verify_options options = { .clock = &clock_system };
    struct verify_result v = { 0 };
    struct digest signer;
    struct err err = { 0 };

    bench_open(&b);
    options.keys = &b.r.keys;
    signer = digest_of(str_of(b.key.public_key, PUBLIC_SIZE));
    ok(verify_pack(b.good.path, &options, &v, &err) == 0 && v.verdict == VERIFY_SOUND &&
           v.key == KEY_LOCAL,
       "the true pack is by a key of this machine");
    verify_result_release(&v);
    forge_load(&f, b.good.path, b.dir, &key);
    forge_relog(&f);
    ok(verify_pack(b.dir, &options, &v, &err) == 0 && v.verdict == VERIFY_SOUND &&
           v.key == KEY_UNKNOWN && warns(&v, "the signer is not known here"),
       "the remade one is by a key that nobody knows, and that is said");
    verify_result_release(&v);
    options.signer = &signer;
    ok(verify_pack(b.dir, &options, &v, &err) == 0 && v.verdict == VERIFY_UNMET,
       "who names the signer does not take it");
    verify_result_release(&v);
    forge_release(&f);
    recording_close(&b.r);
}

/* --- a recorder that does what it must not --- */

static void decide(struct session *s, struct open_call *c, const char *verdict,
                   const char *policy)
{
    const struct call_decision d = { verdict, STR("rule"), STR("why"), str_from(policy) };
    struct err err = { 0 };

    must(session_decide(s, c, &d, NULL, &err) == 0, &err);
}

static void forwarded_after_denial(struct recording *r, struct session *s,
                                   struct open_call *c)
{
    recording_deny(r, s, c);
    note(s, c, EVENT_REQUEST_FORWARDED);
}

static void forwarded_though_denied(struct recording *r, struct session *s,
                                    struct open_call *c)
{
    decide(s, c, "denied", RECORDING_POLICY);
    note(s, c, EVENT_REQUEST_FORWARDED);
    recording_answer(r, s, c, false, (str){ NULL, 0 });
}

static void forwarded_undecided(struct recording *r, struct session *s,
                                struct open_call *c)
{
    note(s, c, EVENT_REQUEST_FORWARDED);
    recording_answer(r, s, c, false, (str){ NULL, 0 });
}

static void denied_after_forwarding(struct recording *r, struct session *s,
                                    struct open_call *c)
{
    allow(s, c);
    recording_deny(r, s, c);
}

static void answered_though_denied(struct recording *r, struct session *s,
                                   struct open_call *c)
{
    decide(s, c, "denied", RECORDING_POLICY);
    recording_answer(r, s, c, false, (str){ NULL, 0 });
}

static void decided_by_no_policy(struct recording *r, struct session *s,
                                 struct open_call *c)
{
    decide(s, c, "allowed",
           "sha256:0000000000000000000000000000000000000000000000000000000000000000");
    note(s, c, EVENT_REQUEST_FORWARDED);
    recording_answer(r, s, c, false, (str){ NULL, 0 });
}

static void receipted_too_early(struct recording *r, struct session *s,
                                struct open_call *c)
{
    struct err err = { 0 };

    (void)r;
    must(session_receipt(s, c, NULL, &err) == 0, &err);
}

static void call_without_identifier(struct recording *r, struct session *s,
                                    struct open_call *c)
{
    struct message m = recording_message("c2s", "request", STR("9"));
    CLEANUP(event_release) struct event e = { 0 };
    struct err err = { 0 };

    m.method = STR("tools/call");
    message_event(&e, EVENT_REQUEST_RECEIVED, &m);
    must(session_put(s, &e, NULL, &err) == 0, &err);
    allow(s, c);
    recording_answer(r, s, c, false, (str){ NULL, 0 });
}

static const struct {
    const char *what, *profile;
    void (*act)(struct recording *r, struct session *s, struct open_call *c);
    const char *says;
} misdeeds[] = {
    { "forwarded after denial", "guard", forwarded_after_denial,
      "forwards or denies a call that was forwarded or denied before" },
    { "forwarded though denied", "guard", forwarded_though_denied,
      "forwards a call that the policy has not allowed" },
    { "forwarded though denied, which audit does", "audit", forwarded_though_denied,
      NULL },
    { "forwarded undecided", "guard", forwarded_undecided,
      "forwards a call that the policy has not allowed" },
    { "denied after forwarding", "guard", denied_after_forwarding,
      "forwards or denies a call that was forwarded or denied before" },
    { "answered though denied", "guard", answered_though_denied,
      "answers a call that the policy has denied" },
    { "decided by a policy that was not loaded", "guard", decided_by_no_policy,
      "decides by a policy that was never loaded" },
    { "decided so, which audit may", "audit", decided_by_no_policy, NULL },
    { "receipted before it ended", "audit", receipted_too_early,
      "is the receipt of a call that was not answered, denied or lost" },
    { "a call without identifier", "audit", call_without_identifier,
      "is a tools/call without an identifier" },
};

static void test_a_recorder_cannot_pack_what_it_must_not_do(void)
{
    for (size_t i = 0; i < COUNT(misdeeds); i++) {
        struct recording r;
        struct session *s = recording_session(&r, misdeeds[i].profile);
        struct open_call *c = recording_call(&r, s, STR("1"), STR("t"), (str){ NULL, 0 });
        const char *want = misdeeds[i].says;
        struct pack_result made;
        struct session_cut cut;
        struct err err = { 0 };
        bool packable, packed;

        misdeeds[i].act(&r, s, c);
        session_release(s, c);
        must(session_end(s, &well, &cut, &packable, &err) == 0, &err);
        packed = pack_build(r.log,
                            &(struct pack_request){ session_id(s), session_receipts(s),
                                                    session_history(s)->first, cut },
                            &made, &err) == 0;
        ok(want ? !packed && err.code == ERR_DAMAGE && strstr(err.msg, want) : packed,
           "%s: %s", misdeeds[i].what, err.msg);
        session_free(s);
        recording_close(&r);
    }
}

/* --- lost calls --- */

static void test_a_session_with_a_lost_call_is_not_complete(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct pack_result made;
    struct secret_key key;
    struct forge f;
    char dir[FILE_PATH_MAX];

    recording_call(&r, s, STR("1"), STR("t"), (str){ NULL, 0 });
    made = finish(&r, s, NULL);
    expect(made.path, NULL, NULL, "a lost call");
    key = key_of(&r);
    snprintf(dir, sizeof(dir), "%s/forged", r.root);
    forge_load(&f, made.path, dir, &key);
    forge_set_line(EVENTS(&f), forge_typed(EVENTS(&f), "session_end", 0), "complete",
                   STR("true"));
    forge_set_line(RECEIPTS(&f), 1, "session_complete", STR("true"));
    forge_relog(&f);
    expect(dir, NULL, "calls a session complete in which calls were lost",
           "complete in spite of it");
    forge_release(&f);
    session_free(s);
    recording_close(&r);
}

/* --- parts --- */

/* A session in three parts, with a call open over both cuts, and another session. */
struct three {
    struct recording r;
    struct pack_result part[3], other;
    struct secret_key key;
    char dir[FILE_PATH_MAX];
};

static void three_open(struct three *t)
{
    struct session *s = recording_session(&t->r, "guard");
    struct session *o = recording_another(&t->r, "guard");
    struct open_call *spanning =
        recording_call(&t->r, s, STR("9"), STR("slow"), STR("{}"));

    allow(s, spanning);
    good_call(&t->r, s, STR("1"), (str){ NULL, 0 });
    t->part[0] = cut_part(&t->r, s, NULL);
    good_call(&t->r, o, STR("1"), (str){ NULL, 0 });
    good_call(&t->r, s, STR("2"), STR("{\"x\":2}"));
    denied_call(&t->r, s, STR("3"));
    t->part[1] = cut_part(&t->r, s, t->part[0].root);
    recording_answer(&t->r, s, spanning, false, STR("[]"));
    session_release(s, spanning);
    t->part[2] = finish(&t->r, s, t->part[1].root);
    t->other = finish(&t->r, o, NULL);
    t->key = key_of(&t->r);
    snprintf(t->dir, sizeof(t->dir), "%s/forged", t->r.root);
    session_free(s);
    session_free(o);
}

/* Verify these directories one after the other; the last must say `text`. */
static void expect_parts(const char *const *dirs, size_t count, const char *text,
                         const char *what)
{
    CLEANUP(packlog_release) struct packlog parts = { .parts = 0 };

    for (size_t i = 0; i + 1 < count; i++) {
        struct verify_result v = verdict_on(dirs[i], &parts);

        if (v.verdict != VERIFY_SOUND)
            show(&v);
        ok(v.verdict == VERIFY_SOUND, "%s: %zu is sound", what, i + 1);
        verify_result_release(&v);
    }
    expect(dirs[count - 1], &parts, text, what);
}

static void test_parts_are_checked_together(void)
{
    struct three t;
    const char *p[3], *row[4];

    three_open(&t);
    for (int i = 0; i < 3; i++)
        p[i] = t.part[i].path;
    expect_parts(p, 3, NULL, "all three in order");
    expect_parts((row[0] = p[0], row[1] = p[2], row), 2, "was expected",
                 "the middle one missing");
    expect_parts((row[0] = p[0], row[1] = p[0], row), 2, "was expected", "one twice");
    expect_parts((row[0] = p[1], row[1] = p[0], row), 2, "was expected", "in disorder");
    expect_parts((row[0] = p[0], row[1] = t.other.path, row), 2, "is of another session",
                 "a part of another session");
    expect_parts((row[0] = p[1], row[1] = p[2], row), 2, NULL, "the last two");
    recording_close(&t.r);
}

static void test_a_later_part_alone_says_what_it_cannot_show(void)
{
    struct three t;

    three_open(&t);
    for (int i = 0; i < 3; i++) {
        struct verify_result v = verdict_on(t.part[i].path, NULL);

        ok(v.verdict == VERIFY_SOUND &&
               warns(&v, "calls that span the cut are not closed") == (i > 0),
           "part %d alone", i + 1);
        verify_result_release(&v);
    }
    recording_close(&t.r);
}

static void previous_root(struct forge *f)
{
    forge_set_line(RECEIPTS(f), forge_lines(RECEIPTS(f)) - 1, "previous_pack_root_sha256",
                   STR("\"0000000000000000000000000000000000000000000000000000000000000"
                       "000\""));
}

static void rebuilt_receipt(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), 0, "arguments_content", STR("null"));
    forge_set_line(RECEIPTS(f), 0, "result_content", STR("null"));
    forge_set_line(RECEIPTS(f), 0, "tool_name", STR("\"harmless\""));
}

static void rebuilt_metadata(struct forge *f)
{
    size_t last = forge_lines(RECEIPTS(f)) - 1;

    forge_add_line(RECEIPTS(f), last, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), last, "previous_pack_root_sha256", STR("null"));
    forge_set_line(RECEIPTS(f), last, "part", STR("3"));
}

static const struct {
    const char *what;
    void (*forge)(struct forge *f);
    bool relog;    /* the log is made to fit */
    bool together; /* after part 1 */
    const char *says;
} part_forgeries[] = {
    { "another pack before", previous_root, false, false, CHANGED },
    { "another pack before", previous_root, false, true, CHANGED },
    { "another pack before, and a log to fit", previous_root, true, true,
      "this part does not follow the one before" },
    { "a receipt that says it was rebuilt", rebuilt_receipt, false, false,
      "its \"tool_name\" is another" },
    { "a receipt that says it was rebuilt", rebuilt_receipt, false, true,
      "its \"tool_name\" is another" },
    { "metadata that say they were rebuilt", rebuilt_metadata, false, true,
      "its \"part\" is another" },
    { "the request left out", first_event_left_out, false, false, NOT_IN_LOG },
    { "the request left out, and a log to fit", first_event_left_out, true, false,
      "a receipt is of a call whose first events were left out of this part" },
    { "the request left out, and a log to fit", first_event_left_out, true, true,
      "was expected" },
    { "an event left out", event_left_out, true, false, LEFT_OUT },
    { "the last event left out", last_event_left_out, true, false,
      "has no event in the log" },
};

static void test_no_part_can_be_changed(void)
{
    struct three t;

    three_open(&t);
    for (size_t i = 0; i < COUNT(part_forgeries); i++) {
        const char *dirs[] = { t.part[0].path, t.dir };
        bool together = part_forgeries[i].together;
        struct forge f;

        forge_load(&f, t.part[1].path, t.dir, &t.key);
        part_forgeries[i].forge(&f);
        if (part_forgeries[i].relog)
            forge_relog(&f);
        else
            forge_sign(&f);
        expect_parts(dirs + !together, 1 + together, part_forgeries[i].says,
                     part_forgeries[i].what);
        forge_release(&f);
    }
    recording_close(&t.r);
}

static void test_a_pack_says_which_part_it_is(void)
{
    struct three t;
    struct packlog_place place;

    three_open(&t);
    for (int i = 0; i < 3; i++)
        ok(packlog_peek(t.part[i].path, &place) && place.part == (uint64_t)i + 1 &&
               place.final == (i == 2) && strlen(place.session) == 20,
           "part %d", i + 1);
    ok(!packlog_peek("tests/data/good/minimal", &place), "a pack without parts");
    ok(!packlog_peek("/dev/null", &place), "no directory");
    ok(!packlog_peek("tests", &place), "no pack");
    recording_close(&t.r);
}

int main(void)
{
    test_a_forger_with_the_key_cannot_change_what_the_log_says();
    test_no_member_of_a_receipt_can_be_changed();
    test_a_log_of_ones_own_must_still_make_sense();
    test_whoever_remakes_the_log_is_an_unknown_signer();
    test_a_recorder_cannot_pack_what_it_must_not_do();
    test_a_session_with_a_lost_call_is_not_complete();
    test_parts_are_checked_together();
    test_a_later_part_alone_says_what_it_cannot_show();
    test_no_part_can_be_changed();
    test_a_pack_says_which_part_it_is();
    return tap_done();
}
