/* SPDX-License-Identifier: Apache-2.0 */
/* Logs made anew, and recorders that do what they must not. */
#include "evidence/packrules.h"

#include "tests/forgebench.h"

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

/* What cancels a call stands before its receipt. */
static void cancelled_behind_receipt(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "response_sent", 0), "type",
                   STR("\"call_cancelled\""));
}

static void cancelled_before_answer(struct forge *f)
{
    forge_set_line(EVENTS(f), forge_typed(EVENTS(f), "request_forwarded", 0), "type",
                   STR("\"call_cancelled\""));
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
    { "a call cancelled when it was over", cancelled_behind_receipt,
      "belongs to a call that is not open" },
    { "a call cancelled that was not", cancelled_before_answer,
      "a receipt does not say what its events say: its \"outcome_reason\"" },
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
                                                    session_history(s)->first, cut, NULL,
                                                    false, NULL },
                            &made, &err) == 0;
        ok(want ? !packed && err.code == ERR_DAMAGE && strstr(err.msg, want) : packed,
           "%s: %s", misdeeds[i].what, err.msg);
        session_free(s);
        recording_close(&r);
    }
}

/* --- limits --- */

static void load_policy(struct session *s, unsigned i)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct digest d = digest_of(str_of(&i, sizeof(i)));
    struct err err = { 0 };

    event_init(&e, EVENT_POLICY_LOADED);
    event_add_digest(&e, "policy_hash", &d);
    event_add_bool(&e, "ok", true);
    must(session_put(s, &e, NULL, &err) == 0, &err);
}

static void test_a_session_loads_so_many_policies_and_no_more(void)
{
    for (unsigned more = 0; more < 2; more++) {
        struct recording r;
        struct session *s = recording_session(&r, "guard"); /* loads the first */
        struct pack_result made;
        struct session_cut cut;
        struct err err = { 0 };
        bool packable, packed;

        good_call(&r, s, STR("1"), (str){ NULL, 0 });
        for (unsigned i = 1; i < PACKLOG_POLICIES_MAX + more; i++)
            load_policy(s, i);
        load_policy(s, 1); /* again is not one more */
        must(session_end(s, &well, &cut, &packable, &err) == 0, &err);
        packed = pack_build(r.log,
                            &(struct pack_request){ session_id(s), session_receipts(s),
                                                    session_history(s)->first, cut, NULL,
                                                    false, NULL },
                            &made, &err) == 0;
        ok(packed == !more, "%u policies: %s", PACKLOG_POLICIES_MAX + more, err.msg);
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

int main(void)
{
    test_a_log_of_ones_own_must_still_make_sense();
    test_whoever_remakes_the_log_is_an_unknown_signer();
    test_a_recorder_cannot_pack_what_it_must_not_do();
    test_a_session_loads_so_many_policies_and_no_more();
    test_a_session_with_a_lost_call_is_not_complete();
    return tap_done();
}
