/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packmanifest - the files of a pack that speak about the others: report, transcript,
 * manifest and signature. For pack.c.
 */
#ifndef EVIDENCE_PACKMANIFEST_H
#define EVIDENCE_PACKMANIFEST_H

#include "evidence/keys.h"
#include "evidence/packparts.h"

/* Write all four; `root` becomes pack_root_sha256. */
MUST_CHECK int packmanifest_write(const struct parts *p, const struct session_cut *cut,
                                  const struct signer *signer, struct staging *staging,
                                  struct digest *root, struct err *err);

#endif
