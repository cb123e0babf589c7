/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/key_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"

#define KEY_TEXT_MAX 64 /* 44 digits of base64 and an end of line fit */

/* Base64 text as `key export --secret` writes it, or the 32 raw bytes of a .key. */
static int decode_seed(const char *name, str text, uint8_t seed[static SEED_SIZE],
                       struct err *err)
{
    if (text.n == SEED_SIZE) {
        memcpy(seed, text.p, SEED_SIZE);
        return 0;
    }
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    if (base64_decode_exact(seed, SEED_SIZE, text))
        return 0;
    return err_set(err, ERR_FORMAT, "'%s' is neither base64 of %d bytes nor %d raw bytes",
                   name, SEED_SIZE, SEED_SIZE);
}

int key_file_read(const char *path, uint8_t seed[static SEED_SIZE], struct err *err)
{
    struct buf text = { .max = KEY_TEXT_MAX };
    int r = strcmp(path, "-") == 0 ? file_read_fd(STDIN_FILENO, "stdin", &text, err)
                                   : file_read(path, &text, err);

    if (r == 0)
        r = decode_seed(path, buf_str(&text), seed, err);
    if (text.p)
        explicit_bzero(text.p, text.cap);
    buf_release(&text);
    return r;
}

/* "dir/alice.key.b64" names the signer 'alice'. */
int key_file_id_from_path(const char *path, char out[static KEYS_ID_MAX + 1],
                          struct err *err)
{
    const char *slash = strrchr(path, '/');
    str name = str_from(slash ? slash + 1 : path);

    if (str_ends(name, STR(".b64")))
        name.n -= 4;
    if (!str_ends(name, STR(".key")) || !keys_id_valid(str_first(name, name.n - 4)))
        return strcmp(path, "-") != 0 && access(path, F_OK) < 0
                   ? err_errno(err, "cannot open '%s'", path)
                   : err_set(err, ERR_FORMAT, "'%s' does not name a signer: give an ID",
                             path);
    memcpy(out, name.p, name.n - 4);
    out[name.n - 4] = '\0';
    return 0;
}

/* Both halves of a key are 32 bytes: what is published must not become a secret. */
int key_file_refuse_public_name(const char *path, struct err *err)
{
    str name = str_from(path);

    if (!str_ends(name, STR(".pub")) && !str_ends(name, STR(".pub.b64")))
        return 0;
    return err_set(err, ERR_FORMAT,
                   "'%s' is a public key; a secret one is needed: the .key.b64 that "
                   "`assay key export --secret` writes, or a .key",
                   path);
}

int key_file_refuse_public_key(const struct keys *k, const char *path,
                               const uint8_t seed[static SEED_SIZE], struct err *err)
{
    char id[KEYS_ID_MAX + 1];
    struct err unknown;

    if (keys_find_public(k, seed, id, &unknown) < 0)
        return 0;
    return err_set(err, ERR_FORMAT,
                   "'%s' holds the public key of '%s'; a secret one is needed: the "
                   ".key.b64 that `assay key export --secret` writes, or a .key",
                   path, id);
}
