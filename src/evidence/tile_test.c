/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/tile.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

static char dir[FILE_PATH_MAX];

static void test_paths(void)
{
    static const struct {
        unsigned level;
        uint64_t index;
        unsigned width;
        const char *path;
    } rows[] = {
        { 0, 0, 256, "0/000" },
        { 0, 0, 1, "0/000.p/1" },
        { 1, 999, 255, "1/999.p/255" },
        { 0, 1000, 256, "0/x001/000" },
        { 2, 1234067, 256, "2/x001/x234/067" },
        { 2, 1234067, 5, "2/x001/x234/067.p/5" },
        { 0, 1000000, 256, "0/x001/x000/000" },
        { 63, UINT64_MAX, 255, "63/x018/x446/x744/x073/x709/x551/615.p/255" },
    };
    char path[TILE_PATH_MAX];

    for (size_t i = 0; i < COUNT(rows); i++) {
        tile_path(path, rows[i].level, rows[i].index, rows[i].width);
        ok(str_is(str_from(path), rows[i].path), "%s", rows[i].path);
    }
}

static const char *at(const char *name)
{
    static char path[FILE_PATH_MAX];
    struct err err;

    return path_join(path, dir, name, &err) < 0 ? "" : path;
}

static bool exists(const char *name)
{
    struct stat st;

    return stat(at(name), &st) == 0;
}

static bool has_mode(const char *name, mode_t mode, off_t size)
{
    struct stat st;

    return stat(at(name), &st) == 0 && (st.st_mode & 07777) == mode &&
           (S_ISDIR(st.st_mode) || st.st_size == size);
}

static struct digest leaf_of(uint64_t i)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "{\"seq\":%llu,\"type\":\"mcp_tool_call\"}",
                     (unsigned long long)i);

    return tree_leaf(str_of(text, (size_t)n));
}

/* From one checkpointed size to another, as the log does it. */
static bool extend(uint64_t from, uint64_t to, struct digest *root, struct err *err)
{
    struct tile_writer w = { 0 };
    bool good = tile_writer_open(&w, dir, from, err) == 0;

    for (uint64_t i = from; good && i < to; i++) {
        struct digest leaf = leaf_of(i);

        good = tile_writer_add(&w, &leaf, err) == 0;
    }
    good = good && tile_writer_finish(&w, err) == 0;
    if (good)
        *root = tile_writer_root(&w);
    tile_writer_release(&w);
    return good;
}

static bool read_root(uint64_t size, struct digest *root, struct err *err)
{
    struct tile_reader r;
    struct hashes h;
    int result;

    tile_reader_init(&r, dir, size);
    h = tile_reader_hashes(&r);
    result = tree_root(&h, size, root, err);
    tile_reader_release(&r);
    return result == 0;
}

static void start_again(void)
{
    struct err err;

    if (file_remove_tree(dir, &err) < 0)
        ok(false, "%s", err.msg);
}

static void test_every_size_from_the_one_before(void)
{
    struct range r = { 0 };
    struct err err = { 0 };
    unsigned wrong = 0;

    start_again();
    for (uint64_t n = 0; n < 1100; n++) {
        struct digest leaf = leaf_of(n), written, read, want;

        range_append(&r, &leaf);
        want = range_root(&r);
        wrong += !extend(n, n + 1, &written, &err) || !digest_equal(&written, &want) ||
                 !read_root(n + 1, &read, &err) || !digest_equal(&read, &want);
    }
    ok(wrong == 0, "1,100 checkpoints of one leaf each: writer and reader agree %s",
       err.msg);
    for (uint64_t n = 1; n <= 1100; n++) {
        struct digest read;

        wrong += !read_root(n, &read, &err);
    }
    ok(wrong == 0, "the tree of every older size can still be read %s", err.msg);
    ok(exists("0/000") && !exists("0/000.p") && !exists("0/003.p") &&
           exists("0/004.p/1") && exists("0/004.p/76") && exists("1/000.p/4"),
       "partial tiles stay for every size until the full tile stands");
}

/* Computed by the prototype in Go and Node: root and layout. */
static void test_the_log_of_70000(void)
{
    struct digest root, want, read;
    struct err err = { 0 };

    start_again();
    ok(base64_decode_exact(want.bytes, DIGEST_SIZE,
                           STR("iAzp1zgS7nCSfy89h2NsFIl/GoQEAsjRXyuQSw3vhDI=")) &&
           extend(0, 70000, &root, &err) && digest_equal(&root, &want),
       "the root of 70,000 events %s", err.msg);
    ok(read_root(70000, &read, &err) && digest_equal(&read, &want),
       "read from the tiles");
    ok(has_mode("0/000", 0600, TILE_BYTES) && has_mode("0/272", 0600, TILE_BYTES) &&
           !exists("0/273") && has_mode("0/273.p/112", 0600, 112 * DIGEST_SIZE),
       "273 full tiles and one of 112 below");
    ok(has_mode("1/000", 0600, TILE_BYTES) && has_mode("1/001.p/17", 0600, 17 * 32) &&
           has_mode("2/000.p/1", 0600, 32) && !exists("3"),
       "one full and one of 17 above, one of 1 on top");
    ok(has_mode("0", 0700, 0) && has_mode("0/273.p", 0700, 0),
       "directories are ours only");
}

/* Over the log of 70,000. */
static void test_proofs_from_tiles(void)
{
    static const uint64_t places[] = {
        0, 1, 255, 256, 65535, 65536, 69887, 69888, 69999
    };
    struct tile_reader r;
    struct hashes h;
    struct digest root;
    struct err err = { 0 };

    tile_reader_init(&r, dir, 70000);
    h = tile_reader_hashes(&r);
    if (tree_root(&h, 70000, &root, &err) < 0)
        ok(false, "%s", err.msg);
    for (size_t i = 0; i < COUNT(places); i++) {
        struct digest leaf = leaf_of(places[i]), old;
        uint64_t size = places[i] + 1;
        struct proof p;

        ok(tree_prove_inclusion(&h, places[i], 70000, &p, &err) == 0 &&
               tree_inclusion_holds(&p, places[i], 70000, &leaf, &root),
           "event %u is in", (unsigned)places[i]);
        ok(tree_prove_consistency(&h, size, 70000, &p, &err) == 0 &&
               tree_root(&h, size, &old, &err) == 0 &&
               tree_consistency_holds(&p, size, 70000, &old, &root),
           "size %u is a prefix", (unsigned)size);
    }
    ok(h.read(h.ctx, 0, 69999, &root, &err) == 0 &&
           h.read(h.ctx, 16, 0, &root, &err) == 0,
       "the last subtrees of the tree are there");
    ok(h.read(h.ctx, 0, 70000, &root, &err) < 0 && err.code == ERR_REFUSED &&
           h.read(h.ctx, 17, 0, &root, &err) < 0 &&
           h.read(h.ctx, 64, 0, &root, &err) < 0 &&
           h.read(h.ctx, 63, UINT64_MAX, &root, &err) < 0,
       "what lies beyond is refused");
    tile_reader_release(&r);
    tile_reader_release(&r);
}

static bool write_bytes(const char *name, size_t n)
{
    static const char zeros[TILE_BYTES + 1];
    struct err err;

    return file_put(at(name), str_of(zeros, n), 0600, &err) == 0;
}

static void test_a_full_tile_is_left_alone(void)
{
    struct stat before, after;
    struct digest root, want;
    struct err err = { 0 };

    start_again();
    ok(extend(0, 200, &root, &err) && extend(200, 300, &want, &err), "300 events");
    if (stat(at("0/000"), &before) < 0)
        ok(false, "0/000 is missing");
    ok(extend(200, 300, &root, &err) && digest_equal(&root, &want) &&
           stat(at("0/000"), &after) == 0 && before.st_ino == after.st_ino,
       "opened at 200 by its full tile; the tile that stands is not written again");
    ok(write_bytes("0/000", 0) && extend(0, 300, &root, &err) &&
           has_mode("0/000", 0600, TILE_BYTES) && read_root(300, &root, &err) &&
           digest_equal(&root, &want),
       "one that a power cut emptied is");
    start_again();
    ok(extend(0, 200, &root, &err) && write_bytes("0/000", 100) &&
           extend(200, 300, &root, &err) && digest_equal(&root, &want) &&
           has_mode("0/000", 0600, TILE_BYTES) && !exists("0/000.p"),
       "so is one that a crash left half-written, beyond the last checkpoint");
}

static void test_damage_is_told(void)
{
    static const struct {
        const char *what;
        const char *name;
        size_t bytes; /* SIZE_MAX removes it */
        bool opens;   /* a writer needs only the unfinished tiles */
    } rows[] = {
        { "a missing full tile", "0/000", SIZE_MAX, true },
        { "a missing partial tile", "0/001.p/44", SIZE_MAX, false },
        { "a missing upper tile", "1/000.p/1", SIZE_MAX, false },
        { "a short full tile", "0/000", TILE_BYTES - 1, true },
        { "a long full tile", "0/000", TILE_BYTES + 1, true },
        { "an empty partial tile", "0/001.p/44", 0, false },
        { "a partial tile one hash short", "0/001.p/44", 43 * 32, false },
        { "a partial tile one hash long", "0/001.p/44", 45 * 32, false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 }, open_err = { 0 };
        struct tile_writer w = { 0 };
        struct digest root;
        struct tile_reader r;
        struct hashes h;
        struct proof p;

        start_again();
        if (!extend(0, 300, &root, &err))
            ok(false, "%s", err.msg);
        if (rows[i].bytes == SIZE_MAX ? unlink(at(rows[i].name)) < 0
                                      : !write_bytes(rows[i].name, rows[i].bytes))
            ok(false, "cannot damage %s", rows[i].name);
        tile_reader_init(&r, dir, 300);
        h = tile_reader_hashes(&r);
        ok((tree_prove_inclusion(&h, 1, 300, &p, &err) < 0 ||
            tree_prove_inclusion(&h, 299, 300, &p, &err) < 0) &&
               err.code == ERR_DAMAGE,
           "%s is damage: %s", rows[i].what, err.msg);
        tile_reader_release(&r);
        ok((tile_writer_open(&w, dir, 300, &open_err) == 0) == rows[i].opens &&
               open_err.code == (rows[i].opens ? ERR_NONE : ERR_DAMAGE) &&
               (w.edge != NULL) == rows[i].opens,
           "%s: a writer %s", rows[i].what, rows[i].opens ? "need not know" : "stops");
        tile_writer_release(&w);
    }
}

static void test_a_write_that_fails(void)
{
    struct err err = { 0 };
    struct tile_writer w = { 0 };
    struct digest leaf = leaf_of(0);
    bool good;

    start_again();
    if (file_make_dirs(dir, 0700, &err) < 0 || !write_bytes("0", 1))
        ok(false, "cannot put a file in the way");
    good = tile_writer_open(&w, dir, 0, &err) == 0;
    for (unsigned i = 0; i < 255; i++)
        good = good && tile_writer_add(&w, &leaf, &err) == 0;
    ok(good, "255 leaves need no file");
    ok(tile_writer_add(&w, &leaf, &err) < 0 && err.code == ERR_IO && w.size == 255,
       "the 256th does, and is not counted without it: %s", err.msg);
    err.code = ERR_NONE;
    ok(tile_writer_finish(&w, &err) < 0 && err.code == ERR_IO, "nor can it be finished");
    ok(unlink(at("0")) == 0 && tile_writer_add(&w, &leaf, &err) == 0 && w.size == 256 &&
           exists("0/000"),
       "added again once the way is free");
    tile_writer_release(&w);
    tile_writer_release(&w);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char base[512];
    struct err err;

    snprintf(base, sizeof(base), "%s/assay-tile-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(base) || path_join(dir, base, "tile", &err) < 0)
        return 1;
    test_paths();
    test_every_size_from_the_one_before();
    test_the_log_of_70000();
    test_proofs_from_tiles();
    test_a_full_tile_is_left_alone();
    test_damage_is_told();
    test_a_write_that_fails();
    ok(file_remove_tree(base, &err) == 0, "cleaned up");
    return tap_done();
}
