# SPDX-License-Identifier: Apache-2.0
"""Results as TAP, for mcp.py, mcp_http.py and conformance.py."""
count = failures = 0


def ok(good, what, why=""):
    """`why` is said of what is not."""
    global count, failures
    count += 1
    failures += not good
    print("%sok %d - %s" % ("" if good else "not ", count, what))
    for line in str(why).splitlines() if not good else []:
        print("# " + line[:1000])
    print(end="", flush=True)
    return good


def skip(what, why):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, what, why), flush=True)


def done():
    """The plan; what the program ends with."""
    print("1..%d" % count, flush=True)
    return failures != 0
