/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_file.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"

int policy_file_open(struct policy_file *f, const char *path, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = POLICY_MAX_BYTES };
    struct policy_file file = { .path = path ? path : POLICY_FILE };

    if (file_read(file.path, &text, err) < 0 ||
        policy_parse(&file.policy, buf_str(&text), file.path, err) < 0)
        return -1;
    file.hash = digest_of(buf_str(&text));
    *f = file;
    return 0;
}

void policy_file_release(struct policy_file *f)
{
    policy_free(f->policy);
    *f = (struct policy_file){ 0 };
}
