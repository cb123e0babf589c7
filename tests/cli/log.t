#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay log …: on a log that was just written, and on what may happen to it.
. tests/cli/tap.sh
make_log=$1
audit=$work/audit
segment=$audit/log/segments/00000000000000000000.jsonl

check "a log of 600 events" "$make_log" "$audit" 600 100
cp -a "$audit" "$work/good"
restore() {
    rm -rf "$audit"
    cp -a "$work/good" "$audit"
}

run log verify --audit-dir "$audit"
exits 0 "a fresh log"
prints "SOUND" "is sound"
prints "602 in 1 segment," "and counted"
prints "known here as 'assay-local'" "its key is known"
prints "does not show that the server told the truth" "the boundary is said"
run log verify --audit-dir "$audit" --json
prints '"status": "ok"' "also as JSON"
(cd "$work" && mkdir -p here/.assay && cp -a audit here/.assay/mcp)
status=0
(cd "$work/here" && "$ASSAY" log verify) >"$work/out" 2>"$work/err" || status=$?
exits 0 "./.assay/mcp is the default"
mkdir -p "$ASSAY_HOME" && cp -a "$audit" "$ASSAY_HOME/mcp"
status=0
(cd / && "$ASSAY" log verify) >"$work/out" 2>"$work/err" || status=$?
exits 0 "then ~/.assay/mcp"
says "reading the log in" "which is said"
rm -rf "$ASSAY_HOME/mcp"

# --- show ---
run log show --audit-dir "$audit" --from 600
check "the last two events" [ "$(wc -l <"$work/out")" -eq 2 ]
prints "chain_end" "by type"
run log show --audit-dir "$audit" --json
check "--json prints the segment as it is" cmp "$work/out" "$segment"
run log show --audit-dir "$audit" --type chain_start
check "one type" [ "$(wc -l <"$work/out")" -eq 1 ]
run log show --audit-dir "$audit" --from 5 --to 7 --json
check "a range" [ "$(wc -l <"$work/out")" -eq 2 ]
run log show --audit-dir "$audit" --type nonsense
exits 3 "a type that is none"
says "no event type 'nonsense'" "is named"
run log show --audit-dir "$audit" --from 603
exits 3 "behind the end"
says "is not in the log" "is said"
run log show "$audit" --to 12
exits 0 "the directory as an operand"
check "no blanks at the ends of a line" sh -c '! grep -qE "^ | \$" "$1"' - "$work/out"
run log show "$audit" --audit-dir "$audit"
exits 3 "twice a directory"
run log show --audit-dir "$audit" --session nonsense
exits 3 "a session that is none"
says "'nonsense' is not a session" "is named"
run log show --audit-dir "$audit" --session mcp_0123456789abcdef
exits 0 "a session without events"
says "no event of session mcp_0123456789abcdef" "is noted"
silent "and prints nothing"
run log show --audit-dir "$work/nothing" --json
exits 3 "no log, as JSON"
prints '"status":"error"' "is a JSON error"
cp -a "$audit" "$work/growing"
timeout 20 "$ASSAY" log show --follow --audit-dir "$work/growing" --json --to 610 \
    >"$work/followed" 2>/dev/null &
follower=$!
rm -rf "$ASSAY_HOME/logs" # a copy that grows: this machine must not remember the original
check "the log grows" "$make_log" "$work/growing" 8 100
wait "$follower"
check "--follow saw it" [ "$(wc -l <"$work/followed")" -eq 610 ]
rm -rf "$ASSAY_HOME/logs"

# --- prove ---
run log prove --audit-dir "$audit" 5
exits 0 "prove an event"
check "as a C2SP tlog-proof" [ "$(head -1 "$work/out")" = "c2sp.org/tlog-proof@v1" ]
run log prove --audit-dir "$audit" --from 102
check "prove an older size" [ "$(head -1 "$work/out")" = "old 102" ]
run log prove --audit-dir "$audit" --from 100 --to 200 --json
prints '"checkpoint": null' "a size without checkpoint has no note"
run log prove --audit-dir "$audit" --from 100 --to 200
exits 0 "between any two sizes"
says "not a signed note" "and says that it is not signed"
for bad in 602 99999999999 -1 x 1.5 18446744073709551616; do
    run log prove --audit-dir "$audit" -- "$bad"
    exits 3 "no proof for '$bad'"
done
run log prove --audit-dir "$audit"
exits 3 "nothing asked"
run log prove --audit-dir "$audit" --from 0
exits 3 "an older size of 0"
run log prove --audit-dir "$audit" --from 9 --to 3
exits 3 "sizes the wrong way round"
run log prove --audit-dir "$audit" 3 --from 9
exits 3 "both questions at once"

# --- rebuild ---
cp -a "$audit/log/tile" "$work/tile"
rm -rf "$audit/log/tile" "$audit/log/head" "$audit/log/lock"
run log prove --audit-dir "$audit" 5
exits 2 "without tiles no proof"
says "log rebuild" "and what to do"
run log verify --audit-dir "$audit"
exits 1 "without tiles the log is not tidy"
prints "SOUND, but not tidy" "but sound"
prints "that the signed events were not changed since" "which is said of what is signed"
run log rebuild --audit-dir "$audit"
exits 0 "rebuild"
check "the tiles are identical" diff -r "$work/tile" "$audit/log/tile"
run log verify --audit-dir "$audit"
exits 0 "and all is well"

sed -i '300s/"mark":298/"mark":299/' "$segment"
run log prove --audit-dir "$audit" 5
exits 0 "events that were changed: the tiles still prove what was signed"
run log rebuild --audit-dir "$audit"
exits 2 "events that were changed: nothing is rebuilt from them"
says "the tiles stay as they are: event 300 does not continue" "and why"
check "so they are as they were" diff -r "$work/tile" "$audit/log/tile"
check "and nothing else is left" test ! -e "$audit/log/tile.new"
rm -r "$audit/log/tile"
run log prove --audit-dir "$audit" 5
exits 2 "without tiles no proof"
says "the log is damaged, and that cannot be mended: 'assay log verify' says where" "and what helps"
check "which is not to rebuild" sh -c '! grep -q "log rebuild" "$1"' - "$work/err"
restore

# --- damage: each is found, and in plain words ---
damaged() { # WORDS WHAT
    run log verify --audit-dir "$audit"
    exits 2 "$2"
    prints "$1" "$2: $1"
    check "$2: this machine does not agree" sh -c '! grep -q "and agrees" "$1"' - "$work/out"
    prints "this shows that the log is not what was written and signed;" "$2: what that shows"
    check "$2: not that it was not changed" sh -c '! grep -q "not changed" "$1"' - "$work/out"
    restore
}
head -n -3 "$segment" >"$work/s" && cp "$work/s" "$segment"
damaged "the rest was cut off" "cut tail"
sed -i 300d "$segment"
damaged "event 300 stands where event 299 should" "removed middle line"
sed -i '300{h;d};301{G}' "$segment"
damaged "stands where event 299 should" "swapped lines"
sed -i '300p' "$segment"
damaged "event 299 stands where event 300 should" "duplicated line"
sed -i '300s/"mark":/"mark": /' "$segment"
damaged "is not in canonical form" "a space added"
sed -i '300s/"mark":298/"mark":299/' "$segment"
damaged "does not continue the event before it" "a digit changed"
rm "$segment"
damaged "602 events were signed, 0 could be checked" "the segment removed"
sed -i 's/^602$/601/' "$audit/log/checkpoint"
run log verify --audit-dir "$audit" --json
prints '"boundary": "this shows that the log is not what was written' "JSON says what is shown, too"
damaged "not signed by the key of this log" "checkpoint edited"
check "another log" env ASSAY_HOME="$work/other" "$make_log" "$work/b" 3 100
cp "$work/b/log/checkpoint" "$audit/log/checkpoint"
damaged "is a checkpoint of another log" "checkpoint of another log"
cp "$work/b/log/origin" "$audit/log/origin"
damaged "is a checkpoint of another log" "origin of another log"
printf 'half a note' >>"$audit/log/checkpoints"
damaged "half a note" "a torn list of checkpoints"

rm -rf "$audit/log/checkpoint" "$audit/log/checkpoints" "$audit/log/head" "$audit/log/tile"
damaged "no signature covers the log's 602 events" "every signature removed"
for gone in checkpoint checkpoints; do
    rm "$audit/log/$gone"
    run log verify "$audit"
    exits 1 "'$gone' removed"
    prints "'$gone' is missing" "'$gone' removed: said"
    restore
done

printf '{"half":' >>"$segment"
run log verify --audit-dir "$audit"
exits 1 "a torn tail behind all that was signed"
prints "the next writer keeps them in torn/" "is said"
restore

# --- a new key ---
check "a log to hand over" "$make_log" "$work/rotated" 3 2
run key rotate --log --audit-dir "$work/rotated"
exits 0 "key rotate --log"
check "two keys in origin" [ "$(wc -l <"$work/rotated/log/origin")" -eq 2 ]
run log verify "$work/rotated"
exits 0 "and the log is sound"
run key rotate third
says "key rotate --log third" "how to hand a log over to it"
run key rotate --log third --audit-dir "$work/rotated"
exits 0 "hand it over to a key that there is"
check "three keys in origin" [ "$(wc -l <"$work/rotated/log/origin")" -eq 3 ]
run log verify "$work/rotated"
exits 0 "and it is sound"
run key rotate --log third --audit-dir "$work/rotated"
exits 3 "hand it over to the key that signs it"
run key rotate --log --audit-dir "$work/nothing"
exits 3 "no log to hand over"
says "there is no log" "is said before a key is made"

# --- forget ---
run log forget --audit-dir "$audit" mcp_0123456789abcdef
exits 3 "a session of which nothing is kept"
run log forget --audit-dir "$audit" ../../etc
exits 3 "no session at all"
restore

rm "$audit/log/origin"
for command in verify show "prove 1"; do
    # shellcheck disable=SC2086
    run log $command --audit-dir "$audit"
    exits 2 "log $command: a log without its origin"
    says "'origin' is missing" "log $command: is not called empty"
done
restore
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --clear-groups true 2>/dev/null; then
    chmod 755 "$work" && chmod 700 "$audit"
    status=0
    (cd / && setpriv --reuid=65534 --clear-groups "$ASSAY" log verify --audit-dir "$audit") \
        >"$work/out" 2>"$work/err" || status=$?
    exits 3 "a log that may not be read"
    says "Permission denied" "says so"
elif [ "$(id -u)" -ne 0 ]; then
    chmod 000 "$audit"
    run log verify --audit-dir "$audit"
    exits 3 "a log that may not be read"
    says "Permission denied" "says so"
else
    skip "a log that may not be read" "root may read all, and there is no setpriv"
fi
restore

# --- bad input ---
for command in verify show rebuild "prove 1"; do
    # shellcheck disable=SC2086
    run log $command --audit-dir "$work/nothing"
    exits 3 "log $command: no directory"
    says "there is no log" "log $command: says so"
    : >"$work/file"
    # shellcheck disable=SC2086
    run log $command --audit-dir "$work/file"
    exits 3 "log $command: a file instead of a directory"
done
for command in verify "prove 1"; do
    # shellcheck disable=SC2086
    run log $command --json --audit-dir "$work/nothing"
    exits 3 "log $command --json: no directory"
    prints '"status":"error"' "log $command --json: stdout says it as JSON, too"
done
run log verify --audit-dir "$audit" "$audit"
exits 3 "two places at once"
mkdir -p "$work/odd/log"
not_utf8=$(printf '\377\376')
for text in '' 'x' 'a+b+c
' "$not_utf8
"; do
    printf '%s' "$text" >"$work/odd/log/origin"
    run log verify --audit-dir "$work/odd"
    exits 3 "an origin that is none"
    says "origin" "is named"
done
head -c 100000 /dev/zero >"$work/odd/log/origin"
run log verify --audit-dir "$work/odd"
exits 3 "a huge origin of NULs"
rm "$work/odd/log/origin" && mkdir "$work/odd/log/origin"
run log verify --audit-dir "$work/odd"
exits 3 "a directory as origin"
says "is a directory" "is said"
run log
exits 3 "log alone"
run log nonsense
exits 3 "a command that is none"
finish
