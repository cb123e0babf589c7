#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh SAMPLE go|node: other code checks what SAMPLE wrote with ours, and refuses it
# once something was changed. TAP; skipped with the reason where the other code is missing.
sample=$1
with=$2
here=$(dirname "$0")
gocode=/usr/share/gocode
count=0
failed=0

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}

ok() { # STATUS WHAT
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        sed 's/^/# /' "$dir/out"
        failed=1
    fi
}

accepts() { # WHAT COMMAND...
    what=$1
    shift
    "$@" >"$dir/out" 2>&1
    ok $? "$what"
}

refuses() { # WHAT COMMAND...
    what=$1
    shift
    "$@" >"$dir/out" 2>&1
    status=$?
    [ $status -eq 1 ]
    ok $? "refused: $what"
}

# A fresh copy of the sample's log to spoil.
copy() {
    rm -rf "$dir/bad"
    cp -r "$dir/sample/log" "$dir/bad"
}

# Change the byte at an offset of a file.
spoil() { # FILE OFFSET
    printf 'X' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

segment=segments/00000000000000000600.jsonl

spoiled_logs() { # COMMAND...
    copy && spoil "$dir/bad/tile/0/001" 100
    refuses "a changed full tile" "$@" "$dir/bad"
    copy && spoil "$dir/bad/tile/1/000.p/4" 33
    refuses "a changed partial tile" "$@" "$dir/bad"
    copy && rm "$dir/bad/tile/0/004.p/1"
    refuses "a missing tile" "$@" "$dir/bad"
    copy && spoil "$dir/bad/$segment" 20
    refuses "a changed event" "$@" "$dir/bad"
    copy && sed -i 7d "$dir/bad/$segment"
    refuses "a removed event" "$@" "$dir/bad"
    copy && sed -i '7h;7d;8G' "$dir/bad/$segment"
    refuses "two events swapped" "$@" "$dir/bad"
    copy && sed -i 7p "$dir/bad/$segment"
    refuses "a repeated event" "$@" "$dir/bad"
    copy && sed -i '$d' "$dir/bad/$segment"
    refuses "the last event cut off" "$@" "$dir/bad"
    copy && sed -i 2s/1025/1024/ "$dir/bad/checkpoint"
    refuses "a checkpoint of another size" "$@" "$dir/bad"
    copy && sed -i s/log1/log2/ "$dir/bad/checkpoint"
    refuses "a checkpoint of another origin" "$@" "$dir/bad"
    copy && sed -i '5s/ HANdn/ HANdo/' "$dir/bad/checkpoint"
    refuses "another key id" "$@" "$dir/bad"
    copy && spoil "$dir/bad/checkpoints" 60
    refuses "an older checkpoint changed" "$@" "$dir/bad"
}

spoiled_proofs() { # OPTION COMMAND...
    option=$1
    shift
    good=$dir/sample/proofs/257-128.tlog-proof
    bad=$dir/bad.tlog-proof
    for change in 's/^index 128/index 129/' 's/^index 128/index 257/' 3d '3p' \
        '3s/^./+/;3s/^+\(.\)/\1\1/' 's/@v1/@v2/' 's/^257$/258/'; do
        sed "$change" "$good" >"$bad"
        refuses "a proof changed by $change" "$@" "$dir/sample/log" "$option" "$bad"
    done
}

with_go() {
    command -v go >/dev/null || skip "go is not installed (Debian: golang-go)"
    [ -d $gocode/src/golang.org/x/mod/sumdb/tlog ] ||
        skip "x/mod is not installed (Debian: golang-golang-x-mod-dev)"
    [ -n "$HOME" ] || export GOCACHE="$dir/cache"
    accepts "Go: builds from Debian's packages alone" env GO111MODULE=off GOFLAGS='' \
        GOPATH=$gocode GOTOOLCHAIN=local go build -o "$dir/verify" "$here/verify.go"
    accepts "Go: every checkpoint, leaf and tile, sizes 0 to 1,025" \
        "$dir/verify" "$dir/sample/log"
    accepts "Go: its own roots and proofs from the events are ours" \
        "$dir/verify" -expected "$dir/sample/expected" "$dir/sample/log"
    accepts "Go: 70,000 events" "$dir/verify" -index 69999 "$dir/sample/big"
    for proof in "$dir"/sample/proofs/*; do
        accepts "Go: proof $(basename "$proof" .tlog-proof)" \
            "$dir/verify" -proof "$proof" "$dir/sample/log"
    done
    refuses "an event beyond the log" "$dir/verify" -index 1025 "$dir/sample/log"
    spoiled_logs "$dir/verify"
    go_proof() { # LOG -proof FILE
        "$dir/verify" "$2" "$3" "$1"
    }
    spoiled_proofs -proof go_proof
}

with_node() {
    command -v node >/dev/null || skip "node is not installed"
    node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' ||
        skip "node is older than 18"
    verify="node $here/verify.mjs"
    # shellcheck disable=SC2086 # two words
    {
        accepts "Node: every checkpoint, event and tile, sizes 0 to 1,025" \
            $verify "$dir/sample/log"
        accepts "Node: 70,000 events" $verify "$dir/sample/big"
        accepts "Node: proofs" $verify "$dir/sample/log" --proof "$dir"/sample/proofs/*
        for pack in "$dir"/sample/pack-*; do
            accepts "Node: $(basename "$pack")" $verify --pack "$pack"
        done
        spoiled_logs $verify
        spoiled_proofs --proof $verify
        spoiled_packs $verify
    }
}

spoiled_packs() { # COMMAND...
    while read -r file change; do
        rm -rf "$dir/bad"
        cp -r "$dir/sample/pack-run" "$dir/bad"
        sed -i "$change" "$dir/bad/$file"
        refuses "a pack with $file changed by $change" "$@" --pack "$dir/bad"
    done <<END
log_events.jsonl 5d
log_events.jsonl 5p
log_events.jsonl 5s/pad/dap/
log_events.jsonl 5h;5d;6G
log_checkpoint s/^1025/1024/
log_proof.json s/"size":1025/"size":1024/
log_proof.json s/"hashes":."[^"]*",/"hashes":[/
log_proof.json s/"hashes":.\("[^"]*"\)/"hashes":[\1,\1/
pack_manifest.json s/6kps/6kpt/
END
}

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
"$sample" "$dir/sample" || exit 1
"with_$with"
echo "1..$count"
exit $failed
