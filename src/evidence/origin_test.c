/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/origin.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/lab.h"
#include "tests/tap.h"

/* In one write, which those of others cannot fall into. */
struct first_start {
    struct origin origin;
    bool new_key;
};

_Static_assert(sizeof(struct first_start) <= PIPE_BUF, "a pipe takes it whole");

/* The first start of many processes at once: wait for the shot, then report the origin
 * over the pipe. */
static void start_one(const struct lab *l, int shot, int report)
{
    struct first_start s = { 0 };
    struct err err = { 0 };
    char c;

    if (read(shot, &c, 1) < 0 ||
        origin_read_or_new(&s.origin, l->audit, &l->keys, &entropy_system, 0600,
                           &s.new_key, &err) < 0)
        fprintf(stderr, "# %s\n", err.msg);
    _exit(write(report, &s, sizeof(s)) != sizeof(s));
}

static void test_eight_first_starts(void)
{
    struct lab l = lab_make();
    struct first_start first = { 0 }, s;
    struct err err = { 0 };
    int shot[2], report[2], agree = 0, keys = 0, ended = 0;

    if (file_make_dirs(l.audit, 0700, &err) < 0 || pipe(shot) < 0 || pipe(report) < 0)
        exit(99);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            close(shot[1]);
            start_one(&l, shot[0], report[1]);
        }
    }
    close(shot[0]);
    close(shot[1]); /* the shot: all reads return at once */
    for (int i = 0; i < 8; i++) {
        int status;

        if (wait(&status) > 0 && status == 0)
            ended++;
    }
    for (int i = 0; i < ended; i++) {
        if (read(report[0], &s, sizeof(s)) != sizeof(s))
            break;
        if (i == 0)
            first = s;
        agree += s.origin.count == 1 && strcmp(s.origin.name, first.origin.name) == 0 &&
                 note_key_equal(&s.origin.keys[0], &first.origin.keys[0]);
        keys += s.new_key;
    }
    close(report[0]);
    close(report[1]);
    ok(agree == 8, "eight first starts agree on %s", first.origin.name);
    ok(keys <= 1, "at most one says that it made the key");
    ok(strncmp(first.origin.name, ORIGIN_PREFIX, strlen(ORIGIN_PREFIX)) == 0 &&
           strlen(first.origin.name) == strlen(ORIGIN_PREFIX) + ID_HEX,
       "of the form assay.local/<16 hex>");
    lab_remove(&l);
}

/* A vkey line of `name` for a key that follows from `number`. */
static struct note_key key_of(const char *name, uint8_t number)
{
    uint8_t public_key[PUBLIC_SIZE];
    struct note_key k = { .id = { 0 } };
    struct err err = { 0 };

    memset(public_key, number, sizeof(public_key));
    if (note_key_make(&k, str_from(name), public_key, &err) < 0)
        ok(false, "%s", err.msg);
    return k;
}

static void put_keys(const struct lab *l, unsigned count, const char *last_name,
                     const char *tail)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };

    for (unsigned i = 0; i < count; i++) {
        struct note_key k =
            key_of(i + 1 == count ? last_name : "assay.local/a", (uint8_t)(i + 1));

        note_key_add(&text, &k);
        buf_add_char(&text, '\n');
    }
    buf_add(&text, str_from(tail));
    if (file_make_dirs(l->audit, 0700, &err) < 0 ||
        file_put(lab_path(l, "origin"), buf_str(&text), 0600, &err) < 0)
        ok(false, "%s", err.msg);
}

static const struct {
    const char *what;
    unsigned keys;
    const char *last_name, *tail;
    bool good;
} files[] = {
    { "one key", 1, "assay.local/a", "", true },
    { "the most keys", ORIGIN_KEYS_MAX, "assay.local/a", "", true },
    { "a key more", ORIGIN_KEYS_MAX + 1, "assay.local/a", "", false },
    { "nothing", 0, "", "", false },
    { "keys of two origins", 2, "assay.local/b", "", false },
    { "bytes after the keys", 1, "assay.local/a", "x", false },
    { "a blank line", 1, "assay.local/a", "\n", false },
    { "a line that is no key", 1, "assay.local/a", "assay.local/a+00000000+AAAA\n",
      false },
};

static void test_files(void)
{
    for (size_t i = 0; i < COUNT(files); i++) {
        struct lab l = lab_make();
        struct err err = { 0 };
        struct origin o;
        int r;

        put_keys(&l, files[i].keys, files[i].last_name, files[i].tail);
        r = origin_read(&o, l.audit, &err);
        ok((r == 0) == files[i].good && (r < 0 || o.count == files[i].keys),
           "an origin of %s: %s", files[i].what, r == 0 ? "good" : err.msg);
        lab_remove(&l);
    }
}

static void test_adding_keys(void)
{
    struct lab l = lab_make();
    struct origin o, again;
    struct note_key k;
    struct err err = { 0 };

    put_keys(&l, 1, "assay.local/a", "");
    ok(origin_read(&o, l.audit, &err) == 0, "one key: %s", err.msg);
    for (unsigned i = 1; i < ORIGIN_KEYS_MAX; i++) {
        k = key_of("assay.local/a", (uint8_t)(100 + i));
        if (origin_add_key(&o, l.audit, &k, 0600, &err) < 0)
            ok(false, "key %u: %s", i, err.msg);
    }
    ok(origin_read(&again, l.audit, &err) == 0 && again.count == ORIGIN_KEYS_MAX &&
           note_key_equal(&again.keys[0], &k),
       "%d keys, the newest first: %s", ORIGIN_KEYS_MAX, err.msg);
    k = key_of("assay.local/a", 200);
    ok(origin_add_key(&o, l.audit, &k, 0600, &err) < 0 && err.code == ERR_LIMIT &&
           o.count == ORIGIN_KEYS_MAX,
       "no more: %s", err.msg);
    lab_remove(&l);
}

/* --- checkpoints --- */

static void sign_note(struct buf *note, const char *origin, uint64_t size,
                      const struct origin *o, const struct signer *s)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct checkpoint c = { .size = size, .root = digest_of(STR("root")) };
    struct err err = { 0 };

    snprintf(c.origin, sizeof(c.origin), "%s", origin);
    checkpoint_add(&text, &c);
    buf_reset(note);
    buf_add(note, buf_str(&text));
    buf_add_char(note, '\n');
    if (note_sign(note, buf_str(&text), &o->keys[0], &s->secret, &err) < 0)
        ok(false, "%s", err.msg);
}

static void test_checkpoints(void)
{
    CLEANUP(buf_release) struct buf note = { 0 };
    CLEANUP(buf_release) struct buf read = { 0 };
    struct lab l = lab_make();
    struct origin o;
    struct signer s = { 0 };
    struct checkpoint c = { .size = 9 };
    struct err err = { 0 };
    bool new_key = false;

    if (file_make_dirs(l.audit, 0700, &err) < 0)
        exit(99);
    ok(origin_read(&o, l.audit, &err) < 0 && err.code == ERR_NOTFOUND,
       "no log is here: %s", err.msg);
    ok(origin_read_or_new(&o, l.audit, &l.keys, &entropy_system, 0600, &new_key, &err) ==
               0 &&
           new_key,
       "an origin and its key: %s", err.msg);
    ok(origin_read_or_new(&o, l.audit, &l.keys, &entropy_system, 0600, &new_key, &err) ==
               0 &&
           !new_key,
       "the second time it is there");
    ok(origin_signer(&o, &l.keys, &s, &err) == 0, "its secret: %s", err.msg);
    ok(origin_checkpoint(&o, l.audit, &c, &read, &err) == 0 && c.size == 0 && read.n == 0,
       "no checkpoint is size 0");
    sign_note(&note, o.name, 12, &o, &s);
    ok(file_put(lab_path(&l, "checkpoint"), buf_str(&note), 0600, &err) == 0 &&
           origin_checkpoint(&o, l.audit, &c, &read, &err) == 0 && c.size == 12 &&
           str_equal(buf_str(&read), buf_str(&note)),
       "a checkpoint of 12 events: %s", err.msg);
    sign_note(&note, "assay.local/0123456789abcdef", 12, &o, &s);
    ok(file_put(lab_path(&l, "checkpoint"), buf_str(&note), 0600, &err) == 0 &&
           origin_checkpoint(&o, l.audit, &c, NULL, &err) < 0 && err.code == ERR_DAMAGE,
       "one of another log: %s", err.msg);
    s.secret.seed[0] ^= 1;
    sign_note(&note, o.name, 12, &o, &s);
    ok(file_put(lab_path(&l, "checkpoint"), buf_str(&note), 0600, &err) == 0 &&
           origin_checkpoint(&o, l.audit, &c, NULL, &err) < 0 && err.code == ERR_DAMAGE,
       "one of another key: %s", err.msg);
    ok(file_put(lab_path(&l, "checkpoint"), STR("half"), 0600, &err) == 0 &&
           origin_checkpoint(&o, l.audit, &c, NULL, &err) < 0 && err.code == ERR_DAMAGE,
       "half a one: %s", err.msg);
    signer_release(&s);
    lab_remove(&l);
}

static void test_memory(void)
{
    CLEANUP(buf_release) struct buf note = { 0 };
    struct lab l = lab_make();
    struct origin o;
    struct signer s = { 0 };
    struct checkpoint c = { .size = 9 };
    struct err err = { 0 };
    bool new_key;
    char path[600];
    struct stat st;

    if (file_make_dirs(l.audit, 0700, &err) < 0 ||
        origin_read_or_new(&o, l.audit, &l.keys, &entropy_system, 0600, &new_key, &err) <
            0 ||
        origin_signer(&o, &l.keys, &s, &err) < 0)
        ok(false, "%s", err.msg);
    ok(origin_remembered(&o, &l.keys, &c, &err) == 0 && c.size == 0,
       "nothing is remembered");
    sign_note(&note, o.name, 30, &o, &s);
    ok(origin_remember(&o, &l.keys, buf_str(&note), &err) == 0 &&
           origin_remembered(&o, &l.keys, &c, &err) == 0 && c.size == 30,
       "what we signed is: %s", err.msg);
    snprintf(path, sizeof(path), "%s/home/logs/%s", l.root, strchr(o.name, '/') + 1);
    ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "in logs/<16 hex>, private");
    memcpy(o.name, "assay.local/..", sizeof("assay.local/.."));
    ok(origin_remembered(&o, &l.keys, &c, &err) < 0, "a name is never a way out: %s",
       err.msg);
    signer_release(&s);
    lab_remove(&l);
}

static void test_absent_key(void)
{
    struct lab l = lab_make();
    struct signer s = { 0 };
    struct origin o;
    struct err err = { 0 };

    put_keys(&l, 1, "assay.local/a", "");
    ok(origin_read(&o, l.audit, &err) == 0 && origin_signer(&o, &l.keys, &s, &err) < 0 &&
           err.code == ERR_NOTFOUND,
       "a log whose key is elsewhere: %s", err.msg);
    lab_remove(&l);
}

int main(void)
{
    test_eight_first_starts();
    test_files();
    test_adding_keys();
    test_checkpoints();
    test_memory();
    test_absent_key();
    return tap_done();
}
