/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding - what is wrong with a piece of evidence: a code, a place and plain words.
 *
 * The codes are those of the public proof pack format, so that two verifiers can be
 * compared. A list of findings owns its texts. It keeps the first FINDINGS_MAX and
 * counts the rest: a hostile pack must not make its report grow without end.
 */
#ifndef EVIDENCE_FINDING_H
#define EVIDENCE_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/str.h"

#define FINDINGS_MAX        200
#define FINDING_MESSAGE_MAX 1000 /* bytes of one message; the rest is cut */
#define FINDINGS_BYTES      ((size_t)4 << 20)

enum finding_code {
    FINDING_NONE,
    FINDING_MANIFEST_TAMPER,
    FINDING_PATH_ESCAPE,
    FINDING_PACK_OMISSION,
    FINDING_PACK_SIG_INVALID,
    FINDING_DUPLICATE_ID,
    FINDING_SCHEMA_UNKNOWN,
    FINDING_CANON_MISMATCH,
    FINDING_TIMESTAMP_INVALID,
    FINDING_CHAIN_BROKEN,
    FINDING_PACK_STALE,
    FINDING_CI_BINDING_MISSING,
    FINDING_CI_BINDING_MISMATCH,
    FINDING_CODES,
};

/* What a code means to a person. */
struct finding_info {
    const char *name;      /* "E_MANIFEST_TAMPER" */
    const char *mechanism; /* the family of the public format: "tamper_detected" */
    const char *meaning;   /* one sentence */
    const char *advice;    /* what to do now */
};

const struct finding_info *finding_info(enum finding_code code);

/* The steps of a verification, in order. */
enum stage {
    STAGE_SCHEMA,
    STAGE_PATHS,
    STAGE_FILE_HASHES,
    STAGE_RECEIPTS,
    STAGE_ATTESTATION,
    STAGE_SIGNATURE,
    STAGE_D12,
    STAGE_TIME,
    STAGE_TYPES,
    STAGE_LOG,
    STAGE_COUNT,
};

enum stage_status {
    STAGE_NOT_RUN,
    STAGE_OK,
    STAGE_FAILED,
};

const char *stage_name(enum stage stage); /* "validate_schema" */

struct finding {
    enum finding_code code;
    enum stage stage;
    uint64_t receipt; /* 1 + index of the receipt; 0 when it is not about one */
    str field;        /* what it is about: a file or a member; may be empty. Foreign */
    str message;      /* one sentence, foreign bytes escaped */
};

/* All zero is the empty list. */
struct findings {
    struct arena arena;
    struct finding *items;
    size_t count;
    size_t cap;
    uint64_t left_out;              /* beyond FINDINGS_MAX */
    uint64_t by_stage[STAGE_COUNT]; /* all of them, those left out too */
    bool failed;                    /* no memory: the list is not complete */
};

void findings_release(struct findings *f);

/* Add one; `like` gives everything but the message. `like.field` is copied. Foreign
 * bytes reach the message only through quoted(). */
void findings_add(struct findings *f, const struct finding *like, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Does one of them have this code and, unless `field` is NULL, this field? */
bool findings_have(const struct findings *f, enum finding_code code, const char *field);
/* Is the one at `at` the first with its code? What a code means is said once. */
bool findings_first(const struct findings *f, size_t at);
bool findings_about(const struct findings *f, str field);

/* A finished sentence in f's own memory. */
str findings_text(struct findings *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "%s" cannot print foreign bytes; this can: escaped, cut to fit, NUL-terminated. */
#define QUOTED_MAX 160
struct quoted {
    char text[QUOTED_MAX];
};
struct quoted quoted(str foreign);

#endif
