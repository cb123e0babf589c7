/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/policy_file.h"

#include <stdio.h>

#include "base/err.h"
#include "base/file.h"

static int parse(struct policy_file *f, struct err *err)
{
    struct digest d = digest_of(buf_str(&f->bytes));

    memcpy(f->hash, "sha256:", 7);
    digest_hex(f->hash + 7, &d);
    return policy_parse(&f->policy, buf_str(&f->bytes), f->path, err);
}

int policy_file_load(struct policy_file *f, const char *path, struct err *err)
{
    *f = (struct policy_file){ .path = path, .bytes = { .max = POLICY_MAX_BYTES + 1 } };
    return file_read(path, &f->bytes, err) < 0 ? -1 : parse(f, err);
}

int policy_file_copy(struct policy_file *f, const struct policy_file *of, struct err *err)
{
    *f = (struct policy_file){ .path = of->path, .bytes = { .max = of->bytes.max } };
    buf_add(&f->bytes, buf_str(&of->bytes));
    if (buf_check(&f->bytes, "the policy", err) == 0 && parse(f, err) == 0)
        return 0;
    policy_file_release(f);
    return -1;
}

void policy_file_release(struct policy_file *f)
{
    policy_free(f->policy);
    buf_release(&f->bytes);
    *f = (struct policy_file){ 0 };
}

int policy_file_keep(const struct policy_file *f, const char *audit_dir, struct err *err)
{
    char dir[FILE_PATH_MAX], path[FILE_PATH_MAX], name[POLICY_HASH_TEXT + 32];

    snprintf(name, sizeof(name), "policy_sha256_%s.yaml", f->hash + strlen("sha256:"));
    if (path_join(dir, audit_dir, "policy", err) < 0 ||
        path_join(path, dir, name, err) < 0 || file_make_dirs(dir, 0700, err) < 0)
        return -1;
    if (file_create(path, buf_str(&f->bytes), 0600, err) == 0 || err->code == ERR_EXISTS)
        return 0;
    return err_wrap(err, "cannot keep the policy beside the evidence");
}
