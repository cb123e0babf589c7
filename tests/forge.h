/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forge - a pack in the hands of somebody who has its key.
 *
 * Load a pack, change what you like in its files, and sign it again: hashes, counts,
 * attestation and manifest are made to fit, so that only the log can tell. The stronger
 * forger remakes the log too: he invents the events that the pack does not hold, and
 * signs a checkpoint over all of it.
 */
#ifndef TESTS_FORGE_H
#define TESTS_FORGE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "evidence/checkpoint.h"
#include "evidence/receipt.h"
#include "evidence/tree.h"
#include "evidence/verify.h"
#include "json/jcs.h"

#define FORGE_UNUSED __attribute__((unused))

enum forge_name {
    FORGE_RECEIPTS,
    FORGE_REPORT,
    FORGE_TRANSCRIPT,
    FORGE_EVENTS,
    FORGE_CHECKPOINT,
    FORGE_PROOF,
    FORGE_MANIFEST,
    FORGE_SIGNATURE,
    FORGE_FILES,
};

static const char *const forge_names[] = {
    [FORGE_RECEIPTS] = RECEIPT_PACK_NAME,
    [FORGE_REPORT] = "verify_report.json",
    [FORGE_TRANSCRIPT] = "verify_transcript.md",
    [FORGE_EVENTS] = LOG_EVENTS_NAME,
    [FORGE_CHECKPOINT] = LOG_CHECKPOINT_NAME,
    [FORGE_PROOF] = LOG_PROOF_NAME,
    [FORGE_MANIFEST] = MANIFEST_NAME,
    [FORGE_SIGNATURE] = SIGNATURE_NAME,
};

struct forge {
    char dir[FILE_PATH_MAX]; /* where the forgery goes */
    struct secret_key key;   /* what signs it */
    struct buf file[FORGE_FILES];
};

static inline void forge_must(bool good, const char *what)
{
    if (good)
        return;
    printf("Bail out! forging: %s\n", what);
    exit(1);
}

/* --- bytes --- */

/* Put `with` in the place of n bytes at `at`. */
static inline void forge_splice(struct buf *b, size_t at, size_t n, str with)
{
    struct buf made = { .max = (size_t)64 << 20 };

    forge_must(at + n <= b->n, "splice");
    buf_add(&made, str_of(b->p, at));
    buf_add(&made, with);
    buf_add(&made, str_of(b->p + at + n, b->n - at - n));
    forge_must(!made.failed, "memory");
    buf_release(b);
    *b = made;
}

/* Line k of a file, without its newline; {NULL, 0} behind the end. */
static inline str forge_line(const struct buf *b, size_t k)
{
    str rest = buf_str(b), line = { NULL, 0 };

    for (size_t i = 0; i <= k; i++) {
        if (!str_line(&rest, &line))
            return (str){ NULL, 0 };
    }
    return line;
}

static inline size_t forge_lines(const struct buf *b)
{
    size_t n = 0;

    while (forge_line(b, n).p)
        n++;
    return n;
}

FORGE_UNUSED static void forge_drop(struct buf *b, size_t k)
{
    str line = forge_line(b, k);

    forge_splice(b, (size_t)(line.p - b->p), line.n + 1, STR(""));
}

/* Insert a copy of `line` before line k. */
FORGE_UNUSED static void forge_insert(struct buf *b, size_t k, str line)
{
    struct buf copy = { .max = (size_t)64 << 20 };
    str at = forge_line(b, k);

    buf_add(&copy, line);
    buf_add_char(&copy, '\n');
    forge_splice(b, at.p ? (size_t)(at.p - b->p) : b->n, 0, buf_str(&copy));
    buf_release(&copy);
}

FORGE_UNUSED static void forge_swap(struct buf *b, size_t k)
{
    forge_insert(b, k, forge_line(b, k + 1));
    forge_drop(b, k + 2);
}

/* --- members --- */

static inline void forge_parse(struct json *j, str text)
{
    struct err err = { 0 };

    forge_must(json_parse(j, text, NULL, &err) == 0, err.msg);
}

/* "files.2.sha256"; a number is an index. */
static inline uint32_t forge_find(const struct json *j, const char *path)
{
    uint32_t node = JSON_ROOT;

    for (str rest = str_from(path); rest.n;) {
        const char *dot = memchr(rest.p, '.', rest.n);
        str name = str_first(rest, dot ? (size_t)(dot - rest.p) : rest.n);
        uint64_t index = 0;

        if (json_is(j, node, JSON_ARRAY) && u64_parse(&index, name)) {
            uint32_t found = JSON_NONE;

            json_each (j, node, at) {
                if (index-- == 0)
                    found = at;
            }
            node = found;
        } else {
            node = json_member(j, node, name);
        }
        rest = str_skip(rest, name.n + 1);
    }
    return node;
}

/* Replace the value at `path` of the JSON text in `b` from `from` on, `n` bytes. */
static inline void forge_set_in(struct buf *b, size_t from, size_t n, const char *path,
                                str raw)
{
    CLEANUP(json_release) struct json j = { 0 };
    uint32_t node;
    str old;

    forge_parse(&j, str_of(b->p + from, n));
    node = forge_find(&j, path);
    forge_must(node != JSON_NONE, path);
    old = json_raw(&j, node);
    forge_splice(b, (size_t)(old.p - b->p), old.n, raw);
}

static inline void forge_set(struct buf *b, const char *path, str raw)
{
    forge_set_in(b, 0, b->n, path, raw);
}

static inline void forge_set_text(struct buf *b, const char *path, str text)
{
    CLEANUP(buf_release) struct buf raw = { 0 };

    buf_printf(&raw, "\"" STR_FMT "\"", STR_ARG(text));
    forge_set(b, path, buf_str(&raw));
}

static inline void forge_set_hex(struct buf *b, const char *path, const struct digest *d)
{
    char hex[2 * DIGEST_SIZE];

    digest_hex(hex, d);
    forge_set_text(b, path, str_of(hex, sizeof(hex)));
}

static inline void forge_set_number(struct buf *b, const char *path, uint64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, n);
    forge_set(b, path, str_from(text));
}

/* A member of the object in line k. */
static inline void forge_set_line(struct buf *b, size_t k, const char *path, str raw)
{
    str line = forge_line(b, k);

    forge_must(line.p != NULL, "no such line");
    forge_set_in(b, (size_t)(line.p - b->p), line.n, path, raw);
}

/* Add a member to line k, and bring the line into canonical form. */
FORGE_UNUSED static void forge_add_line(struct buf *b, size_t k, const char *name,
                                        str raw)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf open = { .max = (size_t)64 << 20 };
    CLEANUP(buf_release) struct buf made = { .max = (size_t)64 << 20 };
    struct sink sink = buf_sink(&made);
    str line = forge_line(b, k);
    struct err err = { 0 };

    buf_add(&open, str_first(line, line.n - 1));
    buf_printf(&open, ",\"%s\":" STR_FMT "}", name, STR_ARG(raw));
    forge_parse(&j, buf_str(&open));
    forge_must(jcs_write(&j, JSON_ROOT, JCS_PACK, &sink, &err) == 0, err.msg);
    forge_splice(b, (size_t)(line.p - b->p), line.n, buf_str(&made));
}

/* The text of a member of line k, as it stands; empty when absent. Valid until the next
 * change. */
FORGE_UNUSED static str forge_get_line(const struct buf *b, size_t k, const char *path)
{
    CLEANUP(json_release) struct json j = { 0 };
    uint32_t node;

    forge_parse(&j, forge_line(b, k));
    node = forge_find(&j, path);
    return node == JSON_NONE ? (str){ NULL, 0 } : json_raw(&j, node);
}

/* The nth (from 0) line whose `type` is this. */
FORGE_UNUSED static size_t forge_typed(const struct buf *b, const char *type, size_t nth)
{
    char raw[64];

    snprintf(raw, sizeof(raw), "\"%s\"", type);
    for (size_t k = 0; forge_line(b, k).p; k++) {
        if (str_is(forge_get_line(b, k, "type"), raw) && nth-- == 0)
            return k;
    }
    forge_must(false, type);
    return 0;
}

/* --- loading and signing --- */

static inline void forge_release(struct forge *f)
{
    for (int i = 0; i < FORGE_FILES; i++)
        buf_release(&f->file[i]);
}

static inline void forge_load(struct forge *f, const char *pack, const char *dir,
                              const struct secret_key *key)
{
    char path[FILE_PATH_MAX];
    struct err err = { 0 };

    *f = (struct forge){ .key = *key };
    snprintf(f->dir, sizeof(f->dir), "%s", dir);
    for (int i = 0; i < FORGE_FILES; i++) {
        f->file[i].max = (size_t)64 << 20;
        forge_must(path_join(path, pack, forge_names[i], &err) == 0 &&
                       file_read(path, &f->file[i], &err) == 0,
                   err.msg);
    }
}

static inline void forge_write(const struct forge *f)
{
    char path[FILE_PATH_MAX];
    struct err err = { 0 };

    forge_must(file_make_dirs(f->dir, 0700, &err) == 0, err.msg);
    for (int i = 0; i < FORGE_FILES; i++)
        forge_must(path_join(path, f->dir, forge_names[i], &err) == 0 &&
                       file_put(path, buf_str(&f->file[i]), 0600, &err) == 0,
                   err.msg);
}

/* What files[] says, made true. */
static inline void forge_list(struct forge *f)
{
    struct buf *m = &f->file[FORGE_MANIFEST];

    for (unsigned k = 0; k < FORGE_FILES; k++) {
        CLEANUP(json_release) struct json j = { 0 };
        char path[64];
        uint32_t node;

        forge_parse(&j, buf_str(m));
        snprintf(path, sizeof(path), "files.%u.path", k);
        node = forge_find(&j, path);
        for (int i = 0; node != JSON_NONE && i < FORGE_MANIFEST; i++) {
            struct digest d = digest_of(buf_str(&f->file[i]));

            if (!json_string_is(&j, node, str_from(forge_names[i])))
                continue;
            snprintf(path, sizeof(path), "files.%u.sha256", k);
            forge_set_hex(m, path, &d);
            snprintf(path, sizeof(path), "files.%u.bytes", k);
            forge_set_number(m, path, f->file[i].n);
            break;
        }
    }
}

/* What the attestation says of the receipts. */
static inline void forge_attest(struct forge *f)
{
    CLEANUP(json_release) struct json j = { 0 };
    struct buf *m = &f->file[FORGE_MANIFEST];
    const struct buf *receipts = &f->file[FORGE_RECEIPTS];
    size_t count = forge_lines(receipts);
    struct digest head = digest_of(STR("empty"));
    struct err err = { 0 };

    if (count) {
        forge_parse(&j, forge_line(receipts, count - 1));
        forge_must(receipt_hash(&head, &j, &err) == 0, err.msg);
    }
    forge_set_hex(m, "attestation.head_hash", &head);
    forge_set_number(m, "attestation.n_receipts", count);
    forge_set_number(m, "receipt_count_expected", count);
}

static inline struct digest forge_hash_of(const struct buf *text, const char *path)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf made = { 0 };
    struct sink sink = buf_sink(&made);
    struct err err = { 0 };

    forge_parse(&j, buf_str(text));
    forge_must(jcs_write(&j, forge_find(&j, path), JCS_PACK, &sink, &err) == 0, err.msg);
    return digest_of(buf_str(&made));
}

static inline void forge_set_base64(struct buf *b, const char *path, const void *bytes,
                                    size_t n)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    base64_add(&text, bytes, n);
    forge_set_text(b, path, buf_str(&text));
}

static inline void forge_sign_manifest(struct forge *f)
{
    static const char *const without[] = { "signature", "pack_root_sha256" };
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf signed_bytes = { 0 };
    struct sink sink = buf_sink(&signed_bytes);
    struct buf *m = &f->file[FORGE_MANIFEST];
    struct digest fingerprint = digest_of(str_of(f->key.public_key, PUBLIC_SIZE));
    struct digest root = forge_hash_of(m, "attestation");
    uint8_t signature[SIGNATURE_SIZE];
    struct err err = { 0 };

    forge_set_hex(m, "attestation_sha256", &root);
    forge_set_hex(m, "pack_root_sha256", &root);
    forge_set_base64(m, "signer_pubkey", f->key.public_key, PUBLIC_SIZE);
    forge_set_hex(m, "signer_pubkey_sha256", &fingerprint);
    forge_parse(&j, buf_str(m));
    forge_must(jcs_write_without(&j, JSON_ROOT, without, 2, JCS_PACK, &sink, &err) == 0 &&
                   sign(signature, &f->key, buf_str(&signed_bytes), &err) == 0,
               err.msg);
    forge_set_base64(m, "signature", signature, sizeof(signature));
    buf_reset(&f->file[FORGE_SIGNATURE]);
    buf_add(&f->file[FORGE_SIGNATURE], str_of(signature, sizeof(signature)));
}

/* Make hashes, counts, attestation and signatures fit, and write the pack. */
static inline void forge_sign(struct forge *f)
{
    forge_attest(f);
    forge_list(f);
    forge_sign_manifest(f);
    forge_write(f);
}

/* --- the log made anew --- */

/* A checkpoint of this size and root, signed by `key`. */
static inline void forge_checkpoint(struct forge *f, const char *origin, uint64_t size,
                                    const struct digest *root,
                                    const struct secret_key *key)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct buf *out = &f->file[FORGE_CHECKPOINT];
    struct checkpoint c = { .size = size, .root = *root };
    struct note_key note_key;
    struct err err = { 0 };

    snprintf(c.origin, sizeof(c.origin), "%s", origin);
    checkpoint_add(&text, &c);
    forge_must(note_key_make(&note_key, str_from(origin), key->public_key, &err) == 0,
               err.msg);
    buf_reset(out);
    buf_add(out, buf_str(&text));
    buf_add_char(out, '\n');
    forge_must(note_sign(out, buf_str(&text), &note_key, key, &err) == 0, err.msg);
}

static inline struct checkpoint forge_read_checkpoint(const struct forge *f)
{
    struct checkpoint c = { .size = 0 };
    struct note note;
    struct err err = { 0 };

    forge_must(note_parse(&note, buf_str(&f->file[FORGE_CHECKPOINT]), &err) == 0 &&
                   checkpoint_parse(&c, note.text, &err) == 0,
               err.msg);
    return c;
}

struct forge_walk {
    const struct forge *f;
    struct buf proof; /* text */
    size_t next;      /* line of the next event */
    uint64_t invented;
};

static inline uint64_t forge_seq(const struct forge *f, size_t k)
{
    str raw = forge_get_line(&f->file[FORGE_EVENTS], k, "seq");
    uint64_t seq = 0;

    forge_must(u64_parse(&seq, raw), "seq");
    return seq;
}

/* The root over [lo, hi): events where the pack has some, inventions elsewhere. */
static inline struct digest forge_root(struct forge_walk *w, uint64_t lo, uint64_t hi)
{
    str line = forge_line(&w->f->file[FORGE_EVENTS], w->next);
    uint64_t half = 1;
    struct digest left, right;

    if (!line.p || forge_seq(w->f, w->next) >= hi) {
        struct digest invented = digest_of(str_of(&w->invented, sizeof(w->invented)));

        buf_add(&w->proof, w->invented++ ? STR(",\"") : STR("\""));
        base64_add(&w->proof, invented.bytes, DIGEST_SIZE);
        buf_add_char(&w->proof, '"');
        return invented;
    }
    if (hi - lo == 1) {
        w->next++;
        return tree_leaf(line);
    }
    while (half * 2 < hi - lo)
        half *= 2;
    left = forge_root(w, lo, lo + half);
    right = forge_root(w, lo + half, hi);
    return tree_node(&left, &right);
}

/* The k-th `receipt` event gets the hash of the k-th receipt. */
static inline void forge_restate(struct forge *f)
{
    struct buf *events = &f->file[FORGE_EVENTS];
    size_t line = 0;

    for (size_t k = 0; k < forge_lines(events); k++) {
        CLEANUP(json_release) struct json j = { 0 };
        CLEANUP(buf_release) struct buf raw = { 0 };
        str receipt;
        struct digest d;
        struct err err = { 0 };

        if (!str_is(forge_get_line(events, k, "type"), "\"receipt\""))
            continue;
        receipt = forge_line(&f->file[FORGE_RECEIPTS], line++);
        if (!receipt.p)
            return;
        forge_parse(&j, receipt);
        forge_must(receipt_hash(&d, &j, &err) == 0, err.msg);
        buf_add_char(&raw, '"');
        digest_add_tagged(&raw, &d);
        buf_add_char(&raw, '"');
        forge_set_line(events, k, "sha256", buf_str(&raw));
    }
}

/* Neighbours follow each other again. */
static inline void forge_chain(struct forge *f)
{
    struct buf *events = &f->file[FORGE_EVENTS];

    for (size_t k = 1; k < forge_lines(events); k++) {
        CLEANUP(buf_release) struct buf raw = { 0 };
        struct digest before;

        if (forge_seq(f, k) != forge_seq(f, k - 1) + 1)
            continue;
        before = tree_leaf(forge_line(events, k - 1));
        buf_add_char(&raw, '"');
        digest_add_hex(&raw, &before);
        buf_add_char(&raw, '"');
        forge_set_line(events, k, "prev", buf_str(&raw));
    }
}

/* A log in which these events stand, and its checkpoint; then sign the pack. */
FORGE_UNUSED static void forge_relog(struct forge *f)
{
    struct checkpoint c = forge_read_checkpoint(f);
    struct forge_walk w = { .f = f };
    struct buf *proof = &f->file[FORGE_PROOF];
    uint64_t last = forge_seq(f, forge_lines(&f->file[FORGE_EVENTS]) - 1);
    struct digest root;

    forge_restate(f);
    forge_chain(f);
    c.size = c.size > last ? c.size : last + 1;
    root = forge_root(&w, 0, c.size);
    buf_reset(proof);
    buf_printf(proof, "{\"size\":%" PRIu64 ",\"hashes\":[", c.size);
    buf_add(proof, buf_str(&w.proof));
    buf_add(proof, STR("]}\n"));
    buf_release(&w.proof);
    forge_checkpoint(f, c.origin, c.size, &root, &f->key);
    forge_sign(f);
}

#endif
