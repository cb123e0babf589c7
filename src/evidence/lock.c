/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/lock.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

#define VERSION_PARTS 6

struct version {
    uint64_t part[VERSION_PARTS];
};

/* Digits and dots only: the ranges that the public tool writes are releases. */
static bool version_parse(struct version *v, str text)
{
    unsigned at = 0, digits = 0;

    *v = (struct version){ { 0 } };
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c >= '0' && c <= '9' && digits < 9) {
            v->part[at] = v->part[at] * 10 + (uint64_t)(c - '0');
            digits++;
        } else if (c == '.' && digits && at + 1 < VERSION_PARTS) {
            at++;
            digits = 0;
        } else {
            return false;
        }
    }
    return digits > 0;
}

static int version_compare(const struct version *a, const struct version *b)
{
    for (unsigned i = 0; i < VERSION_PARTS; i++) {
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    }
    return 0;
}

static str text_of(struct lock *l, const struct json *j, uint32_t node)
{
    CLEANUP(buf_release) struct buf text = { .max = LOCK_MAX_BYTES };
    str s;

    if (!json_is(j, node, JSON_STRING))
        return (str){ NULL, 0 };
    json_unescape(j, node, &text);
    s = arena_dup(&l->arena, buf_str(&text));
    l->arena.failed |= text.failed;
    return s;
}

static str member(struct lock *l, const struct json *j, const char *name)
{
    return text_of(l, j, json_member(j, JSON_ROOT, str_from(name)));
}

static int take_signers(struct lock *l, const struct json *j, struct err *err)
{
    uint32_t policy = json_member(j, JSON_ROOT, STR("signer_policy"));
    uint32_t mode = json_member(j, policy, STR("mode"));
    uint32_t list = json_member(j, policy, STR("allowed_fingerprints"));

    l->any_signer = json_is(j, mode, JSON_STRING) && json_string_is(j, mode, STR("any"));
    if (l->any_signer)
        return 0;
    if (!json_is(j, mode, JSON_STRING) || !json_string_is(j, mode, STR("allowlist")))
        return err_set(err, ERR_FORMAT,
                       "signer_policy.mode is neither 'any' nor 'allowlist'");
    if (!json_is(j, list, JSON_ARRAY))
        return err_set(err, ERR_FORMAT, "signer_policy.allowed_fingerprints is no array");
    if (json_count(j, list) > LOCK_SIGNERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d fingerprints", LOCK_SIGNERS_MAX);
    l->signers = arena_alloc(&l->arena, (json_count(j, list) + 1) * sizeof(*l->signers));
    if (!l->signers)
        return err_set(err, ERR_NOMEM, "no memory for the fingerprints");
    json_each (j, list, at) {
        if (!digest_from_hex(&l->signers[l->signer_count++], text_of(l, j, at)))
            return err_set(err, ERR_FORMAT,
                           "a fingerprint is not 64 lower-case hex digits");
    }
    return 0;
}

static int take_versions(struct lock *l, const struct json *j, struct err *err)
{
    bool has_max = json_member(j, JSON_ROOT, STR("assay_version_max")) != JSON_NONE;
    struct version v;

    l->version_min = member(l, j, "assay_version_min");
    l->version_max = member(l, j, "assay_version_max");
    if (!version_parse(&v, l->version_min))
        return err_set(err, ERR_FORMAT, "assay_version_min is not a version like 1.24.0");
    if (has_max && !version_parse(&v, l->version_max))
        return err_set(err, ERR_FORMAT, "assay_version_max is not a version like 2.0.0");
    return 0;
}

static int take(struct lock *l, const struct json *j, struct err *err)
{
    static const char *const required[] = {
        "lock_version",  "assay_version_min", "pack_format_version",
        "run_cards",     "claim_set_hash",    "run_cards_composite_hash",
        "exit_contract", "signer_policy",
    };

    if (!json_is(j, JSON_ROOT, JSON_OBJECT))
        return err_set(err, ERR_FORMAT, "it is not a JSON object");
    if (j->nodes[JSON_ROOT].flags & JSON_TAINTED)
        return err_set(err, ERR_FORMAT, "it has duplicate members or broken text");
    for (size_t i = 0; i < COUNT(required); i++) {
        if (json_member(j, JSON_ROOT, str_from(required[i])) == JSON_NONE)
            return err_set(err, ERR_FORMAT, "it lacks '%s'", required[i]);
    }
    if (!str_is(member(l, j, "lock_version"), "1.0"))
        return err_set(err, ERR_FORMAT, "its lock_version is not \"1.0\"");
    l->pack_format_version = member(l, j, "pack_format_version");
    if (!l->pack_format_version.n)
        return err_set(err, ERR_FORMAT, "pack_format_version is empty");
    if (!digest_from_hex(&l->claim_set_hash, member(l, j, "claim_set_hash")))
        return err_set(err, ERR_FORMAT, "claim_set_hash is not 64 lower-case hex digits");
    if (take_versions(l, j, err) < 0)
        return -1;
    return take_signers(l, j, err);
}

int lock_read(struct lock *l, str text, struct err *err)
{
    CLEANUP(json_release) struct json j = { 0 };
    const struct json_limits limits = { .max_bytes = LOCK_MAX_BYTES };
    struct lock read = { .file_sha256 = digest_of(text) };
    int r;

    arena_init(&read.arena, 4 * LOCK_MAX_BYTES);
    r = json_parse(&j, text, &limits, err);
    if (r == 0)
        r = take(&read, &j, err);
    if (r == 0 && read.arena.failed)
        r = err_set(err, ERR_NOMEM, "no memory for the lock file");
    if (r < 0) {
        lock_release(&read);
        return -1;
    }
    *l = read;
    return 0;
}

void lock_release(struct lock *l)
{
    arena_release(&l->arena);
    *l = (struct lock){ 0 };
}

bool lock_allows_signer(const struct lock *l, const struct digest *fingerprint)
{
    for (size_t i = 0; i < l->signer_count; i++) {
        if (digest_equal(&l->signers[i], fingerprint))
            return true;
    }
    return l->any_signer;
}

bool lock_allows_rules(const struct lock *l)
{
    struct version ours, low, high;

    if (!version_parse(&ours, STR(LOCK_RULES_VERSION)) ||
        !version_parse(&low, l->version_min) || version_compare(&ours, &low) < 0)
        return false;
    return !l->version_max.n ||
           (version_parse(&high, l->version_max) && version_compare(&ours, &high) < 0);
}
