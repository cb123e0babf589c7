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
run verify-pack "$other"
exits 0 "a session in one part"
unprinted "parts" "has no parts to speak of"
run verify-pack "$other" "$other"
exits 0 "the same pack twice is sound twice"

run verify-pack "$two"
exits 0 "a later part alone is sound"
prints "$alone" "and says what it cannot show"
prints "without part 1, and those after part 2" "and what is missing"
run verify-pack --require-complete "$three"
exits 1 "the last part alone is not a complete session"
run verify-pack "$one" "$three"
exits 0 "two parts are sound"
prints "without part 2" "the middle one is missed"
prints "$alone" "the third is checked alone"
run verify-pack --require-complete "$one" "$three"
exits 1 "they are not a complete session"
run verify-pack "$one" "$two"
prints "without those after part 2" "the end is missed"
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
run verify-pack "$one" "$work/bad" "$three"
exits 2 "one part is tampered with"
check "the others are sound" [ "$(grep -c '^SOUND' "$work/out")" -eq 2 ]
check "that one is not" [ "$(grep -c '^TAMPERED' "$work/out")" -eq 1 ]
prints "$alone" "what follows it is checked alone"
run verify-pack "$one" "$work/absent" "$two"
exits 3 "one is not there"
check "the others are answered" [ "$(grep -c '^SOUND' "$work/out")" -eq 2 ]
finish
