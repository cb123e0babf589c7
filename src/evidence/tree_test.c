/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/tree.h"

#include "base/err.h"
#include "tests/tap.h"

/* Roots and all proofs of the trees over "0", "1", … "129", hashed together; computed
 * with a Python transcription of RFC 6962 §2.1. */
#define SIZE_MAX_TESTED 130
#define ALL_ROOTS       "21a871cc6c5c92530f50a01fe569ccbe05158288c965944c88bcb3da01508ba9"
#define ALL_INCLUSIONS  "a429708d70cc75cba4d63ae68193c84f512d6296697e57765f6a52e4ef527c8a"
#define ALL_CONSISTENCY "8bd134ab43e4ac0d8edc541c1fe22f8f82dcdae73f4140b4de4dac19595b4970"
#define ALL_SETS        "e3f7df68a0161ea62ad34e44ba27933bdb8266e4b0759e7481a233502cfee215"

static bool has_hex(const struct digest *d, const char *hex)
{
    struct digest want;

    return digest_from_hex(&want, str_from(hex)) && digest_equal(d, &want);
}

static bool hasher_gives(struct hasher *h, const char *hex)
{
    struct digest d = hasher_finish(h);

    return has_hex(&d, hex);
}

/* A tree in memory, by level. */
struct forest {
    struct digest level[8][SIZE_MAX_TESTED];
    struct digest root[SIZE_MAX_TESTED + 1];
    unsigned reads;
};

static int read_forest(void *ctx, unsigned level, uint64_t index, struct digest *out,
                       struct err *err)
{
    struct forest *f = ctx;

    f->reads++;
    if (level >= 8 || (index + 1) << level > SIZE_MAX_TESTED)
        return err_set(err, ERR_DAMAGE, "no subtree %u/%u", level, (unsigned)index);
    *out = f->level[level][index];
    return 0;
}

static struct hashes plant(struct forest *f)
{
    struct range r = { 0 };

    f->root[0] = range_root(&r);
    for (unsigned i = 0; i < SIZE_MAX_TESTED; i++) {
        char text[8];
        int n = snprintf(text, sizeof(text), "%u", i);

        f->level[0][i] = tree_leaf(str_of(text, (size_t)n));
        range_append(&r, &f->level[0][i]);
        f->root[i + 1] = range_root(&r);
    }
    for (unsigned l = 1; l < 8; l++) {
        for (unsigned i = 0; (i + 1) << l <= SIZE_MAX_TESTED; i++)
            f->level[l][i] =
                tree_node(&f->level[l - 1][2 * i], &f->level[l - 1][2 * i + 1]);
    }
    return (struct hashes){ read_forest, f };
}

static void test_roots_of_the_published_leaves(void)
{
    const struct {
        str leaf;
        const char *root; /* of the leaves up to this one */
    } rows[] = {
        { STR(""), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
        { STR("\0"), "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125" },
        { STR("\x10"),
          "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77" },
        { STR("\x20\x21"),
          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7" },
        { STR("\x30\x31"),
          "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4" },
        { STR("\x40\x41\x42\x43"),
          "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef" },
        { STR("\x50\x51\x52\x53\x54\x55\x56\x57"),
          "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c" },
        { STR("\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f"),
          "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328" },
    };
    struct range r = { 0 };
    struct digest root = range_root(&r);

    ok(has_hex(&root, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
       "the empty tree has the root of no bytes");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct digest leaf = tree_leaf(rows[i].leaf);

        range_append(&r, &leaf);
        root = range_root(&r);
        ok(has_hex(&root, rows[i].root), "RFC 6962 root of %zu leaves", i + 1);
    }
}

static void add_proof(struct hasher *h, const struct proof *p)
{
    uint8_t count = (uint8_t)p->count;

    hasher_add(h, str_of(&count, 1));
    hasher_add(h, str_of(p->hash, p->count * sizeof(p->hash[0])));
}

static void test_ranges_and_roots(struct forest *f, const struct hashes *hashes)
{
    struct hasher h;
    struct err err = { 0 };
    bool same = true;

    hasher_init(&h);
    for (unsigned n = 0; n <= SIZE_MAX_TESTED; n++) {
        struct digest root;

        same = same && tree_root(hashes, n, &root, &err) == 0 &&
               digest_equal(&root, &f->root[n]);
        hasher_add(&h, digest_str(&f->root[n]));
    }
    ok(same, "stored subtrees give the root that appending gave");
    ok(hasher_gives(&h, ALL_ROOTS), "roots of sizes 0 to %d", SIZE_MAX_TESTED);
}

static void test_inclusion(const struct forest *f, const struct hashes *hashes)
{
    struct hasher h;
    struct err err = { 0 };
    struct proof p;
    bool holds = true;

    hasher_init(&h);
    for (unsigned n = 1; n <= SIZE_MAX_TESTED; n++) {
        for (unsigned i = 0; i < n; i++) {
            holds = holds && tree_prove_inclusion(hashes, i, n, &p, &err) == 0 &&
                    tree_inclusion_holds(&p, i, n, &f->level[0][i], &f->root[n]);
            add_proof(&h, &p);
        }
    }
    ok(holds, "every inclusion proof that we make holds");
    ok(hasher_gives(&h, ALL_INCLUSIONS), "every inclusion proof is the RFC's");
}

static void test_consistency(const struct forest *f, const struct hashes *hashes)
{
    struct hasher h;
    struct err err = { 0 };
    struct proof p;
    bool holds = true;

    hasher_init(&h);
    for (unsigned n = 1; n <= SIZE_MAX_TESTED; n++) {
        for (unsigned m = 1; m <= n; m++) {
            holds = holds && tree_prove_consistency(hashes, m, n, &p, &err) == 0 &&
                    tree_consistency_holds(&p, m, n, &f->root[m], &f->root[n]);
            add_proof(&h, &p);
        }
    }
    ok(holds, "every consistency proof that we make holds");
    ok(hasher_gives(&h, ALL_CONSISTENCY), "every consistency proof is the RFC's");
}

/* The indexes i < n with i = n modulo step. */
static size_t pick(uint64_t *index, struct digest *leaf, const struct forest *f,
                   unsigned n, unsigned step)
{
    size_t count = 0;

    for (unsigned i = 0; i < n; i++) {
        if (i % step != n % step)
            continue;
        index[count] = i;
        leaf[count++] = f->level[0][i];
    }
    return count;
}

static void test_sets(const struct forest *f, const struct hashes *hashes)
{
    struct hasher h;
    CLEANUP(buf_release) struct buf b = { 0 };
    uint64_t index[SIZE_MAX_TESTED];
    struct digest leaf[SIZE_MAX_TESTED];
    struct err err = { 0 };
    bool holds = true;

    hasher_init(&h);
    for (unsigned n = 1; n <= SIZE_MAX_TESTED; n++) {
        for (unsigned step = 1; step < 10; step++) {
            struct leaf_set set = { index, leaf, pick(index, leaf, f, n, step) };
            uint8_t hashes_made;

            buf_reset(&b);
            holds = holds && tree_prove_set(hashes, &set, n, &b, &err) == 0 &&
                    tree_set_holds(&set, n, buf_str(&b), &f->root[n]);
            hashes_made = (uint8_t)(b.n / DIGEST_SIZE);
            hasher_add(&h, str_of(&hashes_made, 1));
            hasher_add(&h, buf_str(&b));
        }
    }
    ok(holds, "every set proof that we make holds");
    ok(hasher_gives(&h, ALL_SETS), "every set proof is the walk of the pack format");
}

/* As many sets as there may be, of which some have nothing, or all, or the same. */
static void test_proofs_of_many_sets_are_those_of_each(const struct forest *f,
                                                       const struct hashes *hashes)
{
    static uint64_t index[TREE_SETS_MAX][SIZE_MAX_TESTED];
    static struct digest leaf[TREE_SETS_MAX][SIZE_MAX_TESTED];
    struct err err = { 0 };
    bool same = true;

    for (unsigned n = 1; n <= SIZE_MAX_TESTED; n++) {
        struct buf outs[TREE_SETS_MAX] = { { .max = 0 } };
        struct leaf_set sets[TREE_SETS_MAX];

        for (unsigned i = 0; i < TREE_SETS_MAX; i++) {
            outs[i].max = 1 << 20;
            sets[i] = (struct leaf_set){ index[i], leaf[i], 0 };
            if (i)
                sets[i].count = pick(index[i], leaf[i], f, n, i / 2 + 1);
        }
        same = same && tree_prove_sets(hashes, sets, TREE_SETS_MAX, n, outs, &err) == 0;
        for (unsigned i = 0; i < TREE_SETS_MAX; i++) {
            CLEANUP(buf_release) struct buf alone = { .max = 1 << 20 };

            same = same && tree_prove_set(hashes, &sets[i], n, &alone, &err) == 0 &&
                   str_equal(buf_str(&alone), buf_str(&outs[i])) &&
                   tree_set_holds(&sets[i], n, buf_str(&outs[i]), &f->root[n]);
            buf_release(&outs[i]);
        }
    }
    ok(same, "%d sets at once have the proofs of each: %s", TREE_SETS_MAX, err.msg);
    ok(tree_prove_sets(hashes, NULL, TREE_SETS_MAX + 1, 1, NULL, &err) < 0 &&
           err.code == ERR_LIMIT,
       "and not one more: %s", err.msg);
}

/* Change one thing of a good inclusion proof: nothing else may hold. */
static void test_inclusion_refuses_what_is_wrong(const struct forest *f,
                                                 const struct hashes *hashes)
{
    struct err err = { 0 };
    unsigned accepted = 0;
    struct proof p;

    for (unsigned n = 1; n <= 40; n++) {
        for (unsigned i = 0; i < n; i++) {
            if (tree_prove_inclusion(hashes, i, n, &p, &err) < 0)
                accepted++;
            for (unsigned j = 0; j < 64; j++) {
                accepted += j != i &&
                            tree_inclusion_holds(&p, j, n, &f->level[0][i], &f->root[n]);
            }
            accepted += tree_inclusion_holds(&p, i, n, &f->level[0][n], &f->root[n]);
            accepted += tree_inclusion_holds(&p, i, n, &f->level[0][i], &f->root[n + 1]);
            p.count++;
            p.hash[p.count - 1] = f->root[1];
            accepted += tree_inclusion_holds(&p, i, n, &f->level[0][i], &f->root[n]);
            p.count -= 2;
            accepted +=
                n > 1 && tree_inclusion_holds(&p, i, n, &f->level[0][i], &f->root[n]);
            p.count = PROOF_MAX + 1;
            accepted += tree_inclusion_holds(&p, i, n, &f->level[0][i], &f->root[n]);
        }
    }
    ok(accepted == 0, "another index, leaf, root or number of hashes never holds");
    p.count = 0;
    ok(!tree_inclusion_holds(&p, 0, 0, &f->level[0][0], &f->root[1]),
       "nothing is included in the empty tree");
    ok(tree_inclusion_holds(&p, 0, 1, &f->level[0][0], &f->root[1]),
       "a tree of one leaf needs no hash");
}

static void test_consistency_refuses_what_is_wrong(const struct forest *f,
                                                   const struct hashes *hashes)
{
    struct err err = { 0 };
    unsigned accepted = 0;
    struct proof p;

    for (unsigned n = 2; n <= 40; n++) {
        for (unsigned m = 1; m < n; m++) {
            if (tree_prove_consistency(hashes, m, n, &p, &err) < 0)
                accepted++;
            accepted += tree_consistency_holds(&p, n, m, &f->root[n], &f->root[m]);
            accepted += tree_consistency_holds(&p, m, n, &f->root[m + 1], &f->root[n]);
            accepted += tree_consistency_holds(&p, m, n, &f->root[m], &f->root[n + 1]);
            accepted += tree_consistency_holds(&p, m + 1, n, &f->root[m], &f->root[n]);
            accepted += tree_consistency_holds(&p, 0, n, &f->root[0], &f->root[n]);
            p.count++;
            p.hash[p.count - 1] = f->root[1];
            accepted += tree_consistency_holds(&p, m, n, &f->root[m], &f->root[n]);
            p.count -= 2;
            accepted += tree_consistency_holds(&p, m, n, &f->root[m], &f->root[n]);
            p.count = PROOF_MAX + 1;
            accepted += tree_consistency_holds(&p, m, n, &f->root[m], &f->root[n]);
        }
    }
    ok(accepted == 0, "other sizes, roots or numbers of hashes never hold");
    p.count = 0;
    ok(tree_consistency_holds(&p, 0, 9, &f->root[0], &f->root[9]),
       "every tree extends the empty one");
    ok(!tree_consistency_holds(&p, 0, 9, &f->root[1], &f->root[9]),
       "but the empty tree has only one root");
    ok(tree_consistency_holds(&p, 9, 9, &f->root[9], &f->root[9]) &&
           !tree_consistency_holds(&p, 9, 9, &f->root[8], &f->root[9]),
       "a tree extends itself and no other of its size");
}

static void test_sets_refuse_what_is_wrong(const struct forest *f,
                                           const struct hashes *hashes)
{
    static const uint64_t good[] = { 2, 3, 9 };
    static const struct {
        const char *what;
        uint64_t index[3];
    } bad[] = {
        { "descending", { 3, 2, 9 } },       { "repeated", { 2, 2, 9 } },
        { "beyond the size", { 2, 3, 13 } }, { "far beyond", { 2, 3, UINT64_MAX } },
        { "another place", { 2, 4, 9 } },
    };
    CLEANUP(buf_release) struct buf b = { 0 };
    struct digest leaf[] = { f->level[0][2], f->level[0][3], f->level[0][9] };
    struct leaf_set set = { good, leaf, 3 };
    struct err err = { 0 };
    str proof;

    ok(tree_prove_set(hashes, &set, 13, &b, &err) == 0, "a set to tamper with");
    proof = buf_str(&b);
    ok(!tree_set_holds(&set, 13, str_first(proof, b.n - DIGEST_SIZE), &f->root[13]),
       "a hash too few");
    ok(!tree_set_holds(&set, 13, str_first(proof, b.n - 1), &f->root[13]),
       "a byte too few");
    ok(!tree_set_holds(&set, 13, (str){ NULL, 0 }, &f->root[13]), "no hash at all");
    ok(!tree_set_holds(&set, 12, proof, &f->root[13]) &&
           !tree_set_holds(&set, 0, proof, &f->root[13]) &&
           !tree_set_holds(&set, UINT64_MAX, proof, &f->root[13]),
       "another size");
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct leaf_set other = { bad[i].index, leaf, 3 };

        ok(!tree_set_holds(&other, 13, proof, &f->root[13]), "indexes %s", bad[i].what);
    }
    for (size_t i = 0; i < 4; i++) {
        struct leaf_set other = { bad[i].index, leaf, 3 };

        err.code = ERR_NONE;
        ok(tree_prove_set(hashes, &other, 13, &b, &err) < 0 && err.code == ERR_REFUSED &&
               b.n == proof.n,
           "no proof for indexes %s", bad[i].what);
    }
    buf_add_char(&b, 0);
    ok(!tree_set_holds(&set, 13, buf_str(&b), &f->root[13]), "a byte too many");
}

static void test_empty_sets(const struct forest *f, const struct hashes *hashes)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct leaf_set none = { NULL, NULL, 0 };
    struct err err = { 0 };

    ok(tree_prove_set(hashes, &none, 0, &b, &err) == 0 && b.n == 0 &&
           tree_set_holds(&none, 0, buf_str(&b), &f->root[0]),
       "nothing of nothing needs no hash");
    ok(tree_prove_set(hashes, &none, 7, &b, &err) == 0 &&
           str_equal(buf_str(&b), digest_str(&f->root[7])) &&
           tree_set_holds(&none, 7, buf_str(&b), &f->root[7]),
       "nothing of a tree is its root");
}

static void test_a_set_proof_has_a_maximum(const struct hashes *hashes)
{
    static const uint64_t index[] = { 64 };
    CLEANUP(buf_release) struct buf b = { .max = 3 * DIGEST_SIZE };
    struct leaf_set set = { index, NULL, 1 };
    struct err err = { 0 };

    ok(tree_prove_set(hashes, &set, 65, &b, &err) == 0 && b.n == DIGEST_SIZE,
       "a set proof within its buffer");
    ok(tree_prove_set(hashes, &set, 130, &b, &err) < 0 && err.code == ERR_LIMIT &&
           b.n == DIGEST_SIZE,
       "and one beyond it leaves the buffer's bytes alone");
}

static void test_preconditions_are_refused(const struct hashes *hashes)
{
    static const struct {
        uint64_t a, size;
        bool inclusion;
    } rows[] = {
        { 5, 5, true },  { 0, 0, true },  { UINT64_MAX, 5, true },
        { 0, 5, false }, { 6, 5, false }, { 0, 0, false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct proof p = { .count = 77 };
        struct err err = { 0 };
        int r = rows[i].inclusion
                    ? tree_prove_inclusion(hashes, rows[i].a, rows[i].size, &p, &err)
                    : tree_prove_consistency(hashes, rows[i].a, rows[i].size, &p, &err);

        ok(r < 0 && err.code == ERR_REFUSED && p.count == 77,
           "no %s proof of %llu in %llu", rows[i].inclusion ? "inclusion" : "consistency",
           (unsigned long long)rows[i].a, (unsigned long long)rows[i].size);
    }
}

static void test_a_failing_read_fails_the_proof(const struct hashes *hashes)
{
    struct err err = { 0 };
    struct proof p = { .count = 77 };

    ok(tree_prove_inclusion(hashes, 0, 512, &p, &err) < 0 && err.code == ERR_DAMAGE &&
           p.count == 77,
       "a missing subtree is told as it was found");
}

/* Every leaf the same: a tree of any size, from one hash per level. */
struct plain {
    struct digest level[64];
    unsigned reads;
};

static int read_plain(void *ctx, unsigned level, uint64_t index, struct digest *out,
                      struct err *err)
{
    struct plain *p = ctx;

    (void)index;
    (void)err;
    p->reads++;
    *out = p->level[level];
    return 0;
}

static void test_huge_trees(void)
{
    static const uint64_t sizes[] = {
        (uint64_t)1 << 40, ((uint64_t)1 << 40) + 12345, ((uint64_t)1 << 63) - 1,
        (uint64_t)1 << 63, ((uint64_t)1 << 63) + 1,     UINT64_MAX - 1,
        UINT64_MAX,
    };
    struct plain t = { .level[0] = tree_leaf(STR("x")) };
    struct hashes h = { read_plain, &t };
    struct err err = { 0 };

    for (unsigned l = 1; l < 64; l++)
        t.level[l] = tree_node(&t.level[l - 1], &t.level[l - 1]);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint64_t n = sizes[i], at[] = { 0, n / 3, n / 2, n - 1 };
        struct digest root, old_root;
        bool holds = tree_root(&h, n, &root, &err) == 0;
        unsigned most = 0;
        struct proof p;

        for (size_t k = 0; k < COUNT(at); k++) {
            t.reads = 0;
            holds = holds && tree_prove_inclusion(&h, at[k], n, &p, &err) == 0 &&
                    tree_inclusion_holds(&p, at[k], n, &t.level[0], &root) &&
                    !tree_inclusion_holds(&p, n, n, &t.level[0], &root);
            most = t.reads > most ? t.reads : most;
            t.reads = 0;
            holds = holds && tree_prove_consistency(&h, at[k] + 1, n, &p, &err) == 0 &&
                    tree_root(&h, at[k] + 1, &old_root, &err) == 0 &&
                    tree_consistency_holds(&p, at[k] + 1, n, &old_root, &root);
            most = t.reads > most ? t.reads : most;
        }
        ok(holds && most <= 3 * 64, "proofs in a tree of %llu leaves, %u reads at most",
           (unsigned long long)n, most);
    }
}

int main(void)
{
    static struct forest f;
    struct hashes hashes = plant(&f);

    test_roots_of_the_published_leaves();
    test_ranges_and_roots(&f, &hashes);
    test_inclusion(&f, &hashes);
    test_consistency(&f, &hashes);
    test_sets(&f, &hashes);
    test_proofs_of_many_sets_are_those_of_each(&f, &hashes);
    test_inclusion_refuses_what_is_wrong(&f, &hashes);
    test_consistency_refuses_what_is_wrong(&f, &hashes);
    test_sets_refuse_what_is_wrong(&f, &hashes);
    test_empty_sets(&f, &hashes);
    test_a_set_proof_has_a_maximum(&hashes);
    test_preconditions_are_refused(&hashes);
    test_a_failing_read_fails_the_proof(&hashes);
    test_huge_trees();
    return tap_done();
}
