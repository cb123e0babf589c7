/* SPDX-License-Identifier: Apache-2.0 */
/* signer - the active signing key, for commands; a first use is told on stderr. */
#ifndef CLI_SIGNER_H
#define CLI_SIGNER_H

#include "evidence/keys.h"

/* Open the key directory and load the active signer; make it if there is none. The
 * caller releases *out. */
MUST_CHECK int signer_open(struct keys *keys, struct signer *out, struct err *err);

#endif
