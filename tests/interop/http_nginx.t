#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our HTTP codec beside nginx, over what clients send and what they should not.
#     http_nginx.t HELPER [quick|soak]
command -v python3 >/dev/null || {
    echo "1..0 # SKIP python3 is not installed"
    exit 0
}
PATH=$PATH:/usr/sbin
exec python3 tests/interop/http_nginx.py "$1" "${2:-quick}"
