/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/tree.h"

#include <assert.h>

#include "base/err.h"

struct digest tree_leaf(str line)
{
    const str parts[] = { { "\0", 1 }, line };

    return digest_of_parts(parts, COUNT(parts));
}

struct digest tree_node(const struct digest *left, const struct digest *right)
{
    uint8_t bytes[1 + 2 * DIGEST_SIZE] = { 1 };

    memcpy(bytes + 1, left->bytes, DIGEST_SIZE);
    memcpy(bytes + 1 + DIGEST_SIZE, right->bytes, DIGEST_SIZE);
    return digest_of(str_of(bytes, sizeof(bytes)));
}

struct digest tree_empty(void)
{
    return digest_of(STR(""));
}

void range_append(struct range *r, const struct digest *leaf)
{
    unsigned n = range_count(r->size);
    struct digest top = *leaf;

    assert(r->size < UINT64_MAX);
    for (uint64_t s = r->size; s & 1; s >>= 1)
        top = tree_node(&r->hash[--n], &top);
    r->hash[n] = top;
    r->size++;
}

struct digest range_root(const struct range *r)
{
    unsigned n = range_count(r->size);
    struct digest root;

    if (n == 0)
        return tree_empty();
    root = r->hash[--n];
    while (n > 0)
        root = tree_node(&r->hash[--n], &root);
    return root;
}

static unsigned top_bit(uint64_t n) /* n > 0 */
{
    return 63 - (unsigned)__builtin_clzll(n);
}

/* The largest power of two below n; n > 1. */
static uint64_t split(uint64_t n)
{
    return (uint64_t)1 << top_bit(n - 1);
}

/* The perfect subtrees of the leaves [lo, hi). `lo` is where a subtree of the tree
 * begins, so it is a multiple of each of them. */
static int read_range(const struct hashes *h, uint64_t lo, uint64_t hi, struct range *out,
                      struct err *err)
{
    unsigned n = 0;

    out->size = hi - lo;
    while (lo < hi) {
        unsigned level = top_bit(hi - lo);

        if (h->read(h->ctx, level, lo >> level, &out->hash[n++], err) < 0)
            return -1;
        lo += (uint64_t)1 << level;
    }
    return 0;
}

static int subtree_root(const struct hashes *h, uint64_t lo, uint64_t hi,
                        struct digest *out, struct err *err)
{
    struct range r;

    if (read_range(h, lo, hi, &r, err) < 0)
        return -1;
    *out = range_root(&r);
    return 0;
}

int tree_root(const struct hashes *h, uint64_t size, struct digest *out, struct err *err)
{
    return subtree_root(h, 0, size, out, err);
}

/* A proof in the making: found from the root down, told from the leaf up. */
struct builder {
    const struct hashes *hashes;
    struct proof proof;
};

static int push(struct builder *b, uint64_t lo, uint64_t hi, struct err *err)
{
    struct proof *p = &b->proof;

    assert(p->count < PROOF_MAX);
    if (subtree_root(b->hashes, lo, hi, &p->hash[p->count], err) < 0)
        return -1;
    p->count++;
    return 0;
}

static void finish(const struct builder *b, struct proof *out)
{
    unsigned n = b->proof.count;

    out->count = n;
    for (unsigned i = 0; i < n; i++)
        out->hash[i] = b->proof.hash[n - 1 - i];
}

int tree_prove_inclusion(const struct hashes *h, uint64_t index, uint64_t size,
                         struct proof *out, struct err *err)
{
    struct builder b = { .hashes = h };
    uint64_t lo = 0, hi = size;

    if (index >= size)
        return err_set(err, ERR_REFUSED, "event %llu is not among the first %llu",
                       (unsigned long long)index, (unsigned long long)size);
    while (hi - lo > 1) {
        uint64_t middle = lo + split(hi - lo);
        bool left = index < middle;

        if (push(&b, left ? middle : lo, left ? hi : middle, err) < 0)
            return -1;
        lo = left ? lo : middle;
        hi = left ? middle : hi;
    }
    finish(&b, out);
    return 0;
}

int tree_prove_consistency(const struct hashes *h, uint64_t old, uint64_t size,
                           struct proof *out, struct err *err)
{
    struct builder b = { .hashes = h };
    uint64_t lo = 0, hi = size;

    if (old == 0 || old > size)
        return err_set(err, ERR_REFUSED, "no consistency proof from size %llu to %llu",
                       (unsigned long long)old, (unsigned long long)size);
    while (hi > old) {
        uint64_t middle = lo + split(hi - lo);
        bool left = old <= middle;

        if (push(&b, left ? middle : lo, left ? hi : middle, err) < 0)
            return -1;
        lo = left ? lo : middle;
        hi = left ? middle : hi;
    }
    /* What is left is the old tree itself (its root is known) or its last part. */
    if (lo > 0 && push(&b, lo, hi, err) < 0)
        return -1;
    finish(&b, out);
    return 0;
}

/* The way of one node up to the root: its place, and that of the last node, on the
 * level reached (RFC 9162 §2.1.3.2 calls them fn and sn). */
struct climb {
    uint64_t at;
    uint64_t last;
};

/* Whether the next hash of a proof stands to the left. */
static bool joins_left(const struct climb *c)
{
    return (c->at & 1) || c->at == c->last;
}

static void climb_up(struct climb *c)
{
    c->at >>= 1;
    c->last >>= 1;
}

/* One level up; a last node without a sibling is promoted as often as it takes. */
static void climb_next(struct climb *c)
{
    if (joins_left(c)) {
        while (!(c->at & 1) && c->at)
            climb_up(c);
    }
    climb_up(c);
}

bool tree_inclusion_holds(const struct proof *p, uint64_t index, uint64_t size,
                          const struct digest *leaf, const struct digest *root)
{
    struct climb c = { index, size - 1 };
    struct digest hash = *leaf;

    if (index >= size || p->count > PROOF_MAX)
        return false;
    for (unsigned i = 0; i < p->count; i++) {
        if (c.last == 0)
            return false;
        hash = joins_left(&c) ? tree_node(&p->hash[i], &hash)
                              : tree_node(&hash, &p->hash[i]);
        climb_next(&c);
    }
    return c.last == 0 && digest_equal(&hash, root);
}

/* Both roots from one proof: 0 < old < size. RFC 9162 §2.1.4.2. */
static bool proof_joins(const struct proof *p, uint64_t old, uint64_t size,
                        const struct digest *old_root, const struct digest *root)
{
    bool perfect = (old & (old - 1)) == 0;
    struct climb c = { old - 1, size - 1 };
    struct digest was, is;

    if (!perfect && p->count == 0)
        return false;
    was = is = perfect ? *old_root : p->hash[0];
    while (c.at & 1)
        climb_up(&c);
    for (unsigned i = perfect ? 0 : 1; i < p->count; i++) {
        if (c.last == 0)
            return false;
        if (joins_left(&c)) {
            was = tree_node(&p->hash[i], &was);
            is = tree_node(&p->hash[i], &is);
        } else {
            is = tree_node(&is, &p->hash[i]);
        }
        climb_next(&c);
    }
    return c.last == 0 && digest_equal(&was, old_root) && digest_equal(&is, root);
}

bool tree_consistency_holds(const struct proof *p, uint64_t old, uint64_t size,
                            const struct digest *old_root, const struct digest *root)
{
    struct digest empty;

    if (old > size || p->count > PROOF_MAX)
        return false;
    if (old == size)
        return p->count == 0 && digest_equal(old_root, root);
    if (old > 0)
        return proof_joins(p, old, size, old_root, root);
    empty = tree_empty();
    return p->count == 0 && digest_equal(old_root, &empty);
}

static bool set_is_sound(const struct leaf_set *set, uint64_t size)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->index[i] >= size || (i > 0 && set->index[i] <= set->index[i - 1]))
            return false;
    }
    return true;
}

/* The members [from, to) of the set that stand in the leaves [lo, hi). */
struct part {
    uint64_t lo, hi;
    size_t from, to;
};

static void cut(const struct leaf_set *set, const struct part *whole, struct part *left,
                struct part *right)
{
    uint64_t middle = whole->lo + split(whole->hi - whole->lo);
    size_t from = whole->from, to = whole->to;

    while (from < to) {
        size_t half = from + (to - from) / 2;

        if (set->index[half] < middle)
            from = half + 1;
        else
            to = half;
    }
    *left = (struct part){ whole->lo, middle, whole->from, from };
    *right = (struct part){ middle, whole->hi, from, whole->to };
}

/* Proofs in the making. */
struct proving {
    const struct hashes *hashes;
    const struct leaf_set *sets;
    struct buf *outs;
    size_t count;
};

/* What of each set stands in a subtree; a set that has nothing in one above is done. */
struct place {
    struct part part[TREE_SETS_MAX];
    bool done[TREE_SETS_MAX];
};

static int add_to_those_without(const struct proving *p, const struct place *at,
                                const struct digest *root, struct err *err)
{
    for (size_t i = 0; i < p->count; i++) {
        if (at->done[i] || at->part[i].from < at->part[i].to)
            continue;
        buf_add(&p->outs[i], digest_str(root));
        if (buf_check(&p->outs[i], "the proof", err) < 0)
            return -1;
    }
    return 0;
}

/* Returns whether a set goes on below. */
static bool descend(const struct proving *p, const struct place *at, struct place *left,
                    struct place *right)
{
    bool on = false;

    for (size_t i = 0; i < p->count; i++) {
        bool done = at->done[i] || at->part[i].from == at->part[i].to;

        left->done[i] = right->done[i] = done;
        cut(&p->sets[i], &at->part[i], &left->part[i], &right->part[i]);
        on = on || !done;
    }
    return on;
}

static bool lacks_one(const struct proving *p, const struct place *at)
{
    for (size_t i = 0; i < p->count; i++) {
        if (!at->done[i] && at->part[i].from == at->part[i].to)
            return true;
    }
    return false;
}

/* Recursion as deep as the tree: at most 64. The root is made when it is wanted above or
 * a set has nothing here: out of what others need below, where they do. */
static int prove_place(const struct proving *p, const struct place *at, bool wanted,
                       struct digest *root, struct err *err)
{
    const struct part *here = &at->part[0];
    struct place left, right;
    struct digest other;

    wanted = wanted || lacks_one(p, at);
    if (here->hi - here->lo == 1 || !descend(p, at, &left, &right)) {
        if (wanted && subtree_root(p->hashes, here->lo, here->hi, root, err) < 0)
            return -1;
    } else {
        if (prove_place(p, &left, wanted, root, err) < 0 ||
            prove_place(p, &right, wanted, &other, err) < 0)
            return -1;
        if (wanted)
            *root = tree_node(root, &other);
    }
    return wanted ? add_to_those_without(p, at, root, err) : 0;
}

int tree_prove_sets(const struct hashes *h, const struct leaf_set *sets, size_t count,
                    uint64_t size, struct buf *outs, struct err *err)
{
    const struct proving p = { h, sets, outs, count };
    size_t before[TREE_SETS_MAX];
    struct place all = { .done = { false } };
    struct digest root;

    if (count > TREE_SETS_MAX)
        return err_set(err, ERR_LIMIT, "at most %d sets are proved at once",
                       TREE_SETS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!set_is_sound(&sets[i], size))
            return err_set(err, ERR_REFUSED,
                           "the events of a proof must ascend below %llu",
                           (unsigned long long)size);
        all.part[i] = (struct part){ 0, size, 0, sets[i].count };
        before[i] = outs[i].n;
    }
    if (size == 0 || count == 0 || prove_place(&p, &all, false, &root, err) == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        outs[i].n = before[i];
    return -1;
}

int tree_prove_set(const struct hashes *h, const struct leaf_set *set, uint64_t size,
                   struct buf *out, struct err *err)
{
    return tree_prove_sets(h, set, 1, size, out, err);
}

static bool fold_part(const struct leaf_set *set, const struct part *whole, str *hashes,
                      struct digest *out)
{
    struct part left, right;
    struct digest other;

    if (whole->from == whole->to) {
        if (hashes->n < DIGEST_SIZE)
            return false;
        memcpy(out->bytes, hashes->p, DIGEST_SIZE);
        *hashes = str_skip(*hashes, DIGEST_SIZE);
        return true;
    }
    if (whole->hi - whole->lo == 1) {
        *out = set->leaf[whole->from];
        return true;
    }
    cut(set, whole, &left, &right);
    if (!fold_part(set, &left, hashes, out) || !fold_part(set, &right, hashes, &other))
        return false;
    *out = tree_node(out, &other);
    return true;
}

bool tree_set_holds(const struct leaf_set *set, uint64_t size, str hashes,
                    const struct digest *root)
{
    const struct part all = { 0, size, 0, set->count };
    struct digest hash = tree_empty();

    if (!set_is_sound(set, size))
        return false;
    if (size > 0 && !fold_part(set, &all, &hashes, &hash))
        return false;
    return hashes.n == 0 && digest_equal(&hash, root);
}

int tree_last_leaf(const struct hashes *h, uint64_t size, const struct digest *root,
                   struct digest *out, struct err *err)
{
    struct proof proof;

    if (h->read(h->ctx, 0, size - 1, out, err) < 0 ||
        tree_prove_inclusion(h, size - 1, size, &proof, err) < 0)
        return -1;
    if (tree_inclusion_holds(&proof, size - 1, size, out, root))
        return 0;
    return err_set(err, ERR_DAMAGE, "the stored hashes do not give the root");
}
