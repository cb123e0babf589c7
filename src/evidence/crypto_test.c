/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/crypto.h"

#include <pthread.h>

#include "base/codec.h"
#include "base/err.h"
#include "tests/tap.h"

static bool is_hex(const struct digest *d, const char *hex)
{
    char text[2 * DIGEST_SIZE];

    digest_hex(text, d);
    return str_is(str_of(text, sizeof(text)), hex);
}

/* FIPS 180-4 examples, and lengths around the block, by Python's hashlib. */
static const struct {
    const char *what;
    const char *part;
    unsigned times;
    const char *hex;
} hashes[] = {
    { "nothing", "", 1,
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "abc", 1,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "a million a", "aaaaaaaaaa", 100000,
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
    { "55 bytes", "a", 55,
      "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
    { "56 bytes", "a", 56,
      "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
    { "64 bytes", "a", 64,
      "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
    { "65 bytes", "a", 65,
      "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
};

static void test_sha256(void)
{
    struct hasher h;
    struct sink sink;

    hasher_init(&h);
    sink = hasher_sink(&h);
    for (size_t i = 0; i < COUNT(hashes); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };
        struct digest whole, streamed, parted;
        str parts[3];

        for (unsigned k = 0; k < hashes[i].times; k++) {
            buf_add(&b, str_from(hashes[i].part));
            sink_write(&sink, str_from(hashes[i].part));
        }
        whole = digest_of(buf_str(&b));
        streamed = hasher_finish(&h);
        parts[0] = str_first(buf_str(&b), 1);
        parts[1] = (str){ NULL, 0 };
        parts[2] = str_skip(buf_str(&b), 1);
        parted = digest_of_parts(parts, COUNT(parts));
        ok(is_hex(&whole, hashes[i].hex) && digest_equal(&whole, &streamed) &&
               digest_equal(&whole, &parted),
           "SHA-256 of %s: whole, streamed and in parts", hashes[i].what);
    }
}

static void test_digest_text(void)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct digest d = digest_of(STR("abc")), other;

    digest_add_tagged(&b, &d);
    ok(str_is(buf_str(&b),
              "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
       "a digest is tagged");
    ok(digest_from_hex(&other, str_skip(buf_str(&b), 7)) && digest_equal(&d, &other),
       "and read back");
    ok(!digest_from_hex(&other, str_skip(buf_str(&b), 8)) &&
           !digest_from_hex(&other, str_skip(buf_str(&b), 6)),
       "a digit too few or too many is none");
    other = d;
    other.bytes[DIGEST_SIZE - 1] ^= 1;
    ok(!digest_equal(&d, &other), "one bit makes another digest");
}

/* RFC 4231 cases 1 to 4, 6, 7; the last three by Python's hmac. */
static void test_hmac(void)
{
    static const struct {
        const char *what;
        int key_byte; /* repeated; -1: the text, -2: 01 02 03 … */
        size_t key_size;
        const char *key;
        int data_byte; /* -1: the text */
        size_t data_size;
        const char *data;
        const char *hex;
    } rows[] = {
        { "RFC 4231 1", 0x0b, 20, "", -1, 0, "Hi There",
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { "RFC 4231 2", -1, 0, "Jefe", -1, 0, "what do ya want for nothing?",
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { "RFC 4231 3", 0xaa, 20, "", 0xdd, 50, "",
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
        { "RFC 4231 4", -2, 25, "", 0xcd, 50, "",
          "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
        { "RFC 4231 6", 0xaa, 131, "", -1, 0,
          "Test Using Larger Than Block-Size Key - Hash Key First",
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        { "RFC 4231 7", 0xaa, 131, "", -1, 0,
          "This is a test using a larger than block-size key and a larger than "
          "block-size data. The key needs to be hashed before being used by the HMAC "
          "algorithm.",
          "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
        { "a key of one block", 0xaa, 64, "", -1, 0, "x",
          "ce3c639dcb9d8baae5d44c3b8b5e233faab4d1860e07489af5c84f213998bd79" },
        { "a key one byte longer", 0xaa, 65, "", -1, 0, "x",
          "c2b9a0a013df029c7d812c5ac18388feef0194ee64fcc5f321d149c06137caa3" },
        { "no key and no data", -1, 0, "", -1, 0, "",
          "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf key = { 0 };
        CLEANUP(buf_release) struct buf data = { 0 };
        struct digest d;

        buf_add(&key, str_from(rows[i].key));
        for (size_t k = 0; k < rows[i].key_size; k++)
            buf_add_char(&key,
                         (char)(rows[i].key_byte == -2 ? (int)k + 1 : rows[i].key_byte));
        buf_add(&data, str_from(rows[i].data));
        for (size_t k = 0; k < rows[i].data_size; k++)
            buf_add_char(&data, (char)rows[i].data_byte);
        d = hmac_of(buf_str(&key), buf_str(&data));
        ok(is_hex(&d, rows[i].hex), "HMAC: %s", rows[i].what);
    }
}

/* RFC 8032 §7.1, tests 1, 2, 3 and SHA(abc). */
static const struct {
    const char *seed, *public_key, *message, *signature;
} keys[] = {
    { "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
      "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b" },
    { "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00" },
    { "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
      "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
      "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a" },
    { "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
      "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
      "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
      "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
      "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704" },
};

static void test_ed25519(void)
{
    for (size_t i = 0; i < COUNT(keys); i++) {
        CLEANUP(secret_key_release) struct secret_key k = { 0 };
        uint8_t seed[SEED_SIZE], public_key[PUBLIC_SIZE], want[SIGNATURE_SIZE];
        uint8_t text[64], made[SIGNATURE_SIZE];
        str message = str_of(text, strlen(keys[i].message) / 2);
        struct err err = { 0 };

        ok(hex_decode(seed, sizeof(seed), str_from(keys[i].seed)) &&
               hex_decode(public_key, sizeof(public_key), str_from(keys[i].public_key)) &&
               hex_decode(want, sizeof(want), str_from(keys[i].signature)) &&
               hex_decode(text, message.n, str_from(keys[i].message)),
           "RFC 8032 vector %zu", i + 1);
        ok(secret_key_from_seed(&k, seed, &err) == 0 &&
               memcmp(k.public_key, public_key, PUBLIC_SIZE) == 0,
           "its public key");
        ok(sign(made, &k, message, &err) == 0 && memcmp(made, want, sizeof(want)) == 0,
           "its signature");
        ok(signature_valid(want, public_key, message) &&
               !signature_valid(want, seed, message) &&
               !signature_valid(want, public_key, STR("another message")),
           "verifies, and not with another key or message");
    }
}

static void test_signatures_that_are_none(void)
{
    static const char *const bad[][2] = {
        { "the same plus the group's order",
          "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
          "4c8c7872aa064e049dbb3013fbf29380d25bf5f0595bbe24655141438e7a101b" },
        { "another R",
          "e4564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
          "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b" },
        { "zeros", "0000000000000000000000000000000000000000000000000000000000000000"
                   "0000000000000000000000000000000000000000000000000000000000000000" },
    };
    uint8_t public_key[PUBLIC_SIZE], signature[SIGNATURE_SIZE], no_point[PUBLIC_SIZE];

    memset(no_point, 0xff, sizeof(no_point));
    if (!hex_decode(public_key, sizeof(public_key), str_from(keys[0].public_key)))
        ok(false, "the key is not hex");
    for (size_t i = 0; i < COUNT(bad); i++)
        ok(hex_decode(signature, sizeof(signature), str_from(bad[i][1])) &&
               !signature_valid(signature, public_key, STR("")),
           "no signature: %s", bad[i][0]);
    ok(hex_decode(signature, sizeof(signature), str_from(keys[0].signature)) &&
           signature_valid(signature, public_key, (str){ NULL, 0 }) &&
           !signature_valid(signature, no_point, STR("")),
       "a key that is no point of the curve");
}

/* The neutral point as key and as R, S = 0: OpenSSL says yes to every message. */
static void test_a_key_without_a_secret_signs_nothing(void)
{
    uint8_t public_key[PUBLIC_SIZE] = { 1 }, signature[SIGNATURE_SIZE] = { 1 };

    ok(!signature_valid(signature, public_key, STR("anything")), "a point of order 1");
    public_key[PUBLIC_SIZE - 1] = 0x80;
    ok(!signature_valid(signature, public_key, STR("anything")), "with its sign bit set");
}

static void test_a_released_key_is_wiped(void)
{
    static const struct secret_key zero;
    struct secret_key k = { 0 };
    uint8_t seed[SEED_SIZE] = { 1 };
    struct err err = { 0 };

    ok(secret_key_from_seed(&k, seed, &err) == 0, "a key");
    secret_key_release(&k);
    ok(memcmp(&k, &zero, sizeof(k)) == 0, "is wiped");
}

static void *hash_much(void *arg)
{
    struct digest *d = arg;

    for (int i = 0; i < 20000; i++)
        *d = digest_of(digest_str(d));
    return NULL;
}

static void test_threads_hash_at_once(void)
{
    pthread_t threads[8];
    struct digest d[9] = { 0 };
    bool same = true;

    for (size_t i = 0; i < COUNT(threads); i++)
        same = same && pthread_create(&threads[i], NULL, hash_much, &d[i]) == 0;
    hash_much(&d[8]);
    for (size_t i = 0; i < COUNT(threads); i++)
        same = same && pthread_join(threads[i], NULL) == 0 && digest_equal(&d[i], &d[8]);
    ok(same, "eight threads hash at once and agree");
}

int main(void)
{
    test_sha256();
    test_digest_text();
    test_hmac();
    test_ed25519();
    test_signatures_that_are_none();
    test_a_key_without_a_secret_signs_nothing();
    test_a_released_key_is_wiped();
    test_threads_hash_at_once();
    return tap_done();
}
