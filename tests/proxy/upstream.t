#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stdio client in front of a server over HTTP: assay mcp-proxy --upstream-url.

    upstream.t - [quick [CASE]]    a CASE runs only those whose names begin so

The server is a few lines of sockets (web.py), because what it does no library would
do. Afterwards every log and every pack verifies.
"""
import glob
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import lab
from lab import ASSAY, HURRY, MEMORY, SANITIZED, WORK, memory, run_cases, tap
from web import Server, begin, certificate, chunk, event, plain, reply, result, soon, stream

ok, same = tap.ok, tap.same


# --- the client ---


def line(number, method, **params):
    m = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    if number is None:
        del m["id"]
    return (json.dumps(m) + "\n").encode()


def call(number, tool="t", **arguments):
    return line(number, "tools/call", name=tool, arguments=arguments)


OPEN = line(0, "initialize", protocolVersion="2025-06-18", capabilities={},
            clientInfo={"name": "c", "version": "1"}) + line(None, "notifications/initialized")


class Case(lab.Case):
    """With a URL where others have the mode of a server."""

    def command(self, url, *flags, argument=None):
        return [ASSAY, "mcp-proxy", "--audit-dir", self.dir, *flags, "--upstream-url", url]

    def wait_until_ready(self, p):
        pass  # the server is there

    def run(self, data, url, *flags, env=None):
        """Returns status, answers, what was said."""
        status, out, err = super().run(data, url, *flags, env=env)
        return status, [json.loads(l) for l in out.splitlines()], err.decode()

    def of(self, kind):
        return [e for e in self.events() if e["type"] == kind]


def read_line(p):
    """One message of the proxy, or None."""
    data = b""
    while not data.endswith(b"\n"):
        more = p.stdout.read(1)
        if not more:
            return None
        data += more
    return json.loads(data)


def lost(answers, number):
    """The error that a lost request is answered with."""
    found = [a for a in answers if a.get("id") == number]
    return found[0].get("error") if len(found) == 1 else found


# --- the cases ---


def case_plain(c):
    server = Server(plain)
    status, out, err = c.run(OPEN + call(1) + call(2), server.url(),
                             "--header", "Authorization=Bearer s3cret", "--header", "X-A= b ")
    same(status, 0, "an ordinary session: exit")
    same(sorted(a["id"] for a in out), [0, 1, 2], "every request is answered")
    first, second = server.seen[0], server.seen[1]
    same(first.headers.get("accept"), "application/json, text/event-stream", "Accept")
    same(first.headers.get("content-type"), "application/json", "Content-Type")
    same(first.headers.get("accept-encoding"), "identity", "Accept-Encoding")
    same(first.headers.get("host"), f"127.0.0.1:{server.port}", "Host")
    same((first.headers.get("authorization"), first.headers.get("x-a")),
         ("Bearer s3cret", "b"), "--header")
    same((first.headers.get("mcp-session-id"), first.headers.get("mcp-protocol-version")),
         (None, None), "initialize has no session and no version")
    same((second.headers.get("mcp-session-id"), second.headers.get("mcp-protocol-version")),
         ("s1", "2025-06-18"), "what follows has both")
    ok(not first.body.endswith(b"\n"), "a body has no line end")
    same([r.method for r in server.seen[:2]], ["POST", "POST"], "initialized follows")
    ok("GET" in [r.method for r in server.seen], "a stream is asked for; 405 is fine")
    same([r.headers.get("mcp-session-id") for r in server.seen if r.method == "DELETE"],
         ["s1"], "the session is deleted")
    ok(server.connections <= 3, "connections are used again", server.connections)
    start = c.of("session_start")[0]
    same((start["transport"], start["client_transport"], start["server_id"]),
         ("streamable-http", "stdio", f"127.0.0.1:{server.port}"), "session_start")
    same([r["server_transport"] for r in c.receipts()], ["streamable-http"] * 2, "receipts")
    everything = b"".join(open(p, "rb").read() for p in glob.glob(c.dir + "/**", recursive=True)
                          if os.path.isfile(p))
    ok(b"s3cret" not in everything and "s3cret" not in err, "no header in the evidence")
    c.judge()


def case_pretty(c):
    def handle(server, request, s):
        begin(server, request, s) or reply(
            s, json.dumps(result(request, {"content": [], "n": 12345678901234567890}),
                          indent=2).replace("\n", "\r\n").encode(),
            "200 OK", "Application/JSON; charset=utf-8")
    status, out, _ = c.run(OPEN + call(1), Server(handle).url())
    same((status, out[-1]["result"]["n"]), (0, 12345678901234567890),
         "a text of many lines is one line")
    c.judge()


def case_stream(c):
    slow = threading.Event()

    def handle(server, request, s):
        if begin(server, request, s):
            return
        stream(s)
        chunk(s, ": hello\n\n")
        chunk(s, "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":"
                 "\"notifications/progress\",\"params\":{}}\r\n\r\n")
        slow.wait(HURRY)
        chunk(s, "event: other\ndata: nothing of ours\n\n")
        event(s, result(request))
        chunk(s, "")
    p = c.start(Server(handle).url())
    p.stdin.write(OPEN + call(1))
    same(read_line(p)["id"], 0, "opened")
    same(read_line(p)["method"], "notifications/progress", "an event comes before the answer")
    slow.set()
    same(read_line(p)["id"], 1, "then the answer")
    p.stdin.close()
    same(p.wait(HURRY), 0, "stream: exit")
    c.judge()


def case_beside_stream(c):
    """A request does not wait behind an open stream."""
    go = threading.Event()

    def handle(server, request, s):
        if begin(server, request, s):
            return
        if request.message["params"]["name"] == "slow":
            stream(s)
            go.wait(HURRY)
            event(s, result(request))
            chunk(s, "")
        else:
            reply(s, result(request))
    p = c.start(Server(handle).url())
    p.stdin.write(OPEN + call(1, "slow") + call(2))
    same([read_line(p)["id"], read_line(p)["id"]], [0, 2], "the second is answered first")
    go.set()
    same(read_line(p)["id"], 1, "the first later")
    p.stdin.close()
    same(p.wait(HURRY), 0, "beside a stream: exit")
    c.judge()


def case_server_speaks(c):
    """Requests of the server on the stream that we ask for; the answer is POSTed."""
    answered = threading.Event()

    def handle(server, request, s):
        if request.method == "GET":
            stream(s)
            event(s, {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}, id="e1")
            answered.wait(HURRY)
            return False
        if request.method == "POST" and request.message.get("id") == "q":
            reply(s, b"", "202 Accepted")
            answered.set()
            return
        plain(server, request, s)
    server = Server(handle)
    p = c.start(server.url())
    p.stdin.write(OPEN)
    got = [read_line(p), read_line(p)]
    same(got[1].get("method"), "roots/list", "the server asks by itself")
    p.stdin.write(b'{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}\n')
    ok(answered.wait(10), "and is answered")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not any(
            r.headers.get("last-event-id") == "e1" for r in server.seen):
        time.sleep(0.05)
    ok(any(r.headers.get("last-event-id") == "e1" for r in server.seen),
       "a stream that ends is asked for again, from where it was")
    p.stdin.close()
    same(p.wait(HURRY), 0, "server speaks: exit")
    c.judge(packs=0)


def case_resumed(c):
    """The stream of an answer breaks; it goes on with Last-Event-ID."""
    def handle(server, request, s):
        if request.method == "GET" and request.headers.get("last-event-id") == "e7":
            stream(s)
            event(s, {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}, id="e8")
            time.sleep(1)
            return False
        if begin(server, request, s):
            return
        stream(s)
        chunk(s, "id: e7\nretry: 100\ndata:\n\n")
        return False
    status, out, err = c.run(OPEN + call(1), Server(handle).url())
    same((status, [a["id"] for a in out]), (0, [0, 1]), "a broken stream goes on")
    c.judge()


def case_cut(c):
    """…or cannot: the client is told, and there is a receipt."""
    def handle(server, request, s):
        if begin(server, request, s):
            return
        stream(s)
        chunk(s, 'data: {"jsonrpc"')
        return False
    status, out, err = c.run(OPEN + call(1), Server(handle).url())
    e = lost(out, 1)
    same(e and e["code"], -31006, "a cut stream: server lost")
    same((e["data"]["source"], e["data"]["reason_codes"]), ("assay", ["server_lost"]), "data")
    same([(r["outcome"], r["outcome_reason"], r["receipt_id"]) for r in c.receipts()],
         [("timeout", "server_exit", e["data"]["receipt_id"])], "and its receipt")
    same(status, 2, "the session is not complete")
    c.judge()


def case_resumes_are_bounded(c):
    def handle(server, request, s):
        if request.method == "GET" and "last-event-id" in request.headers:
            return False
        if begin(server, request, s):
            return
        stream(s)
        chunk(s, "id: e7\nretry: 10\ndata:\n\n")
        return False
    server = Server(handle)
    status, out, err = c.run(OPEN + call(1), server.url())
    same(lost(out, 1)["code"], -31006, "a stream that is gone for ever: server lost")
    same(sum("last-event-id" in r.headers for r in server.seen), 5, "after five attempts")
    c.judge()


def case_cut_long(c):
    """A long message has begun when the server goes: nothing can be made good."""
    def handle(server, request, s):
        if begin(server, request, s):
            return
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  b"Content-Length: 1000000\r\n\r\n" + b'{"a":"' + b"x" * 300000)
        return False
    p = c.start(Server(handle).url())
    out, err = p.communicate(OPEN + call(1), timeout=HURRY)
    same(p.returncode, 2, "cut in a long message: not complete")
    ok(b"in its answer" in err, "and says why", err)
    same([e["reason"] for e in c.of("message_cut")], ["server_lost"], "message_cut")
    c.judge()


def refused(c, what, handle, *words, code=-31006):
    case = Case(f"{c.name}_{what}")
    status, out, err = case.run(OPEN + call(1) + call(2), Server(handle).url())
    e = lost(out, 1)
    ok(isinstance(e, dict) and e["code"] == code and all(w in e["message"] for w in words),
       f"{what}: the client is told", out, err)
    same(sorted(a["id"] for a in out if a.get("id") is not None), [0, 1, 2],
         f"{what}: each once")
    same(len(case.receipts()), 2, f"{what}: receipts")
    case.judge()
    return status


def case_refusals(c):
    def with_reply(*args):
        return lambda server, request, s: begin(server, request, s) or reply(s, *args)
    refused(c, "status_404", with_reply(b"nothing", "404 Not Found", "text/plain"), "404")
    refused(c, "status_401", with_reply(b"", "401 Unauthorized", "", "WWW-Authenticate: Bearer "
            'resource_metadata="https://as/x"'), "401", "resource_metadata")
    refused(c, "no_answer", with_reply(b"", "202 Accepted"), "without a result")
    refused(c, "html", with_reply(b"<p>", "200 OK", "text/html"), "neither JSON")
    refused(c, "gzip", with_reply(b"\x1f\x8b", "200 OK", "application/json",
                                  "Content-Encoding: gzip"), "compressed")
    refused(c, "redirect", with_reply(b"", "307 Temporary Redirect", "",
                                      "Location: http://other.example/"), "redirect")
    for status in "301 Moved", "302 Found", "303 See Other", "300 Many", "307 Temporary Redirect":
        refused(c, "redirect_" + status[:3], with_reply(
            b"", status, "", "Location: /mcp" if status[:3] != "307" else "X: y"),
            f"status {status[:3]}", "redirects")
    refused(c, "redirect_to_https", with_reply(b"", "308 Permanent Redirect", "",
                                               "Location: https://127.0.0.1/"), "redirects")
    refused(c, "smuggling", lambda server, request, s: begin(server, request, s) or s.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"),
        "no HTTP")
    refused(c, "other_id", with_reply({"jsonrpc": "2.0", "id": None, "error": {
        "code": -32001, "message": "Session not found"}}, "404 Not Found"), "404")
    refused(c, "closes", lambda server, request, s: begin(server, request, s) or False,
            "closed the connection")


def case_redirects(c):
    """Within the origin, once, with the same body."""
    def handle(server, request, s):
        if request.target == "/mcp":
            to = f"http://127.0.0.1:{server.port}/mcp/" if request.message and request.message.get(
                "id") == 1 else "mcp/"
            reply(s, b"", "307 Temporary Redirect", "", "Location: " + to)
        elif request.target == "/mcp/":
            if request.message and request.message.get("id") == 1:  # the end is to find it
                soon(lambda: "GET" in {r.method for r in server.seen if r.target == "/mcp/"})
            plain(server, request, s)
        else:
            reply(s, b"", "404 Not Found")
    server = Server(handle)
    status, out, err = c.run(OPEN + call(1, x="y" * 100000), server.url())
    same((status, sorted(a["id"] for a in out)), (0, [0, 1]), "redirects within the origin")
    same({r.method for r in server.seen if r.target == "/mcp/"}, {"POST", "GET", "DELETE"},
         "for all that is sent")
    same(len({r.body for r in server.seen if r.body and r.message.get("id") == 1}), 1,
         "the body is the same")
    c.judge()

    def around(server, request, s):
        reply(s, b"", "308 Permanent Redirect", "", "Location: /mcp")
    server = Server(around)
    status, out, err = Case("redirects_around").run(OPEN, server.url())
    ok("308" in lost(out, 0)["message"] and "once" in lost(out, 0)["message"], "not in circles", out)
    same(len([r for r in server.seen if r.message.get("id") == 0]), 2, "but once")

    old = Old()
    inner = old.server.handle
    old.server.handle = lambda server, request, s: (
        reply(s, b"", "307 Temporary Redirect", "", "Location: /mcp/deep/") if
        request.target == "/mcp" else inner(server, request, s))
    old.endpoint = "../../message?s=1"
    status, out, err = Case("redirects_old").run(OPEN + call(1), old.url())
    same((status, len(out)), (0, 2), "an older server behind a redirect")


def case_refusal_with_body(c):
    """A refusal that is an answer is passed on as it is."""
    def handle(server, request, s):
        begin(server, request, s) or reply(
            s, {"jsonrpc": "2.0", "id": request.message["id"],
                "error": {"code": -32022, "message": "no such version"}}, "400 Bad Request")
    status, out, _ = c.run(OPEN + call(1), Server(handle).url())
    same((status, lost(out, 1)), (0, {"code": -32022, "message": "no such version"}),
         "the error of the server itself")
    c.judge()


def case_nobody(c):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    status, out, err = c.run(OPEN + call(1), f"http://127.0.0.1:{s.getsockname()[1]}/")
    same(lost(out, 0)["code"], -31006, "nobody listens: initialize is answered")
    ok("cannot connect" in lost(out, 1)["message"], "and the call, with the reason", out)
    same([r["outcome"] for r in c.receipts()], ["timeout"], "and receipted")
    c.judge()


def case_no_such_host(c):
    status, out, err = c.run(OPEN, "http://no-such-host.invalid/mcp")
    ok("no address" in lost(out, 0)["message"], "a name without an address", out)
    c.judge(packs=0)


def case_ipv6(c):
    try:
        server = Server(plain, family=socket.AF_INET6)
    except OSError as e:
        tap.skip("IPv6", f"there is none here: {e}")
        return
    status, out, _ = c.run(OPEN + call(1), server.url("[::1]"))
    same((status, len(out)), (0, 2), "IPv6")
    same(server.seen[0].headers["host"], f"[::1]:{server.port}", "its Host")
    status, out, _ = c.run(OPEN + call(1), Server(plain).url("localhost"))
    same((status, len(out)), (0, 2), "a name, and an address that refuses")
    c.judge(packs=2)


def case_until_close(c):
    def handle(server, request, s):
        if begin(server, request, s):
            return
        s.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
                  + json.dumps(result(request)).encode())
        return False
    status, out, _ = c.run(OPEN + call(1) + call(2), Server(handle).url())
    same((status, len(out)), (0, 3), "HTTP/1.0, the body ends with the connection")
    c.judge()


def case_interim(c):
    def handle(server, request, s):
        if begin(server, request, s):
            return
        s.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n")
        for byte in (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n"):
            s.sendall(bytes([byte]))
        for byte in json.dumps(result(request)).encode():
            s.sendall(b"1;ext=1\r\n%c\r\n" % byte)
        s.sendall(b"0\r\nX-T: y\r\n\r\n")
    status, out, _ = c.run(OPEN + call(1) + call(2), Server(handle).url())
    same((status, len(out)), (0, 3), "interim heads, byte by byte, trailers")
    c.judge()


def case_idle_closed(c):
    """A server that closes idle connections: calls are not sent twice."""
    def handle(server, request, s):
        plain(server, request, s)
        return False  # without saying so
    server = Server(handle)
    p = c.start(server.url())
    p.stdin.write(OPEN)
    read_line(p)
    for n in range(1, 6):
        time.sleep(0.05)
        p.stdin.write(call(n))
        read_line(p)
    p.stdin.close()
    same(p.wait(HURRY), 0, "idle connections that close: exit")
    calls = [r.message["id"] for r in server.seen if r.body and
             r.message.get("method") == "tools/call"]
    same(calls, [1, 2, 3, 4, 5], "every call is sent once")
    c.judge()


def case_large(c):
    size = 200 << 20 if not SANITIZED else 20 << 20

    def handle(server, request, s):
        if begin(server, request, s):
            return
        head, tail = json.dumps(result(request, {"t": "|"})).encode().split(b"|")
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                  b"%d\r\n\r\n" % (len(head) + size + len(tail)) + head)
        block = b"x" * (1 << 20)
        for _ in range(size >> 20):
            s.sendall(block)
        s.sendall(tail)
    p = c.start(Server(handle).url())
    p.stdin.write(OPEN + call(1) + call(2))
    read_line(p)
    most = got = lines = 0
    while lines < 2 and (data := p.stdout.read(1 << 20)):
        got += len(data)
        lines += data.count(b"\n")
        most = max(most, memory(p.pid))
    ok(lines == 2 and got > 2 * size, "two long answers at once, one after the other", got)
    ok(SANITIZED or most < MEMORY, "in little memory", most)
    p.stdin.close()
    same(p.wait(HURRY), 0, "large: exit")
    c.judge()


def case_too_large(c):
    """A message over the limit: cut once, while the server still sends."""
    def handle(server, request, s):
        if begin(server, request, s):
            return
        stream(s)
        chunk(s, "data: ")
        for _ in range(200):
            chunk(s, "x" * 65536)
            time.sleep(0.02)
    p = c.start(Server(handle).url(), "--max-message-bytes", "1000000")
    p.communicate(OPEN + call(1), timeout=HURRY)
    same(p.returncode, 2, "a message that is too large: not complete")
    same([e["reason"] for e in c.of("message_cut")], ["too_large"], "cut once")
    c.judge()


def case_stalled_reader(c):
    """A client that does not read stops the server."""
    sent = [0]

    def handle(server, request, s):
        if begin(server, request, s):
            return
        stream(s)
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"d": "x" * 4000}}
        for _ in range(8000):
            event(s, note)
            sent[0] += 1
        event(s, result(request))
        chunk(s, "")
    p = c.start(Server(handle).url())
    p.stdin.write(OPEN + call(1))
    time.sleep(1.5)
    first = sent[0]
    time.sleep(0.5)
    ok(first == sent[0] and first < 8000, "the server waits", first, sent[0])
    ok(SANITIZED or memory(p.pid) < MEMORY, "in little memory", memory(p.pid))
    lines, out = 0, io.BufferedReader(p.stdout)
    while json.loads(out.readline()).get("id") != 1:
        lines += 1
    same(lines, 8001, "then all of it comes")
    p.stdin.close()
    same(p.wait(HURRY), 0, "stalled reader: exit")
    c.judge()


def case_big_request(c):
    server = Server(plain)
    text = "y" * (3 << 20)
    status, out, _ = c.run(OPEN + call(1, t=text), server.url())
    same((status, len(out)), (0, 2), "a request of three MiB")
    same([len(r.message["params"]["arguments"]["t"]) for r in server.seen
          if r.body and r.message.get("method") == "tools/call"], [3 << 20], "arrives whole")
    c.judge()


def case_stateless(c):
    """MCP 2026-07-28: headers repeat the body; to close is to cancel."""
    gone = threading.Event()

    def handle(server, request, s):
        if request.message["params"].get("name") == "slow":
            stream(s)
            s.settimeout(HURRY)
            try:
                if s.recv(1) == b"":
                    gone.set()
            except OSError:
                gone.set()
            return False
        reply(s, result(request), "200 OK", "application/json", "Mcp-Session-Id: no")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}
    server = Server(handle)
    p = c.start(server.url())
    p.stdin.write(line(1, "server/discover", _meta=meta)
                  + line(2, "tools/call", name="größe", _meta=meta, arguments={})
                  + line(3, "resources/read", uri="file:///a b", _meta=meta)
                  + line("l", "tools/call", name="slow", _meta=meta, arguments={}))
    same(sorted(read_line(p)["id"] for _ in range(3)), [1, 2, 3], "stateless: answers")
    p.stdin.write(line(None, "notifications/cancelled", requestId="l"))
    ok(gone.wait(10), "a cancelled request is closed")
    p.stdin.close()
    p.wait(HURRY)
    head = {r.message["id"]: r.headers for r in server.seen if r.body}
    same([(head[n].get("mcp-method"), head[n].get("mcp-name")) for n in (1, 2, 3)],
         [("server/discover", None), ("tools/call", "=?base64?Z3LDtsOfZQ==?="),
          ("resources/read", "file:///a b")], "Mcp-Method and Mcp-Name")
    same({h.get("mcp-protocol-version") for h in head.values()}, {"2026-07-28"}, "version")
    ok(not any("mcp-session-id" in r.headers or r.method != "POST" for r in server.seen),
       "no session, no stream, nothing to delete")
    c.judge()


def case_mirrored(c):
    """Arguments that a tool marks stand in headers as well; once the list is known."""
    schema = {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "sure": {"type": "boolean", "x-mcp-header": "Sure"},
        "evil": {"type": "string", "x-mcp-header": "A: b\r\nX"}}}

    def handle(server, request, s):
        listed = {"tools": [{"name": "t", "inputSchema": schema}, {"name": "u", "inputSchema": {}}]}
        reply(s, result(request, listed if request.message["method"] == "tools/list" else None))
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}
    server = Server(handle)
    p = c.start(server.url())
    given = {"region": "zürich", "count": 7, "sure": True, "evil": "x"}
    for number, method, params in ((1, "tools/call", {"name": "t", "arguments": given}),
                                   (2, "tools/list", {}),
                                   (3, "tools/call", {"name": "t", "arguments": given}),
                                   (4, "tools/call", {"name": "t", "arguments": {"region": None}}),
                                   (5, "tools/call", {"name": "u", "arguments": given})):
        p.stdin.write(line(number, method, _meta=meta, **params))
        same(read_line(p)["id"], number, f"{method} {number}")
    p.stdin.write(line(6, "initialize", protocolVersion="2025-06-18") + call(7, **given))
    read_line(p), read_line(p)
    p.stdin.close()
    same(p.wait(HURRY), 0, "mirrored: exit")
    head = {r.message["id"]: {k[10:]: v for k, v in r.headers.items() if k.startswith("mcp-param-")}
            for r in server.seen if r.body}
    same(head[3], {"region": "=?base64?esO8cmljaA==?=", "count": "7", "sure": "true"}, "headers")
    same([head[n] for n in (1, 2, 4, 5, 7)], [{}] * 5, "and only there")
    c.judge()


def case_guard(c):
    """The same policy; a relative path means nothing over HTTP."""
    policy = os.path.join(WORK, "policy.yaml")
    with open(policy, "w") as f:
        f.write('version: "1"\ndefault: deny\nallowlist: [ok]\nconstraints:\n  read:\n'
                '    allowed_paths: ["/*"]\n')
    server = Server(plain)
    status, out, _ = c.run(OPEN + call(1, "ok") + call(2, "bad") + call(3, "read", path="x"),
                           server.url(), "--profile", "guard", "--policy", policy)
    same([lost(out, n) and lost(out, n)["code"] for n in (1, 2, 3)], [None, -31001, -31001],
         "allowed, denied, denied")
    same([r.message["id"] for r in server.seen if r.body and
          r.message.get("method") == "tools/call"], [1], "one went on")
    same(status, 1, "violations: exit")
    c.judge()


def case_durable(c):
    for durability in "group", "strict":
        status, out, _ = c.run(OPEN + call(1) + call(2), Server(plain).url(), "--durability",
                               durability)
        same((status, sorted(a["id"] for a in out)), (0, [0, 1, 2]), f"durability {durability}")
    c.judge(packs=2)


def case_call_timeout(c):
    def handle(server, request, s):
        begin(server, request, s) or time.sleep(4)
        return None if request.message is None or request.message.get("id") != 1 else False
    status, out, _ = c.run(OPEN + call(1), Server(handle).url(), "--call-timeout", "1")
    same(lost(out, 1)["code"], -31007, "--call-timeout")
    c.judge()


def case_abandoned(c):
    """Streams that stay open although the client has cancelled: bounded, and no hindrance."""
    def handle(server, request, s):
        if begin(server, request, s):
            return
        if request.message["params"]["name"] == "t":
            reply(s, result(request))
        else:
            stream(s)
            s.recv(1)
            return False
    server = Server(handle)
    p = c.start(server.url())
    p.stdin.write(OPEN)
    read_line(p)
    for n in range(1, 271):
        p.stdin.write(call(n, "slow") + line(None, "notifications/cancelled", requestId=n))
    p.stdin.write(call(999))
    same(read_line(p)["id"], 999, "after 270 streams that nobody ends")
    begun = time.monotonic()
    p.stdin.close()
    same(p.wait(HURRY), 2, "cancelled calls without an answer are lost")
    ok(time.monotonic() - begun < 3, "and not waited for", time.monotonic() - begun)
    same({r["outcome_reason"] for r in c.receipts() if r["outcome"] == "timeout"},
         {"cancelled"}, "as what they are")
    c.judge()


def case_signals(c):
    def handle(server, request, s):
        begin(server, request, s) or time.sleep(HURRY)
    server = Server(handle)
    p = c.start(server.url(), "--shutdown-timeout", "1")
    p.stdin.write(OPEN + call(1))
    read_line(p)
    time.sleep(0.3)
    begun = time.monotonic()
    p.send_signal(signal.SIGTERM)
    same(p.wait(HURRY), 2, "SIGTERM with a call in flight: not complete")
    ok(time.monotonic() - begun < 4, "in time", time.monotonic() - begun)
    ok("DELETE" in [r.method for r in server.seen], "the session is deleted all the same")
    same([r["outcome_reason"] for r in c.receipts()], ["shutdown"], "its receipt")
    c.judge()


def case_hurry(c):
    """SDK clients send SIGTERM two seconds after EOF; a stream must not hold us."""
    def handle(server, request, s):
        if request.method == "GET":
            stream(s)
            time.sleep(HURRY)
        else:
            plain(server, request, s)
    p = c.start(Server(handle).url())
    p.stdin.write(OPEN + call(1))
    read_line(p), read_line(p)
    begun = time.monotonic()
    p.stdin.close()
    same(p.wait(HURRY), 0, "EOF with an open stream")
    ok(time.monotonic() - begun < 1.5, "at once", time.monotonic() - begun)
    c.judge()


# --- servers of the transport before: HTTP+SSE ---


class Old:
    """What such a server does; the hooks of the cases are its members."""

    def __init__(self, endpoint="/message?s=1", before="", post="202 Accepted", refusal=None):
        self.endpoint, self.before, self.post = endpoint, before, post
        self.refusal = refusal or (b"Cannot POST", "404 Not Found", "text/html")
        self.stream, self.lock, self.server = None, threading.Lock(), Server(self.handle)

    def url(self):
        return self.server.url()

    def handle(self, server, request, s):
        if request.method == "GET":
            self.stream = s
            stream(s)
            chunk(s, self.before + f"event: endpoint\ndata: {self.endpoint}\n\n")
            s.recv(1)  # until the client goes
            return False
        if request.target != "/message?s=1":
            reply(s, *self.refusal)
        elif self.post != "202 Accepted" and request.message.get("method") == "tools/call":
            reply(s, b"no", self.post, "text/plain")
        else:
            reply(s, b"Accepted", "202 Accepted", "text/plain")
            with self.lock:
                self.answer(request)

    def answer(self, request):
        if request.message.get("method") == "initialize":
            event(self.stream, result(request, {
                "protocolVersion": "2024-11-05", "capabilities": {},
                "serverInfo": {"name": "old", "version": "1"}}), event="message")
        elif "id" in request.message:
            event(self.stream, result(request), event="message")


def case_old(c):
    old = Old(before=": hello\n\nevent: other\ndata: nothing\n\n")
    status, out, err = c.run(OPEN + call(1) + call(2), old.url())
    same((status, sorted(a["id"] for a in out)), (0, [0, 1, 2]), "an older server: answers")
    ok("older transport" in err, "and it is said", err)
    seen = old.server.seen
    same([(r.method, r.target) for r in seen[:3]],
         [("POST", "/mcp"), ("GET", "/mcp"), ("POST", "/message?s=1")], "asked in this order")
    same([r.message.get("id") for r in seen if r.target != "/mcp"][:2], [0, None],
         "the message that was refused comes again, then the others")
    ok(all(r.target == "/message?s=1" for r in seen[2:]), "everything else goes there",
       [(r.method, r.target) for r in seen])
    same((seen[1].headers.get("accept"), seen[1].headers.get("host")),
         ("text/event-stream", f"127.0.0.1:{old.server.port}"), "the head of the GET")
    same([r.headers.get("mcp-protocol-version") for r in seen[2:4]], [None, "2024-11-05"],
         "the version that was agreed on")
    ok(not any("mcp-session-id" in r.headers or r.method == "DELETE" for r in seen),
       "no session, nothing to delete")
    same([e["transport"] for e in c.of("transport_found")], ["sse"], "the log says it")
    same([r["server_transport"] for r in c.receipts()], ["sse"] * 2, "and the receipts")
    same([m["server_transport"] for m in c.receipts("session_metadata")], ["sse"], "metadata")
    c.judge()


def case_old_refusals(c):
    """Whatever the refusal looks like, as long as it is no message."""
    for n, refusal in enumerate([
            (b"", "405 Method Not Allowed"), (b"x", "400 Bad Request", "text/plain"),
            ({"detail": "Method Not Allowed"}, "405 Method Not Allowed")]):
        case = Case(f"old_refusals_{n}")
        status, out, err = case.run(OPEN + call(1), Old(refusal=refusal).url())
        same((status, len(out)), (0, 2), f"refused with {refusal[1]} and {refusal[0]}")
        case.judge()
    for n, refusal in enumerate([
            (b"", "403 Forbidden"), (b"", "500 Internal Server Error"), (b"", "401 Unauthorized"),
            ({"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "no"}},
             "400 Bad Request")]):
        case, old = Case(f"old_stays_{n}"), Old(refusal=refusal)
        status, out, err = case.run(OPEN.splitlines(True)[0], old.url())
        ok("GET" not in [r.method for r in old.server.seen], f"{refusal[1]} asks no further")
        ok(lost(out, 0)["code"] in (-31006, -32000), "and is told", out)


def case_old_endpoints(c):
    """Where POSTs go: what a reference may be, and that it must be of the same origin."""
    for n, (endpoint, good) in enumerate([
            ("message?s=1", True), ("./message?s=1", True), ("../message?s=1", True),
            ("http://127.0.0.1:PORT/message?s=1", True), ("//127.0.0.1:PORT/message?s=1", True),
            ("http://127.0.0.2:PORT/message?s=1", "another origin"),
            ("https://127.0.0.1:PORT/message?s=1", "another origin"),
            ("//evil.example/message?s=1", "another origin"),
            ("http://127.0.0.1:1/message?s=1", "another origin"),
            ("http://u:p@127.0.0.1:PORT/message?s=1", "user name"),
            ("ftp://127.0.0.1/message", "does not begin"), ("javascript:1", "does not begin"),
            ("/message?s=1\ndata: X: y", "control"), ("/a b", "space"), ("/#x", "fragment"),
            ("/" + "x" * 9000, "too large"), ("", "empty"), ("/%00", "path"),
            ("/a/../b", "path")]):
        case, old = Case(f"old_endpoints_{n}"), Old()
        old.endpoint = endpoint.replace("PORT", str(old.server.port))
        status, out, err = case.run(OPEN + call(1), old.url())
        what = endpoint[:40]
        if good is True:
            same((status, len(out)), (0, 2), f"endpoint {what}")
        else:
            ok(good in lost(out, 0)["message"], f"endpoint {what!r} is refused", out)
            ok("404" in lost(out, 0)["message"], "with the first refusal as well", out)
            same([r.target for r in old.server.seen if r.target != "/mcp"], [], "nothing went there")
        case.judge()


def case_old_never_says(c):
    """Streams that are no such server's."""
    def endless(server, request, s):
        if request.method != "GET":
            reply(s, b"", "404 Not Found")
            return
        stream(s)
        chunk(s, "event: endpoint\ndata: ")
        while True:
            chunk(s, "x" * 1000)

    def without(server, request, s):
        if request.method != "GET":
            reply(s, b"", "405 Method Not Allowed")
            return
        stream(s)
        event(s, {"jsonrpc": "2.0", "method": "notifications/message"})
        chunk(s, "")

    def refusing(server, request, s):
        reply(s, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no"}}
              if request.method == "GET" else b"", "405 Method Not Allowed")

    def silent(server, request, s):
        if request.method != "GET":
            reply(s, b"", "404 Not Found")
            return
        stream(s)
        s.recv(1)
        return False
    for handle, word in ((endless, "too large"), (without, "ended its stream"),
                         (refusing, "status 405"), (silent, "names no endpoint")):
        case = Case(f"old_{handle.__name__}")
        status, out, err = case.run(OPEN + call(1), Server(handle).url())
        ok(word in lost(out, 0)["message"], f"{handle.__name__}: {word}", out, err)
        same(sorted(a["id"] for a in out), [0, 1], "each is told once")
        same([e["type"] for e in case.of("transport_found")], [], "and no transport found")
        case.judge()


def case_old_ends(c):
    """The end of the stream is the end of the session."""
    old = Old()
    old.answer = lambda request: Old.answer(old, request) if request.message.get("id") == 0 else None
    p = c.start(old.url())
    p.stdin.write(OPEN + call(1) + line(2, "tools/list"))
    same(read_line(p)["id"], 0, "opened")
    while sum(r.target != "/mcp" for r in old.server.seen) < 4:
        time.sleep(0.02)
    time.sleep(0.2)
    chunk(old.stream, "")
    old.stream.shutdown(socket.SHUT_RDWR)
    out = [read_line(p), read_line(p)]
    same(sorted((a["id"], a["error"]["code"]) for a in out), [(1, -31006), (2, -31006)],
         "open requests are lost")
    same((read_line(p), p.wait(HURRY)), (None, 2), "and that is the end")
    same([e["reason"] for e in c.of("session_end")], ["server_exit"], "as the log says")
    same([(r["outcome"], r["outcome_reason"]) for r in c.receipts()],
         [("timeout", "server_exit")], "its receipt")
    c.judge()


def case_old_cut_long(c):
    old = Old()

    def answer(request):
        if request.message.get("id") != 1:
            return Old.answer(old, request)
        chunk(old.stream, "data: {\"x\":\"" + "y" * 300000)
        old.stream.shutdown(socket.SHUT_RDWR)
    old.answer = answer
    p = c.start(old.url())
    p.communicate(OPEN + call(1), timeout=HURRY)
    same(p.returncode, 2, "cut in a long message of the stream")
    same([e["reason"] for e in c.of("message_cut")], ["server_lost"], "message_cut")
    c.judge(packs=1)


def case_old_post_refused(c):
    for number in "400 Bad Request", "404 Not Found", "500 Internal Server Error":
        case, old = Case("old_post_" + number[:3]), Old(post=number)
        status, out, err = case.run(OPEN + call(1) + line(2, "ping"), old.url())
        ok(number[:3] in lost(out, 1)["message"], f"a POST that is answered {number[:3]}", out)
        same([(a["id"], "result" in a) for a in out if a["id"] != 1], [(0, True), (2, True)],
             "the others are answered")
        case.judge()


def case_old_both_ways(c):
    """The server asks on its stream, and a cancelled request is not waited for."""
    old = Old()
    answered = threading.Event()

    def answer(request):
        if request.message.get("id") == "q":
            answered.set()
        elif request.message.get("method") == "notifications/initialized":
            event(old.stream, {"jsonrpc": "2.0", "id": "q", "method": "roots/list"},
                  event="message", id="e1")
            chunk(old.stream, "event: endpoint\ndata: /elsewhere\n\n")
        elif request.message.get("method") != "tools/call":
            Old.answer(old, request)
    old.answer = answer
    p = c.start(old.url())
    p.stdin.write(OPEN)
    same([read_line(p).get("id"), read_line(p).get("method")], [0, "roots/list"], "it asks")
    p.stdin.write(b'{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}\n' + call(1)
                  + line(None, "notifications/cancelled", requestId=1))
    ok(answered.wait(10), "and is answered")
    begun = time.monotonic()
    p.stdin.close()
    same(p.wait(HURRY), 2, "a cancelled call without an answer is lost")
    ok(time.monotonic() - begun < 3, "and not waited for", time.monotonic() - begun)
    same([r.target for r in old.server.seen].count("/elsewhere"), 0,
         "a second endpoint changes nothing")
    ok("notifications/cancelled" in [r.message.get("method") for r in old.server.seen if r.body],
       "it was told of the cancelling")
    c.judge()


def case_old_large(c):
    """A stalled reader stops the stream; what is long passes as it comes."""
    old, size = Old(), 20 << 20

    def answer(request):
        if request.message.get("id") in (None, 0):
            return Old.answer(old, request)
        event(old.stream, result(request, {"t": "x" * size}), event="message")
    old.answer = answer
    p = c.start(old.url())
    p.stdin.write(OPEN + call(1) + call(2))
    read_line(p)
    time.sleep(1)
    ok(SANITIZED or memory(p.pid) < MEMORY, "in little memory", memory(p.pid))
    out = io.BufferedReader(p.stdout)
    same([len(json.loads(out.readline())["result"]["t"]) for _ in range(2)], [size] * 2,
         "two long answers on one stream")
    p.stdin.close()
    same(p.wait(HURRY), 0, "old, large: exit")
    c.judge()


def case_tls(c):
    if not shutil.which("openssl"):
        tap.skip("TLS", "openssl is not installed")
        return
    good, context = certificate("good", "IP:127.0.0.1", "DNS:localhost")
    other, wrong = certificate("wrong", "DNS:other.example")
    status, out, err = c.run(OPEN + call(1), Server(plain, tls=context).url(), "--ca", good)
    same((status, len(out)), (0, 2), "https with --ca: an address")
    status, out, err = c.run(OPEN + call(1), Server(plain, tls=context).url("localhost"),
                             "--ca", good)
    same((status, len(out)), (0, 2), "a name")
    server = Server(plain, tls=context)
    status, out, err = c.run(OPEN, server.url())
    ok("certificate" in lost(out, 0)["message"], "self-signed is refused", out)
    same(server.seen, [], "and nothing was sent")
    status, out, err = c.run(OPEN, Server(plain, tls=wrong).url(), "--ca", other)
    ok("certificate" in lost(out, 0)["message"], "so is another's name", out)
    status, out, err = c.run(OPEN, Server(plain).url().replace("http:", "https:"), "--ca", good)
    ok("TLS" in lost(out, 0)["message"], "and a server that speaks no TLS", out)
    c.judge(packs=2)


def case_tls_large(c):
    if not shutil.which("openssl"):
        tap.skip("large messages over TLS", "openssl is not installed")
        return
    good, context = certificate("large", "IP:127.0.0.1")
    size = 8 << 20

    def handle(server, request, s):
        begin(server, request, s) or reply(s, result(request, {
            "t": "x" * size, "n": len(request.message["params"]["arguments"]["t"])}))
    p = c.start(Server(handle, tls=context).url(), "--ca", good)
    out, err = p.communicate(OPEN + call(1, t="y" * (2 << 20)), timeout=HURRY)
    answers = [json.loads(l) for l in out.splitlines()]
    same((p.returncode, len(answers[-1]["result"]["t"]), answers[-1]["result"]["n"]),
         (0, size, 2 << 20), "large messages over TLS, both ways")
    c.judge()


# --- proxies ---


class Proxy:
    """An HTTP proxy that passes bytes on. What it was asked: (line, headers)."""

    def __init__(self, answer=None, user=None, names=None):
        self.answer, self.user, self.names, self.asked = answer, user, names or {}, []
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, user=""):
        return f"http://{user}127.0.0.1:{self.port}"

    def accept(self):
        while True:
            s, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            head = b""
            while b"\r\n\r\n" not in head and (data := s.recv(65536)):
                head += data
            head, rest = head.split(b"\r\n\r\n", 1)
            line, *lines = head.decode().split("\r\n")
            headers = {k.lower(): v for k, v in (l.split(": ", 1) for l in lines)}
            self.asked.append((line, headers))
            if self.user and headers.get("proxy-authorization") != self.user:
                s.sendall(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="r"\r\n'
                          b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            elif self.answer is not None:
                s.sendall(self.answer)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):  # a close with bytes unread would be a reset
                    pass
            else:
                self.connect(s, line, headers, head, rest)
        except (OSError, ValueError):
            pass
        s.close()

    def connect(self, s, line, headers, head, rest):
        method, target, _ = line.split()
        place = target if method == "CONNECT" else target.split("/")[2]
        host, _, port = place.rpartition(":") if ":" in place else (place, "", "80")
        to = socket.create_connection(self.names.get(place, (host.strip("[]"), int(port))))
        if method == "CONNECT":
            s.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n")
        else:  # one request a connection is enough for a test
            lines = [l for l in head.split(b"\r\n")[1:]
                     if not l.lower().startswith(b"proxy-authorization")]
            path = "/" + target.split("/", 3)[3]
            to.sendall(b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), *lines,
                                      b"Connection: close", b"", rest]))
            s.sendall(to.recv(65536).replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        threading.Thread(target=self.pump, args=(s, to), daemon=True).start()
        self.pump(to, s)

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def closing(server, request, s):
    """As a server does when it is told that no more comes."""
    plain(server, request, s)
    return False


def case_via(c):
    """http: the whole URL is said to the proxy."""
    proxy, server = Proxy(), Server(closing)
    status, out, err = c.run(OPEN + call(1), server.url(), env={"http_proxy": proxy.url("u%40x:p%3Aw@")})
    same((status, [a["id"] for a in out]), (0, [0, 1]), "through a proxy")
    line, headers = proxy.asked[0]
    same(line, f"POST http://127.0.0.1:{server.port}/mcp HTTP/1.1", "the target is a URL")
    same(headers.get("host"), f"127.0.0.1:{server.port}", "Host is the server's")
    same(headers.get("proxy-authorization"), "Basic dUB4OnA6dw==", "the user of the proxy")
    ok(not any("proxy-authorization" in r.headers for r in server.seen), "is not the server's")
    everything = b"".join(open(p, "rb").read() for p in glob.glob(c.dir + "/**", recursive=True)
                          if os.path.isfile(p))
    ok(b"dUB4OnA6dw" not in everything and b"p:w" not in everything, "nor in the evidence")
    c.judge()


def case_via_name(c):
    """Names are the proxy's to look up."""
    server = Server(closing)
    proxy = Proxy(names={"mcp.invalid": ("127.0.0.1", server.port)})
    status, out, err = c.run(OPEN + call(1), "http://mcp.invalid/mcp", env={"all_proxy": proxy.url()})
    same((status, len(out)), (0, 2), "all_proxy, a name that only the proxy knows")
    c.judge()


def case_via_which(c):
    """Which variables count, and for whom."""
    proxy, server = Proxy(), Server(closing)
    here = proxy.url()
    for n, (env, used) in enumerate([
            ({"http_proxy": here}, True), ({"HTTP_PROXY": here}, False),
            ({"https_proxy": here}, False), ({"ALL_PROXY": here}, True),
            ({"http_proxy": "", "all_proxy": here}, True),
            ({"http_proxy": here, "no_proxy": "127.0.0.1"}, False),
            ({"http_proxy": here, "NO_PROXY": "a.example, *"}, False),
            ({"http_proxy": here, "no_proxy": f"127.0.0.1:{server.port}"}, False),
            ({"http_proxy": here, "no_proxy": "127.0.0.1:1"}, True),
            ({"http_proxy": here, "no_proxy": "0.0.1,127.0.0.10"}, True)]):
        proxy.asked.clear()
        status, out, err = Case(f"via_which_{n}").run(OPEN, server.url(), env=env)
        same((len(out), bool(proxy.asked)), (1, used), f"{env}".replace(here, "PROXY"))


def case_via_old(c):
    """The stream and the POSTs of an older server go the same way."""
    proxy, old = Proxy(), Old()
    handle = old.server.handle
    old.server.handle = lambda *given: handle(*given) or False
    status, out, err = c.run(OPEN + call(1), old.url(), env={"http_proxy": proxy.url()})
    ok((status, [a["id"] for a in out]) == (0, [0, 1]), "HTTP+SSE through a proxy", status, out, err)
    same({l.split()[0] for l, _ in proxy.asked}, {"GET", "POST"}, "all of it")
    c.judge()


def case_via_tunnel(c):
    if not shutil.which("openssl"):
        tap.skip("TLS through a proxy", "openssl is not installed")
        return
    good, context = certificate("tunnel", "DNS:mcp.invalid", "IP:127.0.0.1")
    server = Server(plain, tls=context)
    proxy = Proxy(names={"mcp.invalid:443": ("127.0.0.1", server.port)},
                  user="Basic dTpzM2NyZXQ=")
    status, out, err = c.run(OPEN + call(1) + call(2), "https://mcp.invalid/mcp", "--ca", good,
                             env={"HTTPS_PROXY": proxy.url("u:s3cret@")})
    same((status, len(out)), (0, 3), "https through CONNECT")
    same(proxy.asked[0][0], "CONNECT mcp.invalid:443 HTTP/1.1", "what it is asked")
    same(proxy.asked[0][1], {"host": "mcp.invalid:443", "proxy-authorization": "Basic dTpzM2NyZXQ="},
         "and no more")
    same(server.seen[0].headers["host"], "mcp.invalid", "the server's Host")
    ok(not any("proxy-authorization" in r.headers for r in server.seen), "without the password")
    for n, (answer, word) in enumerate([
            (b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", "status 502"),
            (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", "status 302"),
            (b"HTTP/1.1 100 Continue\r\n\r\n", "status 100"),
            (b"HTTP/1.1 200 OK\r\n\r\nHello", "more than it was asked"),
            (b"SSH-2.0-x\r\n", "no HTTP"), (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "no HTTP"),
            (b"", "closed the connection"), (b"HTTP/1.1 200", "closed the connection"),
            (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000, "no HTTP"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "TLS")]):
        case, bad = Case(f"via_tunnel_{n}"), Proxy(answer)
        status, out, err = case.run(OPEN, "https://mcp.invalid/mcp", "--ca", good,
                                    env={"https_proxy": bad.url("u:s3cret@")})
        ok(word in lost(out, 0)["message"], f"a proxy that says {answer[:30]}", out)
        ok("s3cret" not in err and "s3cret" not in str(out), "no password is shown")
    status, out, err = Case("via_tunnel_407").run(
        OPEN, "https://mcp.invalid/mcp", "--ca", good, env={"https_proxy": proxy.url("u:x@")})
    ok("407" in lost(out, 0)["message"] and "Basic realm" in lost(out, 0)["message"],
       "a wrong password: what the proxy asks for", out)
    status, out, err = Case("via_407").run(OPEN, Server(plain).url(),
                                           env={"http_proxy": proxy.url("u:x@")})
    ok("the proxy answered with status 407" in lost(out, 0)["message"], "for http as well", out)
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    status, out, err = Case("via_nobody").run(
        OPEN, "https://mcp.invalid/mcp", "--ca", good,
        env={"https_proxy": f"http://127.0.0.1:{s.getsockname()[1]}"})
    ok("the proxy 127.0.0.1" in lost(out, 0)["message"], "a proxy that is not there", out)
    c.judge()


def case_via_bad(c):
    for value, word in (("https://p:1", "http://"), ("socks5://p:1", "http://"), ("p:3128", "http://"),
                        ("http://", "no valid host"), ("http://p:0", "no valid host"),
                        ("http://s3cret%0a:x@p", "user name"), ("http://s3cret%zz@p", "user name"),
                        ("http://u:s3cret@p/path", "path"), ("http://s3cret\x07@p", "user name"),
                        ("http://" + "s3cret" * 100 + "@p", "user name")):
        p = subprocess.run([ASSAY, "mcp-proxy", "--audit-dir", c.dir, "--upstream-url", "http://h/"],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=HURRY,
                           env=dict(os.environ, http_proxy=value))
        said = p.stderr.decode()
        ok(p.returncode == 3 and said.count("\n") == 1 and word in said and "http_proxy" in said
           and "s3cret" not in said, f"refused at the start: {value[:20]!r}", p.returncode, said)


def case_via_tinyproxy(c):
    program = shutil.which("tinyproxy")
    if not program or not shutil.which("openssl"):
        tap.skip("tinyproxy", "it is not installed")
        return
    good, context = certificate("tiny", "IP:127.0.0.1")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    path = os.path.join(WORK, "tinyproxy.conf")
    with open(path, "w") as f:
        f.write(f"Port {port}\nListen 127.0.0.1\nTimeout 60\nBasicAuth u s3cret\nMaxClients 50\n")
    p = subprocess.Popen([program, "-d", "-c", path], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        env = {"all_proxy": f"http://u:s3cret@127.0.0.1:{port}"}
        for url, flags in ((Server(plain).url(), ()),
                           (Server(plain, tls=context).url(), ("--ca", good))):
            status, out, err = c.run(OPEN + call(1) + call(2), url, *flags, env=env)
            same((status, sorted(a["id"] for a in out)), (0, [0, 1, 2]),
                 f"tinyproxy, {url.split(':')[0]}")
        env = {"all_proxy": f"http://127.0.0.1:{port}"}
        status, out, err = c.run(OPEN, Server(plain).url(), env=env)
        ok("407" in lost(out, 0)["message"], "tinyproxy without a password", out)
    finally:
        p.terminate()
        p.wait()
    c.judge(packs=2)


def case_bad_input(c):
    for what, flags in {
        "no scheme": ["--upstream-url", "localhost:80/mcp"],
        "a password": ["--upstream-url", "http://u:p@localhost/mcp"],
        "a header of ours": ["--upstream-url", "http://h/", "--header", "Host=x"],
        "a mirrored header": ["--upstream-url", "http://h/", "--header", "mcp-param-x=y"],
        "a header without a value": ["--upstream-url", "http://h/", "--header", "X"],
        "two lines": ["--upstream-url", "http://h/", "--header", "X=a\r\nY: b"],
        "--ca without TLS": ["--upstream-url", "http://h/", "--ca", "/dev/null"],
        "--ca without certificates": ["--upstream-url", "https://h/", "--ca", "/dev/null"],
        "--ca that is not there": ["--upstream-url", "https://h/", "--ca", WORK + "/none"],
        "--header for a command": ["--header", "A=b", "--", "true"],
        "a command as well": ["--upstream-url", "http://h/", "--", "true"],
    }.items():
        p = subprocess.run([ASSAY, "mcp-proxy", "--audit-dir", c.dir, *flags],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=HURRY)
        said = [l for l in p.stderr.splitlines() if b"signing key" not in l]
        same((p.returncode, p.stdout, len(said)), (3, b"", 1), f"refused: {what}")


run_cases(globals(), Case)
