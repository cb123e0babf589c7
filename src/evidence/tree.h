/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - the RFC 6962 Merkle tree over a log's events, as pure computation.
 *
 *     leaf  = SHA-256(0x00 | line)          node = SHA-256(0x01 | left | right)
 *
 * Split at the largest power of two below n; an odd node is promoted. Who adds leaf by
 * leaf keeps a compact range (at most 64 hashes); provers read stored subtrees through a
 * `hashes` callback (the tiles); verifiers need neither.
 */
#ifndef EVIDENCE_TREE_H
#define EVIDENCE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"
#include "evidence/crypto.h"

struct err;

struct digest tree_leaf(str line);
struct digest tree_node(const struct digest *left, const struct digest *right);
struct digest tree_empty(void); /* SHA-256("") */

#define RANGE_MAX 64

/* The roots of the perfect subtrees that a tree of `size` leaves consists of, largest
 * (leftmost) first: as many as `size` has set bits. All zero is the empty tree. */
struct range {
    uint64_t size;
    struct digest hash[RANGE_MAX];
};

/* Set bits. Not every processor that we are made for has an instruction for it. */
static inline unsigned range_count(uint64_t size)
{
    size -= size >> 1 & 0x5555555555555555u;
    size = (size & 0x3333333333333333u) + (size >> 2 & 0x3333333333333333u);
    size = (size + (size >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)(size * 0x0101010101010101u >> 56);
}

void range_append(struct range *r, const struct digest *leaf);
struct digest range_root(const struct range *r);

/* Where a prover finds the root of the perfect subtree of 2^level leaves that begins
 * at leaf index * 2^level. */
struct hashes {
    int (*read)(void *ctx, unsigned level, uint64_t index, struct digest *out,
                struct err *err);
    void *ctx;
};

MUST_CHECK int tree_root(const struct hashes *h, uint64_t size, struct digest *out,
                         struct err *err);

/* The last leaf of a tree of `size` > 0, as far as `root` vouches for it; else
 * ERR_DAMAGE.
 */
MUST_CHECK int tree_last_leaf(const struct hashes *h, uint64_t size,
                              const struct digest *root, struct digest *out,
                              struct err *err);

#define PROOF_MAX 128

struct proof {
    unsigned count;
    struct digest hash[PROOF_MAX];
};

/* RFC 6962 §2.1.1 and §2.1.2; leaf end first. ERR_REFUSED unless index < size and
 * 0 < old <= size. */
MUST_CHECK int tree_prove_inclusion(const struct hashes *h, uint64_t index, uint64_t size,
                                    struct proof *out, struct err *err);
MUST_CHECK int tree_prove_consistency(const struct hashes *h, uint64_t old, uint64_t size,
                                      struct proof *out, struct err *err);

/* Answers for any input whatever. Every tree extends the empty one, with no hashes. */
bool tree_inclusion_holds(const struct proof *p, uint64_t index, uint64_t size,
                          const struct digest *leaf, const struct digest *root);
bool tree_consistency_holds(const struct proof *p, uint64_t old, uint64_t size,
                            const struct digest *old_root, const struct digest *root);

/*
 * The set proof of a pack (log_proof.json): walk the tree over [0, size) depth first,
 * left first; a subtree without a leaf of the set takes the next hash, any other is
 * descended, a leaf of the set is its own hash. Indexes strictly ascend and are < size.
 */
#define TREE_SETS_MAX 16

struct leaf_set {
    const uint64_t *index;
    const struct digest *leaf;
    size_t count;
};

/* Append the hashes, 32 bytes each, to `out`; set->leaf is not looked at. */
MUST_CHECK int tree_prove_set(const struct hashes *h, const struct leaf_set *set,
                              uint64_t size, struct buf *out, struct err *err);

/* The same for several, at most TREE_SETS_MAX: a hash that many need is made once. */
MUST_CHECK int tree_prove_sets(const struct hashes *h, const struct leaf_set *sets,
                               size_t count, uint64_t size, struct buf *outs,
                               struct err *err);

/* True when the set and all of the hashes, and no hash more, give `root`. */
bool tree_set_holds(const struct leaf_set *set, uint64_t size, str hashes,
                    const struct digest *root);

#endif
