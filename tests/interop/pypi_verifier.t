#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The public Python verifier (package assay-ai) beside ours.
#     pypi_verifier.t [- | DIR...]      more packs to compare; DIRs must be sound
# The package goes into a virtual environment in the build directory, once.
[ "${1:-}" = - ] && shift
[ "${1:-}" = soak ] && shift
build=${ASSAY_BUILD:-build}
venv=$build/pypi-verifier
if [ ! -x "$venv/bin/assay" ]; then
    rm -rf "$venv"
    if ! { python3 -m venv "$venv" && timeout 240 "$venv/bin/pip" install --quiet \
        --disable-pip-version-check assay-ai; } >"$build/pypi-verifier.log" 2>&1; then
        rm -rf "$venv"
        echo "1..0 # SKIP the package assay-ai cannot be installed here"
        exit 0
    fi
fi
home=$(mktemp -d "${TMPDIR:-/tmp}/pypi-verifier.XXXXXX") || exit 1
trap 'rm -rf "$home"' EXIT
HOME=$home ASSAY_HOME=$home/.assay NO_COLOR=1
export HOME ASSAY_HOME NO_COLOR
python3 tests/interop/pypi_verifier.py "$venv/bin/assay" "$@"
