#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients over HTTP in front of a server on stdio: assay mcp-proxy --listen … -- COMMAND.

    listen.t - [quick|soak [CASE]]    a CASE runs only those whose names begin so; soak: more
                                      kills

Afterwards every log and every pack verifies. HTTP on both sides is in listen_http.t, what
hostile clients do in listen_hostile.t.
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import lab
from lab import SOAK, WORK, left_over, memory, run_cases, tap
from web import (Case, Client, Conn, Cut, Modern, Server, all_at_once, ask, begin, initialize,
                 reply, result, soon, tool)

ok, same = tap.ok, tap.same

GOOD = {"forwarded": 1}


def kept(path):
    try:
        with open(path) as f:
            return [json.loads(line) for line in f]
    except FileNotFoundError:
        return []


def methods(path):
    return [m.get("method") for m in kept(path) if isinstance(m, dict)]


# --- sessions ---


def case_session(c):
    """From initialize to DELETE, and its pack."""
    c.listen("tools")
    client = c.client()
    ok(client.session and len(client.session) >= 32 and client.session.isalnum(),
       "a session has a name", client.session)
    same(client.hello["result"]["serverInfo"]["name"], "tools", "the server's own answer")
    other = c.client()
    ok(client.session != other.session, "another one another")
    answer = client.post(tool(1, x=7))
    same((answer.status, answer.kind, answer.message()["result"]["echo"]),
         (200, "application/json", {"x": 7}), "a call")
    same(answer.headers.get("mcp-session-id"), client.session, "with the session's name")
    answer = client.post(ask(None, "notifications/roots/list_changed"))
    same((answer.status, answer.body() in (b"", b"Accepted")), (202, True), "a notification: 202")
    same(client.call(1)["id"], 1, "an id again")
    same(client.close(), 200, "DELETE")
    ok(soon(lambda: len(c.packs()) == 1), "the pack is there at once", c.said)
    same(client.post(tool(2)).status, 404, "the session is no more")
    same(other.call(1, y=1)["result"]["echo"], {"y": 1}, "the other one is")
    same(c.stop(), 0, "SIGTERM: status 0")
    same([r["mcp_request_id"] for r in c.receipts()], [1, 1, 1], "a receipt a call")
    same(len({r["session_id"] for r in c.receipts()}), 2, "of two sessions")
    same({r["server_transport"] for r in c.receipts()}, {"stdio"}, "the server's transport")
    same({e["client_transport"] for e in c.of("session_start")}, {"streamable-http"},
         "the client's")
    same([c.told("end")[0][k] for k in ("calls", "complete", "exit")], [3, True, 0], "the end")
    c.judge(packs=2)


def case_unknown(c):
    c.listen("tools")
    stranger = Client(c.place)
    answer = stranger.post(tool(5))
    same((answer.status, answer.message()["id"]), (400, 5), "no session: 400, with the id")
    answer = stranger.post(tool(6), Mcp_Session_Id="00" * 16)
    same((answer.status, answer.code()), (404, -32001), "an unknown one: 404")
    same(stranger.send("GET", Mcp_Session_Id="nobody").answer().status, 404, "GET as well")
    same(stranger.send("GET").answer().status, 400, "and without one: 400")
    same(stranger.send("DELETE", Mcp_Session_Id="x" * 5000).answer().status, 404, "DELETE")
    client = c.client()
    for what, body, headers, want in (
            ("no JSON", b"{]", {}, (400, -32700)), ("no message", {"a": 1}, {}, (400, -32600)),
            ("an empty batch", [], {}, (400, -32600)), ("nothing", b"", {}, (400, -32700)),
            ("blanks", b" \r\n", {}, (400, -32700)),
            ("another type", tool(1), {"Content_Type": "text/plain"}, (415, -32000)),
            ("a version of the future", tool(1), {"MCP_Protocol_Version": "2031-01-01"},
             (400, -32000)),
            ("an Accept for pictures", tool(1), {"Accept": "image/png"}, (406, -32000))):
        answer = client.post(body, **headers)
        same((answer.status, answer.code()), want, f"refused: {what}")
    same(client.send("PUT", {}).answer().status, 405, "PUT")
    conn = c.conn()
    conn.ask("GET", "/elsewhere")
    same((conn.answer().status), 404, "another path")
    conn = c.conn()
    conn.ask("GET", "/health", headers={"Host": "any.example"})
    same(conn.answer().message(), {"status": "ok"}, "/health")
    same(client.call(1)["id"], 1, "the session lives")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), GOOD, "one receipt")
    c.judge()


def origin(server, request, s):
    """A server over HTTP that echoes; each session has its own name."""
    if begin(server, request, s, f"s{len(server.seen)}"):
        return
    time.sleep(0.05)
    reply(s, result(request, {"content": [], "echo": request.message["params"]["arguments"]}))


def same_ids(c, make, sessions):
    """Twenty clients, and each has the id 1."""
    def one(n):
        client = make(n)
        return [client.call(1, n=n, m=m)["result"]["echo"] for m in range(5)] + [
            client.call("1", n=n)["result"]["echo"]]
    found = all_at_once(20, one)
    wrong = [f for n, f in enumerate(found)
             if f != [{"n": n, "m": m} for m in range(5)] + [{"n": n}]]
    ok(not wrong, f"{c.name}: each client gets its own answers", wrong[:3])
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 120}, "a receipt a call")
    by = {}
    for r in c.receipts():
        by[r["session_id"]] = by.get(r["session_id"], 0) + 1
    same(len(by), sessions, "by session")
    same(sum(by.values()), 120, "all of them")
    c.judge(packs=sessions)


def case_same_id_child(c):
    c.listen("tools")
    same_ids(c, lambda n: c.client(), 20)


def case_same_id_share(c):
    c.listen("tools", "--share-child")
    same_ids(c, lambda n: c.client(), 20)


def case_same_id_http(c):
    c.listen(Server(origin).url())
    same_ids(c, lambda n: c.client(), 20)


def case_same_id_modern(c):
    """Without sessions: who it is says Authorization."""
    c.listen("tools")
    same_ids(c, lambda n: Modern(c.place, Authorization=f"Bearer {n % 4}"), 4)
    everything = b"".join(open(os.path.join(d, f), "rb").read()
                          for d, _, files in os.walk(c.dir) for f in files)
    ok(b"Bearer" not in everything, "no token in the evidence")


def case_same_id_modern_share(c):
    c.listen("tools", "--share-child")
    same_ids(c, lambda n: Modern(c.place, Authorization=f"Bearer {n % 4}"), 4)


def case_same_id_modern_http(c):
    c.listen(Server(origin).url())
    same_ids(c, lambda n: Modern(c.place, Authorization=f"Bearer {n % 4}"), 4)


def case_children(c):
    """One server a session, and none without one; or one for all."""
    c.listen("tools")
    clients = [c.client() for _ in range(3)]
    found = [x.call(1, "pid")["result"]["pid"] for x in clients]
    same(len(set(found)), 3, "each has its own server")
    clients[0].close()
    ok(soon(lambda: not os.path.exists(f"/proc/{found[0]}")), "which goes with it")
    ok(os.path.exists(f"/proc/{found[1]}"), "the others stay")
    same(c.stop(), 0, "status 0")
    c.judge(packs=3)
    shared = Case(c.name + "_share")
    shared.listen("tools", "--share-child")
    clients = [shared.client() for _ in range(3)]
    same(len({x.call(1, "pid")["result"]["pid"] for x in clients}), 1, "a server for all")
    same([x.hello["result"]["serverInfo"]["name"] for x in clients], ["tools"] * 3, "initialised")
    same(clients[0].close(), 200, "who leaves")
    same(clients[1].call(2)["id"], 2, "does not take it along")
    same(shared.stop(), 0, "status 0")
    shared.judge(packs=3)


# --- what the server says by itself ---


def answers_roots(c, flags, get):
    """A call that asks the client something before it is answered."""
    c.listen("tools", *flags)
    client = c.client()
    stream = client.send("GET").answer() if get else None
    call = client.send("POST", tool(1, "roots"))
    if get:
        same((stream.status, stream.kind), (200, "text/event-stream"), "GET")
    else:
        stream = call.answer()
        same(stream.kind, "text/event-stream", "the POST becomes a stream")
    messages = stream.messages()
    question = next(messages)
    same((question["method"], "id" in question), ("roots/list", True), "the server asks")
    answer = client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [7]}})
    same((answer.status), 202, "the client's answer: 202")
    last = call.answer().message() if get else next(messages)
    same((last["id"], last["result"]), (1, {"roots": {"roots": [7]}}), "then the call's own")
    same(client.close(), 200, "DELETE")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), GOOD, "one receipt")
    c.judge()


def case_roots_get(c):
    answers_roots(c, (), True)


def case_roots_post(c):
    answers_roots(c, (), False)


def case_roots_share(c):
    answers_roots(c, ("--share-child",), False)


def case_unheard(c):
    """What the server says while nobody listens is kept for who comes."""
    c.listen("tools")
    client = c.client()
    client.call(1, "tell", count=0, size=1)
    stream = client.send("GET").answer()
    client.post(tool(2, "tell", count=3, size=10)).message()
    found = stream.messages()
    same([next(found)["params"]["data"] for _ in range(3)], ["z" * 10] * 3, "on the stream")
    second = client.send("GET").answer()
    same(list(found), [], "a second stream ends the first one")
    client.post(tool(3, "tell", count=1, size=5)).message()
    same(next(second.messages())["params"]["data"], "z" * 5, "and has what comes")
    same(second.headers.get("x-accel-buffering"), "no", "nobody is to buffer it")
    same(c.stop(), 0, "status 0")
    same(list(second.messages()), [], "the end is the stream's end")
    c.judge()


def case_unheard_lost(c):
    """What nobody hears is kept up to 1 MiB; the rest is not said to have gone on."""
    c.listen("tools")
    client = c.client()
    answer = client.post(tool(1, "tell", count=30, size=100000), Accept="application/json")
    same(answer.message()["id"], 1, "the call is answered")
    found = client.send("GET").answer().messages()
    same([len(next(found)["params"]["data"]) for _ in range(10)], [100000] * 10, "some are kept")
    same(c.stop(), 0, "status 0")
    same(len(list(found)), 0, "and no more")
    same(len(c.of("notification_forwarded")), 11, "which is what is recorded")
    c.judge()


def progress(c, *flags):
    c.listen("tools", *flags)
    client, other = c.client(), c.client()
    stream, others = client.send("GET").answer(), other.send("GET").answer()
    answer = client.post(tool(1, "progress", {"progressToken": "same"}, count=3))
    same(answer.kind, "text/event-stream", "progress makes it a stream")
    found = list(answer.messages())
    same([m.get("method") for m in found], ["notifications/progress"] * 3 + [None],
         "progress, then the answer")
    same({m["params"]["progressToken"] for m in found[:3]}, {"same"}, "the client's token")
    found = list(other.post(tool(1, "progress", {"progressToken": "same"}, count=2)).messages())
    same(len(found), 3, "the other's are the other's")
    same(c.stop(), 0, "status 0")
    same((list(stream.messages()), list(others.messages())), ([], []), "and nowhere else")
    same(c.outcomes(), {"forwarded": 2}, "receipts")
    c.judge(packs=2)


def case_progress(c):
    progress(c)


def case_progress_share(c):
    progress(c, "--share-child")


def case_batch(c):
    """2025-03-26 has them."""
    c.listen("tools")
    client = c.client("2025-03-26")
    answer = client.post([tool(1, n=1), ask(None, "notifications/x"), tool(2, n=2),
                          ask(3, "tools/list")])
    found = [m for group in answer.messages()
             for m in (group if isinstance(group, list) else [group])]
    same(sorted(m["id"] for m in found), [1, 2, 3], "a batch is answered")
    same(client.post([ask(None, "notifications/x")] * 2).status, 202, "one of notifications: 202")
    same(c.stop(), 0, "status 0")
    same(sorted(r["mcp_request_id"] for r in c.receipts()), [1, 2], "a receipt for each call")
    c.judge()


# --- the older transport ---


def case_older(c):
    c.listen("tools")
    conn, other = c.conn(), c.conn()
    for x in conn, other:
        x.ask("GET", "/sse")
    blocks, others = conn.answer().blocks(), other.answer().blocks()
    first = next(blocks)
    same(first.split("\n")[0], "event: endpoint", "the endpoint comes first")
    path, path2 = first.split("data: ")[1], next(others).split("data: ")[1]

    def post(where, message):
        x = c.conn()
        x.ask("POST", where, message)
        return x.answer().status

    def hear(of):
        return json.loads(next(of).split("data: ")[1])
    same(post(path, initialize("2024-11-05")), 202, "a POST: 202")
    same(hear(blocks)["result"]["protocolVersion"], "2024-11-05", "the answer on the stream")
    post(path, ask(None, "notifications/initialized"))
    same((post(path, tool(1, a=1)), post(path2, tool(1, a=2))), (202, 202), "two clients")
    same((hear(blocks)["result"]["echo"], hear(others)["result"]["echo"]), ({"a": 1}, {"a": 2}),
         "each its own")
    same((post("/messages?sessionId=00", tool(1)), post("/messages", tool(1))), (404, 400),
         "no such session")
    conn.close()
    ok(soon(lambda: len(c.packs()) == 1), "the end of the stream is the session's")
    same(post(path, tool(2)), 404, "it is gone")
    same(c.stop(), 0, "status 0")
    same({e["client_transport"] for e in c.of("session_start")}, {"sse"}, "the transport")
    same(c.outcomes(), {"forwarded": 2}, "receipts")
    c.judge(packs=2)


# --- 2026-07-28 ---


def case_modern(c):
    c.listen("tools")
    one = Modern(c.place, Authorization="Bearer one")
    answer = one.post(tool(1, x=1))
    same((answer.status, answer.message()["result"]["echo"], "mcp-session-id" in answer.headers),
         (200, {"x": 1}, False), "a call without a session")
    pid = one.call(2, "pid")["result"]["pid"]
    same(one.call(3, "pid")["result"]["pid"], pid, "who comes again has the same server")
    two = Modern(c.place, Authorization="Bearer two")
    ok(two.call(1, "pid")["result"]["pid"] != pid, "another one another")
    Modern(c.place).call(1)
    for what, headers in (("another name", {"Mcp_Name": "pid"}),
                          ("another method", {"Mcp_Method": "tools/list"}),
                          ("no method", {"Mcp_Method": None}), ("no name", {"Mcp_Name": None}),
                          ("no version", {"MCP_Protocol_Version": None}),
                          ("another version", {"MCP_Protocol_Version": "2025-06-18"}),
                          ("bad base64", {"Mcp_Name": "=?base64?ZWNo?="})):
        answer = one.post(tool(9), **headers)
        found = answer.message()
        same((answer.status, found["error"]["code"], found["id"]), (400, -32020, 9),
             f"a header that lies: {what}")
    same(one.post(tool(4), Mcp_Name="=?base64?ZWNobw==?=").status, 200, "base64 is understood")
    same(one.post(tool(5), Mcp_Session_Id="left over").status, 200, "no session is asked for")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": 7}, "receipts of what went on, and of nothing else")
    same(len({r["session_id"] for r in c.receipts()}), 3, "a session for each identity")
    c.judge(packs=3)


def leave(c, make, *flags):
    """A client goes while its call is open."""
    path = c.dir + ".kept"
    c.listen("tools", "--shutdown-timeout", "1", *flags, argument=path)
    client = make()
    conn = client.send("POST", tool(1, "hold", {"progressToken": 5}))
    ok(soon(lambda: "tools/call" in methods(path)), "the server has it")
    conn.close()
    return client, path


def case_gone_modern(c, *flags):
    client, path = leave(c, lambda: Modern(c.place), *flags)
    ok(soon(lambda: "notifications/cancelled" in methods(path)), "the server is told",
       methods(path))
    found = [m for m in kept(path) if "method" in m]
    same(found[-1]["params"]["requestId"],
         [m for m in found if m["method"] == "tools/call"][0]["id"], "of that call")
    same(client.call(2)["id"], 2, "the next one")
    c.stop()
    same([(r["mcp_request_id"], r["outcome"]) for r in c.receipts() if r["outcome"] == "forwarded"],
         [(2, "forwarded")], "was answered")
    gone = [r for r in c.receipts() if r["mcp_request_id"] == 1]
    same([(r["outcome"], r["outcome_reason"]) for r in gone], [("timeout", "cancelled")],
         "the receipt says so")
    c.judge()


def case_gone_modern_share(c):
    case_gone_modern(c, "--share-child")


def case_gone_modern_late(c, *flags):
    """The server answers a call when it is cancelled: that is in the receipt."""
    c.listen("late", "--shutdown-timeout", "1", *flags)
    conn = Modern(c.place).send("POST", tool(1, "slow"))
    ok(soon(lambda: c.of("request_forwarded")), "the server has it")
    conn.close()
    ok(soon(c.receipts), "it answers")
    c.stop()
    same(c.outcomes(), {"forwarded:cancelled": 1}, "the receipt says both")
    same([e["type"] for e in c.events() if "call" in e],
         ["request_received", "request_forwarded", "call_cancelled", "response_received", "receipt"],
         "and so does the log: nobody was sent it")
    same(c.complete(), [True], "no call is lost")
    c.judge()


def case_gone_modern_late_share(c):
    case_gone_modern_late(c, "--share-child")


def case_gone_modern_late_group(c):
    case_gone_modern_late(c, "--durability", "group")


def case_gone_modern_at_once(c):
    """Who goes while the call waits for the disk: the server is told behind it."""
    path = c.dir + ".kept"
    c.listen("tools", "--durability", "strict", "--shutdown-timeout", "1", argument=path)
    all_at_once(40, lambda n: Modern(c.place).send("POST", tool(n, "hold")).close())
    ok(soon(lambda: len(c.of("request_forwarded")) == 40), "all have gone on")

    def of(method, where):
        return [where(m) for m in kept(path) if m.get("method") == method]
    ok(soon(lambda: sorted(of("notifications/cancelled", lambda m: m["params"]["requestId"]))
            == sorted(of("tools/call", lambda m: m["id"]))), "all are cancelled", kept(path))
    c.stop()
    same(c.outcomes(), {"timeout:cancelled": 40}, "receipts")
    c.judge()


def case_gone_modern_waiting(c):
    """Who goes while its call waits for a server that does not read has not called it."""
    c.listen("slow", "--shutdown-timeout", "1", argument="3")
    large = [Modern(c.place).send("POST", tool(n, "t", a="x" * 400_000)) for n in range(8)]
    ok(soon(lambda: c.of("request_forwarded")), "the server does not read them")
    time.sleep(0.5)
    for n in range(5):
        Modern(c.place).send("POST", tool(n, "t")).close()
    same([conn.answer().message()["id"] for conn in large], list(range(8)), "it answers them")
    c.stop()
    same(c.outcomes(), {"forwarded": 8}, "receipts")
    c.judge()


def case_gone_before(c):
    """Before that version it says nothing."""
    client, path = leave(c, lambda: c.client())
    time.sleep(0.3)
    same(client.call(2)["id"], 2, "the session goes on")
    ok("notifications/cancelled" not in methods(path), "nothing is cancelled")
    client.post(ask(None, "notifications/cancelled", requestId=1))
    ok(soon(lambda: "notifications/cancelled" in methods(path)), "but by saying so")
    c.stop()
    same(len(c.receipts()), 2, "receipts")
    c.judge()


def case_cancelled_too_soon(c):
    """What comes before its call, by another connection, cancels nothing. A server that is
    shared is not told of it."""
    path = c.dir + ".kept"
    c.listen("tools", "--share-child", argument=path)
    client = c.client()
    same(client.post(ask(None, "notifications/cancelled", requestId=1)).status, 202, "it is taken")
    same(client.call(1)["id"], 1, "the call is answered")
    same(c.stop(), 0, "status 0")
    ok("notifications/cancelled" not in methods(path), "the server was not told")
    same([e["type"] for e in c.events() if e.get("method") == "notifications/cancelled"],
         ["notification_received"], "which is what the log says")
    same(c.outcomes(), GOOD, "the call was not cancelled")
    c.judge()


# --- the flags of a session ---


def case_call_timeout(c):
    c.listen("tools", "--call-timeout", "1")
    client = c.client()
    began = time.monotonic()
    answer = client.post(tool(1, "hold"))
    same((answer.status, answer.code()), (200, -31007), "a call that hangs")
    ok(0.9 < time.monotonic() - began < 5, "is answered in time")
    same(client.call(2)["id"], 2, "the session goes on")
    c.stop()
    same({r["mcp_request_id"]: r["outcome"] for r in c.receipts()}, {1: "timeout", 2: "forwarded"},
         "receipts")
    c.judge()


def guard(c, make, *flags):
    path = c.dir + ".yaml"
    with open(path, "w") as f:
        f.write('version: "1"\ndefault: deny\nallowlist: [echo, pid]\n')
    c.listen("tools", "--profile", "guard", "--policy", path, *flags, argument=c.dir + ".kept")
    client = make()
    answer = client.post(tool(1, "hold"))
    same((answer.status, answer.code()), (200, -31001), "a denied call")
    same(client.call(2, n=2)["result"]["echo"], {"n": 2}, "an allowed one")
    found = client.post(ask(3, "tools/list")).message()["result"]["tools"]
    same([t["name"] for t in found], ["echo", "pid"], "the list is without the denied")
    again = make().post(ask(4, "tools/list")).message()["result"]["tools"]
    same(again, found, "in another session, too")
    same(c.stop(), 1, "status 1")
    same(len([n for n in c.told("note") if "the policy hides" in n["message"]]), 1,
         "which is said once for all of them")
    same({r["mcp_request_id"]: (r["outcome"], r["policy_verdict"]) for r in c.receipts()},
         {1: ("denied", "denied"), 2: ("forwarded", "allowed")}, "receipts")
    same([m["params"]["name"] for m in kept(c.dir + ".kept") if m.get("method") == "tools/call"],
         ["echo"], "the server has not seen it")
    c.judge()


def case_guard(c):
    guard(c, lambda: c.client())


def case_guard_share(c):
    guard(c, lambda: c.client(), "--share-child")


def case_guard_modern(c):
    guard(c, lambda: Modern(c.place))


def case_reload(c):
    """SIGHUP: for the sessions that are open, and for those to come."""
    path = c.dir + ".yaml"

    def write(text):
        with open(path, "w") as f:
            f.write(text)

    def reload(text):
        before, end = len(notes()), time.time() + lab.HURRY
        write(text)
        c.process.send_signal(signal.SIGHUP)
        while len(notes()) == before and time.time() < end:
            time.sleep(0.02)

    def notes():
        return [s["message"] for s in c.told("note") if "policy" in s["message"]]

    write('version: "1"\ndefault: deny\nallowlist: [echo]\n')
    c.listen("tools", "--profile", "guard", "--policy", path)
    first = c.client()
    ok("result" in first.call(1), "allowed at first")
    reload('version: "1"\ndefault: allow\ndenylist: [echo]\n')
    same([client.post(tool(2, "echo")).code() for client in (first, c.client())],
         [-31001, -31001], "then denied: in an old session, in a new one")
    reload("version: [")
    same(c.client().post(tool(3, "echo")).code(), -31001, "a file that is none changes nothing")
    ok("stays as it was" in notes()[-1], "and that is said", notes())
    same(c.stop(), 1, "status 1")
    c.judge(packs=3)


def case_guard_header(c):
    """The policy asks the body, whatever a header says."""
    path = c.dir + ".yaml"
    with open(path, "w") as f:
        f.write('version: "1"\ndefault: deny\nallowlist: [echo]\n')
    c.listen("tools", "--profile", "guard", "--policy", path)
    answer = Modern(c.place).post(tool(1, "hold"), Mcp_Name="echo")
    same((answer.status, answer.code()), (400, -32020), "an allowed name in the header")
    answer = c.client().post(tool(1, "hold"), Mcp_Name="echo", Mcp_Method="tools/call")
    same(answer.code(), -31001, "and where headers are not looked at")
    c.stop()
    c.judge(packs=None)


def case_durability(c):
    for word in "group", "strict":
        one = Case(f"{c.name}_{word}")
        one.listen("tools", "--durability", word)
        client = one.client()
        found = all_at_once(10, lambda n: client.call(n, n=n)["result"]["echo"])
        same(found, [{"n": n} for n in range(10)], f"--durability {word}")
        same(one.stop(), 0, "status 0")
        same(one.outcomes(), {"forwarded": 10}, "receipts")
        one.judge()


def case_block(c):
    """Evidence that cannot be written: nothing passes."""
    if os.system("unshare -m true 2>/dev/null"):
        tap.skip("--on-evidence-failure block", "no mounts here")
        return
    os.makedirs(c.dir)
    c.inside = ["unshare", "-m", "sh", "-c",
                f'mount -t tmpfs -o size=1m none {c.dir} && exec "$@"', "sh"]
    path = WORK + "/block.kept"
    c.listen("tools", "--on-evidence-failure", "block", argument=path)
    client = c.client()
    same(client.call(1)["id"], 1, "a call")
    with open(f"/proc/{c.process.pid}/root{c.dir}/filler", "wb", 0) as f:
        try:
            while f.write(b"x" * 512):
                pass
        except OSError:
            pass  # full, as it should be
    found = [client.call(n, x="x" * 20000) for n in range(2, 12)]
    same({m["error"]["code"] if "error" in m else 0 for m in found[5:]}, {-31005},
         "a full disk: calls are refused")
    seen = methods(path).count("tools/call")
    client.call(20)
    same(methods(path).count("tools/call"), seen, "which the server does not see")
    same(c.stop(), 2, "status 2")
    same(left_over(), [], "nobody is left")


def case_pass(c):
    """Evidence that cannot be written: all passes, and that it is missing is written."""
    os.mkdir(c.dir, 0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", c.dir]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        tap.skip("--on-evidence-failure pass", "no tmpfs can be mounted")
        return
    try:
        fill_and_pass(c)
    finally:
        subprocess.run(["umount", "-l", c.dir], check=True)


def fill_and_pass(c):
    c.listen("tools", "--no-auto-pack")
    clients = [c.client() for _ in range(8)]

    def calls(first):
        return all_at_once(8, lambda n: [clients[n].call(i, n=n)["result"]["echo"]["n"]
                                         for i in range(first, first + 50)])
    same(calls(100), [[n] * 50 for n in range(8)], "eight clients")
    with open(c.dir + "/filler", "wb", 0) as f:
        try:
            while f.write(b"x" * 512):
                pass
        except OSError:
            pass  # full, as it should be
    same(calls(200), [[n] * 50 for n in range(8)], "a full disk: all are answered")
    os.unlink(c.dir + "/filler")
    same(calls(300), [[n] * 50 for n in range(8)], "there is room again")
    same(c.stop(), 2, "status 2: evidence is missing")
    got = [r["mcp_request_id"] for r in c.receipts() if r["outcome"] == "forwarded"]
    same([got.count(i) for i in (100, 149, 301, 349)], [8] * 4, "receipts before and after")
    ok(got.count(220) < 8 and sum(e["lost"] for e in c.of("gap")) > 0,
       "what could not be written is counted")
    done = lab.assay("log", "verify", "--audit-dir", c.dir)
    same(done.returncode, 0, f"the log is sound: {done.stdout}")


def case_kill(c):
    """Whenever we are killed: whoever has an answer has a receipt."""
    rng = random.Random(11)
    rounds, answered = 50 if SOAK else 5, []
    for n in range(rounds):
        c.listen("tools", *["--share-child"] * (n % 2))

        def drive(which):
            first = (n * 10 + which) * 10000
            try:
                client = c.client()
                for i in range(first, first + 10000):
                    client.call(i)
                    answered.append(i)
            except (OSError, EOFError, Cut, KeyError, IndexError, ValueError):
                return  # killed
        threads = [threading.Thread(target=drive, args=(which,)) for which in range(6)]
        for t in threads:
            t.start()
        before = len(answered)
        if n % 4:  # one in four dies while its sessions begin
            soon(lambda: len(answered) > before + 40)
        time.sleep(rng.random() * 0.3)
        c.process.kill()
        c.process.wait()
        for t in threads:
            t.join()
    same(left_over(), [], f"{rounds} kills: no server survives")
    done = lab.assay("proof-pack", "--recover", "--audit-dir", c.dir)
    ok(done.returncode in (0, 1), "recovery", done.returncode, done.stderr)
    got = {r["mcp_request_id"] for r in c.receipts() if r["outcome"] == "forwarded"}
    same([i for i in answered if i not in got], [],
         f"each of {len(answered)} answered calls has its receipt")
    ok(len(answered) > 20 * rounds, "there were answers", len(answered))
    ok(not any(c.complete()), "no killed session counts as complete")
    done = lab.assay("log", "verify", "--audit-dir", c.dir)
    same(done.returncode, 0, f"the log is sound: {done.stdout}")


# --- the end ---


def case_terminate(c):
    """SIGTERM with open calls: they have their time, then an answer."""
    c.listen("tools", "--shutdown-timeout", "1")
    client = c.client()
    held = client.send("POST", tool(1, "hold"))
    other = c.client()
    roots = other.send("POST", tool(2, "roots")).answer().messages()
    question = next(roots)
    c.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    try:
        late = Conn(c.place)
        late.ask("POST", "/mcp", initialize())
        refused = late.answer().status == 503
    except (OSError, EOFError):
        refused = True
    ok(refused, "nobody new is let in")
    answer = held.answer()
    same((answer.status, answer.message().get("error", {}).get("code")), (200, -31006),
         "an open call is answered with an error")
    same(question["method"], "roots/list", "so is one that asked")
    same(list(roots)[-1]["error"]["code"], -31006, "on its stream")
    status, seconds = lab.wait(c.process)
    ok(status == 2 and seconds < 5, "status 2: not complete", status, seconds)
    same({r["mcp_request_id"]: r["outcome"] for r in c.receipts()}, {1: "timeout", 2: "timeout"},
         "receipts")
    same(c.complete(), [False] * 2, "the sessions are not complete")
    c.judge(packs=2)


def case_terminate_many(c):
    """Many sessions end at once: first their ends, then their packs, many at a time."""
    c.listen("tools", "--share-child")
    clients = [c.client() for _ in range(48)]
    for n, client in enumerate(clients):
        client.call(1, n=n)
    same(c.stop(), 0, "SIGTERM: status 0")
    same(len(c.of("session_end")), 48, "all have ended")
    notes = []
    for pack in c.packs():
        with open(pack + "/log_checkpoint") as f:
            notes.append(f.read())
    ok(len(set(notes)) <= 16, "the packs have few checkpoints", len(set(notes)))
    with open(c.dir + "/log/checkpoints") as f:
        made = f.read().count("\u2014 ")
    ok(made <= 24, "the log has few", made)
    c.judge(packs=48)


def case_terminate_few_files(c):
    """Sessions that have ended wait for their packs without a descriptor each."""
    if not shutil.which("prlimit"):
        tap.skip("few files", "prlimit is not installed")
        return
    c.inside = ["prlimit", "--nofile=128:128"]
    c.listen("tools", "--share-child")
    for n in range(150):
        c.client().call(1, n=n)
        if n % 50 == 49:
            time.sleep(2)  # who idles has no file open, either
    same(c.stop(), 0, "SIGTERM: status 0")
    same(len(c.of("session_end")), 150, "all have ended")
    c.judge(packs=150)


def case_interrupt(c):
    c.listen("tools")
    clients = [c.client() for _ in range(3)]
    same([x.call(1)["id"] for x in clients], [1] * 3, "three sessions")
    same(c.stop(signal.SIGINT), 130, "SIGINT: status 130")
    same(c.complete(), [True] * 3, "all complete")
    c.judge(packs=3)


def case_twice(c):
    """A second signal does not wait."""
    path = c.dir + ".kept"
    c.listen("tools", "--shutdown-timeout", "60", argument=path)
    client = c.client()
    held = client.send("POST", tool(1, "hold"))
    ok(soon(lambda: "tools/call" in methods(path)), "a call is open")
    c.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    ok(c.process.poll() is None, "it waits for the call")
    c.process.send_signal(signal.SIGTERM)
    status, seconds = lab.wait(c.process)
    ok(status == 2 and seconds < 5, "and after a second signal no more", status, seconds)
    held.close()
    same([r["outcome"] for r in c.receipts()], ["timeout"], "the receipt")
    c.judge()


def case_again(c):
    """Signals that go on until it is gone do not cut off its last signature."""
    def nag(p):
        while p.poll() is None:
            p.send_signal(signal.SIGTERM)
            time.sleep(0.0003)
        return p.returncode

    statuses = []
    for n in range(6):
        c.listen("tools")
        c.client().call(1)
        statuses.append(nag(c.process))
        c.ear.join(lab.HURRY)
    same(statuses, [0] * 6, "it ends as after one")
    c.judge(packs=6)


def case_stubborn(c):
    """A server that neither EOF nor SIGTERM ends."""
    c.listen("stubborn")
    client = Client(c.place)
    client.session = client.post(initialize()).headers["mcp-session-id"]
    same(client.post(ask(1, "ping", n=1)).message()["result"]["echo"], {"n": 1}, "a call")
    client.close()
    same(c.stop(), 0, "status 0")
    c.judge(packs=None)


def case_death(c):
    """The server dies with calls open."""
    c.listen("tools")
    client, other = c.client(), c.client()
    held = client.send("POST", tool(7, "hold"))
    stream = client.send("GET").answer()
    answer = client.post(tool(8, "die"))
    same((answer.status, answer.code()), (200, -31006), "the call that killed it")
    same(held.answer().code(), -31006, "and the one that waited")
    same(list(stream.messages()), [], "the stream ends")
    ok(soon(lambda: client.post(tool(3)).status == 404), "the session is over")
    same(other.call(1)["id"], 1, "the other one is not")
    c.stop()
    same({r["mcp_request_id"]: (r["outcome"], r["outcome_reason"]) for r in c.receipts()},
         {7: ("timeout", "server_exit"), 8: ("timeout", "server_exit"), 1: ("forwarded", None)},
         "receipts")
    same(sorted(c.complete()), [False, True], "one session is not complete")
    c.judge(packs=2)


def case_half_a_line(c):
    """The server dies in the middle of one, which is no message."""
    for flags in ((), ("--share-child",)):
        c.listen("tools", *flags)
        for saying, times in (('{"jsonrpc":"2.0","id":8,"resu', 1), ("no JSON\n\n", 2),
                              ('{"jsonrpc":"2.0","id":8,"result":"', 6000)):
            client = c.client()
            stream = client.send("GET").answer() if not flags else None
            answer = client.post(tool(8, "die", saying=saying, times=times))
            try:
                found = list(answer.messages())
            except Cut:  # it was too long to wait for its end
                found = None
            if times > 1000 and not flags:
                same(found, None, "a long one is cut")
            else:
                same([m["error"]["code"] for m in found], [-31006], "all that the client is told")
            if stream:
                same(list(stream.messages()), [], "nothing on its stream")
        c.stop()
        noise = [s for s in c.told("note") if "no message" in s["message"]]
        ok(noise, "it is said", c.said)
        if not flags:
            same([e["kind"] for e in c.of("message_received")], ["invalid"] * 6, "it is recorded")
            same(c.of("message_forwarded"), [], "and not sent on")
    same(c.outcomes(), {"timeout:server_exit": 6}, "receipts")
    c.judge(packs=None)


def case_latin(c):
    """An answer that only a strict reader cannot read goes on as it is."""
    c.listen("tools", "--shutdown-timeout", "1")
    client = c.client()
    said = client.send("POST", tool(8, "latin")).file
    ok(any(b"caf\xe9" in line for line in iter(said.readline, b"")), "as it came")
    same(client.call(9)["id"], 9, "the next")
    c.stop()
    c.judge(packs=None)


def case_restart(c):
    """A shared server that dies is started again, later each time."""
    c.listen("tools", "--share-child")
    client, other = c.client(), c.client()
    pid = client.call(1, "pid")["result"]["pid"]
    held = other.send("POST", tool(1, "hold"))
    ok(soon(lambda: len(c.of("request_forwarded")) >= 2 or len(c.of("request_received")) >= 6),
       "a call is open")
    times = []
    for n in range(3):
        same(client.post(tool(10 + n, "die")).code(), -31006, "it dies")
        began = time.monotonic()
        found = client.call(20 + n, "pid")["result"]["pid"]
        times.append(time.monotonic() - began)
        ok(found != pid, "another one answers", found)
        pid = found
    ok(all(0.2 * 2 ** n < t < 10 for n, t in enumerate(times)), "after a pause that grows", times)
    same(held.answer().code(), -31006, "what the other one waited for is lost")
    same(other.call(2, n=2)["result"]["echo"], {"n": 2}, "its session is not")
    c.stop()
    same(c.outcomes(), {"forwarded": 5, "timeout:server_exit": 4}, "receipts")
    ends = [(e["session"], e["reason"], e["status"]) for e in c.of("server_ended")]
    sessions = [e["session"] for e in c.of("session_start")]
    same(sorted(ends), sorted((s, "exit", 3) for s in sessions * 3),
         "the log of each session says each end, whatever it had open")
    c.judge(packs=2)


def case_cut(c):
    """An answer that is longer than it may be: its reader sees that it has no end."""
    c.listen("tools", "--max-message-bytes", str(1 << 20))
    conn = c.client().send("POST", tool(1, "big", mib=2))
    found = b""
    while (piece := conn.socket.recv(1 << 20)):
        found += piece
    ok(b"yyyy" in found and not found.endswith(b"0\r\n\r\n"), "cut", len(found), found[-60:])
    ok(b"-31006" not in found, "and nothing is put into the half of it")
    same(c.stop(), 2, "status 2")
    same(len(c.of("message_cut")), 1, "recorded")
    c.judge(packs=None)


def case_missing(c):
    """A command that is not there, an address that is taken, and one that is our own."""
    c.listen("tools")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        own = f"127.0.0.1:{s.getsockname()[1]}"
    for flags, words in ((["--listen", f"127.0.0.1:{c.place[1]}", "--", "true"], "in use"),
                         (["--listen", "0.0.0.0:0", "--", "true"], "--listen-any"),
                         (["--listen", "nowhere", "--", "true"], "--listen"),
                         (["--share-child", "--", "true"], "--listen"),
                         (["--listen", "127.0.0.1:0", "--", "/no/such/server"], "cannot start"),
                         (["--listen", "127.0.0.1:0", "--", "no-such-server"], "cannot start"),
                         (["--listen", "127.0.0.1:0", "--", "/etc/passwd"], "cannot start"),
                         (["--listen", own, "--upstream-url", f"http://{own}/mcp"], "ourselves"),
                         (["--listen", "127.0.0.1:0", "--tls-cert", "/x", "--", "true"], "tls-key"),
                         (["--listen", "127.0.0.1:0", "--share-child", "--upstream-url",
                           "http://h/"], "--share-child"),
                         (["--listen", "127.0.0.1:0", "--allow-origin", "x", "--", "true"],
                          "--allow-origin")):
        p = lab.assay("mcp-proxy", "--audit-dir", c.dir + "_2", *flags)
        ok(p.returncode == 3 and words in p.stderr.decode(), f"exit 3: {flags}", p.returncode,
           p.stderr)
    same(c.stop(), 0, "status 0")
    c.judge(packs=0)


# --- many ---


def case_abandoned(c):
    """Sessions that nobody ends."""
    count = 2000 if lab.SOAK else 300
    c.listen(["sh", "-c", 'read x; echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":0,\\"result\\":{}}"; '
              "while read x; do :; done"])
    sizes = []
    for n in range(count):
        Client(c.place).post(initialize())
        if n % (count // 4) == count // 4 - 1:
            sizes.append(memory(c.process.pid))
    servers = [name for _, name in left_over(0) if name == "sh"]
    ok(200 < len(servers) < 256 + 32, "256 servers at once, and those that end", len(servers))
    ok(lab.SANITIZED or sizes[-1] < lab.MEMORY, f"{count} sessions: memory", sizes)
    same(c.stop(), 0, "status 0")
    same(len(c.complete()), count, "every session has its end")
    c.judge(packs=0)


def settled(pid):
    """The memory of a process that has nothing more to do: a worker may still be at it."""
    sizes = []
    for _ in range(10):
        sizes.append(memory(pid))
        time.sleep(0.05)
    return min(sizes)


def case_abandoned_share(c):
    count = 3000 if lab.SOAK else 600
    c.listen("tools", "--share-child")
    sizes = []
    for n in range(4):
        for _ in range(count // 4):
            client = Client(c.place)
            client.session = client.post(initialize()).headers["mcp-session-id"]
            client.close()
        sizes.append(settled(c.process.pid))
    ok(lab.SANITIZED or sizes[-1] - sizes[1] < 2 << 10, "opened and closed: memory is flat", sizes)
    same(c.stop(), 0, "status 0")
    same(len(c.complete()), count, "every session has its end")
    c.judge(packs=0)


def receipts_open(pid):
    """Of how many sessions the receipts file is open."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += "/receipts/" in os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            pass
    return count


def case_quiet(c):
    """Sessions that nobody asks for anything keep little, and go on where they stopped."""
    count, most = 150, 0
    p = c.listen("tools", "--share-child")
    clients = []
    for n in range(count):
        clients.append(c.client())
        clients[-1].call(1)
        most = max(most, receipts_open(p.pid))
    ok(0 < most <= 128 + 1, "few have all that they would need next", most)
    ok(soon(lambda: receipts_open(p.pid) == 0), "and soon none has")
    same([x.call(2)["id"] for x in clients[::10]], [2] * (count // 10), "they go on")
    same(c.stop(), 0, "status 0")
    same(c.outcomes(), {"forwarded": count + count // 10}, "a receipt for each")
    c.judge(packs=None)


run_cases(globals(), Case)
