#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pack that we wrote, checked by other people's programs: Python's standard library,
# openssl, stock Node. What they run is what docs/pack.md and docs/receipt.md say.
#     pack.t RECORD      RECORD DIR records a session and prints its pack
. tests/cli/tap.sh
. tests/interop/blocks.sh
case $1 in /*) record=$1 ;; *) record=$PWD/$1 ;; esac

have() { # PROGRAM WHAT
    command -v "$1" >/dev/null 2>&1 && return 0
    skip "$2" "there is no $1"
    return 1
}

verify() { # FILE SIGNATURE
    openssl pkeyutl -verify -pubin -inkey "$work/key.der" -keyform DER -rawin -in "$1" \
        -sigfile "$2"
}

pack=$("$record" "$work/audit" 2>/dev/null)
[ -d "$pack" ] || { echo "Bail out! nothing was recorded"; exit 1; }
if have python3 "Python checks the pack"; then
    check "Python checks the pack" python3 tests/interop/check_pack.py "$pack" "$work"
    if have openssl "openssl checks the signatures"; then
        check "openssl accepts the signature of the pack" \
            verify "$work/manifest.bin" "$pack/pack_signature.sig"
        check "openssl accepts the signature of the log" \
            verify "$work/checkpoint.txt" "$work/checkpoint.sig"
        printf x >>"$work/manifest.bin"
        if verify "$work/manifest.bin" "$pack/pack_signature.sig" >"$work/check.out" 2>&1; then
            result 1 "openssl refuses another manifest"
        else
            result 0 "openssl refuses another manifest"
        fi
    fi
fi
blocks docs/pack.md
blocks docs/receipt.md
pages=no
if have python3 "the commands of the pages" && have openssl "the commands of the pages" &&
    have node "the commands of the pages"; then
    pages=yes
    export P="$pack"
    for script in "$work"/pack-*.sh "$work"/receipt-*.sh; do
        run_block . "$script"
        status=$?
        result $status "$(basename "$script" .sh) of the pages runs"
    done
    [ "$(ls "$work"/pack-*.sh "$work"/receipt-*.sh | wc -l)" -eq 7 ]
    result $? "all commands of the pages"
    status=0
    python3 tests/interop/check_pack.py >"$work/out" 2>"$work/err" || status=$?
    [ $status -ne 0 ] && grep -q '^usage: ' "$work/err"
    result $? "check_pack.py without arguments says how it is used"
fi
if have node "Node computes the hashes of the receipts"; then
    check "Node computes the hashes of the receipts" \
        node tests/interop/receipt_hashes.js "$pack"
fi
public=${ASSAY_BUILD:-build}/pypi-verifier/bin/assay
if [ -x "$public" ]; then
    check "the public verifier accepts the pack" env HOME="$work" "$public" verify-pack "$pack"
else
    skip "the public verifier accepts the pack" "interop-pypi_verifier did not install it yet"
fi
sed -i 's/get_weather/get_whether/' "$pack/log_events.jsonl"
if have python3 "Python sees a changed event"; then
    if python3 tests/interop/check_pack.py "$pack" >"$work/check.out" 2>&1; then
        result 1 "Python sees a changed event"
    else
        result 0 "Python sees a changed event"
    fi
fi
if [ $pages = yes ]; then
    for n in 01 03; do
        run_block . "$work/pack-$n.sh"
        status=$?
        [ $status -ne 0 ]
        result $? "pack-$n of the pages refuses a changed event"
    done
fi
run verify-pack "$pack"
exits 2 "and so do we"
finish
