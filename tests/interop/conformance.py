#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite, with `assay mcp-proxy --listen` ($ASSAY) in between and without.

    conformance.py PLACE WORK quick|soak    PLACE holds node_modules and our fixtures

The suite plays the client of our fixture server, and the server of our fixture client. What
it finds must be the same, check by check, but for what names the server itself in OAuth
(EXCEPTIONS). nginx in our place shows that a proxy can do that. Speaks TAP.
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import time

import taplines
from taplines import ok, skip

place, work, mode = (os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3])
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here + "/conformance")
from front import front, is_there  # noqa: E402

assay = os.environ["ASSAY"] = os.path.abspath(os.environ.get("ASSAY", "build/assay"))
node = place + "/node_modules/.bin/node"
SUITES = {v: f"{place}/node_modules/{v}/dist/index.js" for v in ("newest", "stable")}

# suite, its flags, the least number of checks that must pass without us
SERVER = [
    ("newest", "--requirements 2025-11-25", 80),
    ("newest", "--requirements 2026-07-28", 150),
    ("newest", "--suite all --spec-version 2025-06-18", 50),
]
CONTROL = SERVER[1]  # without requests of the server, which time out through a busy nginx
SERVER_SOAK = SERVER + [("stable", "--suite all", 40)]
SMALL = ["initialize 2025-11-25", "tools_call 2025-11-25", "elicitation-sep1034-client-defaults 2025-11-25",
         "sse-retry 2025-11-25", "tools_call 2026-07-28", "request-metadata 2026-07-28",
         "sep-2322-client-request-state 2026-07-28", "http-standard-headers 2026-07-28",
         "http-custom-headers 2026-07-28", "http-invalid-tool-headers 2026-07-28",
         "json-schema-2020-12-preservation 2026-07-28"]
CLIENT = [("newest", "--scenario %s --spec-version %s" % tuple(s.split()), 1) for s in SMALL]
CLIENT_SOAK = [
    ("newest", "--requirements 2025-11-25", 300),
    ("newest", "--requirements 2026-07-28", 400),
    ("stable", "--suite all", 250),
]
# What is not the same, and cannot be: scenario, name of a check (all if empty), reason.
EXCEPTIONS = [
    ("auth/", "Resource parameter matches protected resource metadata",
     "the resource is called as the client reaches it: by the proxy's address"),
    ("auth/metadata-var3", "", "the metadata is where only the server serves it, at a path of its own"),
    ("auth/2025-03-26-oauth-endpoint-fallback", "", "the endpoints are guessed from the server's address"),
]
RESULT = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$")
MASKS = [(r"(localhost|127\.0\.0\.1):\d+", "<host>"), (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>"),
         (r"\d+(\.\d+)?ms", "<time>")]


# running it

def run_suite(suite, words, directory):
    """What it found: {scenario: {(check, name): [(status, message)]}}."""
    out = directory + "/out"
    env = dict(os.environ, NO_COLOR="1", HOME=work, PATH=place + "/node_modules/.bin:" + os.environ["PATH"],
               NODE_OPTIONS="--require %s/mcp/loopback.cjs" % here)
    with open(directory + "/said", "wb") as said:
        subprocess.run([node, SUITES[suite], *words, "-o", out], env=env, stdin=subprocess.DEVNULL,
                       stdout=said, stderr=subprocess.STDOUT, timeout=300, check=False)
    return read_results(out)


def read_results(out):
    found = {}
    for path in sorted(glob.glob(out + "/**/checks.json", recursive=True)):
        scenario = RESULT.match(os.path.relpath(os.path.dirname(path), out))
        with open(path, encoding="utf-8") as f:
            checks = found.setdefault(scenario.group(1), {})
            for c in json.load(f):
                if c["status"] != "INFO":  # what went over the wire, not what it is worth
                    checks.setdefault((c["id"], c["name"]), []).append(
                        (c["status"], masked(c.get("errorMessage") or "")))
    return found


def masked(text):
    for pattern, word in MASKS:
        text = re.sub(pattern, word, text)
    return text


def start_server():
    process = subprocess.Popen([node, place + "/server.mjs"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work)
    return process, "http://127.0.0.1:%d/mcp" % int(process.stdout.readline())


def fresh(kind, what):
    directory = "%s/%s-%s-%d" % (work, re.sub(r"\W+", "-", what), kind, time.monotonic_ns())
    os.makedirs(directory)
    return directory


def as_client(kind, suite, flags):
    """The suite against our server: what it found, the directory of the proxy, the calls
    that came to the server."""
    directory = fresh(kind, suite + flags)
    server, url = start_server()
    try:
        with front(kind, url, directory) as seen:
            found = run_suite(suite, ["server", "--url", seen, *flags.split()], directory)
    finally:
        server.terminate()
        calls = int(server.communicate()[0])
    return found, directory, calls


def as_server(kind, suite, flags):
    """The suite against our client."""
    directory = fresh(kind, suite + flags)
    client = [node, place + "/client.mjs"]
    if kind != "direct":
        client = [sys.executable, here + "/conformance/front.py", kind, directory, *client]
    words = ["client", "--command", " ".join(client), *flags.split()]
    return run_suite(suite, words, directory), directory, 0


# comparing

def differences(direct, seen, judged):
    """One line per check that is not the same."""
    told = []
    for scenario in sorted(direct.keys() | seen.keys()):
        a, b = direct.get(scenario, {}), seen.get(scenario, {})
        for check in sorted(a.keys() | b.keys()):
            if judged(scenario, check[1]) and sorted(a.get(check, [])) != sorted(b.get(check, [])):
                told.append("%s: %s: %s, and with it in between %s" % (
                    scenario, check[1], a.get(check, "none"), b.get(check, "none")))
    return told


def passed(found):
    return sum(status == "SUCCESS" for checks in found.values() for said in checks.values()
               for status, _ in said)


def is_judged(flags):
    """Which scenarios and checks count. A suite runs all clients at once, so that one that
    looks at the clock says nothing there; it is run by itself, too."""
    def judged(scenario, check):
        if scenario == "sse-retry" and "--scenario" not in flags:
            return False
        return not any(scenario.startswith(s) and c in ("", check) for s, c, _ in EXCEPTIONS)
    return judged


def compare(kind, way, suite, flags, least):
    """Once; if there is a difference, once more, since some checks look at the clock."""
    name = "%s %s suite, %s" % (suite, "server" if way is as_client else "client", flags)
    for attempt in (1, 2):
        (direct, _, _), (seen, directory, calls) = way("direct", suite, flags), way(kind, suite, flags)
        told = differences(direct, seen, is_judged(flags))
        if not told:
            break
        print("# %s, %s, attempt %d: %s" % (kind, name, attempt, "; ".join(told)[:600]))
    good, all_told = passed(direct), differences(direct, seen, lambda *_: True)
    if len(all_told) > len(told):
        print("# %s: %d checks differ that are not judged" % (name, len(all_told) - len(told)))
    ok(good >= least, "%s: %d checks pass without a proxy" % (name, good), "at least %d" % least)
    ok(not told and len(seen) == len(direct), "%s: %d scenarios are the same through %s (%d checks pass)" % (
        name, len(seen), kind, passed(seen)), "\n".join(told[:40]))
    if kind == "assay" and way is as_client:
        check_evidence(name, directory, calls)


# what we leave

def check_evidence(name, directory, calls):
    """A receipt for each call that the server got, and for those that it did not get."""
    audit = directory + "/audit"
    verdict = subprocess.run([assay, "log", "verify", audit], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=False)
    ok(verdict.returncode == 0, name + ": the log verifies", verdict.stdout.decode(errors="replace"))
    receipts = collections.Counter()
    for path in glob.glob(audit + "/receipts/*.jsonl"):
        with open(path, encoding="utf-8") as f:
            receipts.update(json.loads(line)["type"] for line in f)
    ok(receipts["mcp_tool_call"] >= calls > 5, "%s: %d receipts for %d calls of the server" % (
        name, receipts["mcp_tool_call"], calls), receipts)
    packs = glob.glob(audit + "/packs/proof_pack_*")
    bad = [p for p in packs if subprocess.run([assay, "verify-pack", p], stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL, check=False).returncode]
    ok(packs and not bad, "%s: %d packs, which verify" % (name, len(packs)), bad)


def main():
    soak = mode == "soak"
    rows = [(as_client, *r) for r in (SERVER_SOAK if soak else SERVER)]
    rows += [(as_server, *r) for r in (CLIENT_SOAK + CLIENT if soak else CLIENT[::2])]
    plans = {"nginx": [(as_client, *CONTROL)], "assay": rows} if soak else {"assay": rows}
    for kind, planned in plans.items():
        if not is_there(kind):
            skip("the suite through " + kind, "it is not there")
            continue
        with concurrent.futures.ThreadPoolExecutor(1 if soak else 2) as pool:
            for done in [pool.submit(compare, kind, *row) for row in planned]:
                done.result()


main()
sys.exit(taplines.done())
