#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of the format pages do what the pages say, on a log that was just written,
# and fail on one that was changed.
. tests/cli/tap.sh
audit=$work/audit
make_log=$1

# Every ```sh block of a page as a script of its own, with our directory for /tmp.
blocks() { # PAGE
    awk -v out="$work/$(basename "$1" .md)-" '
        /^```sh$/ { name = sprintf("%s%02d.sh", out, ++n); next }
        /^```/ { name = ""; next }
        name { print > name }' "$1"
    for script in "$work/$(basename "$1" .md)"-*.sh; do
        sed -i "s|/tmp/|$work/|g" "$script"
    done
}

run_block() { # SCRIPT
    (cd "$audit" && sh -eu "$1" >"$work/out" 2>"$work/err")
}

check "a log" "$make_log" "$audit"
for page in docs/log.md docs/keys.md; do
    blocks "$page"
done
for tool in python3 openssl node; do
    if ! command -v $tool >/dev/null; then
        skip "the commands of the format pages" "$tool is not installed"
        finish
    fi
done
count=0
for script in "$work"/log-*.sh "$work"/keys-*.sh; do
    what=$(basename "$script" .sh)
    run_block "$script"
    status=$?
    result $status "$what runs"
    count=$((count + 1))
done
[ $count -ge 8 ]
result $? "there are blocks to run ($count)"

cp -a "$audit" "$work/kept"
sed -i '1s/"seq":0/"seq":1/' "$audit"/log/segments/00000000000000000000.jsonl
for n in 01 02 03 06; do
    run_block "$work/log-$n.sh"
    status=$?
    [ $status -ne 0 ]
    result $? "log-$n refuses a changed event"
done
rm -rf "$audit" && cp -a "$work/kept" "$audit"
sed -i '2s/.*/99/' "$audit/log/checkpoint"
for n in 04 05; do
    run_block "$work/log-$n.sh"
    status=$?
    [ $status -ne 0 ]
    result $? "log-$n refuses a changed checkpoint"
done
finish
