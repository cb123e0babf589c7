#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay mcp-proxy: what a client and a server see of it, and what it leaves.
. tests/cli/tap.sh
audit=$work/audit
server=$work/server.py
command -v python3 >/dev/null || {
    skip "the proxy" "python3 is not installed"
    finish
}
cat >"$server" <<'PY'
import json, os, sys, time
mode = sys.argv[1] if len(sys.argv) > 1 else ""
for line in sys.stdin:
    try:
        m = json.loads(line)
    except ValueError:
        sys.stdout.write("what? " + line)
        sys.stdout.flush()
        continue
    if mode == "crash" and m["id"] == 2:
        sys.stdout.write('{"half":')
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    for one in m if isinstance(m, list) else [m]:
        if mode == "silent" or "id" not in one:
            continue
        answer = {"jsonrpc": "2.0", "id": one["id"], "result": {"echo": one.get("params")}}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
if mode in ("stubborn", "silent"):
    time.sleep(60)
PY
call() { printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s"}}\n' "$1" "$2"; }
# proxy MODE FLAGS… reads $work/in (not a pipe: status would be lost with the subshell)
proxy() {
    mode=$1
    shift
    status=0
    timeout 60 "$ASSAY" mcp-proxy --audit-dir "$audit" "$@" -- python3 "$server" "$mode" \
        >"$work/out" 2>"$work/err" <"$work/in" || status=$?
}
last_pack() { ls -dt "$audit"/packs/proof_pack_* | head -n 1; }
verified() {
    "$ASSAY" verify-pack "$(last_pack)" >"$work/v" 2>&1
    result $? "$1"
}

{
    printf '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\r\n'
    call 2 one
    call '"2"' two
    printf '\n'
    printf 'c this is no JSON\n'
    printf '[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"in"}},{"method":"x"}]\n'
    printf '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"big","arguments":{"a":1,"a":2}}}'
} >"$work/in"
proxy ""
python3 "$server" <"$work/in" >"$work/direct"
exits 0 "a session"
check "the same bytes as without us" cmp "$work/out" "$work/direct"
verified "its pack verifies"
check "complete" grep -q "session    complete" "$work/v"
check "one receipt per call, and the session's" [ "$(wc -l <"$(last_pack)/receipt_pack.jsonl")" -eq 5 ]
check "the integer is untouched in the log" grep -q '9007199254740993' "$(last_pack)/log_events.jsonl"
check "duplicate members: hashed as they are" grep -q 'raw-sha256' "$(last_pack)/receipt_pack.jsonl"

{ call 1 one; call 2 two; } >"$work/in"
proxy crash
exits 2 "a server that dies with a call open"
verified "its pack verifies"
check "not complete" grep -q "not complete" "$work/v"
check "the open call has its receipt" grep -q '"outcome_reason":"server_exit"' "$(last_pack)/receipt_pack.jsonl"

started=$(date +%s)
call 1 one >"$work/in"
proxy stubborn
exits 0 "a server that ignores EOF"
check "is ended soon" [ $(($(date +%s) - started)) -lt 8 ]
verified "its pack verifies"

proxy silent --shutdown-timeout 1
check "no answer: receipt says shutdown" grep -q '"outcome_reason":"shutdown"' "$(last_pack)/receipt_pack.jsonl"
exits 2 "calls were lost"

rm "$work/in" && mkfifo "$work/in"
(call 1 one; sleep 4) >"$work/in" &
proxy silent --call-timeout 1 --shutdown-timeout 1
wait
check "a call that waits too long is answered" grep -q -- '-31007' "$work/out"

rm "$work/in" && : >"$work/in"
proxy ""
exits 0 "nothing was said"
run mcp-proxy --audit-dir "$audit" -- printf '[%s]' one 'two three'
prints "[one][two three]" "the server gets its arguments and no others"
check "nothing at either end" \
    sh -c '"$1" mcp-proxy --audit-dir "$2" -- cat </dev/null >/dev/null' - "$ASSAY" "$audit"
run mcp-proxy --audit-dir "$audit" -- "$work/nothing-here"
exits 3 "a server that cannot be started"
says "cannot start '$work/nothing-here': there is no such program" "is named"
: >"$work/no-program"
for server in no-such-program "$work/no-program"; do
    run mcp-proxy --audit-dir "$audit" -- "$server"
    mv "$work/err" "$work/err.stdio"
    run mcp-proxy --audit-dir "$audit" --listen 127.0.0.1:0 -- "$server"
    check "--listen says the same: ${server##*/}" cmp "$work/err" "$work/err.stdio"
done
says "it is no program that may be run" "a file that is none"
printf '#!/no/such/interpreter\n' >"$work/script" && chmod +x "$work/script"
run mcp-proxy --audit-dir "$audit" -- "$work/script"
says "cannot start '$work/script': No such file or directory" "a script without its interpreter"
run mcp-proxy --audit-dir "$audit"
exits 3 "no command"
: >"$work/file"
run mcp-proxy --audit-dir "$work/file/x" -- true
exits 3 "an audit directory that cannot be"
says "no place for evidence in '$work/file/x'" "says what it was for"
run log verify "$audit"
exits 0 "and after all that the log is sound"
check "nobody is left" [ -z "$(pgrep -f "$server" || true)" ]
finish
