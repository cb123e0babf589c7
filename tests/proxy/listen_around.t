#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP on both sides: ways around the record and the policy, and answers that cross.

    listen_around.t - [quick [CASE]]    a CASE runs only those whose names begin so

Afterwards every log and every pack verifies.
"""
import json
import socket
import threading

import lab
from lab import run_cases, tap
from web import (Case, Client, Cut, Modern, Server, all_at_once, ask, begin, chunk, event,
                 initialize, plain, reply, result, soon, stream, tool)

ok, same = tap.ok, tap.same


def served(handle):
    """A server that does what `handle` does with calls, and the usual with all else."""
    return Server(lambda server, request, s: begin(server, request, s)
                  or handle(server, request, s))


# --- around us ---


def case_bodies(c):
    """What is no POST goes past the policy: no message gets to the server that way."""
    path = c.dir + ".yaml"
    with open(path, "w") as f:
        f.write('version: "1"\ndefault: deny\nallowlist: [echo]\n')
    server = Server(plain)
    c.listen(server.url(), "--profile", "guard", "--policy", path)
    client = c.client()
    before = len(server.seen)
    for method, want in (("GET", 400), ("DELETE", 400), ("PUT", 405), ("PATCH", 405),
                         ("QUERY", 405), ("OPTIONS", 204)):
        answer = client.send(method, tool(1, "rm"), X_HTTP_Method_Override="POST").answer()
        same(answer.status, want, f"{method} with a body")
    conn = c.conn()
    conn.ask("GET", "/.well-known/x", tool(1, "rm"))
    same(conn.answer().status, 400, "GET of metadata with a body")
    conn = client.send("HEAD")
    same(conn.answer(is_head=True).status, 405, "HEAD")
    same(server.seen[before:], [], "the server heard of none")
    same(client.close(), 200, "DELETE without one")
    same(c.stop(), 0, "status 0")
    c.judge(packs=0)


def case_readings(c):
    """What a server could read in another way than we do does not get there."""
    server = Server(plain)
    c.listen(server.url())
    client = c.client()
    before = len(server.seen)
    for kind in ("charset=utf-7", "charset=UTF-16", 'charset="utf-7"', "Charset=utf-7",
                 "charset=utf-8; charset=utf-7", "charset*=utf-7''x", "charset =utf-7",
                 'x="; charset=utf-8"; charset=utf-7'):
        answer = client.post(tool(1), Content_Type="application/json; " + kind)
        same(answer.status, 400, kind)
    for headers in ({"Content-Encoding": "gzip"}, {"content-type": "application/json"},
                    {"mcp-session-id": "other"}, {"Connection": "mcp-session-id"},
                    {"Authorization": "a", "authorization": "b"}):
        same(client.post(tool(1), **headers).status, 400, str(headers))
    same(server.seen[before:], [], "the server heard of none")
    for kind in ("charset=utf-8", 'Charset="UTF-8"; x=y', "x=y"):
        answer = client.post(tool(1), Content_Type="application/json; " + kind)
        same(answer.status, 200, kind)
    same(client.post(tool(1), Content_Encoding="identity").status, 200, "identity")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 4}, "receipts")
    c.judge()


def case_redirects(c):
    """A client that follows one would not be seen any more."""
    def handle(server, request, s):
        where = ["Location: http://127.0.0.1:1/mcp"]
        if "x-odd" in request.headers:
            reply(s, b"there", "307 Temporary Redirect", "text/plain", *where)
        else:
            plain(server, request, s)
    c.listen(Server(handle).url())
    client = c.client()
    odd = {"X-Odd": "1"}
    answer = client.post(tool(1), **odd)
    same((answer.status, answer.headers.get("location"), answer.code()), (200, None, -31006),
         "a call")
    for method in "GET", "DELETE":
        answer = client.send(method, **odd).answer()
        same((answer.status, answer.headers.get("location")), (502, None), method)
    same(client.call(2)["id"], 2, "the next call")
    c.stop()
    same(c.outcomes(), {"timeout:server_exit": 1, "forwarded": 1}, "receipts")
    c.judge()


def case_odd(c):
    """A server that has answered is not taken for an older one."""
    def handle(server, request, s):
        if "x-odd" in request.headers:
            reply(s, b"no", "400 Bad Request", "text/plain")
        else:
            plain(server, request, s)
    server = Server(handle)
    c.listen(server.url())
    c.client()
    same(Client(c.place, **{"X-Odd": "1"}).post(initialize()).status, 400, "one gets what it asked for")
    same(c.client(Authorization="Bearer b").call(1)["id"], 1, "others are served")
    same(server.seen[-1].headers.get("authorization"), "Bearer b", "with their own headers")
    c.stop()
    c.judge(packs=None)


def case_odd_first(c):
    """Nor for the first word of the first client."""
    def handle(server, request, s):
        if len([r for r in server.seen if r.method == "POST"]) == 1:
            reply(s, b"no", "400 Bad Request", "text/plain")
        elif request.method == "GET":
            reply(s, b"no", "405 Method Not Allowed", "text/plain")
        else:
            plain(server, request, s)
    server = Server(handle)
    c.listen(server.url())
    Client(c.place).post(initialize())
    same(c.client(Authorization="Bearer b").call(1)["id"], 1, "the next is served")
    same(server.seen[-1].headers.get("authorization"), "Bearer b", "with its own headers")
    c.stop()
    c.judge(packs=None)


def case_unread(c):
    """A server that does not read: what waits for it is bounded, whoever sends it."""
    lazy, gone = socket.socket(), []
    lazy.bind(("127.0.0.1", 0))
    lazy.listen(64)
    c.listen(f"http://127.0.0.1:{lazy.getsockname()[1]}/mcp")
    body = json.dumps(tool(1, text="x" * (60 << 20))).encode()
    for n in range(6):
        gone.append(c.conn())
        gone[-1].ask("POST", "/mcp", body, {"Mcp-Session-Id": f"s{n}"})
    found = []
    for conn in gone:
        conn.socket.settimeout(1)
        try:
            found.append(conn.answer().status)
        except TimeoutError:
            found.append(None)
    same(sorted(found, key=str), [503, 503, None, None, None, None], "256 MiB wait, no more")
    lazy.close()
    for conn in gone:
        conn.close()
    c.stop()
    c.judge(packs=None)


def case_left(c):
    """A client that stops reading and then leaves does not stop its answer for good."""
    size = 12 << 20

    def handle(server, request, s):
        text = "x" * (size if request.message["params"]["name"] == "long" else 1)
        reply(s, result(request, {"content": [{"type": "text", "text": text}]}))
    c.listen(served(handle).url())
    client = c.client()
    conn = client.send("POST", tool(1, "long"))
    same(conn.answer().status, 200, "the answer begins")
    same(soon(lambda: c.receipts(), 1), False, "it is not read")
    conn.close()
    ok(soon(lambda: c.receipts()), "the client has gone: the rest is heard")
    same(client.call(2)["id"], 2, "the session goes on")
    c.stop()
    same(c.outcomes(), {"forwarded": 2}, "receipts")
    c.judge()


# --- answers that cross ---


def case_twice(c):
    """A second answer is none to another client's request of the same id."""
    asked = threading.Event()

    def handle(server, request, s):
        name = request.message["params"]["name"]
        if name == "patient":
            asked.set()
            soon(lambda: twice.is_set())
        answer = result(request, {"content": [{"type": "text", "text": name}]})
        stream(s)
        event(s, answer)
        if name == "hasty":
            soon(lambda: asked.is_set())
            event(s, answer)
        s.sendall(b"0\r\n\r\n")
        if name == "hasty":
            twice.set()
    twice = threading.Event()
    c.listen(served(handle).url(), "--store-results")
    first, second = Modern(c.place), Modern(c.place)
    hasty = first.send("POST", tool(1, "hasty"))
    patient = second.post(tool(1, "patient")).message()
    same(patient["result"]["content"][0]["text"], "patient", "who waits gets its own")
    same(len(list(hasty.answer().messages())), 2, "the other one gets both")
    c.stop()
    same({r["tool_name"]: r["result_content"]["content"][0]["text"] for r in c.receipts()},
         {"hasty": "hasty", "patient": "patient"}, "receipts have their own results")
    c.judge()


def case_interrupts(c):
    """A short answer comes whole while a long one is on its way, on one stream."""
    begun, go_on = threading.Event(), threading.Event()

    def handle(server, request, s):
        if request.message["params"]["name"] == "short":
            begun.wait(lab.HURRY)
            reply(s, result(request))
            threading.Timer(0.3, go_on.set).start()
            return
        text = json.dumps(result(request, {"content": [{"type": "text", "text": "x" * 300000}]}))
        stream(s)
        chunk(s, "data: " + text[:200000])
        threading.Timer(0.3, begun.set).start()
        go_on.wait(lab.HURRY)
        chunk(s, text[200000:] + "\n\n")
        s.sendall(b"0\r\n\r\n")
    c.listen(served(handle).url())
    conn = c.conn()
    conn.ask("GET", "/sse")
    blocks = conn.answer().blocks()
    place = next(blocks).split("data: ")[1]
    for message in initialize("2024-11-05"), tool(1, "long"), tool(2, "short"):
        other = c.conn()
        other.ask("POST", place, message)
        same(other.answer().status, 202, "it is taken")
    found = [json.loads(next(blocks).split("data: ", 1)[1])["id"] for _ in range(3)]
    same(sorted(found), [0, 1, 2], "all are answered")
    conn.close()
    c.stop()
    same(c.outcomes(), {"forwarded": 2}, "receipts")
    c.judge()


def case_durability(c):
    """What waits for the disk is not lost when the server has said it all."""
    def handle(server, request, s):
        name = request.message["params"]["name"]
        if name == "json":
            return reply(s, result(request))
        stream(s)
        event(s, ask(None, "notifications/message", data=1))
        if name == "dies":
            return False
        event(s, result(request))
        s.sendall(b"0\r\n\r\n")
    for word in "group", "strict":
        one = Case(f"{c.name}_{word}")
        one.listen(served(handle).url(), "--durability", word)
        client = one.client()
        same(client.hello["id"], 0, f"--durability {word}")
        found = all_at_once(10, lambda n: client.call(n, ("json", "events")[n % 2])["id"])
        same(found, list(range(10)), "all are answered")
        found = []
        try:
            for message in client.post(tool(11, "dies")).messages():
                found.append(message)
        except Cut:
            pass
        same([m.get("method", m.get("error", {}).get("code")) for m in found],
             ["notifications/message", -31006], "what was said before the server died")
        same(client.close(), 200, "DELETE")
        one.stop()
        same(one.outcomes(), {"forwarded": 10, "timeout:server_exit": 1}, "receipts")
        same(len(one.of("response_sent")), 11, "they were sent")
        one.judge()


run_cases(globals(), Case)
