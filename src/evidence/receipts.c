/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/receipts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "evidence/call.h"
#include "evidence/receipt.h"
#include "json/json.h"

#define PREFIX   "session_"
#define SUFFIX   ".jsonl"
#define HEX      8
#define NAME_LEN (sizeof(PREFIX) - 1 + CLOCK_STAMP + 1 + HEX + sizeof(SUFFIX) - 1)

static_assert(NAME_LEN < LIVE_NAME_MAX, "a name fits");

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'T' || c == 'Z' ||
           c == '_';
}

bool receipts_name_valid(str name)
{
    if (name.n != NAME_LEN || !str_starts(name, STR(PREFIX)) ||
        !str_ends(name, STR(SUFFIX)))
        return false;
    for (size_t i = 0; i < name.n - (sizeof(SUFFIX) - 1); i++) {
        if (!is_name_char(name.p[i]))
            return false;
    }
    return true;
}

int receipts_init(struct receipts *r, const char *audit_dir, const char *name,
                  struct err *err)
{
    *r = (struct receipts){ .audit_dir = audit_dir, .fd = -1 };
    if (!receipts_name_valid(str_from(name)))
        return err_set(err, ERR_FORMAT, "'%s' is no name of a receipts file", name);
    snprintf(r->name, sizeof(r->name), "%s", name);
    return 0;
}

/* A half-written line of a dead writer is closed, so that it stays one void line. */
static int find_end(struct receipts *r, struct err *err)
{
    off_t end = lseek(r->fd, 0, SEEK_END);
    char last = '\n';

    if (end < 0 || (end > 0 && file_read_at(r->fd, &last, 1, (uint64_t)end - 1) != 1))
        return err_errno(err, "cannot read the end of '%s'", r->name);
    r->size = (uint64_t)end;
    return last == '\n' ? 0 : receipts_append(r, STR(""), false, err);
}

static int open_file(struct receipts *r, bool sync, struct err *err)
{
    char dir[FILE_PATH_MAX], path[FILE_PATH_MAX];

    if (path_join(dir, r->audit_dir, RECEIPTS_DIR, err) < 0 ||
        file_make_dirs(dir, 0700, err) < 0 || path_join(path, dir, r->name, err) < 0)
        return -1;
    r->fd = file_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0600, err);
    if (r->fd < 0)
        return -1;
    if (find_end(r, err) < 0 || (sync && file_sync_dir(dir, err) < 0)) {
        receipts_close(r);
        return -1;
    }
    return 0;
}

int receipts_open(struct receipts *r, bool sync, struct err *err)
{
    return r->fd >= 0 ? 0 : open_file(r, sync, err);
}

void receipts_close(struct receipts *r)
{
    r->size -= r->lines.n;
    file_close(&r->fd);
    buf_release(&r->lines);
}

size_t receipts_waiting(const struct receipts *r)
{
    return r->lines.n;
}

/* All that waits, or nothing of it. */
static int write_lines(struct receipts *r, struct err *err)
{
    UNINITIALIZED struct err undo;

    if (file_write(r->fd, buf_str(&r->lines), NULL, err) == 0) {
        buf_reset(&r->lines);
        r->due = false;
        return 0;
    }
    if (file_set_size(r->fd, r->size - r->lines.n, &undo) < 0)
        err_wrap(err, "a short write could not be undone");
    return err_wrap(err, "cannot write a receipt to '%s'", r->name);
}

/* The newest of the lines that wait is none. */
static void take_back(struct receipts *r, size_t bytes)
{
    r->lines.n -= bytes;
    r->lines.failed = false;
    r->size -= bytes;
}

int receipts_append(struct receipts *r, str line, bool late, struct err *err)
{
    size_t before = r->lines.n;

    r->dirty = true;
    r->lines.max = before + RECEIPT_MAX + 1;
    buf_add(&r->lines, line);
    buf_add_char(&r->lines, '\n');
    r->size += r->lines.n - before;
    if (buf_check(&r->lines, "the receipt", err) < 0) {
        take_back(r, r->lines.n - before);
        return -1;
    }
    r->due = r->due || !late;
    if (r->gathering || !r->due || write_lines(r, err) == 0)
        return 0;
    take_back(r, r->lines.n - before);
    r->due = false;
    return -1;
}

int receipts_flush(struct receipts *r, struct err *err)
{
    r->hurry = r->gathering;
    return r->lines.n && !r->gathering ? write_lines(r, err) : 0;
}

void receipts_gather(struct receipts *r)
{
    r->gathering = true;
    r->before = r->size;
}

int receipts_write(struct receipts *r, struct err *err)
{
    UNINITIALIZED struct err ignored; /* who flushes them next hears of it */
    bool hurry = r->hurry;

    r->gathering = r->hurry = false;
    if (r->due)
        return write_lines(r, err);
    if (hurry && r->lines.n)
        (void)!write_lines(r, &ignored);
    return 0;
}

void receipts_mark(struct receipts *r)
{
    r->mark = r->size;
}

/* Lines that wait are newer than those that stand. */
static void cut_to(struct receipts *r, uint64_t size)
{
    struct err ignored;

    if (r->fd < 0 || r->size <= size)
        return;
    if (r->size - size <= r->lines.n) {
        take_back(r, r->size - size);
        return;
    }
    if (file_set_size(r->fd, size, &ignored) < 0)
        return;
    buf_reset(&r->lines);
    r->size = size;
}

void receipts_undo(struct receipts *r)
{
    cut_to(r, r->mark);
}

void receipts_drop(struct receipts *r)
{
    r->gathering = r->hurry = r->due = false;
    cut_to(r, r->before);
}

int receipts_sync(struct receipts *r, struct err *err)
{
    if (r->fd < 0 || !r->dirty)
        return 0;
    if (file_datasync(r->fd, err) < 0)
        return err_wrap(err, "cannot bring '%s' to disk", r->name);
    r->dirty = false;
    return 0;
}

/* --- reading --- */

static int add_entry(struct receipts_index *x, const struct receipts_entry *like,
                     uint64_t key, struct err *err)
{
    struct receipts_entry *e = malloc(sizeof(*e));

    if (!e)
        return err_set(err, ERR_NOMEM, "no memory for an index of receipts");
    *e = *like;
    e->next = map_get(&x->entries, key);
    if (map_put(&x->entries, key, e, err) == 0)
        return 0;
    free(e);
    return -1;
}

/* Whatever is not a receipt is void, not an error. */
static int index_line(struct receipts_index *x, struct json *json, str line,
                      struct err *err)
{
    static const struct json_limits limits = { .max_bytes = RECEIPT_MAX };
    struct receipts_entry e = { .offset = (uint64_t)(line.p - x->map.bytes.p),
                                .length = (uint32_t)line.n };
    struct err why = { 0 };
    uint32_t id;
    uint64_t key;
    str raw;

    if (json_parse(json, line, &limits, &why) < 0)
        return why.code == ERR_NOMEM ? err_set(err, ERR_NOMEM, "%s", why.msg) : 0;
    id = json_member(json, JSON_ROOT, STR("receipt_id"));
    if (!json_is(json, id, JSON_STRING))
        return 0;
    raw = json_raw(json, id);
    if (!id_number(&key, str_of(raw.p + 1, raw.n - 2)) ||
        receipt_hash(&e.hash, json, &why) < 0)
        return 0;
    return add_entry(x, &e, key, err);
}

static int index_lines(struct receipts_index *x, struct err *err)
{
    CLEANUP(json_release) struct json json = { 0 };
    str rest = x->map.bytes, line;

    while (str_line(&rest, &line)) {
        if (line.n && line.n <= RECEIPT_MAX && index_line(x, &json, line, err) < 0)
            return -1;
    }
    return 0;
}

int receipts_index_read(struct receipts_index *x, const char *audit_dir, const char *name,
                        struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    char path[FILE_PATH_MAX], dir[FILE_PATH_MAX];

    *x = (struct receipts_index){ 0 };
    if (!receipts_name_valid(str_from(name)))
        return err_set(err, ERR_FORMAT, "'%s' is no name of a receipts file", name);
    if (path_join(dir, audit_dir, RECEIPTS_DIR, err) < 0 ||
        path_join(path, dir, name, err) < 0)
        return -1;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, err);
    if (fd < 0 || mapping_open(&x->map, fd, name, err) < 0)
        return -1;
    if (index_lines(x, err) == 0)
        return 0;
    receipts_index_release(x);
    return -1;
}

void receipts_index_release(struct receipts_index *x)
{
    struct receipts_entry *e;

    for (size_t i = 0; (e = map_next(&x->entries, &i));) {
        while (e) {
            struct receipts_entry *next = e->next;

            free(e);
            e = next;
        }
    }
    map_release(&x->entries);
    mapping_release(&x->map);
}

str receipts_find(const struct receipts_index *x, str id, const struct digest *hash)
{
    const struct receipts_entry *e;
    uint64_t key;

    if (!id_number(&key, id))
        return (str){ NULL, 0 };
    for (e = map_get(&x->entries, key); e; e = e->next) {
        if (digest_equal(&e->hash, hash))
            return str_of(x->map.bytes.p + e->offset, e->length);
    }
    return (str){ NULL, 0 };
}

static bool is_file_of(const char *name, const char *session)
{
    str s = str_from(name);

    return receipts_name_valid(s) && strlen(session) > strlen("mcp_") + HEX &&
           memcmp(s.p + s.n - (sizeof(SUFFIX) - 1) - HEX, session + strlen("mcp_"),
                  HEX) == 0;
}

struct search {
    char *name;
    const char *session;
};

static int look_at(void *ctx, const char *name, struct err *err)
{
    const struct search *s = ctx;

    (void)err;
    if (!is_file_of(name, s->session))
        return 0;
    memcpy(s->name, name, NAME_LEN + 1);
    return 1;
}

int receipts_find_file(char name[static LIVE_NAME_MAX], const char *audit_dir,
                       const char *session, struct err *err)
{
    struct search search = { name, session };
    struct err bad = { .code = ERR_NOTFOUND };
    char dir[FILE_PATH_MAX];
    int r;

    if (path_join(dir, audit_dir, RECEIPTS_DIR, err) < 0)
        return -1;
    r = file_each(dir, look_at, &search, &bad);
    if (r > 0)
        return 0;
    if (r == 0 || bad.code == ERR_NOTFOUND)
        return err_set(err, ERR_NOTFOUND, "session %s has no receipts file", session);
    *err = bad;
    return -1;
}
