/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define MARKER    ".active_signer"
#define KEY_ENDS  ".key"
#define PUB_ENDS  ".pub"
#define RACES_MAX 3 /* a key that appears and vanishes this often is somebody's doing */

_Static_assert(SEED_SIZE == PUBLIC_SIZE, "both halves are read by read_half()");

int keys_open(struct keys *k, const char *home, struct err *err)
{
    const char *base = home ? home : getenv("ASSAY_HOME");
    struct keys opened = { .dir = "" };
    int n;

    if (base && *base) {
        n = snprintf(opened.home, sizeof(opened.home), "%s", base);
    } else {
        base = getenv("HOME");
        if (!base || !*base)
            return err_set(err, ERR_NOTFOUND,
                           "no place for keys: neither ASSAY_HOME nor HOME is set");
        n = snprintf(opened.home, sizeof(opened.home), "%s/.assay", base);
    }
    if (n < 0 || (size_t)n >= sizeof(opened.home))
        return err_set(err, ERR_LIMIT, "the path of the key directory is too long");
    if (path_join(opened.dir, opened.home, "keys", err) < 0)
        return -1;
    *k = opened;
    return 0;
}

bool keys_id_valid(str id)
{
    if (id.n == 0 || id.n > KEYS_ID_MAX || id.p[0] == '.')
        return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

static int check_id(const char *id, struct err *err)
{
    if (keys_id_valid(str_from(id)))
        return 0;
    return err_set(err, ERR_FORMAT,
                   "'%s' is not a signer id: 1 to %d of A-Z a-z 0-9 . _ - and no dot "
                   "in front",
                   id, KEYS_ID_MAX);
}

static int path_of(char out[static FILE_PATH_MAX], const struct keys *k, const char *id,
                   const char *ending, struct err *err)
{
    char name[KEYS_ID_MAX + sizeof(KEY_ENDS)];

    if (check_id(id, err) < 0)
        return -1;
    snprintf(name, sizeof(name), "%s%s", id, ending);
    return path_join(out, k->dir, name, err);
}

/* Open one of our small files; a link is refused by name. */
static int open_plain(const char *path, struct stat *st, struct err *err)
{
    int fd = file_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, err);

    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_REFUSED, "'%s' is a link, which a key must not be", path);
    if (fd < 0)
        return -1;
    if (fstat(fd, st) < 0) {
        err_errno(err, "cannot look at '%s'", path);
    } else if (!S_ISREG(st->st_mode)) {
        err_set(err, ERR_REFUSED, "'%s' is not a regular file", path);
    } else {
        return fd;
    }
    close(fd);
    return -1;
}

/* 32 raw bytes; `forbidden` are the mode bits that nobody may have given away. */
static int read_half(const char *path, mode_t forbidden, uint8_t out[static SEED_SIZE],
                     struct err *err)
{
    struct stat st;
    CLEANUP(file_close) int fd = open_plain(path, &st, err);

    if (fd < 0)
        return -1;
    if (st.st_mode & forbidden)
        return err_set(
            err, ERR_REFUSED, "'%s' has mode %04o: others could %s it; expected %s", path,
            (unsigned)(st.st_mode & 07777), forbidden & 044 ? "read or change" : "change",
            forbidden & 044 ? "0600" : "0644");
    if (st.st_size != SEED_SIZE)
        return err_set(err, ERR_FORMAT, "'%s' has %lld bytes, a key has %d", path,
                       (long long)st.st_size, SEED_SIZE);
    return file_read_exact(fd, path, out, SEED_SIZE, err);
}

static int make_dir(const struct keys *k, struct err *err)
{
    return file_make_dirs(k->dir, 0700, err) == 0
               ? 0
               : err_wrap(err, "keys cannot be kept in '%s' (ASSAY_HOME moves them)",
                          k->dir);
}

/* Who may write into the directory may replace a key. */
static int check_dir(const struct keys *k, struct err *err)
{
    struct stat st;

    if (stat(k->dir, &st) < 0)
        return err_errno(err, "no key directory '%s'", k->dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_REFUSED, "'%s' is not a directory", k->dir);
    if (st.st_mode & 022)
        return err_set(err, ERR_REFUSED,
                       "'%s' has mode %04o: others could replace a key; expected 0700",
                       k->dir, (unsigned)(st.st_mode & 07777));
    return 0;
}

static int read_secret(const struct keys *k, const char *id, struct secret_key *out,
                       struct err *err)
{
    uint8_t seed[SEED_SIZE];
    char path[FILE_PATH_MAX];
    int r;

    if (path_of(path, k, id, KEY_ENDS, err) < 0 || check_dir(k, err) < 0)
        return -1;
    r = read_half(path, 077, seed, err);
    if (r == 0)
        r = secret_key_from_seed(out, seed, err);
    else if (err->code == ERR_NOTFOUND)
        err_set(err, ERR_NOTFOUND, "there is no key '%s' in '%s'", id, k->dir);
    explicit_bzero(seed, sizeof(seed));
    return r;
}

static int read_public(const struct keys *k, const char *id,
                       uint8_t out[static PUBLIC_SIZE], struct err *err)
{
    char path[FILE_PATH_MAX];

    return path_of(path, k, id, PUB_ENDS, err) < 0 ? -1 : read_half(path, 022, out, err);
}

/* A missing .pub contradicts nothing: a first use may be between its two files. */
static int check_public(const struct keys *k, const char *id,
                        const uint8_t expected[static PUBLIC_SIZE], bool *missing,
                        struct err *err)
{
    uint8_t found[PUBLIC_SIZE];
    struct err why = { .code = ERR_NONE };

    *missing = false;
    if (read_public(k, id, found, &why) < 0) {
        *missing = why.code == ERR_NOTFOUND;
        if (!*missing)
            *err = why;
        return *missing ? 0 : -1;
    }
    if (memcmp(found, expected, PUBLIC_SIZE) != 0)
        return err_set(err, ERR_REFUSED,
                       "'%s.pub' in '%s' is not the public half of '%s.key'", id, k->dir,
                       id);
    return 0;
}

int keys_load(const struct keys *k, const char *id, struct signer *out, struct err *err)
{
    CLEANUP(signer_release) struct signer s = { .id = "" };
    bool missing;

    if (read_secret(k, id, &s.secret, err) < 0 ||
        check_public(k, id, s.secret.public_key, &missing, err) < 0)
        return -1;
    memcpy(s.id, id, strlen(id) + 1);
    *out = s;
    return 0;
}

int keys_load_public(const struct keys *k, const char *id,
                     uint8_t out[static PUBLIC_SIZE], struct err *err)
{
    CLEANUP(secret_key_release) struct secret_key secret = { .seed = { 0 } };
    uint8_t found[PUBLIC_SIZE];
    struct err why = { .code = ERR_NONE };

    if (read_public(k, id, found, &why) == 0) {
        memcpy(out, found, PUBLIC_SIZE);
        return 0;
    }
    if (why.code != ERR_NOTFOUND) {
        *err = why;
        return -1;
    }
    if (read_secret(k, id, &secret, err) < 0)
        return -1;
    memcpy(out, secret.public_key, PUBLIC_SIZE);
    return 0;
}

static int write_public(const struct keys *k, const char *id,
                        const uint8_t public_key[static PUBLIC_SIZE], struct err *err)
{
    struct err why = { .code = ERR_NONE };
    char path[FILE_PATH_MAX];
    bool missing;

    if (path_of(path, k, id, PUB_ENDS, err) < 0)
        return -1;
    if (file_create(path, str_of(public_key, PUBLIC_SIZE), 0644, &why) == 0)
        return 0;
    if (why.code == ERR_EXISTS) /* another process completed the pair */
        return check_public(k, id, public_key, &missing, err);
    *err = why;
    return -1;
}

bool keys_has_secret(const struct keys *k, const char *id)
{
    struct err ignored;
    char path[FILE_PATH_MAX];
    struct stat st;

    return path_of(path, k, id, KEY_ENDS, &ignored) == 0 && lstat(path, &st) == 0;
}

/* The link of the .key decides who was first; the .pub follows from it. So a foreign
 * .pub is a clash only when no key stands beside it: else another process was first. */
static int store(const struct keys *k, const char *id, const struct secret_key *secret,
                 struct err *err)
{
    struct err clash = { .code = ERR_NONE };
    char path[FILE_PATH_MAX];
    bool missing;

    if (path_of(path, k, id, KEY_ENDS, err) < 0 || make_dir(k, err) < 0 ||
        check_dir(k, err) < 0)
        return -1;
    if (check_public(k, id, secret->public_key, &missing, &clash) < 0 &&
        !keys_has_secret(k, id)) {
        *err = clash;
        return -1;
    }
    if (keys_has_secret(k, id))
        return err_set(err, ERR_EXISTS, "there is already a key '%s' in '%s'", id,
                       k->dir);
    if (file_create(path, str_of(secret->seed, SEED_SIZE), 0600, err) < 0)
        return -1;
    return write_public(k, id, secret->public_key, err);
}

int keys_generate(const struct keys *k, const struct entropy *e, const char *id,
                  struct signer *out, struct err *err)
{
    CLEANUP(signer_release) struct signer s = { .id = "" };
    uint8_t seed[SEED_SIZE];
    int r;

    if (check_id(id, err) < 0)
        return -1;
    r = entropy_fill(e, seed, sizeof(seed), err);
    if (r == 0)
        r = secret_key_from_seed(&s.secret, seed, err);
    explicit_bzero(seed, sizeof(seed));
    if (r < 0 || store(k, id, &s.secret, err) < 0)
        return -1;
    memcpy(s.id, id, strlen(id) + 1);
    *out = s;
    return 0;
}

int keys_import(const struct keys *k, const char *id,
                const uint8_t seed[static SEED_SIZE], struct err *err)
{
    CLEANUP(secret_key_release) struct secret_key secret = { .seed = { 0 } };

    return secret_key_from_seed(&secret, seed, err) < 0 ? -1 : store(k, id, &secret, err);
}

/* The id in the marker, "" when there is no marker. */
static int read_marker(const struct keys *k, char id[static KEYS_ID_MAX + 1],
                       struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = KEYS_ID_MAX + 2 };
    struct err why = { .code = ERR_NONE };
    char path[FILE_PATH_MAX];
    struct stat st;
    int fd, r;
    str line;

    id[0] = '\0';
    if (path_join(path, k->dir, MARKER, err) < 0)
        return -1;
    fd = open_plain(path, &st, &why);
    if (fd < 0 && why.code == ERR_NOTFOUND)
        return 0;
    r = fd < 0 ? -1 : file_read_fd(fd, path, &text, &why);
    file_close(&fd);
    if (r < 0) {
        *err = why;
        return -1;
    }
    line = buf_str(&text);
    while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    if (line.n == 0)
        return 0;
    if (!keys_id_valid(line))
        return err_set(err, ERR_FORMAT, "'%s' does not hold a signer id", path);
    memcpy(id, line.p, line.n);
    id[line.n] = '\0';
    return 0;
}

int keys_active(const struct keys *k, char id[static KEYS_ID_MAX + 1], struct err *err)
{
    char marked[KEYS_ID_MAX + 1];
    char first[1][KEYS_ID_MAX + 1];
    int count;

    if (read_marker(k, marked, err) < 0)
        return -1;
    if (!marked[0] || !keys_has_secret(k, marked))
        snprintf(marked, sizeof(marked), "%s", KEYS_DEFAULT_SIGNER);
    if (!keys_has_secret(k, marked)) {
        count = keys_list(k, first, 1, err);
        if (count < 0)
            return -1;
        if (count == 0)
            return err_set(err, ERR_NOTFOUND, "there is no signing key in '%s'", k->dir);
        memcpy(marked, first[0], sizeof(marked));
    }
    memcpy(id, marked, sizeof(marked));
    return 0;
}

/* Load the active signer and give it the .pub that a crash may have left out. */
static int load_active(const struct keys *k, struct signer *out, struct err *err)
{
    char id[KEYS_ID_MAX + 1];
    bool missing;

    if (keys_active(k, id, err) < 0 || keys_load(k, id, out, err) < 0)
        return -1;
    if (check_public(k, id, out->secret.public_key, &missing, err) == 0 &&
        (!missing || write_public(k, id, out->secret.public_key, err) == 0))
        return 0;
    signer_release(out);
    return -1;
}

int keys_active_or_new(const struct keys *k, const struct entropy *e, struct signer *out,
                       bool *created, struct err *err)
{
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct err why = { .code = ERR_NONE };

    for (int i = 0; i < RACES_MAX; i++) {
        bool made = false;
        int r = load_active(k, &s, &why);

        if (r < 0 && why.code == ERR_NOTFOUND) {
            r = keys_generate(k, e, KEYS_DEFAULT_SIGNER, &s, &why);
            made = r == 0;
        }
        if (r == 0) {
            *out = s;
            *created = made;
            return 0;
        }
        if (why.code != ERR_EXISTS) /* else another process was first: load its key */
            break;
    }
    *err = why;
    return -1;
}

int keys_set_active(const struct keys *k, const char *id, struct err *err)
{
    CLEANUP(signer_release) struct signer s = { .id = "" };
    char path[FILE_PATH_MAX];
    char line[KEYS_ID_MAX + 2];

    if (keys_load(k, id, &s, err) < 0 || path_join(path, k->dir, MARKER, err) < 0)
        return -1;
    snprintf(line, sizeof(line), "%s\n", id);
    return file_replace(path, str_from(line), 0600, err);
}

struct listing {
    char (*ids)[KEYS_ID_MAX + 1];
    size_t count;
};

static void listing_release(struct listing *l)
{
    free(l->ids);
    *l = (struct listing){ .ids = NULL };
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct search {
    const struct keys *keys;
    const char *ending;
    struct listing *found;
};

static int add_id(void *ctx, const char *name, struct err *err)
{
    const struct search *s = ctx;
    struct listing *l = s->found;
    str id = str_from(name);

    if (!str_ends(id, str_from(s->ending)))
        return 0;
    id.n -= strlen(s->ending);
    if (!keys_id_valid(id))
        return 0;
    if (l->count == KEYS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d keys in '%s'", KEYS_MAX,
                       s->keys->dir);
    memcpy(l->ids[l->count], id.p, id.n);
    l->ids[l->count++][id.n] = '\0';
    return 0;
}

/* Sorted ids of the files with this ending; a directory that is not there is empty. */
static int list_files(const struct keys *k, const char *ending, struct listing *out,
                      struct err *err)
{
    struct search search = { k, ending, out };
    struct err bad;

    out->ids = calloc(KEYS_MAX, sizeof(*out->ids));
    if (!out->ids)
        return err_set(err, ERR_NOMEM, "no memory to list keys");
    if (file_each(k->dir, add_id, &search, &bad) < 0 && bad.code != ERR_NOTFOUND) {
        *err = bad;
        return -1;
    }
    qsort(out->ids, out->count, sizeof(*out->ids), compare_ids);
    return 0;
}

int keys_list(const struct keys *k, char (*ids)[KEYS_ID_MAX + 1], size_t max,
              struct err *err)
{
    CLEANUP(listing_release) struct listing all = { .ids = NULL };
    size_t count;

    if (list_files(k, KEY_ENDS, &all, err) < 0)
        return -1;
    count = all.count < max ? all.count : max;
    if (count)
        memcpy(ids, all.ids, count * sizeof(*ids));
    return (int)count;
}

/* A half that cannot be read makes its signer unknown, and nobody else. */
static bool find_among(const struct keys *k, const struct listing *l,
                       const uint8_t public_key[static PUBLIC_SIZE], size_t *at)
{
    uint8_t found[PUBLIC_SIZE];
    struct err ignored;

    for (*at = 0; *at < l->count; (*at)++) {
        if (keys_load_public(k, l->ids[*at], found, &ignored) == 0 &&
            memcmp(found, public_key, PUBLIC_SIZE) == 0)
            return true;
    }
    return false;
}

int keys_find_public(const struct keys *k, const uint8_t public_key[static PUBLIC_SIZE],
                     char id[static KEYS_ID_MAX + 1], struct err *err)
{
    static const char *const endings[] = { KEY_ENDS, PUB_ENDS };

    for (size_t i = 0; i < COUNT(endings); i++) {
        CLEANUP(listing_release) struct listing all = { .ids = NULL };
        size_t at;

        if (list_files(k, endings[i], &all, err) < 0)
            return -1;
        if (find_among(k, &all, public_key, &at)) {
            memcpy(id, all.ids[at], KEYS_ID_MAX + 1);
            return 0;
        }
    }
    return err_set(err, ERR_NOTFOUND, "no signer in '%s' has this public key", k->dir);
}

void signer_release(struct signer *s)
{
    explicit_bzero(s, sizeof(*s));
}
