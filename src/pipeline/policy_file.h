/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_file - the policy that is in force: its file, its hash, and the copy of it that
 * stands beside the evidence, so that a verdict can be understood years later.
 */
#ifndef PIPELINE_POLICY_FILE_H
#define PIPELINE_POLICY_FILE_H

#include "base/attr.h"
#include "base/buf.h"
#include "evidence/crypto.h"
#include "policy/policy.h"

struct err;

#define POLICY_HASH_TEXT (sizeof("sha256:") + 2 * DIGEST_SIZE) /* with its NUL */

struct policy_file {
    const char *path; /* borrowed */
    struct buf bytes;
    struct policy *policy; /* NULL: it could not be read; `hash` says of what */
    char hash[POLICY_HASH_TEXT];
};

/* Read and parse it. On failure `policy` is NULL, and `hash` is empty when there was
 * nothing to hash. */
MUST_CHECK int policy_file_load(struct policy_file *f, const char *path, struct err *err);

/* The same policy once more, from the bytes that were read. */
MUST_CHECK int policy_file_copy(struct policy_file *f, const struct policy_file *of,
                                struct err *err);
void policy_file_release(struct policy_file *f); /* safe on a zeroed or released one */

/* Copy it to policy/policy_sha256_<hex>.yaml of the audit directory, unless it is there.
 */
MUST_CHECK int policy_file_keep(const struct policy_file *f, const char *audit_dir,
                                struct err *err);

#endif
