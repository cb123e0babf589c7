#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay jcs: canonical bytes and nothing else, or one line and nothing at all.
#     jcs.t - [soak]      soak: a text of 1 GiB
. tests/cli/tap.sh

run_stdin() { # file ARGS…
    stdin=$1
    shift
    status=0
    "$ASSAY" "$@" >"$work/out" 2>"$work/err" <"$stdin" || status=$?
}

is() { # EXACT WHAT: stdout is these bytes, no newline added
    printf '%s' "$1" | cmp -s - "$work/out"
    result $? "$2"
}

refused() { # WHAT SAYS: of the last run
    exits 3 "$1"
    says "$2" "$1: says why"
    silent "$1: prints nothing"
}

# A text that is its own canonical form, of N MiB in one string, with little memory.
large() { # MiB
    {
        printf '["'
        head -c "$(($1 * 1048576 - 4))" /dev/zero | tr '\0' x
        printf '"]'
    } >"$work/large.json"
    want="sha256:$(sha256sum <"$work/large.json" | cut -d' ' -f1)"
    if ! (ulimit -d 16384 && "$ASSAY" help) >/dev/null 2>&1; then
        skip "$1 MiB in 16 MiB of memory" "this build needs more to start"
    else
        (ulimit -d 16384 && exec "$ASSAY" jcs --sha256 "$work/large.json") >"$work/out" 2>&1
        check "$1 MiB in 16 MiB of memory" grep -qx "$want" "$work/out"
    fi
    run jcs --sha256 "$work/large.json"
    prints "$want" "$1 MiB: the hash that sha256sum says"
    run jcs "$work/large.json"
    check "$1 MiB: the bytes as they were" cmp "$work/out" "$work/large.json"
    rm -f "$work/large.json" "$work/out"
}

if [ "${2:-}" = soak ]; then
    large 1024
    finish
fi

printf ' { "b" : [ 1.50, 1e21, -0 ], "a" : "\\u00e9\\n" }\n' >"$work/a.json"
want='{"a":"é\n","b":[1.5,1e+21,0]}'
run jcs "$work/a.json"
exits 0 "a file"
is "$want" "is printed in canonical form without a newline"
run_stdin "$work/a.json" jcs
is "$want" "so is stdin"
run_stdin "$work/a.json" jcs -
is "$want" "and stdin by its name"
"$ASSAY" jcs - <"$work/a.json" | cat >"$work/out"
is "$want" "and a pipe"
cat "$work/a.json" | "$ASSAY" jcs >"$work/out"
is "$want" "from a pipe"
mkfifo "$work/fifo"
timeout 10 sh -c 'exec cat "$1" >"$2"' - "$work/a.json" "$work/fifo" >/dev/null 2>&1 &
run jcs "$work/fifo"
is "$want" "from a named pipe"
run jcs --sha256 "$work/a.json"
prints "sha256:$(printf '%s' "$want" | sha256sum | cut -d' ' -f1)" "--sha256 hashes those bytes"
check "one line" [ "$(wc -l <"$work/out")" -eq 1 ]
for text in 0 '""' '[]' '{}' null; do
    printf %s "$text" >"$work/b.json"
    run jcs "$work/b.json"
    is "$text" "$text alone"
done

bad() { # WHAT SAYS PRINTF-FORMAT
    # shellcheck disable=SC2059 # the format is the test
    printf "$3" >"$work/bad.json"
    run jcs "$work/bad.json"
    refused "$1" "$2"
    run jcs --sha256 "$work/bad.json"
    silent "$1: no hash either"
}
bad "an empty file" "byte 0: expected a value" ''
bad "a duplicate member" "duplicate member 'a'" '[1,2,{"a":1,"b":2,"a":3}]'
bad "the same name in disguise" "duplicate member" '{"a":1,"\\u0061":2}'
bad "a lone surrogate" "lone surrogate at byte 4" '[1,"\\ud800"]'
bad "a number beyond a double" "number at byte 3 is beyond a double" '[1,1e400]'
bad "bytes that are not UTF-8" "valid UTF-8" '["\377"]'
bad "a NUL byte" "0x00" '[1]\000'
bad "a cut text" "the end of the text" '{"a":[1,2'
bad "two values" "nothing after the value" '{} {}'
bad "a byte order mark" "byte order mark" '\357\273\277{}'
bad "not JSON" "expected a value" 'hello'
head -c 129 /dev/zero | tr '\0' '[' >"$work/deep.json"
run jcs "$work/deep.json"
refused "deep nesting" "deeper than 128 levels"
{ printf '[1'; head -c 8000000 /dev/zero | sed 's/\x00/,1/g'; printf ']'; } >"$work/many.json"
run jcs "$work/many.json"
refused "too many values" "more than 4000000 values"
run jcs "$work/absent.json"
refused "a missing file" "No such file"
run jcs "$work"
refused "a directory" "is a directory"
run jcs /dev/zero
refused "a device" "neither a file nor a pipe"
truncate -s 4G "$work/huge.json"
run jcs "$work/huge.json"
refused "4 GiB" "too much JSON"
run jcs --nonsense
refused "an unknown flag" "nonsense"
run jcs a b
refused "two files" ""
run_stdin /dev/null jcs
refused "empty stdin" "'stdin'"

if [ -d ../shared/testdata/json-parsing ]; then
    for name in y_object_duplicated_key y_object_duplicated_key_and_value; do
        run jcs "../shared/testdata/json-parsing/$name.json"
        refused "$name" "duplicate member"
    done
    for path in ../shared/testdata/jcs/input/*.json; do
        run jcs "$path"
        check "$(basename "$path") as published" \
            cmp "$work/out" "../shared/testdata/jcs/output/$(basename "$path")"
    done
else
    skip "the public test data" "../shared/testdata is not here"
fi

if [ -e /dev/full ]; then
    status=0
    "$ASSAY" jcs "$work/a.json" >/dev/full 2>"$work/err" || status=$?
    exits 3 "an answer that cannot be written"
fi
large 64
finish
