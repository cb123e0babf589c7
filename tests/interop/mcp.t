#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other people's clients and servers through `assay mcp-proxy`.
#     mcp.t [- [soak]]
. tests/interop/mcp/install.sh
python3 tests/interop/mcp.py "$place" "$work" "${2:-quick}"
