/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/investigation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"
#include "evidence/log.h"
#include "json/jcs.h"

#define PIECE 49152 /* bytes of a message at a time; a multiple of 3 for base64 */

/* "mcp_<16 hex>" */
static bool is_session(const char *s)
{
    uint8_t bytes[ID_HEX / 2];

    return str_starts(str_from(s), STR("mcp_")) &&
           hex_decode(bytes, sizeof(bytes), str_skip(str_from(s), 4));
}

void investigation_name(char out[static INVESTIGATION_NAME_MAX], const char *session)
{
    snprintf(out, INVESTIGATION_NAME_MAX, "session_%.16s.jsonl", session + 4);
}

void investigation_own_name(char out[static INVESTIGATION_NAME_MAX], const char *session,
                            uint64_t log_seq)
{
    snprintf(out, INVESTIGATION_NAME_MAX, "session_%.16s_%" PRIu64 ".bin", session + 4,
             log_seq);
}

int investigation_open(struct investigation *i, const char *audit_dir,
                       const char *session, struct err *err)
{
    struct investigation made = { .fd = -1 };
    char name[INVESTIGATION_NAME_MAX], path[FILE_PATH_MAX], dir[FILE_PATH_MAX];

    if (!is_session(session))
        return err_set(err, ERR_FORMAT, "'%s' is not a session like mcp_0123456789abcdef",
                       session);
    memcpy(made.session, session, strlen(session) + 1);
    investigation_name(name, session);
    if (path_join(dir, audit_dir, "investigation", err) < 0 ||
        path_join(path, dir, name, err) < 0 || file_make_dirs(dir, 0700, err) < 0)
        return -1;
    made.fd = file_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600, err);
    if (made.fd < 0)
        return -1;
    if (file_lock(made.fd, LOCK_EX | LOCK_NB) < 0) {
        file_close(&made.fd);
        return err_set(err, ERR_REFUSED, "'%s' is written by another process", path);
    }
    made.dir = strdup(dir);
    if (!made.dir) {
        file_close(&made.fd);
        return err_set(err, ERR_NOMEM, "no memory for a name");
    }
    *i = made;
    return 0;
}

void investigation_close(struct investigation *i)
{
    if (i->session[0])
        file_close(&i->fd);
    free(i->dir);
    *i = (struct investigation){ .fd = -1 };
}

/* The first bytes of `s`, at most PIECE, that do not split a character. */
static str take_piece(str s)
{
    size_t n = s.n < PIECE ? s.n : PIECE;

    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return str_first(s, n);
}

/* A long message as one JSON string, without ever holding it twice. */
static int write_string(int fd, str message, bool is_text, struct buf *piece,
                        struct err *err)
{
    for (str rest = message; rest.n > 0;) {
        str part = is_text ? take_piece(rest) : str_first(rest, PIECE);
        str out;

        buf_reset(piece);
        if (is_text)
            jcs_add_string(piece, part);
        else
            base64_add(piece, part.p, part.n);
        if (buf_check(piece, "a piece of a message", err) < 0)
            return -1;
        out = buf_str(piece);
        if (is_text) /* without the quotes of the piece */
            out = str_of(out.p + 1, out.n - 2);
        if (file_write(fd, out, NULL, err) < 0)
            return -1;
        rest = str_skip(rest, part.n);
    }
    return 0;
}

static int write_line(struct investigation *i, uint64_t log_seq, const char *dir,
                      str message, struct err *err)
{
    CLEANUP(buf_release) struct buf piece = { 0 };
    bool is_text = utf8_valid(message);

    if (is_text)
        buf_printf(&piece,
                   "{\"bytes\":%zu,\"dir\":\"%s\",\"log_seq\":%" PRIu64 ",\"text\":\"",
                   message.n, dir, log_seq);
    else
        buf_add(&piece, STR("{\"base64\":\""));
    if (file_write(i->fd, buf_str(&piece), NULL, err) < 0 ||
        write_string(i->fd, message, is_text, &piece, err) < 0)
        return -1;
    buf_reset(&piece);
    if (is_text)
        buf_add(&piece, STR("\"}\n"));
    else
        buf_printf(&piece, "\",\"bytes\":%zu,\"dir\":\"%s\",\"log_seq\":%" PRIu64 "}\n",
                   message.n, dir, log_seq);
    return file_write(i->fd, buf_str(&piece), NULL, err);
}

static int write_own_file(struct investigation *i, uint64_t log_seq, const char *dir,
                          str message, struct err *err)
{
    CLEANUP(buf_release) struct buf line = { 0 };
    char name[INVESTIGATION_NAME_MAX], path[FILE_PATH_MAX];

    investigation_own_name(name, i->session, log_seq);
    if (path_join(path, i->dir, name, err) < 0 ||
        file_create(path, message, 0600, err) < 0)
        return -1;
    buf_printf(&line,
               "{\"bytes\":%zu,\"dir\":\"%s\",\"file\":\"%s\",\"log_seq\":%" PRIu64 "}\n",
               message.n, dir, name, log_seq);
    if (file_write(i->fd, buf_str(&line), NULL, err) == 0)
        return 0;
    unlink(path);
    return -1;
}

int investigation_write(struct investigation *i, uint64_t log_seq, const char *dir,
                        str message, struct err *err)
{
    struct stat before;
    int r;

    if (fstat(i->fd, &before) < 0)
        return err_errno(err, "cannot look at the payloads of %s", i->session);
    r = message.n > INVESTIGATION_INLINE_MAX
            ? write_own_file(i, log_seq, dir, message, err)
            : write_line(i, log_seq, dir, message, err);
    if (r == 0)
        return 0;
    err_wrap(err, "cannot keep a payload of %s", i->session);
    if (ftruncate(i->fd, before.st_size) < 0)
        err_wrap(err, "and cannot undo half a line");
    return -1;
}

/* --- forgetting --- */

struct search {
    char dir[FILE_PATH_MAX];
    char prefix[INVESTIGATION_NAME_MAX]; /* session_<16 hex> */
    uint64_t files;
    bool unlink;
};

static int look_at(void *ctx, const char *name, struct err *err)
{
    struct search *s = ctx;
    char path[FILE_PATH_MAX];
    size_t n = strlen(s->prefix);

    if (strncmp(name, s->prefix, n) != 0 || (name[n] != '.' && name[n] != '_'))
        return 0;
    s->files++;
    if (!s->unlink)
        return 0;
    if (path_join(path, s->dir, name, err) < 0)
        return -1;
    if (unlink(path) < 0 && errno != ENOENT)
        return err_errno(err, "cannot delete '%s'", path);
    return 0;
}

static int count_files(struct search *s, const char *session, struct err *err)
{
    struct err missing = { 0 };

    if (file_each(s->dir, look_at, s, &missing) < 0 && missing.code != ERR_NOTFOUND) {
        *err = missing;
        return -1;
    }
    if (s->files)
        return 0;
    return err_set(err, ERR_NOTFOUND, "no payloads of session %s are kept", session);
}

static int append_forgotten(struct log *log, const char *session, uint64_t files,
                            struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };
    uint64_t upto;

    event_init(&e, EVENT_PAYLOADS_FORGOTTEN);
    event_add_cstr(&e, "of", session);
    event_add_int(&e, "files", (int64_t)files);
    if (log_append(log, events, 1, &upto, err) < 0)
        return -1;
    return log_sync(log, upto, err);
}

/* Evidence before effect: should we die in between, the check says that files are left,
 * and forgetting again deletes them. */
int investigation_forget(struct log *log, const char *session, uint64_t *files,
                         struct err *err)
{
    struct investigation held = { .fd = -1 };
    struct search s = { .files = 0 };
    int r;

    if (!is_session(session))
        return err_set(err, ERR_FORMAT, "'%s' is not a session like mcp_0123456789abcdef",
                       session);
    snprintf(s.prefix, sizeof(s.prefix), "session_%.16s", session + 4);
    if (path_join(s.dir, log_dir(log), "investigation", err) < 0 ||
        count_files(&s, session, err) < 0 ||
        investigation_open(&held, log_dir(log), session, err) < 0)
        return -1;
    r = append_forgotten(log, session, s.files, err);
    if (r == 0) {
        if (files)
            *files = s.files;
        s.unlink = true;
        r = file_each(s.dir, look_at, &s, err);
    }
    if (r == 0)
        r = file_sync_dir(s.dir, err);
    investigation_close(&held);
    return r;
}
