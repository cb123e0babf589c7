# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/cli/*.t: runs the built `assay` ($ASSAY) and speaks TAP.
#
#   run ARGS…            sets $status; stdout and stderr go to $work/out and $work/err
#   exits CODE WHAT      the last run ended with CODE
#   says TEXT WHAT       its stderr is one line "assay: …" that contains TEXT
#   prints TEXT WHAT     its stdout contains TEXT
#   silent WHAT          its stdout is empty
#   check WHAT CMD…      CMD succeeds
#   skip WHAT WHY        a row that cannot be shown here
#   finish               plan and exit code
#
# $work is a fresh directory, removed at the end; ASSAY_HOME lies in it.
set -u
ASSAY=${ASSAY:-build/assay}
case $ASSAY in /*) ;; *) ASSAY=$PWD/$ASSAY ;; esac
work=$(mktemp -d "${TMPDIR:-/tmp}/assay-cli-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
ASSAY_HOME=$work/home
NO_COLOR=1
export ASSAY ASSAY_HOME NO_COLOR
tap_count=0
tap_failures=0
status=0

result() { # 0|1 WHAT
    tap_count=$((tap_count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tap_count - $2"
    else
        tap_failures=$((tap_failures + 1))
        echo "not ok $tap_count - $2"
        echo "# exit code $status"
        [ -f "$work/err" ] && head -c 2000 "$work/err" | sed 's/^/# stderr: /'
        [ -f "$work/out" ] && head -c 2000 "$work/out" | sed 's/^/# stdout: /'
    fi
    return 0
}

run() {
    status=0
    "$ASSAY" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

exits() {
    [ "$status" -eq "$1" ]
    result $? "$2 (exit $1)"
}

says() {
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q '^assay: ' "$work/err" &&
        grep -qF -- "$1" "$work/err"
    result $? "$2"
}

prints() {
    grep -qF -- "$1" "$work/out"
    result $? "$2"
}

silent() {
    [ ! -s "$work/out" ]
    result $? "$1"
}

check() {
    check_what=$1
    shift
    "$@" >"$work/check.out" 2>&1
    result $? "$check_what"
}

skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failures" -eq 0 ]
    exit $?
}
