// SPDX-License-Identifier: Apache-2.0
// The number sequence that cyberphone/json-canonicalization publishes for implementers of
// RFC 8785: some chosen doubles (es6numbers.hex), 2000 neighbours of the smallest normal one,
// then the doubles in a chain of SHA-256 values that are neither zero nor infinite nor NaN.
//     node es6numbers.js LINES EVERY      prints every EVERYth line "bits,String(x)"
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

const lines = Number(process.argv[2]);
const every = Number(process.argv[3]);

function* doubles() {
    const word = Buffer.alloc(8);
    const hex = fs.readFileSync(path.join(__dirname, 'es6numbers.hex'), 'ascii');

    for (const bits of hex.split(/\s+/).filter(Boolean)) {
        word.writeBigUInt64BE(BigInt('0x' + bits));
        yield word.readDoubleBE(0);
    }
    for (let i = 0; i < 2000; i++) {
        word.writeBigUInt64BE(0x0010000000000000n + BigInt(i));
        yield word.readDoubleBE(0);
    }
    for (let block = Buffer.alloc(32);;) {
        block = crypto.createHash('sha256').update(block).digest();
        for (let at = 0; at < 32; at += 8) {
            const x = block.readDoubleLE(at);
            if (x !== 0 && Number.isFinite(x))
                yield x;
        }
    }
}

const word = Buffer.alloc(8);
let out = [];
let count = 0;
for (const x of doubles()) {
    if (count++ % every === 0) {
        word.writeDoubleBE(x);
        out.push(word.readBigUInt64BE(0).toString(16) + ',' + String(x) + '\n');
    }
    if (out.length === 10000 || count === lines) {
        fs.writeSync(1, out.join(''));
        out = [];
    }
    if (count === lines)
        break;
}
