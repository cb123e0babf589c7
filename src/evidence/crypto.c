/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/crypto.h"

/* The plain SHA-256 functions: beside the EVP ones they save half the time of a hash of
 * the size of an event, and there are some fifteen of these in a call. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct hasher), "the state fits");

static SHA256_CTX *state_of(struct hasher *h)
{
    return (SHA256_CTX *)(void *)h;
}

static void must(int ok)
{
    if (!ok)
        abort(); /* no SHA-256: see the header */
}

struct digest digest_of_parts(const str *parts, size_t count)
{
    UNINITIALIZED SHA256_CTX ctx;
    UNINITIALIZED struct digest d;

    must(SHA256_Init(&ctx));
    for (size_t i = 0; i < count; i++)
        must(SHA256_Update(&ctx, parts[i].p, parts[i].n));
    must(SHA256_Final(d.bytes, &ctx));
    return d;
}

struct digest digest_of(str bytes)
{
    UNINITIALIZED SHA256_CTX ctx;
    UNINITIALIZED struct digest d;

    must(SHA256_Init(&ctx) && SHA256_Update(&ctx, bytes.p, bytes.n));
    must(SHA256_Final(d.bytes, &ctx));
    return d;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, DIGEST_SIZE) == 0;
}

bool digest_from_hex(struct digest *out, str hex)
{
    return hex_decode(out->bytes, DIGEST_SIZE, hex);
}

void digest_hex(char out[static 2 * DIGEST_SIZE], const struct digest *d)
{
    hex_encode(out, d->bytes, DIGEST_SIZE);
}

void digest_add_hex(struct buf *b, const struct digest *d)
{
    hex_add(b, d->bytes, DIGEST_SIZE);
}

void digest_add_tagged(struct buf *b, const struct digest *d)
{
    buf_add(b, STR("sha256:"));
    digest_add_hex(b, d);
}

void hasher_init(struct hasher *h)
{
    must(SHA256_Init(state_of(h)));
}

void hasher_add(struct hasher *h, str bytes)
{
    must(SHA256_Update(state_of(h), bytes.p, bytes.n));
}

struct digest hasher_finish(struct hasher *h)
{
    struct digest d;

    must(SHA256_Final(d.bytes, state_of(h)) && SHA256_Init(state_of(h)));
    return d;
}

static void write_to_hasher(void *ctx, str bytes)
{
    hasher_add(ctx, bytes);
}

struct sink hasher_sink(struct hasher *h)
{
    return (struct sink){ write_to_hasher, h };
}

/* RFC 2104 over the same SHA-256. */
struct digest hmac_of(str key, str bytes)
{
    uint8_t inner[64] = { 0 }, outer[64];
    struct digest folded;
    str parts[2];

    if (key.n > sizeof(inner)) {
        folded = digest_of(key);
        key = digest_str(&folded);
    }
    if (key.n)
        memcpy(inner, key.p, key.n);
    for (size_t i = 0; i < sizeof(inner); i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    parts[0] = str_of(inner, sizeof(inner));
    parts[1] = bytes;
    folded = digest_of_parts(parts, 2);
    parts[0] = str_of(outer, sizeof(outer));
    parts[1] = digest_str(&folded);
    folded = digest_of_parts(parts, 2);
    OPENSSL_cleanse(inner, sizeof(inner));
    OPENSSL_cleanse(outer, sizeof(outer));
    return folded;
}

int secret_key_from_seed(struct secret_key *k, const uint8_t seed[static SEED_SIZE],
                         struct err *err)
{
    struct secret_key made;
    size_t n = PUBLIC_SIZE;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, SEED_SIZE);
    bool good = key && EVP_PKEY_get_raw_public_key(key, made.public_key, &n) == 1;

    EVP_PKEY_free(key);
    if (!good || n != PUBLIC_SIZE)
        return err_set(err, ERR_REFUSED, "OpenSSL cannot use an Ed25519 key");
    memcpy(made.seed, seed, SEED_SIZE);
    *k = made;
    secret_key_release(&made);
    return 0;
}

void secret_key_release(struct secret_key *k)
{
    OPENSSL_cleanse(k, sizeof(*k));
}

int sign(uint8_t out[static SIGNATURE_SIZE], const struct secret_key *k, str message,
         struct err *err)
{
    EVP_PKEY *key =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, k->seed, SEED_SIZE);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t n = SIGNATURE_SIZE;
    bool good = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(ctx, out, &n, (const uint8_t *)message.p, message.n) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return good ? 0 : err_set(err, ERR_REFUSED, "OpenSSL cannot sign");
}

/* The points of small order, every spelling of them, sign bit cleared. A "key" of these
 * verifies signatures that nobody made; OpenSSL accepts it, libsodium and we do not. */
static bool is_small_order(const uint8_t point[static PUBLIC_SIZE])
{
    static const uint8_t points[][PUBLIC_SIZE] = {
        { 0x00 },
        { 0x01 },
        { 0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
          0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
          0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05 },
        { 0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
          0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
          0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a },
        { 0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
        { 0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
        { 0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
    };
    uint8_t masked[PUBLIC_SIZE];

    memcpy(masked, point, sizeof(masked));
    masked[PUBLIC_SIZE - 1] &= 0x7f;
    for (size_t i = 0; i < COUNT(points); i++) {
        if (memcmp(masked, points[i], sizeof(masked)) == 0)
            return true;
    }
    return false;
}

bool signature_valid(const uint8_t signature[static SIGNATURE_SIZE],
                     const uint8_t public_key[static PUBLIC_SIZE], str message)
{
    EVP_PKEY *key =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, PUBLIC_SIZE);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = key && ctx && !is_small_order(public_key) && !is_small_order(signature) &&
                EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, signature, SIGNATURE_SIZE,
                                 (const uint8_t *)message.p, message.n) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return good;
}
