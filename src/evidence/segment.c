/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/err.h"
#include "evidence/event.h"

#define WINDOW_BYTES ((size_t)256 << 10)

int segment_path(char out[static FILE_PATH_MAX], const char *log_dir, uint64_t first,
                 struct err *err)
{
    char name[48];

    snprintf(name, sizeof(name), "segments/%020" PRIu64 ".jsonl", first);
    return path_join(out, log_dir, name, err);
}

/* "<20 digits>.jsonl" */
static bool parse_name(const char *name, uint64_t *first)
{
    str s = str_from(name);
    size_t zeros = 0;

    if (s.n != 26 || !str_ends(s, STR(".jsonl")))
        return false;
    s = str_first(s, 20);
    while (zeros < 19 && s.p[zeros] == '0')
        zeros++;
    return u64_parse(first, str_skip(s, zeros));
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

struct listing {
    struct segment_list list;
    size_t cap;
};

static int add_first(void *ctx, const char *name, struct err *err)
{
    struct listing *made = ctx;
    struct segment_list *l = &made->list;
    uint64_t first;

    if (!parse_name(name, &first))
        return 0;
    if (l->count == SEGMENTS_MAX)
        return err_set(err, ERR_LIMIT, "the log has more than %d segments", SEGMENTS_MAX);
    if (l->count == made->cap) {
        size_t more = made->cap ? made->cap * 2 : 16;
        uint64_t *grown = realloc(l->first, more * sizeof(*grown));

        if (!grown)
            return err_set(err, ERR_NOMEM, "no memory");
        l->first = grown;
        made->cap = more;
    }
    l->first[l->count++] = first;
    return 0;
}

int segment_list_read(struct segment_list *l, const char *log_dir, struct err *err)
{
    struct listing made = { .cap = 0 };
    char path[FILE_PATH_MAX];
    struct err bad;

    if (path_join(path, log_dir, "segments", err) < 0)
        return -1;
    if (file_each(path, add_first, &made, &bad) < 0 && bad.code != ERR_NOTFOUND) {
        segment_list_release(&made.list);
        *err = bad;
        return -1;
    }
    if (made.list.count)
        qsort(made.list.first, made.list.count, sizeof(*made.list.first), compare_u64);
    *l = made.list;
    return 0;
}

void segment_list_release(struct segment_list *l)
{
    free(l->first);
    *l = (struct segment_list){ 0 };
}

static int seek_in(int fd, uint64_t offset, const char *path, struct err *err)
{
    off_t end = lseek(fd, 0, SEEK_END);

    if (end >= 0 && (uint64_t)end < offset)
        return err_set(err, ERR_DAMAGE, "'%s' ends before byte %" PRIu64, path, offset);
    if (end < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0)
        return err_errno(err, "cannot seek in '%s'", path);
    return 0;
}

static int open_current(struct segment_reader *r, uint64_t offset, struct err *err)
{
    char path[FILE_PATH_MAX];

    file_close(&r->fd);
    buf_reset(&r->window);
    r->at = 0;
    if (segment_path(path, r->log_dir, r->list.first[r->current], err) < 0)
        return -1;
    r->fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, err);
    if (r->fd < 0 || seek_in(r->fd, offset, path, err) < 0)
        return -1;
    r->next.segment = r->list.first[r->current];
    r->next.offset = offset;
    return 0;
}

static int start(struct segment_reader *r, const char *log_dir, struct err *err)
{
    size_t n = strlen(log_dir);

    *r = (struct segment_reader){ .fd = -1, .window = { .max = WINDOW_BYTES } };
    if (n >= sizeof(r->log_dir))
        return err_set(err, ERR_LIMIT, "path is too long");
    memcpy(r->log_dir, log_dir, n + 1);
    return segment_list_read(&r->list, log_dir, err);
}

int segment_open_at(struct segment_reader *r, const char *log_dir,
                    struct segment_place place, struct err *err)
{
    if (start(r, log_dir, err) < 0)
        return -1;
    while (r->current < r->list.count && r->list.first[r->current] != place.segment)
        r->current++;
    if (r->current == r->list.count) {
        if (r->list.count == 0 && place.seq == 0)
            return 0;
        segment_close(r);
        return err_set(err, ERR_DAMAGE, "segment %020" PRIu64 ".jsonl is missing",
                       place.segment);
    }
    if (open_current(r, place.offset, err) < 0) {
        segment_close(r);
        return -1;
    }
    r->next = place;
    return 0;
}

/* Pass over lines until the next one is that of `seq`. */
static int skip_to(struct segment_reader *r, uint64_t seq, struct err *err)
{
    enum segment_step step = SEGMENT_LINE;
    str line;

    while (r->next.seq < seq) {
        if (segment_next(r, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return err_set(err, ERR_NOTFOUND,
                           "event %" PRIu64 " is not in the log: it ends "
                           "before event %" PRIu64,
                           seq, r->next.seq);
    }
    return 0;
}

int segment_open_seq(struct segment_reader *r, const char *log_dir, uint64_t seq,
                     struct err *err)
{
    return segment_open_near(r, log_dir, (struct segment_place){ 0 }, seq, err);
}

int segment_open_near(struct segment_reader *r, const char *log_dir,
                      struct segment_place known, uint64_t seq, struct err *err)
{
    struct segment_place from = { 0 };

    if (start(r, log_dir, err) < 0)
        return -1;
    while (r->current + 1 < r->list.count && r->list.first[r->current + 1] <= seq)
        r->current++;
    if (r->list.count == 0) {
        if (seq == 0)
            return 0;
        return err_set(err, ERR_NOTFOUND,
                       "event %" PRIu64 " is not in the log: it is empty", seq);
    }
    if (r->list.first[r->current] > seq) {
        err_set(err, ERR_DAMAGE, "the log begins with event %" PRIu64,
                r->list.first[r->current]);
        segment_close(r);
        return -1;
    }
    from.segment = from.seq = r->list.first[r->current];
    if (known.segment == from.segment && known.seq >= from.seq && known.seq <= seq)
        from = known;
    r->next.seq = from.seq;
    if (open_current(r, from.offset, err) < 0 || skip_to(r, seq, err) < 0) {
        segment_close(r);
        return -1;
    }
    return 0;
}

/* Read more into the window; *got is 0 at the end of the file. */
static int fill(struct segment_reader *r, size_t *got, struct err *err)
{
    size_t rest = r->window.n - r->at;
    ssize_t n;
    char *to;

    if (r->at)
        memmove(r->window.p, r->window.p + r->at, rest);
    r->window.n = rest;
    r->at = 0;
    to = buf_room(&r->window, WINDOW_BYTES - rest);
    if (!to)
        return err_set(err, ERR_NOMEM, "no memory");
    do
        n = read(r->fd, to, WINDOW_BYTES - rest);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, "cannot read segment %020" PRIu64 ".jsonl",
                         r->next.segment);
    r->window.n += (size_t)n;
    *got = (size_t)n;
    return 0;
}

/* The next line of this segment, or what it ends with. */
static int next_here(struct segment_reader *r, enum segment_step *step, str *line,
                     struct err *err)
{
    for (;;) {
        str rest = str_skip(buf_str(&r->window), r->at);
        str search = str_first(rest, EVENT_LINE_MAX + 1);
        const char *nl = search.n ? memchr(search.p, '\n', search.n) : NULL;
        size_t got = 0;

        if (nl) {
            *line = str_of(rest.p, (size_t)(nl - rest.p));
            *step = SEGMENT_LINE;
            return 0;
        }
        if (rest.n <= EVENT_LINE_MAX && fill(r, &got, err) < 0)
            return -1;
        if (got)
            continue;
        *line = str_skip(buf_str(&r->window), r->at);
        *step = line->n ? SEGMENT_TAIL : SEGMENT_END;
        return 0;
    }
}

static int next_segment(struct segment_reader *r, struct err *err)
{
    uint64_t first = r->list.first[r->current + 1];

    if (first != r->next.seq)
        return err_set(err, ERR_DAMAGE,
                       "segment %020" PRIu64 ".jsonl should begin with event %" PRIu64,
                       first, r->next.seq);
    r->current++;
    return open_current(r, 0, err);
}

int segment_next(struct segment_reader *r, enum segment_step *step, str *line,
                 struct err *err)
{
    *step = SEGMENT_END;
    while (r->current < r->list.count) {
        bool last = r->current + 1 == r->list.count;

        if (next_here(r, step, line, err) < 0)
            return -1;
        /* Lines that the next segment holds too: see log_sync() in log.h. */
        if (*step == SEGMENT_LINE && !last &&
            r->next.seq == r->list.first[r->current + 1])
            *step = SEGMENT_TAIL;
        if (*step == SEGMENT_LINE) {
            r->at += line->n + 1;
            r->next.offset += line->n + 1;
            r->next.seq++;
        }
        if (*step != SEGMENT_END || last)
            return 0;
        if (next_segment(r, err) < 0)
            return -1;
    }
    return 0;
}

void segment_close(struct segment_reader *r)
{
    if (!r->log_dir[0])
        return;
    file_close(&r->fd);
    buf_release(&r->window);
    segment_list_release(&r->list);
    *r = (struct segment_reader){ .fd = -1 };
}
