#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other people's clients and servers through `assay mcp-proxy`.
#     mcp.t [- [soak]]
# The packages go into the build directory, once.
build=${ASSAY_BUILD:-build}
place=$build/mcp-interop
mode=${2:-quick}
packages="sdk@1 client@2 server@2 server-everything server-filesystem inspector@0.15.0"

nothing() {
    echo "1..0 # SKIP $1"
    exit 0
}

install_node() {
    [ -f "$place/node.done" ] && return 0
    names=
    for package in $packages; do
        names="$names @modelcontextprotocol/$package"
    done
    # shellcheck disable=SC2086 # a list of words
    timeout 250 npm install --prefix "$place" --no-audit --no-fund $names zod \
        >"$place/npm.log" 2>&1 && : >"$place/node.done"
}

install_python() {
    [ -f "$place/python.done" ] && return 0
    rm -rf "$place/python"
    { python3 -m venv "$place/python" && timeout 250 "$place/python/bin/pip" install --quiet \
        --disable-pip-version-check 'mcp>=2,<3'; } >"$place/pip.log" 2>&1 &&
        : >"$place/python.done"
}

for program in node npm python3; do
    command -v $program >/dev/null || nothing "$program is not installed"
done
mkdir -p "$place" || exit 1
install_node &
node_job=$!
install_python || { wait $node_job; nothing "the package mcp cannot be installed here"; }
wait $node_job || nothing "the packages @modelcontextprotocol/* cannot be installed here"
cp tests/interop/mcp/*.mjs "$place/" || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/mcp-interop.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
ASSAY_HOME=$work/keys NO_COLOR=1
export ASSAY_HOME NO_COLOR
python3 tests/interop/mcp.py "$place" "$work" "$mode"
