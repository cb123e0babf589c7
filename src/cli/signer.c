/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signer.h"

#include "base/diag.h"

int signer_open(struct keys *keys, struct signer *out, struct err *err)
{
    bool created = false;

    if (keys_open(keys, NULL, err) < 0 ||
        keys_active_or_new(keys, &entropy_system, out, &created, err) < 0)
        return -1;
    if (created)
        diag_say("made the signing key '%s' in '%s'", out->id, keys->dir);
    return 0;
}
