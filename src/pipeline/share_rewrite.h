/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_rewrite - where the parts of a message stand that a shared server must not see as
 * they are, and their replacement. Pure: no state, no member, no server.
 *
 * A part is found by a path of names; its value is a string or a number, or it is not
 * there. Two members of one name are two places of the part, and all are replaced: which
 * one counts is the reader's choice. Towards a server a name in another case counts as
 * well (`loosely`), so that nobody can slip another's id past us.
 */
#ifndef PIPELINE_SHARE_REWRITE_H
#define PIPELINE_SHARE_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "pipeline/splice.h"
#include "json/json.h"

struct err;

#define REWRITE_OUTLINE                                                                  \
    6 /* levels that are looked at of what is beyond JSON's limits                       \
       */

enum rewrite_part {
    REWRITE_ID,        /* id */
    REWRITE_TOKEN,     /* params._meta.progressToken of a request */
    REWRITE_PROGRESS,  /* params.progressToken of notifications/progress */
    REWRITE_CANCELLED, /* params.requestId */
    REWRITE_NOTICE,    /* params._meta["io.modelcontextprotocol/subscriptionId"] */
    REWRITE_CLOSING,   /* the same of a result: the end of a subscription */
    REWRITE_URI,       /* params.uri; not to be replaced */
};

/* Index a message; of one that is beyond the limits, its outline. */
MUST_CHECK int rewrite_parse(struct json *j, str text, struct err *err);

/* The last place of the part in the object `message`; JSON_NONE without. */
uint32_t rewrite_find(const struct json *j, uint32_t message, enum rewrite_part part,
                      bool loosely);

/* Replace every place by `by`, which is borrowed until splice_end(). */
void rewrite_replace(struct splice *s, const struct json *j, uint32_t message,
                     enum rewrite_part part, bool loosely, str by);

/* Can some parser take this for its method? Of two, either. */
bool rewrite_is_method(const struct json *j, uint32_t message, str method);

/* An id that is a number of ours, however it is spelled; 0 when it is none. */
uint64_t rewrite_number(const struct json *j, uint32_t node, struct buf *scratch);

/* A message as one line: line breaks between its tokens become spaces, and one stands at
 * its end. The text is changed where it stands. */
void rewrite_make_line(struct buf *text);

#endif
