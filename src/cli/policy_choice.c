/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_choice.h"

#include "base/err.h"

int policy_choose(struct policy_file *f, const char *given, struct err *err)
{
    if (policy_file_load(f, given ? given : POLICY_FILE, err) == 0)
        return 0;
    if (given || err->code != ERR_NOTFOUND)
        return -1;
    return err_set(err, ERR_NOTFOUND,
                   "there is no '%s' here: name a policy file, or make one with "
                   "'assay policy init'",
                   POLICY_FILE);
}
