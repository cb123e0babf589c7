// SPDX-License-Identifier: Apache-2.0
// node receipt_hashes.js PACK: the hash of every receipt, as the log states it.
const fs = require("fs"), crypto = require("crypto"), path = require("path");
if (process.argv.length !== 3) {
    console.error("usage: node receipt_hashes.js PACK");
    process.exit(1);
}
const lines = (name) =>
    fs.readFileSync(path.join(process.argv[2], name), "utf8").trim().split("\n").map(JSON.parse);
const canonical = (v) =>
    Array.isArray(v) ? "[" + v.map(canonical) + "]"
    : v && typeof v === "object"
      ? "{" + Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + canonical(v[k])) + "}"
      : JSON.stringify(v);
const stated = new Map(lines("log_events.jsonl").filter((e) => e.type === "receipt")
    .map((e) => [e.receipt_id, e.sha256]));
for (const r of lines("receipt_pack.jsonl")) {
    const hash = "sha256:" + crypto.createHash("sha256").update(canonical(r)).digest("hex");
    if (stated.get(r.receipt_id) !== hash) {
        console.error(`${r.receipt_id}: the log says ${stated.get(r.receipt_id)}, not ${hash}`);
        process.exit(1);
    }
    console.log(r.receipt_id, hash);
}
