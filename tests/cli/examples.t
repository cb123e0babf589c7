#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example client and server through `assay mcp-proxy`, the server at its worst.
. tests/cli/tap.sh
build=${ASSAY_BUILD:-build}
server=$build/example-server
client=$build/example-client

# session NAME "CLIENT FLAGS" "SERVER FLAGS": $status is the client's, $work/NAME the audit
session() {
    audit=$work/$1 status=0
    # shellcheck disable=SC2086 # lists of words
    timeout 60 "$client" $2 -- "$ASSAY" mcp-proxy --audit-dir "$audit" --shutdown-timeout 1 -- \
        "$server" $3 >"$work/out" 2>"$work/err" || status=$?
}
# sealed NAME COMPLETE RECEIPTS: one pack that verifies, says so, and has that many calls
sealed() {
    set -- "$1" "$2" "$3" "$audit"/packs/proof_pack_*
    check "$1: the pack verifies" "$ASSAY" verify-pack "$4"
    cp "$work/check.out" "$work/v"
    check "$1: $2" grep -q "session    $2" "$work/v"
    check "$1: $3 receipts" [ "$(grep -c '"tool_name"' "$4/receipt_pack.jsonl")" -eq "$3" ]
}
outcomes() { # NAME REASON COUNT
    check "$1: $3 with reason $2" \
        [ "$(grep -c "\"outcome_reason\":\"$2\"" "$audit"/packs/*/receipt_pack.jsonl)" -eq "$3" ]
}

session good "" ""
exits 0 "a good server"
sealed good complete 3
session slow "--burst 3" "--slow 20"
exits 0 "a slow server, nine calls in flight"
sealed slow complete 9
session huge "" "--huge 8388608"
exits 0 "an answer of 8 MiB"
sealed huge complete 3
session failing "" "--fail"
exits 0 "a server whose tools fail"
sealed failing complete 3
check "failing: three errors" \
    [ "$(grep -c '"outcome":"error"' "$audit"/packs/*/receipt_pack.jsonl)" -eq 3 ]
session crashing "" "--crash 2"
exits 1 "a server that dies in the middle of an answer"
sealed crashing "not complete" 3
outcomes crashing server_exit 2
session noise "" "--hostile noise"
exits 0 "a server that logs to stdout"
sealed noise complete 3
session twice "" "--hostile twice"
exits 0 "a server that says everything twice"
# Whether the last echo still finds its reader is a race; either end is told truly.
sealed twice '.*complete' 3
session silent "--abrupt" "--hostile silent"
exits 1 "a server that never answers"
sealed silent "not complete" 3
session deaf "" "--hostile deaf"
exits 0 "a server that lives on after the client"
sealed deaf complete 3
session holder "" "--hostile holder"
exits 0 "a server whose child holds the pipes"
sealed holder complete 3
check "nobody is left" [ -z "$(pgrep -f "$work" || true)" ]
finish
