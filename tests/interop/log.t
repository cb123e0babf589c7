#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A log and packs that the library wrote, and what `assay log prove` prints, checked by
# Go's x/mod/sumdb and by stock Node.
#     log.t RECORD      RECORD DIR records a session and prints its pack
. tests/cli/tap.sh
case $1 in /*) record=$1 ;; *) record=$PWD/$1 ;; esac
audit=$work/audit here=tests/interop/tlog gocode=/usr/share/gocode
first=$("$record" "$audit" 2>/dev/null) && second=$("$record" "$audit" 2>/dev/null) &&
    third=$("$record" "$audit" 2>/dev/null) ||
    { echo "Bail out! nothing was recorded"; exit 1; }
size=$(cat "$audit"/log/segments/*.jsonl | wc -l)
for seq in 0 1 7 $((size / 2)) $((size - 1)); do
    run log prove "$seq" --audit-dir "$audit"
    exits 0 "event $seq is proven"
    cp "$work/out" "$work/$seq.proof"
done
for range in "1 $size" "3 $size" "$((size - 1)) $size" "$size $size" "2 17" "16 32" "17 40"; do
    # shellcheck disable=SC2086 # two words
    set -- $range
    run log prove --from "$1" --to "$2" --json --audit-dir "$audit"
    exits 0 "$1 events begin $2"
    cp "$work/out" "$work/$1-$2.json"
done

refuses() { # WHAT COMMAND...
    what=$1
    shift
    "$@" >"$work/check.out" 2>&1
    [ $? -eq 1 ]
    result $? "$what"
}

with_node() {
    verify="node $here/verify.mjs"
    # shellcheck disable=SC2086 # two words
    {
        check "Node: the log" $verify "$audit/log"
        check "Node: proofs of events" $verify "$audit/log" --proof "$work"/*.proof
        check "Node: three packs" $verify --pack "$first" "$second" "$third"
        cp -R "$second" "$work/bad"
        sed -i 3d "$work/bad/log_events.jsonl"
        refuses "Node refuses a pack with an event left out" $verify --pack "$work/bad"
        sed 's/^index 7/index 8/' "$work/7.proof" >"$work/bad.tlog-proof"
        refuses "Node refuses the proof of another event" \
            $verify "$audit/log" --proof "$work/bad.tlog-proof"
    }
}

with_go() {
    [ -n "${HOME:-}" ] || export GOCACHE="$work/cache"
    check "Go: builds from Debian's packages alone" env GO111MODULE=off GOFLAGS='' \
        GOPATH=$gocode GOTOOLCHAIN=local go build -o "$work/verify" $here/verify.go
    check "Go: the log" "$work/verify" "$audit/log"
    for proof in "$work"/*.proof; do
        check "Go: $(basename "$proof")" "$work/verify" -proof "$proof" "$audit/log"
    done
    for proof in "$work"/*-*.json; do
        check "Go: consistency $(basename "$proof" .json)" \
            "$work/verify" -consistency "$proof" "$audit/log"
    done
    sed 's/^index 7/index 8/' "$work/7.proof" >"$work/bad.tlog-proof"
    refuses "Go refuses the proof of another event" \
        "$work/verify" -proof "$work/bad.tlog-proof" "$audit/log"
    sed 's/"from": 3,/"from": 4,/' "$work/3-$size.json" >"$work/bad.json"
    refuses "Go refuses a consistency proof of another size" \
        "$work/verify" -consistency "$work/bad.json" "$audit/log"
    sed '/"hashes"/{n;d}' "$work/17-40.json" >"$work/bad.json"
    refuses "Go refuses a consistency proof without its first hash" \
        "$work/verify" -consistency "$work/bad.json" "$audit/log"
}

if ! command -v node >/dev/null; then
    skip "Node checks log, proofs and packs" "node is not installed"
elif ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; then
    skip "Node checks log, proofs and packs" "node is older than 18"
else
    with_node
fi
if ! command -v go >/dev/null; then
    skip "Go checks log and proofs" "go is not installed (Debian: golang-go)"
elif [ ! -d $gocode/src/golang.org/x/mod/sumdb/tlog ]; then
    skip "Go checks log and proofs" "x/mod is not installed (Debian: golang-golang-x-mod-dev)"
else
    with_go
fi
finish
