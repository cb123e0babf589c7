#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The official conformance suite through `assay mcp-proxy --listen`.
#     conformance.t [- [soak]]
# The packages go into the build directory, once; Node 22, which the suite needs, is one.
build=${ASSAY_BUILD:-build}
place=$build/conformance
mode=${2:-quick}
suite=@modelcontextprotocol/conformance
packages="node@22 @modelcontextprotocol/server@2 @modelcontextprotocol/node@2
    @modelcontextprotocol/express@2 @modelcontextprotocol/client@2 express zod"

nothing() {
    echo "1..0 # SKIP $1"
    exit 0
}

# The last version that was published, a pre-release or not.
newest() {
    timeout 60 npm view $suite versions --json 2>>"$place/npm.log" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)[-1])'
}

install_all() {
    [ -f "$place/done" ] && return 0
    version=$(newest) || return 1
    # shellcheck disable=SC2086 # a list of words
    timeout 250 npm install --prefix "$place" --no-audit --no-fund $packages \
        "newest@npm:$suite@$version" "stable@npm:$suite@latest" >>"$place/npm.log" 2>&1 || return 1
    case $("$place/node_modules/.bin/node" --version) in v22.*) : >"$place/done" ;; *) return 1 ;; esac
}

PATH=$PATH:/usr/sbin
for program in node npm python3; do
    command -v $program >/dev/null || nothing "$program is not installed"
done
mkdir -p "$place" || exit 1
install_all || nothing "the conformance suite and what it needs cannot be installed here"
cp tests/interop/conformance/*.mjs "$place/" || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/conformance.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
ASSAY_HOME=$work/keys
export ASSAY_HOME
python3 tests/interop/conformance.py "$place" "$work" "$mode"
