#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The JSON core beside Debian's simdjson, where that and g++ are installed.
helper=$1
here=$(dirname "$0")
dir=$(mktemp -d "${TMPDIR:-/tmp}/json-bench.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

if g++ -O3 -DNDEBUG -std=c++17 -shared -fPIC -o "$dir/simdjson.so" "$here/simdjson.cc" \
    -lsimdjson 2>"$dir/said"; then
    "$helper" "$dir/simdjson.so"
else
    echo "without simdjson (g++ or libsimdjson-dev is missing): $(head -n 1 "$dir/said")"
    "$helper"
fi
