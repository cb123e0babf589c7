#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay verify-pack: verdict, exit code, and one clear line for bad input.
. tests/cli/tap.sh
good=tests/data/good bad=tests/data/bad
key=46f6ab042566114ebf8c2a494f13e8a3b66c456b14ae64b1e11282e511d58a60
boundary="it does not show that the server told the truth"
tampered="this shows that the pack is not what was signed; it does not show who changed it"

copy() { # DIR: a copy of the minimal pack that a row may spoil
    rm -rf "$work/pack"
    cp -R "$good/minimal" "$work/pack"
}

json() { # EXPRESSION WHAT: of the JSON that was printed, as d
    python3 -c 'import json,sys
d=json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$work/out" "$1"
    result $? "$2"
}

# every pack of ours, as the table says
tab=$(printf '\t')
while IFS=$tab read -r name code finding field; do
    run verify-pack "tests/data/$name"
    if [ "$status" -ne "$code" ]; then
        exits "$code" "$name"
    elif [ "$finding" != - ] && ! grep -q "^$finding " "$work/out"; then
        prints "$finding" "$name says $finding"
    elif [ -s "$work/err" ]; then
        result 1 "$name is quiet on stderr"
    else
        result 0 "$name: exit $code, $finding"
    fi
done <tests/data/expect.tsv

# what a person reads
run verify-pack $good/minimal
exits 0 "a sound pack"
prints "SOUND $good/minimal: nothing was changed" "one verdict line"
prints "$key" "the fingerprint of the signer"
prints "unknown: compare this fingerprint" "a key that nobody knows is said"
prints "receipts   2 calls, and the session's record (3 receipts)" "calls are told from receipts"
prints "time       2025-06-01T10:00:00.000Z to 2025-06-01T10:00:02.000Z" "and their times"
prints "session    complete" "the session"
prints "carries no log proof" "no log proof"
prints "$boundary" "what it does not show"
check "no escape sequences" sh -c "! LC_ALL=C grep -q '[^[:print:][:space:]]' '$work/out'"
run verify-pack $good/hostile-names
check "hostile names are escaped" sh -c "! LC_ALL=C grep -q '[^[:print:][:space:]]' '$work/out'"
run verify-pack $bad/receipt-duplicate-id
exits 2 "a tampered pack"
prints "TAMPERED $bad/receipt-duplicate-id: it is not what was signed" "its verdict line"
prints "E_DUPLICATE_ID receipt 2" "the inner error"
prints "E_MANIFEST_TAMPER the receipts' integrity is FAIL" "and that of the pack"
prints "  means  " "what it means"
prints "  do     " "what to do"
prints "$tampered" "and what that shows"
check "not that it was not changed" sh -c '! grep -q "was not changed" "$1"' - "$work/out"

cp -R $good/minimal "$work/many" && for f in receipt_pack.jsonl verify_report.json verify_transcript.md; do
    echo >>"$work/many/$f"
done
run verify-pack "$work/many" --html "$work/many.html"
exits 2 "a pack with many faults"
check "lists them all" [ "$(grep -c '^E_MANIFEST_TAMPER ' "$work/out")" -ge 3 ]
check "and says once what that means" [ "$(grep -c '^  means  the pack is not what' "$work/out")" -eq 1 ]
check "and once what to do" [ "$(grep -c '^  do  ' "$work/out")" -eq "$(grep -c '^  means  ' "$work/out")" ]
check "the page lists them all" [ "$(grep -c '>E_MANIFEST_TAMPER<' "$work/many.html")" -ge 3 ]
check "and says it once" [ "$(grep -c 'It means: the pack is not what' "$work/many.html")" -eq 1 ]

# a key in the local directory is known
mkdir -p "$ASSAY_HOME/keys" && chmod 700 "$ASSAY_HOME" "$ASSAY_HOME/keys"
python3 - "$good/minimal" "$ASSAY_HOME/keys" <<'PY'
import base64, json, sys
m = json.load(open(sys.argv[1] + "/pack_manifest.json"))
open(sys.argv[2] + "/friend.pub", "wb").write(base64.b64decode(m["signer_pubkey"]))
open(sys.argv[2] + "/test-signer.pub", "wb").write(bytes(32))
PY
run verify-pack $good/minimal
prints "known: this machine has its public half, as 'friend', and not the secret one" \
    "a public key in the key directory is known, and not called the machine's own"
prints "the local key 'test-signer' is another key" "another key of that name is said"
rm -rf "$ASSAY_HOME"

# what the caller asks for: exit 1, and the pack stays sound
wish() { # CODE PACK FLAGS…
    code=$1 pack=$2
    shift 2
    run verify-pack "$good/$pack" "$@"
    exits "$code" "$pack $*"
}
wish 0 minimal --signer $key
prints "known: it is the key that you named" "the key that was named is known"
wish 0 minimal --signer "$(echo $key | tr a-f A-F)"
wish 1 minimal --signer "$(printf '%064d' 0)"
prints "SOUND, BUT NOT WHAT YOU ASKED FOR" "it is still sound"
prints "--signer is not met" "and says what is not met"
wish 0 minimal --max-age-hours 100000000
wish 1 minimal --max-age-hours 1
prints "E_PACK_STALE" "a stale pack has its code"
wish 1 minimal --max-age-hours 0
prints "its last receipt, of 2025-06-01T10:00:02.000Z, is older than 0 hours" "says which receipt"
wish 0 ci-binding --require-ci-binding
wish 1 minimal --require-ci-binding
prints "E_CI_BINDING_MISSING" "so has a missing binding"
wish 0 ci-binding --expected-commit-sha cccccccccccccccccccccccccccccccccccccccc
wish 1 ci-binding --expected-commit-sha dddddddddddddddddddddddddddddddddddddddd
prints "E_CI_BINDING_MISMATCH" "and another commit"
wish 0 minimal --require-complete
wish 1 session-incomplete --require-complete
wish 0 claims-passed --require-claim-pass
wish 1 claims-failed --require-claim-pass
wish 0 claims-failed
lock() { # FINGERPRINT
    cat >"$work/assay.lock" <<LOCK
{"lock_version":"1.0","assay_version_min":"1.0.0","assay_version_max":"2.0.0",
"pack_format_version":"0.1.0","run_cards":[],"run_cards_composite_hash":"x",
"claim_set_hash":"140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe",
"exit_contract":{},"signer_policy":{"mode":"allowlist","allowed_fingerprints":["$1"]}}
LOCK
}
lock $key
wish 0 minimal --lock "$work/assay.lock"
lock "$(printf '%064d' 0)"
wish 1 minimal --lock "$work/assay.lock"
prints "not in the lock's allow-list" "the lock says why"
run verify-pack $bad/file-changed --require-complete
exits 2 "a tampered pack is exit 2 whatever was asked"

# JSON
run verify-pack $good/minimal --json
exits 0 "JSON of a sound pack"
json 'd["command"]=="verify-pack" and d["status"]=="ok" and d["verdict"]=="PASS"' "its status"
json 'd["passed"] and d["receipt_count"]==3 and d["errors"]==[]' "its facts"
json 'd["signer"]["fingerprint"]=="'$key'" and d["signer"]["key"]=="unknown"' "its signer"
json '"told the truth" in d["boundary"]' "the boundary"
json 'd["report_id"].startswith("vr_") and len(d["checks"])>=10' "the whole report"
run verify-pack $bad/path-traversal --json
exits 2 "JSON of a tampered pack"
json 'd["status"]=="failed" and d["verdict"]=="TAMPERED"' "its status"
json 'd["boundary"].startswith("'"$tampered"'") and d["scope"]["note"]==d["boundary"]' "what it shows"
json '[e for e in d["errors"] if e["code"]=="E_PATH_ESCAPE" and e["field"]=="../../../etc/passwd"]' "its finding"
run verify-pack $bad/receipt-duplicate-id --json
json '[e for e in d["errors"] if e.get("receipt_index")==2]' "the index of the receipt"
run verify-pack $good/claims-failed --json --require-claim-pass
json 'd["status"]=="claim_gate_failed" and d["verdict"]=="HONEST_FAIL"' "a failed claim gate"
run verify-pack $good/minimal --json --require-ci-binding
json 'd["status"]=="requirement_failed" and d["verdict"]=="INSUFFICIENT_EVIDENCE"' "a requirement that is not met"
json 'not d["passed"] and d["integrity_verdict"]=="PASS"' "is told from integrity"
run verify-pack "$work/absent" --json
exits 3 "JSON of no pack"
json 'd["status"]=="error" and "No such file" in d["error"]' "is an error"
run verify-pack $good/minimal $bad/file-changed --json
exits 2 "several packs: the worst counts"
json 'len(d)==2 and d[0]["status"]=="ok" and d[1]["status"]=="failed"' "each has its answer"
run verify-pack "$work/absent" $bad/file-changed
exits 2 "damage outweighs a pack that is not there"

# files
run verify-pack $good/minimal --out "$work/r.json" --html "$work/r.html" --badge "$work/r.svg"
exits 0 "files are written"
check "the report" python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); sys.exit(d["overall_verdict"]!="PASS")' "$work/r.json"
check "the page does not call an unknown signer known" grep -q \
    "<h1>Sound &mdash; signed by a key that is not known here</h1>" "$work/r.html"
check "and says what to do at the top" sh -c 'sed -n "/<header/,/<.header>/p" "$1" |
    grep -q "Compare this fingerprint.*$2"' - "$work/r.html" "$key"
check "nor does the badge" grep -q ">sound, unknown key<" "$work/r.svg"
run verify-pack $good/minimal --signer $key --html "$work/k.html" --badge "$work/k.svg"
check "a named signer: the page" grep -q "<h1>Sound</h1>" "$work/k.html"
check "a named signer: the badge" grep -q ">verified<" "$work/k.svg"
run verify-pack $bad/file-changed --html "$work/t.html" --badge "$work/t.svg"
check "a tampered pack: the page" grep -q "<h1>Tampered</h1>" "$work/t.html"
check "is nowhere called verified" sh -c '! grep -qi "verified" "$1"' - "$work/t.html"
check "a tampered pack: the badge" grep -q ">tampered<" "$work/t.svg"
check "the page says the boundary" grep -q "$boundary" "$work/r.html"
check "the badge" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$work/r.svg"
run verify-pack "$work/absent" --out "$work/no.json" --html "$work/no.html"
check "no answer, no file" sh -c "! [ -e '$work/no.json' ] && ! [ -e '$work/no.html' ]"
run verify-pack $good/minimal --out "$work/no/such/dir.json"
exits 3 "a file that cannot be written"
says "cannot write '$work/no/such/dir.json'" "says which"

# what the target already is: a link stays, a device is written to, never replaced
ln -s sub/real.html "$work/link.html" && mkdir "$work/sub"
run verify-pack $good/minimal --html "$work/link.html"
exits 0 "a link to a file that is not there"
check "the link stays" [ -L "$work/link.html" ]
check "the file is made" grep -q "<h1>" "$work/sub/real.html"
echo old >"$work/sub/real.html" && chmod 600 "$work/sub/real.html"
run verify-pack $good/minimal --html "$work/link.html"
check "a link to a file: the link stays" [ -L "$work/link.html" ]
check "the file is replaced" grep -q "<h1>" "$work/sub/real.html"
check "and keeps its mode" [ "$(stat -c %a "$work/sub/real.html")" = 600 ]
ln -s loop "$work/loop"
run verify-pack $good/minimal --html "$work/loop"
exits 3 "a link to itself"
run verify-pack $good/minimal --html "$work/sub"
exits 3 "a directory as target"
says "is a directory" "says so"
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/piped" &
run verify-pack $good/minimal --badge "$work/pipe"
wait $!
exits 0 "a fifo is written to"
check "and gets all" grep -q "</svg>" "$work/piped"
check "and stays" [ -p "$work/pipe" ]
run verify-pack $good/minimal --out /dev/stdout
exits 0 "/dev/stdout"
prints '"overall_verdict"' "gets the report"
prints "SOUND" "beside the answer"
status=0
"$ASSAY" verify-pack $good/minimal --out /dev/stdout 2>"$work/err" | cat >"$work/out"
prints '"overall_verdict"' "/dev/stdout as a pipe"
if mknod "$work/full" c 1 7 2>/dev/null && [ -w "$work/full" ] && ! echo x 2>/dev/null >"$work/full"; then
    run verify-pack $good/minimal --out "$work/full"
    exits 3 "a full device"
    says "No space left" "says so"
    check "and stays a device" [ -c "$work/full" ]
else
    skip "a full device" "none can be made here"
fi
run verify-pack $good/minimal $good/numbers --out "$work/two.json"
exits 3 "one file for two packs"

# bad input
refuse() { # WHAT SAYS ARGS…
    what=$1 text=$2
    shift 2
    run verify-pack "$@"
    exits 3 "$what"
    says "$text" "$what: one clear line"
    silent "$what: prints nothing"
}
mkdir "$work/empty"
refuse "a missing directory" "No such file" "$work/absent"
refuse "an empty directory" "has no pack_manifest.json" "$work/empty"
refuse "a file" "no directory" "$work/assay.lock"
refuse "a device" "no directory" /dev/null
refuse "an empty name" "" ""
refuse "a name with control characters" '[31m' "$(printf '%s/\033[31m' "$work")"
refuse "a bad fingerprint" "64 hex digits" $good/minimal --signer 1234
refuse "a bad commit" "40 lower-case hex" $good/minimal --expected-commit-sha HEAD
refuse "a bad age" "max-age-hours" $good/minimal --max-age-hours -1
refuse "a missing lock" "No such file" $good/minimal --lock "$work/absent"
refuse "a directory as lock" "is a directory" $good/minimal --lock "$work"
printf '{"lock_version":"9"}' >"$work/bad.lock"
refuse "a bad lock" "the lock file" $good/minimal --lock "$work/bad.lock"
refuse "an unknown flag" "nonsense" $good/minimal --nonsense
run verify-pack
exits 3 "no pack at all"
copy && rm "$work/pack/pack_manifest.json" && mkdir "$work/pack/pack_manifest.json"
refuse "a directory as manifest" "is a directory" "$work/pack"
copy && rm "$work/pack/pack_manifest.json" && mkfifo "$work/pack/pack_manifest.json"
refuse "a fifo as manifest" "not a regular file" "$work/pack"

spoilt() { # WHAT FINDING: of the copy
    run verify-pack "$work/pack"
    exits 2 "$1"
    prints "$2" "$1: says $2"
    check "$1: quiet on stderr" [ ! -s "$work/err" ]
}
copy && ln -sf /etc/passwd "$work/pack/verify_report.json"
spoilt "a link out of the pack" E_PATH_ESCAPE
copy && truncate -s 9M "$work/pack/pack_manifest.json"
spoilt "a huge manifest" "larger than 8388608 bytes"
copy && truncate -s 2049M "$work/pack/receipt_pack.jsonl"
spoilt "receipts of more bytes than an int counts" E_MANIFEST_TAMPER
copy && head -c 4096 /dev/urandom >"$work/pack/pack_manifest.json"
spoilt "noise as manifest" E_MANIFEST_TAMPER
copy && head -c 65536 /dev/urandom >"$work/pack/receipt_pack.jsonl"
spoilt "noise as receipts" E_MANIFEST_TAMPER

if [ -d ../shared/testdata/assay-vectors ]; then
    for name in golden_minimal tampered_receipt_content tampered_signature missing_kernel_file \
        d12_invariant_break path_traversal duplicate_receipt_id; do
        run verify-pack "../shared/testdata/assay-vectors/pack/$name"
        exits "$([ $name = golden_minimal ] && echo 0 || echo 2)" "public vector $name"
    done
else
    skip "public vectors" "they are not on this machine"
fi
cp -R tests/data/good/minimal "$work/own"
run verify-pack --out "$work/own/pack_manifest.json" "$work/own"
exits 3 "a report into the pack itself"
says "must not change" "is refused"
check "and the pack is as it was" diff -r tests/data/good/minimal "$work/own"
finish
