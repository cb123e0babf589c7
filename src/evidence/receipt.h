/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt - one line per tool call, and one for the session, as a pack carries them.
 *
 * A receipt has two forms that differ only in three characters. Its hash is over the
 * canonical form of packs (JCS_PACK). Its line is that form with U+0085, U+2028 and
 * U+2029 written as escapes, because the public verifier would take them for line ends.
 *
 * Every member is always there, null where a fact is missing. docs/receipt.md is the
 * table.
 */
#ifndef EVIDENCE_RECEIPT_H
#define EVIDENCE_RECEIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "evidence/call.h"
#include "evidence/crypto.h"
#include "json/json.h"

struct err;

#define RECEIPT_MAX    ((size_t)64 << 20) /* bytes of a line, without its newline */
#define CONTENT_MAX    ((size_t)31 << 20) /* stored arguments, and stored result */
#define RECEIPT_SCHEMA "3.0"
#define RECEIPT_SOURCE "assay.mcp_proxy"

/* What all receipts of a session share. Texts are borrowed. */
struct receipt_session {
    str id;        /* mcp_<16 hex>; also the trace of calls that bring none */
    str server_id; /* from session_start, like the next four */
    str transport; /* stdio, sse, streamable-http */
    str client_transport;
    str profile;        /* audit, guard */
    str policy_hash;    /* {NULL, 0} without a policy */
    str proxy_version;  /* `version` of the writer's chain_start */
    int64_t started_at; /* time of session_start */
};

/* A time that is not known. */
#define RECEIPT_NO_TIME INT64_MIN

/* The receipt `mcp_tool_call`. A str of {NULL, 0} is written as null. */
struct receipt {
    const struct receipt_session *session;
    str receipt_id; /* mtc_<16 hex> */
    int64_t timestamp;
    uint64_t seq;
    str invocation_id;
    str trace_id;
    str parent_receipt_id;
    str tool_name;
    str mcp_request_id;
    bool mcp_request_id_is_number;
    int64_t request_observed_at, policy_decided_at, response_observed_at;
    str arguments_hash, result_hash;
    str arguments_content, result_content; /* JSON text in form JCS_PACK */
    bool has_result_is_error, result_is_error;
    const char *outcome;
    str outcome_reason;
    int64_t duration_ms; /* below 0: null */
    str policy_verdict, policy_ref, policy_reason, policy_hash;
    str request_digest, response_digest;
    bool modified;
    uint64_t log_seq[2];
    bool rebuilt; /* the line was lost and its content with it: `"rebuilt":true` */
};

/* Where the receipt of a call stands; all but the contents is in its `receipt` event. */
struct receipt_place {
    const struct receipt_session *session;
    str receipt_id;
    str parent;   /* {NULL, 0} for none */
    int64_t ts;   /* of the `receipt` event */
    uint64_t seq; /* `receipt` events of this session before it */
    str arguments_content, result_content; /* from content_add(), or {NULL, 0} */
};

/* The receipt of what the call's events say so far: all before its `receipt` event. It
 * borrows from all three. A call that is not due for one gives outcome `timeout`. */
void receipt_of_call(struct receipt *r, const struct call *c,
                     const struct receipt_place *place);

/* How often things happened in a session. */
struct receipt_counts {
    uint64_t requests;      /* request_received */
    uint64_t calls;         /* request_received with a `call` */
    uint64_t denied;        /* request_denied */
    uint64_t lost;          /* call_lost */
    uint64_t interventions; /* message_modified, message_dropped */
    uint64_t received;      /* response_received */
    uint64_t sent;          /* response_sent */
    uint64_t cut;           /* message_cut */
    uint64_t events;        /* all, so also the next `n` */
    uint64_t receipts;      /* receipt, so also the next receipt's seq */
};

void receipt_counts_add(struct receipt_counts *c, enum event_type type, bool has_call);

/* Answers that were received and never handed on. */
static inline uint64_t receipt_undelivered(const struct receipt_counts *c)
{
    return c->received > c->sent ? c->received - c->sent : 0;
}

/* The receipt `session_metadata`: the last one of a pack. `counts` are those before its
 * own `receipt` event. */
struct metadata {
    const struct receipt_session *session;
    str receipt_id; /* smd_<16 hex> */
    int64_t timestamp;
    uint64_t seq;
    struct receipt_counts counts;
    bool complete;     /* session_complete; false unless final */
    str reason;        /* of session_end; {NULL, 0} unless final */
    int64_t ended_at;  /* of session_end; RECEIPT_NO_TIME unless final */
    uint64_t part;     /* 1 for the first */
    bool final;        /* no part comes after it */
    uint64_t log_from; /* this part holds the session's events in [log_from, log_to) */
    uint64_t log_to;   /* its own `receipt` event is the last of them */
    str previous_pack_root_sha256; /* hex; {NULL, 0} for part 1 */
    uint64_t calls_open;           /* calls requested and not receipted at this point */
    bool rebuilt;                  /* the line was lost: `"rebuilt":true` */
};

/* The finished line in both forms. All zero is empty; may be composed into again. */
struct receipt_line {
    struct buf canonical; /* what is hashed */
    struct buf escaped;   /* only used when the line differs */
    bool odd;             /* may have what they differ in */
    str line;             /* without newline; borrows from one of the two */
    struct digest hash;
};

MUST_CHECK int receipt_compose(struct receipt_line *out, const struct receipt *r,
                               struct err *err);
MUST_CHECK int metadata_compose(struct receipt_line *out, const struct metadata *m,
                                struct err *err);
void receipt_line_release(struct receipt_line *l);

/* The hash of a receipt that was read: over its canonical form without the members that
 * the public format leaves out of a receipt's hash (signature, signatures,
 * cose_signature, receipt_hash, anchor). ERR_FORMAT when there is no canonical form. */
MUST_CHECK int receipt_hash(struct digest *out, const struct json *j, struct err *err);

/* Append what a receipt may store of a JSON value: the value itself in form JCS_PACK, or,
 * when a pack cannot carry it, one string with its raw text. A pack carries ASCII member
 * names, integers within ±(2^53 − 1), no duplicate members, no lone surrogates, no
 * number beyond a double, and JSON_MAX_DEPTH levels, the receipt's own included. Returns
 * false, and appends nothing, when the result is larger than CONTENT_MAX. */
bool content_add(struct buf *out, const struct json *j, uint32_t node);

/* The same for bytes that could not be indexed: one string. False also when they are not
 * UTF-8. */
bool content_add_raw(struct buf *out, str raw);

/* The hash of a JSON value as events and receipts state it. */
#define CONTENT_HASH_MAX   80
#define CONTENT_REASON_MAX 160

struct content_hash {
    char text[CONTENT_HASH_MAX];     /* "sha256:<hex>", NUL-terminated */
    size_t n;                        /* of it */
    char reason[CONTENT_REASON_MAX]; /* why it is a raw one; "" when it is not */
};

static inline str content_text(const struct content_hash *h)
{
    return str_of(h->text, h->n);
}

/* Over the value's RFC 8785 form. A value that has none is hashed as it stands:
 * "raw-sha256:<hex>", with the reason. With a pepper (not empty) both are keyed:
 * "hmac-sha256:<hex>". ERR_NOMEM, or ERR_LIMIT with a pepper and a value beyond
 * CONTENT_HASH_BYTES. */
#define CONTENT_HASH_BYTES ((size_t)1 << 30)

MUST_CHECK int content_hash(struct content_hash *out, const struct json *j, uint32_t node,
                            str pepper, struct err *err);

/* Of bytes that are no JSON of ours to canonicalise: frames, missing arguments. */
void content_digest(struct content_hash *out, str bytes, str pepper);

#endif
