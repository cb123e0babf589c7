#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real clients and servers with `assay mcp-proxy` ($ASSAY) in between, and without it.

    mcp.py PLACE WORK quick|soak      PLACE holds node_modules and python/, WORK is scratch

A row is a client, a server and a plan (mcp/*.json). Each row runs twice, once through the
proxy with a tap on either side of it. What the client was told must be the same, the bytes
before and behind the proxy must be the same, every tools/call on the wire must have its
receipt, the packs must verify, and nobody may be left. Speaks TAP.
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import taplines
from taplines import ok, skip

place, work, mode = (os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3])
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp")
assay = os.path.abspath(os.environ.get("ASSAY", "build/assay"))
public = os.path.join(os.path.dirname(place), "pypi-verifier/bin/assay")
modules = place + "/node_modules/@modelcontextprotocol"
python = place + "/python/bin/python"
inspector = modules + "/inspector/cli/build/cli.js"
for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
    del os.environ[name]  # all servers are here
MODERN = "2026-07-28"

SERVERS = {
    "everything": ["node", modules + "/server-everything/dist/index.js", "stdio"],
    "filesystem": ["node", modules + "/server-filesystem/dist/index.js", "ROOT"],
    "ts-v2": ["node", place + "/server.mjs"],
    "python": [python, here + "/server.py"],
}
PLANS = {"everything": "everything", "filesystem": "filesystem"}  # else: small

# client, its mode, server
QUICK = [
    ("ts-v1", "legacy", "everything"),
    ("ts-v1", "legacy", "filesystem"),
    ("ts-v2", "legacy", "ts-v2"),
    ("ts-v2", "auto", "ts-v2"),
    ("ts-v2", MODERN, "ts-v2"),
    ("ts-v2", "auto", "everything"),
    ("python", "legacy", "everything"),
    ("python", "auto", "python"),
]
SOAK = [("ts-v1", "legacy", s) for s in SERVERS] + [
    (c, m, s) for c in ("ts-v2", "python") for m in ("legacy", "auto") for s in SERVERS] + [
    (c, MODERN, s) for c in ("ts-v2", "python") for s in ("ts-v2", "python")]
HTTP = [
    ("ts-v1", "legacy", "everything"),
    ("ts-v2", "auto", "everything"),
    ("python", "legacy", "everything"),
    ("python", "auto", "python"),
    ("ts-v2", MODERN, "python"),
]
OLD = [  # HTTP+SSE
    ("ts-v1", "legacy", "everything"),
    ("ts-v2", "auto", "everything"),
    ("python", "legacy", "everything"),
    ("ts-v1", "legacy", "python"),
]


def client_command(client, how, plan):
    if client == "python":
        return [python, here + "/client.py", how, plan]
    return ["node", place + "/client.mjs", client[3:], how, plan]


def script(path, words):
    """A command of one word: what a client's configuration names."""
    quoted = " ".join("'%s'" % w.replace("'", "'\\''") for w in words)
    with open(path, "w") as f:
        f.write("#!/bin/sh\nexec %s\n" % quoted)
    os.chmod(path, 0o755)
    return path


def make_root(root):
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root + "/sub")
    for name, data in (("plain.txt", b"a line\n"), ("sub/below.txt", b"below\n"),
                       ("large.txt", b"0123456789abcdef\n" * 20000), ("dot.png", bytes(range(256)))):
        with open(os.path.join(root, name), "wb") as f:
            f.write(data)


class Row:
    """One client, one server, one plan, with and without us."""

    def __init__(self, client, how, server):
        self.name = "%s client (%s), %s server" % (client, how, server)
        self.dir = os.path.join(work, "%s-%s-%s-%s" % (type(self).__name__, client, how, server))
        self.audit, self.root = self.dir + "/audit", self.dir + "/root"
        os.makedirs(self.dir)
        with open("%s/%s.json" % (here, PLANS.get(server, "small"))) as f:
            plan = f.read().replace("ROOT", self.root)
        with open(self.dir + "/plan.json", "w") as f:
            f.write(plan)
        self.client = client_command(client, how, self.dir + "/plan.json")
        self.server = [self.root if w == "ROOT" else w for w in SERVERS[server]]
        self.env = dict(os.environ, HOME=self.dir, PLAN_ROOT=self.root if server == "filesystem" else "")

    def run(self, *proxy):
        make_root(self.root)
        command = script(self.dir + "/server", [*proxy, *self.server])
        return subprocess.run([*self.client, command], env=self.env, timeout=120, cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def proxy(self):
        return [assay, "mcp-proxy", "--audit-dir", self.audit, "--"]

    def both(self):
        tap = [sys.executable, here + "/tap.py"]
        self.direct = self.run()
        self.tapped = self.run(*tap, self.dir + "/before", *self.proxy(), *tap, self.dir + "/behind")
        self.left = processes(self.dir)
        return self


class HttpRow(Row):
    """The same with a Streamable HTTP server: the client speaks HTTP to it, or stdio to us."""

    word, transport, path = "streamableHttp", "streamable-http", "/mcp"

    def __init__(self, client, how, server):
        super().__init__(client, how, server)
        self.name = "%s client (%s), %s server over %s" % (client, how, server, self.transport)

    def both(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        url = "http://127.0.0.1:%d%s" % (port, self.path)
        env = dict(os.environ, PORT=str(port), TRANSPORT=self.transport, NODE_OPTIONS="--require %s/loopback.cjs" % here)
        words = [self.word if w == "stdio" else w for w in self.server]
        server = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            self.direct = self.ask(url)
            self.tapped = self.ask(script(self.dir + "/server", [
                sys.executable, here + "/tap.py", self.dir + "/before", assay, "mcp-proxy",
                "--audit-dir", self.audit, "--upstream-url", url]))
        finally:
            server.terminate()
            server.wait()
        self.left = processes(self.dir)
        return self

    def ask(self, target):
        return subprocess.run([*self.client, target], env=self.env, timeout=120, cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class OldRow(HttpRow):
    """…and with one of the transport before, which we find out."""

    word, transport, path = "sse", "sse", "/sse"


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)


def processes(marker):
    """Who still runs with our directory as home. A signalled process needs a moment to go."""
    end, found = time.monotonic() + 5, None
    while found is None or (found and time.monotonic() < end):
        time.sleep(0.05 if found else 0)
        found = [p for p in glob.glob("/proc/[0-9]*") if ("HOME=%s\0" % marker).encode() in read(p + "/environ")]
    return found


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


MASKS = [
    (rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", b"<time>"),
    (rb"\d{1,2}:\d\d:\d\d [AP]M", b"<time>"),
    (rb'"level": ?"[a-z]+"', b"<level>"),
    (rb"[A-Z][a-z]+[- ]level[- ]message", b"<message>"),
    (rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"<id>"),
]


def masked(data):
    for pattern, word in MASKS:
        data = re.sub(pattern, word, data)
    return data


def difference(a, b):
    """Both, from a little before where they part."""
    at = max(len(os.path.commonprefix([a, b])) - 100, 0)
    return "%d and %d bytes\ndirect: %s\nproxied: %s" % (len(a), len(b), a[at:at + 300], b[at:at + 300])


def streams(row, side, way):
    """What each process of a side saw; a client that probes starts two."""
    return sorted(read(p) for p in glob.glob("%s/%s.*.%s" % (row.dir, side, way)))


def calls_on(wire):
    """How many tools/call requests per tool, read from the bytes."""
    found = collections.Counter()
    for line in b"".join(wire).splitlines():
        message = json.loads(line)
        if message.get("method") == "tools/call":
            found[message["params"]["name"]] += 1
    return found


def cancelled_on(wire):
    """How many of the tools/call requests of one stream are cancelled in it."""
    messages = [json.loads(line) for line in wire.splitlines()]
    calls = {m["id"] for m in messages if m.get("method") == "tools/call"}
    return sum(m.get("method") == "notifications/cancelled" and m["params"]["requestId"] in calls for m in messages)


def packs(audit):
    return sorted(glob.glob(audit + "/packs/proof_pack_*"))


def receipts(audit):
    return [json.loads(line) for p in packs(audit)
            for line in read(p + "/receipt_pack.jsonl").splitlines()]


def check_packs(name, audit, cancelled=0, expected=1):
    """A call that was cancelled and never answered is a lost one: evidence of that is due."""
    found = packs(audit)
    lost = [r["outcome_reason"] for r in receipts(audit) if r.get("outcome") == "timeout"]
    ok(lost == ["cancelled"] * cancelled, "%s: %d cancelled without an answer, no other call lost" % (name, cancelled), lost)
    for pack in found:
        done = subprocess.run([assay, "verify-pack", pack, "--json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ok(done.returncode == 0, name + ": the pack verifies", done.stdout.decode())
        ends = [json.loads(e) for e in read(pack + "/log_events.jsonl").splitlines() if b'"session_end"' in e]
        ok(len(ends) == 1 and ends[0]["complete"] == (cancelled == 0),
           name + ": and says whether the session is complete", ends)
    ok(len(found) == expected, "%s: packs of sessions with calls: %d" % (name, expected), found)
    return found


def check_row(row):
    ok(row.direct.returncode == 0 and row.tapped.returncode == 0, row.name + ": both runs end well",
       (row.direct.stderr + row.tapped.stderr).decode())
    direct, proxied = masked(row.direct.stdout), masked(row.tapped.stdout)
    ok(len(direct.splitlines()) > 5 and direct == proxied, row.name + ": the same answers", difference(direct, proxied))
    for way, what in (("in", "to the server"), ("out", "to the client")):
        if isinstance(row, HttpRow):
            continue  # nobody sees both sides
        before, behind = streams(row, "before", way), streams(row, "behind", way)
        ok(before == behind and b"".join(before) != b"", "%s: the same bytes %s" % (row.name, what),
           difference(b"".join(before), b"".join(behind)))
    wire = calls_on(streams(row, "before", "in"))
    got = collections.Counter(r["tool_name"] for r in receipts(row.audit) if "tool_name" in r)
    ok(wire == got and sum(wire.values()) > 10, "%s: one receipt per call (%d)" % (row.name, sum(wire.values())),
       "%s\n%s" % (wire, got))
    said = {r["server_transport"] for r in receipts(row.audit)}
    ok(said == {getattr(row, "transport", "stdio")}, row.name + ": the transport in receipts", said)
    ok(not row.left, row.name + ": nobody is left", row.left)
    return check_packs(row.name, row.audit, sum(map(cancelled_on, streams(row, "before", "in"))))


def check_public(found):
    if not os.path.exists(public):
        return skip("the public verifier accepts the packs", "interop-pypi_verifier did not install it yet")
    for pack in found:
        done = subprocess.run([public, "verify-pack", pack], env=dict(os.environ, HOME=work, NO_COLOR="1"),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ok(done.returncode == 0, "the public verifier accepts the pack of " + pack.split("/")[-4], done.stdout.decode())


def inspect(row, *words):
    command = ["node", inspector, "--cli", row.dir + "/server", *words]
    return subprocess.run(command, env=row.env, timeout=60, cwd=row.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check_inspector():
    row = Row("inspector", "cli", "everything") if os.path.exists(inspector) else None
    if not row:
        return skip("the Inspector's command line", "it is not installed")
    for words in (["--method", "tools/list"],
                  ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hällo 🦆"]):
        answers = []
        for proxy in ([], row.proxy()):
            script(row.dir + "/server", [*proxy, *row.server])
            answers.append(inspect(row, *words))
        direct, proxied = answers
        ok(direct.returncode == 0 == proxied.returncode and direct.stdout == proxied.stdout != b"",
           "the Inspector's %s: the same answers" % words[1],
           direct.stderr + proxied.stderr + difference(direct.stdout, proxied.stdout).encode())
    ok(not processes(row.dir), "the Inspector: nobody is left")
    return check_packs("the Inspector", row.audit)


def check_shutdown(name, *stays):
    """SDK v1 closes stdin, waits 2 s, sends SIGTERM, waits 2 s, sends SIGKILL."""
    row = Row("ts-v1", name, "everything")
    row.server = [*stays, *row.server]
    with open(row.dir + "/plan.json", "w") as f:
        json.dump([["call", "toggle-simulated-logging", {}], ["call", "echo", {"message": "last"}]], f)
    done = row.run(*row.proxy())
    there = packs(row.audit)  # at the moment when the client says that it has closed
    took = json.loads(done.stderr.splitlines()[-1])["close_ms"] if done.stderr else 99999
    name = "SDK v1's shutdown, server " + name
    ok(done.returncode == 0 and took < 4000, "%s: over in %d ms, before SIGKILL" % (name, took), done.stderr)
    ok(len(there) == 1, name + ": the pack is there when the client has closed")
    ok(not processes(row.dir), name + ": nobody is left")
    return check_packs(name, row.audit)


def main():
    found = []
    step = 1 if mode == "soak" else 2  # the rest is in mcp_http.py
    rows = [Row(*r) for r in (SOAK if mode == "soak" else QUICK)]
    rows += [HttpRow(*r) for r in HTTP[::step]] + [OldRow(*r) for r in OLD[::step]]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(row.both) for row in rows]:
            found += check_row(done.result())
    found += check_inspector() or []
    found += check_shutdown("alone")
    found += check_shutdown("that-ignores-eof", "sh", "-c", '"$@"; sleep 60', "-")
    check_public(found if mode == "soak" else found[::4])
    return taplines.done()


if __name__ == "__main__":
    sys.exit(main())
