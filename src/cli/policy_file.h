/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_file - the policy file that a command speaks of, and its hash.
 */
#ifndef CLI_POLICY_FILE_H
#define CLI_POLICY_FILE_H

#include "base/attr.h"
#include "evidence/crypto.h"
#include "policy/policy.h"

struct err;

/* All zero is none. */
struct policy_file {
    const char *path;
    struct policy *policy;
    struct digest hash; /* of the bytes of the file: `policy_hash` of receipts */
};

/* Read and load; `path` may be NULL for POLICY_FILE in the current directory. Every error
 * names the file. */
MUST_CHECK int policy_file_open(struct policy_file *f, const char *path, struct err *err);
void policy_file_release(struct policy_file *f);

#endif
