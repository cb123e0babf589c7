#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What assay mcp-proxy does between clients and servers of every kind.

    cases.t - [soak]    soak: larger messages, more kills

Each case has an audit directory of its own; afterwards its log and its packs verify and
no process is left. A word after that runs only the cases whose names begin with it.
"""
import hashlib
import json
import os
import pty
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime

sys.dont_write_bytecode = True
from lab import *  # noqa: E402,F403
from web import soon  # noqa: E402


# --- ids ---


def case_same_id_twice(c):
    data = call(1, "first", {"n": 1}) + call(1, "second", {"n": 2})
    status, out, _ = c.run(data, "fifo", "--store-results", argument="2")
    tap.same(status, 0, "two calls in flight with the same id: status")
    tap.same(len(out.splitlines()), 2, "two answers")
    got = {r["tool_name"]: r["result_content"]["n"] for r in c.receipts()}
    tap.same(got, {"first": {"n": 1}, "second": {"n": 2}}, "the oldest is answered first")
    c.judge()


def case_number_and_string(c):
    data = call(1, "number", {"n": 1}) + call('"1"', "string", {"n": 2})
    c.run(data, "swap", "--store-results", argument="2")
    got = {r["tool_name"]: (r["result_content"]["n"], r["mcp_request_id"])
           for r in c.receipts()}
    tap.same(got, {"number": ({"n": 1}, 1), "string": ({"n": 2}, "1")},
             "ids 1 and \"1\" are two")
    c.judge()


def case_both_sides_same_id(c):
    p = c.start("asks", "--store-results")
    p.stdin.write(call(1, "t"))
    asked = json.loads(read_line(p))
    tap.same(asked["method"], "roots/list", "the server asks under the client's id")
    p.stdin.write(b'{"jsonrpc":"2.0","id":1,"result":{"roots":["r"]}}\n')
    answer = json.loads(read_line(p))
    tap.same(answer["result"], {"roots": {"roots": ["r"]}}, "and answers the call afterwards")
    tap.same(end(p)[0], 0, "status")
    tap.same([r["result_content"] for r in c.receipts()], [{"roots": {"roots": ["r"]}}],
             "the call has the server's answer, not the client's")
    c.judge()


def case_batch(c):
    many = [json.loads(call(n, f"t{n}", {"n": n})) for n in range(100)]
    data = json.dumps(many).encode() + b"\n"
    status, out, _ = c.run(data, "echo")
    tap.same(status, 0, "a batch of 100: status")
    tap.same(len(json.loads(out)), 100, "100 answers in one line")
    tap.same(sorted(r["seq"] for r in c.receipts()), list(range(100)), "100 receipts")
    batch = [(e["tool"], e["batch"]) for e in c.events()
             if e["type"] == "request_forwarded" and "tool" in e]
    tap.same(batch, [(f"t{n}", n) for n in range(100)], "each with its index")
    c.judge()


def case_many_in_flight(c):
    count = 10000
    data = b"".join(call(n, "t", {"n": n}) for n in range(count))
    status, out, err = c.run(data, "swap", argument=str(count), timeout=HURRY * 2)
    tap.same(status, 0, "10,000 calls in flight: status")
    tap.same([json.loads(line)["id"] for line in out.splitlines()],
             list(range(count))[::-1], "all answered, the last one first")
    receipts = c.receipts()
    tap.same(len({r["mcp_request_id"] for r in receipts}), count, "a receipt for each")
    tap.ok(all(r["outcome"] == "forwarded" for r in receipts), "each answered")
    c.judge()


def case_much_is_new(c):
    """Much that is new does not wait for the second to end: it is signed at once."""
    many = 12288
    status, _, _ = c.run(b"".join(call(n, "t") for n in range(20000)), "echo",
                         timeout=HURRY * 2)
    tap.same(status, 0, "100,000 events: status")
    events = c.events()
    ends = [e["seq"] for e in events if e["type"] == "session_end"][0]
    with open(c.dir + "/log/checkpoints", encoding="utf-8") as f:
        sizes = [int(note.split("\n")[1]) for note in f.read().split("\n\n")[::2] if note]
    times = [datetime.fromisoformat(events[n - 1]["ts"].replace("Z", "+00:00"))
             for n in sizes if n <= ends]
    tap.ok(any(b - a >= many and (t - s).total_seconds() < 0.9
               for a, b, s, t in zip(sizes, sizes[1:], times, times[1:])),
           "checkpoints within a second", sizes)
    c.judge()


def case_too_many_in_flight(c):
    if not SOAK:
        return
    count = 65536 + 10
    p = c.start("silent", "--shutdown-timeout", "1")
    p.stdin.write(b"".join(call(n) for n in range(count)))
    status, _, err = end(p, HURRY * 4)
    tap.same(status, 2, "more in flight than can be told apart: status")
    tap.same(sum(e["lost"] for e in c.events() if e["type"] == "gap"), 10, "counted as a gap")
    c.judge()


def case_strange_ids(c):
    ids = ["9007199254740993", "-9007199254740993", "1e3", "1.5", '"\\ud800"', '""',
           '"\\u0031"', "123456789012345678901234567890", '"' + "x" * 5000 + '"']
    data = b"".join(call(i, f"t{n}") for n, i in enumerate(ids))
    status, out, _ = c.run(data, "echo")
    tap.same(status, 0, "strange ids: status")
    tap.same(len(out.splitlines()), len(ids), "all answered")
    got = c.receipts()
    tap.same([r["outcome"] for r in got], ["forwarded"] * len(ids), "each call has its answer")
    tap.same(got[0]["mcp_request_id"], "9007199254740993", "a large id is kept as its text")
    c.judge()


def case_no_id(c):
    status, _, _ = c.run(call(None, "quiet") + call(1, "loud"), "echo")
    got = {r["tool_name"]: (r["outcome"], r["outcome_reason"], r["mcp_request_id"])
           for r in c.receipts()}
    tap.same(got, {"quiet": ("timeout", "no_id", None), "loud": ("forwarded", None, 1)},
             "a tools/call without an id has a receipt")
    tap.ok(status in (0, 2), "status", status)
    c.judge()


def case_long_tool_name(c):
    name = "n" * (20 << 10)
    status, _, _ = c.run(call(1, name), "echo")
    tap.same(status, 0, "a tool name of 20 KiB: status")
    tap.same([r["outcome"] for r in c.receipts()], ["forwarded"], "has its receipt")
    tap.ok(all(len(e.get("tool", "")) <= 260 for e in c.events()), "events stay small")
    c.judge()


# --- bytes ---


def both_ways(c, there, back, flags=(), packs=None, status=0):
    """`there` and `back` cross as they are."""
    kept, told = c.dir + ".in", c.dir + ".out"
    with open(told, "wb") as f:
        f.write(back)
    got, out, err = c.run(there, "tee", *flags, argument=f"{kept},{told}")
    with open(kept, "rb") as f:
        seen = f.read()
    tap.ok(seen == there, f"{c.name}: the server reads what was sent", seen[:300])
    tap.ok(out == back, f"{c.name}: the client reads what was said", out[:300])
    tap.same(got, status, f"{c.name}: status")
    c.judge(packs)


def case_bytes_odd_lines(c):
    odd = (b'{"jsonrpc":"2.0","method":"ping","id":1}\r\n' b"\n\n\r\n" b"c is no JSON\n"
           b"\xff\xfe\x80 not UTF-8\n" b"\0\0\n" b'{"a":9007199254740993,"a":1e400}\n'
           b'  {"jsonrpc": "2.0", "method":"x"}  \n' b"[]\n" b"last line without newline")
    both_ways(c, odd, odd[::-1], packs=0)
    kinds = [e["kind"] for e in c.events() if e.get("dir") == "c2s"]
    tap.ok("invalid" in kinds and "request" in kinds, "recorded as what they are", kinds)


def case_bytes_numbers(c):
    line = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",'
            b'"arguments":{"n":9007199254740993,"f":1.10,"a":1,"a":2,"e":1E+2}}}\n')
    kept, told = c.dir + ".in", c.dir + ".out"
    with open(told, "wb") as f:
        f.write(b'{"jsonrpc":"2.0","method":"x"}\n')
    c.run(line, "tee", "--shutdown-timeout", "1", argument=f"{kept},{told}")
    with open(kept, "rb") as f:
        tap.same(f.read(), line, "large integers and duplicate members are not touched")
    tap.ok(c.receipts()[0]["arguments_hash"].startswith("raw-sha256:"),
           "and hashed as they are")
    c.judge()


def case_bytes_random(c):
    rng = random.Random(4711)
    noise = rng.randbytes(3 << 20)
    both_ways(c, noise, noise[::-1] + b"\n", packs=0)


def case_bytes_line_lengths(c):
    around = [n + d for n in (1, 4096, 65536, 131072, 262144) for d in (-1, 0, 1)]
    text = b"".join(b"x" * n + b"\n" for n in around)
    both_ways(c, text, text, packs=0)


def case_chatty_server(c):
    status, out, _ = c.run(call(1), "chatty")
    tap.ok(out.startswith(b"Server starting...\nc is for chatty\n\xff\xfe no UTF-8\n\n"),
           "log lines on stdout pass", out)
    tap.same(status, 0, "a chatty server: status")
    tap.same([r["outcome"] for r in c.receipts()], ["forwarded"], "the call has its receipt")
    c.judge()


def case_nesting(c):
    deep = b"[" * 10000 + b"]" * 10000
    line = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deep",'
            b'"arguments":{"a":' + deep + b'}}}\n')
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"x":' + deep + b'}}'
    status, out, _ = c.run(line, "raw", argument=answer.decode())
    tap.same(status, 0, "nesting of 10,000: status")
    tap.ok(out == answer + b"\n", "crosses as it is")
    got = c.receipts()
    tap.same([r["outcome"] for r in got], ["forwarded"], "has its receipt")
    if got:
        tap.same(got[0]["arguments_hash"],
                 "raw-sha256:" + hashlib.sha256(b'{"a":' + deep + b"}").hexdigest(),
                 "arguments hashed as they are")
        tap.same(got[0]["result_hash"],
                 "raw-sha256:" + hashlib.sha256(b'{"x":' + deep + b"}").hexdigest(),
                 "the result, too")
    c.judge()


def case_many_values(c):
    """More values in one message than an index holds."""
    count = 6_000_000
    line = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wide",'
            b'"arguments":[' + b"1," * count + b'1]}}\n')
    p = c.start("raw", argument='{"jsonrpc":"2.0","id":1,"result":{}}')
    watch = Watch(p.pid)
    out, _ = p.communicate(line, timeout=HURRY)
    tap.same(p.returncode, 0, "six million values: status")
    watch.flat("six million values")
    tap.same([r["outcome"] for r in c.receipts()], ["forwarded"], "have their receipt")
    c.judge()


def case_many_members(c):
    """As many members as are still looked at one by one."""
    names = ",".join(f'"k{n:07}":{n}' for n in range(950_000, 0, -1))
    line = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wide",'
            b'"arguments":{' + names.encode() + b"}}}\n")
    p = c.start("raw", argument='{"jsonrpc":"2.0","id":1,"result":{}}')
    watch = Watch(p.pid)
    p.communicate(line, timeout=HURRY)
    tap.same(p.returncode, 0, "many members: status")
    watch.flat("many members")
    ascending = ",".join(f'"k{n:07}":{n}' for n in range(1, 950_001))
    tap.same(c.receipts()[0]["arguments_hash"], sha(b"{" + ascending.encode() + b"}"),
             "hashed in their order")
    c.judge()


def feed(p, size):
    """One call with an argument of `size` bytes; its hashes are computed meanwhile."""
    frame, arguments = hashlib.sha256(), hashlib.sha256()
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":'
    block = b"x" * (1 << 20)

    def put(data, inside):
        frame.update(data)
        if inside:
            arguments.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(p.stdin.fileno(), view):]

    put(head, False)
    put(b'{"a":"', True)
    left = size
    while left:
        n = min(left, len(block))
        put(block[:n], True)
        left -= n
    put(b'"}', True)
    put(b"}}", False)
    wire = frame.copy()
    wire.update(b"\n")
    os.write(p.stdin.fileno(), b"\n")
    return frame.hexdigest(), arguments.hexdigest(), wire.hexdigest()


def large(c, size):
    p = c.start("huge", argument=str(size))
    watch = Watch(p.pid)
    hashes = []
    feeder = threading.Thread(target=lambda: hashes.extend(feed(p, size)))
    feeder.start()
    answer, n, last = hashlib.sha256(), 0, b""
    while last[-1:] != b"\n":
        last = os.read(p.stdout.fileno(), 1 << 20)
        if not last:
            break
        answer.update(last)
        n += len(last)
    feeder.join()
    watch.flat(f"{size} bytes each way")
    status, rest, err = end(p, HURRY * 4)
    tap.same((status, rest), (0, b""), f"{size} bytes: status")
    frame, arguments, wire = hashes
    tap.ok(f"server read {wire}".encode() in err, "the server read what was sent", err)
    head, tail = b'{"jsonrpc":"2.0","id":1,"result":', b"}\n"
    result = hashlib.sha256(b'{"s":"')
    whole = hashlib.sha256(head + b'{"s":"')
    block, left = b"y" * (1 << 20), size
    while left:
        part = block[:min(left, len(block))]
        result.update(part)
        whole.update(part)
        left -= len(part)
    result.update(b'"}')
    framed = whole.copy()
    framed.update(b'"}' + tail[:1])
    whole.update(b'"}' + tail)
    tap.same(answer.hexdigest(), whole.hexdigest(), "the client read what was said")
    got = c.receipts()
    tap.same([(r["request_digest"], r["arguments_hash"], r["response_digest"],
               r["result_hash"]) for r in got],
             [("sha256:" + frame, "sha256:" + arguments, "sha256:" + framed.hexdigest(),
               "sha256:" + result.hexdigest())], "the hashes are right")
    c.judge()


def case_large_200k(c):
    large(c, 200_000)


def case_large_64m(c):
    large(c, 64 << 20)


def case_large_1g(c):
    if not SOAK:
        return
    large(c, (1 << 30) - 4096)


def case_too_large(c):
    status, out, err = c.run(call(1, "t", {"a": "x" * 300_000}), "silent",
                             "--max-message-bytes", "200000")
    tap.same(status, 2, "a message over the limit: status")
    tap.ok(any(e["type"] == "message_cut" for e in c.events()), "the log says that it was cut")
    tap.same(c.complete(), [False], "the session is not complete")
    c.judge(None)


# --- servers that end in their own way ---


def case_closes_stdout(c):
    began = time.monotonic()
    p = c.start("mute")
    p.stdin.write(call(1))
    status, _ = wait(p, 10)
    took = time.monotonic() - began
    tap.same(status, 2, "a server that closes stdout but lives: status")
    tap.ok(took < 5, "is ended soon", took)
    tap.same([r["outcome_reason"] for r in c.receipts()][:1], ["server_exit"],
             "the open call has its receipt")
    c.judge()


def case_ignores_eof(c):
    p = c.start("deaf")
    p.stdin.write(call(1))
    read_line(p)
    began = time.monotonic()
    status, out, _ = end(p)
    took = time.monotonic() - began
    tap.same((status, out), (0, b""), "a server that ignores EOF: status")
    tap.ok(0.5 <= took < 2, "half a second, then SIGTERM", took)
    tap.same(c.complete(), [True], "the session is complete")
    c.judge()


def case_ignores_sigterm(c):
    p = c.start("stubborn")
    p.stdin.write(call(1))
    read_line(p)
    began = time.monotonic()
    status, _, _ = end(p)
    took = time.monotonic() - began
    tap.same(status, 0, "a server that ignores SIGTERM, too: status")
    tap.ok(1.5 <= took < 3, "one second more, then SIGKILL", took)
    c.judge()


def case_dies(c):
    for n, how in enumerate(["-9", "-11", "3", "0"]):
        one = Case(f"{c.name}_{how}")
        p = one.start("dies", argument=how)
        p.stdin.write(call(1, "answered") + call(2, "open"))
        status, _ = wait(p, 10)
        tap.same(status, 2, f"a server that dies ({how}) with a call open: status")
        out = p.stdout.read()
        half = b'{"half":' if how[0] == "-" else b""
        tap.ok(out.endswith(b"}\n" + half), "its last words pass", out)
        got = {r["tool_name"]: r["outcome_reason"] for r in one.receipts()}
        tap.same(got, {"answered": None, "open": "server_exit"}, "both calls have receipts")
        tap.same(one.complete(), [False], "the session is not complete")
        one.judge()


def case_server_exits_well(c):
    p = c.start("dies", argument="0")
    p.stdin.write(call(1, "answered"))
    read_line(p)
    p.stdin.write(b'{"jsonrpc":"2.0","method":"x"}\n')
    status, _ = wait(p, 10)
    tap.same(status, 0, "a server that exits with 0 and owes nothing: status")
    tap.same(c.complete(), [True], "is complete")
    c.judge()


def case_grandchild(c):
    for kind in ("plain", "stubborn", "at-once"):
        one = Case(f"{c.name}_{kind}")
        began = time.monotonic()
        p = one.start("grandchild", argument=kind)
        p.stdin.write(call(1))
        read_line(p)
        status, _, _ = end(p, 15)
        tap.same(status, 0, f"a grandchild ({kind}) holds the pipes: status")
        tap.ok(time.monotonic() - began < 4, "is not waited for", time.monotonic() - began)
        one.judge()


def case_grandchild_open_call(c):
    began = time.monotonic()
    status, _, _ = c.run(call(1) + call(2), "grandchild", argument="at-once")
    tap.same(status, 2, "the server goes with a call open, its child holds the pipes")
    tap.ok(time.monotonic() - began < 4, "is not waited for", time.monotonic() - began)
    c.judge()


# --- who does not read ---


def case_client_never_reads(c):
    size = 64 << 20
    p = c.start("flood", argument=str(size))
    watch = Watch(p.pid)
    p.stdin.write(call(1))
    time.sleep(2)
    queued = sum(e["bytes"] for e in c.events() if e["type"] == "notification_received")
    tap.ok(queued < 8 << 20, "a client that does not read stops the server", queued)
    watch.flat("a client that does not read")
    out = p.stdout.read()
    tap.ok(len(out) >= size and out.endswith(b'"}}\n'), "later it gets everything", len(out))
    tap.same(wait(p)[0], 0, "status")
    c.judge()


def case_client_never_reads_and_leaves(c):
    p = c.start("flood", "--shutdown-timeout", "2", argument=str(64 << 20))
    p.stdin.write(call(1))
    time.sleep(0.5)
    p.stdin.close()
    status, took = wait(p, 20)
    tap.ok(status == 2, "a client that closes and never reads: status", status)
    tap.ok(took < 6, "is not waited for without end", took)
    p.stdin = None
    p.communicate()
    c.judge(None)


def case_slow_client_gets_all(c):
    """The server is gone long before the client has read what it said."""
    size = 1 << 20
    p = c.start("flood", argument=str(size))
    p.stdin.write(call(1))
    time.sleep(2)
    got, out = b"", True
    while out:
        out = os.read(p.stdout.fileno(), 30000)
        got += out
        time.sleep(0.01)
    tap.ok(len(got) >= size and got.endswith(b'"}}\n'), "a slow client gets everything",
           len(got))
    tap.same(wait(p)[0], 0, "a slow client: status")
    c.judge()


def case_client_goes(c):
    p = c.start("flood", argument=str(8 << 20))
    p.stdin.write(call(1))
    read_line(p)
    p.stdout.close()
    status, took = wait(p, 10)
    tap.same(status, 2, "a client that closes its end: status")
    tap.ok(took < 4, "soon", took)
    tap.same(c.complete(), [False], "the session is not complete")
    c.judge()


def case_server_never_reads(c):
    p = c.start("never-reads", "--shutdown-timeout", "1")
    watch = Watch(p.pid)
    os.set_blocking(p.stdin.fileno(), False)
    sent, line, until = 0, call(1, "t", {"a": "x" * 4000}), time.monotonic() + 2
    rest = line
    while time.monotonic() < until:
        try:
            n = os.write(p.stdin.fileno(), rest)
            sent, rest = sent + n, rest[n:] or line
        except BlockingIOError:
            time.sleep(0.01)
    tap.ok(sent < 8 << 20, "a server that does not read stops the client", sent)
    watch.flat("a server that does not read")
    p.send_signal(signal.SIGTERM)  # its EOF stands behind bytes that nobody takes
    status, took = wait(p, 20)
    tap.same(status, 2, "a server that does not read: status")
    tap.ok(took < 5, "ends soon", took)
    c.judge()


# --- many proxies ---


def case_same_second(c):
    both = [c.start("echo") for _ in range(2)]
    for p in both:
        p.stdin.write(call(1))
        read_line(p)
    time.sleep(1 - time.time() % 1 + 0.1)
    for p in both:
        p.stdin.close()
    tap.same([wait(p)[0] for p in both], [0, 0], "two that end in the same second: status")
    c.judge(2)


def case_eight(c):
    calls = 200
    all_of_them = [c.start("echo") for _ in range(8)]
    results = [None] * 8

    def drive(n):
        data = b"".join(call(i, f"p{n}", {"i": i}) for i in range(calls))
        results[n] = (all_of_them[n].communicate(data, timeout=HURRY)[0].count(b"\n"),
                      all_of_them[n].returncode)

    threads = [threading.Thread(target=drive, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    tap.same(results, [(calls, 0)] * 8, "eight proxies on one log: all answered")
    tap.same(len(c.receipts()), 8 * calls, "a receipt for each call")
    c.judge(8)


# --- calls that are more than a question and an answer ---


def case_cancelled(c):
    data = call(7, "slow") + note("notifications/cancelled", requestId=7)
    status, out, _ = c.run(data, "late")
    tap.same(status, 0, "cancelled and answered late: status")
    tap.ok(b'"late": true' in out, "the answer passes", out)
    tap.same([(r["outcome"], r["outcome_reason"]) for r in c.receipts()],
             [("forwarded", "cancelled")], "one receipt that says both")
    c.judge()


def case_call_timeout(c):
    p = c.start("late", "--call-timeout", "1")
    p.stdin.write(call(7, "slow"))
    told = json.loads(read_line(p))
    tap.same((told["id"], told["error"]["code"]), (7, -31007), "a call that waits too long")
    p.stdin.write(note("notifications/cancelled", requestId=7))
    time.sleep(0.3)
    status, out, _ = end(p)
    tap.same(out, b"", "the late answer does not reach the client")
    tap.same(sum(e["type"] == "response_late" for e in c.events()), 1, "but the log")
    tap.same([r["outcome_reason"] for r in c.receipts()], ["call_timeout"], "one receipt")
    tap.same(told["error"]["data"]["receipt_id"], c.receipts()[0]["receipt_id"],
             "and the error names it")
    tap.same(status, 2, "status")
    c.judge()


def read_lines(p, count, patience=10):
    """As many lines, or what there is after that many seconds without a byte."""
    got = b""
    while got.count(b"\n") < count and select.select([p.stdout], [], [], patience)[0]:
        more = os.read(p.stdout.fileno(), 1 << 16)
        if not more:
            break
        got += more
    return got


def said(c, kind, members):
    """These members of each event of this type, in order."""
    return [tuple(e.get(m) for m in members) for e in c.events() if e["type"] == kind]


def case_late_in_batch(c):
    """Late answers are cut out of the batch that they come in; the rest goes on."""
    batch = (b' [ {"jsonrpc":"2.0","id":1,"result":{"late":1}} ,\t'
             b'{"jsonrpc":"2.0","id":2,"result":{"n":2.0}} , '
             b'{"jsonrpc":"2.0","method":"notifications/x"},'
             b'{"jsonrpc":"2.0","id":3,"result":{"late":3}} ] \r\n')
    rest = (b' [ {"jsonrpc":"2.0","id":2,"result":{"n":2.0}} , '
            b'{"jsonrpc":"2.0","method":"notifications/x"} ] \r\n')
    large = b'[{"jsonrpc":"2.0","id":6,"result":"' + b"y" * 200_000 + b'"}]\n'
    for mode in ("write", "group"):
        one = Case(f"{c.name}_{mode}")
        with open(one.dir + ".told", "wb") as f:
            f.write(batch + b'[{"jsonrpc":"2.0","id":4,"result":{}}]\n'
                    b'{"jsonrpc":"2.0","id":5,"result":{}}\n' + large)
        p = one.start("told", "--call-timeout", "1", "--durability", mode,
                      argument=one.dir + ".told")
        p.stdin.write(b"".join(call(n) for n in (1, 3, 4, 5, 6)))
        tap.same(read_lines(p, 5).count(b"-31007"), 5, f"{mode}: five calls time out")
        p.stdin.write(call(2) + note("go"))
        tap.same(read_lines(p, 1), rest, f"{mode}: the batch arrives without what is late")
        p.stdin.write(note("go") + note("go") + note("go"))
        tap.ok(read_lines(p, 1) == large, f"{mode}: nothing where nothing is left; what has "
               "begun to go on goes on")
        tap.same(end(p)[:2], (2, b""), f"{mode}: status")
        of = ("batch", "id", "bytes", "digest")
        came, went = batch[:-1], rest[:-1]
        tap.same(said(one, "response_late", of)[:2],
                 [(0, "1", len(came), sha(came)), (3, "3", len(came), sha(came))],
                 f"{mode}: what was late is recorded as it came")
        tap.same(len(said(one, "response_late", of)), 5, f"{mode}: all of it")
        tap.same(said(one, "response_received", of), [(1, "2", len(came), sha(came))],
                 f"{mode}: so is what was not")
        tap.same(said(one, "response_sent", of), [(0, "2", len(went), sha(went))],
                 f"{mode}: and what was sent as it went")
        tap.same([e["batch"] for e in one.events() if e["type"] == "notification_forwarded"
                  and e["dir"] == "s2c"], [1], f"{mode}: each with its index")
        tap.same(said(one, "message_forwarded", of),
                 [(0, "6", len(large) - 1, sha(large[:-1]))],
                 f"{mode}: a late answer that went on all the same is told")
        tap.same([r["outcome"] for r in one.receipts() if r["mcp_request_id"] == 2],
                 ["forwarded"], f"{mode}: the other call has its receipt")
        one.judge()


def case_rounds(c):
    p = c.start("rounds")
    p.stdin.write(call(1, "t", {"a": 1}))
    read_line(p)
    # the same text, spelled otherwise than the server did
    p.stdin.write(call(2, "t", {"a": 1}, requestState="a/b\u00e9").replace(b"a/b", b"a\\/b"))
    read_line(p)
    status, _, _ = end(p)
    first, second = c.receipts()
    tap.same(status, 0, "a call of two rounds: status")
    tap.same((first["outcome_reason"], first["parent_receipt_id"]),
             ("input_required", None), "the first leg")
    tap.same((second["outcome_reason"], second["parent_receipt_id"]),
             (None, first["receipt_id"]), "the second names the first")
    c.judge()


def ask(p, number, method, **params):
    p.stdin.write((json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                               "params": params}) + "\n").encode())
    return json.loads(read_line(p))


def case_tasks(c):
    p = c.start("tasks", "--store-results")
    p.stdin.write(call(1, "one"))
    read_line(p)
    p.stdin.write(call(2, "two"))
    lines = read_line(p)
    if lines.count(b"\n") < 2:
        read_line(p)
    p.stdin.write(call(3, "three"))
    read_line(p)
    p.stdin.write(call(4, "four"))
    read_line(p)
    ask(p, 5, "tasks/get", taskId="t-1")
    ask(p, 6, "tasks/get", taskId="t-1")
    ask(p, 7, "tasks/get", taskId="t-3")
    ask(p, 8, "tasks/result", taskId="t-3")
    status, _, _ = end(p)
    receipts = c.receipts()
    legs = {r["receipt_id"]: r["tool_name"] for r in receipts
            if r["outcome_reason"] == "task"}
    ends = [(r["tool_name"], legs.get(r["parent_receipt_id"]), r["outcome"],
             r["result_content"], r["outcome_reason"]) for r in receipts
            if r["outcome_reason"] != "task"]
    tap.same(sorted(ends), [
        ("four", "four", "timeout", None, "task_unobserved"),
        ("one", "one", "forwarded", {"content": [1]}, None),
        ("three", "three", "forwarded", {"content": [3]}, None),
        ("two", "two", "error", {"code": 1, "message": "no"}, None)],
        "tasks: one more receipt at the first sight of each end")
    tap.same(len(receipts), 8, "and no other")
    c.judge()


# --- evidence that cannot be written ---

POLICIES = [()]
if b"on-evidence-failure" in subprocess.run([ASSAY, "mcp-proxy", "--help"],
                                            capture_output=True).stdout:
    POLICIES = [("--on-evidence-failure", "pass"), ("--on-evidence-failure", "block")]


def blocks(policy):
    return "block" in policy


def failing(c, p, policy, harm, what):
    """A call, the harm, a call, EOF. What the client sees of the second call."""
    p.stdin.write(call(1, "before"))
    read_line(p)
    harm()
    p.stdin.write(call(2, "after"))
    told = read_line(p)
    answer = json.loads(told) if told else {}
    if blocks(policy):
        tap.same(answer.get("error", {}).get("code"), -31005, f"{what}: blocked")
    else:
        tap.ok("result" in answer, f"{what}: passed on", told)
    status, out, err = end(p, 30)
    tap.same(status, 2, f"{what}: status")
    tap.ok(err.strip(), f"{what}: stderr says it")
    return err


def burst(p, first, count):
    """Calls in one write: the ids by what the answers have, each answered once."""
    p.stdin.write(b"".join(call(n, "burst") for n in range(first, first + count)))
    lines = b""
    while lines.count(b"\n") < count:
        lines += read_line(p)
    told = {"result": [], "error": []}
    for line in lines.splitlines():
        answer = json.loads(line)
        told["result" if "result" in answer else "error"].append(answer["id"])
    tap.same(sorted(told["result"] + told["error"]), list(range(first, first + count)),
             "every call of a burst has its answer")
    return told


def case_full(c):
    if os.geteuid():
        return tap.skip("a full audit directory", "only root may mount")
    for policy in POLICIES:
        one = Case("_".join((c.name,) + policy[1:]))
        os.mkdir(one.dir, 0o700)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs",
                               one.dir], capture_output=True)
        if done.returncode:
            return tap.skip("a full audit directory", "no tmpfs can be mounted")
        try:
            def fill():
                with open(one.dir + "/ballast", "wb", buffering=0) as f:
                    try:
                        while f.write(b"x" * 4096):
                            pass
                    except OSError:
                        pass

            p = one.start("echo", *policy)
            p.stdin.write(call(1, "before"))
            read_line(p)
            fill()
            answers, passed, blocked = 0, 0, 0
            for n in range(2, 40):
                p.stdin.write(call(n, "after"))
                told = json.loads(read_line(p))
                blocked += told.get("error", {}).get("code") == -31005
                passed += "result" in told
            if blocks(policy):
                tap.ok(blocked > 10, "full: blocked", blocked)
            else:
                tap.same((passed, blocked), (38, 0), "full: passed on")
                long = call(40, "after", {"x": "y" * 300000})
                p.stdin.write(long)
                told = read_line(p)
                tap.ok("result" in json.loads(told), "full: a long message, too", told[:200])
            told = burst(p, 100, 64)
            tap.same(len(told["result"] if not blocks(policy) else told["error"]), 64,
                     "full: 64 that come at once")
            os.unlink(one.dir + "/ballast")
            time.sleep(0.1)
            told = burst(p, 200, 64)
            tap.same(len(told["result"]), 64, "full: with room they are answered")
            p.stdin.write(call(99, "again"))
            told = json.loads(read_line(p))
            tap.ok("result" in told, "full: works again when there is room", told)
            status, _, err = end(p)
            tap.same(status, 2, "full: status")
            tap.ok(err.strip(), "full: stderr says it")
            tap.ok(any(e["type"] == "gap" for e in one.events()), "full: the log has the gap")
            tap.same(one.complete(), [False], "full: the session is not complete")
            one.judge(None)
        finally:
            subprocess.run(["umount", one.dir])


def case_read_only(c):
    if os.geteuid():
        return tap.skip("a read-only audit directory", "only root may mount")
    one = Case(c.name)
    os.mkdir(one.dir, 0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=700", "tmpfs", one.dir],
                      capture_output=True).returncode:
        return tap.skip("a read-only audit directory", "no tmpfs can be mounted")
    try:
        marker = one.dir + ".marker"
        done = subprocess.run([ASSAY, "mcp-proxy", "--audit-dir", one.dir, "--", "touch",
                               marker], stdin=subprocess.DEVNULL, capture_output=True)
        tap.same(done.returncode, 3, "read-only from the start: status")
        tap.same(done.stdout, b"", "nothing on stdout")
        tap.ok(not os.path.exists(marker), "the server was not started")
    finally:
        subprocess.run(["umount", one.dir])
    for policy in POLICIES:
        # Nothing can be written any more, as on a medium that turned read-only.
        one = Case("_".join((c.name,) + policy[1:] + ("later",)))
        p = one.start("echo", *policy)
        failing(one, p, policy,
                lambda: resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (0, -1)),
                "no more writing")
        done = assay("proof-pack", "--recover", "--audit-dir", one.dir)
        tap.same(done.returncode, 0, f"{one.name}: what is left is recovered")
        one.judge(1)


def case_deleted(c):
    for policy in POLICIES:
        one = Case("_".join((c.name,) + policy[1:]))
        p = one.start("echo", *policy)
        failing(one, p, policy, lambda: shutil.rmtree(one.dir), "deleted under us")
        tap.ok(not os.path.exists(one.dir + "/log/origin"), "no new log is begun")
        tap.same(left_over(), [], f"{one.name}: nobody is left")


def refused_by_no_policy(one):
    """Two calls with harm between, under block: what is left of the second."""
    said = {r["mcp_request_id"]: (r["outcome"], r["outcome_reason"], r["policy_verdict"])
            for r in one.receipts()}
    tap.same(said.get(1), ("forwarded", None, "no_policy"), f"{one.name}: the first")
    tap.same(said.get(2), ("denied", "evidence_failure", "no_policy"),
             f"{one.name}: what was refused is denied, and by no policy")
    tap.same([e["reason_codes"] for e in one.events() if e["type"] == "request_denied"],
             [["evidence_failure"]], f"{one.name}: the log says why")
    tap.same(sum(e["type"] == "request_forwarded" and e["id"] == "2" for e in one.events()),
             0, f"{one.name}: and that it was not sent")


def case_investigation_full(c):
    """The log can be written, the whole message cannot be kept."""
    if os.geteuid():
        return tap.skip("a full investigation directory", "only root may mount")
    for policy in POLICIES:
        one = Case("_".join((c.name,) + policy[1:]))
        kept = one.dir + "/investigation"
        os.makedirs(kept, 0o700)
        os.chmod(one.dir, 0o700)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", kept],
                          capture_output=True).returncode:
            return tap.skip("a full investigation directory", "no tmpfs can be mounted")
        try:
            p = one.start("echo", "--investigation", *policy)

            p.stdin.write(call(1))
            read_line(p)
            with open(kept + "/ballast", "wb", buffering=0) as f:
                try:
                    while f.write(b"x" * 4096):
                        pass
                except OSError:
                    pass
            p.stdin.write(call(2, "t", {"a": "x" * 8192}))  # more than a page
            told = json.loads(read_line(p))
            status, _, err = end(p)
            tap.same(status, 2, f"{one.name}: status")
            tap.ok(b"evidence cannot be written" in err, f"{one.name}: stderr says it", err)
            if blocks(policy):
                tap.same(told.get("error", {}).get("code"), -31005, f"{one.name}: blocked")
                refused_by_no_policy(one)
            else:
                tap.ok("result" in told, f"{one.name}: passed on", told)
                tap.same([r["outcome"] for r in one.receipts()], ["forwarded"] * 2,
                         f"{one.name}: both calls were answered")
            tap.ok(any(e["type"] == "gap" for e in one.events()), "the log has the gap")
            tap.same(one.complete(), [False], "the session is not complete")
            tap.same(assay("log", "verify", "--investigation", one.dir).returncode, 2,
                     "what is missing is found")
            one.judge()
        finally:
            subprocess.run(["umount", kept])


def shimmed(**what):
    """An environment in which calls do what they seldom do; None without the shim."""
    shim = os.path.join(os.environ.get("ASSAY_BUILD", ""), "libfault-shim.so")
    if SANITIZED or not os.path.exists(shim):
        return None
    return dict(what, LD_PRELOAD=os.path.abspath(shim))


def case_sync_fails(c):
    """Written, but never on disk."""
    for mode in ("group", "strict"):
        for policy in POLICIES:
            one = Case("_".join((c.name, mode) + policy[1:]))
            switch = one.dir + ".off"
            env = shimmed(SHIM_NO_SYNC=switch)
            if not env:
                return tap.skip("a sync that fails", "nothing can be put before libc here")
            p = one.start("echo", "--durability", mode, *policy, env=env)
            p.stdin.write(call(1))
            read_line(p)
            with open(switch, "wb"):
                pass
            p.stdin.write(call(2))
            told = json.loads(read_lines(p, 1) or "{}")
            os.unlink(switch)
            if blocks(policy):
                tap.same(told.get("error", {}).get("code"), -31005, f"{one.name}: blocked")
            else:
                tap.ok("result" in told, f"{one.name}: passed on", told)
            p.stdin.write(call(3))
            tap.ok(b'"result"' in read_lines(p, 1), f"{one.name}: later ones go on")
            status, out, err = end(p)
            tap.same((status, out), (2, b""), f"{one.name}: status")
            tap.ok(b"evidence cannot be written" in err, f"{one.name}: stderr says it", err)
            if blocks(policy):
                refused_by_no_policy(one)
            else:
                said = {r["mcp_request_id"]: r["outcome"] for r in one.receipts()}
                tap.same((said.get(1), 2 in said, said.get(3)),
                         ("forwarded", True, "forwarded"), f"{one.name}: receipts")
            kinds = [e["type"] for e in one.events()]
            tap.ok("gap" in kinds and "repair" in kinds, f"{one.name}: gap and repair")
            tap.same(one.complete(), [False], f"{one.name}: the session is not complete")
            one.judge()


# --- time ---


def until(condition, patience=20):
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def case_pack_minutes(c):
    env = shimmed(SHIM_FAST="60")  # a second is a minute
    if not env:
        return tap.skip("packs every minute", "nothing can be put before libc here")
    p = c.start("echo", "--pack-interval", "1m", env=env)
    for n in (1, 2):
        p.stdin.write(call(n))
        read_line(p)
        tap.ok(until(lambda: len(c.packs()) == n), f"a minute later: pack {n}", c.packs())
    time.sleep(2)
    tap.same(len(c.packs()), 2, "no pack of minutes without a call")
    p.stdin.write(call(3))
    read_line(p)
    status, _, err = end(p)
    tap.same(status, 0, "packs every minute: status")
    parts = []
    for path in c.packs():
        with open(path + "/receipt_pack.jsonl", "rb") as f:
            parts.append([json.loads(line) for line in f])
        tap.ok(path.encode() in err, "stderr names each", err)
    parts.sort(key=lambda part: part[-1]["part"])  # two of a second have names in any order
    tap.same([[r["mcp_request_id"] for r in part[:-1]] for part in parts][:3],
             [[1], [2], [3]], "each has the calls of its minute")
    count = len(parts)  # a fourth where the end took longer than a second
    tap.ok(3 <= count <= 4, "three, or one more for the end", count)
    tap.same([(part[-1]["part"], part[-1]["final"], part[-1]["session_complete"])
              for part in parts],
             [(n, n == count, n == count) for n in range(1, count + 1)],
             "the last one says that it is")
    tap.same(assay("verify-pack", "--require-complete", *c.packs()).returncode, 0,
             "they verify together")
    c.judge(count)


def case_recovery_overruns(c):
    """The end waits for others' sessions for two seconds and no longer."""
    env = shimmed(SHIM_SLOW_LIVE="20")
    if not env:
        return tap.skip("a slow recovery", "nothing can be put before libc here")
    dead = c.start("echo")
    dead.stdin.write(call(1))
    read_line(dead)
    dead.kill()
    dead.wait()
    p = c.start("echo", env=env)
    p.stdin.write(call(2))
    read_line(p)
    began = time.monotonic()
    status, out, err = end(p)
    took = time.monotonic() - began
    tap.same((status, out), (0, b""), "the end during a slow recovery: status")
    tap.ok(2 <= took < 5, "two seconds", took)
    packs = c.packs()
    tap.same(len(packs), 1, "our own pack is there")
    tap.ok(packs and packs[0].encode() in err, "and named", err)
    tap.same(c.complete(), [True], "the other session is left")
    done = assay("proof-pack", "--recover", "--audit-dir", c.dir)
    tap.same(done.returncode, 0, "and finished later")
    tap.same(c.complete(), [True, False], "as what it is")
    ends = [e for e in c.events() if e["type"] == "chain_end" and "for" in e]
    tap.same(len(ends), 2, "two recorders are said to have ended")
    c.judge(2)


def case_bad_input(c):
    for what, args in [
            ("no command", []), ("an unknown flag", ["--nonsense", "--", "true"]),
            ("a server that is not there", ["--", WORK + "/none"]),
            ("a number that is none", ["--shutdown-timeout", "x", "--", "true"])]:
        done = assay("mcp-proxy", "--audit-dir", c.dir, *args)
        tap.same((done.returncode, done.stdout), (3, b""), f"{what}: status")
        tap.ok(done.stderr, f"{what}: stderr says why")


# --- signals ---


def signalled(c, mode, number, flags=(), open_call=False, env=None):
    p = c.start(mode, *flags, env=env)
    if open_call:
        p.stdin.write(call(1))
        while not any(e["type"] == "request_received" for e in c.events()):
            time.sleep(0.02)
        time.sleep(0.2)
    else:
        p.stdin.write(call(1))
        read_line(p)
    p.send_signal(number)
    return p


def case_sigint(c):
    p = signalled(c, "echo", signal.SIGINT)
    status, took = wait(p)
    tap.same(status, 130, "SIGINT: status")
    tap.ok(took < 1.5, "SIGINT: soon", took)
    tap.same(c.complete(), [True], "SIGINT is a proper end")
    c.judge()


def case_sigterm(c):
    p = signalled(c, "echo", signal.SIGTERM)
    status, took = wait(p)
    tap.same(status, 0, "SIGTERM: status")
    tap.ok(took < 1.5, "SIGTERM: soon", took)
    tap.same(c.complete(), [True], "SIGTERM is a proper end")
    c.judge()


def case_sigterm_stubborn(c):
    p = signalled(c, "stubborn", signal.SIGTERM)
    status, took = wait(p)
    tap.same(status, 0, "SIGTERM and a server that ignores it: status")
    tap.ok(1 <= took < 2.5, "one second, then SIGKILL", took)
    c.judge()


def case_sigterm_drains(c):
    p = signalled(c, "silent-deaf", signal.SIGTERM, ("--shutdown-timeout", "1"), True)
    status, took = wait(p)
    tap.same(status, 2, "SIGTERM with a call open: status")
    tap.ok(1 <= took < 2.5, "drains for the timeout", took)
    tap.ok(b"server got 15" in p.stderr.read(), "the signal goes on to the server")
    tap.same([r["outcome_reason"] for r in c.receipts()], ["shutdown"], "a receipt for it")
    c.judge()


def case_sigint_goes_on(c):
    p = signalled(c, "silent-deaf", signal.SIGINT, ("--shutdown-timeout", "1"), True,
                  {"DIE_ON_INT": "1"})
    status, took = wait(p)
    tap.same(status, 2, "SIGINT with a call open: status")
    tap.ok(b"server got 2 " in p.stderr.read(), "SIGINT goes on as SIGINT")
    c.judge()


def case_second_signal(c):
    p = signalled(c, "silent-deaf", signal.SIGTERM, ("--shutdown-timeout", "30"), True)
    time.sleep(0.5)
    tap.ok(p.poll() is None, "the first signal drains")
    p.send_signal(signal.SIGTERM)
    status, took = wait(p)
    tap.same(status, 2, "a second signal: status")
    tap.ok(took < 2, "ends the drain", took)
    tap.same([r["outcome_reason"] for r in c.receipts()], ["shutdown"], "a receipt all the same")
    c.judge()


def case_answer_during_drain(c):
    p = c.start("late", "--shutdown-timeout", "20")
    p.stdin.write(call(7, "slow"))
    time.sleep(0.4)
    p.stdin.write(note("notifications/cancelled", requestId=7))
    p.stdin.close()
    out = read_line(p)
    status, took = wait(p)
    tap.ok(b'"late"' in out, "an answer that is owed at EOF arrives", out)
    tap.same(status, 0, "EOF with a call in flight: status")
    tap.ok(took < 2, "ends with the last answer", took)
    p.stdin = None
    c.judge()


def case_sigterm_after_eof(c):
    p = c.start("stubborn")
    p.stdin.write(call(1))
    read_line(p)
    p.stdin.close()
    time.sleep(0.1)
    p.send_signal(signal.SIGTERM)
    status, took = wait(p)
    tap.same(status, 0, "SIGTERM after EOF: status")
    tap.ok(0.4 <= took < 1.3, "half a second, then SIGKILL", took)
    p.stdin = None
    c.judge()


def case_sigterm_after_eof_late(c):
    """As SDK clients do it: EOF, two seconds, SIGTERM, with a call still open."""
    p = c.start("silent-deaf", "--shutdown-timeout", "30")
    p.stdin.write(call(1))
    p.stdin.close()
    time.sleep(1)
    tap.ok(p.poll() is None, "EOF with a call open: waits")
    p.send_signal(signal.SIGTERM)
    status, took = wait(p)
    tap.same(status, 2, "SIGTERM after EOF with a call open: status")
    tap.ok(took < 1.3, "at once", took)
    p.stdin = None
    c.judge()


def case_sigterm_after_eof_unread(c):
    """The server has gone, and its answer is not read yet: half a second is left for that."""
    for reads in (True, False):
        one = Case(f"{c.name}-{reads}")
        p = one.start("echo", "--shutdown-timeout", "30")
        p.stdin.write(call(1, "t", {"a": "x" * 300_000}))
        tap.ok(soon(lambda: "response_sent" in [e["type"] for e in one.events()]),
               "the answer is on its way")
        p.stdin.close()
        time.sleep(0.4)
        p.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        if reads:
            tap.ok(len(p.stdout.read()) > 300_000, "all of it is read after SIGTERM")
        status, took = wait(p)
        tap.ok(status == (0 if reads else 2) and took < 1.3, "SIGTERM: the end", status, took)
        tap.same(one.complete(), [reads], "the log says whether it was read")
        p.stdin = None
        one.judge()


def case_piped(c):
    """Who pipes requests in gets their answers, whatever they ask for."""
    asked = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"%s"}\n' % x
                     for x in enumerate((b"initialize", b"tools/list", b"ping")))
    status, out, _ = c.run(asked, "slow", argument="1.5")
    tap.same((status, [json.loads(m)["id"] for m in out.splitlines()]), (0, [0, 1, 2]),
             "a server that is slow to begin: all are answered")
    asked = b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}\n'
    began = time.monotonic()
    status, _, _ = c.run(asked, "silent")
    tap.ok(status == 0 and time.monotonic() - began < 5, "news are not waited for", status)


def case_bad_exit(c):
    """A server that ends badly, and nobody knows why: we say so."""
    for script, words in (("exit 3", b"the server has exited with status 3"),
                          ("kill -9 $$", b"the server was ended by signal 9"), ("exit 0", b"")):
        p = subprocess.Popen([ASSAY, "mcp-proxy", "--audit-dir", c.dir, "--", "sh", "-c", script],
                             stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        c.started.append(p)
        said = p.stderr.read()
        p.wait()
        tap.ok(words in said if words else said == b"", f"{script}: {words.decode()}", said)


# --- SIGKILL ---


def case_sigkill(c):
    rng = random.Random(7)
    rounds, answered = 200 if SOAK else 20, 0
    late = []
    for n in range(rounds):
        p = c.start("echo")
        done = 0
        many = 1 + n % 2 * 15  # one by one, or so many in one write

        def drive():
            nonlocal done
            try:
                while True:
                    until = done + many
                    p.stdin.write(b"".join(call(i, f"r{n}", {"n": i})
                                           for i in range(done, until)))
                    while done < until:
                        told = read_line(p)
                        done += told.count(b"\n")
                        if not told.endswith(b"\n"):
                            return
            except (BrokenPipeError, ValueError):
                return

        driver = threading.Thread(target=drive)
        driver.start()
        until = time.monotonic() + 5
        while n % 4 and not done and time.monotonic() < until:
            time.sleep(0.002)  # one in four dies while it starts
        time.sleep(rng.random() * 0.1)
        p.kill()
        p.wait()
        driver.join()
        answered += done
        late.append((f"r{n}", done))
        p.stdin.close()
        p.stdout.close()
        p.stderr.close()
    tap.same(left_over(), [], f"{rounds} kills: no server survives")
    done = assay("proof-pack", "--recover", "--audit-dir", c.dir)
    tap.ok(done.returncode in (0, 1), "recovery", done.returncode, done.stderr)
    got = {(r["tool_name"], r["mcp_request_id"]) for r in c.receipts()
           if r["outcome"] == "forwarded"}
    missing = [(name, i) for name, count in late for i in range(count) if (name, i) not in got]
    tap.same(missing, [], f"each of {answered} answered calls has its receipt")
    tap.ok(answered > rounds, "there were answers", answered)
    tap.ok(not any(c.complete()), "no killed session counts as complete")
    sessions = {e["session"] for e in c.events() if "call" in e}
    c.judge(len(sessions))


# --- what stdin and stdout may be ---


def case_files(c):
    data = b"".join(call(n) for n in range(50))
    with open(c.dir + ".in", "wb") as f:
        f.write(data)
    with open(c.dir + ".in", "rb") as i, open(c.dir + ".out", "wb") as o:
        p = c.start("echo", stdin=i, stdout=o)
        status, _ = wait(p)
    with open(c.dir + ".out", "rb") as f:
        out = f.read()
    tap.same((status, out.count(b"\n")), (0, 50), "regular files")
    with open(c.dir + ".in", "rb") as i:
        i.seek(len(call(0)))
        p = c.start("echo", stdin=i)
        out, _ = p.communicate(timeout=HURRY)
    tap.same(out.count(b"\n"), 49, "a file that is read from the middle")
    c.judge(2)


def case_null(c):
    with open("/dev/null", "r+b") as null:
        p = c.start("echo", stdin=null, stdout=null)
        status, took = wait(p)
    tap.same(status, 0, "/dev/null")
    c.judge(0)


def case_sockets(c):
    ours, theirs = socket.socketpair()
    p = c.start("echo", stdin=theirs, stdout=theirs)
    ours.sendall(call(1))
    got = b""
    while not got.endswith(b"\n"):
        got += ours.recv(65536)
    tap.ok(b'"id": 1' in got, "one socket for both ways", got)
    ours.shutdown(socket.SHUT_WR)
    tap.same(wait(p)[0], 0, "sockets: status")
    tap.ok(os.get_blocking(theirs.fileno()), "the socket blocks again, as it did")
    ours.close()
    theirs.close()
    c.judge()


def case_terminal(c):
    leader, follower = pty.openpty()
    import tty
    tty.setraw(follower)
    p = c.start("echo", stdin=follower, stdout=follower)
    os.write(leader, call(1))
    got = b""
    while not got.endswith(b"\n"):
        got += os.read(leader, 65536)
    tap.ok(b'"id": 1' in got, "a terminal", got)
    tap.ok(os.get_blocking(follower), "the terminal still blocks for others")
    p.send_signal(signal.SIGTERM)
    tap.same(wait(p)[0], 0, "a terminal: status")
    os.close(leader)
    os.close(follower)
    c.judge()


def case_environment(c):
    """The server gets our environment and directory, and no descriptor of ours."""
    code = ("import os,sys;print(sorted(os.listdir('/proc/self/fd')),os.getcwd(),"
            "os.environ['MARK'],flush=True);sys.stdin.read()")
    extra = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(extra, True)
    p = subprocess.Popen([ASSAY, "mcp-proxy", "--audit-dir", c.dir, "--", sys.executable,
                          "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, pass_fds=(extra,), cwd="/",
                         env=dict(os.environ, MARK="mark"))
    out = read_line(p)
    p.communicate(timeout=HURRY)
    os.close(extra)
    tap.same(out.decode().split("] ")[-1], "/ mark\n", "environment and directory")
    tap.same(len(out.split(b"]")[0].split(b",")), 4, "0, 1, 2 and the one of listdir")
    c.judge(0)


run_cases(globals())
