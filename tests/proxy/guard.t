#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a policy does to a session, on the program.

    guard.t - [soak]    soak: more messages

The server keeps every byte that it gets; tests/proxy/hostile.py says, by code of its own,
which those must be.
"""
import fnmatch
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


def case_messages(c):
    made = hostile.lines(4711, 100000 if SOAK else 12000)
    expected = [hostile.expect(line, may) for line in made]
    fates = [f for e in expected for f in e.fates]
    refused = [f for f in fates if not f.goes]
    status, out, kept, err = guard(c, b"".join(made), timeout=HURRY * 10)
    # An allowed call without an id is lost, which comes before violations.
    lost = any(f.goes and f.is_call and f.kind == "notification" for f in fates)
    tap.ok(status == (2 if lost else 1), f"{len(made)} messages: status", status, err,
           [e for e in c.events() if e["type"] in ("session_end", "gap", "call_lost")][:5])
    wrong = check_bytes(expected, kept)
    tap.ok(wrong is None, "the server gets what it may get, byte for byte", wrong)
    tap.ok(len(refused) > 3000 and len(fates) - len(refused) > 3000, "many of each",
           len(refused), len(fates))
    ours, theirs = ids_answered(out)
    want = sorted((f.id, f.code) for f in refused if f.code)
    tap.ok(sorted(ours) == want, "each refused request has one answer with its id",
           sorted(set(ours) - set(want))[:5], sorted(set(want) - set(ours))[:5],
           len(ours), len(want))
    asked = sorted(hostile.DECODER.decode(f.id) for f in fates
                   if f.goes and f.kind == "request")
    tap.same(len(theirs), len(asked), "and each other one its server's")
    check_receipts(c, fates)
    c.judge()


def check_receipts(c, fates):
    receipts = sorted(c.receipts(), key=lambda r: r["log_seq"][0])
    calls = [f for f in fates if f.is_call]
    tap.same(len(receipts), len(calls), "a receipt for each call")
    wrong = []
    for f, r in zip(calls, receipts):
        verdict = "allowed" if f.goes else "denied"
        good = (r["policy_verdict"] == verdict and
                (f.goes or r["outcome"] == "denied") and
                (r["policy_ref"] == "malformed") == (f.code == -31004 or (
                    not f.goes and f.tool is None)))
        if not good:
            wrong.append((f.raw[:200], r["policy_verdict"], r["outcome"], r["policy_ref"]))
    tap.ok(not wrong, "that says what became of it", wrong[:3])
    denied = [e for e in c.events() if e["type"] == "request_denied"]
    tap.same(len(denied), sum(not f.goes for f in fates), "and an event for each refusal")


run_cases(globals())
