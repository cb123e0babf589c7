#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The log's own test, with its threads, under ThreadSanitizer: threads.t (only in soak)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export CFLAGS="-include $PWD/tests/faults/tsan.h"
if ! meson setup "$work/build" -Db_sanitize=thread -Db_lundef=false >"$work/out" 2>&1 ||
    ! ninja -C "$work/build" test-evidence-log >>"$work/out" 2>&1; then
    tail -3 "$work/out" | sed 's/^/# /'
    echo "1..0 # SKIP no ThreadSanitizer here"
    exit 0
fi
status=0
"$work/build/test-evidence-log" >"$work/out" 2>&1 || status=$?
grep -E '^not ok|^SUMMARY' "$work/out" | sed 's/^/# /'
[ "$status" -eq 0 ] || printf 'not '
echo "ok 1 - the log's test under ThreadSanitizer, exit $status"
echo "1..1"
exit "$status"
