/* SPDX-License-Identifier: Apache-2.0 */
/* api_internal - what api.c and api_event.c share. Nobody else includes it. */
#ifndef EVIDENCE_API_INTERNAL_H
#define EVIDENCE_API_INTERNAL_H

#include <stdbool.h>

#include "assay/assay.h"
#include "base/buf.h"
#include "evidence/keys.h"
#include "evidence/log.h"
#include "evidence/session.h"
#include "json/json.h"

struct err;

struct assay_log {
    struct log *log;
    struct keys keys;
    bool unfinished; /* a session was freed without its end */
};

struct assay_session {
    struct assay_log *log;
    struct session *session;
    struct json json; /* working memory */
    struct buf content;
    struct assay_call *calls;
    bool store_arguments, store_results;
    bool sealed; /* session_end is written; the pack is still to come */
    bool finished;
    bool packable;
    struct session_cut cut;
};

/* What a message was, for the event that says where it went. */
struct passed_message {
    bool known;
    bool passed; /* the event is written */
    uint64_t bytes;
    struct content_hash digest;
    struct buf id; /* its JSON text; empty for none */
};

struct assay_call {
    struct assay_session *session;
    struct passed_message request, response;
    struct buf id_key; /* by which its answer is known; empty without an id */
    struct open_call *open;
    struct assay_call *next; /* in session->calls */
};

/* Hand an error over to the caller. Returns -1. */
int api_fail(struct assay_error *out, const struct err *err);

#endif
