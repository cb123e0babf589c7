#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes events.tsv: how to compose an event of each type, and the RFC 8785 line that
must come out. event_test.c follows the recipe; nothing of ours computes the line.

    make_events.py > tests/data/events.tsv

Fields are separated by tabs; what is not plain text stands there as hex.
"""
import hashlib
import json

PREV = hashlib.sha256(b"the event before").hexdigest()
SEQ = 9007199254740990
TS = ("2026-03-15T11:30:00.007Z", 1773574200007)
WRITER = "w_0123456789abcdef"
SHA = "sha256:" + "5a" * 32
CALL = "inv_00112233445566ff"
MESSAGE = [("text", "dir", "c2s"), ("text", "kind", "request"), ("int", "bytes", 71),
           ("text", "digest", SHA), ("text", "call", CALL), ("int", "batch", 0),
           ("foreign", "method", b"tools/call"), ("foreign", "id", b'"7\\n"'),
           ("foreign", "tool", "café \\u0000 \"x\" \x01\x7f\u2028".encode())]
OPERATOR = [("actor", "", (4242, 1000)), ("text", "action", "edit"),
            ("text", "digest_before", SHA), ("text", "digest_after", SHA),
            ("text", "call", CALL), ("int", "held_ms", 1500)]
EVENTS = [
    ("chain_start", [("text", "version", "0.1.0"), ("text", "vkey", "a.b/c+00112233+AQ=="),
                     ("text", "durability", "write"), ("text", "on_failure", "pass"),
                     ("text", "pepper_check", SHA), ("texts", "live", []),
                     ("texts", "dead", [WRITER, "w_fedcba9876543210"])]),
    ("chain_end", [("text", "for", "w_fedcba9876543210")]),
    ("session_start", [("text", "server_id", "files \"é\""), ("text", "transport", "stdio"),
                       ("text", "client_transport", "stdio"), ("text", "profile", "guard"),
                       ("text", "policy_hash", SHA), ("bool", "investigation", True)]),
    ("session_end", [("bool", "complete", False), ("text", "reason", "signal"),
                     ("int", "requests", 5), ("int", "calls", 4), ("int", "denied", 1),
                     ("int", "lost", 0), ("int", "interventions", 0),
                     ("int", "undelivered", 0), ("int", "events", 30),
                     ("text", "by", WRITER)]),
    ("request_received", MESSAGE + [("text", "arguments_hash", SHA), ("text", "trace", "0af7")]),
    ("request_forwarded", MESSAGE),
    ("response_received", MESSAGE + [("text", "result_hash", SHA), ("bool", "is_error", True),
                                     ("text", "result_type", "task")]),
    ("response_sent", MESSAGE),
    ("notification_received", MESSAGE),
    ("notification_forwarded", MESSAGE),
    ("message_received", MESSAGE),
    ("message_forwarded", MESSAGE),
    ("policy_decided", [("text", "call", CALL), ("text", "verdict", "denied"),
                        ("text", "policy_ref", "denylist[0]"), ("text", "reason", "listed"),
                        ("text", "policy_hash", SHA)]),
    ("request_denied", MESSAGE + [("texts", "reason_codes", ["denylist", "é"]),
                                  ("text", "policy_ref", "denylist[0]")]),
    ("message_held", OPERATOR),
    ("message_released", OPERATOR),
    ("message_modified", OPERATOR),
    ("message_dropped", OPERATOR),
    ("message_cut", MESSAGE + [("text", "reason", "too_large")]),
    ("response_late", MESSAGE),
    ("call_lost", [("text", "call", CALL), ("text", "reason", "recorder_lost")]),
    ("receipt", [("text", "receipt_id", "mtc_0011223344556677"), ("text", "sha256", SHA),
                 ("text", "call", CALL), ("text", "parent", "mtc_7766554433221100")]),
    ("policy_loaded", [("text", "policy_hash", SHA), ("bool", "ok", True)]),
    ("tools_withheld", [("texts", "names", ["a", "b\n", "\U0001f600"])]),
    ("tool_changed", [("texts", "names", ["a"]), ("text", "from", SHA), ("text", "to", SHA)]),
    ("gap", [("int", "lost", 3), ("text", "reason", "no space"), ("text", "from_ts", TS[0]),
             ("text", "to_ts", TS[0])]),
    ("repair", [("int", "offset", 9007199254740991), ("int", "bytes", 0),
                ("text", "sha256", SHA), ("text", "reason", "torn_tail")]),
    ("key_rotate", [("text", "vkey", "a.b/c+00112233+AQ==")]),
    ("heartbeat", []),
    ("payloads_forgotten", [("text", "of", "mcp_0123456789abcdef"), ("int", "files", 2)]),
    ("transport_found", [("text", "transport", "sse")]),
    ("server_ended", [("text", "reason", "exit"), ("int", "status", 3)]),
    ("call_cancelled", [("text", "call", CALL)]),
    # Foreign text around its limit; 'é' lies across byte 256.
    ("request_received", MESSAGE[:4] + [("foreign", "tool", b"x" * 256)]),
    ("request_received", MESSAGE[:4] + [("foreign", "tool", b"x" * 257)]),
    ("request_received", MESSAGE[:4] + [("foreign", "tool", b"x" * 255 + "é".encode())]),
    ("request_received", MESSAGE[:4] + [("foreign", "tool", "\U0001f600".encode() * 100)]),
    ("request_received", MESSAGE[:4] + [("foreign", "tool", b"not \xff UTF-8")]),
    ("request_received", MESSAGE[:4] + [("foreign", "tool", b"")]),
]


def cut(source):
    try:
        text = source.decode()
    except UnicodeDecodeError:
        return "", True
    if len(source) <= 256:
        return text, False
    while len(text.encode()) > 256:
        text = text[:-1]
    return text, True


def values(kind, name, value):
    if kind == "actor":
        yield "actor", {"pid": value[0], "uid": value[1]}
    elif kind == "foreign":
        text, shortened = cut(value)
        yield name, text + ("…" if shortened else "")
        if shortened:
            yield name + "_sha256", "sha256:" + hashlib.sha256(value).hexdigest()
    else:
        yield name, value


def recipe(kind, name, value):
    if kind == "text":
        return [kind, name, value.encode().hex()]
    if kind == "texts":
        return [kind, name] + [v.encode().hex() for v in value]
    if kind == "foreign":
        return [kind, name, name + "_sha256", value.hex()]
    if kind == "actor":
        return [kind, str(value[0]), str(value[1])]
    return [kind, name, str(int(value))]


def main():
    for number, (kind, members) in enumerate(EVENTS):
        line = {"v": 1, "seq": SEQ, "prev": PREV, "ts": TS[0], "type": kind,
                "writer": WRITER}
        print("event", kind, SEQ, PREV, TS[1], WRITER, sep="\t")
        if number % 2:
            members = members + [("text", "session", "mcp_0123456789abcdef"),
                                 ("int", "n", number)]
        for member in members:
            print(*recipe(*member), sep="\t")
            line.update(values(*member))
        # Names here are ASCII, so code points sort as UTF-16 code units do.
        print("line", json.dumps(line, sort_keys=True, separators=(",", ":"),
                                 ensure_ascii=False).encode().hex(), sep="\t")


main()
