/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/finding.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/utf8.h"

static const struct finding_info infos[FINDING_CODES] = {
    [FINDING_NONE] = { "", "", "", "" },
    [FINDING_MANIFEST_TAMPER] = { "E_MANIFEST_TAMPER", "tamper_detected",
                                  "the pack is not what its manifest says, or the manifest is not a valid one",
                                  "do not rely on this pack; ask its maker for the original copy" },
    [FINDING_PATH_ESCAPE] = { "E_PATH_ESCAPE", "tamper_detected",
                              "the pack names a file outside itself, or one reached through a link",
                              "do not rely on this pack; nothing outside its directory was opened" },
    [FINDING_PACK_OMISSION] = { "E_PACK_OMISSION_DETECTED", "tamper_detected",
                                "receipts were left out or added after the pack was signed",
                                "do not rely on this pack; ask its maker for the original copy" },
    [FINDING_PACK_SIG_INVALID] = { "E_PACK_SIG_INVALID", "tamper_detected",
                                   "the signature does not belong to this manifest and this key",
                                   "do not rely on this pack; nobody vouches for what it says" },
    [FINDING_DUPLICATE_ID] = { "E_DUPLICATE_ID", "schema_mismatch",
                               "two receipts carry the same receipt_id",
                               "ask the maker of the pack which of the two is real" },
    [FINDING_SCHEMA_UNKNOWN] = { "E_SCHEMA_UNKNOWN", "schema_mismatch",
                                 "a receipt is of an unknown type or lacks a member that every receipt has",
                                 "ask the maker of the pack, or use a verifier that knows this type" },
    [FINDING_CANON_MISMATCH] = { "E_CANON_MISMATCH", "schema_mismatch",
                                 "a receipt has no single canonical form, so its hash means nothing",
                                 "ask the maker of the pack for receipts without the value that is named" },
    [FINDING_TIMESTAMP_INVALID] = { "E_TIMESTAMP_INVALID", "stale_evidence",
                                    "a time is not a time, or lies in the future",
                                    "check the clock of this machine and of the one that made the pack" },
    [FINDING_CHAIN_BROKEN] = { "E_CHAIN_BROKEN", "witness_gap",
                               "the pack's events do not stand in the signed log as it says",
                               "do not rely on this pack; verify the log it was made from" },
    [FINDING_PACK_STALE] = { "E_PACK_STALE", "stale_evidence",
                             "the pack is older than you allow",
                             "ask for a newer pack, or allow a greater age" },
    [FINDING_CI_BINDING_MISSING] = { "E_CI_BINDING_MISSING", "policy_conflict",
                                     "the pack does not say which build it belongs to",
                                     "build the pack in the continuous integration job that it is to prove" },
    [FINDING_CI_BINDING_MISMATCH] = { "E_CI_BINDING_MISMATCH", "policy_conflict",
                                      "the pack belongs to another build",
                                      "fetch the pack of the commit that you expect" },
};

const struct finding_info *finding_info(enum finding_code code)
{
    assert(code < FINDING_CODES);
    return &infos[code];
}

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_SCHEMA] = "validate_schema",
        [STAGE_PATHS] = "validate_paths",
        [STAGE_FILE_HASHES] = "validate_file_hashes",
        [STAGE_RECEIPTS] = "validate_receipts",
        [STAGE_ATTESTATION] = "validate_attestation",
        [STAGE_SIGNATURE] = "verify_signature",
        [STAGE_D12] = "check_d12_invariant",
        [STAGE_TIME] = "check_time",
        [STAGE_TYPES] = "check_receipt_types",
        [STAGE_LOG] = "verify_log",
    };

    assert(stage < STAGE_COUNT);
    return names[stage];
}

static struct arena *texts(struct findings *f)
{
    if (!f->arena.limit)
        arena_init(&f->arena, FINDINGS_BYTES);
    return &f->arena;
}

void findings_release(struct findings *f)
{
    arena_release(&f->arena);
    free(f->items);
    *f = (struct findings){ 0 };
}

static str keep(struct findings *f, str s)
{
    str copy = arena_dup(texts(f), s);

    f->failed |= f->arena.failed;
    return copy;
}

static str sentence(struct findings *f, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* Foreign parts came through quoted(); only a cut may leave half a character. */
static str sentence(struct findings *f, const char *fmt, va_list ap)
{
    char raw[FINDING_MESSAGE_MAX + 1];
    int n = vsnprintf(raw, sizeof(raw), fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n;

    if (len >= sizeof(raw)) {
        len = sizeof(raw) - 1;
        while (len > 0 && !utf8_valid(str_of(raw, len)))
            len--;
    }
    return keep(f, str_of(raw, len));
}

str findings_text(struct findings *f, const char *fmt, ...)
{
    va_list ap;
    str s;

    va_start(ap, fmt);
    s = sentence(f, fmt, ap);
    va_end(ap);
    return s;
}

static struct finding *room(struct findings *f)
{
    if (f->count == FINDINGS_MAX) {
        f->left_out++;
        return NULL;
    }
    if (f->count == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 8;
        struct finding *items = realloc(f->items, cap * sizeof(*items));

        if (!items) {
            f->failed = true;
            return NULL;
        }
        f->items = items;
        f->cap = cap;
    }
    return &f->items[f->count++];
}

void findings_add(struct findings *f, const struct finding *like, const char *fmt, ...)
{
    struct finding *at = room(f);
    va_list ap;

    f->by_stage[like->stage]++;
    if (!at)
        return;
    *at = *like;
    at->field = keep(f, like->field);
    va_start(ap, fmt);
    at->message = sentence(f, fmt, ap);
    va_end(ap);
}

bool findings_have(const struct findings *f, enum finding_code code, const char *field)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].code == code && (!field || str_is(f->items[i].field, field)))
            return true;
    }
    return false;
}

bool findings_first(const struct findings *f, size_t at)
{
    size_t i = 0;

    while (f->items[i].code != f->items[at].code)
        i++;
    return i == at;
}

bool findings_about(const struct findings *f, str field)
{
    for (size_t i = 0; i < f->count; i++) {
        if (str_equal(f->items[i].field, field))
            return true;
    }
    return false;
}

struct quoted quoted(str foreign)
{
    CLEANUP(buf_release) struct buf escaped = { .max = 4 * QUOTED_MAX };
    struct quoted q = { "" };
    bool cut = foreign.n > QUOTED_MAX / 2;
    size_t n;

    diag_escape(&escaped, str_first(foreign, QUOTED_MAX / 2));
    n = escaped.n < QUOTED_MAX - 4 ? escaped.n : QUOTED_MAX - 4;
    cut |= n < escaped.n;
    if (n)
        memcpy(q.text, escaped.p, n);
    memcpy(q.text + n, cut ? "..." : "", cut ? 4 : 1);
    return q;
}
