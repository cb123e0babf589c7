# SPDX-License-Identifier: Apache-2.0
# Sourced after tests/cli/tap.sh: the commands of a page, as a reader would run them.
#
#   blocks PAGE          every ```sh block becomes $work/<page>-<NN>.sh, /tmp our directory
#   run_block DIR FILE   runs one in DIR; `assay` is the program under test
mkdir -p "$work/bin"
ln -sf "$ASSAY" "$work/bin/assay"

blocks() {
    awk -v out="$work/$(basename "$1" .md)-" '
        /^```sh$/ { name = sprintf("%s%02d.sh", out, ++n); next }
        /^```/ { name = ""; next }
        name { print > name }' "$1"
    for script in "$work/$(basename "$1" .md)"-*.sh; do
        sed -i "s|/tmp/|$work/|g" "$script"
    done
}

run_block() {
    (cd "$1" && PATH=$work/bin:$PATH TMPDIR=$work sh -eu "$2" >"$work/out" 2>"$work/err")
}
