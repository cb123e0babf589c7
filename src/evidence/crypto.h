/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crypto - SHA-256, HMAC-SHA-256 and Ed25519. The only file that includes OpenSSL.
 *
 * Hashing cannot fail from the caller's side: should the library refuse, the process
 * stops (an evidence program without a hash function has nothing to say). All functions
 * may be called from any thread.
 */
#ifndef EVIDENCE_CRYPTO_H
#define EVIDENCE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/sink.h"
#include "base/str.h"

struct err;

#define DIGEST_SIZE 32

struct digest {
    uint8_t bytes[DIGEST_SIZE];
};

struct digest digest_of(str bytes);
struct digest digest_of_parts(const str *parts, size_t count);

bool digest_equal(const struct digest *a, const struct digest *b);
bool digest_from_hex(struct digest *out, str hex);
void digest_hex(char out[static 2 * DIGEST_SIZE], const struct digest *d); /* no NUL */
void digest_add_hex(struct buf *b, const struct digest *d);

/* "sha256:<hex>" */
void digest_add_tagged(struct buf *b, const struct digest *d);

static inline str digest_str(const struct digest *d)
{
    return str_of(d->bytes, sizeof(d->bytes));
}

/* A running hash: what streams, streams into it. */
struct hasher {
    uint64_t state[14]; /* OpenSSL's SHA256_CTX */
};

void hasher_init(struct hasher *h);
void hasher_add(struct hasher *h, str bytes);
struct digest hasher_finish(struct hasher *h); /* and start again, empty */
struct sink hasher_sink(struct hasher *h);

struct digest hmac_of(str key, str bytes);

#define SEED_SIZE      32
#define PUBLIC_SIZE    32
#define SIGNATURE_SIZE 64

/* An Ed25519 private key: its seed, and the public key that follows from it. */
struct secret_key {
    uint8_t seed[SEED_SIZE];
    uint8_t public_key[PUBLIC_SIZE];
};

MUST_CHECK int secret_key_from_seed(struct secret_key *k,
                                    const uint8_t seed[static SEED_SIZE],
                                    struct err *err);
void secret_key_release(struct secret_key *k); /* wipes it */

MUST_CHECK int sign(uint8_t out[static SIGNATURE_SIZE], const struct secret_key *k,
                    str message, struct err *err);

/* False for a wrong signature and for a key that is none; a point of small order, for
 * which signatures can be made without a secret, is none. */
bool signature_valid(const uint8_t signature[static SIGNATURE_SIZE],
                     const uint8_t public_key[static PUBLIC_SIZE], str message);

#endif
