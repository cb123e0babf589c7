/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/origin.h"

#include <stdio.h>

#include "base/err.h"
#include "base/file.h"

#define ORIGIN_FILE_MAX 16384

static int parse_origin(struct origin *o, str text, struct err *err)
{
    struct origin made = { .count = 0 };
    str line;

    while (str_line(&text, &line)) {
        if (made.count == ORIGIN_KEYS_MAX)
            return err_set(err, ERR_LIMIT, "more than %d keys", ORIGIN_KEYS_MAX);
        if (note_key_parse(&made.keys[made.count], line, err) < 0)
            return err_wrap(err, "line %zu", made.count + 1);
        made.count++;
    }
    if (text.n || made.count == 0)
        return err_set(err, ERR_FORMAT, "is not a list of verifier keys, one a line");
    for (size_t i = 1; i < made.count; i++) {
        if (strcmp(made.keys[i].name, made.keys[0].name) != 0)
            return err_set(err, ERR_FORMAT, "has keys of two origins");
    }
    memcpy(made.name, made.keys[0].name, sizeof(made.name));
    *o = made;
    return 0;
}

int origin_read(struct origin *o, const char *log_dir, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = ORIGIN_FILE_MAX };
    char path[FILE_PATH_MAX];

    if (path_join(path, log_dir, "origin", err) < 0 || file_read(path, &text, err) < 0)
        return -1;
    if (parse_origin(o, buf_str(&text), err) < 0)
        return err_wrap(err, "'%s'", path);
    return 0;
}

static int make_origin(const char *path, const struct keys *keys,
                       const struct entropy *entropy, mode_t mode, bool *new_key,
                       struct err *err)
{
    CLEANUP(signer_release) struct signer signer = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    struct note_key key;
    char name[ID_MAX];
    char full[NOTE_NAME_MAX];

    if (keys_active_or_new(keys, entropy, &signer, new_key, err) < 0 ||
        entropy_id(entropy, name, "", err) < 0)
        return -1;
    snprintf(full, sizeof(full), ORIGIN_PREFIX "%s", name);
    if (note_key_make(&key, str_from(full), signer.secret.public_key, err) < 0)
        return -1;
    note_key_add(&line, &key);
    buf_add_char(&line, '\n');
    if (buf_check(&line, "origin", err) < 0)
        return -1;
    return file_create(path, buf_str(&line), mode, err);
}

int origin_read_or_new(struct origin *o, const char *log_dir, const struct keys *keys,
                       const struct entropy *entropy, mode_t mode, bool *new_key,
                       struct err *err)
{
    struct err missing = { 0 };
    char path[FILE_PATH_MAX];

    *new_key = false;
    if (origin_read(o, log_dir, &missing) == 0)
        return 0;
    if (missing.code != ERR_NOTFOUND) {
        *err = missing;
        return -1;
    }
    if (path_join(path, log_dir, "origin", err) < 0)
        return -1;
    if (make_origin(path, keys, entropy, mode, new_key, err) < 0 &&
        err->code != ERR_EXISTS)
        return -1;
    return origin_read(o, log_dir, err);
}

int origin_add_key(struct origin *o, const char *log_dir, const struct note_key *key,
                   mode_t mode, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = ORIGIN_FILE_MAX };
    struct origin made = *o;
    char path[FILE_PATH_MAX];

    if (made.count == ORIGIN_KEYS_MAX)
        return err_set(err, ERR_LIMIT, "this log has had %d keys already",
                       ORIGIN_KEYS_MAX);
    memmove(made.keys + 1, made.keys, made.count * sizeof(made.keys[0]));
    made.keys[0] = *key;
    made.count++;
    for (size_t i = 0; i < made.count; i++) {
        note_key_add(&text, &made.keys[i]);
        buf_add_char(&text, '\n');
    }
    if (buf_check(&text, "origin", err) < 0 ||
        path_join(path, log_dir, "origin", err) < 0 ||
        file_replace(path, buf_str(&text), mode, err) < 0)
        return -1;
    *o = made;
    return 0;
}

int origin_signer(const struct origin *o, const struct keys *keys, struct signer *out,
                  struct err *err)
{
    struct digest fingerprint =
        digest_of(str_of(o->keys[0].public_key, sizeof(o->keys[0].public_key)));
    char id[KEYS_ID_MAX + 1];
    char hex[2 * DIGEST_SIZE + 1] = "";

    if (keys_find_public(keys, o->keys[0].public_key, id, err) == 0)
        return keys_load(keys, id, out, err);
    if (err->code != ERR_NOTFOUND)
        return -1;
    digest_hex(hex, &fingerprint);
    return err_set(
        err, ERR_NOTFOUND,
        "this log is signed by the key %.16s…, which is not in '%s'; it can be "
        "read and verified here, not continued",
        hex, keys->dir);
}

int origin_open_note(const struct origin *o, const char *what, str bytes,
                     struct checkpoint *out, struct err *err)
{
    struct checkpoint made;
    struct note note;
    struct err why = { 0 };

    if (note_parse(&note, bytes, &why) < 0 ||
        checkpoint_parse(&made, note.text, &why) < 0)
        return err_set(err, ERR_DAMAGE, "%s is not a checkpoint: %s", what, why.msg);
    if (strcmp(made.origin, o->name) != 0)
        return err_set(err, ERR_DAMAGE, "%s is a checkpoint of another log, '%s'", what,
                       made.origin);
    if (note_verify(&note, o->keys, o->count) != NOTE_SIGNED)
        return err_set(err, ERR_DAMAGE, "%s is not signed by the key of this log", what);
    *out = made;
    return 0;
}

/* A checkpoint file: absent is size 0. */
static int read_checkpoint(const struct origin *o, const char *path,
                           struct checkpoint *out, struct buf *note, struct err *err)
{
    struct checkpoint made = { .size = 0, .root = tree_empty() };
    char what[FILE_PATH_MAX + 2];
    struct err local = { 0 };

    if (file_read(path, note, &local) < 0) {
        if (local.code != ERR_NOTFOUND) {
            *err = local;
            return -1;
        }
        memcpy(made.origin, o->name, sizeof(made.origin));
        *out = made;
        return 0;
    }
    snprintf(what, sizeof(what), "'%s'", path);
    if (origin_open_note(o, what, buf_str(note), &made, err) < 0)
        return -1;
    *out = made;
    return 0;
}

int origin_checkpoint(const struct origin *o, const char *log_dir, struct checkpoint *out,
                      struct buf *note, struct err *err)
{
    CLEANUP(buf_release) struct buf own = { .max = NOTE_MAX };
    char path[FILE_PATH_MAX];

    if (path_join(path, log_dir, "checkpoint", err) < 0)
        return -1;
    return read_checkpoint(o, path, out, note ? note : &own, err);
}

bool origin_next_note(str *rest, str *note)
{
    size_t blanks = 0;

    for (size_t i = 1; i < rest->n; i++) {
        if (rest->p[i] != '\n' || rest->p[i - 1] != '\n')
            continue;
        if (++blanks < 2)
            continue;
        *note = str_first(*rest, i);
        *rest = str_skip(*rest, i + 1);
        return true;
    }
    return false;
}

static int remembered_path(const struct origin *o, const struct keys *keys,
                           char out[static FILE_PATH_MAX], struct err *err)
{
    const char *slash = strrchr(o->name, '/');
    char dir[FILE_PATH_MAX];

    if (!slash || slash[1] == '\0' || slash[1] == '.')
        return err_set(err, ERR_FORMAT, "the origin '%s' has no id", o->name);
    if (path_join(dir, keys->home, "logs", err) < 0)
        return -1;
    return path_join(out, dir, slash + 1, err);
}

int origin_remembered(const struct origin *o, const struct keys *keys,
                      struct checkpoint *out, struct err *err)
{
    CLEANUP(buf_release) struct buf note = { .max = NOTE_MAX };
    char path[FILE_PATH_MAX];

    if (remembered_path(o, keys, path, err) < 0)
        return -1;
    return read_checkpoint(o, path, out, &note, err);
}

int origin_remember(const struct origin *o, const struct keys *keys, str note,
                    struct err *err)
{
    char path[FILE_PATH_MAX], dir[FILE_PATH_MAX];

    if (path_join(dir, keys->home, "logs", err) < 0 ||
        file_make_dirs(dir, 0700, err) < 0 || remembered_path(o, keys, path, err) < 0)
        return -1;
    return file_replace(path, note, 0600, err);
}
