/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packrules - what the events of a session may not say, whoever signed them.
 *
 * A call begins once, and only a call that is open is answered, lost or receipted; a
 * receipt comes when there is something to receipt. After session_end only the last
 * metadata follow, and its counts are those of the events. Under profile guard a call is
 * forwarded or denied once and never both, nothing goes on that was not allowed, and
 * every decision names a policy that was loaded.
 *
 * For packlog.c, which has checked form, order and numbering.
 */
#ifndef EVIDENCE_PACKRULES_H
#define EVIDENCE_PACKRULES_H

#include "base/attr.h"
#include "evidence/packlog.h"

/* Look at an event before it is folded into p->history. Findings go to `v`. Fails only
 * for want of memory. */
MUST_CHECK int packrules_check(struct verify *v, struct packlog *p,
                               const struct event_view *e, struct err *err);

#endif
