/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "json/jcs.h"
#include "json/json.h"

static int live_path(char out[static FILE_PATH_MAX], const char *audit_dir,
                     const char *name, struct err *err)
{
    char dir[FILE_PATH_MAX];

    if (path_join(dir, audit_dir, "live", err) < 0)
        return -1;
    return path_join(out, dir, name, err);
}

/* All of it or nothing: half a line would take the next one with it. */
static int write_line(int fd, str line, struct err *err)
{
    off_t end = lseek(fd, 0, SEEK_END);
    struct err undo;

    if (end < 0)
        return err_errno(err, "lseek");
    if (file_write(fd, line, NULL, err) == 0)
        return 0;
    if (file_set_size(fd, (uint64_t)end, &undo) < 0)
        err_wrap(err, "a short write could not be undone");
    return -1;
}

static int add_line(int fd, struct buf *line, struct err *err)
{
    buf_add_char(line, '\n');
    if (buf_check(line, "a line of live/", err) < 0 ||
        write_line(fd, buf_str(line), err) < 0)
        return err_wrap(err, "cannot note a session in live/");
    return 0;
}

/* Under a hidden name until it is locked, so that nobody takes us for dead. */
static int open_hidden(struct live *l, char hidden[static FILE_PATH_MAX],
                       const char *audit_dir, const char *writer, struct err *err)
{
    char name[ID_MAX + 8];

    snprintf(name, sizeof(name), ".new-%s", writer);
    if (live_path(hidden, audit_dir, name, err) < 0 ||
        live_path(l->path, audit_dir, writer, err) < 0)
        return -1;
    l->fd = file_open(hidden, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0600, err);
    return l->fd < 0 ? -1 : 0;
}

int live_open(struct live *l, const char *audit_dir, const char *writer, uint64_t from,
              struct err *err)
{
    CLEANUP(buf_release) struct buf line = { 0 };
    struct live made = { .fd = -1 };
    char hidden[FILE_PATH_MAX];

    if (open_hidden(&made, hidden, audit_dir, writer, err) < 0)
        return -1;
    buf_printf(&line, "{\"from\":%llu,\"writer\":\"%s\"}", (unsigned long long)from,
               writer);
    if (file_lock(made.fd, LOCK_EX | LOCK_NB) < 0)
        err_errno(err, "cannot lock '%s'", hidden);
    else if (add_line(made.fd, &line, err) == 0) {
        if (rename(hidden, made.path) == 0) {
            *l = made;
            return 0;
        }
        err_errno(err, "cannot rename '%s'", hidden);
    }
    unlink(hidden);
    file_close(&made.fd);
    return -1;
}

int live_begin_session(struct live *l, const char *session, uint64_t first,
                       const char *receipts, struct err *err)
{
    CLEANUP(buf_release) struct buf line = { 0 };

    buf_printf(&line, "{\"first\":%llu,\"receipts\":", (unsigned long long)first);
    jcs_add_string(&line, str_from(receipts));
    buf_printf(&line, ",\"session\":\"%s\"}", session);
    return add_line(l->fd, &line, err);
}

int live_end_session(struct live *l, const char *session, struct err *err)
{
    CLEANUP(buf_release) struct buf line = { 0 };

    buf_printf(&line, "{\"ended\":\"%s\"}", session);
    return add_line(l->fd, &line, err);
}

void live_close(struct live *l)
{
    if (l->fd > 0)
        unlink(l->path);
    live_abandon(l);
}

void live_abandon(struct live *l)
{
    if (l->fd > 0)
        file_close(&l->fd);
    l->fd = -1;
}

static bool is_writer(const char *name)
{
    uint8_t bytes[ID_HEX / 2];
    str s = str_from(name);

    return str_starts(s, STR("w_")) && hex_decode(bytes, sizeof(bytes), str_skip(s, 2));
}

static bool is_alive(const char *audit_dir, const char *writer)
{
    struct err err;
    char path[FILE_PATH_MAX];
    CLEANUP(file_close) int fd = -1;

    if (live_path(path, audit_dir, writer, &err) < 0)
        return false;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &err);
    return fd >= 0 && file_lock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

struct listing {
    struct live_list list;
    const char *audit_dir;
};

static int list_entry(void *ctx, const char *name, struct err *err)
{
    struct listing *made = ctx;
    struct live_list *l = &made->list;
    void *more;

    if (!is_writer(name))
        return 0;
    if (l->count == LIVE_WRITERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d entries in live/", LIVE_WRITERS_MAX);
    more = realloc(l->entry, (l->count + 1) * sizeof(*l->entry));
    if (!more)
        return err_set(err, ERR_NOMEM, "no memory");
    l->entry = more;
    memcpy(l->entry[l->count].writer, name, strlen(name) + 1);
    l->entry[l->count].alive = is_alive(made->audit_dir, name);
    l->count++;
    return 0;
}

int live_list(struct live_list *out, const char *audit_dir, struct err *err)
{
    struct listing made = { .audit_dir = audit_dir };
    char path[FILE_PATH_MAX];
    struct err bad;

    if (path_join(path, audit_dir, "live", err) < 0)
        return -1;
    if (file_each(path, list_entry, &made, &bad) < 0 && bad.code != ERR_NOTFOUND) {
        live_list_release(&made.list);
        *err = bad;
        return -1;
    }
    *out = made.list;
    return 0;
}

void live_list_release(struct live_list *l)
{
    free(l->entry);
    *l = (struct live_list){ 0 };
}

static bool copy_text(char *out, size_t max, const struct json *j, str name)
{
    uint32_t node = json_member(j, JSON_ROOT, name);
    str raw;

    if (!json_is(j, node, JSON_STRING))
        return false;
    raw = json_raw(j, node);
    if (raw.n - 2 >= max || memchr(raw.p, '\\', raw.n) || memchr(raw.p, '/', raw.n))
        return false;
    memcpy(out, raw.p + 1, raw.n - 2);
    out[raw.n - 2] = '\0';
    return true;
}

static void drop_session(struct live_dead *d, const char *id)
{
    for (size_t i = 0; i < d->count; i++) {
        if (strcmp(d->session[i].id, id) == 0) {
            d->session[i] = d->session[--d->count];
            return;
        }
    }
}

static int add_session(struct live_dead *d, const struct json *j, struct err *err)
{
    struct live_session s;
    int64_t first;
    void *more;

    if (!copy_text(s.id, sizeof(s.id), j, STR("session")) ||
        !copy_text(s.receipts, sizeof(s.receipts), j, STR("receipts")) ||
        !json_int(j, json_member(j, JSON_ROOT, STR("first")), &first) || first < 0)
        return 0;
    if (d->count == LIVE_SESSIONS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d open sessions", LIVE_SESSIONS_MAX);
    s.first = (uint64_t)first;
    if (d->count == d->cap) {
        more = realloc(d->session, (2 * d->cap + 16) * sizeof(*d->session));
        if (!more)
            return err_set(err, ERR_NOMEM, "no memory");
        d->session = more;
        d->cap = 2 * d->cap + 16;
    }
    d->session[d->count++] = s;
    return 0;
}

static int read_line(struct live_dead *d, struct json *j, str line, struct err *err)
{
    struct err ignored;
    char ended[ID_MAX];
    int64_t from;

    if (json_parse(j, line, NULL, &ignored) < 0 || !json_is(j, JSON_ROOT, JSON_OBJECT))
        return 0;
    if (copy_text(ended, sizeof(ended), j, STR("ended"))) {
        drop_session(d, ended);
        return 0;
    }
    if (json_int(j, json_member(j, JSON_ROOT, STR("from")), &from) && from >= 0)
        d->from = (uint64_t)from;
    return add_session(d, j, err);
}

static int read_entry(struct live_dead *d, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = (size_t)64 << 20 };
    CLEANUP(json_release) struct json j = { 0 };
    str rest, line;

    if (file_read_fd(d->fd, d->path, &text, err) < 0)
        return -1;
    rest = buf_str(&text);
    while (str_line(&rest, &line)) {
        if (read_line(d, &j, line, err) < 0)
            return -1;
    }
    return 0;
}

/* Between our open and our lock another may have buried it. */
static bool still_there(const struct live_dead *d)
{
    struct stat ours, there;

    return fstat(d->fd, &ours) == 0 && stat(d->path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

int live_take(struct live_dead *d, bool *taken, const char *audit_dir, const char *writer,
              struct err *err)
{
    struct live_dead made = { .fd = -1 };
    struct err missing = { 0 };

    *taken = false;
    if (!is_writer(writer))
        return err_set(err, ERR_FORMAT, "'%s' is not a writer's name", writer);
    memcpy(made.writer, writer, strlen(writer) + 1);
    if (live_path(made.path, audit_dir, writer, err) < 0)
        return -1;
    made.fd = file_open(made.path, O_RDWR | O_NOFOLLOW, 0, &missing);
    if (made.fd < 0 && missing.code == ERR_NOTFOUND)
        return 0;
    if (made.fd < 0) {
        *err = missing;
        return -1;
    }
    if (file_lock(made.fd, LOCK_EX | LOCK_NB) < 0 || !still_there(&made)) {
        live_dead_release(&made);
        return 0;
    }
    if (read_entry(&made, err) < 0) {
        live_dead_release(&made);
        return -1;
    }
    *d = made;
    *taken = true;
    return 0;
}

int live_bury(struct live_dead *d, struct err *err)
{
    if (unlink(d->path) < 0 && errno != ENOENT)
        return err_errno(err, "cannot remove '%s'", d->path);
    return 0;
}

void live_dead_release(struct live_dead *d)
{
    if (d->writer[0])
        file_close(&d->fd);
    free(d->session);
    *d = (struct live_dead){ .fd = -1 };
}
