#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real clients over HTTP, with `assay mcp-proxy --listen` between them and a server, and without.

    mcp_http.py PLACE WORK quick|soak      as mcp.py

A bridge is one client or several, the transport that they speak, a server, and the transport
that it speaks. What each client is told must be what it is told when it speaks with the server
directly, in the server's transport; every tools/call on the wire must have its receipt, which
says what the wire behind us says of its answer, the packs must verify, and nobody may be left.
Speaks TAP.
"""
import concurrent.futures
import glob
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import mcp
import taplines
from mcp import MODERN, assay, here, read, work
from taplines import ok

HURRY = 60  # s
EVERY = ("stdio", "streamable-http", "sse")
PATHS = {"streamable-http": "/mcp", "sse": "/sse"}
WORDS = {"streamable-http": "streamableHttp", "sse": "sse"}  # of server-everything
SHARED = ("toggle-", "resources/updated")  # one server's switches: not for two at once

V1, V2, AUTO = ("ts-v1", "legacy"), ("ts-v2", "legacy"), ("ts-v2", "auto")
PINNED, PY, PYAUTO = ("ts-v2", MODERN), ("python", "legacy"), ("python", "auto")
PYPINNED = ("python", MODERN)

# Several clients of a bridge say that they can do the same: a server that they share knows of one.
# clients, their transport, the server, its transport, and whether they share it
QUICK = [
    ([V1], "streamable-http", "everything", "stdio", False),
    ([PY], "streamable-http", "everything", "streamable-http", False),
    ([AUTO], "streamable-http", "everything", "sse", False),
    ([V2], "sse", "everything", "stdio", False),
    ([V1], "sse", "everything", "streamable-http", False),
    ([PY], "sse", "everything", "sse", False),
    ([V1, V2], "streamable-http", "everything", "stdio", True),
    ([PY, PY], "streamable-http", "everything", "stdio", False),
    ([AUTO], "streamable-http", "ts-v2", "streamable-http", False),
    ([PINNED], "streamable-http", "ts-v2", "stdio", False),
    ([PYAUTO], "streamable-http", "ts-v2", "streamable-http", False),
]
SOAK = [([c], f, "everything", b, False) for f in PATHS for b in EVERY
        for c in (V1, V2, AUTO, PY, PYAUTO)]
SOAK += [([c], "streamable-http", s, b, False) for s in ("ts-v2", "python")
         for b in ("stdio", "streamable-http") for c in (V1, AUTO, PINNED, PYAUTO, PYPINNED)]
SOAK += [([V1], f, "python", b, False) for f in PATHS for b in EVERY]
SOAK += [(c, "streamable-http", "everything", "stdio", s)
         for c in ([V1, V2], [V2, AUTO], [PY, PY]) for s in (True, False)]
SOAK += [([PINNED, PYPINNED], "streamable-http", s, b, h) for s in ("ts-v2", "python")
         for b, h in (("stdio", True), ("stdio", False), ("streamable-http", False))]
INSPECTOR = [(f, b) for f in PATHS for b in EVERY]


class Wire:
    """Passes on what comes to a port of ours, and keeps what both sides say."""

    def __init__(self, port):
        self.to, self.said, self.heard = port, [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                ours = self.listener.accept()[0]
                theirs = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.said.append(bytearray())
            self.heard.append(bytearray())
            for a, b, kept in ((ours, theirs, self.said[-1]), (theirs, ours, self.heard[-1])):
                threading.Thread(target=self.copy, args=(a, b, kept), daemon=True).start()

    @staticmethod
    def copy(source, to, kept):
        try:
            while data := source.recv(65536):
                kept += data
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:  # gone without a word: so are we
            for s in (source, to):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def messages(self):
        """What the client says, one a line."""
        found = []
        for data in self.said:
            while data:
                head, _, data = bytes(data).partition(b"\r\n\r\n")
                fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
                size = int(fields.get(b"content-length", 0))
                assert b"transfer-encoding" not in fields
                found, data = found + [data[:size]], data[size:]
        return [m for m in found if m]

    def answers(self):
        """What the server says: lines, those of events without their name."""
        return [line.removeprefix(b"data:").strip() for data in self.heard
                for body in bodies(bytes(data)) for line in body.splitlines()]


class Replay(io.BytesIO):
    """A connection that was, for http.client, which closes after each response."""

    def makefile(self, *_):
        return self

    def close(self):
        pass


def bodies(data):
    """Of the responses of one connection; the last one may be cut off."""
    found, stream = [], Replay(data)
    while stream.tell() < len(data):
        response = http.client.HTTPResponse(stream)
        try:
            response.begin()
            found.append(response.read())
        except http.client.IncompleteRead as cut:
            found.append(cut.partial)
        except http.client.HTTPException:
            break
    return found


class Server:
    """One for all bridges to it."""

    def __init__(self, name, transport):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = "http://127.0.0.1:%d%s" % (self.port, PATHS[transport])
        env = dict(os.environ, PORT=str(self.port), TRANSPORT=transport,
                   NODE_OPTIONS="--require %s/loopback.cjs" % here)
        words = [WORDS[transport] if w == "stdio" else w for w in mcp.SERVERS[name]]
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        self.process.kill()
        self.process.wait()


class Proxy:
    """`assay mcp-proxy --listen`, with a wire before it."""

    def __init__(self, place, env, *words):
        self.audit, self.heard = place + "/audit", place + "/heard"
        with open(self.heard, "wb") as f:
            self.process = subprocess.Popen(
                [assay, "mcp-proxy", "--json", "--audit-dir", self.audit, "--listen", "127.0.0.1:0", *words],
                env=env, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f)
        try:
            self.wire = Wire(self.find_port())
        except Exception:
            self.process.kill()
            raise

    def find_port(self):
        end = time.monotonic() + HURRY
        while not (found := re.search(rb'"url":"http://127.0.0.1:(\d+)/', read(self.heard))):
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("it does not listen: %s" % read(self.heard))
            time.sleep(0.02)
        return int(found[1])

    def end(self):
        """How it ended."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(HURRY)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.wire.listener.close()
        return self.process.returncode


class Client:
    """One of a bridge's, with a directory of its own."""

    def __init__(self, where, client, how, server, shared=False):
        self.dir, self.name = where, "%s (%s)" % (client, how)
        os.makedirs(where)
        with open("%s/%s.json" % (here, mcp.PLANS.get(server, "small"))) as f:
            steps = [s for s in json.load(f) if not (shared and any(w in str(s) for w in SHARED))]
        if client != "python":  # which takes no event of 1 MiB
            steps.insert(-1, ["call", "echo", {"message": {"repeat": ["0123456789abcdef", 70000]}}])
        self.cancels = sum(s[0] == "cancel" for s in steps)
        with open(where + "/plan.json", "w") as f:
            json.dump(steps, f)
        self.command = mcp.client_command(client, how, where + "/plan.json")

    def ask(self, target, env):
        done = subprocess.run([*self.command, target], env=env, timeout=2 * HURRY, cwd=os.path.dirname(self.dir),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.answers = mcp.masked(done.stdout.replace(os.path.dirname(self.dir).encode(), b"<dir>"))
        self.done = done
        return self


class Bridge:
    number = 0

    def __init__(self, clients, front, server, back, share):
        Bridge.number += 1
        names = " and ".join("%s (%s)" % c for c in clients)
        self.name = "%s, %s to %s over %s%s" % (names, front, server, back, ", shared" * share)
        self.dir = "%s/bridge-%d" % (work, Bridge.number)
        self.front, self.server, self.back, self.share = front, server, back, share
        self.is_modern = all(c[1] == MODERN for c in clients)
        self.is_legacy = all(c[1] == "legacy" for c in clients)
        self.env = dict(os.environ, HOME=self.dir, PLAN_ROOT="")
        self.direct = [Client("%s/direct-%d" % (self.dir, i), *c, server, len(clients) > 1)
                       for i, c in enumerate(clients)]
        self.bridged = [Client("%s/bridged-%d" % (self.dir, i), *c, server, len(clients) > 1)
                        for i, c in enumerate(clients)]

    def target(self, servers):
        if self.back != "stdio":
            return servers[self.server, self.back].url
        return mcp.script(self.dir + "/server", mcp.SERVERS[self.server])

    def tapped(self, servers):
        """The same server for the proxy, with a tap or a wire in between."""
        if self.back == "stdio":
            tap = [sys.executable, here + "/tap.py", self.dir + "/behind"]
            return ["--", mcp.script(self.dir + "/tapped", [*tap, *mcp.SERVERS[self.server]])]
        server = servers[self.server, self.back]
        self.behind = Wire(server.port)
        return ["--upstream-url", server.url.replace(":%d/" % server.port, ":%d/" % self.behind.port)]

    def messages_behind(self):
        """What the server was told, and what it said."""
        if self.back == "stdio":
            ways = [[m for p in glob.glob("%s/behind.*.%s" % (self.dir, way)) for m in read(p).splitlines()]
                    for way in ("in", "out")]
        else:
            ways = self.behind.messages(), self.behind.answers()
        return [[json.loads(m) for m in way if m.startswith(b"{")] for way in ways]

    def run(self, servers):
        target = self.target(servers)
        for client in self.direct:
            client.ask(target, self.env)
        proxy = self.proxy = Proxy(self.dir, self.env, *["--share-child"] * self.share, *self.tapped(servers))
        url = "http://127.0.0.1:%d%s" % (proxy.wire.port, PATHS[self.front])
        try:
            with concurrent.futures.ThreadPoolExecutor(len(self.bridged)) as pool:
                list(pool.map(lambda c: c.ask(url, self.env), self.bridged))
        finally:
            self.code = proxy.end()
            if self.back != "stdio":
                self.behind.listener.close()
        self.left = mcp.processes(self.dir)
        return self


def check_answers(bridge):
    for a, b in zip(bridge.direct, bridge.bridged):
        if bridge.share:  # whom the server asks, nobody can know
            a.answers, b.answers = (c.answers.rpartition(b'["asked",')[0] for c in (a, b))
        ok(a.done.returncode == 0 == b.done.returncode, "%s: both runs of %s end well" % (bridge.name, a.name),
           (a.done.stderr + b.done.stderr).decode() + read(bridge.proxy.heard).decode())
        ok(len(a.answers.splitlines()) > 10 and a.answers == b.answers,
           "%s: %s gets the same answers" % (bridge.name, a.name), mcp.difference(a.answers, b.answers))


def check_bridge(bridge):
    check_answers(bridge)
    audit = bridge.proxy.audit
    wire = mcp.calls_on([m + b"\n" for m in bridge.proxy.wire.messages()])
    got = mcp.collections.Counter(r["tool_name"] for r in mcp.receipts(audit) if "tool_name" in r)
    ok(wire == got and sum(wire.values()) > 10,
       "%s: one receipt per call (%d)" % (bridge.name, sum(wire.values())), "%s\n%s" % (wire, got))
    said = {r["server_transport"] for r in mcp.receipts(audit)}
    ok(said == {bridge.back}, bridge.name + ": the transport in receipts", said)
    ok(not bridge.left, bridge.name + ": nobody is left", bridge.left)
    # What comes without a session is grouped by who sends it: here all are one.
    return check_packs(bridge, 1 if bridge.is_modern else len(bridge.bridged))


def check_cancelled(bridge, cancels):
    """How many calls of one client the server did not answer, from the wire. Some answer what was cancelled:
    at once, with an error, or when it is done, for which the plan waits."""
    told, said = bridge.messages_behind()
    answered = {m["id"] for m in said if "id" in m and "method" not in m}
    asked = [str(m["id"]) for m in told if m.get("method") == "tools/call" and m["id"] not in answered]
    lost = [r["mcp_request_id"] for r in mcp.receipts(bridge.proxy.audit) if r.get("outcome") == "timeout"]
    if bridge.is_legacy:  # later, ids may be ours behind us, and to close a stream is to cancel
        ok(asked == list(map(str, lost)), bridge.name + ": lost is what the server did not answer", (asked, lost))
        heard = sum(m.get("method") == "notifications/cancelled" for m in told)
        ok(heard == cancels, "%s: the server is told what is cancelled (%d)" % (bridge.name, cancels), heard)
    return len(asked)


def check_packs(bridge, expected):
    cancels = lost = sum(c.cancels for c in bridge.bridged)
    reasons = [r.get("outcome_reason") for r in mcp.receipts(bridge.proxy.audit)]
    ok(reasons.count("cancelled") == cancels, bridge.name + ": the receipts say what was cancelled", reasons)
    if len(bridge.bridged) == 1:  # the ids of several are no one's
        lost = check_cancelled(bridge, cancels)
    ok(bridge.code in (0, 2), "%s: it ends by itself" % bridge.name, "%s\n%s" % (bridge.code, read(bridge.proxy.heard)))
    return mcp.check_packs(bridge.name, bridge.proxy.audit, lost, expected)


def inspect(place, env, target, front, *words):
    """A target of one word is a command or a URL."""
    how = ["--transport", {"sse": "sse"}.get(front, "http")] if front else []
    return subprocess.run(["node", mcp.inspector, "--cli", target, *how, *words], env=env, timeout=HURRY,
                          cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run_inspector(number, front, back, servers):
    place = "%s/inspector-%d" % (work, number)
    os.makedirs(place)
    env = dict(os.environ, HOME=place)
    target = (servers["everything", back].url if back != "stdio"
              else mcp.script(place + "/server", mcp.SERVERS["everything"]))
    proxy = Proxy(place, env, *(["--", target] if back == "stdio" else ["--upstream-url", target]))
    url = "http://127.0.0.1:%d%s" % (proxy.wire.port, PATHS[front])
    answers = []
    try:
        for words in (["--method", "tools/list"],
                      ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hällo 🦆"]):
            answers.append((inspect(place, env, target, back if back != "stdio" else None, *words),
                            inspect(place, env, url, front, *words)))
    finally:
        proxy.end()
    return "the Inspector, %s to %s" % (front, back), proxy, answers, mcp.processes(place)


def check_inspector(name, proxy, answers, left):
    for direct, bridged in answers:
        ok(direct.returncode == 0 == bridged.returncode and direct.stdout == bridged.stdout != b"",
           name + ": the same answers",
           (direct.stderr + bridged.stderr).decode() + mcp.difference(direct.stdout, bridged.stdout))
    ok(not left, name + ": nobody is left", left)
    return mcp.check_packs(name, proxy.audit)


def main():
    rows = [Bridge(*r) for r in (SOAK if mcp.mode == "soak" else QUICK)]
    pairs = INSPECTOR if mcp.mode == "soak" else [("streamable-http", "stdio"), ("sse", "sse")]
    needed = {(r.server, r.back) for r in rows} | {("everything", b) for _, b in pairs}
    servers = {n: Server(*n) for n in needed if n[1] != "stdio"}
    found = []
    try:
        for server in servers.values():
            mcp.wait_for(server.port)
        # A client that probes waits 10 s for its server, which a full machine may not give it.
        with concurrent.futures.ThreadPoolExecutor(2 if mcp.mode == "soak" else 3) as pool:
            jobs = [pool.submit(r.run, servers) for r in rows]
            inspections = [pool.submit(run_inspector, i, *p, servers) for i, p in enumerate(pairs)]
            for job in jobs:
                found += check_bridge(job.result())
            for job in inspections:
                found += check_inspector(*job.result())
    finally:
        for server in servers.values():
            server.end()
    mcp.check_public(found if mcp.mode == "soak" else found[::4])
    return taplines.done()


if __name__ == "__main__":
    raise SystemExit(main())
