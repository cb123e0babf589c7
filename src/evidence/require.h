/* SPDX-License-Identifier: Apache-2.0 */
/*
 * require - what the caller of a verification asks for beyond integrity.
 *
 * Part of verify.h, in a file of its own: run when a pack has been found sound, fills
 * result->requirements.
 */
#ifndef EVIDENCE_REQUIRE_H
#define EVIDENCE_REQUIRE_H

#include <stdbool.h>

struct verify;

/* True when everything that was asked for is met. On a pack that is not sound nothing is,
 * because what it says about itself means nothing. */
bool require_check(struct verify *v, bool sound);

#endif
