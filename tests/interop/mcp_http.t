#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other people's clients over HTTP through `assay mcp-proxy --listen`, in all bridges.
#     mcp_http.t [- [soak]]
. tests/interop/mcp/install.sh
python3 tests/interop/mcp_http.py "$place" "$work" "${2:-quick}"
