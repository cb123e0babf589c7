#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay key …: what lies on disk afterwards, checked with other tools.
. tests/cli/tap.sh
keys=$ASSAY_HOME/keys

run key list
exits 0 "no key yet"
says "no signing key" "and it says so"
run key list --json
check "the list is empty" grep -qx '{"signers":\[\]}' "$work/out"
run key info
exits 3 "info without a key"
says "no signing key" "says why"
check "nothing was made" [ ! -e "$ASSAY_HOME" ]

run key generate
exits 0 "generate"
check "32 bytes, 0600" [ "$(stat -c '%s %a' "$keys/assay-local.key")" = "32 600" ]
check "32 bytes, 0644" [ "$(stat -c '%s %a' "$keys/assay-local.pub")" = "32 644" ]
check "directory 0700" [ "$(stat -c '%a' "$keys")" = 700 ]
run key generate
exits 3 "a second time"
says "already a key 'assay-local'" "is refused"

run key info
fingerprint=$(sha256sum "$keys/assay-local.pub" | cut -d' ' -f1)
prints "$fingerprint" "the fingerprint is sha256sum of the .pub"
prints "$(base64 "$keys/assay-local.pub")" "the public key is there in base64"
run key info --json
prints "\"fingerprint\":\"$fingerprint\"" "also as JSON"
if command -v python3 >/dev/null; then
    check "that other code reads" python3 -m json.tool "$work/out"
else
    skip "that other code reads" "python3 is not installed"
fi

# OpenSSL agrees that the two halves belong together (RFC 8410 around the raw bytes).
if command -v openssl >/dev/null; then
    {
        printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040'
        cat "$keys/assay-local.key"
    } >"$work/key.der"
    openssl pkey -inform DER -in "$work/key.der" -pubout -outform DER 2>/dev/null |
        tail -c 32 >"$work/pub"
    check "openssl derives the same public key" cmp "$work/pub" "$keys/assay-local.pub"
else
    skip "openssl derives the same public key" "openssl is not installed"
fi

mkdir "$work/out.d"
run key export --out "$work/out.d"
exits 0 "export"
check "base64 of the .pub" sh -c \
    'base64 -d "$1/assay-local.pub.b64" | cmp - "$2/assay-local.pub"' - "$work/out.d" "$keys"
run key export --out "$work/out.d"
exits 3 "an exported file is not replaced"
run key export --secret --out "$work/out.d" --json
exits 0 "export --secret"
check "0600" [ "$(stat -c %a "$work/out.d/assay-local.key.b64")" = 600 ]
check "base64 of the .key" sh -c \
    'base64 -d "$1/assay-local.key.b64" | cmp - "$2/assay-local.key"' - "$work/out.d" "$keys"
check "the answer does not hold it" sh -c '! grep -qF "$(cat "$1")" "$2"' - \
    "$work/out.d/assay-local.key.b64" "$work/out"
run key export nobody --out "$work/out.d"
exits 3 "export of an unknown signer"
run key export --out "$work/none"
exits 3 "export to a directory that is not there"

run key import "$work/out.d/assay-local.key.b64"
exits 3 "import over an existing key"
run key import "$work/out.d/assay-local.key.b64" copy
exits 0 "import under another id"
check "the same key" cmp "$keys/copy.key" "$keys/assay-local.key"
cp "$keys/copy.key" "$work/raw.key"
run key import "$work/raw.key"
exits 0 "import of raw bytes, the id from the file name"
check "the same public key" cmp "$keys/raw.pub" "$keys/copy.pub"
status=0
"$ASSAY" key import - piped <"$work/out.d/assay-local.key.b64" \
    >"$work/out" 2>"$work/err" || status=$?
exits 0 "import from stdin"

: >"$work/empty"
head -c 100000 /dev/zero >"$work/huge"
printf 'AAAA\000AAAA' >"$work/nul"
printf '\377\376' >"$work/bytes"
printf '%s' 'nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A' >"$work/unpadded"
for bad in empty huge nul bytes unpadded missing out.d; do
    run key import "$work/$bad" "bad"
    exits 3 "import of: $bad"
    says "$bad" "names it: $bad"
    check "nothing is left of: $bad" [ ! -e "$keys/bad.key" ]
done
run key import "$work/missing"
says "cannot open '$work/missing': No such file" "what is missing need not name a signer"
run key import "$work/empty"
says "does not name a signer: give an ID" "what is there must"
: >"$work/file"
ASSAY_HOME=$work/file/home run key generate
exits 3 "no place for keys"
says "keys cannot be kept in '$work/file/home/keys' (ASSAY_HOME moves them): " "says so"
for id in ../x .hidden a/b "" "$(printf 'a\nb')" \
    01234567890123456789012345678901234567890123456789012345678901234; do
    run key generate "$id"
    exits 3 "a bad signer id: $(printf %s "$id" | tr -c 'A-Za-z0-9./' _)"
done

# both halves are 32 bytes: a public one must not become a secret
cp "$work/out.d/assay-local.pub.b64" "$work/plain.b64"
for public in "$work/out.d/assay-local.pub.b64" "$keys/assay-local.pub" "$work/plain.b64"; do
    run key import "$public" public
    exits 3 "import of a public key: ${public##*/}"
    says "public key" "is refused as one: ${public##*/}"
    check "and nothing is made: ${public##*/}" [ ! -e "$keys/public.key" ]
done
run key import "$keys/assay-local.pub" public
says 'key export --secret' "and says what is expected"
run key info nobody --json
exits 3 "info of an unknown signer as JSON"
check "is a JSON error" grep -q '^{"command":"key info","error":".*nobody.*","status":"error"}$' \
    "$work/out"

run key set-active copy
exits 0 "set-active"
check "the marker" [ "$(cat "$keys/.active_signer")" = copy ]
run key list
check "the list marks it" grep -q '^\* copy ' "$work/out"
run key set-active nobody
exits 3 "set-active of an unknown signer"
check "leaves the marker" [ "$(cat "$keys/.active_signer")" = copy ]

run key rotate
exits 0 "rotate"
says "key rotate --log" "and what it does not do"
new=$(cat "$keys/.active_signer")
check "the new signer has a date" sh -c \
    'echo "$1" | grep -qE "^copy-[0-9]{8}T[0-9]{6}Z$"' - "$new"
check "the old key stays" [ -f "$keys/copy.key" ]
check "and is another one" sh -c '! cmp -s "$1" "$2"' - "$keys/copy.key" "$keys/$new.key"
run key list
check "the list is in columns, whatever the names" [ "$(awk '{ print index($0, $NF) }' \
    "$work/out" | sort -u | wc -l)" -eq 1 ]
run key rotate second
exits 0 "rotate to a given id"
check "is active" [ "$(cat "$keys/.active_signer")" = second ]
run key rotate second
exits 3 "rotate to a taken id"
check "changes nothing" [ "$(cat "$keys/.active_signer")" = second ]

chmod 644 "$keys/second.key"
run key export --secret --out "$work/out.d"
exits 3 "a key that others can read"
says "0644" "is refused by its mode"
check "and not exported" [ ! -e "$work/out.d/second.key.b64" ]
chmod 600 "$keys/second.key"
mv "$keys/raw.key" "$work/moved"
ln -s "$work/moved" "$keys/raw.key"
run key set-active raw
exits 3 "a key that is a link"
says "link" "is refused"
run key export --out
exits 3 "a missing value"
says "--out" "is named"
finish
