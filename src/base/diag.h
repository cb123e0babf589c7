/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag - what we say to the person at stderr. Not the evidence log.
 *
 * Only cli/ speaks to people; a library call reports through struct err or through
 * a callback that its owner points here. Foreign bytes are escaped before they
 * reach a terminal.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"

/* One line on stderr: "assay: <text>". One write(2), so that lines do not mix. */
void diag_say(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Append `bytes` with everything but printable ASCII and valid UTF-8 text above
 * U+009F spelled as \xNN or \n, \t, \\. */
void diag_escape(struct buf *b, str bytes);

#endif
