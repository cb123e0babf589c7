#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay proof-pack and assay packs, on sessions that $1 records.
. tests/cli/tap.sh
helper=$1
case $helper in /*) ;; *) helper=$PWD/$helper ;; esac
dir=$work/audit

run proof-pack --audit-dir "$dir"
exits 3 "no log"
says "there is no log in" "no log: says so"
run packs list --audit-dir "$dir"
exits 3 "no log for packs"

pack=$("$helper" "$dir" end)
[ -d "$pack" ] || { echo "Bail out! nothing was recorded"; exit 1; }
check "a recorded session has its pack" test -f "$pack/pack_manifest.json"
session=$(sed -n '$s/.*"session_id":"\([^"]*\)".*/\1/p' "$pack/receipt_pack.jsonl")

run proof-pack --audit-dir "$dir"
exits 0 "the sessions are listed"
prints "$session" "with their id"
prints "2 calls  packed" "and their state"
run proof-pack --json --audit-dir "$dir"
check "as JSON too" "$ASSAY" jcs "$work/out"
prints '"state": "packed"' "with the state"

run verify-pack "$pack" --html "$work/calls.html"
check "the page lists its calls" [ "$(grep -c '<tr><td class="n">' "$work/calls.html")" -eq 2 ]
check "with foreign names made harmless" grep -q '>evil&#xfffd;\[31m<' "$work/calls.html"
cp -r "$pack" "$work/forged" && sed -i '1s/evil/good/' "$work/forged/receipt_pack.jsonl"
run verify-pack "$work/forged" --html "$work/forged.html"
check "of a pack that was changed it lists none" sh -c \
    'grep -q "<h1>Tampered</h1>" "$1" && ! grep -q "<h2>Calls</h2>" "$1"' - "$work/forged.html"

run log show "$dir" --session "$session"
exits 0 "its events are shown"
prints 'tool=evil\u001b[31m ' "foreign texts are escaped once"
check "and not twice" sh -c '! grep -qF "\\\\" "$1"' - "$work/out"
check "an id is its JSON text" grep -qE ' id=("[^\"]|[0-9])' "$work/out"

run proof-pack "$session" --audit-dir "$dir"
exits 0 "packing again is no error"
prints "$pack" "and names the same pack"
rm -rf "$pack"
run proof-pack "$session" --audit-dir "$dir"
exits 0 "a deleted pack is built again"
check "under the same name" test -f "$pack/pack_manifest.json"
run verify-pack "$pack"
exits 0 "and verifies"
rm -rf "$pack" "$dir"/receipts/*
run proof-pack "$session" --json --audit-dir "$dir"
exits 0 "without the receipts file it is built from events"
says "receipts made again from the log: 3; of those with stored content, which is gone: 2" \
    "which is said"
prints '"rebuilt": 3' "in the JSON as well"
run verify-pack "$pack"
exits 0 "and verifies"

run proof-pack mcp_0000000000000000 --audit-dir "$dir"
exits 3 "a session that is not there"
says "there is no session" "says so"
silent "prints nothing"
run proof-pack mcp_0000000000000000 --json --audit-dir "$dir"
exits 3 "the same as JSON"
prints '"status": "error"' "is a JSON error"
check "and one JSON text" "$ASSAY" jcs "$work/out"
run proof-pack "$session" --recover --audit-dir "$dir"
exits 3 "a session with --recover"
run proof-pack a b --audit-dir "$dir"
exits 3 "two sessions"

empty=$("$helper" "$dir" empty)
run proof-pack "$empty" --audit-dir "$dir"
exits 1 "a session without calls"
says "has no tool call" "says that there is nothing to pack"

dead=$("$helper" "$dir" die)
run proof-pack --audit-dir "$dir"
check "its state is told" grep -q "^$dead .* dead " "$work/out"
says "--recover" "and the way out"
run proof-pack "$dead" --audit-dir "$dir"
exits 1 "a session that has not ended"
says "--recover" "names the way out"
run proof-pack --recover --audit-dir "$dir"
exits 0 "recovery"
says "1 dead writer; 1 session ended for it, with 1 call that had no answer yet" "tells what it did"
recovered=$(cat "$work/out")
run verify-pack "$recovered"
exits 0 "the pack of the dead session verifies"
prints "session    not complete: it ended with 'recorder_lost', 1 call has no answer" \
    "and says why its record is not complete"
prints "receipts   3 calls, and the session's record (4 receipts)" "a call is told from a receipt"
run proof-pack --recover --json --audit-dir "$dir"
exits 0 "a second time"
prints '"writers": 0' "there is nothing to do"
check "which is JSON" "$ASSAY" jcs "$work/out"

run packs list --audit-dir "$dir"
exits 0 "packs are listed"
prints "$(basename "$pack")" "with their names"
prints "not complete" "and what they are"
run packs list --json --audit-dir "$dir"
check "as JSON too" "$ASSAY" jcs "$work/out"
run packs show "$pack"
exits 0 "a pack is shown"
prints "SOUND" "after it was verified"
prints 'evil\x1b[31m' "foreign bytes are escaped"
prints "known: it is the key 'assay-local' of this machine" "whether the key is known"
cp -R "$pack" "$work/moved"
ASSAY_HOME=$work/elsewhere run packs show "$work/moved"
prints "unknown: compare this fingerprint" "or not"
rm "$work/moved/log_proof.json"
run verify-pack "$work/moved"
exits 2 "a pack without its proof"
prints "E_MANIFEST_TAMPER 'log_proof.json' is missing" "names the file"
check "and not the receipts" sh -c '! grep -q "receipts were left out" "$1"' - "$work/out"
cp "$pack/log_proof.json" "$work/moved"
sed -i '1{h;d};2{G}' "$work/moved/log_events.jsonl"
run verify-pack "$work/moved"
exits 2 "events that changed places"
check "are not taken for a later part" sh -c '! grep -q "later part" "$1"' - "$work/out"
if [ "$(id -u)" -ne 0 ]; then
    cp "$pack/log_events.jsonl" "$work/moved" && chmod 000 "$work/moved/log_proof.json"
    run verify-pack "$work/moved"
    exits 3 "a file that may not be read"
    says "the pack '$work/moved'" "names the pack"
else
    skip "a file that may not be read" "root may read all"
fi
run packs show "$(basename "$pack")" --json --audit-dir "$dir"
exits 0 "by its name, as JSON"
check "which is JSON" "$ASSAY" jcs "$work/out"
run packs show --audit-dir "$dir"
exits 0 "or the newest"
run packs show "$session" --audit-dir "$dir"
exits 0 "or by its session's id"
prints "SOUND $pack" "which is that pack"
prints "mtc_" "calls have their ids"
receipt=$(grep -o 'mtc_[0-9a-f]*' "$work/out" | sed -n 2p)
run packs show "$receipt" --audit-dir "$dir"
exits 0 "or by a receipt's"
check "of which it shows that one" [ "$(grep -o 'mtc_[0-9a-f]*' "$work/out")" = "$receipt" ]
run packs show "$receipt" --json --audit-dir "$dir"
check "as JSON, too" python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))["receipts"]
sys.exit([r["receipt_id"] for r in found] != [sys.argv[2]])' "$work/out" "$receipt"
run packs show "$dead" --audit-dir "$dir"
prints "recorder_lost" "why a call has no answer"
check "no blanks at the ends of a line" sh -c '! grep -q " \$" "$1"' - "$work/out"
for id in mtc_0000000000000000 '' '"'; do
    run packs show "$id" --audit-dir "$dir"
    exits 3 "an id that nothing has: '$id'"
done
says "none has a session or a receipt of that id" "and says so"

printf '{}\n' >>"$pack/receipt_pack.jsonl"
run packs show "$pack"
exits 2 "one that was changed"
prints "TAMPERED" "is called so"
prints "this shows that the pack is not what was signed" "which is all that this shows"
check "not that it was not changed" sh -c '! grep -q "was not changed" "$1"' - "$work/out"
run proof-pack "$session" --audit-dir "$dir"
exits 2 "and proof-pack does not call it a pack"
rm -f "$pack/pack_manifest.json"
run packs list --audit-dir "$dir"
exits 3 "a pack without manifest is said"
prints "$(basename "$recovered")" "and the others are listed"
run packs show "$work"
exits 3 "a directory that is no pack"
run packs show "$work/none"
exits 3 "no directory"
run packs
exits 3 "packs without a subcommand"
run packs list extra --audit-dir "$dir"
exits 3 "packs list with an operand"
finish
