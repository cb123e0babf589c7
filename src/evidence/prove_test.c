/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/prove.h"

#include "base/codec.h"
#include "evidence/segment.h"
#include "tests/lab.h"
#include "tests/tap.h"

#define EVENTS 300

/* The leaf hashes of the log, from its lines. */
static size_t read_leaves(const struct lab *l, struct digest *leaf, size_t max)
{
    CLEANUP(segment_close) struct segment_reader r = { 0 };
    enum segment_step step = SEGMENT_LINE;
    struct err err = { 0 };
    size_t n = 0;
    str line;

    if (segment_open_seq(&r, lab_path(l, "log"), 0, &err) < 0)
        return 0;
    while (n < max && segment_next(&r, &step, &line, &err) == 0 && step == SEGMENT_LINE)
        leaf[n++] = tree_leaf(line);
    return n;
}

static void test_every_event_is_proven(const struct lab *l, const struct digest *leaf)
{
    bool all = true;

    for (uint64_t seq = 0; seq < EVENTS + 2; seq++) {
        CLEANUP(proven_release) struct proven p = { 0 };
        struct err err = { 0 };

        if (prove_inclusion(&p, l->audit, seq, &err) < 0 ||
            !tree_inclusion_holds(&p.proof, seq, p.size, &leaf[seq], &p.root) ||
            tree_inclusion_holds(&p.proof, seq, p.size, &leaf[seq ^ 1], &p.root)) {
            printf("# event %d: %s\n", (int)seq, err.msg);
            all = false;
        }
    }
    ok(all, "every event, and no other in its place");
}

static void test_every_older_size_is_proven(const struct lab *l)
{
    bool all = true;

    for (uint64_t from = 1; from <= EVENTS + 2; from += 7) {
        for (uint64_t to = from; to <= EVENTS + 2; to += 13) {
            CLEANUP(proven_release) struct proven p = { 0 };
            struct err err = { 0 };

            all = all && prove_consistency(&p, l->audit, from, to, &err) == 0 &&
                  tree_consistency_holds(&p.proof, from, to, &p.old_root, &p.root) &&
                  (p.note.n > 0) == (to == EVENTS + 2 || to == 102);
        }
    }
    ok(all, "every older size; with its note where one was signed");
}

static void test_texts(const struct lab *l)
{
    CLEANUP(proven_release) struct proven p = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };
    str rest, line;
    int hashes = 0;

    ok(prove_inclusion(&p, l->audit, 7, &err) == 0, "a proof: %s", err.msg);
    proven_add_inclusion(&text, &p);
    rest = buf_str(&text);
    ok(str_line(&rest, &line) && str_is(line, "c2sp.org/tlog-proof@v1"), "tlog-proof");
    ok(str_line(&rest, &line) && str_is(line, "index 7"), "with its index");
    while (str_line(&rest, &line) && line.n) {
        struct digest d;

        hashes += base64_decode_exact(d.bytes, DIGEST_SIZE, line);
    }
    ok(hashes == (int)p.proof.count && hashes > 5, "%d hashes", hashes);
    ok(str_equal(rest, buf_str(&p.note)), "and the signed checkpoint, byte for byte");
}

static void test_refusals(const struct lab *l)
{
    static const struct {
        const char *what;
        uint64_t from, to;
    } sizes[] = {
        { "an older size of 0", 0, 5 },
        { "sizes the wrong way round", 9, 3 },
        { "a size behind the checkpoint", 5, EVENTS + 3 },
    };
    struct proven p = { 0 };
    struct err err = { 0 };

    ok(prove_inclusion(&p, l->audit, EVENTS + 2, &err) < 0, "no such event: %s", err.msg);
    for (size_t i = 0; i < COUNT(sizes); i++)
        ok(prove_consistency(&p, l->audit, sizes[i].from, sizes[i].to, &err) < 0,
           "%s: %s", sizes[i].what, err.msg);
    ok(file_replace(lab_path(l, "log/tile/0/000"), STR("short"), 0600, &err) == 0,
       "spoil");
    ok(prove_inclusion(&p, l->audit, 7, &err) < 0 && err.code == ERR_DAMAGE,
       "tiles that do not give the signed root prove nothing: %s", err.msg);
}

int main(void)
{
    static struct digest leaf[EVENTS + 16];
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    for (int i = 0; log && i < EVENTS; i++) {
        if (lab_append(log, i, NULL, &err) < 0 ||
            (i == 100 && log_checkpoint(log, true, &err) < 0))
            ok(false, "append: %s", err.msg);
    }
    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(read_leaves(&l, leaf, EVENTS + 2) == EVENTS + 2, "of %d events", EVENTS + 2);
    test_every_event_is_proven(&l, leaf);
    test_every_older_size_is_proven(&l);
    test_texts(&l);
    test_refusals(&l);
    lab_remove(&l);
    return tap_done();
}
