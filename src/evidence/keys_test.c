/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/err.h"
#include "tests/tap.h"

/* RFC 8032 §7.1, test 1. */
#define SEED_HEX   "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define PUBLIC_HEX "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

static char root[512];
static int homes;

/* A fresh home; nothing is in it. */
static struct keys fresh(void)
{
    struct keys k;
    struct err err = { .code = ERR_NONE };
    char home[FILE_PATH_MAX];

    snprintf(home, sizeof(home), "%s/home-%d", root, ++homes);
    if (keys_open(&k, home, &err) < 0)
        abort();
    return k;
}

static const char *in_dir(const struct keys *k, const char *name)
{
    static char path[2 * FILE_PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", k->dir, name);
    return path;
}

static void put(const struct keys *k, const char *name, const char *bytes, size_t n,
                mode_t mode)
{
    struct err err;

    if (file_make_dirs(k->dir, 0700, &err) < 0 ||
        file_replace(in_dir(k, name), str_of(bytes, n), mode, &err) < 0)
        abort();
}

static struct keys with_rfc_key(const char *id)
{
    struct keys k = fresh();
    uint8_t seed[SEED_SIZE];
    struct err err = { .code = ERR_NONE };

    ok(hex_decode(seed, sizeof(seed), STR(SEED_HEX)) &&
           keys_import(&k, id, seed, &err) == 0,
       "import '%s' %s", id, err.msg);
    return k;
}

static mode_t mode_of(const struct keys *k, const char *name)
{
    struct stat st;

    return lstat(in_dir(k, name), &st) < 0 ? 0 : st.st_mode & 07777;
}

static void test_place_of_the_keys(void)
{
    struct keys k;
    struct err err = { .code = ERR_NONE };
    char longest[FILE_PATH_MAX + 1];

    setenv("ASSAY_HOME", "/tmp/elsewhere", 1);
    setenv("HOME", "/tmp/me", 1);
    ok(keys_open(&k, NULL, &err) == 0 && str_is(str_from(k.dir), "/tmp/elsewhere/keys"),
       "ASSAY_HOME moves the home");
    ok(keys_open(&k, "/given", &err) == 0 && str_is(str_from(k.dir), "/given/keys"),
       "a home that is handed in wins");
    setenv("ASSAY_HOME", "", 1);
    ok(keys_open(&k, NULL, &err) == 0 && str_is(str_from(k.dir), "/tmp/me/.assay/keys"),
       "an empty ASSAY_HOME is none");
    unsetenv("HOME");
    ok(keys_open(&k, NULL, &err) < 0 && err.code == ERR_NOTFOUND, "no home: %s", err.msg);
    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    ok(keys_open(&k, longest, &err) < 0 && err.code == ERR_LIMIT, "too long: %s",
       err.msg);
}

static void test_ids(void)
{
    static const struct {
        const char *id;
        bool valid;
    } cases[] = {
        { "assay-local", true },
        { "A.b_c-9", true },
        { "x", true },
        { "-x", true },
        { "a..b", true },
        { "", false },
        { ".x", false },
        { "..", false },
        { "a/b", false },
        { "a b", false },
        { "\xc3\xa4", false },
        { "a\n", false },
        { "0123456789012345678901234567890123456789012345678901234567890123", true },
        { "01234567890123456789012345678901234567890123456789012345678901234", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ok(keys_id_valid(str_from(cases[i].id)) == cases[i].valid, "id %zu is %s", i,
           cases[i].valid ? "good" : "refused");
    ok(!keys_id_valid(str_of("a\0b", 3)), "a NUL inside is refused");
}

static void test_import_keeps_the_raw_halves(void)
{
    struct keys k = with_rfc_key("rfc");
    CLEANUP(buf_release) struct buf text = { .max = 1024 };
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct err err = { .code = ERR_NONE };
    uint8_t want[PUBLIC_SIZE], got[PUBLIC_SIZE];
    struct stat st;

    ok(hex_decode(want, sizeof(want), STR(PUBLIC_HEX)) &&
           file_read(in_dir(&k, "rfc.pub"), &text, &err) == 0 &&
           str_equal(buf_str(&text), str_of(want, sizeof(want))),
       "the .pub holds the public key of RFC 8032, raw");
    ok(keys_load(&k, "rfc", &s, &err) == 0 && str_is(str_from(s.id), "rfc") &&
           memcmp(s.secret.public_key, want, PUBLIC_SIZE) == 0,
       "it loads %s", err.msg);
    ok(keys_load_public(&k, "rfc", got, &err) == 0 && memcmp(got, want, PUBLIC_SIZE) == 0,
       "and so does its public half");
    ok(mode_of(&k, "rfc.key") == 0600 && mode_of(&k, "rfc.pub") == 0644,
       "modes 0600 and 0644 under umask 0");
    ok(stat(k.dir, &st) == 0 && (st.st_mode & 07777) == 0700, "directory 0700");
    ok(keys_import(&k, "rfc", want, &err) < 0 && err.code == ERR_EXISTS, "taken: %s",
       err.msg);
    ok(keys_load(&k, "other", &s, &err) < 0 && err.code == ERR_NOTFOUND, "unknown: %s",
       err.msg);
    ok(keys_load(&k, "../x", &s, &err) < 0 && err.code == ERR_FORMAT, "no path: %s",
       err.msg);
}

/* What is done to a good pair, and what loading it must then say. */
static void spoil_mode(const struct keys *k)
{
    chmod(in_dir(k, "s.key"), 0640);
}
static void spoil_other_mode(const struct keys *k)
{
    chmod(in_dir(k, "s.key"), 0604);
}
static void spoil_writable(const struct keys *k)
{
    chmod(in_dir(k, "s.key"), 0620);
}
static void spoil_short(const struct keys *k)
{
    put(k, "s.key", "0123456789012345678901234567890", 31, 0600);
}
static void spoil_long(const struct keys *k)
{
    put(k, "s.key", "012345678901234567890123456789012", 33, 0600);
}
static void spoil_empty(const struct keys *k)
{
    put(k, "s.key", "", 0, 0600);
}
static void spoil_link(const struct keys *k)
{
    char from[2 * FILE_PATH_MAX];

    snprintf(from, sizeof(from), "%s/moved", k->dir);
    if (rename(in_dir(k, "s.key"), from) < 0 || symlink(from, in_dir(k, "s.key")) < 0)
        abort();
}
static void spoil_fifo(const struct keys *k)
{
    if (unlink(in_dir(k, "s.key")) < 0 || mkfifo(in_dir(k, "s.key"), 0600) < 0)
        abort();
}
static void spoil_directory(const struct keys *k)
{
    if (unlink(in_dir(k, "s.key")) < 0 || mkdir(in_dir(k, "s.key"), 0700) < 0)
        abort();
}
static void spoil_pair(const struct keys *k)
{
    put(k, "s.pub", "01234567890123456789012345678901", 32, 0644);
}
static void spoil_pub_short(const struct keys *k)
{
    put(k, "s.pub", "x", 1, 0644);
}
static void spoil_pub_mode(const struct keys *k)
{
    chmod(in_dir(k, "s.pub"), 0664);
}
static void spoil_pub_link(const struct keys *k)
{
    if (unlink(in_dir(k, "s.pub")) < 0 || symlink("s.key", in_dir(k, "s.pub")) < 0)
        abort();
}
static void spoil_dir_mode(const struct keys *k)
{
    chmod(k->dir, 0770);
}

static void test_what_is_not_a_private_key_is_refused(void)
{
    static const struct {
        const char *what;
        void (*spoil)(const struct keys *k);
        enum err_code code;
    } cases[] = {
        { "readable by the group", spoil_mode, ERR_REFUSED },
        { "readable by all", spoil_other_mode, ERR_REFUSED },
        { "writable by the group", spoil_writable, ERR_REFUSED },
        { "31 bytes", spoil_short, ERR_FORMAT },
        { "33 bytes", spoil_long, ERR_FORMAT },
        { "empty", spoil_empty, ERR_FORMAT },
        { "a link", spoil_link, ERR_REFUSED },
        { "a fifo", spoil_fifo, ERR_REFUSED },
        { "a directory", spoil_directory, ERR_REFUSED },
        { ".pub of another key", spoil_pair, ERR_REFUSED },
        { ".pub of one byte", spoil_pub_short, ERR_FORMAT },
        { ".pub that others can change", spoil_pub_mode, ERR_REFUSED },
        { ".pub that is a link", spoil_pub_link, ERR_REFUSED },
        { "directory that others can change", spoil_dir_mode, ERR_REFUSED },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct keys k = with_rfc_key("s");
        struct signer s = { .id = "untouched" };
        struct err err = { .code = ERR_NONE };
        bool created;

        cases[i].spoil(&k);
        ok(keys_load(&k, "s", &s, &err) < 0 && err.code == cases[i].code &&
               str_is(str_from(s.id), "untouched"),
           "%s: %s", cases[i].what, err.msg);
        ok(keys_active_or_new(&k, &entropy_system, &s, &created, &err) < 0 &&
               mode_of(&k, "assay-local.key") == 0,
           "%s: no new key is made behind its back", cases[i].what);
    }
}

static void test_missing_pub_is_derived_and_completed(void)
{
    struct keys k = with_rfc_key("assay-local");
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct err err = { .code = ERR_NONE };
    uint8_t want[PUBLIC_SIZE], got[PUBLIC_SIZE];
    bool created = true;

    unlink(in_dir(&k, "assay-local.pub"));
    ok(hex_decode(want, sizeof(want), STR(PUBLIC_HEX)) &&
           keys_load_public(&k, "assay-local", got, &err) == 0 &&
           memcmp(got, want, PUBLIC_SIZE) == 0,
       "the public half follows from the secret");
    ok(keys_active_or_new(&k, &entropy_system, &s, &created, &err) == 0 && !created &&
           mode_of(&k, "assay-local.pub") == 0644,
       "the next use writes it %s", err.msg);
}

static void test_orphan_pub_is_not_taken_over(void)
{
    struct keys k = fresh();
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct err err = { .code = ERR_NONE };
    bool created;

    put(&k, "assay-local.pub", "01234567890123456789012345678901", 32, 0644);
    ok(keys_active_or_new(&k, &entropy_system, &s, &created, &err) < 0 &&
           mode_of(&k, "assay-local.key") == 0,
       "a .pub without its key: %s", err.msg);
}

static void test_active_signer(void)
{
    struct keys k = fresh();
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct err err = { .code = ERR_NONE };
    char id[KEYS_ID_MAX + 1] = "";

    ok(keys_active(&k, id, &err) < 0 && err.code == ERR_NOTFOUND, "none: %s", err.msg);
    ok(keys_generate(&k, &entropy_system, "zebra", &s, &err) == 0 &&
           keys_generate(&k, &entropy_system, "bee", &s, &err) == 0 &&
           keys_active(&k, id, &err) == 0 && str_is(str_from(id), "bee"),
       "without marker and default: the first by name");
    ok(keys_generate(&k, &entropy_system, "assay-local", &s, &err) == 0 &&
           keys_active(&k, id, &err) == 0 && str_is(str_from(id), "assay-local"),
       "then the default");
    ok(keys_set_active(&k, "zebra", &err) == 0 && keys_active(&k, id, &err) == 0 &&
           str_is(str_from(id), "zebra"),
       "then what the marker names");
    ok(keys_set_active(&k, "nobody", &err) < 0 && err.code == ERR_NOTFOUND, "not: %s",
       err.msg);
    unlink(in_dir(&k, "zebra.key"));
    ok(keys_active(&k, id, &err) == 0 && str_is(str_from(id), "assay-local"),
       "a marker without its key counts as none");
    put(&k, ".active_signer", "bee", 3, 0600);
    ok(keys_active(&k, id, &err) == 0 && str_is(str_from(id), "bee"),
       "a marker needs no newline");
    put(&k, ".active_signer", "\n", 1, 0600);
    ok(keys_active(&k, id, &err) == 0 && str_is(str_from(id), "assay-local"),
       "an empty marker counts as none");
    put(&k, ".active_signer", "../../x\n", 8, 0600);
    ok(keys_active(&k, id, &err) < 0 && err.code == ERR_FORMAT, "no id: %s", err.msg);
}

static void test_list_is_sorted_and_bounded(void)
{
    struct keys k = fresh();
    char ids[3][KEYS_ID_MAX + 1];
    struct err err = { .code = ERR_NONE };

    ok(keys_list(&k, ids, 3, &err) == 0, "no directory, no keys");
    put(&k, "b.key", "", 0, 0600);
    put(&k, "c.key", "", 0, 0600);
    put(&k, "a.key", "", 0, 0600);
    put(&k, ".hidden.key", "", 0, 0600);
    put(&k, "d.pub", "", 0, 0600);
    put(&k, "e.key.tmp-abc123", "", 0, 0600);
    ok(keys_list(&k, ids, 3, &err) == 3 && str_is(str_from(ids[0]), "a") &&
           str_is(str_from(ids[2]), "c"),
       "three keys by name");
    ok(keys_list(&k, ids, 2, &err) == 2 && str_is(str_from(ids[1]), "b"),
       "the first two when only two are asked for");
    for (int i = 3; i < KEYS_MAX; i++) {
        char name[32];

        snprintf(name, sizeof(name), "n%d.key", i);
        close(open(in_dir(&k, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    ok(keys_list(&k, ids, 3, &err) == 3, "%d keys can be listed", KEYS_MAX);
    put(&k, "one-more.key", "", 0, 0600);
    ok(keys_list(&k, ids, 3, &err) < 0 && err.code == ERR_LIMIT, "one more: %s", err.msg);
}

static void test_find_by_public_key(void)
{
    struct keys k = with_rfc_key("rfc");
    struct err err = { .code = ERR_NONE };
    uint8_t other[PUBLIC_SIZE];
    uint8_t wanted[PUBLIC_SIZE];
    char id[KEYS_ID_MAX + 1] = "";

    memset(other, '7', sizeof(other));
    put(&k, "aaa.pub", "x", 1, 0644);
    ok(hex_decode(wanted, sizeof(wanted), STR(PUBLIC_HEX)) &&
           keys_find_public(&k, wanted, id, &err) == 0 && str_is(str_from(id), "rfc"),
       "found beside a broken one");
    ok(keys_find_public(&k, other, id, &err) < 0 && err.code == ERR_NOTFOUND,
       "unknown: %s", err.msg);
    put(&k, "colleague.pub", "77777777777777777777777777777777", 32, 0644);
    ok(keys_find_public(&k, other, id, &err) == 0 && str_is(str_from(id), "colleague"),
       "a .pub alone makes its signer known");
    ok(!keys_has_secret(&k, "colleague") && keys_has_secret(&k, "rfc") &&
           !keys_has_secret(&k, "nobody"),
       "and not one of ours");
}

#define RACERS 8
#define ROUNDS 10

struct outcome {
    bool good, created;
    uint8_t public_key[PUBLIC_SIZE];
};

static void race(const struct keys *k, int start, int result)
{
    struct signer s = { .id = "" };
    struct outcome o = { .good = false };
    struct err err = { .code = ERR_NONE };
    char go;

    if (read(start, &go, 1) == 0) /* the end of the pipe is the starting shot */
        o.good = keys_active_or_new(k, &entropy_system, &s, &o.created, &err) == 0;
    memcpy(o.public_key, s.secret.public_key, PUBLIC_SIZE);
    _exit(write(result, &o, sizeof(o)) == sizeof(o) ? 0 : 1);
}

/* True when any file of a secret can be seen by others, now. */
static bool secret_is_exposed(const struct keys *k)
{
    DIR *dir = opendir(k->dir);
    struct dirent *entry;
    bool exposed = false;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (strstr(entry->d_name, ".key") &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            exposed |= (st.st_mode & 077) != 0;
    }
    if (dir)
        closedir(dir);
    return exposed;
}

static void collect(int result, int *good, int *created, bool *same)
{
    struct outcome first, o;

    *same = true;
    for (int i = 0; i < RACERS; i++) {
        if (read(result, i ? &o : &first, sizeof(o)) != sizeof(o))
            return;
        if (i == 0)
            o = first;
        *good += o.good;
        *created += o.created;
        *same &= memcmp(o.public_key, first.public_key, PUBLIC_SIZE) == 0;
    }
}

static void test_eight_first_uses_make_one_key(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct keys k = fresh();
        int start[2], result[2], good = 0, created = 0, status;
        bool same = false, exposed = false;

        if (pipe(start) < 0 || pipe(result) < 0)
            abort();
        fflush(stdout);
        for (int i = 0; i < RACERS; i++) {
            if (fork() == 0) {
                close(start[1]);
                race(&k, start[0], result[1]);
            }
        }
        close(start[0]);
        close(start[1]);
        for (int i = 0; i < RACERS;) {
            exposed |= secret_is_exposed(&k);
            i += waitpid(-1, &status, WNOHANG) > 0;
        }
        collect(result[0], &good, &created, &same);
        close(result[0]);
        close(result[1]);
        ok(good == RACERS && created == 1 && same && !exposed,
           "round %d: %d of %d have the key, %d made it", round, good, RACERS, created);
    }
}

static void test_release_wipes(void)
{
    struct keys k = with_rfc_key("w");
    struct signer s = { .id = "" }, zero;
    struct err err = { .code = ERR_NONE };

    memset(&zero, 0, sizeof(zero));
    ok(keys_load(&k, "w", &s, &err) == 0 && memcmp(&s, &zero, sizeof(s)) != 0, "loaded");
    signer_release(&s);
    ok(memcmp(&s, &zero, sizeof(s)) == 0, "nothing of the secret is left");
    signer_release(&s);
}

static int no_entropy(void *ctx, void *out, size_t n, struct err *err)
{
    (void)ctx;
    (void)out;
    (void)n;
    return err_set(err, ERR_IO, "no random bytes");
}

static void test_no_entropy_no_key(void)
{
    const struct entropy broken = { no_entropy, NULL };
    struct keys k = fresh();
    struct signer s = { .id = "" };
    struct err err = { .code = ERR_NONE };
    bool created;

    ok(keys_active_or_new(&k, &broken, &s, &created, &err) < 0 &&
           mode_of(&k, "assay-local.key") == 0,
       "refused: %s", err.msg);
}

int main(void)
{
    struct err err = { .code = ERR_NONE };
    const char *tmp = getenv("TMPDIR");

    umask(0);
    snprintf(root, sizeof(root), "%s/assay-keys-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(root)) {
        ok(false, "mkdtemp");
        return tap_done();
    }
    test_place_of_the_keys();
    test_ids();
    test_import_keeps_the_raw_halves();
    test_what_is_not_a_private_key_is_refused();
    test_missing_pub_is_derived_and_completed();
    test_orphan_pub_is_not_taken_over();
    test_active_signer();
    test_list_is_sorted_and_bounded();
    test_find_by_public_key();
    test_eight_first_uses_make_one_key();
    test_release_wipes();
    test_no_entropy_no_key();
    ok(file_remove_tree(root, &err) == 0, "clean up %s", err.msg);
    return tap_done();
}
