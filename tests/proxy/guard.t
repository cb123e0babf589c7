#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a policy does to a session, on the program.

    guard.t - [soak]    soak: more messages

The server keeps every byte that it gets; tests/proxy/hostile.py says, by code of its own,
which those must be.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from lab import *  # noqa: E402,F403
import hostile  # noqa: E402
import web  # noqa: E402

POLICY = """version: "1"
default: deny
allowlist: [good, "read_*", "Good"]
denylist: [shell_exec, "file_*"]
"""


def write(path, text):
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return path


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return b""


def policy(c, text=POLICY):
    os.makedirs(WORK, exist_ok=True)
    return write(c.dir + ".yaml", text)


def guard(c, data, *flags, text=POLICY, profile="guard", mode="recorder", argument=None,
          timeout=HURRY):
    """Status, what the client got, what the server got, what was said to a person."""
    kept = argument or c.dir + ".kept"
    status, out, err = c.run(data, mode, "--profile", profile, "--policy", policy(c, text),
                             *flags, argument=kept, timeout=timeout)
    return status, out, read(c.dir + ".kept"), err.decode()


def may(name):
    return not (name == "shell_exec" or name.startswith("file_")) and (
        name in ("good", "Good") or name.startswith("read_"))


# --- every message ---


def check_bytes(expected, kept):
    """The server's bytes against the oracle's; the first difference."""
    lines = kept.split(b"\n")
    at = 0
    for e in expected:
        if not e.goes_whole and not e.rest:
            continue
        if at >= len(lines):
            return f"missing: {e.line[:300]!r}"
        got = lines[at] + b"\n"
        at += 1
        if e.goes_whole:
            if got != e.line:
                return f"changed: {got[:300]!r} was {e.line[:300]!r}"
        elif hostile.elements_of(got.decode()) != e.rest:
            return f"not the rest: {got[:300]!r} of {e.line[:600]!r}"
    rest = b"\n".join(lines[at:])
    return f"and then: {rest[:300]!r}" if rest else None


def ids_answered(out):
    """Ids that we answered with their codes, and those that the server did."""
    ours, theirs = [], []
    for line in out.splitlines():
        value = hostile.DECODER.decode(line.decode())
        texts = hostile.elements_of(line.decode()) if not isinstance(
            value, hostile.Members) else [line.decode()]
        for text in texts:
            m = hostile.DECODER.decode(text)
            if m.has("error"):
                ours.append((hostile.id_text(text), int(m.get("error").get("code"))))
            else:
                theirs.append(m.get("id"))
    return ours, theirs


def check_session(c, made, *flags):
    """All of it through the guard, against the oracle."""
    expected = [hostile.expect(line, may) for line in made]
    fates = [f for e in expected for f in e.fates]
    status, out, kept, err = guard(c, b"".join(made), *flags, timeout=HURRY * 10)
    # An allowed call without an id is lost, which comes before violations.
    lost = any(f.goes and f.is_call and f.kind == "notification" for f in fates)
    tap.ok(status == (2 if lost else 1), f"{c.name}, {len(made)} messages: status", status, err)
    wrong = check_bytes(expected, kept)
    tap.ok(wrong is None, "the server gets what it may get, byte for byte", wrong)
    ours, theirs = ids_answered(out)
    want = sorted((f.id, f.code) for f in fates if f.code)
    tap.ok(sorted(ours) == want, "each refused request has one answer with its id",
           sorted(set(ours) - set(want))[:5], sorted(set(want) - set(ours))[:5],
           len(ours), len(want))
    tap.same(len(theirs), sum(f.goes and f.kind == "request" for f in fates),
             "and each other one its server's")
    check_receipts(c, fates)
    c.judge()
    return fates


def check_receipts(c, fates):
    receipts = sorted(c.receipts(), key=lambda r: r["log_seq"][0])
    calls = [f for f in fates if f.is_call]
    tap.same(len(receipts), len(calls), "a receipt for each call")
    wrong = []
    for f, r in zip(calls, receipts):
        good = (r["policy_verdict"] == ("allowed" if f.goes else "denied") and
                (r["outcome"] == "denied") == (not f.goes) and
                (r["policy_ref"] == "malformed") == f.is_unread)
        if not good:
            wrong.append((f.raw[:200], r["policy_verdict"], r["outcome"], r["policy_ref"]))
    tap.ok(not wrong, "that says what became of it", wrong[:3])
    denied = [e for e in c.events() if e["type"] == "request_denied"]
    tap.same(len(denied), sum(not f.goes for f in fates), "and an event for each refusal")


def case_messages(c):
    fates = check_session(c, hostile.lines(4711, 100000 if SOAK else 12000))
    goes = sum(f.goes for f in fates)
    tap.ok(goes > 3000 and len(fates) - goes > 3000, "many of each", goes, len(fates))


def case_messages_group(c):
    check_session(c, hostile.lines(42, 1000), "--durability", "group")


def case_messages_strict(c):
    check_session(c, hostile.lines(43, 150), "--durability", "strict")


def case_last_line(c):
    for n, (tool, status) in enumerate((("good", 0), ("shell_exec", 1))):
        one = Case(f"{c.name}-{n}")
        line = call(1, tool)[:-1]
        got, out, kept, _ = guard(one, line)
        tap.same((got, kept), (status, b"" if status else line), f"{tool} without a line end")
        tap.same(out.count(b"\n"), 1, "is answered")
        one.judge()
    shown = assay("packs", "show", "--audit-dir", one.dir).stdout.decode()
    receipt = one.receipts()[0]
    tap.ok(receipt["policy_reason"] and f"{receipt['policy_ref']}: {receipt['policy_reason']}\n" in shown,
           "`packs show` says why it was denied", shown, receipt)
    tap.ok(" denied " in shown and "- ms" not in shown, "and no time that it took", shown)


def case_large(c):
    pad = "p" * (1 << 20)
    good, bad = call(1, "good", {"pad": pad}), call(2, "shell_exec", {"pad": pad})
    batch = b"[" + call(3, "unknown", {"pad": pad})[:-1] + b", " + call(4, "good")[:-1] + b"]\n"
    status, out, kept, _ = guard(c, good + bad + batch)
    tap.same(status, 1, "messages of 1 MiB: status")
    tap.ok(kept == good + b"[" + call(4, "good")[:-1] + b"]\n", "only what may pass passes",
           len(kept))
    tap.same(sorted(i for i, _ in ids_answered(out)[0]), ["2", "3"], "the others are answered")
    c.judge()


def case_large_batch(c):
    """Our answers are longer than what they answer; a call may go on between them."""
    count = 8000
    for durability in ("write", "group"):
        one = Case(f"{c.name}-{durability}")
        made = [call(n, "good" if n == count // 2 else "shell_exec")[:-1] for n in range(count)]
        data = b"[" + b",".join(made) + b"]\n" + call(count, "good", {"pad": "p" * (2 << 20)})
        status, out, kept, _ = guard(one, data, "--durability", durability)
        tap.same(status, 1, f"a batch of {count} with --durability {durability}: status")
        tap.ok(kept == b"[" + made[count // 2] + b"]\n" + data[data.index(b"]\n") + 2:],
               "one call goes on, and a long message behind it", len(kept), kept[:300])
        ours, theirs = ids_answered(out)
        tap.same(sorted(int(i) for i, _ in ours),
                 [n for n in range(count) if n != count // 2], "all others are answered")
        one.judge()


def case_too_large(c):
    head = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"good","arguments":"'
    line = head + b"p" * (65 << 20) + b'"}}\n'
    status, out, kept, err = guard(c, call(1, "good") + line)
    tap.same(status, 2, "a message that is too large to be judged: status")
    tap.ok(kept == call(1, "good"), "the server sees nothing of it", len(kept))
    tap.ok([e for e in c.events() if e["type"] == "message_cut"] and "67108864" in err,
           "it is cut, and that is said", err)
    c.judge()


# --- names ---

HOSTS = """127.0.0.1 localhost
93.184.216.34 public.example
10.1.2.3 private.example
93.184.216.34 mixed.example
192.168.1.1 mixed.example
2606:2800:220:1:248:1893:25c8:1946 six.example
fd00::7 sixprivate.example
""" + "".join(f"93.184.216.{n} n{n}.example\n" for n in range(100))
NAMES = """version: "1"
default: deny
allowlist: [good, "read_*", "Good", web_fetch]
denylist: [shell_exec, "file_*"]
constraints:
  web_fetch: {deny_private_hosts: true}
  "read_*": {max_calls: 300}
"""
HOLD = NAMES.replace("web_fetch", "hold")
VERDICTS = [("http://public.example/x", True), ("http://private.example/", False),
            ("https://mixed.example", False), ("http://six.example:8080/", True),
            ("http://sixprivate.example/", False), ("http://absent.example/", False),
            ("HTTP://PUBLIC.EXAMPLE./", True), ("http://10.0.0.1/", False),
            ("http://public.example@private.example/", False), ("public.example", True),
            ("http://localhost/", False), ("http://93.184.216.34/", True)]
SILENT = "127.77.53.1"  # a name server that never answers


class Table:
    """The names that the proxy finds, as root; `hangs`: others are never answered."""

    def __init__(self, c, hangs=False):
        self.why_not = None
        c.table = self  # and its socket
        at = c.dir + ".etc"
        os.makedirs(at)
        write(at + "/hosts", HOSTS)
        write(at + "/nsswitch.conf", "hosts: files dns\n" if hangs else "hosts: files\n")
        write(at + "/resolv.conf", f"nameserver {SILENT}\noptions timeout:20 attempts:3\n")
        script = " && ".join(f'mount --bind "$0/{name}" /etc/{name}' for name in
                             ("hosts", "nsswitch.conf", "resolv.conf")) + ' && exec "$@"'
        inside = ["unshare", "-m", "sh", "-c", script, at]
        try:
            probe = subprocess.run([*inside, "true"], capture_output=True, text=True)
            self.why_not = probe.stderr.strip() if probe.returncode else None
            if hangs:
                self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self.socket.bind((SILENT, 53))
        except OSError as e:
            self.why_not = str(e)
        c.inside = [] if self.why_not else inside

    def missing(self, what):
        if self.why_not:
            tap.skip(what, f"no table of names can be mounted: {self.why_not}")
        return self.why_not


def fetch(number, url):
    return call(number, "web_fetch", {"url": url})


def case_names(c):
    if Table(c).missing("names that are looked up"):
        return
    data = b"".join(fetch(n, url) for n, (url, _) in enumerate(VERDICTS))
    status, out, kept, err = guard(c, data, text=NAMES)
    tap.same(status, 1, "names: status")
    tap.same(sorted(json.loads(line)["id"] for line in kept.splitlines()),
             [n for n, (_, good) in enumerate(VERDICTS) if good], "public ones pass")
    tap.ok(all(line + b"\n" in data for line in kept.splitlines()), "unchanged")
    tap.same(sorted(ids_answered(out)[0]),
             sorted((str(n), -31001) for n, (_, good) in enumerate(VERDICTS) if not good),
             "the others are denied")
    tap.same({r["policy_ref"] for r in c.receipts() if r["outcome"] == "denied"},
             {"constraints.web_fetch.deny_private_hosts"}, "by that rule")
    c.judge()


def case_names_batch(c):
    """More names in one message than are looked up: the first ones count."""
    if Table(c).missing("many names in a batch"):
        return
    calls = [call(n, "web_fetch", {"u": [f"http://n{16 * n + i}.example" for i in range(16)]})
             [:-1] for n in range(6)]
    data = b"[" + b",".join(calls) + b"]\n" + call(9, "good")
    status, out, kept, err = guard(c, data, text=NAMES)
    tap.same(status, 1, "a batch with 96 names: status")
    tap.same(sorted(ids_answered(out)[0]), [("4", -31001), ("5", -31001)],
             "calls beyond the 64th name are denied")
    tap.ok(b"[" + b",".join(calls[:4]) + b"]\n" in kept, "the others pass", kept[:200])
    c.judge()


def case_names_long(c):
    """A long message waits whole, in both profiles."""
    if Table(c).missing("names in a long message"):
        return
    for profile in ("guard", "audit"):
        one = Case(f"{c.name}-{profile}")
        one.inside = c.inside
        data = call(1, "web_fetch", {"url": "http://public.example", "pad": "p" * 200000})
        status, out, kept, err = guard(one, data + call(2, "good"), text=NAMES,
                                       profile=profile)
        tap.same(status, 0, f"a long message with a name, {profile}: status")
        tap.ok(sorted(kept.splitlines(True)) == sorted([data, call(2, "good")]),
               f"{profile}: the server gets it once", len(kept), len(data), kept[:80])
        tap.same([r["policy_verdict"] for r in one.receipts()], ["allowed"] * 2, "allowed")
        one.judge()


def case_names_too_long(c):
    """Audit lets pass what is too large to wait, with names that are not known."""
    if Table(c).missing("names in a message that is too large"):
        return
    data = call(1, "web_fetch", {"url": "http://public.example", "pad": "p" * (65 << 20)})
    status, out, kept, err = guard(c, data + call(2, "good"), text=NAMES, profile="audit")
    tap.same(status, 1, "65 MiB with a name in audit: status")
    tap.ok(kept == data + call(2, "good"), "the server gets it once", len(kept), len(data))
    tap.same([(r["mcp_request_id"], r["policy_verdict"]) for r in c.receipts()],
             [(1, "denied"), (2, "allowed")], "its name is not known")
    c.judge()


def verdicts(c):
    return sorted((r["request_digest"], str(r["mcp_request_id"]), str(r["tool_name"]),
                   r["policy_verdict"], r["policy_ref"], r["policy_reason"])
                  for r in c.receipts())


def case_profiles_agree(c):
    if Table(c).missing("audit and guard agree"):
        return
    made = hostile.lines(77, 4000) + [fetch(f'"f{n}"', url) for n, (url, _) in
                                      enumerate(VERDICTS)]
    made.append(b"[" + b",".join(fetch(f'"b{n}"', url)[:-1] for n, (url, _) in
                                 enumerate(VERDICTS)) + b"]\n")
    found = {}
    for profile in ("guard", "audit"):
        one = Case(f"{c.name}-{profile}")
        one.inside = c.inside
        status, out, kept, err = guard(one, b"".join(made), "--shutdown-timeout", "1",
                                       text=NAMES, profile=profile)
        if profile == "audit":
            tap.ok(sorted(kept.splitlines(True)) == sorted(b"".join(made).splitlines(True)),
                   "audit passes everything on", len(kept))
            tap.ok(status in (1, 2), "audit: status", status, err)
        found[profile] = verdicts(one)
        one.judge()
    tap.ok(len(found["guard"]) > 3000, "many verdicts", len(found["guard"]))
    differ = set(found["guard"]) ^ set(found["audit"])
    tap.ok(found["guard"] == found["audit"], "audit and guard say the same of every call",
           len(differ), sorted(differ)[:4])
    tap.same(len({ref for *_, ref, _ in found["guard"]}), 10, "by every rule there is")


def case_names_hang(c):
    if Table(c, hangs=True).missing("a name that hangs"):
        return
    p = c.start("recorder", "--profile", "guard", "--policy", policy(c, NAMES),
                argument=c.dir + ".kept")
    began = time.monotonic()
    p.stdin.write(fetch(0, "http://hangs.example/"))
    for n in range(1, 51):
        p.stdin.write(call(n, "good") if n % 2 else fetch(n, "http://public.example"))
    seen = {}
    while len(seen) < 51:
        line = read_line(p)
        if not line:
            break
        for one in line.splitlines():
            seen[json.loads(one)["id"]] = time.monotonic() - began
    tap.ok(max(t for n, t in seen.items() if n) < 1.5, "a name that hangs delays no other",
           seen)
    tap.ok(1.9 <= seen.get(0, 0) < 4, "and is denied after two seconds", seen.get(0))
    tap.same(end(p)[0], 1, "a name that hangs: status")
    tap.ok(b"hangs" not in read(c.dir + ".kept"), "its call does not go on")
    c.judge()


def case_names_gone(c):
    """A client that goes while a name is looked up has cancelled its call, as one that
    goes later has."""
    for flags in ([], ["--durability", "strict"]):
        one = web.Case("-".join([c.name, *flags[1:]]))
        if Table(one, hangs=True).missing("a client that goes while a name is looked up"):
            return
        kept = one.dir + ".kept"
        one.listen("tools", "--policy", policy(one, HOLD), "--shutdown-timeout", "1", *flags,
                   argument=kept)
        away = web.Modern(one.place).send("POST", web.tool(1, "hold", url="http://hangs.example/"))
        time.sleep(0.5)
        away.close()
        tap.ok(web.soon(lambda: one.of("request_forwarded")), f"{one.name}: the call goes on")
        tap.ok(web.soon(lambda: b"notifications/cancelled" in read(kept)),
               "and is cancelled behind that", read(kept))
        one.table.socket.close()
        one.stop()
        tap.same(one.outcomes(), {"timeout:cancelled": 1}, "the receipt says so")
        one.judge()


def case_names_in_order(c):
    """A cancellation does not overtake the call that waits, nor does a last line."""
    if Table(c).missing("what must not overtake a call that waits"):
        return
    for profile in ("guard", "audit"):
        one = Case(f"{c.name}-{profile}")
        one.inside = c.inside
        first, last = fetch(1, "http://public.example/"), call(2, "good")[:-1]
        cancel = note("notifications/cancelled", requestId=1)
        status, out, kept, err = guard(one, first + cancel + last, text=NAMES,
                                       profile=profile)
        tap.same(kept, first + cancel + last, f"{one.name}: what came is what went")
        one.judge()


def case_refused_reply(c):
    """The server waits for an answer of the client that is refused: it gets an error."""
    path = c.dir + ".kept"
    p = c.start("asker", "--profile", "guard", "--policy", policy(c), argument=path)
    asked = json.loads(read_line(p))
    p.stdin.write(b'{"jsonrpc":"2.0","id":%s,"result":{"text":"\\ud83d"}}\n'
                  % json.dumps(asked["id"]).encode())
    tap.same(end(p)[0], 1, "a refused reply: status")
    got = [json.loads(line) for line in read(path).splitlines()]
    tap.same([(m["id"], m.get("error", {}).get("code")) for m in got],
             [(asked["id"], -31004)], "the server gets an error for it")
    c.judge(None)


def case_names_at_the_end(c):
    """The end comes while a call waits for a name."""
    if Table(c, hangs=True).missing("the end while a name is looked up"):
        return

    def eof(p):
        p.stdin.close()
        p.stdin = None

    def term(p):
        p.send_signal(signal.SIGTERM)

    def eof_term(p):
        eof(p)
        time.sleep(0.3)
        term(p)

    def server_dies(p):
        p.stdin.write(call(2, "good"))

    for how, least, most in ((eof, 1.5, 5), (term, 0, 1.9), (eof_term, 0, 1.9),
                             (server_dies, 0, 5)):
        one = Case(f"{c.name}-{how.__name__}")
        one.inside = c.inside
        mode = "dies" if how is server_dies else "recorder"
        p = one.start(mode, "--profile", "guard", "--policy", policy(one, NAMES),
                      argument="0" if mode == "dies" else one.dir + ".kept")
        p.stdin.write(call(1, "good"))
        read_line(p)
        p.stdin.write(fetch(7, "http://hangs.example/"))
        time.sleep(0.3)
        began = time.monotonic()
        how(p)
        try:
            out, err = p.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
        took = time.monotonic() - began
        tap.ok(least <= took < most, f"{one.name}: in time", took, err)
        tap.same([(r["mcp_request_id"], r["outcome"]) for r in one.receipts()
                  if r["tool_name"] == "web_fetch"], [(7, "denied")],
                 f"{one.name}: the call that waited is receipted")
        if how is not server_dies:
            tap.same(ids_answered(out)[0], [("7", -31001)], f"{one.name}: it is answered")
            tap.same(p.returncode, 1, f"{one.name}: status")
        tap.ok(b"hangs" not in read(one.dir + ".kept"), "and does not go on")
        one.judge()


# --- lists of tools ---


def tool(name, text="says nothing", more=""):
    return '{"name":%s , "description" : "%s"%s}' % (json.dumps(name), text, more)


def pages(c, **by_cursor):
    return write(c.dir + ".tools", json.dumps({k.strip("_"): v for k, v in by_cursor.items()}))


def ask_list(number, cursor=None):
    params = "" if cursor is None else ',"params":{"cursor":%s}' % json.dumps(cursor)
    return ('{"jsonrpc":"2.0","id":%s,"method":"tools/list"%s}\n' % (number, params)).encode()


def listed(number, result):
    return '{"jsonrpc":"2.0","id":%s, "result" :%s}' % (number, result)


def withheld(c):
    return [name for e in c.events() if e["type"] == "tools_withheld" for name in e["names"]]


def case_list(c):
    g, s, r, u = tool("good"), tool("shell_exec"), tool("read_x"), tool("unknown")
    first = '{ "tools" : [ %s , %s,%s ], "nextCursor":"p 2","ttlMs":5,"cacheScope" : "public"}'
    second = '{"cacheScope":"public", "tools":[%s],"x":{"tools":[%s]} }'
    third = '{"tools":[%s,%s],"nextCursor":"","cacheScope":"private"}'
    path = pages(c, _=first % (s, g, r), p=second % (u, u), q=third % (g, s))
    data = ask_list(1) + ask_list(2, "p") + b"[" + ask_list(3, "q")[:-1] + b"," + call(
        4, "shell_exec")[:-1] + b"]\n"
    want = [listed(1, '{ "tools" : [ %s,%s ], "nextCursor":"p 2","ttlMs":5,"cacheScope" : '
                      '"private"}' % (g, r)),
            listed(2, '{"cacheScope":"private", "tools":[],"x":{"tools":[%s]} }' % u),
            "[ " + listed(3, '{"tools":[%s],"nextCursor":"","cacheScope":"private"}' % g) + "]"]
    status, out, _, err = guard(c, data, mode="lister", argument=path)
    lines = [line for line in out.decode().splitlines() if "-31001" not in line]
    tap.same(status, 1, "lists: status")
    tap.same(lines, want, "denied tools are not shown, and nothing else is changed")
    tap.same(withheld(c), ["shell_exec", "unknown", "shell_exec"], "an event names them")
    c.judge()
    shown = Case(c.name + "-shown")
    status, out, _, err = guard(shown, ask_list(1), "--show-denied-tools", mode="lister",
                                argument=path)
    tap.same((status, out.decode()), (0, listed(1, first % (s, g, r)) + "\n"),
             "with --show-denied-tools they are")
    tap.same(withheld(shown), [], "and nothing is withheld")
    audit = Case(c.name + "-audit")
    status, out, _, err = guard(audit, ask_list(1), mode="lister", profile="audit",
                                argument=path)
    tap.same((status, out.decode()), (0, listed(1, first % (s, g, r)) + "\n"),
             "nor in audit")


def case_list_long(c):
    names = [f"read_{n}" if n % 3 else f"file_{n}" for n in range(600)]
    tools = [tool(n, "d" * 500) for n in names]
    path = pages(c, _='{"tools":[%s]}' % ",".join(tools))
    status, out, _, err = guard(c, ask_list(1), mode="lister", argument=path)
    want = listed(1, '{"tools":[%s]}' % ",".join(t for t, n in zip(tools, names) if "read" in n))
    tap.ok(len(want) > 200000 and out.decode() == want + "\n", "a list of 300 KiB is filtered",
           len(out), len(want), out[:200])
    tap.same(status, 0, "a long list: status")
    tap.same(withheld(c), [n for n in names if "file" in n], "events name all of them")
    c.judge(0)


def hides(err):
    return [line for line in err.splitlines() if "the policy hides" in line]


def case_list_told(c):
    """A client without tools looks broken: stderr says who took them, once."""
    names = ["shell_exec", "unknown", "good"]
    lists = {"all": names[:2], "some": names, "one": names[1:2], "none": names[2:], "empty": []}
    path = pages(c, **{k: '{"tools":[%s]}' % ",".join(map(tool, v)) for k, v in lists.items()},
                 more='{"tools":[%s],"nextCursor":"last"}' % tool("good"),
                 last='{"tools":[%s]}' % tool("file_x"))

    def err_of(one, *cursors, flags=(), profile="guard"):
        return guard(one, b"".join(ask_list(n, k) for n, k in enumerate(cursors)), *flags,
                     mode="lister", argument=path, profile=profile)[3]

    some = "assay: the policy hides 2 of 3 tools from the client"
    all_hidden = ("assay: the policy hides 2 of 2 tools from the client: name those that it may call "
                  f"in the allowlist of '{c.dir}.yaml', or see assay policy init --from-session")
    tap.same(hides(err_of(c, "all", "some", "all", "some", "none", "empty", "all")),
             [all_hidden, some], "what is hidden is said once for each list")
    for flags, profile in ((("--show-denied-tools",), "guard"), ((), "audit")):
        one = Case(f"{c.name}-{profile}")
        tap.same(hides(err_of(one, "all", "some", flags=flags, profile=profile)), [],
                 f"not where nothing is hidden: {profile}")
    err = err_of(Case(c.name + "-page"), "more", "last", "one")
    tap.ok(len(hides(err)) == 2 and "1 of 1 tool of a page from the client" in hides(err)[0] and
           "1 of 1 tool from the client" in hides(err)[1], "a page is called so", err)
    err = err_of(Case(c.name + "-json"), "some", flags=("--json",))
    tap.ok({"event": "note", "message": some[7:]} in map(json.loads, err.splitlines()), "as JSON",
           err)


def case_list_told_many(c):
    path = pages(c, **{f"n{n}": '{"tools":[%s]}' % tool(f"file_{n}") for n in range(17)})
    for name, order, want in (("16", [*range(16), 0, 15], 16), ("17", [*range(17), 0], 18)):
        one = Case(f"{c.name}-{name}")
        err = guard(one, b"".join(ask_list(i, f"n{n}") for i, n in enumerate(order)),
                    mode="lister", argument=path)[3]
        tap.same(len(hides(err)), want, f"{name} different lists: told of {want}")


# --- pins ---


def changed(c):
    return [(name, "from" in e) for e in c.events() if e["type"] == "tool_changed"
            for name in e["names"]]


def list_once(c, path, *flags, text=POLICY, profile="guard", tools=("good", "read_x")):
    """A session: a list, and a call of each tool. Names listed, ids denied, stderr."""
    data = ask_list(1)
    p = c.start("lister", "--profile", profile, "--policy", policy(c, text), "--server-id",
                "srv", *flags, argument=path)
    p.stdin.write(data)
    shown = [t["name"] for t in json.loads(read_line(p))["result"]["tools"]]
    p.stdin.write(b"".join(call(f'"{t}"', t) for t in tools))
    status, out, err = end(p)
    return status, shown, [json.loads(i) for i, _ in ids_answered(out)[0]], err.decode()


def one_page(c, *tools):
    return pages(c, _='{"tools":[%s]}' % ",".join(tools))


def case_pins(c):
    path = one_page(c, tool("good"), tool("read_x"))
    status, shown, denied, err = list_once(c, path)
    tap.same((status, shown, denied, changed(c)), (0, ["good", "read_x"], [], []),
             "the first list pins")
    at = c.dir + "/pins/srv/"
    kept = sorted(n for n in os.listdir(at) if len(n) == 69)
    tap.same(len(kept), 2, "each definition is kept")
    tap.ok(all(sha(read(at + n)) == "sha256:" + n[:64] for n in kept), "under its hash")
    tap.ok(json.loads(read(at + kept[0]))["description"] == "says nothing", "as it was")
    status, shown, denied, err = list_once(c, path)
    tap.same((status, changed(c)), (0, []), "the same list again is no news")
    path = one_page(c, tool("good", "sends your keys"), tool("read_x"))
    status, shown, denied, err = list_once(c, path)
    tap.same((status, shown, denied), (0, ["good", "read_x"], []), "a change is let pass")
    tap.same(changed(c), [("good", True)], "with an event")
    tap.ok("'good' changed" in err, "and a warning", err)
    status, shown, denied, err = list_once(c, path)
    tap.ok("'good' changed" in err and changed(c) == [("good", True)] * 2,
           "in every session that sees it", err, changed(c))
    for flags, text in ((("--pin", "strict"), POLICY), ((), POLICY + "pin: strict\n")):
        status, shown, denied, err = list_once(c, path, *flags, text=text)
        tap.same((status, shown, denied), (1, ["read_x"], ["good"]),
                 f"strict hides and refuses it {flags}")
        last = max((r for r in c.receipts() if r["tool_name"] == "good"),
                   key=lambda r: r["log_seq"])
        tap.same((last["outcome"], last["policy_ref"]), ("denied", "pin"), "by its pin")
    status, shown, denied, err = list_once(c, path, "--pin", "off", text=POLICY + "pin: strict\n")
    tap.same((status, shown, denied), (0, ["good", "read_x"], []), "the flag comes first")
    tap.ok("changed" not in err, "and off says nothing", err)
    path = one_page(c, tool("good"), tool("read_x"))
    status, shown, denied, err = list_once(c, path, "--pin", "strict")
    tap.same((status, shown, denied), (0, ["good", "read_x"], []),
             "a definition that is as it was is fine again")
    tap.ok("changed" not in err, "and nothing is said of it", err)
    c.judge(None)


def case_pins_odd(c):
    """A definition without canonical form, and twins, are changes."""
    for name, odd in (("twice", '{"name":"good","description":"a","description":"evil"}'),
                      ("half", '{"name":"good","description":"\\ud800"}'),
                      ("huge", '{"name":"good","x":1e999}')):
        one = Case(f"{c.name}-{name}")
        list_once(one, one_page(one, tool("good")))
        status, shown, denied, err = list_once(one, one_page(one, odd), "--pin", "strict",
                                               tools=("good",))
        tap.same((status, shown, denied), (1, [], ["good"]), f"{one.name}: refused")
        tap.ok("'good' changed" in err, f"{one.name}: and said", err)
        one.judge(None)
    for twins in ((tool("good", "evil"), tool("good")), (tool("good"), tool("good", "evil"))):
        one = Case(f"{c.name}-twins{twins[0] == tool('good')}")
        list_once(one, one_page(one, tool("good")))
        status, shown, denied, err = list_once(one, one_page(one, *twins), "--pin", "strict",
                                               tools=("good",))
        tap.same((status, denied), (1, ["good"]), f"{one.name}: refused")
        one.judge(None)


def case_pins_in_session(c):
    """The definition changes under a session that runs, and is accepted meanwhile."""
    path = one_page(c, tool("good"))
    p = c.start("lister", "--profile", "guard", "--policy", policy(c), "--server-id", "srv",
                "--pin", "strict", argument=path)

    def round_trip(line):
        p.stdin.write(line)
        return json.loads(read_line(p))

    tap.same(len(round_trip(ask_list(1))["result"]["tools"]), 1, "pinned")
    one_page(c, tool("good", "other"))
    tap.ok("result" in round_trip(call(2, "good")), "a change that nobody saw is none")
    tap.same(round_trip(ask_list(3))["result"]["tools"], [], "seen, it is hidden")
    tap.same(round_trip(call(4, "good"))["error"]["code"], -31001, "and refused")
    done = assay("policy", "pin", "--audit-dir", c.dir, "--server-id", "srv", "--accept", "good")
    tap.ok(done.returncode == 0, "a person accepts it", done.stderr)
    tap.ok("result" in round_trip(call(5, "good")), "and it may be called")
    tap.same(len(round_trip(ask_list(6))["result"]["tools"]), 1, "and is shown")
    tap.same(end(p)[0], 1, "status")
    c.judge()


def case_pins_audit(c):
    path = one_page(c, tool("good"))
    list_once(c, path, profile="audit")
    one_page(c, tool("good", "other"))
    status, shown, denied, err = list_once(c, path, "--pin", "strict", profile="audit",
                                           tools=("good",))
    tap.same((shown, denied), (["good"], []), "audit hides and refuses nothing")
    last = max(c.receipts(), key=lambda r: r["log_seq"])
    tap.same((last["policy_verdict"], last["policy_ref"]), ("denied", "pin"), "but says that guard would")
    tap.same(status, 1, "which is a violation")
    tap.same(changed(c), [("good", True)], "with an event")
    c.judge(None)


def case_hidden(c):
    for n, (text, kind) in enumerate((("a\\u202eb", "bidi"), ("a\u200bb", "zero"),
                                      ("a\U000e0041b", "tag"), ("plain é", None))):
        one = Case(f"{c.name}-{n}")
        _, _, _, err = list_once(one, one_page(one, tool("good", text)), tools=())
        tap.ok((f"({kind}" in err) if kind else "does not see" not in err,
               f"hidden characters: {kind}", err)


# --- the file ---


def loaded(c):
    return [(e["policy_hash"], e["ok"]) for e in c.events() if e["type"] == "policy_loaded"]


def wait_for(p, text):
    """Until stderr says it."""
    got, end_ = b"", time.monotonic() + 10
    os.set_blocking(p.stderr.fileno(), False)
    while text.encode() not in got and time.monotonic() < end_:
        try:
            got += p.stderr.read() or b""
        except BlockingIOError:
            pass
        time.sleep(0.01)
    os.set_blocking(p.stderr.fileno(), True)
    return got


def case_reload(c):
    p = c.start("recorder", "--profile", "guard", "--policy", policy(c), argument=c.dir + ".kept")
    second = POLICY.replace("good,", "good, late,")

    def ask(number, name):
        p.stdin.write(call(number, name))
        return "result" in json.loads(read_line(p))

    tap.same((ask(1, "good"), ask(2, "late")), (True, False), "the first policy")
    policy(c, second)
    p.send_signal(signal.SIGHUP)
    said = wait_for(p, "anew")
    tap.ok(sha(second.encode()).encode() in said, "SIGHUP: the new one is loaded", said)
    tap.same((ask(3, "good"), ask(4, "late")), (True, True), "and in force")
    policy(c, "version: [\n")
    p.send_signal(signal.SIGHUP)
    said = wait_for(p, "stays")
    tap.ok(b".yaml:" in said, "a bad one is refused with its line", said)
    tap.same(ask(5, "late"), True, "the old one stays")
    os.unlink(c.dir + ".yaml")
    p.send_signal(signal.SIGHUP)
    tap.ok(wait_for(p, "stays"), "so it does without a file")
    tap.same(ask(6, "late"), True, "in force")
    tap.same(end(p)[0], 1, "status")
    one, two, bad = (sha(t.encode()) for t in (POLICY, second, "version: [\n"))
    tap.same(loaded(c), [(one, True), (two, True), (bad, False), (two, False)],
             "an event each time")
    tap.same([r["policy_hash"] for r in c.receipts()], [one] * 2 + [two] * 4,
             "receipts name the one that decided")
    tap.same([e.get("policy_hash") for e in c.events() if e["type"] == "session_start"], [one],
             "the session the one that it began with")
    for text in (POLICY, second):
        path = f"{c.dir}/policy/policy_sha256_{sha(text.encode())[7:]}.yaml"
        tap.ok(read(path) == text.encode(), "each is kept under its hash")
    tap.same(len(os.listdir(c.dir + "/policy")), 2, "and nothing else")
    c.judge()


def case_hangup(c):
    p = c.start("recorder", argument=c.dir + ".kept")
    p.stdin.write(call(1))
    read_line(p)
    p.send_signal(signal.SIGHUP)
    tap.same(wait(p)[0], 0, "without a policy SIGHUP ends the session")
    tap.same([e["reason"] for e in c.events() if e["type"] == "session_end"], ["sigterm"],
             "as SIGTERM does")
    c.judge()


def case_status(c):
    rows = [("guard", call(1, "good"), 0), ("guard", call(1, "shell_exec"), 1),
            ("audit", call(1, "good"), 0), ("audit", call(1, "shell_exec"), 1),
            ("guard", b"no JSON\n", 1), ("audit", b"no JSON\n", 0), ("guard", b"\n", 0)]
    for n, (profile, data, want) in enumerate(rows):
        one = Case(f"{c.name}-{n}")
        status, _, _, err = guard(one, data, profile=profile)
        tap.same(status, want, f"{profile}, {data[:60]}: status")
        verb = "was" if profile == "guard" else "would have been"
        tap.ok((f"1 message {verb} denied by the policy" in err) == (want == 1), "and why", err)
    one = Case(c.name + "-lost")
    status, _, _, err = guard(one, call(1, "shell_exec") + call(2, "good"), "--shutdown-timeout", "0",
                       mode="silent")
    tap.same(status, 2, "a lost call comes before a denied one")
    tap.ok("1 call was not answered" in err and "no answer within 0 s after the client closed its "
           "end: it is not waited for any longer (--shutdown-timeout)" in err, "and is said", err)


def case_bad_policy(c):
    bad = {"missing": None, "empty": "", "yaml": "version: [", "key": POLICY + "denylst: []\n",
           "type": POLICY.replace("deny\n", "7\n", 1), "large": "#" * ((1 << 20) + 1)}
    for name, text in bad.items():
        one = Case(f"{c.name}-{name}")
        path = one.dir + ".yaml" if text is None else policy(one, text)
        for profile in ("guard", "audit"):
            status, out, err = one.run(call(1, "good"), "recorder", "--profile", profile,
                                       "--policy", path, argument=one.dir + ".kept")
            tap.ok(status == 3 and path.encode() in err and not out,
                   f"a {name} policy, {profile}: exit 3", status, err)
            tap.ok(not os.path.exists(one.dir + ".kept"), "and the server is not started")
    status, _, err = c.run(b"", "recorder", "--profile", "guard", argument=c.dir + ".kept")
    tap.ok(status == 3 and not os.path.exists(c.dir + ".kept"), "guard without a policy: exit 3",
           status, err)


def case_full(c):
    os.makedirs(c.dir, 0o700)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs",
                                       c.dir], capture_output=True).returncode:
        return tap.skip("a full audit directory", "no tmpfs can be mounted")
    try:
        p = c.start("recorder", "--profile", "guard", "--policy", policy(c),
                    argument=c.dir + ".kept")
        p.stdin.write(call(1, "good"))
        read_line(p)
        with open(c.dir + "/ballast", "wb", 0) as f:
            try:
                while True:
                    f.write(b"b" * 512)
            except OSError:
                pass
        codes = {}
        for n in range(2, 400):
            p.stdin.write(call(n, "good" if n % 2 else "shell_exec"))
            codes[n] = json.loads(read_line(p)).get("error", {}).get("code")
        kept = read(c.dir + ".kept")
        passed = {json.loads(line)["id"] for line in kept.splitlines()} - {1}
        failed = [n for n, code in codes.items() if code == -31005]
        tap.ok(len(failed) > 100, "guard blocks when evidence cannot be written", codes)
        tap.ok(passed == {n for n, code in codes.items() if code is None},
               "what is blocked does not reach the server", sorted(passed)[:9])
        tap.ok(not any(n % 2 == 0 for n in passed), "nor what is denied")
        os.unlink(c.dir + "/ballast")
        status, _, err = end(p)
        tap.same(status, 2, "evidence was lost: status")
    finally:
        subprocess.run(["umount", "-l", c.dir])


# --- counting ---


def case_budgets(c):
    text = POLICY + ('constraints:\n  good: {max_calls: 3}\n'
                     'budget: {max_tool_calls: 5}\n')
    data = b"".join(call(n, "good") for n in range(10)) + call(50, "shell_exec") + b"".join(
        call(100 + n, "read_x") for n in range(10))
    for profile in ("guard", "audit"):
        one = Case(f"{c.name}-{profile}")
        status, out, kept, _ = guard(one, data, text=text, profile=profile)
        allowed = [0, 1, 2, 100, 101]
        tap.same(status, 1, f"{profile}: status")
        tap.same([r["mcp_request_id"] for r in sorted(one.receipts(), key=lambda r: r["log_seq"])
                  if r["policy_verdict"] == "allowed"], allowed,
                 f"{profile}: calls in flight are counted when they are allowed")
        if profile == "guard":
            tap.same([json.loads(line)["id"] for line in kept.splitlines()], allowed,
                     "no more reach the server")
        tap.same({r["policy_ref"] for r in one.receipts() if r["policy_verdict"] == "denied"},
                 {"constraints.good.max_calls", "denylist[0]", "budget.max_tool_calls"},
                 f"{profile}: by these rules")
        one.judge()


# --- the claim ---


def case_forged(c):
    data = call(1, "shell_exec") + b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    guard(c, data)
    c.judge()
    forged = c.dir + ".forged"
    made = subprocess.run([sys.argv[1], c.packs()[0], forged], capture_output=True)
    tap.ok(made.returncode == 0, "a pack is forged", made.stdout, made.stderr)
    verdict = assay("verify-pack", forged)
    tap.ok(verdict.returncode == 2 and
           b"denied before" in verdict.stdout + verdict.stderr,
           "verify-pack refuses a denied call that was forwarded", verdict.returncode,
           verdict.stdout, verdict.stderr)


run_cases(globals())
