#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay mcp-proxy: every flag, the audit directory it chooses, its exit codes.
. tests/cli/tap.sh
audit=$work/audit
server=$work/server.py
command -v python3 >/dev/null || {
    skip "the proxy's flags" "python3 is not installed"
    finish
}
# Answers every request; "wait" as the first argument: after EOF it stays.
cat >"$server" <<'PY'
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    for one in m if isinstance(m, list) else [m]:
        if "id" in one:
            print(json.dumps({"jsonrpc": "2.0", "id": one["id"], "result": {"ok": True}}), flush=True)
PY
call() { printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"t","arguments":{"k":%s}}}\n' "$1" "$1"; }
calls() {
    i=0
    while [ $i -lt "$1" ]; do
        i=$((i + 1))
        call $i
    done
}
proxy() { # FLAGS… reads $work/in
    status=0
    timeout 60 "$ASSAY" mcp-proxy --audit-dir "$audit" "$@" -- python3 "$server" \
        >"$work/out" 2>"$work/err" <"$work/in" || status=$?
}
fresh() { audit=$work/audit$1; }
packs() { ls -d "$audit"/packs/proof_pack_* 2>/dev/null; }
events() { cat "$audit"/log/segments/*.jsonl; }
session() { events | sed -n 's/.*"session":"\(mcp_[0-9a-f]*\)".*/\1/p' | head -n 1; }
refused() { # TEXT FLAGS…: exit 3, one line, and the server did not run
    text=$1
    shift
    run mcp-proxy --audit-dir "$work/refused" "$@" -- touch "$work/ran"
    exits 3 "refused: $*"
    says "$text" "and says why"
    silent "and stdout stays empty"
    check "and the server was not started" [ ! -e "$work/ran" ]
}

# --- what is refused before anything happens ---
refused "needs a policy" --profile guard
refused "escrow is reserved" --profile escrow
refused "--profile cannot be 'x'" --profile x
refused "--durability cannot be" --durability fast
refused "--on-evidence-failure cannot be" --on-evidence-failure maybe
refused "given twice" --durability write --durability group
refused "either --upstream-url or a server" --upstream-url http://localhost/mcp
refused "--listen" --listen nowhere
refused "--listen" --listen 127.0.0.1:65536
refused "add --listen-any" --listen 0.0.0.0:0
refused "no address is found for that name" --listen no-such-host.invalid:0
refused "is for --listen" --listen-any
refused "is for --listen" --share-child
refused "is for --listen" --allow-origin https://a.example
refused "belong together" --listen 127.0.0.1:0 --tls-cert "$work/none"
refused "none" --listen 127.0.0.1:0 --tls-cert "$work/none" --tls-key "$work/none"
refused "--allow-origin is as a browser sends it" --listen 127.0.0.1:0 --allow-origin a.example
run key generate assay-local # else its making is said, too
refused "cannot listen" --listen 192.0.2.1:0 --listen-any
refused "no address is found for that name" --listen no-such-host.invalid:0 --listen-any
refused "it is a URL; give host and port only, as in '127.0.0.1:8080'" --listen http://127.0.0.1:8080
refused "cannot open" --policy p.yaml
refused "it is one of off, warn, strict" --pin x
refused "is for --profile guard" --show-denied-tools
refused "--pin strict needs a policy" --pin strict
refused "there is no flag" --workbench
refused "put '--' in front of that" npx -y a-server
for header in Authorization:x "Authorization: Bearer secret=" secret "a secret:x"; do
    run mcp-proxy --audit-dir "$work/refused" --upstream-url http://localhost/mcp --header "$header"
    exits 3 "--header '$header'"
    says "--header is NAME=VALUE: " "says what it is"
    case $header in
    *Auth*) says "a '=' is needed behind 'Authorization', not a ':'" "and what is wrong" ;;
    *) says "there is no '=' in it" "and what is wrong" ;;
    esac
    check "and no secret" sh -c '! grep -q secret "$1"' - "$work/err"
done
run mcp-proxy --audit-dir "$work/refused" --upstream-url https://localhost/mcp --ca "$work/none"
exits 3 "--ca without its file"
says "No such file" "and says that it is not there"
refused "not both" --auto-pack --no-auto-pack
refused "--pack-interval is" --pack-interval 0r
refused "--pack-interval is" --pack-interval 1000001r
refused "--pack-interval is" --pack-interval m
refused "--pack-interval is" --pack-interval 5x
refused "forbids" --pack-interval 5m --no-auto-pack
refused "at most 604800" --shutdown-timeout 604801
refused "1 second or more" --call-timeout 0
refused "there is no group" --audit-group no-such-group-here
refused "empty" --server-id ""
head -c 31 /dev/urandom >"$work/short"
head -c 32 /dev/urandom >"$work/pepper"
chmod 600 "$work/short" "$work/pepper"
refused "at least 32" --hash-pepper "$work/short"
refused "cannot open" --hash-pepper "$work/none"
cp "$work/pepper" "$work/open" && chmod 644 "$work/open"
refused "chmod 600" --hash-pepper "$work/open"
: >"$work/file"
run mcp-proxy --audit-dir "$work/file/x" -- touch "$work/ran"
exits 3 "an explicit audit directory that cannot be used"
check "before the server starts" [ ! -e "$work/ran" ]
run mcp-proxy --audit-dir "$audit" touch "$work/ran"
exits 3 "a command without --"
says "put '--' in front" "is told so"
run mcp-proxy --json --nonsense -- true
exits 3 "a bad flag and --json"
silent "nothing on stdout"
check "JSON on stderr" python3 -c 'import json,sys; json.loads(open(sys.argv[1]).read())' "$work/err"

# --- durability ---
calls 20 >"$work/in"
for mode in write group strict; do
    fresh $mode
    proxy --durability $mode
    exits 0 "--durability $mode"
    check "$mode: answers in their order" python3 -c '
import json, sys
ids = [json.loads(l)["id"] for l in open(sys.argv[1])]
sys.exit(ids != list(range(1, 21)))' "$work/out"
    check "$mode: the log says so" grep -q "\"durability\":\"$mode\"" "$audit"/log/segments/*
    check "$mode: the pack verifies, complete" "$ASSAY" verify-pack --require-complete "$(packs)"
    check "$mode: every call was forwarded and answered" python3 -c '
import json, sys
types = [json.loads(l)["type"] for l in sys.stdin]
n = [types.count(t) for t in ("request_received", "request_forwarded", "response_received", "response_sent")]
sys.exit(n != [20] * 4)' <<EOF
$(events)
EOF
done
python3 - >"$work/in" <<'PY'
import json
for i in range(1, 4):
    print(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call",
                      "params": {"name": "t", "arguments": {"a": "x" * 300000}}}))
    print(json.dumps({"jsonrpc": "2.0", "id": 10 + i, "method": "ping"}))
PY
fresh long
cat >"$work/tee.py" <<'PY'
import sys
with open(sys.argv[1], "wb") as f:
    for line in sys.stdin.buffer:
        f.write(line)
PY
status=0
timeout 60 "$ASSAY" mcp-proxy --audit-dir "$audit" --durability group --shutdown-timeout 1 -- \
    python3 "$work/tee.py" "$work/seen" >"$work/out" 2>"$work/err" <"$work/in" || status=$?
exits 2 "group: nobody answers"
check "long and short messages arrive as they were sent" cmp "$work/in" "$work/seen"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    calls 3 >"$work/in"
    fresh traced
    status=0
    ASAN_OPTIONS=detect_leaks=0 timeout 60 strace -f -o "$work/trace" -e trace=fdatasync "$ASSAY" mcp-proxy --audit-dir "$audit" \
        --durability strict -- python3 "$server" >"$work/out" 2>"$work/err" <"$work/in" || status=$?
    exits 0 "strict, watched"
    check "strict: a sync for every message at least" [ "$(grep -c 'fdatasync(' "$work/trace")" -ge 6 ]
else
    skip "strict syncs every message" "strace does not work here"
fi

# --- hashes, payloads ---
calls 2 >"$work/in"
printf '[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]\n' >>"$work/in"
fresh keyed
proxy --hash-pepper "$work/pepper" --investigation
exits 0 "--hash-pepper and --investigation"
check "hashes are keyed" grep -q '"arguments_hash":"hmac-sha256:' "$audit"/log/segments/*
check "the pepper's check is what Python computes" python3 -c '
import hmac, hashlib, sys
check = hmac.new(open(sys.argv[1], "rb").read(), b"assay pepper check v1", hashlib.sha256).hexdigest()[:16]
sys.exit("\"pepper_check\":\"%s\"" % check not in open(sys.argv[2]).read())' "$work/pepper" "$audit"/log/segments/*
check "the digest is that of the kept message" python3 -c '
import hmac, hashlib, json, sys, glob
key = open(sys.argv[1], "rb").read()
events = {e["seq"]: e for e in map(json.loads, open(glob.glob(sys.argv[2] + "/log/segments/*")[0]))}
lines = [json.loads(l) for l in open(glob.glob(sys.argv[2] + "/investigation/*.jsonl")[0])]
for l in lines:
    d = hmac.new(key, l["text"].encode(), hashlib.sha256).hexdigest()
    assert events[l["log_seq"]]["digest"] == "hmac-sha256:" + d
assert len(lines) == 7, len(lines)' "$work/pepper" "$audit"
run log verify --investigation --hash-pepper "$work/pepper" "$audit"
exits 0 "log verify compares them all, the batch too"
run log forget --audit-dir "$audit" "$(session)"
exits 0 "and they can be forgotten"

# --- packs ---
rm -f "$work/in" && mkfifo "$work/in"
fresh rolling
(calls 2; sleep 1; call 3; call 4; sleep 1; call 5; sleep 1) >"$work/in" &
proxy --pack-interval 2r --json
wait
exits 0 "--pack-interval 2r"
check "three parts" [ "$(packs | wc -l)" -eq 3 ]
check "all parts verify together" "$ASSAY" verify-pack --require-complete $(packs)
check "every status line is JSON" python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
packs = [l for l in lines if l["event"] == "pack"]
assert len(packs) == 3, lines
assert lines[-1] == {"event": "end", "calls": 5, "complete": True, "exit": 0}, lines[-1]' "$work/err"
rm "$work/in"
calls 1 >"$work/in"
fresh unpacked
proxy --no-auto-pack
exits 0 "--no-auto-pack"
check "no pack" [ -z "$(packs)" ]
run proof-pack --audit-dir "$audit" "$(session)"
exits 0 "one can be had later"
proxy --auto-pack
check "--auto-pack packs" [ "$(packs | wc -l)" -eq 2 ]
: >"$work/in"
proxy --pack-empty
check "--pack-empty packs nothing, too" [ "$(packs | wc -l)" -eq 3 ]

# --- names, groups ---
calls 1 >"$work/in"
fresh named
proxy --audit-group "$(id -gn)"
check "the server's name is its script's" grep -q '"server_id":"server.py"' "$(packs)/receipt_pack.jsonl"
check "auditors may read log/" [ "$(stat -c %a "$audit/log" | tail -c 4)" = 750 ]
check "and its segments" [ "$(stat -c %a "$audit"/log/segments/*)" = 640 ]
check "but not receipts/" [ "$(stat -c %a "$audit/receipts")" = 700 ]
fresh named2
proxy --server-id my-server
check "--server-id" grep -q '"server_id":"my-server"' "$(packs)/receipt_pack.jsonl"

# --- which directory ---
mkdir "$work/cwd"
(cd "$work/cwd" && "$ASSAY" mcp-proxy -- python3 "$server" <"$work/in" >"$work/out" 2>"$work/err")
check "the default is .assay/mcp here" [ -d "$work/cwd/.assay/mcp/packs" ]
rm -rf "$work/cwd/.assay" && : >"$work/cwd/.assay"
(cd "$work/cwd" && "$ASSAY" mcp-proxy -- python3 "$server" <"$work/in" >"$work/out" 2>"$work/err")
check "that cannot be written: ~/.assay/mcp" grep -qF "recording in '$ASSAY_HOME/mcp'" "$work/err"
check "and says why" grep -qF ": './.assay/mcp' cannot be made in the working directory" "$work/err"
check "and it is used" [ "$(ls "$ASSAY_HOME/mcp/packs" | wc -l)" -eq 1 ]
(cd / && "$ASSAY" mcp-proxy -- python3 "$server" <"$work/in" >"$work/out" 2>"$work/err")
check "in / as well" [ "$(ls "$ASSAY_HOME/mcp/packs" | wc -l)" -eq 2 ]
check "which it says" grep -qF ": the working directory is '/'" "$work/err"
check "nothing was made in /" [ ! -e /.assay ]

# --- evidence failures: the log's lock file disappears under us ---
cat >"$work/spoil.py" <<'PY'
import json, os, sys, time
for line in sys.stdin:
    m = json.loads(line)
    if m["id"] == 1:
        os.rename(sys.argv[1] + "/log/lock", sys.argv[1] + "/log/lock.away")
        time.sleep(0.1)  # its path is looked at every 50 ms
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {}}), flush=True)
PY
for policy in pass block; do
    fresh spoiled-$policy
    rm -f "$work/in" && mkfifo "$work/in"
    (call 1; sleep 1; call 2; sleep 1) >"$work/in" &
    status=0
    timeout 60 "$ASSAY" mcp-proxy --audit-dir "$audit" --on-evidence-failure $policy --shutdown-timeout 1 -- \
        python3 "$work/spoil.py" "$audit" >"$work/out" 2>"$work/err" <"$work/in" || status=$?
    wait
    exits 2 "--on-evidence-failure $policy, and evidence fails"
    check "$policy: stderr says it" grep -q "evidence cannot be written" "$work/err"
    check "$policy: the log says what it would do" grep -q "\"on_failure\":\"$policy\"" "$audit"/log/segments/*
    if [ $policy = pass ]; then
        check "pass: both answers came" [ "$(grep -c '"result"' "$work/out")" -eq 2 ]
    else
        check "block: no answer came" [ "$(grep -c '"result"' "$work/out")" -eq 0 ]
        check "block: the client is told" [ "$(grep -c -- -31005 "$work/out")" -eq 2 ]
    fi
done
rm -f "$work/in"

# --- signals ---
for signal in INT TERM; do
    fresh sig$signal
    : >"$work/out"
    mkfifo "$work/in"
    (call 1; sleep 20) >"$work/in" &
    feeder=$!
    "$ASSAY" mcp-proxy --audit-dir "$audit" -- python3 "$server" >"$work/out" 2>"$work/err" <"$work/in" &
    pid=$!
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ -s "$work/out" ] && break
        sleep 0.2
    done
    # A shell starts background jobs with SIGINT ignored; the proxy watches it all the same.
    kill -$signal $pid
    status=0
    wait $pid || status=$?
    kill $feeder 2>/dev/null
    wait $feeder 2>/dev/null
    rm "$work/in"
    [ $signal = INT ] && exits 130 "SIGINT" || exits 0 "SIGTERM is an ordinary end"
    check "SIG$signal: a complete pack" "$ASSAY" verify-pack --require-complete "$(packs)"
done

# --- what a dead recorder left ---
fresh dead
: >"$work/out"
mkfifo "$work/in"
(call 1; sleep 20) >"$work/in" &
feeder=$!
"$ASSAY" mcp-proxy --audit-dir "$audit" -- python3 "$server" >"$work/out" 2>"$work/err" <"$work/in" &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$work/out" ] && break
    sleep 0.2
done
kill -KILL $pid
wait $pid 2>/dev/null
kill $feeder 2>/dev/null
wait $feeder 2>/dev/null
rm "$work/in"
check "killed: no pack" [ -z "$(packs)" ]
calls 1 >"$work/in"
proxy
exits 0 "the next recorder"
check "finishes it" [ "$(packs | wc -l)" -eq 2 ]
check "and says so" grep -q "finished 1 session " "$work/err"
check "both packs verify" sh -c 'for p in "$@"; do "$ASSAY" verify-pack "$p" || exit 1; done' - $(packs)
run log verify "$audit"
exits 0 "and the log is sound"
# The killed recorder's guard gives the server a moment before it ends it.
check "nobody is left" sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
    pgrep -af "$1" >/dev/null || exit 0
    sleep 0.5
done; pgrep -af "$1"; exit 1' - "[p]ython3 $work/"
finish
