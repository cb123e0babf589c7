/* SPDX-License-Identifier: Apache-2.0 */
/* percent - %41 is A, in paths and in hosts. What is no escape stays as it is. */
#ifndef POLICY_PERCENT_H
#define POLICY_PERCENT_H

#include <stddef.h>

#include "base/str.h"

/* Decode once into `out`, which has room for in.n bytes and may be in.p itself. Returns
 * the length: less than in.n exactly when there was something to decode. */
size_t percent_decode(char *out, str in);

#endif
