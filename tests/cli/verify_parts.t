#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay verify-pack over the parts of a session, in any order and not all of them.
. tests/cli/tap.sh
case $1 in /*) record=$1 ;; *) record=$PWD/$1 ;; esac
"$record" "$work" >"$work/paths" || { echo "Bail out! nothing was recorded"; exit 1; }
one=$(sed -n 1p "$work/paths") two=$(sed -n 2p "$work/paths")
three=$(sed -n 3p "$work/paths") other=$(sed -n 4p "$work/paths")
alone="calls that span the cut are not closed"

unprinted() { # TEXT WHAT
    ! grep -qF -- "$1" "$work/out"
    result $? "$2"
}

json() { # EXPRESSION WHAT: of the JSON that was printed, as d
    python3 -c 'import json,sys
d=json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$work/out" "$1"
    result $? "$2"
}

run verify-pack "$one" "$two" "$three"
exits 0 "all parts"
prints "all parts of this session were given, 1 to 3" "are seen to be all"
unprinted "$alone" "and every call is closed"
check "one verdict each" [ "$(grep -c '^SOUND' "$work/out")" -eq 3 ]
run verify-pack "$three" "$other" "$one" "$two"
exits 0 "in any order, with another session between"
prints "all parts of this session were given, 1 to 3" "they are found"
unprinted "$alone" "and put in order"
run verify-pack --require-complete "$one" "$two" "$three" "$other"
exits 0 "together they are a complete session"
check "as each one's last pack says" [ "$(grep -c -- '--require-complete is met' "$work/out")" -eq 2 ]
run verify-pack "$other"
exits 0 "a session in one part"
unprinted "parts" "has no parts to speak of"
run verify-pack "$other" "$other"
exits 0 "the same pack twice is sound twice"
unprinted "parts" "and has no parts to speak of"

run verify-pack "$two"
exits 0 "a later part alone is sound"
prints "$alone" "and says what it cannot show"
prints "missing: part 1, and those after part 2" "and what is missing"
prints "session    part 2, and not the last" "and which part it is"
run verify-pack "$three"
exits 0 "the last part alone is sound"
prints "session    part 3, the last; with the parts before it the session is complete" \
    "and does not call itself the session"
run verify-pack --require-complete --html "$work/r.html" --badge "$work/r.svg" --out "$work/r.json" "$three"
exits 1 "the last part alone is not a complete session"
prints "SOUND, BUT NOT WHAT YOU ASKED FOR" "and the verdict says so"
unprinted "is met" "nothing is called met"
prints "--require-complete is not met: this is part 3 of its session" "and why it is not"
prints "missing: parts 1 to 2" "and what is missing"
check "the page says so" grep -q "<h1>Sound, but not what you asked for</h1>" "$work/r.html"
check "its table, too" grep -q "not met: this is part 3" "$work/r.html"
check "the badge does not say verified" grep -q ">requirement not met<" "$work/r.svg"
check "the report has not passed" sh -c 'grep -q "\"passed\": false" "$1" && grep -q "\"met\": false" "$1"' - \
    "$work/r.json"
run verify-pack --require-complete --json "$three"
exits 1 "the same as JSON"
json 'd["status"]=="requirement_failed" and d["verdict"]=="INSUFFICIENT_EVIDENCE"' "has its status"
json 'not d["passed"] and [r["met"] for r in d["requirements"]]==[False]' "and is not met"
json 'd["integrity_verdict"]=="PASS" and d["part"]["missing"]=="parts 1 to 2"' "and sound"
run verify-pack --require-complete "$two" "$three"
exits 1 "parts without the first one"
unprinted "is met" "are not complete"
run verify-pack "$one" "$three"
exits 0 "two parts are sound"
prints "missing: part 2" "the middle one is missed"
prints "$alone" "the third is checked alone"
run verify-pack --require-complete "$one" "$three"
exits 1 "they are not a complete session"
check "none of them is" [ "$(grep -c -- '--require-complete is not met' "$work/out")" -eq 2 ]
run verify-pack "$one" "$two"
prints "missing: those after part 2" "the end is missed"
unprinted "$alone" "what is there is checked together"
run verify-pack --require-complete "$one" "$two"
exits 1 "a session without its end is not complete"

run verify-pack --json "$two" "$one"
exits 0 "JSON of parts"
json '[p["part"]["part"] for p in d]==[1,2] and d[1]["part"]["follows"]' "is in order"
json 'd[0]["part"]["missing"]=="those after part 2"' "says what is missing"
json 'd[0]["part"]["session_id"]==d[1]["part"]["session_id"]' "and of which session"

cp -R "$two" "$work/bad"
sed -i 's/"read"/"rend"/' "$work/bad/log_events.jsonl"
run verify-pack --require-complete "$one" "$work/bad" "$three"
unprinted "is met" "parts that are not all sound are not a complete session"
run verify-pack "$one" "$work/bad" "$three"
exits 2 "one part is tampered with"
check "the others are sound" [ "$(grep -c '^SOUND' "$work/out")" -eq 2 ]
check "that one is not" [ "$(grep -c '^TAMPERED' "$work/out")" -eq 1 ]
prints "$alone" "what follows it is checked alone"
run verify-pack "$one" "$work/absent" "$two"
exits 3 "one is not there"
check "the others are answered" [ "$(grep -c '^SOUND' "$work/out")" -eq 2 ]

run packs list --audit-dir "$work/audit"
exits 0 "packs list"
check "the first part" grep -qE "^$(basename "$one") .* part 1\$" "$work/out"
check "the last part is one" grep -qE "^$(basename "$three") .* part 3, the last; session complete\$" "$work/out"
check "one call is one" grep -q "  1 call  " "$work/out"
check "a whole session" grep -qE "^$(basename "$other") .*[0-9a-f]  complete\$" "$work/out"
run packs show "$three"
prints "record       part 3, the last; with the parts before it the session is complete" \
    "packs show says which part it is"
finish
