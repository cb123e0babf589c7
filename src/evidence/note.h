/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note - C2SP signed notes: a text, a blank line, and lines that sign it.
 *
 *     <text ending in \n>
 *     \n
 *     — <key name> <base64 of key id (4 bytes) | Ed25519 signature (64 bytes)>\n
 *
 * A verifier key reads <name>+<8 hex of the key id>+<base64 of 0x01 | public key>, with
 *     key id = SHA-256(name | 0x0A | 0x01 | public key)[0:4]
 */
#ifndef EVIDENCE_NOTE_H
#define EVIDENCE_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "evidence/crypto.h"

struct err;

#define NOTE_MAX            ((size_t)64 << 10) /* bytes of a whole note */
#define NOTE_SIGNATURES_MAX 64                 /* C2SP asks for at least 16 */
#define NOTE_NAME_MAX       128

/* A key that we know: name and public key; the id follows from them. */
struct note_key {
    char name[NOTE_NAME_MAX + 1];
    uint8_t id[4];
    uint8_t public_key[PUBLIC_SIZE];
};

/* Fails when the name is empty, too long, or has a space, a '+' or a control character.
 */
MUST_CHECK int note_key_make(struct note_key *k, str name,
                             const uint8_t public_key[static PUBLIC_SIZE],
                             struct err *err);
MUST_CHECK int note_key_parse(struct note_key *k, str vkey, struct err *err);
void note_key_add(struct buf *out, const struct note_key *k); /* the vkey text */
bool note_key_equal(const struct note_key *a, const struct note_key *b);

/* A note taken apart; borrows from the bytes it was parsed from. */
struct note {
    str text;       /* with its final newline */
    str signatures; /* the lines after the blank line */
};

/* Checks the form of everything: UTF-8, no control characters but newline, every
 * signature line well formed, limits. */
MUST_CHECK int note_parse(struct note *n, str bytes, struct err *err);

enum note_verdict {
    NOTE_SIGNED, /* at least one of the keys signed it, and no signature of theirs is bad
                  */
    NOTE_UNSIGNED, /* none of the keys has signed it */
    NOTE_FORGED,   /* a line names one of the keys and its signature is wrong */
};

enum note_verdict note_verify(const struct note *n, const struct note_key *keys,
                              size_t count);

/* Append "— name base64\n" over `text` (which ends in \n) with this key. */
MUST_CHECK int note_sign(struct buf *out, str text, const struct note_key *k,
                         const struct secret_key *secret, struct err *err);

#endif
