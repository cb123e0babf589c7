/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/tile.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

#define TILE_BITS  8  /* levels of the tree in one tile */
#define CACHE_SIZE 16 /* two tiles on each level of a walk */

/* `index` in groups of three digits, each marked with an x; returns the end. */
static char *put_groups(char *out, uint64_t index)
{
    if (index >= 1000) {
        out = put_groups(out, index / 1000);
        *out++ = '/';
    }
    return out + snprintf(out, sizeof("x000"), "x%03u", (unsigned)(index % 1000));
}

void tile_path(char out[static TILE_PATH_MAX], unsigned level, uint64_t index,
               unsigned width)
{
    int n = snprintf(out, TILE_PATH_MAX, "%u/", level);
    char *at = put_groups(out + n, index);

    memmove(at - 4, at - 3, 3); /* the last group has no x */
    at--;
    if (width == TILE_WIDTH)
        *at = '\0';
    else
        snprintf(at, (size_t)(out + TILE_PATH_MAX - at), ".p/%u", width);
}

/* How many hashes a tree of `size` leaves has on a level of tiles. */
static uint64_t level_width(uint64_t size, unsigned level)
{
    return level < TILE_LEVELS ? size >> (TILE_BITS * level) : 0;
}

/* The root over `count` (a power of two, at most 256) neighbours. */
static struct digest fold(const struct digest *from, size_t count)
{
    struct digest row[TILE_WIDTH / 2];

    if (count == 1)
        return *from;
    for (size_t i = 0; i < count / 2; i++)
        row[i] = tree_node(&from[2 * i], &from[2 * i + 1]);
    for (count /= 2; count > 1; count /= 2) {
        for (size_t i = 0; i < count / 2; i++)
            row[i] = tree_node(&row[2 * i], &row[2 * i + 1]);
    }
    return row[0];
}

static int full_path(char out[static FILE_PATH_MAX], const char *dir, unsigned level,
                     uint64_t index, unsigned width, struct err *err)
{
    char name[TILE_PATH_MAX];

    tile_path(name, level, index, width);
    return path_join(out, dir, name, err);
}

/* The bytes of the tile file of this width. ERR_NOTFOUND when there is none, ERR_DAMAGE
 * when it is not as long as it must be. */
static int read_file(const char *path, unsigned width, struct buf *out, struct err *err)
{
    if (file_read(path, out, err) < 0) {
        if (err->code == ERR_LIMIT || err->code == ERR_FORMAT)
            err->code = ERR_DAMAGE;
        return -1;
    }
    if (out->n != width * DIGEST_SIZE)
        return err_set(err, ERR_DAMAGE, "the tile '%s' has %zu bytes instead of %u", path,
                       out->n, width * DIGEST_SIZE);
    return 0;
}

/* The first `width` hashes of a tile: from its partial file, or from the full one, which
 * takes the place of all its partial files. */
static int read_tile(const char *dir, unsigned level, uint64_t index, unsigned width,
                     struct digest *out, struct err *err)
{
    CLEANUP(buf_release) struct buf bytes = { .max = TILE_BYTES };
    char path[FILE_PATH_MAX];
    struct err why = { 0 };
    int r;

    if (full_path(path, dir, level, index, width, err) < 0)
        return -1;
    r = read_file(path, width, &bytes, &why);
    if (r < 0 && why.code == ERR_NOTFOUND && width < TILE_WIDTH) {
        if (full_path(path, dir, level, index, TILE_WIDTH, err) < 0)
            return -1;
        r = read_file(path, TILE_WIDTH, &bytes, &why);
    }
    if (r < 0 && why.code == ERR_NOTFOUND)
        return err_set(err, ERR_DAMAGE, "the tile '%s' is missing", path);
    if (r < 0) {
        *err = why;
        return -1;
    }
    memcpy(out, bytes.p, width * DIGEST_SIZE);
    return 0;
}

struct cached {
    uint64_t index;
    uint64_t used; /* when; 0 for an empty place */
    unsigned level;
    struct digest hash[TILE_WIDTH];
};

struct tile_cache {
    uint64_t now;
    struct cached tile[CACHE_SIZE];
};

void tile_reader_init(struct tile_reader *r, const char *dir, uint64_t size)
{
    *r = (struct tile_reader){ .dir = dir, .size = size };
}

void tile_reader_release(struct tile_reader *r)
{
    free(r->cache);
    r->cache = NULL;
}

/* The place of this tile, or the one that was not used for the longest time. */
static struct cached *find_place(struct tile_cache *c, unsigned level, uint64_t index)
{
    struct cached *oldest = &c->tile[0];

    for (size_t i = 0; i < CACHE_SIZE; i++) {
        struct cached *t = &c->tile[i];

        if (t->used && t->level == level && t->index == index)
            return t;
        if (t->used < oldest->used)
            oldest = t;
    }
    oldest->used = 0;
    return oldest;
}

static const struct digest *get_tile(struct tile_reader *r, unsigned level,
                                     uint64_t index, struct err *err)
{
    uint64_t rest = level_width(r->size, level) - index * TILE_WIDTH;
    unsigned width = rest < TILE_WIDTH ? (unsigned)rest : TILE_WIDTH;
    struct cached *t;

    if (!r->cache)
        r->cache = calloc(1, sizeof(*r->cache));
    if (!r->cache) {
        err_set(err, ERR_NOMEM, "no memory to read tiles");
        return NULL;
    }
    t = find_place(r->cache, level, index);
    if (!t->used && read_tile(r->dir, level, index, width, t->hash, err) < 0)
        return NULL;
    t->level = level;
    t->index = index;
    t->used = ++r->cache->now;
    return t->hash;
}

static int read_hash(void *ctx, unsigned level, uint64_t index, struct digest *out,
                     struct err *err)
{
    struct tile_reader *r = ctx;
    unsigned inside = level % TILE_BITS; /* levels above the tile's own hashes */
    const struct digest *hash;
    uint64_t first;

    if (level > 63 || index >= r->size >> level)
        return err_set(err, ERR_REFUSED, "a tree of %llu events has no such subtree",
                       (unsigned long long)r->size);
    first = index << inside;
    hash = get_tile(r, level / TILE_BITS, first / TILE_WIDTH, err);
    if (!hash)
        return -1;
    *out = fold(hash + first % TILE_WIDTH, (size_t)1 << inside);
    return 0;
}

struct hashes tile_reader_hashes(struct tile_reader *r)
{
    return (struct hashes){ read_hash, r };
}

static int make_parent(const char *path, bool group, struct err *err)
{
    char parent[FILE_PATH_MAX];
    size_t n = (size_t)(strrchr(path, '/') - path);

    memcpy(parent, path, n);
    parent[n] = '\0';
    return file_make_dirs(parent, group ? 0750 : 0700, err);
}

static bool already_there(const char *path, str bytes)
{
    CLEANUP(buf_release) struct buf old = { .max = TILE_BYTES };
    struct err ignored = { 0 };

    return file_read(path, &old, &ignored) == 0 && str_equal(buf_str(&old), bytes);
}

/* Partial tiles may be gone where the full one stands; otherwise they must be there. */
static int check_tile(const struct tile_writer *w, const char *path, unsigned level,
                      uint64_t index, str bytes, struct err *err)
{
    char full[FILE_PATH_MAX];

    if (already_there(path, bytes))
        return 0;
    if (full_path(full, w->dir, level, index, TILE_WIDTH, err) < 0)
        return -1;
    if (access(path, F_OK) < 0 && access(full, F_OK) == 0)
        return 0;
    return err_set(err, ERR_DAMAGE,
                   "the tile '%s' is missing or not what the events give", path);
}

/* A tile that stands is left alone, unless a crash has left it empty or torn: it is
 * beyond every checkpoint then, and nobody has read it. */
static int put_tile(const char *path, str bytes, mode_t mode, struct err *err)
{
    if (file_make(path, bytes, mode, err) == 0)
        return 0;
    if (err->code != ERR_EXISTS)
        return -1;
    return already_there(path, bytes) ? 0 : file_put(path, bytes, mode, err);
}

static int write_tile(const struct tile_writer *w, unsigned level, uint64_t index,
                      unsigned width, struct err *err)
{
    str bytes = str_of(w->edge[level], width * DIGEST_SIZE);
    mode_t mode = w->group ? 0640 : 0600;
    char path[FILE_PATH_MAX];
    struct err first = { 0 };

    if (full_path(path, w->dir, level, index, width, err) < 0)
        return -1;
    if (w->check)
        return check_tile(w, path, level, index, bytes, err);
    if (put_tile(path, bytes, mode, &first) == 0)
        return 0;
    if (first.code != ERR_NOTFOUND) {
        *err = first;
        return -1;
    }
    return make_parent(path, w->group, err) < 0 ? -1 : put_tile(path, bytes, mode, err);
}

static int remove_partials(const struct tile_writer *w, unsigned level, uint64_t index,
                           struct err *err)
{
    char path[FILE_PATH_MAX];

    if (w->check || (w->began && index != level_width(w->began, level) / TILE_WIDTH))
        return 0; /* it never was one, but for what a crash may have left */
    if (full_path(path, w->dir, level, index, 1, err) < 0)
        return -1;
    *strrchr(path, '/') = '\0'; /* 000.p/1: all of 000.p */
    return file_remove_tree(path, err);
}

int tile_writer_open(struct tile_writer *w, const char *dir, uint64_t size,
                     struct err *err)
{
    struct tile_writer new = { .dir = dir, .size = size, .began = size };

    new.edge = calloc(TILE_LEVELS, sizeof(new.edge[0]));
    if (!new.edge)
        return err_set(err, ERR_NOMEM, "no memory to write tiles");
    for (unsigned level = 0; level < TILE_LEVELS; level++) {
        uint64_t hashes = level_width(size, level);
        unsigned width = (unsigned)(hashes % TILE_WIDTH);

        if (width &&
            read_tile(dir, level, hashes / TILE_WIDTH, width, new.edge[level], err) < 0) {
            tile_writer_release(&new);
            return -1;
        }
    }
    *w = new;
    return 0;
}

int tile_writer_add(struct tile_writer *w, const struct digest *leaf, struct err *err)
{
    uint64_t hashes = w->size + 1; /* on this level, with the new one */
    struct digest hash = *leaf;

    for (unsigned level = 0; level < TILE_LEVELS; level++) {
        w->edge[level][(hashes - 1) % TILE_WIDTH] = hash;
        if (hashes % TILE_WIDTH)
            break;
        hashes /= TILE_WIDTH;
        if (write_tile(w, level, hashes - 1, TILE_WIDTH, err) < 0 ||
            remove_partials(w, level, hashes - 1, err) < 0)
            return -1;
        hash = fold(w->edge[level], TILE_WIDTH);
    }
    w->size++;
    return 0;
}

int tile_writer_finish(struct tile_writer *w, struct err *err)
{
    for (unsigned level = 0; level < TILE_LEVELS; level++) {
        uint64_t hashes = level_width(w->size, level);
        unsigned width = (unsigned)(hashes % TILE_WIDTH);

        if (width && write_tile(w, level, hashes / TILE_WIDTH, width, err) < 0)
            return -1;
    }
    return 0;
}

/* The perfect subtrees of the tree, in the unfinished tiles. */
static int read_edge(void *ctx, unsigned level, uint64_t index, struct digest *out,
                     struct err *err)
{
    const struct tile_writer *w = ctx;
    unsigned inside = level % TILE_BITS;

    (void)err;
    *out = fold(&w->edge[level / TILE_BITS][(index << inside) % TILE_WIDTH],
                (size_t)1 << inside);
    return 0;
}

struct digest tile_writer_root(const struct tile_writer *w)
{
    struct tile_writer edge = *w;
    struct hashes h = { read_edge, &edge };
    struct digest root = { 0 };
    struct err err;
    int r = tree_root(&h, w->size, &root, &err);

    assert(r == 0); /* memory cannot fail to be read */
    (void)r;
    return root;
}

void tile_writer_release(struct tile_writer *w)
{
    free(w->edge);
    w->edge = NULL;
}
