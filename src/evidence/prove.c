/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/prove.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "evidence/origin.h"
#include "evidence/tile.h"

/* What a proof is made from. */
struct source {
    char log_dir[FILE_PATH_MAX];
    char tile_dir[FILE_PATH_MAX];
    struct origin origin;
    struct checkpoint newest;
    struct tile_reader tiles;
    struct hashes hashes;
};

static int check_tiles(struct source *s, struct err *err)
{
    struct digest root;
    struct err bad = { 0 };

    if (tree_root(&s->hashes, s->newest.size, &root, &bad) == 0 &&
        digest_equal(&root, &s->newest.root))
        return 0;
    return err_set(err, ERR_DAMAGE, "the tiles do not give the signed root%s%s",
                   bad.msg[0] ? ": " : "", bad.msg);
}

static int source_open(struct source *s, const char *audit_dir, struct buf *note,
                       struct err *err)
{
    if (path_join(s->log_dir, audit_dir, "log", err) < 0 ||
        path_join(s->tile_dir, s->log_dir, "tile", err) < 0 ||
        origin_read(&s->origin, s->log_dir, err) < 0 ||
        origin_checkpoint(&s->origin, s->log_dir, &s->newest, note, err) < 0)
        return -1;
    if (s->newest.size == 0)
        return err_set(err, ERR_NOTFOUND, "this log has no signed checkpoint yet");
    tile_reader_init(&s->tiles, s->tile_dir, s->newest.size);
    s->hashes = tile_reader_hashes(&s->tiles);
    return check_tiles(s, err);
}

static int inclusion(struct source *s, struct proven *p, struct err *err)
{
    if (p->index >= s->newest.size)
        return err_set(err, ERR_NOTFOUND,
                       "event %" PRIu64 " is not in the newest checkpoint, which covers "
                       "%" PRIu64 " event%s",
                       p->index, s->newest.size, plural(s->newest.size));
    p->size = s->newest.size;
    p->root = s->newest.root;
    return tree_prove_inclusion(&s->hashes, p->index, p->size, &p->proof, err);
}

int prove_inclusion(struct proven *out, const char *audit_dir, uint64_t seq,
                    struct err *err)
{
    struct proven made = { .index = seq, .note = { .max = NOTE_MAX } };
    struct source s = { .newest = { .size = 0 } };
    int r = source_open(&s, audit_dir, &made.note, err);

    if (r == 0)
        r = inclusion(&s, &made, err);
    tile_reader_release(&s.tiles);
    if (r < 0)
        proven_release(&made);
    else
        *out = made;
    return r;
}

/* The signed checkpoint of exactly this size, if there was one. */
static int find_note(struct source *s, uint64_t size, struct buf *out, struct err *err)
{
    CLEANUP(mapping_release) struct mapping list = { 0 };
    CLEANUP(file_close) int fd = -1;
    enum note_verdict verdict;
    struct checkpoint c;
    struct err ignored = { 0 };
    char path[FILE_PATH_MAX];
    str rest, note;

    buf_reset(out);
    if (path_join(path, s->log_dir, "checkpoints", err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &ignored);
    if (fd < 0)
        return 0;
    if (mapping_open(&list, fd, path, err) < 0)
        return -1;
    rest = list.bytes;
    while (origin_next_note(&rest, &note)) {
        if (checkpoint_open(&c, &verdict, note, s->origin.keys, s->origin.count,
                            &ignored) == 0 &&
            verdict == NOTE_SIGNED && c.size == size) {
            buf_add(out, note);
            return buf_check(out, "the checkpoint", err);
        }
    }
    return 0;
}

static int consistency(struct source *s, struct proven *p, struct err *err)
{
    if (p->size == 0)
        p->size = s->newest.size;
    if (p->size > s->newest.size)
        return err_set(err, ERR_NOTFOUND,
                       "the newest checkpoint covers %" PRIu64 " event%s, not %" PRIu64,
                       s->newest.size, plural(s->newest.size), p->size);
    if (p->index == 0 || p->index > p->size)
        return err_set(err, ERR_FORMAT, "the older size must be from 1 to %" PRIu64,
                       p->size);
    if (p->size != s->newest.size && find_note(s, p->size, &p->note, err) < 0)
        return -1;
    if (tree_root(&s->hashes, p->index, &p->old_root, err) < 0 ||
        tree_root(&s->hashes, p->size, &p->root, err) < 0)
        return -1;
    return tree_prove_consistency(&s->hashes, p->index, p->size, &p->proof, err);
}

int prove_consistency(struct proven *out, const char *audit_dir, uint64_t from,
                      uint64_t to, struct err *err)
{
    struct proven made = { .index = from, .size = to, .note = { .max = NOTE_MAX } };
    struct source s = { .newest = { .size = 0 } };
    int r = source_open(&s, audit_dir, &made.note, err);

    if (r == 0)
        r = consistency(&s, &made, err);
    tile_reader_release(&s.tiles);
    if (r < 0)
        proven_release(&made);
    else
        *out = made;
    return r;
}

void proven_release(struct proven *p)
{
    buf_release(&p->note);
}

static void add_hashes(struct buf *out, const struct proof *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        base64_add(out, p->hash[i].bytes, DIGEST_SIZE);
        buf_add_char(out, '\n');
    }
}

void proven_add_inclusion(struct buf *out, const struct proven *p)
{
    buf_printf(out, "c2sp.org/tlog-proof@v1\nindex %" PRIu64 "\n", p->index);
    add_hashes(out, &p->proof);
    buf_add_char(out, '\n');
    buf_add(out, buf_str(&p->note));
}

void proven_add_consistency(struct buf *out, const struct proven *p, const char *origin)
{
    struct checkpoint c = { .size = p->size, .root = p->root };

    buf_printf(out, "old %" PRIu64 "\n", p->index);
    add_hashes(out, &p->proof);
    buf_add_char(out, '\n');
    snprintf(c.origin, sizeof(c.origin), "%s", origin);
    if (p->note.n)
        buf_add(out, buf_str(&p->note));
    else
        checkpoint_add(out, &c);
}
