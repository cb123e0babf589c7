/* SPDX-License-Identifier: Apache-2.0 */
/* report_html - the parts of the page that report_add_html() makes; see report.h. */
#ifndef EVIDENCE_REPORT_HTML_H
#define EVIDENCE_REPORT_HTML_H

#include "base/buf.h"
#include "base/str.h"

struct verify_result;

/* Foreign text in HTML: markup and control characters lose their power. */
void html_add_text(struct buf *out, str text);

/* The calls that these receipts tell of, if they are the ones that were checked. */
void html_add_calls(struct buf *out, const struct verify_result *v, str receipts);

#endif
