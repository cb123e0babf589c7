/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/require.h"

#include "evidence/verify.h"

#define HOUR_MS ((int64_t)3600 * 1000)

const char *requirement_flag(enum requirement_kind kind)
{
    static const char *const flags[REQUIREMENTS] = {
        [REQUIRE_SIGNER] = "--signer",
        [REQUIRE_LOCK] = "--lock",
        [REQUIRE_AGE] = "--max-age-hours",
        [REQUIRE_CI_BINDING] = "--require-ci-binding",
        [REQUIRE_COMMIT] = "--expected-commit-sha",
        [REQUIRE_COMPLETE] = "--require-complete",
        [REQUIRE_CLAIM_PASS] = "--require-claim-pass",
    };

    return flags[kind];
}

static void unmet(struct verify *v, enum requirement_kind kind, enum finding_code code,
                  str why)
{
    struct requirement *r = &v->result->requirements[kind];

    r->met = false;
    r->code = code;
    r->message = why;
}

static void check_signer(struct verify *v)
{
    char want[2 * DIGEST_SIZE], got[2 * DIGEST_SIZE];

    if (digest_equal(v->options->signer, &v->manifest->signer_pubkey_sha256))
        return;
    digest_hex(want, v->options->signer);
    digest_hex(got, &v->manifest->signer_pubkey_sha256);
    unmet(v, REQUIRE_SIGNER, FINDING_NONE,
          findings_text(&v->result->findings, "the key %.64s signed it, not %.64s", got,
                        want));
}

static void check_lock(struct verify *v)
{
    const struct lock *l = v->options->lock;
    const struct manifest *m = v->manifest;
    struct findings *f = &v->result->findings;
    str why = { NULL, 0 };

    if (!str_equal(m->pack_format_version, l->pack_format_version))
        why = findings_text(f, "pack_format_version is '%s', the lock says '%s'",
                            quoted(m->pack_format_version).text,
                            quoted(l->pack_format_version).text);
    else if (!digest_equal(&m->claim_set_hash, &l->claim_set_hash))
        why = findings_text(f, "the pack's claims are not those of the lock "
                               "(claim_set_hash differs)");
    else if (!lock_allows_signer(l, &m->signer_pubkey_sha256))
        why = findings_text(f, "the signer is not in the lock's allow-list");
    else if (!lock_allows_rules(l))
        why = findings_text(
            f,
            "the lock asks for verifier rules from %s up to %s, ours are " LOCK_RULES_VERSION,
            quoted(l->version_min).text,
            l->version_max.n ? quoted(l->version_max).text : "any");
    if (why.n)
        unmet(v, REQUIRE_LOCK, FINDING_NONE, why);
}

static void check_age(struct verify *v)
{
    uint64_t limit = v->options->max_age_hours;
    int64_t end = 0, age;

    if (!clock_parse(&end, v->manifest->timestamp_end))
        return; /* the schema has seen to it */
    age = v->result->verified_at - end;
    if (age > 0 && (uint64_t)((age - 1) / HOUR_MS) >= limit)
        unmet(v, REQUIRE_AGE, FINDING_PACK_STALE,
              findings_text(&v->result->findings,
                            "its last receipt, of %s, is older than %llu hour%s",
                            quoted(v->manifest->timestamp_end).text,
                            (unsigned long long)limit, limit == 1 ? "" : "s"));
}

static void check_ci_binding(struct verify *v)
{
    if (v->manifest->ci_binding == JSON_NONE)
        unmet(v, REQUIRE_CI_BINDING, FINDING_CI_BINDING_MISSING,
              STR("the attestation has no ci_binding"));
}

static void check_commit(struct verify *v)
{
    struct findings *f = &v->result->findings;

    if (v->manifest->ci_binding == JSON_NONE)
        unmet(v, REQUIRE_COMMIT, FINDING_CI_BINDING_MISSING,
              STR("the attestation has no ci_binding, so it names no commit"));
    else if (!str_is(v->manifest->commit_sha, v->options->expected_commit))
        unmet(v, REQUIRE_COMMIT, FINDING_CI_BINDING_MISMATCH,
              findings_text(f, "the pack belongs to commit %s, not %s",
                            quoted(v->manifest->commit_sha).text,
                            v->options->expected_commit));
}

/* The last part alone says that the session is complete, and does not show it. */
static void check_complete(struct verify *v)
{
    const struct receipt_facts *f = &v->result->receipts;

    if (!f->has_session)
        unmet(v, REQUIRE_COMPLETE, FINDING_NONE,
              STR("no session_metadata receipt says that the session is complete"));
    else if (f->session_goes_on)
        unmet(v, REQUIRE_COMPLETE, FINDING_NONE,
              STR("this is a part of its session, and not the last"));
    else if (!f->session_complete)
        unmet(v, REQUIRE_COMPLETE, FINDING_NONE,
              STR("its session_metadata says that the session is not complete"));
    else if (v->result->begins_late)
        unmet(v, REQUIRE_COMPLETE, FINDING_NONE,
              findings_text(&v->result->findings,
                            "this is part %llu of its session; the parts before it were "
                            "not all given, or are not all sound",
                            (unsigned long long)f->session_part));
}

static void check_claims(struct verify *v)
{
    if (!str_is(v->manifest->claim_check, "PASS"))
        unmet(v, REQUIRE_CLAIM_PASS, FINDING_NONE,
              findings_text(&v->result->findings, "claim_check is '%s', not 'PASS'",
                            quoted(v->manifest->claim_check).text));
}

static bool is_asked(const struct verify_options *o, enum requirement_kind kind)
{
    switch (kind) {
    case REQUIRE_SIGNER:
        return o->signer != NULL;
    case REQUIRE_LOCK:
        return o->lock != NULL;
    case REQUIRE_AGE:
        return o->limit_age;
    case REQUIRE_CI_BINDING:
        return o->require_ci_binding;
    case REQUIRE_COMMIT:
        return o->expected_commit != NULL;
    case REQUIRE_COMPLETE:
        return o->require_complete;
    case REQUIRE_CLAIM_PASS:
        return o->require_claim_pass;
    case REQUIREMENTS:
        break;
    }
    return false;
}

bool require_check(struct verify *v, bool sound)
{
    static void (*const checks[REQUIREMENTS])(struct verify *) = {
        [REQUIRE_SIGNER] = check_signer,     [REQUIRE_LOCK] = check_lock,
        [REQUIRE_AGE] = check_age,           [REQUIRE_CI_BINDING] = check_ci_binding,
        [REQUIRE_COMMIT] = check_commit,     [REQUIRE_COMPLETE] = check_complete,
        [REQUIRE_CLAIM_PASS] = check_claims,
    };
    bool all = true;

    for (unsigned kind = 0; kind < REQUIREMENTS; kind++) {
        struct requirement *r = &v->result->requirements[kind];

        r->asked = is_asked(v->options, (enum requirement_kind)kind);
        r->met = r->asked && sound;
        if (r->met)
            checks[kind](v);
        else if (r->asked)
            r->message = STR("not looked at: the pack is not sound");
        all = all && (!r->asked || r->met);
    }
    return all;
}
