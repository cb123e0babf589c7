/* SPDX-License-Identifier: Apache-2.0 */
/* forgebench - good packs to forge, what verification says of them, and the forgeries
 * that more than one test needs. */
#ifndef TESTS_FORGEBENCH_H
#define TESTS_FORGEBENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/pack.h"
#include "evidence/packlog.h"
#include "tests/forge.h"
#include "tests/recording.h"
#include "tests/tap.h"

static const struct session_ending well = { "client_eof", true, "shutdown", NULL };

/* --- good packs --- */

FORGE_UNUSED static void must(bool good, const struct err *err)
{
    if (good)
        return;
    printf("Bail out! %s\n", err->msg);
    exit(1);
}

FORGE_UNUSED static void note(struct session *s, struct open_call *c,
                              enum event_type type)
{
    const struct message m = recording_message("c2s", "request", STR("1"));
    CLEANUP(event_release) struct event e = { 0 };
    struct err err = { 0 };

    message_event(&e, type, &m);
    must(session_note(s, c, &e, NULL, &err) == 0, &err);
}

FORGE_UNUSED static void allow(struct session *s, struct open_call *c)
{
    const struct call_decision yes = { "allowed", STR("default"), STR("not denied"),
                                       STR(RECORDING_POLICY) };
    struct err err = { 0 };

    must(session_decide(s, c, &yes, NULL, &err) == 0, &err);
    note(s, c, EVENT_REQUEST_FORWARDED);
}

FORGE_UNUSED static void good_call(struct recording *r, struct session *s, str id,
                                   str content)
{
    struct open_call *c = recording_call(r, s, id, STR("read"), content);

    allow(s, c);
    recording_answer(r, s, c, false, content);
    session_release(s, c);
}

FORGE_UNUSED static void denied_call(struct recording *r, struct session *s, str id)
{
    struct open_call *c = recording_call(r, s, id, STR("delete"), (str){ NULL, 0 });

    recording_deny(r, s, c);
    session_release(s, c);
}

FORGE_UNUSED static struct pack_result pack(struct recording *r, struct session *s,
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

FORGE_UNUSED static struct pack_result finish(struct recording *r, struct session *s,
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

FORGE_UNUSED static struct pack_result cut_part(struct recording *r, struct session *s,
                                                const char *previous)
{
    struct session_cut cut;
    struct err err = { 0 };

    must(session_part(s, previous, &cut, &err) == 0, &err);
    return pack(r, s, &cut);
}

/* The key of the log, which signs its packs. */
FORGE_UNUSED static struct secret_key key_of(struct recording *r)
{
    CLEANUP(signer_release) struct signer signer = { 0 };
    struct err err = { 0 };

    must(log_signer(r->log, &signer, &err) == 0, &err);
    return signer.secret;
}

FORGE_UNUSED static struct secret_key strange_key(void)
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

FORGE_UNUSED static void bench_open(struct bench *b)
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

FORGE_UNUSED static bool says(const struct verify_result *v, const char *text)
{
    for (size_t i = 0; i < v->findings.count; i++) {
        str m = v->findings.items[i].message;

        if (memmem(m.p, m.n, text, strlen(text)))
            return true;
    }
    return false;
}

FORGE_UNUSED static bool warns(const struct verify_result *v, const char *text)
{
    for (size_t i = 0; i < v->warning_count; i++) {
        if (memmem(v->warnings[i].p, v->warnings[i].n, text, strlen(text)))
            return true;
    }
    return false;
}

FORGE_UNUSED static void show(const struct verify_result *v)
{
    for (size_t i = 0; i < v->findings.count; i++)
        printf("# finding: " STR_FMT "\n", STR_ARG(v->findings.items[i].message));
    for (size_t i = 0; i < v->warning_count; i++)
        printf("# note: " STR_FMT "\n", STR_ARG(v->warnings[i]));
}

FORGE_UNUSED static struct verify_result verdict_on(const char *dir,
                                                    struct packlog *parts)
{
    const struct verify_options options = { .clock = &clock_system, .parts = parts };
    struct verify_result v = { 0 };
    struct err err = { 0 };

    must(verify_pack(dir, &options, &v, &err) == 0, &err);
    return v;
}

/* `text` NULL: sound. */
FORGE_UNUSED static void expect(const char *dir, struct packlog *parts, const char *text,
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

#define EVENTS(f)   (&(f)->file[FORGE_EVENTS])
#define RECEIPTS(f) (&(f)->file[FORGE_RECEIPTS])

FORGE_UNUSED static void nothing(struct forge *f)
{
    (void)f;
}

FORGE_UNUSED static void event_left_out(struct forge *f)
{
    forge_drop(EVENTS(f), 4);
}

FORGE_UNUSED static void first_event_left_out(struct forge *f)
{
    forge_drop(EVENTS(f), 0);
}

FORGE_UNUSED static void last_event_left_out(struct forge *f)
{
    forge_drop(EVENTS(f), forge_lines(EVENTS(f)) - 1);
}

FORGE_UNUSED static void event_edited(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "request_received", 0), "bytes",
                   STR("101"));
}

/* Behind the end of everything, with good numbers: a second request. */
FORGE_UNUSED static void event_added(struct forge *f)
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

FORGE_UNUSED static void receipt_with_anchor(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "anchor", STR("\"notary\""));
}

#define NOT_IN_LOG  "do not stand in the log that was signed"
#define LEFT_OUT    "an event was left out"
#define CHANGED     "a receipt was changed: its hash is not the one in event"
#define OTHER_PLACE "speaks of another receipt than the one in its place"
#define BAD_PROOF   "the proof is not {\"size\":N,\"hashes\":[…]}"
#define ANOTHER_KEY "the checkpoint is not signed by the key that signed the pack"
#define SOME_ABSENT "is missing: whether the receipts are those of the log"

#endif
