/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - who a log is: its name, the keys that sign it, its newest checkpoint.
 *
 *     log/origin        C2SP verifier keys, one a line: the active one first, older below
 *     log/checkpoint    the newest signed checkpoint
 *     ~/.assay/logs/<16 hex of the name>   the newest checkpoint that we signed
 */
#ifndef EVIDENCE_ORIGIN_H
#define EVIDENCE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "evidence/checkpoint.h"
#include "evidence/keys.h"
#include "evidence/note.h"
#include "evidence/tree.h"

struct err;

#define ORIGIN_KEYS_MAX 16
#define ORIGIN_PREFIX   "assay.local/"

struct origin {
    char name[NOTE_NAME_MAX + 1];          /* assay.local/<16 hex> */
    struct note_key keys[ORIGIN_KEYS_MAX]; /* the active one first */
    size_t count;
};

/* ERR_NOTFOUND when there is no log here. `log_dir` is <audit directory>/log. */
MUST_CHECK int origin_read(struct origin *o, const char *log_dir, struct err *err);

/* Read it, or make it with the active signer (made too if there is none; *new_key). Of
 * eight first starts one creates it, and all get the same. */
MUST_CHECK int origin_read_or_new(struct origin *o, const char *log_dir,
                                  const struct keys *keys, const struct entropy *entropy,
                                  mode_t mode, bool *new_key, struct err *err);

/* Put a new key before the others. */
MUST_CHECK int origin_add_key(struct origin *o, const char *log_dir,
                              const struct note_key *key, mode_t mode, struct err *err);

/* The secret of the active key. ERR_NOTFOUND with a sentence when it is not in `keys`. */
MUST_CHECK int origin_signer(const struct origin *o, const struct keys *keys,
                             struct signer *out, struct err *err);

/* The newest checkpoint of the log, verified. A log without one: size 0, *note empty. A
 * checkpoint of another origin or by another key is ERR_DAMAGE. `note` may be NULL. */
MUST_CHECK int origin_checkpoint(const struct origin *o, const char *log_dir,
                                 struct checkpoint *out, struct buf *note,
                                 struct err *err);

/* Verify the signed note of a checkpoint; `what` begins the sentence. ERR_DAMAGE when it
 * is malformed, of another log, or not signed by a key of this one. */
MUST_CHECK int origin_open_note(const struct origin *o, const char *what, str bytes,
                                struct checkpoint *out, struct err *err);

/* The next note of log/checkpoints (text, blank line, signatures, blank line) off *rest.
 * False at the end; then *rest is what is left, half a note or nothing. */
bool origin_next_note(str *rest, str *note);

/* What we remember of this origin outside the log: size 0 when nothing. */
MUST_CHECK int origin_remembered(const struct origin *o, const struct keys *keys,
                                 struct checkpoint *out, struct err *err);
MUST_CHECK int origin_remember(const struct origin *o, const struct keys *keys, str note,
                               struct err *err);

#endif
