/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock - assay.lock: what somebody decided beforehand that a pack must be.
 *
 * Format version of the pack, hash of the claims, who may sign, and which versions of the
 * public tool's rules may judge. The file is JSON and unsigned: it is as good as the
 * place that it came from.
 */
#ifndef EVIDENCE_LOCK_H
#define EVIDENCE_LOCK_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/str.h"
#include "evidence/crypto.h"

struct err;

#define LOCK_MAX_BYTES   ((size_t)1 << 20)
#define LOCK_SIGNERS_MAX 10000

/* The release of the public tool whose rules verify.h follows; what a lock's version
 * range is compared with. */
#define LOCK_RULES_VERSION "1.24.0"

/* All zero is the empty one. */
struct lock {
    struct arena arena;
    str pack_format_version;
    struct digest claim_set_hash;
    bool any_signer;
    struct digest *signers; /* fingerprints, when not any_signer */
    size_t signer_count;
    str version_min, version_max; /* version_max may be empty */
    struct digest file_sha256;
};

/* ERR_FORMAT says what is wrong with the file. */
MUST_CHECK int lock_read(struct lock *l, str text, struct err *err);
void lock_release(struct lock *l);

bool lock_allows_signer(const struct lock *l, const struct digest *fingerprint);

/* Do the rules that we follow lie within [version_min, version_max)? */
bool lock_allows_rules(const struct lock *l);

#endif
