#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// verify.mjs checks a log directory or the log files of a pack with stock Node, and none
// of our code. It trusts no derived file: everything is computed from the events' lines.
//
//     verify.mjs LOGDIR                     keys, checkpoints, chain, roots, tiles
//     verify.mjs LOGDIR --proof FILE...     and inclusion proofs in C2SP tlog-proof form
//     verify.mjs --pack PACKDIR...          events, checkpoint and proof of packs
//
// Exit: 0 sound, 1 not, 3 bad usage.
import { createHash, createPublicKey, verify as verifySignature } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

class Unsound extends Error {}
const must = (holds, why) => { if (!holds) throw new Unsound(why); };

const sha256 = (...parts) => {
    const h = createHash("sha256");
    for (const part of parts) h.update(part);
    return h.digest();
};
const LEAF = Buffer.from([0]), NODE = Buffer.from([1]);
const leafHash = (line) => sha256(LEAF, line);
const nodeHash = (left, right) => sha256(NODE, left, right);
const EMPTY_ROOT = sha256();

function base64(text, what) {
    const bytes = Buffer.from(text, "base64");
    must(bytes.toString("base64") === text, `${what}: not canonical base64`);
    return bytes;
}

// Keys and notes: C2SP signed-note.

function makeKey(name, raw) {
    const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
    const id = sha256(name, "\n", Buffer.from([1]), raw).subarray(0, 4);
    return { name, id, key: createPublicKey({ key: der, format: "der", type: "spki" }) };
}

function parseVkey(vkey) {
    const [, name, hex, b64] = /^([^+\s]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
    must(name, `'${vkey}' is not a verifier key`);
    const typed = base64(b64, "verifier key");
    must(typed.length === 33 && typed[0] === 1, "not an Ed25519 verifier key");
    const key = makeKey(name, typed.subarray(1));
    must(key.id.toString("hex") === hex, "the key id does not belong to the key");
    return key;
}

function openNote(bytes, keys) {
    const split = bytes.lastIndexOf("\n\n");
    must(split >= 0, "a note without signatures");
    const text = bytes.subarray(0, split + 1);
    const lines = bytes.subarray(split + 2).toString().split("\n");
    must(lines.pop() === "" && lines.length > 0, "a note's last line does not end");
    let good = 0;
    for (const line of lines) {
        const [, name, b64] = /^\u2014 ([^+\s]+) (\S+)$/.exec(line) ?? [];
        must(name, "a malformed signature line");
        const signature = base64(b64, "signature");
        for (const key of keys) {
            if (key.name !== name || !signature.subarray(0, 4).equals(key.id)) continue;
            must(verifySignature(null, text, key.key, signature.subarray(4)),
                 `a wrong signature by ${name}`);
            good++;
        }
    }
    must(good > 0, "no signature by a known key");
    return text.toString();
}

function parseCheckpoint(text) {
    const [origin, size, root] = text.split("\n");
    must(text.endsWith("\n") && origin && /^(0|[1-9][0-9]*)$/.test(size ?? "") && root,
         "not a checkpoint");
    const c = { origin, size: Number(size), root: base64(root, "root") };
    must(Number.isSafeInteger(c.size) && c.root.length === 32, "not a checkpoint");
    return c;
}

function openCheckpoint(bytes, keys) {
    const c = parseCheckpoint(openNote(bytes, keys));
    must(keys.some((key) => key.name === c.origin), "the checkpoint of another log");
    return c;
}

// The tree: RFC 6962.

class Range {
    peaks = []; // { level, hash }, largest first
    size = 0;

    append(hash) {
        let level = 0;
        while (this.peaks.at(-1)?.level === level) {
            hash = nodeHash(this.peaks.pop().hash, hash);
            level++;
        }
        this.peaks.push({ level, hash });
        this.size++;
    }

    root() {
        if (this.size === 0) return EMPTY_ROOT;
        return this.peaks.map((p) => p.hash).reduceRight((right, left) => nodeHash(left, right));
    }
}

function splitAt(n) {
    let k = 1;
    while (k * 2 < n) k *= 2;
    return k;
}

// RFC 6962 §2.1.1, upside down: the root that a proof (leaf end first) leads to.
function rootFromInclusion(index, size, leaf, proof) {
    if (size === 1) {
        must(proof.length === 0, "a proof has too many hashes");
        return leaf;
    }
    must(proof.length > 0, "a proof has too few hashes");
    const k = splitAt(size), last = proof.at(-1), rest = proof.slice(0, -1);
    return index < k
        ? nodeHash(rootFromInclusion(index, k, leaf, rest), last)
        : nodeHash(last, rootFromInclusion(index - k, size - k, leaf, rest));
}

// A log directory.

function* eventsOf(dir) {
    const folder = join(dir, "segments");
    let seq = 0, prev = "0".repeat(64);
    for (const name of readdirSync(folder).filter((n) => n.endsWith(".jsonl")).sort()) {
        must(name === `${String(seq).padStart(20, "0")}.jsonl`,
             `segment ${name} does not begin with event ${seq}`);
        const bytes = readFileSync(join(folder, name));
        for (let at = 0; at < bytes.length; seq++) {
            const end = bytes.indexOf(10, at);
            must(end >= 0, `event ${seq} does not end`);
            const line = bytes.subarray(at, end), event = JSON.parse(line.toString());
            must(event.seq === seq, `event ${seq} says seq ${event.seq}`);
            must(event.prev === prev, `event ${seq} does not follow the one before`);
            const leaf = leafHash(line);
            prev = leaf.toString("hex");
            yield { line, leaf };
            at = end + 1;
        }
    }
}

function tilePath(level, index, width) {
    const groups = [String(index % 1000).padStart(3, "0")];
    for (let n = Math.floor(index / 1000); n > 0; n = Math.floor(n / 1000))
        groups.unshift("x" + String(n % 1000).padStart(3, "0"));
    return `${level}/${groups.join("/")}${width === 256 ? "" : `.p/${width}`}`;
}

function checkTile(dir, level, index, want) {
    const width = want.length / 32;
    let path = join(dir, "tile", tilePath(level, index, width));
    if (width < 256 && !existsSync(path)) path = join(dir, "tile", tilePath(level, index, 256));
    const bytes = readFileSync(path);
    must(bytes.length === 32 * width || bytes.length === 8192, `${path} has a wrong size`);
    must(bytes.subarray(0, want.length).equals(want), `${path} holds other hashes`);
}

function checkTiles(dir, leaves) {
    let row = leaves, tiles = 0;
    for (let level = 0; row.length > 0; level++) {
        const next = [];
        for (let i = 0; i < row.length; i += 256, tiles++) {
            const part = row.slice(i, i + 256);
            checkTile(dir, level, i / 256, Buffer.concat(part));
            if (part.length < 256) continue;
            const range = new Range();
            part.forEach((hash) => range.append(hash));
            next.push(range.root());
        }
        row = next;
    }
    return tiles;
}

function readCheckpoints(dir, keys) {
    // each followed by a blank line; inside, one blank line before the signatures
    const parts = readFileSync(join(dir, "checkpoints"), "utf8").split("\n\n");
    must(parts.pop() === "" && parts.length % 2 === 0, "checkpoints is cut off");
    const all = [];
    for (let i = 0; i < parts.length; i += 2)
        all.push(openCheckpoint(Buffer.from(`${parts[i]}\n\n${parts[i + 1]}\n`), keys));
    all.push(openCheckpoint(readFileSync(join(dir, "checkpoint")), keys));
    for (let i = 1; i < all.length; i++)
        must(all[i].size >= all[i - 1].size, "checkpoints go backwards");
    return all;
}

function checkLog(dir, proofs) {
    const keys = readFileSync(join(dir, "origin"), "utf8").trim().split("\n").map(parseVkey);
    const checkpoints = readCheckpoints(dir, keys);
    const range = new Range(), leaves = [];
    let next = 0;
    const compare = () => {
        for (; next < checkpoints.length && checkpoints[next].size === range.size; next++)
            must(checkpoints[next].root.equals(range.root()),
                 `the checkpoint of size ${range.size} has another root`);
    };
    compare();
    for (const { leaf } of eventsOf(dir)) {
        range.append(leaf);
        leaves.push(leaf);
        compare();
    }
    must(next === checkpoints.length,
         `a checkpoint of ${checkpoints[next]?.size} events, a log of ${range.size}`);
    const tiles = checkTiles(dir, leaves.slice(0, checkpoints.at(-1).size));
    for (const file of proofs) checkProof(file, keys, leaves);
    console.log(`${checkpoints.length} checkpoints, ${range.size} events, ${tiles} tiles, ` +
                `${proofs.length} proofs: sound`);
}

function checkProof(file, keys, leaves) {
    const bytes = readFileSync(file), split = bytes.indexOf("\n\n");
    must(split > 0, `${file}: no checkpoint`);
    const rows = bytes.subarray(0, split).toString().split("\n");
    must(rows.shift() === "c2sp.org/tlog-proof@v1", `${file}: not a tlog-proof`);
    if (rows[0]?.startsWith("extra ")) rows.shift();
    const [, digits] = /^index (0|[1-9][0-9]*)$/.exec(rows.shift() ?? "") ?? [];
    const c = openCheckpoint(bytes.subarray(split + 2), keys), index = Number(digits);
    must(index < c.size && index < leaves.length, `${file}: bad index`);
    const proof = rows.map((row) => base64(row, file));
    must(proof.every((hash) => hash.length === 32), `${file}: not a hash`);
    must(rootFromInclusion(index, c.size, leaves[index], proof).equals(c.root),
         `${file}: event ${index} is not in`);
}

// A pack: its manifest names the key, its checkpoint the origin.

function checkPack(dir) {
    const file = (name) => readFileSync(join(dir, name));
    const raw = base64(JSON.parse(file("pack_manifest.json")).signer_pubkey, "signer_pubkey");
    const note = file("log_checkpoint");
    const origin = note.subarray(0, note.indexOf("\n")).toString();
    const { size, root } = openCheckpoint(note, [makeKey(origin, raw)]);
    const text = file("log_events.jsonl");
    must(text.length === 0 || text.at(-1) === 10, "the last event does not end");
    const events = [];
    for (let at = 0; at < text.length;) {
        const end = text.indexOf(10, at), line = text.subarray(at, end);
        events.push({ ...JSON.parse(line.toString()), leaf: leafHash(line) });
        at = end + 1;
    }
    events.forEach((e, i) => {
        must(Number.isSafeInteger(e.seq) && e.seq >= 0 && e.seq < size &&
             (i === 0 || e.seq > events[i - 1].seq), "the events do not ascend");
        must(i === 0 || e.seq !== events[i - 1].seq + 1 ||
             e.prev === events[i - 1].leaf.toString("hex"),
             `event ${e.seq} does not follow the one before`);
    });
    const proof = JSON.parse(file("log_proof.json"));
    must(proof.size === size && Array.isArray(proof.hashes), "the proof is of another size");
    const hashes = proof.hashes.map((h) => base64(h, "log_proof.json"));
    must(hashes.every((h) => h.length === 32), "log_proof.json: not a hash");
    let taken = 0, at = 0;
    const walk = (lo, hi) => {
        if (at >= events.length || events[at].seq >= hi) {
            must(taken < hashes.length, "the proof has too few hashes");
            return hashes[taken++];
        }
        if (hi - lo === 1) return events[at++].leaf;
        const middle = lo + splitAt(hi - lo), left = walk(lo, middle);
        return nodeHash(left, walk(middle, hi));
    };
    const got = size === 0 ? EMPTY_ROOT : walk(0, size);
    must(taken === hashes.length, "the proof has too many hashes");
    must(got.equals(root), "events and proof do not give the signed root");
    console.log(`${dir}: ${events.length} of ${size} events, ${taken} hashes: sound`);
}

const [first, ...rest] = process.argv.slice(2);
if (!first || (first === "--pack" ? rest.length === 0 : rest.length && rest[0] !== "--proof")) {
    console.error("usage: verify.mjs LOGDIR [--proof FILE...] | --pack PACKDIR...");
    process.exit(3);
}
try {
    if (first === "--pack") rest.forEach(checkPack);
    else checkLog(first, rest.slice(1));
} catch (e) {
    if (!(e instanceof Unsound || e instanceof SyntaxError || e.code === "ENOENT")) throw e;
    console.error(`verify: ${e.message}`);
    process.exit(1);
}
