#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our ECMAScript numbers against Node's String(x), over the published sequence.
#     es6numbers.t HELPER [quick|soak]
helper=$1
mode=${2:-quick}
here=$(dirname "$0")
published() {
    case $1 in
    1000) echo be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687 ;;
    10000) echo b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892 ;;
    1000000) echo 49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16 ;;
    esac
}

if ! command -v node >/dev/null 2>&1; then
    echo "1..0 # SKIP node is not installed"
    exit 0
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/es6numbers.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0
count=0
check() { # status what
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failures=1
    fi
}

compare() { # lines every
    node "$here/es6numbers.js" "$1" "$2" >"$dir/node"
    check $? "node makes its side"
    "$helper" <"$dir/node" >"$dir/ours" 2>"$dir/said"
    check $? "ours read back and are canonical: $(head -n 1 "$dir/said")"
    cmp "$dir/node" "$dir/ours" >/dev/null
    check $? "$(wc -l <"$dir/ours") of the first $1 numbers read as in Node"
    if [ "$2" -eq 1 ]; then
        [ "$(sha256sum <"$dir/ours")" = "$(published "$1")  -" ]
        check $? "the first $1 lines have the published SHA-256"
    fi
}

compare 1000 1
if [ "$mode" = soak ]; then
    compare 1000000 1
else
    compare 10000 1
    compare 1000000 50
fi
echo "1..$count"
exit $failures
