# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced: other people's clients and servers go into the build directory, once, and their
# use is prepared. Sets place and work.
build=${ASSAY_BUILD:-build}
place=$build/mcp-interop
packages="sdk@1 client@2 server@2 node@2 server-everything server-filesystem inspector@0.15.0"

nothing() {
    echo "1..0 # SKIP $1"
    exit 0
}

install_node() {
    [ "$(cat "$place/node.done" 2>/dev/null)" = "$packages" ] && return 0
    names=
    for package in $packages; do
        names="$names @modelcontextprotocol/$package"
    done
    # shellcheck disable=SC2086 # a list of words
    timeout 250 npm install --prefix "$place" --no-audit --no-fund $names zod \
        >"$place/npm.log" 2>&1 && echo "$packages" >"$place/node.done"
}

install_python() {
    [ -f "$place/python.done" ] && return 0
    rm -rf "$place/python"
    { python3 -m venv "$place/python" && timeout 250 "$place/python/bin/pip" install --quiet \
        --disable-pip-version-check 'mcp>=2,<3'; } >"$place/pip.log" 2>&1 &&
        : >"$place/python.done"
}

# One test at a time installs.
install_all() {
    flock 9
    install_node &
    node_job=$!
    install_python || { wait $node_job; nothing "the package mcp cannot be installed here"; }
    wait $node_job || nothing "the packages @modelcontextprotocol/* cannot be installed here"
    cp tests/interop/mcp/*.mjs "$place/" || exit 1
}

for program in node npm python3 flock; do
    command -v $program >/dev/null || nothing "$program is not installed"
done
mkdir -p "$place" || exit 1
exec 9>"$place/lock"
install_all
exec 9>&-
work=$(mktemp -d "${TMPDIR:-/tmp}/mcp-interop.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
ASSAY_HOME=$work/keys NO_COLOR=1
export ASSAY_HOME NO_COLOR
