/* SPDX-License-Identifier: Apache-2.0 */
/* Packs forged by somebody who has the key: what the log still tells. */
#include "evidence/packlog.h"

#include "tests/forgebench.h"

/* --- forgeries --- */

static struct forge other; /* the pack of the other session */

static void last_event_and_receipt_left_out(struct forge *f)
{
    last_event_left_out(f);
    forge_drop(RECEIPTS(f), forge_lines(RECEIPTS(f)) - 1);
}

static void all_events_left_out(struct forge *f)
{
    buf_reset(EVENTS(f));
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

int main(void)
{
    test_a_forger_with_the_key_cannot_change_what_the_log_says();
    return tap_done();
}
