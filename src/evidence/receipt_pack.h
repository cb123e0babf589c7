/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt_pack - receipt_pack.jsonl, one receipt a line, read by the rules of the
 * stricter of the public verifiers.
 *
 * One line at a time out of a mapping: memory is needed for one receipt, the set of
 * ids, and nothing else. A line is an object of JSON that every reader understands the
 * same way: no duplicate members, no lone surrogates, only ASCII member names, no
 * integer beyond 2^53, no character that some readers take for the end of the line.
 */
#ifndef EVIDENCE_RECEIPT_PACK_H
#define EVIDENCE_RECEIPT_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "evidence/crypto.h"
#include "evidence/finding.h"

struct err;

#define RECEIPT_PACK_NAME  "receipt_pack.jsonl"
#define RECEIPT_LINE_MAX   ((size_t)64 << 20)
#define RECEIPT_REASON_MAX 64

/* What the lines say together. */
struct receipt_facts {
    uint64_t count;     /* objects found */
    uint64_t calls;     /* those of type mcp_tool_call */
    uint64_t bad_lines; /* lines that are no JSON object */
    uint64_t faults;    /* receipts' own errors: what `receipt_integrity` is about */
    bool head_known;    /* the last receipt has a canonical form, or there is none */
    struct digest head; /* its SHA-256; SHA-256("empty") of none */
    bool has_session;   /* a session_metadata receipt is there; of the last one: */
    bool session_complete;
    bool session_goes_on;                    /* it is a part, and not the last one */
    uint64_t session_part;                   /* which part it is; 0 when it is not said */
    char session_reason[RECEIPT_REASON_MAX]; /* why it ended, cut; "" when it is not said
                                              */
    uint64_t calls_lost;                     /* calls without an answer, as it says */
};

/* Take the next line that is not blank off *rest; false at the end. A '\r' before the
 * '\n' is not part of it, a last line without '\n' is a line. */
bool receipt_line(str *rest, str *line);

/* The receipts of the pack in `dir`, unchecked. */
MUST_CHECK int receipt_pack_map(struct mapping *m, const char *dir, struct err *err);

/* Told how many bytes were looked at since the last call; may be NULL. */
struct receipt_watch {
    void (*on_bytes)(void *ctx, uint64_t bytes);
    void *ctx;
};

/* Check all lines; what is wrong goes to `findings` (STAGE_RECEIPTS and STAGE_TYPES).
 * Fails only for want of memory or at IDSET_MAX. */
MUST_CHECK int receipt_pack_check(str text, const struct receipt_watch *watch,
                                  struct findings *findings, struct receipt_facts *facts,
                                  struct err *err);

/* For people: "1 call, and the session's record (2 receipts)"; "3 receipts" of others. */
void receipt_facts_add_count(struct buf *out, const struct receipt_facts *f);

/* For people: "complete", or why it is not: "not complete: it ended with 'crash', 1 call
 * has no answer". Of a part, which one it is: one part is not the session, whatever it
 * says of it. Foreign bytes are escaped. */
void receipt_facts_add_session(struct buf *out, const struct receipt_facts *f);

/* Is this a type that a pack may hold? */
bool receipt_type_allowed(str type);

/* A time as the public verifier takes it: a date, or date and time, with or without
 * offset. Stricter than it in this: only the form with dashes and colons. */
bool receipt_time_valid(str text);

#endif
