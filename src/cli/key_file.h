/* SPDX-License-Identifier: Apache-2.0 */
/* key_file - a signing key in a file, as `assay key import` takes it. */
#ifndef CLI_KEY_FILE_H
#define CLI_KEY_FILE_H

#include <stdint.h>

#include "base/attr.h"
#include "evidence/keys.h"

struct err;

/* The 32 bytes of a .key or .key.b64 file. */
MUST_CHECK int key_file_read(const char *path, uint8_t seed[static SEED_SIZE],
                             struct err *err);

/* The signer that a file's name says. */
MUST_CHECK int key_file_id_from_path(const char *path, char out[static KEYS_ID_MAX + 1],
                                     struct err *err);

/* ERR_REFUSED for a file whose name says that it is a public half. */
MUST_CHECK int key_file_refuse_public_name(const char *path, struct err *err);

/* The same for bytes that are the public key of a signer that is known here. */
MUST_CHECK int key_file_refuse_public_key(const struct keys *k, const char *path,
                                          const uint8_t seed[static SEED_SIZE],
                                          struct err *err);

#endif
