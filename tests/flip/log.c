/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "evidence/head.h"
#include "evidence/latch.h"
#include "evidence/logcheck.h"
#include "evidence/origin.h"
#include "tests/flip/flip.h"
#include "tests/lab.h"

#define DOCUMENT "docs/log.md"

/* `count` events in segments of at most `segment` bytes, three checkpoints; the last but
 * one is the first of a new key and has two signatures. */
static struct lab make_log(int count, uint64_t segment)
{
    struct lab l = lab_make();
    struct log_options o = lab_options(&l);
    CLEANUP(signer_release) struct signer next = { 0 };
    struct log *log = NULL;
    struct err err = { 0 };
    int r;

    o.segment_max = segment;
    o.say = NULL;
    r = log_open(&log, &o, &err);
    for (int i = 0; i < count && r == 0; i++) {
        r = lab_append(log, i, NULL, &err);
        if (r == 0 && i == count / 2)
            r = log_checkpoint(log, true, &err);
    }
    if (r < 0 || keys_generate(&l.keys, &entropy_system, "next", &next, &err) < 0 ||
        log_rotate_key(log, &next, &err) < 0 || log_close(log, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return l;
}

static bool is_found(void *ctx)
{
    static struct logcheck c;
    const struct logcheck_options options = { .keys = NULL };
    struct err err = { 0 };

    return logcheck_run(&c, ctx, &options, &err) < 0 || c.findings > 0;
}

/* --- what nothing vouches for, and why: docs/log.md has the same --- */

#define SLOTS_AT   112
#define SLOT_BYTES 72

static void allow_head(struct flip *f, const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };
    uint64_t generation[2];
    size_t newest;

    if (file_read(lab_path(l, "log/head"), &text, &err) < 0) {
        ok(false, "%s", err.msg);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        memcpy(&generation[i], text.p + SLOTS_AT + i * SLOT_BYTES + 8, 8);
    newest = generation[1] > generation[0];
    flip_allow(f, "log/lock", 0, LATCH_BYTES, "who holds the lock, or held it last");
    flip_allow(f, "log/head", 8, SLOTS_AT, "hints that writers share");
    flip_allow(f, "log/head", SLOTS_AT + (1 - newest) * SLOT_BYTES,
               SLOTS_AT + (2 - newest) * SLOT_BYTES, "the older of the two slots");
    flip_allow(f, "log/head", SLOTS_AT + 2 * SLOT_BYTES, HEAD_BYTES, "padding");
}

static void run(const char *what, struct lab *l, bool all_bits, const char *below)
{
    struct flip f = { .all_bits = all_bits, .is_found = is_found, .ctx = l->audit };

    allow_head(&f, l);
    ok(!is_found(l->audit), "%s: a sound log", what);
    flip_tree(&f, l->audit, below);
    ok(f.unseen == 0, "%s: %zu flips over %zu bytes of %zu files: none unseen", what,
       f.flips, f.bytes, f.files);
    ok(f.files > 0 && f.bytes > 0, "%s: there was something to flip", what);
    if (strcmp(below, "log") == 0)
        flip_check_list(&f, DOCUMENT);
    ok(!is_found(l->audit), "%s: sound again", what);
    lab_remove(l);
}

int main(int argc, char **argv)
{
    bool soak = argc > 1 && strcmp(argv[1], "soak") == 0;
    struct lab l = make_log(8, 1500);

    run("a small log", &l, soak, "log");
    if (soak) { /* full tiles, two levels of them */
        l = make_log(300, 20000);
        run("the tiles of a larger log", &l, false, "log/tile");
    }
    return tap_done();
}
