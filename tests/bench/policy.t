#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A verdict takes at most 5 us, and 10,000 names with 100 globs at most twice the
# instructions of ten rules (callgrind, where valgrind is installed).
helper=$1
status=0
"$helper" time || status=1

if ! command -v valgrind >/dev/null 2>&1; then
    echo "instructions: not counted, valgrind is not installed"
    exit $status
fi
count() { # few|many
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=bench_calls \
        "$helper" count "$1" 2>&1 | sed -n 's/.*Collected : *\([0-9]*\).*/\1/p'
}
few=$(count few)
many=$(count many)
[ "${few:-0}" -gt 0 ] && [ "${many:-0}" -gt 0 ] || {
    echo "instructions: callgrind said nothing"
    exit 1
}
echo "instructions of 20000 verdicts: $few with 10 rules, $many with 10,000 names and 100" \
    "globs: $((many * 100 / few)) % (limit 200 %)"
[ "$many" -le $((2 * few)) ] || {
    echo "TOO MANY"
    status=1
}
exit $status
