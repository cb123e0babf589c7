#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check a pack with nothing but Python's standard library: docs/pack.md as a program.

    check_pack.py PACK [OUT]

With the directory OUT (made if it is not there), leaves there what `openssl pkeyutl -verify` needs: manifest.bin and key.der for
pack_signature.sig, checkpoint.txt and checkpoint.sig for the log's signature.
"""
import base64
import hashlib
import json
import os
import sys

if len(sys.argv) not in (2, 3):
    sys.exit("usage: check_pack.py PACK [OUT]\n"
             "PACK is the directory of a pack; OUT gets what openssl needs.")
pack = sys.argv[1]
if not os.path.isfile(os.path.join(pack, "pack_manifest.json")):
    sys.exit("check_pack.py: '%s' is not a pack: it has no pack_manifest.json" % pack)


def read(name):
    with open(os.path.join(pack, name), "rb") as f:
        return f.read()


def sha(data):
    return hashlib.sha256(data).digest()


def canonical(value):  # enough for packs without exponents in their numbers
    return json.dumps(value, sort_keys=True, ensure_ascii=False,
                      separators=(",", ":")).encode()


# 1. The manifest names the files, and the signature covers the manifest.
manifest = json.loads(read("pack_manifest.json"))
for f in manifest["files"]:
    assert sha(read(f["path"])).hex() == f["sha256"], f["path"] + " was changed"
root_hash = sha(canonical(manifest["attestation"])).hex()
assert root_hash == manifest["attestation_sha256"] == manifest["pack_root_sha256"]
signed = {k: v for k, v in manifest.items() if k not in ("signature", "pack_root_sha256")}
key = base64.b64decode(manifest["signer_pubkey"])
assert sha(key).hex() == manifest["signer_pubkey_sha256"]

# 2. The receipts: how many, and the hash of the last one.
receipts = [json.loads(line) for line in read("receipt_pack.jsonl").decode().split("\n")[:-1]]
assert len(receipts) == manifest["receipt_count_expected"]
assert sha(canonical(receipts[-1])).hex() == manifest["attestation"]["head_hash"]

# 3. The events stand in the log: they and the proof give the checkpoint's root.
lines = read("log_events.jsonl").split(b"\n")[:-1]
events = [json.loads(line) for line in lines]
leaves = {e["seq"]: sha(b"\0" + line) for e, line in zip(events, lines)}
text, signature = read("log_checkpoint").decode().split("\n\n")
origin, size, root = text.split("\n")[:3]
proof = json.loads(read("log_proof.json"))
hashes = iter([base64.b64decode(h) for h in proof["hashes"]])
assert proof["size"] == int(size)


def tree(low, high):
    if not any(low <= seq < high for seq in leaves):
        return next(hashes)
    if high - low == 1:
        return leaves[low]
    half = 1
    while half * 2 < high - low:
        half *= 2
    return sha(b"\1" + tree(low, low + half) + tree(low + half, high))


assert tree(0, int(size)) == base64.b64decode(root), "the events are not those of the log"
assert next(hashes, None) is None

# 4. The events are a session without a hole, chained where they are neighbours.
for before, after in zip(events, events[1:]):
    assert after["n"] == before["n"] + 1 and after["seq"] > before["seq"]
    if after["seq"] == before["seq"] + 1:
        assert after["prev"] == leaves[before["seq"]].hex()

# 5. Every receipt has its event, with its hash, and the other way round.
stated = {e["receipt_id"]: e["sha256"] for e in events if e["type"] == "receipt"}
found = {r["receipt_id"]: "sha256:" + sha(canonical(r)).hex() for r in receipts}
assert stated == found

# 6. The checkpoint is signed by the key of the manifest, under the log's name.
blob = base64.b64decode(signature.split(" ")[2])
assert blob[:4] == sha(origin.encode() + b"\n\x01" + key)[:4]

if len(sys.argv) > 2:
    parts = {"manifest.bin": canonical(signed), "checkpoint.txt": (text + "\n").encode(),
             "checkpoint.sig": blob[4:],
             "key.der": bytes.fromhex("302a300506032b6570032100") + key}
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, data in parts.items():
        with open(os.path.join(sys.argv[2], name), "wb") as f:
            f.write(data)
print("%d receipts, %d events in a log of %s" % (len(receipts), len(events), size))
