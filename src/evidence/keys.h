/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys - the signing keys in ~/.assay/keys (or $ASSAY_HOME/keys), as the public tool
 * keeps them.
 *
 *     <id>.key         32 raw bytes, 0600        <id>.pub     32 raw bytes, 0644
 *     .active_signer   id and newline
 *
 * A signer id is 1 to 64 of A-Z a-z 0-9 . _ - and does not begin with '.'. The active
 * signer is the one that the marker names if its key is there, else `assay-local`, else
 * the first by name. A key file that others can read, that is a link, or that is not 32
 * bytes is refused, never repaired.
 */
#ifndef EVIDENCE_KEYS_H
#define EVIDENCE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/entropy.h"
#include "base/file.h"
#include "base/str.h"
#include "evidence/crypto.h"

struct err;

#define KEYS_DEFAULT_SIGNER "assay-local"
#define KEYS_ID_MAX         64
#define KEYS_MAX            1000 /* keys that one directory may list */

struct signer {
    char id[KEYS_ID_MAX + 1];
    struct secret_key secret;
};

struct keys {
    char home[FILE_PATH_MAX]; /* ~/.assay */
    char dir[FILE_PATH_MAX];  /* ~/.assay/keys */
};

/* `home` NULL: $ASSAY_HOME, else $HOME/.assay. Creates nothing. */
MUST_CHECK int keys_open(struct keys *k, const char *home, struct err *err);

bool keys_id_valid(str id);

/* Load a signer's secret; its .pub must agree. ERR_NOTFOUND when there is none. */
MUST_CHECK int keys_load(const struct keys *k, const char *id, struct signer *out,
                         struct err *err);

/* Only the public half. */
MUST_CHECK int keys_load_public(const struct keys *k, const char *id,
                                uint8_t out[static PUBLIC_SIZE], struct err *err);

/* The id of the active signer; ERR_NOTFOUND when there is no key at all. */
MUST_CHECK int keys_active(const struct keys *k, char id[static KEYS_ID_MAX + 1],
                           struct err *err);

/* The active signer, made on first use. *created tells whether this call made it; of
 * many racing first uses exactly one does. */
MUST_CHECK int keys_active_or_new(const struct keys *k, const struct entropy *e,
                                  struct signer *out, bool *created, struct err *err);

/* ERR_EXISTS when the id is taken. */
MUST_CHECK int keys_generate(const struct keys *k, const struct entropy *e,
                             const char *id, struct signer *out, struct err *err);
MUST_CHECK int keys_import(const struct keys *k, const char *id,
                           const uint8_t seed[static SEED_SIZE], struct err *err);
MUST_CHECK int keys_set_active(const struct keys *k, const char *id, struct err *err);

/* Find the signer whose public key this is. ERR_NOTFOUND when none is. */
MUST_CHECK int keys_find_public(const struct keys *k,
                                const uint8_t public_key[static PUBLIC_SIZE],
                                char id[static KEYS_ID_MAX + 1], struct err *err);

/* Is there a secret half under this id, too? Without it the key is somebody else's. */
bool keys_has_secret(const struct keys *k, const char *id);

/* Ids of all signers, sorted; returns how many, at most `max`, or -1. */
MUST_CHECK int keys_list(const struct keys *k, char (*ids)[KEYS_ID_MAX + 1], size_t max,
                         struct err *err);

void signer_release(struct signer *s); /* wipes the secret */

#endif
