#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What every command shares: help, version, unknown words, answers that get lost.
. tests/cli/tap.sh

run --help
exits 0 "--help"
prints "usage: assay COMMAND" "the usage is there"
commands=$(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' "$work/out")
check "commands are listed" [ -n "$commands" ]
run help
exits 0 "help is the same"
run
exits 0 "no argument is help"

run --version
exits 0 "--version"
check "it is one line" grep -qx 'assay [0-9]*\.[0-9]*\.[0-9]*' "$work/out"

for word in -V version; do
    run $word
    check "$word is the same" grep -qx 'assay [0-9]*\.[0-9]*\.[0-9]*' "$work/out"
done
run help key rotate
exits 0 "help of a subcommand"
prints "usage: assay key rotate" "help key rotate is key rotate --help"
run help key nonsense
exits 3 "help of a subcommand that is none"

run frobnicate
exits 3 "an unknown command"
says "'frobnicate'" "is named on one line"
silent "and prints nothing"
run --frobnicate
exits 3 "an unknown flag"
run "$(printf 'a\033[31mb\nc')"
exits 3 "an unknown command with control characters"
says 'a\x1b[31mb\nc' "is escaped on one line"

# Every command and subcommand has its help, and refuses an unknown flag.
visit() {
    run "$@" --help
    exits 0 "$* --help"
    prints "usage: assay $*" "$* shows its usage"
    check "$*: its sentences end once" sh -c '! grep -q "[?!][.]\$" "$1"' - "$work/out"
    subs=
    if grep -q "COMMAND \[ARGUMENTS\]" "$work/out"; then
        subs=$(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' "$work/out")
        run "$@"
        exits 3 "$* without its command"
        says "needs a command" "$* says so"
    fi
    run "$@" --no-such-flag
    exits 3 "$* --no-such-flag"
    says "--no-such-flag" "$* names the flag"
    run "$@" --help
    if grep -q '^  --json ' "$work/out"; then
        run "$@" --no-such-flag --json
        # A command whose stdout carries a protocol says it on stderr.
        [ "$*" = mcp-proxy ] && silent "$* --json: stdout stays empty" && cp "$work/err" "$work/out"
        check "$* --json: an error is JSON too" \
            grep -q "^{\"command\":\"$*\",\"error\":.*,\"status\":\"error\"}\$" "$work/out"
    fi
    for sub in $subs; do
        visit "$@" "$sub"
    done
}
for command in $commands; do
    visit "$command"
done

if [ -w /dev/full ]; then
    status=0
    "$ASSAY" --version >/dev/full 2>"$work/err" || status=$?
    exits 3 "an answer that cannot be written: full disk"
    says "cannot write the output" "is said"
else
    skip "full disk" "no /dev/full here"
fi
status=0
"$ASSAY" --version >&- 2>"$work/err" || status=$?
exits 3 "stdout closed"
(
    code=0
    sleep 0.2
    "$ASSAY" --version 2>"$work/err" || code=$?
    echo "$code" >"$work/code"
) | true
status=$(cat "$work/code")
exits 141 "a pipe that nobody reads"
check "is no error to speak of" [ ! -s "$work/err" ]

# A shell starts background work with SIGINT ignored: once put back, once left so.
mkfifo "$work/fifo"
interrupt() { # how it is started…
    "$@" "$ASSAY" key import - never <"$work/fifo" >"$work/out" 2>"$work/err" &
    pid=$!
    exec 9>"$work/fifo"
    sleep 0.3
    kill -INT "$pid"
    sleep 0.1
    exec 9>&-
    status=0
    wait "$pid" || status=$?
}
if env --default-signal=INT true 2>/dev/null; then
    interrupt env --default-signal=INT
    exits 130 "SIGINT"
    interrupt env --ignore-signal=INT
    exits 3 "an ignored SIGINT stays ignored"
else
    skip "SIGINT" "env cannot set signals here"
fi
finish
