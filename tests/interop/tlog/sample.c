/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample DIR - write logs, proofs and packs' log files with our own code, for other code
 * to check:
 *
 *     DIR/log        1,025 events, a checkpoint at every size from 0
 *     DIR/big        70,000 events, a few checkpoints
 *     DIR/expected   per size of DIR/log: root, and digests over many of its proofs
 *     DIR/proofs     inclusion proofs in C2SP tlog-proof form
 *     DIR/pack-*     the log files of a pack, for several sets of events
 *
 * Events are random in the sense that nothing in the tree repeats: pad = SHA-256(seq).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "evidence/checkpoint.h"
#include "evidence/note.h"
#include "evidence/tile.h"

#define ORIGIN     "recorder.example/log1"
#define EVENTS     1025
#define BIG_EVENTS 70000
#define STEP       37 /* every so many'th leaf of a tree is proven, from size % STEP on */

struct sample {
    const char *dir;
    struct note_key key;
    struct secret_key secret;
    struct digest prev;
    struct buf segment;     /* lines since the last rotation */
    uint64_t segment_first; /* seq */
    struct buf checkpoints;
    struct buf lines; /* all of them */
    size_t line_at[EVENTS + 1];
};

static struct err err;

static void must(bool good)
{
    if (good)
        return;
    fprintf(stderr, "sample: %s\n", err.msg);
    exit(1);
}

static const char *in(const char *dir, const char *name)
{
    static char path[FILE_PATH_MAX];

    must(path_join(path, dir, name, &err) == 0);
    return path;
}

static void make_dir(const char *dir, const char *name)
{
    must(file_make_dirs(in(dir, name), 0700, &err) == 0);
}

static void put(const char *dir, const char *name, str bytes)
{
    must(file_put(in(dir, name), bytes, 0600, &err) == 0);
}

static struct digest add_event(struct sample *s, uint64_t seq)
{
    struct digest pad = digest_of(str_of(&seq, sizeof(seq)));
    size_t start = s->segment.n;
    str line;

    buf_add(&s->segment, STR("{\"pad\":\""));
    digest_add_hex(&s->segment, &pad);
    buf_add(&s->segment, STR("\",\"prev\":\""));
    digest_add_hex(&s->segment, &s->prev);
    buf_printf(&s->segment, "\",\"seq\":%llu}", (unsigned long long)seq);
    line = str_skip(buf_str(&s->segment), start);
    s->prev = tree_leaf(line);
    if (seq < EVENTS) {
        s->line_at[seq] = s->lines.n;
        buf_add(&s->lines, line);
        buf_add_char(&s->lines, '\n');
        s->line_at[seq + 1] = s->lines.n;
    }
    buf_add_char(&s->segment, '\n');
    return s->prev;
}

static void rotate(struct sample *s, uint64_t next)
{
    char name[64];

    snprintf(name, sizeof(name), "segments/%020llu.jsonl",
             (unsigned long long)s->segment_first);
    must(!s->segment.failed);
    put(s->dir, name, buf_str(&s->segment));
    s->segment_first = next;
    buf_reset(&s->segment);
}

/* Finish the tiles and sign what they say. The note goes to `note`. */
static struct digest checkpoint(struct sample *s, struct tile_writer *w, struct buf *note)
{
    struct checkpoint c = { .origin = ORIGIN, .size = w->size };
    size_t text;

    must(tile_writer_finish(w, &err) == 0);
    c.root = tile_writer_root(w);
    buf_reset(note);
    checkpoint_add(note, &c);
    text = note->n;
    buf_add_char(note, '\n');
    must(note_sign(note, str_first(buf_str(note), text), &s->key, &s->secret, &err) == 0);
    put(s->dir, "checkpoint", buf_str(note));
    buf_add(&s->checkpoints, buf_str(note));
    buf_add_char(&s->checkpoints, '\n');
    return c.root;
}

static void add_proof(struct hasher *h, const struct proof *p)
{
    uint8_t count = (uint8_t)p->count;

    hasher_add(h, str_of(&count, 1));
    hasher_add(h, str_of(p->hash, p->count * sizeof(p->hash[0])));
}

/* "size root inclusion consistency" in hex: digests over the proofs of many leaves i, and
 * over those that i + 1 is a prefix. */
static void expect(struct buf *out, const char *tiles, uint64_t size,
                   const struct digest *root)
{
    CLEANUP(tile_reader_release) struct tile_reader r;
    struct hasher inclusion;
    struct hasher consistency;
    struct hashes h;
    struct digest d;
    struct proof p;

    tile_reader_init(&r, tiles, size);
    h = tile_reader_hashes(&r);
    hasher_init(&inclusion);
    hasher_init(&consistency);
    for (uint64_t i = 0; i < size; i++) {
        if (i != 0 && i != size - 1 && i % STEP != size % STEP)
            continue;
        must(tree_prove_inclusion(&h, i, size, &p, &err) == 0);
        add_proof(&inclusion, &p);
        must(tree_prove_consistency(&h, i + 1, size, &p, &err) == 0);
        add_proof(&consistency, &p);
    }
    buf_printf(out, "%llu ", (unsigned long long)size);
    digest_add_hex(out, root);
    buf_add_char(out, ' ');
    d = hasher_finish(&inclusion);
    digest_add_hex(out, &d);
    buf_add_char(out, ' ');
    d = hasher_finish(&consistency);
    digest_add_hex(out, &d);
    buf_add_char(out, '\n');
}

static void write_proof(const char *base, const char *tiles, uint64_t size,
                        uint64_t index, str note)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    CLEANUP(tile_reader_release) struct tile_reader r;
    struct hashes h;
    struct proof p;
    char name[64];

    tile_reader_init(&r, tiles, size);
    h = tile_reader_hashes(&r);
    must(tree_prove_inclusion(&h, index, size, &p, &err) == 0);
    buf_printf(&b, "c2sp.org/tlog-proof@v1\nindex %llu\n", (unsigned long long)index);
    for (unsigned i = 0; i < p.count; i++) {
        base64_add(&b, p.hash[i].bytes, DIGEST_SIZE);
        buf_add_char(&b, '\n');
    }
    buf_add_char(&b, '\n');
    buf_add(&b, note);
    snprintf(name, sizeof(name), "proofs/%llu-%llu.tlog-proof", (unsigned long long)size,
             (unsigned long long)index);
    put(base, name, buf_str(&b));
}

static void write_proofs(const char *base, const char *tiles, uint64_t size, str note)
{
    if (size == 0 || (size > 4 && size % 256 > 1))
        return;
    write_proof(base, tiles, size, 0, note);
    write_proof(base, tiles, size, size / 2, note);
    write_proof(base, tiles, size, size - 1, note);
}

/* The log files of a pack that holds every event for which `has` says yes. */
static void write_pack(const struct sample *s, const char *base, const char *tiles,
                       const char *name, bool (*has)(uint64_t), str note)
{
    CLEANUP(buf_release) struct buf events = { 0 };
    CLEANUP(buf_release) struct buf hashes = { 0 };
    CLEANUP(buf_release) struct buf json = { 0 };
    CLEANUP(tile_reader_release) struct tile_reader r;
    static uint64_t index[EVENTS];
    struct leaf_set set = { index, NULL, 0 };
    struct hashes h;
    char dir[FILE_PATH_MAX];

    tile_reader_init(&r, tiles, EVENTS);
    h = tile_reader_hashes(&r);
    for (uint64_t i = 0; i < EVENTS; i++) {
        if (!has(i))
            continue;
        index[set.count++] = i;
        buf_add(&events,
                str_of(s->lines.p + s->line_at[i], s->line_at[i + 1] - s->line_at[i]));
    }
    must(tree_prove_set(&h, &set, EVENTS, &hashes, &err) == 0);
    buf_printf(&json, "{\"size\":%d,\"hashes\":[", EVENTS);
    for (size_t i = 0; i < hashes.n; i += DIGEST_SIZE) {
        buf_add(&json, i ? STR(",\"") : STR("\""));
        base64_add(&json, hashes.p + i, DIGEST_SIZE);
        buf_add_char(&json, '"');
    }
    buf_add(&json, STR("]}"));
    make_dir(base, name);
    must(path_join(dir, base, name, &err) == 0 && !events.failed && !json.failed);
    put(dir, "log_events.jsonl", buf_str(&events));
    put(dir, "log_proof.json", buf_str(&json));
    put(dir, "log_checkpoint", note);
    buf_reset(&json);
    buf_add(&json, STR("{\"signer_pubkey\":\""));
    base64_add(&json, s->key.public_key, PUBLIC_SIZE);
    buf_add(&json, STR("\"}\n"));
    put(dir, "pack_manifest.json", buf_str(&json));
}

static bool is_first(uint64_t i)
{
    return i == 0;
}

static bool is_last(uint64_t i)
{
    return i == EVENTS - 1;
}

static bool is_run(uint64_t i)
{
    return i >= 250 && i < 530;
}

static bool is_scattered(uint64_t i)
{
    return i % 17 == 3 || i % 64 == 0;
}

static bool is_any(uint64_t i)
{
    return i < EVENTS;
}

static void write_packs(const struct sample *s, const char *base, const char *tiles,
                        str note)
{
    write_pack(s, base, tiles, "pack-first", is_first, note);
    write_pack(s, base, tiles, "pack-last", is_last, note);
    write_pack(s, base, tiles, "pack-run", is_run, note);
    write_pack(s, base, tiles, "pack-scattered", is_scattered, note);
    write_pack(s, base, tiles, "pack-all", is_any, note);
}

static void start(struct sample *s, const char *dir)
{
    CLEANUP(buf_release) struct buf vkey = { 0 };
    uint8_t seed[SEED_SIZE];

    *s = (struct sample){ .dir = dir, .segment.max = (size_t)32 << 20 };
    memset(seed, 7, sizeof(seed));
    must(secret_key_from_seed(&s->secret, seed, &err) == 0);
    must(note_key_make(&s->key, STR(ORIGIN), s->secret.public_key, &err) == 0);
    make_dir(dir, "segments");
    note_key_add(&vkey, &s->key);
    buf_add_char(&vkey, '\n');
    put(dir, "origin", buf_str(&vkey));
}

static void finish(struct sample *s)
{
    put(s->dir, "checkpoints", buf_str(&s->checkpoints));
    must(!s->checkpoints.failed);
    buf_release(&s->segment);
    buf_release(&s->checkpoints);
    buf_release(&s->lines);
    secret_key_release(&s->secret);
}

/* A checkpoint, and so a writer of its own, for every size. */
static void write_log(const char *base, const char *dir)
{
    CLEANUP(buf_release) struct buf note = { 0 };
    CLEANUP(buf_release) struct buf expected = { 0 };
    struct sample s;
    char tiles[FILE_PATH_MAX];

    start(&s, dir);
    must(path_join(tiles, dir, "tile", &err) == 0);
    for (uint64_t size = 0; size <= EVENTS; size++) {
        CLEANUP(tile_writer_release) struct tile_writer w = { 0 };
        struct digest root;

        must(tile_writer_open(&w, tiles, size ? size - 1 : 0, &err) == 0);
        if (size) {
            struct digest leaf = add_event(&s, size - 1);

            must(tile_writer_add(&w, &leaf, &err) == 0);
        }
        root = checkpoint(&s, &w, &note);
        expect(&expected, tiles, size, &root);
        write_proofs(base, tiles, size, buf_str(&note));
        if (size == 600)
            rotate(&s, size);
    }
    rotate(&s, EVENTS);
    put(base, "expected", buf_str(&expected));
    must(!expected.failed);
    write_packs(&s, base, tiles, buf_str(&note));
    finish(&s);
}

static void write_big(const char *dir)
{
    CLEANUP(buf_release) struct buf note = { 0 };
    CLEANUP(tile_writer_release) struct tile_writer w = { 0 };
    struct sample s;
    char tiles[FILE_PATH_MAX];

    start(&s, dir);
    must(path_join(tiles, dir, "tile", &err) == 0 &&
         tile_writer_open(&w, tiles, 0, &err) == 0);
    for (uint64_t size = 1; size <= BIG_EVENTS; size++) {
        struct digest leaf = add_event(&s, size - 1);

        must(tile_writer_add(&w, &leaf, &err) == 0);
        if (size == 65535 || size == 65536 || size == 65537 || size == BIG_EVENTS)
            checkpoint(&s, &w, &note);
        if (size % 30000 == 0)
            rotate(&s, size);
    }
    rotate(&s, BIG_EVENTS);
    finish(&s);
}

int main(int argc, char **argv)
{
    char dir[FILE_PATH_MAX];

    if (argc != 2) {
        fprintf(stderr, "usage: sample DIR\n");
        return 3;
    }
    make_dir(argv[1], "proofs");
    must(path_join(dir, argv[1], "log", &err) == 0);
    make_dir(argv[1], "log");
    write_log(argv[1], dir);
    must(path_join(dir, argv[1], "big", &err) == 0);
    make_dir(argv[1], "big");
    write_big(dir);
    return 0;
}
