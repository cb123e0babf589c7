#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What hostile and broken clients do to assay mcp-proxy --listen.

    listen_hostile.t - [quick [CASE]]    a CASE runs only those whose names begin so

Each case ends with a client that behaves and is served, and with evidence that verifies.
"""
import json
import os
import shutil
import socket
import ssl
import threading
import time

import lab
import web
from lab import MEMORY, SANITIZED, SOAK, Watch, memory, run_cases, tap
from web import (Case, Client, Conn, Cut, Server, all_at_once, certificate, initialize,
                 reply, result, soon, tool)

ok, same = tap.ok, tap.same


def status_of(conn):
    """Of the answer, and whether its body is JSON-RPC. None: closed without one."""
    try:
        answer = conn.answer()
        return answer.status, "error" in answer.message()
    except (EOFError, OSError):
        return None


def names_called(path):
    """The tools that the server was asked for."""
    with open(path) as f:
        found = [json.loads(line) for line in f]
    return [m["params"]["name"] for m in found if m.get("method") == "tools/call"]


def begin(c, *flags, **more):
    """A server that keeps what it hears, and a client with a session."""
    c.kept = c.dir + ".kept"
    c.listen("tools", *flags, argument=c.kept, **more)
    return c.client()


def conclude(c, client, packs=1):
    """After all that it serves."""
    ok("result" in client.call("last"), f"{c.name}: the others are served")
    status = c.stop()
    same(status, 0, f"{c.name}: status 0")
    c.judge(packs=packs)


# --- heads ---


def case_smuggling(c):
    """Whatever can be read in two ways is not read at all."""
    client = begin(c)
    evil = json.dumps(tool(66, "evil")).encode()
    good = json.dumps(tool(1, "echo")).encode()
    inner = (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
             b"Accept: */*\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                 client.session.encode(), len(evil), evil))
    head = (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Accept: */*\r\nMcp-Session-Id: %s\r\n" % client.session.encode())
    length = b"Content-Length: %d\r\n" % len(good)
    for what, data in {
        "two lengths": head + length + b"Content-Length: 3\r\n\r\n" + good,
        "the same length twice": head + length * 2 + b"\r\n" + good,
        "a list of lengths": head + b"Content-Length: %d, %d\r\n\r\n" % ((len(good),) * 2) + good,
        "length and chunks": head + length + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunks and length": head + b"Transfer-Encoding: chunked\r\n" + length + b"\r\n0\r\n\r\n",
        "another coding": head + b"Transfer-Encoding: gzip\r\n\r\n" + good,
        "chunked twice": head + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "a hidden coding": head + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "a space before the colon": head + b"Transfer-Encoding : chunked\r\n" + length + b"\r\n",
        "a folded header": head + b"X: a\r\n b\r\n" + length + b"\r\n" + good,
        "a folded coding": head + b"Transfer-Encoding:\r\n chunked\r\n" + length + b"\r\n",
        "a bare LF": head.replace(b"\r\n", b"\n") + length + b"\r\n" + good,
        "one bare LF": head + b"X: y\n" + length + b"\r\n" + good,
        "a bare CR": head + b"X: a\rb\r\n" + length + b"\r\n" + good,
        "a zero byte": head + b"X: a\0b\r\n" + length + b"\r\n" + good,
        "a signed length": head + b"Content-Length: +5\r\n\r\n" + good,
        "a hexadecimal length": head + b"Content-Length: 0x5\r\n\r\n" + good,
        "a length without end": head + b"Content-Length: %s\r\n\r\n" % (b"9" * 40) + good,
        "a bad chunk": head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        "a chunk with a bare LF": head + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
        "two hosts": head + b"Host: localhost\r\n" + length + b"\r\n" + good,
        "no host": head.replace(b"Host: 127.0.0.1\r\n", b"") + length + b"\r\n" + good,
        "no version": b"POST /mcp\r\n\r\n",
        "another version": head.replace(b"HTTP/1.1", b"HTTP/2.0") + length + b"\r\n" + good,
        "a space too much": head.replace(b"POST /mcp", b"POST  /mcp") + length + b"\r\n" + good,
        "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
    }.items():
        conn = c.conn()
        conn.send(data + inner)
        got = status_of(conn)
        ok(got is None or (400 <= got[0] < 506 and got[1]), f"refused: {what}", got)
        ok(conn.ended(), "and closed")
        conn.close()
    same(names_called(c.kept), [], "the server has heard of none")
    conclude(c, client)
    same([r["mcp_request_id"] for r in c.receipts()], ["last"], "nor has the evidence")


def case_bombs(c):
    """Heads that are too large, and many of them that have no end."""
    client = begin(c)
    for what, method, target, lines, want in (
            ("many headers", "GET", "/mcp", "X: y\r\n" * 200, 431),
            ("a long one", "GET", "/mcp", "X: " + "y" * (17 << 10) + "\r\n", 431),
            ("a large head", "GET", "/mcp", ("X: " + "y" * (15 << 10) + "\r\n") * 5, 431),
            ("a long target", "GET", "/mcp?" + "x" * (9 << 10), "", 414)):
        conn = c.conn()
        try:
            conn.send(f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n")
        except OSError:
            pass  # it has heard enough
        same(status_of(conn), (want, True), f"{what}: {want}")
        ok(conn.ended(), "and closed")
    before = memory(c.process.pid)
    conns = [c.conn() for _ in range(200)]
    for conn in conns:
        conn.send(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (b"X: " + b"y" * 8000 + b"\r\n") * 7)
    time.sleep(0.3)
    ok(SANITIZED or memory(c.process.pid) - before < 200 * 160, "200 of them: memory",
       memory(c.process.pid) - before)
    for conn in conns:
        conn.close()
    conclude(c, client)


def case_slow_heads(c):
    """A head has ten seconds, however many bytes come in them."""
    client = begin(c)
    began = time.monotonic()
    conns = [c.conn() for _ in range(40)]
    silent = [c.conn() for _ in range(5)]
    stop = threading.Event()

    def drip():
        while not stop.is_set():
            for conn in conns:
                try:
                    conn.send("G")
                except OSError:
                    pass
            stop.wait(0.5)
    threading.Thread(target=drip, daemon=True).start()
    served = 0
    while time.monotonic() - began < 8:
        served += client.call(served)["id"] == served
        time.sleep(0.2)
    ok(served > 10, "others are served meanwhile", served)
    found = [status_of(conn) for conn in conns]
    seconds = time.monotonic() - began
    ok(all(f in ((408, True), None) for f in found) and (408, True) in found, "408", found[:3])
    ok(9 < seconds < 15, "after ten seconds", seconds)
    same([status_of(conn) for conn in silent], [None] * 5, "who says nothing is closed")
    stop.set()
    conclude(c, client)


def case_slow_bodies(c):
    """A body must come with 1 KiB in 30 s."""
    client = begin(c)
    if not SOAK:
        tap.skip("slow bodies", "they take half a minute: soak")
        conclude(c, client)
        return
    began = time.monotonic()
    conns = [c.conn() for _ in range(20)]
    for conn in conns:
        conn.ask("POST", "/mcp", headers={"Content-Length": "10000",
                                          "Content-Type": "application/json"})
    while time.monotonic() - began < 28:
        for conn in conns:
            conn.send("x")
        time.sleep(1)
    same([status_of(conn) for conn in conns], [(408, True)] * 20, "408")
    ok(29 < time.monotonic() - began < 45, "after thirty seconds", time.monotonic() - began)
    conclude(c, client)


# --- bodies ---


def case_sizes(c):
    client = begin(c)
    limit = 64 << 20
    more = {"Content-Type": "application/json", "Mcp-Session-Id": client.session}
    conn = c.conn()
    conn.ask("POST", "/mcp", headers=dict(more, **{"Content-Length": str(limit + 1)}))
    answer = conn.answer()
    same((answer.status, "error" in answer.message()), (413, True), "a body over 64 MiB")
    conn.close()
    conn = c.conn()
    conn.ask("POST", "/mcp", headers=dict(more, **{"Transfer-Encoding": "chunked"}))
    try:
        for _ in range(65):
            conn.send(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
    except OSError:
        pass  # it has heard enough
    ok(status_of(conn) in ((413, True), None), "in chunks as well")
    conn.close()
    if SOAK:
        body = json.dumps(tool(1, x="")).encode()
        body = body.replace(b'"x": ""', b'"x": "%s"' % (b"a" * (limit - len(body))))
        same((len(body), client.post(body).message()["id"]), (limit, 1), "64 MiB are taken")
    body = json.dumps(tool(2, x="a" * (1 << 20))).encode()
    conn = c.conn()
    conn.ask("POST", "/mcp", headers=dict(more, **{"Transfer-Encoding": "chunked"}))
    for at in range(0, len(body), 60000):
        part = body[at:at + 60000]
        conn.send(b"%x;name=value\r\n%s\r\n" % (len(part), part))
    conn.send(b"0\r\nX-Trailer: y\r\n\r\n")
    same(len(conn.answer().message()["result"]["echo"]["x"]), 1 << 20, "chunks and trailers")
    conclude(c, client)


def case_truncated(c):
    client = begin(c)
    body = json.dumps(tool(1, "evil")).encode()
    for what, headers, data in (
            ("a body", {"Content-Length": str(len(body) + 9)}, body),
            ("chunks", {"Transfer-Encoding": "chunked"}, b"%x\r\n%s\r\n" % (len(body), body)),
            ("a chunk", {"Transfer-Encoding": "chunked"}, b"ffff\r\n" + body)):
        conn = c.conn()
        conn.ask("POST", "/mcp", headers={"Content-Type": "application/json",
                                          "Mcp-Session-Id": client.session, **headers})
        conn.send(data)
        conn.socket.shutdown(socket.SHUT_WR)
        same(status_of(conn), (400, True), f"{what} without its end: 400")
        conn = c.conn()
        conn.ask("POST", "/mcp", headers={"Content-Type": "application/json",
                                          "Mcp-Session-Id": client.session, **headers})
        conn.send(data)
        conn.close()
    same(names_called(c.kept), [], "the server has heard of none")
    conclude(c, client)


# --- connections ---


def case_half_close(c):
    """Who has said all may close that direction, and is answered."""
    client = begin(c)
    conn = client.send("POST", tool(1, x=1))
    conn.socket.shutdown(socket.SHUT_WR)
    same(conn.answer().message()["result"]["echo"], {"x": 1}, "answered")
    ok(conn.ended(), "then closed")
    conclude(c, client)


def case_pipeline(c):
    """Requests behind each other: answered in order, one at a time."""
    client = begin(c)
    conn, given = c.conn(), {"Mcp-Session-Id": client.session}
    for n in range(20):
        conn.ask("POST", "/mcp", tool(n, n=n), given)
    same([conn.answer().message()["id"] for _ in range(20)], list(range(20)), "20 at once")
    conn.ask("POST", "/mcp", tool(30), dict(given, Connection="close"))
    conn.ask("POST", "/mcp", tool(31, "evil"), given)
    same(conn.answer().message()["id"], 30, "Connection: close")
    ok(conn.ended(), "ends it")
    ok("evil" not in names_called(c.kept), "what came after is not done")
    conn = c.conn()
    for _ in range(3):
        conn.ask("GET", "/health")
        conn.ask("HEAD", "/health")
    same([(a.status, len(a.body())) for a in (conn.answer(n % 2 == 1) for n in range(6))],
         [(200, 15), (200, 0)] * 3, "GET and HEAD")
    conclude(c, client)


def case_old_http(c):
    client = begin(c)
    body = json.dumps(tool(1, x=1))
    head = (f"Content-Type: application/json\r\nAccept: */*\r\nMcp-Session-Id: {client.session}"
            f"\r\nContent-Length: {len(body)}\r\n")
    conn = c.conn()
    conn.send(f"POST /mcp HTTP/1.0\r\n{head}\r\n{body}")
    answer = conn.answer()
    same(answer.message()["result"]["echo"], {"x": 1}, "HTTP/1.0")
    ok(conn.ended(), "one request a connection")
    body = json.dumps(tool(2, "progress", {"progressToken": 1}, count=2))
    head = head.rsplit("Content-Length", 1)[0] + f"Content-Length: {len(body)}\r\n"
    conn = c.conn()
    conn.send(f"POST /mcp HTTP/1.0\r\n{head}\r\n{body}")
    answer = conn.answer()
    ok("transfer-encoding" not in answer.headers, "no chunks for it", answer.headers)
    same(len(list(answer.messages())), 3, "a stream until the end")
    conn = c.conn()
    conn.send(f"POST /mcp HTTP/1.0\r\n{head}Transfer-Encoding: chunked\r\n\r\n{body}")
    same(status_of(conn)[0], 400, "nor from it")
    conclude(c, client)


def case_expect(c):
    client = begin(c)
    body = json.dumps(tool(1, x=1)).encode()
    given = {"Content-Type": "application/json", "Mcp-Session-Id": client.session,
             "Content-Length": str(len(body)), "Expect": "100-continue"}
    conn = c.conn()
    conn.ask("POST", "/mcp", headers=given)
    same(conn.answer().status, 100, "100 before the body")
    conn.send(body)
    same(conn.answer().message()["result"]["echo"], {"x": 1}, "then the answer")
    conn = c.conn()
    conn.ask("POST", "/mcp", headers=dict(given, **{"Content-Length": str(65 << 20)}))
    same(conn.answer().status, 413, "no 100 for what is refused")
    conn = c.conn()
    conn.ask("POST", "/elsewhere", headers=given)
    same(conn.answer().status, 404, "whatever the reason")
    conclude(c, client)


def case_six(c):
    if not socket.has_ipv6:
        tap.skip("IPv6", "not here")
        return
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        tap.skip("IPv6", "not here")
        return
    client = begin(c, host="[::1]")
    ok("//[::1]:" in c.url, "its URL", c.url)
    same(client.call(1)["id"], 1, "IPv6")
    conn = c.conn()
    conn.ask("POST", "/mcp", initialize(), {"Host": "[2001:db8::1]"})
    same(status_of(conn), (403, True), "another address in Host")
    conclude(c, client)


# --- who asks ---


def case_rebinding(c):
    client = begin(c)
    for what, headers, want in (
            ("a name that points here", {"Host": "evil.example"}, 403),
            ("with our port", {"Host": f"evil.example:{c.place[1]}"}, 403),
            ("that begins like us", {"Host": "localhost.evil.example"}, 403),
            ("that ends like us", {"Host": "evil-localhost"}, 403),
            ("that looks like us", {"Host": "127.0.0.1.evil.example"}, 403),
            ("our name", {"Host": f"localhost:{c.place[1]}"}, 200),
            ("a page elsewhere", {"Origin": "http://evil.example"}, 403),
            ("a page of a file", {"Origin": "null"}, 403),
            ("one that begins like us", {"Origin": "http://localhost.evil.example"}, 403),
            ("one with our name in it", {"Origin": "http://evil.example/localhost"}, 403),
            ("one of this machine", {"Origin": "http://localhost:3000"}, 200)):
        conn = c.conn()
        conn.ask("POST", "/mcp", tool(1, "echo" if want == 200 else "evil"),
                 dict(headers, **{"Mcp-Session-Id": client.session}))
        answer = conn.answer()
        ok(answer.status == want and ("error" in answer.message()) == (want != 200),
           f"{what}: {want}", answer.status)
        ok("access-control-allow-origin" not in answer.headers, "and no page may read it")
    conn = c.conn()
    conn.send("POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    ok(status_of(conn)[0] in (400, 403), "a whole URL does not hide it")
    conn = c.conn()
    conn.ask("GET", "/sse", headers={"Origin": "http://evil.example"})
    same(status_of(conn)[0], 403, "the older transport as well")
    ok("evil" not in names_called(c.kept), "the server has heard of none")
    conclude(c, client)


def case_cors(c):
    client = begin(c, "--allow-origin", "https://app.example.com")
    conn = c.conn()
    conn.ask("OPTIONS", "/mcp", headers={
        "Origin": "https://app.example.com", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,mcp-session-id"})
    answer = conn.answer()
    got = answer.headers
    same((answer.status, got.get("access-control-allow-origin"),
          got.get("access-control-allow-headers"), got.get("vary")),
         (204, "https://app.example.com", "content-type,mcp-session-id", "Origin"), "preflight")
    ok({"GET", "POST", "DELETE"} <= set(got["access-control-allow-methods"].split(", ")), "methods")
    answer = client.post(tool(1), Origin="https://app.example.com")
    same(answer.headers.get("access-control-allow-origin"), "https://app.example.com", "the answer")
    ok("Mcp-Session-Id" in answer.headers.get("access-control-expose-headers", ""), "what it shows")
    answer = Client(c.place).post(tool(1), Origin="https://app.example.com")
    same((answer.status, "access-control-allow-origin" in answer.headers), (400, True), "errors, too")
    conn = c.conn()
    conn.ask("OPTIONS", "/mcp", headers={"Origin": "https://other.example.com",
                                         "Access-Control-Request-Method": "POST"})
    answer = conn.answer()
    ok("access-control-allow-origin" not in answer.headers, "not for others", answer.headers)
    conclude(c, client)


def case_tls(c):
    if not shutil.which("openssl"):
        tap.skip("TLS", "openssl is not installed")
        return
    path, _ = certificate("front", "IP:127.0.0.1", "DNS:localhost")
    other, _ = certificate("front_other", "IP:127.0.0.1")
    os.chmod(path + ".key", 0o640)
    c.listen("tools", "--tls-cert", path, "--tls-key", path + ".key")
    ok(c.url.startswith("https://"), "its URL", c.url)
    same(notes(c, "tls"), [], "a key that a group may read is nobody's business")
    trust = ssl.create_default_context(cafile=path)
    client = Client(c.place, tls=trust).open()
    same(client.call(1, x="x" * (1 << 20))["result"]["echo"], {"x": "x" * (1 << 20)}, "a call")
    found = list(client.post(tool(2, "progress", {"progressToken": 1}, count=3)).messages())
    same(len(found), 4, "a stream")
    try:
        Conn(c.place, ssl.create_default_context(cafile=other))
        ok(False, "another authority is not believed")
    except ssl.SSLError:
        ok(True, "another authority is not believed")
    old = ssl.create_default_context(cafile=path)
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    try:
        Conn(c.place, old)
        ok(False, "TLS 1.1 is refused")
    except (ssl.SSLError, OSError):
        ok(True, "TLS 1.1 is refused")
    conn = Conn(c.place)
    conn.ask("POST", "/mcp", initialize())
    answer = conn.answer()
    same((answer.status, answer.message()["error"]["message"]),
         (400, "this port speaks TLS: use https://"), "plain HTTP is told so")
    ok(soon(lambda: notes(c, "127.0.0.1 speaks plain HTTP")), "and so is whoever runs it", c.said)
    conns = [Conn(c.place) for _ in range(50)]
    for conn in conns:
        conn.send(b"\x16\x03\x01\x02\x00\x01")
    same(client.call(3)["id"], 3, "half a hello of fifty does not hold it up")
    for conn in conns:
        conn.close()
    cut = Conn(c.place, trust)
    cut.ask("POST", "/mcp", headers={"Content-Length": "100", "Content-Type": "application/json"})
    cut.close()
    conclude(c, client)


def notes(c, text):
    """What it said on stderr, with this in it."""
    return [s["message"] for s in c.told("note") if text in s["message"]]


def case_open_key(c):
    """A key that everybody may read is used, and said."""
    if not shutil.which("openssl"):
        tap.skip("a key that everybody may read", "openssl is not installed")
        return
    path, _ = certificate("front_open", "IP:127.0.0.1")
    os.chmod(path + ".key", 0o644)
    c.listen("tools", "--tls-cert", path, "--tls-key", path + ".key")
    client = Client(c.place, tls=ssl.create_default_context(cafile=path)).open()
    same(notes(c, "tls"),
         [f"the key of --tls-key is open to everybody on this machine: chmod 600 {path}.key"],
         "a key that everybody may read is said once")
    conclude(c, client)


# --- memory and time ---


def stalled(client, mib, number=1):
    """A call whose long answer nobody reads."""
    conn = client.connect()
    given = {"Mcp-Session-Id": client.session}
    conn.ask("POST", "/mcp", tool(number, "big", mib=mib), given)
    return conn


def case_reader_stops(c):
    """It costs a bounded buffer, and nobody else anything."""
    c.kept = None
    p = c.listen("tools")
    watch = Watch(p.pid)
    slow, other = c.client(), c.client()
    conn = stalled(slow, 64)
    time.sleep(1)
    found = [other.call(n)["id"] for n in range(50)]
    same(found, list(range(50)), "the others go on")
    answer = conn.answer()
    same(sum(piece.count(b"y") for piece in answer.pieces()), 64 << 20, "who reads again has all")
    watch.flat("meanwhile")
    conclude(c, other, packs=2)
    same(c.outcomes(), {"forwarded": 52}, "receipts")


def case_reader_stops_http(c):
    block = b"y" * (1 << 20)

    def handle(server, request, s):
        if web.begin(server, request, s, f"s{len(server.seen)}"):
            return
        if request.message["params"]["name"] != "big":
            reply(s, result(request))
            return
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                  b'\r\n{"jsonrpc":"2.0","id":1,"result":{"s":"' % ((64 << 20) + 42))
        for _ in range(64):
            s.sendall(block)
        s.sendall(b'"}}')
    p = c.listen(Server(handle).url())
    watch = Watch(p.pid)
    slow, other = c.client(), c.client()
    conn = stalled(slow, 64)
    time.sleep(1)
    same([other.call(n)["id"] for n in range(20)], list(range(20)), "the others go on")
    same(sum(piece.count(b"y") for piece in conn.answer().pieces()), 64 << 20, "all of it")
    watch.flat("meanwhile")
    conclude(c, other, packs=None)


def case_reader_stops_share(c):
    """One server for all: who does not read holds it up for ten seconds, no longer."""
    p = c.listen("tools", "--share-child")
    watch = Watch(p.pid)
    slow, other = c.client(), c.client()
    conn = slow.send("GET")
    conn.answer()
    stream = other.send("GET").answer().messages()
    began = time.monotonic()
    told = slow.send("POST", tool(1, "tell", count=400, size=100000))
    got = sum(1 for _ in zip(range(400), stream))
    same(got, 400, "the other one hears all")
    same(other.call(2)["id"], 2, "and is served")
    ok(time.monotonic() - began < 20, "in time", time.monotonic() - began)
    watch.flat("meanwhile")
    told.close()
    conn.close()
    same(other.call("last")["id"], "last", "still")
    c.stop()
    same(sorted(str(r["mcp_request_id"]) for r in c.receipts()), ["1", "2", "last"], "receipts")
    c.judge(packs=2)


def case_reader_gone(c):
    """It is closed when it has taken nothing for a minute; the call has its receipt."""
    if not SOAK:
        tap.skip("a reader that never reads again", "it takes a minute: soak")
        return
    p = c.listen("tools")
    watch = Watch(p.pid)
    slow, other = c.client(), c.client()
    conn = stalled(slow, 256)
    began = time.monotonic()
    while time.monotonic() - began < 75:
        other.call(1)
        time.sleep(0.5)
    try:
        conn.answer().body()
        whole = True
    except (Cut, OSError):
        whole = False
    ok(not whole, "it was closed")
    watch.flat("meanwhile")
    same(other.call("last")["id"], "last", "the other one goes on")
    c.stop()
    same(len([r for r in c.receipts() if r["tool_name"] == "big"]), 1, "a receipt")
    c.judge(packs=2)


def case_large(c):
    """A long answer of a server on stdio."""
    mib = 1024 if SOAK else 64
    p = c.listen("tools", "--max-message-bytes", str(2 << 30))
    client, watch = c.client(), Watch(p.pid)
    answer = client.post(tool(1, "big", mib=mib))
    same(sum(piece.count(b"y") for piece in answer.pieces()), mib << 20, f"{mib} MiB")
    watch.flat("in between")
    conclude(c, client)
    same(c.outcomes(), {"forwarded": 2}, "receipts")


def case_descriptors(c):
    """More connections than there are descriptors: the others wait."""
    if not shutil.which("prlimit"):
        tap.skip("descriptors", "prlimit is not installed")
        return
    c.inside = ["prlimit", "--nofile=64:64"]
    c.kept = None
    c.listen("tools", "--share-child")
    client = c.client()
    conns = [c.conn() for _ in range(100)]
    time.sleep(0.3)
    late = Conn(c.place)
    late.ask("GET", "/health")
    for conn in conns:
        conn.close()
    same(late.answer().status, 200, "who waited is served when others leave")
    ok(lab.SANITIZED or memory(c.process.pid) < MEMORY, "memory")
    conclude(c, client)


def case_connections(c):
    """Many at once, all served."""
    client = begin(c)
    count = 2000 if SOAK else 400
    conns = [c.conn() for _ in range(count)]
    for n, conn in enumerate(conns):
        conn.ask("POST", "/mcp", tool(n, n=n), {"Mcp-Session-Id": client.session})
    wrong = [n for n, conn in enumerate(conns)
             if conn.answer().message()["result"]["echo"] != {"n": n}]
    same(wrong, [], f"{count} connections of one session, each its own answer")
    ok(SANITIZED or memory(c.process.pid) < MEMORY, "memory", memory(c.process.pid))
    for conn in conns:
        conn.close()
    conclude(c, client)


def case_resets(c):
    """Clients that reset the connection at every stage."""
    client = begin(c)
    linger = b"\x01\0\0\0\0\0\0\0"

    def one(n):
        for stage in range(25):
            conn = Conn(c.place)
            conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if stage % 5 == 1:
                conn.send("POST /mcp HTT")
            elif stage % 5 == 2:
                conn.ask("POST", "/mcp", headers={"Content-Length": "9"})
            elif stage % 5 == 3:
                conn.ask("POST", "/mcp", tool(stage), {"Mcp-Session-Id": client.session})
            elif stage % 5 == 4:
                conn.ask("GET", "/sse")
                conn.answer()
            conn.file.close()
            conn.socket.close()
        return True
    same(all_at_once(4, one), [True] * 4, "a hundred resets")
    ok(soon(lambda: len(c.of("session_end")) == 20), "streams that were left are over")
    conclude(c, client, packs=None)


run_cases(globals(), Case)
