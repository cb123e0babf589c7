/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/extend.h"

#include <fcntl.h>
#include <inttypes.h>

#include "base/err.h"

static int changed(uint64_t seq, const char *how, struct err *err)
{
    return err_set(err, ERR_DAMAGE,
                   "event %" PRIu64 " %s: the log was changed; no checkpoint is made",
                   seq, how);
}

/* Does the line name this hash as that of the event before? In a string, its quotes would
 * have backslashes. */
static bool names_prev(str line, const struct digest *prev)
{
    char member[8 + 2 * DIGEST_SIZE + 1] = "\"prev\":\"";

    digest_hex(member + 8, prev);
    member[sizeof(member) - 1] = '"';
    return memmem(line.p, line.n, member, sizeof(member)) != NULL;
}

static int add_leaf(struct extension *x, const struct digest *leaf, struct err *err)
{
    x->last = *leaf;
    return tile_writer_add(&x->tiles, leaf, err);
}

/* Hash lines from the reader's place on, up to event `until`, into the tiles. */
static int add_lines(struct extension *x, uint64_t until, struct err *err)
{
    enum segment_step step;
    struct digest leaf;
    str line;

    while (x->tiles.size < until) {
        if (segment_next(&x->lines, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return err_set(err, ERR_DAMAGE, "the log ends before event %" PRIu64,
                           x->tiles.size);
        if (!names_prev(line, &x->last))
            return changed(x->tiles.size, "does not continue the one before it", err);
        leaf = tree_leaf(line);
        if (add_leaf(x, &leaf, err) < 0)
            return -1;
    }
    return 0;
}

/* Add lines up to the newest checkpoint, stopping at every older one for its partial
 * tiles: afterwards the files are those that were there before. */
static int add_all_lines(struct extension *x, struct err *err)
{
    CLEANUP(mapping_release) struct mapping list = { 0 };
    CLEANUP(file_close) int fd = -1;
    struct checkpoint c;
    struct err ignored = { 0 };
    char path[FILE_PATH_MAX];
    str rest, text;
    struct note note;

    if (path_join(path, x->log->log_dir, "checkpoints", err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &ignored);
    if (fd < 0 && ignored.code != ERR_NOTFOUND) {
        *err = ignored;
        return -1;
    }
    if (fd >= 0 && mapping_open(&list, fd, path, err) < 0)
        return -1;
    rest = list.bytes;
    while (origin_next_note(&rest, &text)) {
        if (note_parse(&note, text, &ignored) < 0 ||
            checkpoint_parse(&c, note.text, &ignored) < 0 || c.size <= x->tiles.size ||
            c.size > x->newest.size)
            continue;
        if (add_lines(x, c.size, err) < 0 || tile_writer_finish(&x->tiles, err) < 0)
            return -1;
    }
    return add_lines(x, x->newest.size, err);
}

/* Tiles from the very beginning: they are missing or not what was signed. */
static int start_anew(struct extension *x, struct err *err)
{
    struct digest root;

    segment_close(&x->lines);
    tile_writer_release(&x->tiles);
    x->last = (struct digest){ 0 };
    if (file_remove_tree(x->tile_dir, err) < 0 ||
        file_make_dirs(x->tile_dir, x->log->dir_mode, err) < 0 ||
        tile_writer_open(&x->tiles, x->tile_dir, 0, err) < 0)
        return -1;
    x->tiles.group = x->log->group != (gid_t)-1;
    if (segment_open_seq(&x->lines, x->log->log_dir, 0, err) < 0 ||
        add_all_lines(x, err) < 0)
        return -1;
    root = tile_writer_root(&x->tiles);
    if (digest_equal(&root, &x->newest.root))
        return 0;
    return err_set(err, ERR_DAMAGE,
                   "the first %" PRIu64 " events are not those that were signed; no "
                   "checkpoint is made",
                   x->newest.size);
}

/* Where the event after the newest checkpoint stands: as noted, or counted out. What was
 * noted may have been written anew in another segment since (sync.c); then it lies behind
 * the end of its own. */
static int open_lines(struct extension *x, struct err *err)
{
    struct segment_place noted;

    if (x->newest.size == 0)
        return segment_open_seq(&x->lines, x->log->log_dir, 0, err);
    if (head_published(&x->log->head, &noted) && noted.seq == x->newest.size &&
        segment_open_at(&x->lines, x->log->log_dir, noted, err) == 0)
        return 0;
    return segment_open_seq(&x->lines, x->log->log_dir, x->newest.size, err);
}

/* The leaf of the last event before the newest checkpoint; zeros without one. */
static int read_last(struct extension *x, struct err *err)
{
    struct tile_reader tiles;
    struct hashes hashes;
    int r;

    if (x->newest.size == 0)
        return 0;
    tile_reader_init(&tiles, x->tile_dir, x->newest.size);
    hashes = tile_reader_hashes(&tiles);
    r = tree_last_leaf(&hashes, x->newest.size, &x->newest.root, &x->last, err);
    tile_reader_release(&tiles);
    return r;
}

static bool tiles_agree(struct extension *x)
{
    struct err ignored;
    struct digest root;

    if (tile_writer_open(&x->tiles, x->tile_dir, x->newest.size, &ignored) < 0)
        return false;
    root = tile_writer_root(&x->tiles);
    return digest_equal(&root, &x->newest.root) && read_last(x, &ignored) == 0;
}

/* Do we know the hashes of all that is new, and do they continue the tiles? What was lent
 * may have been lost in a failed sync since, and others may have written behind it; but
 * what has been synced stays. */
static bool know_leaves(const struct extension *x)
{
    const struct leaves *l = &x->log->leaves;
    uint64_t size = x->newest.size;

    if (!x->lent || size >= x->end.size || !log_ends_so(x->log, &x->end))
        return false;
    if (size == 0)
        return l->first == 0;
    return l->first < size && digest_equal(leaves_at(l, size - 1), &x->last);
}

static int add_leaves(struct extension *x, struct err *err)
{
    while (x->tiles.size < x->end.size) {
        if (add_leaf(x, leaves_at(&x->log->leaves, x->tiles.size), err) < 0)
            return -1;
    }
    return 0;
}

/* All that is new, behind what the tiles have. */
static int add_new(struct extension *x, struct err *err)
{
    if (tiles_agree(x)) {
        x->tiles.group = x->log->group != (gid_t)-1;
        if (know_leaves(x))
            return add_leaves(x, err);
        if (open_lines(x, err) < 0)
            return -1;
    } else {
        log_tell(x->log,
                 "the tiles of the log are missing or damaged; writing them anew");
        if (start_anew(x, err) < 0)
            return -1;
    }
    return add_lines(x, x->end.size, err);
}

static int extend(struct extension *x, struct err *err)
{
    if (add_new(x, err) < 0)
        return -1;
    if (!digest_equal(&x->last, &x->end.last))
        return changed(x->end.size - 1, "is not the one that was written", err);
    x->root = tile_writer_root(&x->tiles);
    return tile_writer_finish(&x->tiles, err);
}

static int done(struct extension *x, int result)
{
    tile_writer_release(&x->tiles);
    segment_close(&x->lines);
    return result;
}

int extend_tiles(struct extension *x, struct err *err)
{
    return done(x, extend(x, err));
}

int extend_anew(struct extension *x, struct segment_place *place, struct err *err)
{
    int r = start_anew(x, err);

    if (r == 0)
        r = tile_writer_finish(&x->tiles, err);
    *place = x->lines.next;
    return done(x, r);
}
