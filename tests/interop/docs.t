#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of the format pages do what the pages say, on a log that was just written,
# and fail on one that was changed. The page on verification names every code.
. tests/cli/tap.sh
. tests/interop/blocks.sh
audit=$work/audit
make_log=$1

check "a log" "$make_log" "$audit"
for page in docs/log.md docs/keys.md; do
    blocks "$page"
done

# docs/verify.md names every code that a verification can end with.
for code in $(grep -o '"E_[A-Z_0-9]*"' src/evidence/finding.c | tr -d '"') \
    $(sed -n 's/^ *X(\([A-Z]*\)).*/LOG_\1/p' src/evidence/logcheck.h); do
    grep -q "^| \`$code\` | [^ ]" docs/verify.md
    result $? "docs/verify.md names $code"
done
for code in $(grep -oE '`(E|LOG)_[A-Z_0-9]+`' docs/verify.md | tr -d '`' | sort -u); do
    case $code in
    E_*) grep -q "\"$code\"" src/evidence/finding.c ;;
    *) grep -q "X(${code#LOG_})" src/evidence/logcheck.h ;;
    esac
    result $? "$code of docs/verify.md is one of ours"
done
for flag in $(grep -o '"--[a-z-]*"' src/evidence/require.c | tr -d '"'); do
    grep -q -- "^| \`$flag[ \`]" docs/verify.md
    result $? "docs/verify.md names $flag"
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
    run_block "$audit" "$script"
    status=$?
    result $status "$what runs"
    count=$((count + 1))
done
[ $count -ge 8 ]
result $? "there are blocks to run ($count)"

cp -a "$audit" "$work/kept"
sed -i '1s/"seq":0/"seq":1/' "$audit"/log/segments/00000000000000000000.jsonl
for n in 01 02 03 06; do
    run_block "$audit" "$work/log-$n.sh"
    status=$?
    [ $status -ne 0 ]
    result $? "log-$n refuses a changed event"
done
rm -rf "$audit" && cp -a "$work/kept" "$audit"
sed -i '2s/.*/99/' "$audit/log/checkpoint"
for n in 04 05; do
    run_block "$audit" "$work/log-$n.sh"
    status=$?
    [ $status -ne 0 ]
    result $? "log-$n refuses a changed checkpoint"
done
finish
