/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek - what an HTTP body says of itself, as far as whoever serves it must know before
 * it goes on: does it want answers, does it open a session, of which era is it, and do
 * its headers say the same.
 */
#ifndef PIPELINE_PEEK_H
#define PIPELINE_PEEK_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "json/json.h"

struct http_head;
struct mirror;

/* All zero is empty; may be used again and again. */
struct peek {
    bool is_json;       /* else nothing below counts */
    bool is_batch;      /* an array */
    bool is_rpc;        /* each of its messages is one */
    bool is_initialize; /* a request to open a session */
    bool is_stateless;  /* it names its version itself: 2026-07-28 */
    unsigned requests;  /* that want an answer */
    struct buf id;      /* of the only one, as it was written; empty: several, or none */
    struct buf version; /* that a stateless one names */
    struct buf tokens;  /* of progress: their keys, one a line */

    struct json json; /* from here on: its own affair */
    struct buf text;
};

void peek_read(struct peek *p, str body);
void peek_release(struct peek *p);

/* MCP 2026-07-28: do the headers say what the body says? NULL, or a sentence that says
 * what is wrong. Only for a stateless request. */
const char *peek_mismatch(struct peek *p, const struct http_head *head);

/* The same for the arguments that a tool marks: Mcp-Param. */
const char *peek_param_mismatch(struct peek *p, struct mirror *marks,
                                const struct http_head *head);

/* The token of a notifications/progress, as `tokens` has them; empty: it is none. Reads
 * the message anew. */
str peek_progress(struct peek *p, str message);

/* The code of an error that a whole answer is; 0: it is none. */
int peek_error(struct peek *p, str message);

#endif
