#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP on both sides: assay mcp-proxy --listen … --upstream-url …

    listen_http.t - [quick [CASE]]    a CASE runs only those whose names begin so

What the server answers comes to the client as it was: status, headers, body, events.
Afterwards every log and every pack verifies.
"""
import json
import os
import shutil
import socket
import struct
import threading

import lab
from lab import Watch, run_cases, tap
from web import (MODERN, Case, Client, Cut, Modern, Server, all_at_once, ask, begin,
                 certificate, chunk, event, initialize, plain, reply, result, soon, stream, tool)

ok, same = tap.ok, tap.same


def served(handle):
    """A server that does what `handle` does with calls, and the usual with all else."""
    return Server(lambda server, request, s: begin(server, request, s)
                  or handle(server, request, s))


def case_session(c):
    server = Server(plain)
    c.listen(server.url())
    client = c.client()
    same(client.session, "s1", "the session is called what the server calls it")
    same(client.post(ask(None, "notifications/x")).status, 202, "a notification: 202")
    for what, body in (("nothing", b""), ("blanks", b" \t\r\n")):
        seen, answer = len(server.seen), client.post(body)
        same((answer.status, answer.code(), len(server.seen)), (400, -32700, seen),
             f"{what}: 400, and the server is not asked")
    same(client.call(1)["id"], 1, "a call")
    same((client.close(), server.seen[-1].method), (200, "DELETE"), "DELETE goes on")
    same(server.seen[-1].headers["mcp-session-id"], "s1", "with the session")
    ok(soon(lambda: len(c.packs()) == 1), "its pack is there")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 1}, "one receipt")
    same({r["server_transport"] for r in c.receipts()}, {"streamable-http"}, "its transport")
    c.judge()


# --- as it was ---

STATUSES = (
    ("401 Unauthorized", "application/json", b'{"error":"invalid_token"}',
     'WWW-Authenticate: Bearer resource_metadata="http://x/.well-known/y", error="z"'),
    ("401 Unauthorized", "text/plain", b"who are you?", "WWW-Authenticate: Basic realm=\"r\""),
    ("403 Forbidden", "text/plain", b"no", "X-Reason: none of yours"),
    ("404 Not Found", "application/json",
     b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}'),
    ("405 Method Not Allowed", "text/html", b"<h1>no</h1>", "Allow: GET"),
    ("400 Bad Request", "application/json",
     b'{"jsonrpc": "2.0", "error": {"code": -32022, "message": "no"}, "id": 1}'),
    ("429 Too Many Requests", "text/plain", b"later", "Retry-After: 7"),
    ("500 Internal Server Error", "text/plain", b"Traceback:\n  \x00\xff\n"),
    ("503 Service Unavailable", "text/html; charset=utf-8", b"<p>" + b"x" * 100000),
)


def case_statuses(c):
    """What is no answer to a message passes as it is."""
    now = []

    def handle(server, request, s):
        status, kind, body, *headers = now[0]
        reply(s, body, status, kind, *headers)
    server = served(handle)
    c.listen(server.url())
    for n, row in enumerate(STATUSES):
        now[:] = [row]
        client = c.client()
        answer = client.post(tool(1))
        want = dict(h.split(": ", 1) for h in row[3:])
        same((answer.status, answer.headers.get("content-type"), answer.body()),
             (int(row[0][:3]), row[1], row[2]), f"{row[0]}, {row[1]}")
        same({k: answer.headers.get(k.lower()) for k in want}, want, "with its headers")
    same(c.stop(), 2, "status 2: calls were not answered")
    same(len(c.receipts()), len(STATUSES), "a receipt for each")
    ok("forwarded" not in c.outcomes(), "none says that it was answered", c.outcomes())
    c.judge(packs=None)


def case_headers(c):
    """Of requests and answers: all but those of one connection."""
    def handle(server, request, s):
        reply(s, result(request), "200 OK", "application/json; charset=utf-8", "X-Own: a",
              "x-own: b", "Keep-Alive: timeout=5", "Connection: X-Hop", "X-Hop: 1",
              "Set-Cookie: k=v; Path=/", "ETag: \"1\"", "Server: theirs")
    server = served(handle)
    c.listen(server.url() + "?key=1", "--header", "X-Key=ours", "--header", "Authorization=Ours x")
    client = c.client()
    answer = client.post(tool(1), Authorization="Theirs y", X_Own="é",
                         X_Key="theirs", Connection="close, X-Hop", X_Hop="1", TE="trailers",
                         Proxy_Authorization="Basic eA==", Accept_Encoding="gzip, br",
                         Expect="100-continue", User_Agent="me/1", Cookie="a=b")
    if answer.status == 100:
        answer = type(answer)(answer.file)
    same([(k, v) for k, v in answer.raw if k.lower() in
          ("x-own", "set-cookie", "etag", "server", "content-type")],
         [("Content-Type", "application/json; charset=utf-8"), ("X-Own", "a"), ("x-own", "b"),
          ("Set-Cookie", "k=v; Path=/"), ("ETag", '"1"'), ("Server", "theirs")],
         "headers of the answer pass as they were, in order")
    ok("x-hop" not in answer.headers and "keep-alive" not in answer.headers,
       "but those of the connection", answer.raw)
    same(answer.message(), result(server.seen[-1]), "the body")
    seen = server.seen[-1].headers
    same(server.seen[-1].target, "/mcp?key=1", "the target is the server's")
    same({k: seen.get(k) for k in ("user-agent", "cookie", "x-own", "mcp-session-id")},
         {"user-agent": "me/1", "cookie": "a=b", "x-own": "é".encode().decode("latin-1"),
          "mcp-session-id": "s1"}, "the request's pass")
    same((seen.get("authorization"), seen.get("x-key")), ("Ours x", "ours"), "--header replaces")
    same([k for k in ("x-hop", "te", "proxy-authorization", "expect") if k in seen], [],
         "those of the connection do not")
    same((seen["accept-encoding"], seen["host"]), ("identity", f"127.0.0.1:{server.port}"),
         "and these are ours")
    same(c.stop(), 0, "status 0")
    everything = b"".join(open(os.path.join(d, f), "rb").read()
                          for d, _, files in os.walk(c.dir) for f in files)
    ok(b"Ours x" not in everything and b"Theirs y" not in everything, "no secret in the evidence")
    c.judge()


def case_longest(c):
    """A header as long as can be passes; a target that becomes too long for the server does not,
    and nothing says that it was sent."""
    server = served(lambda server, request, s: reply(s, result(request)))
    c.listen(server.url() + "?key=" + "k" * 4000)
    client = c.client()
    conn = client.connect()
    body = json.dumps(tool(1)).encode()
    head = (f"POST /mcp%s HTTP/1.1\r\nHost: {conn.host}\r\nAccept: application/json, "
            f"text/event-stream\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\n"
            f"Content-Length: {len(body)}\r\n%s\r\n")
    conn.socket.sendall((head % ("", "X:" + "a" * 16382 + "\r\n")).encode() + body)
    same(conn.answer().message()["id"], 1, "the longest header")
    same(len(server.seen[-1].headers["x"]), 16382, "passes")
    conn.socket.sendall((head % ("?" + "q" * 5000, "")).encode() + body)
    answer = conn.answer()
    same((answer.status, answer.code()), (200, -31006), "no target that long")
    same(client.call(3)["id"], 3, "the next call is answered")
    c.stop()
    same(c.outcomes(), {"forwarded": 2, "timeout:server_exit": 1}, "receipts")
    calls = [e["call"] for e in c.of("request_received") if e.get("call")]
    same([e["call"] for e in c.of("request_forwarded") if "call" in e],
         [calls[0], calls[2]], "what was not sent is not said to be")
    c.judge(packs=None)


def case_authorization(c):
    server = served(lambda server, request, s: reply(s, result(request)))
    c.listen(server.url())
    client = c.client(Authorization="Bearer abc")
    client.call(1)
    same(server.seen[-1].headers.get("authorization"), "Bearer abc", "the client's own passes")
    c.stop()
    c.judge()


def case_metadata(c):
    """What a client's OAuth asks for."""
    def handle(server, request, s):
        if request.target.startswith("/.well-known/"):
            reply(s, {"resource": "x", "path": request.target})
            return
        plain(server, request, s)
    c.listen(Server(handle).url())
    for path in "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp":
        conn = c.conn()
        conn.ask("GET", path)
        answer = conn.answer()
        same((answer.status, answer.message()["path"].startswith("/.well-known/oauth-protected")),
             (200, True), path)
    c.stop()


# --- streams ---


def case_events(c):
    """Ids, times, comments, priming, other types: as they came, when they came."""
    gate = threading.Event()

    def handle(server, request, s):
        stream(s, "X-Stream: yes")
        chunk(s, "id: 0\nretry: 1500\ndata:\n\n")
        chunk(s, ": a comment\n\n")
        chunk(s, "event: custom\nid: 1\ndata: no message\ndata: of ours\n\n")
        event(s, ask(None, "notifications/message", level="info", data="é"), id="2")
        gate.wait(10)
        event(s, result(request), id="3", retry="99", event="message")
        chunk(s, "id: 4\ndata:\n\n")
        s.sendall(b"0\r\n\r\n")
    c.listen(served(handle).url())
    answer = c.client().post(tool(1))
    same((answer.status, answer.kind, answer.headers.get("x-stream")),
         (200, "text/event-stream", "yes"), "the head")
    blocks = answer.blocks()
    first = sorted(next(blocks).split("\n"))
    ok("id: 0" in first and "retry: 1500" in first and any(l.startswith("data:") for l in first),
       "the priming event", first)
    ok(next(blocks).startswith(":"), "a comment")
    same(sorted(next(blocks).split("\n")),
         sorted(["event: custom", "id: 1", "data: no message", "data: of ours"]), "another type")
    got = next(blocks)
    ok("id: 2" in got.split("\n") and '"data": "\\u00e9"' in got, "a message, before the end", got)
    gate.set()
    rest = "\n".join(blocks).split("\n")
    ok("id: 3" in rest and "retry: 99" in rest and "id: 4" in rest, "and the rest", rest)
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 1}, "one receipt")
    c.judge()


def case_event_forms(c):
    """Line ends and pieces that servers make."""
    text = 'data: {"jsonrpc":"2.0",\rdata: "id":1,"result":{}}\r\n\r\n'

    def handle(server, request, s):
        stream(s)
        for byte in "\ufeff" + "id: 7\r\n" + text:
            chunk(s, byte)
        s.sendall(b"0\r\n\r\n")
    c.listen(served(handle).url())
    answer = c.client().post(tool(1))
    found = list(answer.messages())
    same([m["id"] for m in found], [1], "CR, CRLF, a mark of order, one byte at a time")
    same(c.stop(), 0, "status 0")
    c.judge()


def case_server_asks(c):
    """On the stream of GET and on that of the call."""
    gets, waits = [], {}

    def handle(server, request, s):
        if request.method == "GET":
            stream(s)
            gets.append(s)
            event(s, ask("q1", "sampling/createMessage"), id="g1")
            threading.Event().wait(lab.HURRY)
        elif request.method == "POST" and "result" in request.message:
            reply(s, b"", "202 Accepted")
            waits[request.message["id"]] = request.message["result"]
        elif begin(server, request, s):
            return
        else:
            stream(s)
            event(s, ask("q2", "roots/list"))
            soon(lambda: "q2" in waits)
            event(s, result(request, {"got": waits.get("q2")}))
            s.sendall(b"0\r\n\r\n")
    c.listen(Server(handle).url())
    client = c.client()
    get = client.send("GET")
    question = next(get.answer().messages())
    same(question["method"], "sampling/createMessage", "the server asks on GET")
    same(client.post({"jsonrpc": "2.0", "id": "q1", "result": {"a": 1}}).status, 202, "202")
    messages = client.send("POST", tool(1)).answer().messages()
    same(next(messages)["method"], "roots/list", "and on a call's stream")
    client.post({"jsonrpc": "2.0", "id": "q2", "result": {"b": 2}})
    same(next(messages)["result"], {"got": {"b": 2}}, "the answer got there")
    same(waits["q1"], {"a": 1}, "both did")
    get.close()
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 1}, "one receipt")
    c.judge()


def case_resumption(c):
    """A stream that is cut is the client's to resume: Last-Event-ID goes through."""
    def handle(server, request, s):
        if request.method == "GET" and "last-event-id" in request.headers:
            stream(s)
            event(s, {"jsonrpc": "2.0", "id": 1, "result": {"late": True}}, id="e2")
            s.sendall(b"0\r\n\r\n")
        elif not begin(server, request, s):
            stream(s)
            chunk(s, "id: e1\ndata:\n\n")
            return False
    server = Server(handle)
    c.listen(server.url())
    client = c.client()
    answer = client.post(tool(1))
    got = []
    try:
        for block in answer.blocks():
            got.append(block)
        cut = False
    except Cut:
        cut = True
    ok("id: e1" in got[0] and cut, "the cut is the client's to see", got, cut)
    answer = client.send("GET", Last_Event_ID="e1").answer()
    same((answer.status, answer.message()["result"]), (200, {"late": True}), "resumed")
    same(server.seen[-1].headers["last-event-id"], "e1", "by its id")
    same(c.stop(), 0, "status 0: the call was answered")
    same(c.outcomes(), {"forwarded": 1}, "so says the receipt")
    c.judge()


def case_progress(c):
    """Each message as it comes, on the stream of its own call."""
    def handle(server, request, s):
        stream(s)
        token = request.message["params"]["_meta"]["progressToken"]
        for n in range(3):
            event(s, ask(None, "notifications/progress", progressToken=token, progress=n))
        event(s, result(request, {"n": request.message["params"]["arguments"]}))
        s.sendall(b"0\r\n\r\n")
    c.listen(served(handle).url())
    clients = [Modern(c.place) for _ in range(8)]
    found = all_at_once(8, lambda n: list(clients[n].post(
        tool(1, "t", {"progressToken": f"p{n}"}, n=n)).messages()))
    same([[m["params"]["progressToken"] for m in f[:-1]] for f in found],
         [[f"p{n}"] * 3 for n in range(8)], "progress of eight calls with the id 1")
    same([f[-1]["result"] for f in found], [{"n": {"n": n}} for n in range(8)], "and the answers")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 8}, "receipts")
    c.judge()


def case_gone_unsent(c):
    """A call whose client breaks off while it waits for the disk is not sent, nor waited for."""
    c.listen(Server(plain).url(), "--durability", "strict", "--shutdown-timeout", "30")
    client = c.client()
    for n in range(30):
        conn = client.send("POST", tool(n))
        conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.file.close()
        conn.socket.close()
    ok(soon(lambda: len(c.receipts()) == 30), "all have receipts", c.outcomes())
    ok(set(c.outcomes()) <= {"forwarded", "timeout:client_gone"}, "which say why", c.outcomes())
    same(sum("call" in e for e in c.of("request_forwarded")), c.outcomes().get("forwarded", 0),
         "and so does the log")
    c.stop()
    c.judge()


def case_no_stream(c):
    """A server without a stream of its own says so itself."""
    c.listen(Server(plain).url())
    answer = c.client().send("GET").answer()
    same((answer.status, answer.body()), (405, b""), "405 passes")
    c.stop()
    c.judge(packs=None)


def case_older_client(c):
    """/sse in front of a server of today."""
    c.listen(Server(plain).url())
    conn = c.conn()
    conn.ask("GET", "/sse")
    blocks = conn.answer().blocks()
    path = next(blocks).split("data: ")[1]

    def post(message):
        x = c.conn()
        x.ask("POST", path, message)
        return x.answer().status
    same(post(initialize("2024-11-05")), 202, "a POST: 202")
    same(json.loads(next(blocks).split("data: ")[1])["id"], 0, "answered on the stream")
    post(ask(None, "notifications/initialized"))
    same(post(tool(1)), 202, "a call")
    same(json.loads(next(blocks).split("data: ")[1])["id"], 1, "as well")
    conn.close()
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 1}, "one receipt")
    c.judge()


# --- servers that die ---


def lose(c, handle, what, want=(200, -31006)):
    one = Case(f"{c.name}_{what.replace(' ', '_')}")
    server = served(handle)
    one.listen(server.url())
    client = one.client()
    conn = client.send("POST", tool(1))
    answer, got = conn.answer(), "cut"
    try:
        for message in answer.messages():
            got = (answer.status, message["error"]["code"])
    except Cut:
        pass  # what came before it counts
    same(got, want, what)
    posts = [r for r in server.seen if r.message and r.message.get("method") == "tools/call"]
    same(len(posts), 1, "a call is never sent twice")
    same(one.stop(), 2, "status 2")
    same(one.outcomes(), {"timeout:server_exit": 1}, "the receipt")
    same(one.complete(), [False], "the session is not complete")
    one.judge()


def case_cut(c):
    """An answer, and in the same breath what is no HTTP."""
    def handle(server, request, s):
        body = b"data: " + json.dumps(result(request)).encode() + b"\n\n"
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nZZ\r\n" % (len(body), body))
        return False
    c.listen(served(handle).url())
    client, got, cut = c.client(), [], 0
    for n in range(1, 6):
        try:
            for message in client.post(tool(n)).messages():
                got.append(message["id"])
        except Cut:
            cut += 1
    same((got, cut), ([1, 2, 3, 4, 5], 5), "what is recorded as sent arrives before the cut")
    same(c.stop(), 0, "status 0: the calls were answered")
    same(c.outcomes(), {"forwarded": 5}, "so say the receipts")
    c.judge()


def case_dies(c):
    def in_json(server, request, s):
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  b'Content-Length: 1000\r\n\r\n{"jsonrpc":"2.0","id":1,')
        return False

    def in_event(server, request, s):
        stream(s)
        chunk(s, 'data: {"jsonrpc":"2.0","id":1,"res')
        return False

    def in_long_json(server, request, s):
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900000"
                  b'\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{"s":"' + b"x" * 300000)
        return False

    def no_result(server, request, s):
        stream(s)
        s.sendall(b"0\r\n\r\n")
    lose(c, lambda *_: False, "before the head")
    lose(c, lambda server, request, s: s.sendall(b"HTTP/1.1 200 OK\r\nConte") or False, "in the head")
    lose(c, lambda server, request, s: s.sendall(b"SSH-2.0-x\r\n\r\n") or False, "no HTTP")
    lose(c, in_json, "in JSON", (200, -31006))
    lose(c, in_long_json, "in long JSON", "cut")
    lose(c, in_event, "in an event", (200, -31006))
    lose(c, no_result, "a stream without a result", (200, -31006))


def case_nobody(c):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        c.listen(f"http://127.0.0.1:{s.getsockname()[1]}/mcp")
        answer = Client(c.place).post(initialize())
        same((answer.status, answer.code()), (200, -31006), "nobody is there")
        same(answer.kind, "application/json", "said in JSON-RPC")
    c.stop()
    c.judge(packs=None)


def case_compressed(c):
    def handle(server, request, s):
        reply(s, b"\x1f\x8b\x08\x00", "200 OK", "application/json", "Content-Encoding: gzip")
    server = served(handle)
    c.listen(server.url())
    answer = c.client().post(tool(1), Accept_Encoding="gzip")
    found = answer.message()
    same((answer.status, found["error"]["code"]), (200, -31006), "a compressed answer is refused")
    ok("compressed" in found["error"]["message"], "and why", found)
    same(server.seen[-1].headers["accept-encoding"], "identity", "it was not asked for")
    c.stop()
    c.judge()


def case_certificates(c):
    if not shutil.which("openssl"):
        tap.skip("TLS upstream", "openssl is not installed")
        return
    good, context = certificate("http_good", "IP:127.0.0.1")
    other, wrong = certificate("http_wrong", "DNS:other.example")
    c.listen(Server(plain, tls=context).url(), "--ca", good)
    same(c.client().call(1)["id"], 1, "https upstream")
    same(c.stop(), 0, "status 0")
    for what, server, ca in (("self-signed", Server(plain, tls=context), None),
                             ("another name", Server(plain, tls=wrong), other),
                             ("another authority", Server(plain, tls=context), other)):
        one = Case(f"{c.name}_{what.replace(' ', '_')}")
        one.listen(server.url(), *(["--ca", ca] if ca else []))
        answer = Client(one.place).post(initialize())
        found = answer.message()
        same((answer.status, found["error"]["code"]), (200, -31006), f"a certificate: {what}")
        ok("certificate" in found["error"]["message"], "said so", found)
        same(server.seen, [], "nothing was sent")
        one.stop()
    c.judge()


# --- policy, versions ---


def case_guard(c):
    path = c.dir + ".yaml"
    with open(path, "w") as f:
        f.write('version: "1"\ndefault: deny\nallowlist: [echo]\n')

    def handle(server, request, s):
        if request.message["method"] == "tools/list":
            reply(s, result(request, {"tools": [{"name": "echo"}, {"name": "rm"}]}))
        else:
            reply(s, result(request))
    server = served(handle)
    c.listen(server.url(), "--profile", "guard", "--policy", path)
    client = c.client()
    answer = client.post(tool(1, "rm"))
    same((answer.status, answer.code()), (200, -31001), "a denied call")
    same(client.call(2)["id"], 2, "an allowed one")
    answer = client.post(ask(3, "tools/list"))
    body = answer.message()
    same([t["name"] for t in body["result"]["tools"]], ["echo"], "the list is filtered")
    same([r.message["params"]["name"] for r in server.seen
          if r.message and r.message.get("method") == "tools/call"], ["echo"], "what was sent")
    modern = Modern(c.place)
    same(modern.post(tool(1, "rm"), Mcp_Name="echo").code(), -32020, "a header that lies")
    same(modern.post(tool(1, "rm")).code(), -31001, "a denied one of " + MODERN)
    same(c.stop(), 1, "status 1")
    same(c.outcomes().get("denied"), 2, "receipts")
    c.judge(packs=2)


def case_gone(c):
    """Who leaves cancels in 2026-07-28, and not before."""
    gone = []

    def handle(server, request, s):
        name = request.message["params"].get("name")
        if name != "hold":
            reply(s, result(request))
            return
        s.settimeout(2)
        try:
            gone.append((request.headers.get("mcp-protocol-version"), s.recv(1) == b""))
        except TimeoutError:
            gone.append((request.headers.get("mcp-protocol-version"), False))
            reply(s, result(request))
        return False
    server = served(handle)
    c.listen(server.url())
    modern = Modern(c.place)
    conn = modern.send("POST", tool(1, "hold"))
    ok(soon(lambda: server.seen), "the server has it")
    conn.close()
    ok(soon(lambda: gone == [(MODERN, True)]), "its connection is closed", gone)
    same(modern.call(2)["id"], 2, "the next one")
    client = c.client()
    conn = client.send("POST", tool(1, "hold"))
    ok(soon(lambda: server.seen[-1].message.get("method") == "tools/call"), "one of before")
    conn.close()
    ok(soon(lambda: len(gone) == 2), "goes on", gone)
    same(gone[1], ("2025-06-18", False), "as if nothing was")
    same(client.call(3)["id"], 3, "so does its session")
    c.stop()
    same(c.outcomes(), {"forwarded": 3, "timeout:cancelled": 1}, "receipts")
    c.judge(packs=2)


def case_call_timeout(c):
    def handle(server, request, s):
        if request.message["params"]["name"] == "hold":
            threading.Event().wait(5)
        reply(s, result(request))
    c.listen(served(handle).url(), "--call-timeout", "1")
    client = c.client()
    answer = client.post(tool(1, "hold"))
    same((answer.status, answer.code()), (200, -31007), "a call that hangs")
    same(client.call(2)["id"], 2, "the session goes on")
    c.stop()
    same(sorted(r["outcome"] for r in c.receipts()), ["forwarded", "timeout"], "receipts")
    c.judge()


def case_batch(c):
    def handle(server, request, s):
        if isinstance(request.message, list):
            reply(s, [{"jsonrpc": "2.0", "id": m["id"], "result": {}} for m in request.message
                      if "id" in m])
        else:
            plain(server, request, s)
    c.listen(Server(handle).url())
    client = c.client("2025-03-26")
    found = client.post([tool(1), ask(None, "notifications/x"), tool(2)]).message()
    same([m["id"] for m in found], [1, 2], "a batch")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 2}, "receipts")
    c.judge()


def case_older(c):
    """A server of HTTP+SSE is found out."""
    box = {}

    def handle(server, request, s):
        if request.method == "GET":
            stream(s)
            box["s"] = s
            chunk(s, "event: endpoint\ndata: /post?x=1\n\n")
            threading.Event().wait(lab.HURRY)
        elif request.target.startswith("/post"):
            reply(s, b"", "202 Accepted")
            if "id" in request.message:
                event(box["s"], result(request, {"content": [], "protocolVersion": "2024-11-05"}))
        else:
            reply(s, b"", "405 Method Not Allowed")
    c.listen(Server(handle).url())
    client = c.client("2024-11-05")
    same(client.hello["result"]["protocolVersion"], "2024-11-05", "initialized")
    same(client.call(1)["id"], 1, "a call")
    same(client.close(), 200, "DELETE")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 1}, "one receipt")
    c.judge(packs=None)


# --- size ---


def case_large(c):
    """A long answer passes through bounded memory."""
    size = 1 << 30 if lab.SOAK else 64 << 20
    block = b"y" * (1 << 20)

    def handle(server, request, s):
        head = b'{"jsonrpc":"2.0","id":1,"result":{"s":"'
        if request.message["params"]["arguments"].get("events"):
            stream(s)
            chunk(s, b"data: " + head)
            for _ in range(size >> 20):
                chunk(s, block)
            chunk(s, b'"}}\n\n')
            s.sendall(b"0\r\n\r\n")
            return
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                  b"%d\r\n\r\n" % (len(head) + size + 3) + head)
        for _ in range(size >> 20):
            s.sendall(block)
        s.sendall(b'"}}')
    p = c.listen(served(handle).url(), "--max-message-bytes", str(2 << 30))
    watch = Watch(p.pid)
    for events in False, True:
        client = c.client()
        answer = client.post(tool(1, events=events))
        got = sum(piece.count(b"y") for piece in answer.pieces())
        same(got, size, f"{size >> 20} MiB {'in an event' if events else 'of JSON'}")
    watch.flat("in between")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 2}, "receipts")
    c.judge(packs=None)


run_cases(globals(), Case)
