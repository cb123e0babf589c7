#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vectors for src/evidence/receipt_test.c, computed from docs/receipt.md and not by assay.

    python3 tests/data/make_receipts.py > tests/data/receipts.txt

Each case: "C name", then "E" the events of one call, then for every receipt "R" with
receipt id, parent or "-", seq, contents of arguments and result or "-"; "L" the line;
"H" its hash. "M" lines are session_metadata: the facts, then "L" and "H". "K" lines are
what a receipt stores of a JSON text: the text, a tab, what is stored.
"""
import hashlib
import json
from datetime import datetime, timezone

SESSION = "mcp_00112233445566aa"
CALL = "inv_0123456789abcdef"
ZERO = "sha256:" + hashlib.sha256(b"").hexdigest()
ARGS = "sha256:" + hashlib.sha256(b"{}").hexdigest()
RESULT = "sha256:" + hashlib.sha256(b"null").hexdigest()
POLICY = "sha256:" + hashlib.sha256(b"default-policy-v0").hexdigest()
FACTS = {"server_id": "srv é", "server_transport": "stdio", "proxy_version": "9.9.9"}
LINE_ENDS = {"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def time(ms):
    t = datetime.fromtimestamp(ms // 1000, timezone.utc)
    return t.strftime("%Y-%m-%dT%H:%M:%S") + ".%03dZ" % (ms % 1000)


class Case:
    def __init__(self, name):
        print("C", name)
        self.seq, self.n, self.ms = 40, 3, 1773574200000
        self.events, self.receipts = [], 0

    def event(self, what, **members):
        self.seq += 3
        self.n += 1
        self.ms += 1500
        e = {"v": 1, "seq": self.seq, "n": self.n, "prev": "00" * 32, "ts": time(self.ms),
             "type": what, "writer": "w_00000000000000ff", "session": SESSION, "call": CALL}
        e.update(members)
        self.events.append((self.ms, e))
        print("E", canonical(e))
        return self

    def message(self, what, **members):
        way = "s2c" if what.startswith("response") else "c2s"
        return self.event(what, dir=way, kind="request", bytes=5, digest=ZERO, **members)

    def receipt(self, parent=None, arguments=None, result=None, **want):
        """`want` overrides what a call without anything special would say."""
        rid = "mtc_%016x" % (0xabc0 + self.receipts)
        asked = next(x for x in self.events if x[1]["type"] == "request_received")
        said = next((x for x in reversed(self.events)
                     if x[1]["type"] in ("response_received", "call_lost")), None)
        answered = said is not None and said[1]["type"] == "response_received"
        last = self.events[-1][1]["seq"]
        self.event("receipt", receipt_id=rid, sha256=ZERO,
                   **({"parent": parent} if parent else {}))
        r = {
            "type": "mcp_tool_call", "receipt_id": rid, "timestamp": time(self.ms),
            "schema_version": "3.0", "seq": self.receipts, "invocation_id": CALL,
            "session_id": SESSION, "trace_id": SESSION, "parent_receipt_id": parent,
            "tool_name": asked[1].get("tool"), "mcp_request_id": None,
            "request_observed_at": time(asked[0]), "policy_decided_at": None,
            "response_observed_at": time(said[0]) if answered else None,
            "arguments_hash": ARGS, "arguments_content": "@A@" if arguments else None,
            "result_hash": RESULT if answered else None,
            "result_content": "@R@" if result else None,
            "result_is_error": False if answered else None,
            "outcome": "forwarded" if answered else "timeout", "outcome_reason": None,
            "duration_ms": said[0] - asked[0] if said else None,
            "policy_verdict": "no_policy", "policy_ref": None, "policy_reason": None,
            "policy_hash": None, "request_digest": ZERO,
            "response_digest": ZERO if answered else None, "modified": False,
            "log_seq": [asked[1]["seq"], last], "integration_source": "assay.mcp_proxy",
        }
        r.update(FACTS)
        r.update(want)
        text = canonical(r).replace('"@A@"', arguments or "").replace('"@R@"', result or "")
        print("R", "\t".join([rid, parent or "-", str(self.receipts), arguments or "-",
                               result or "-"]))
        finish(text)
        self.receipts += 1
        return self


def finish(text):
    line = text
    for raw, escape in LINE_ENDS.items():
        line = line.replace(raw, escape)
    print("L", line)
    print("H", hashlib.sha256(text.encode()).hexdigest())


def request(case, **members):
    return case.message("request_received", method="tools/call", arguments_hash=ARGS, **members)


def response(case, is_error=False, **members):
    return case.message("response_received", result_hash=RESULT, is_error=is_error, **members)


def calls():
    c = request(Case("answered"), id="7", tool="search").message("request_forwarded", id="7")
    response(c, id="7").receipt(mcp_request_id=7)
    c = request(Case("answered with an error"), id="-12", tool="x")
    response(c, True).receipt(mcp_request_id=-12, outcome="error", result_is_error=True)
    c = request(Case("contents are stored"), id="1", tool="x")
    response(c).receipt(mcp_request_id=1, arguments='{"a":1E21}', result='"\u2028\u0085\u2029é"')
    c = request(Case("without an id"), tool="x").event("call_lost", reason="no_id")
    c.receipt(outcome_reason="no_id")
    for reason in ("call_timeout", "cancelled", "server_exit", "client_gone", "shutdown",
                   "recorder_lost"):
        c = request(Case("lost: " + reason), id='"a"', tool="x")
        c.event("call_lost", reason=reason).receipt(mcp_request_id="a", outcome_reason=reason)
    c = request(Case("cancelled and answered after all"), id="1", tool="x")
    c.message("notification_received", method="notifications/cancelled")
    response(c).receipt(mcp_request_id=1, outcome_reason="cancelled")
    c = request(Case("cancelled by going, and answered after all"), id="1", tool="x")
    c.event("call_cancelled")
    response(c).receipt(mcp_request_id=1, outcome_reason="cancelled")
    c = request(Case("needs input"), id="1", tool="x")
    response(c, result_type="input_required").receipt(mcp_request_id=1,
                                                      outcome_reason="input_required")
    c = request(Case("another result type says nothing"), id="1", tool="x")
    response(c, result_type="other").receipt(mcp_request_id=1)


def tasks():
    c = request(Case("a task and its result"), id="1", tool="x")
    response(c, result_type="task").receipt(mcp_request_id=1, outcome_reason="task")
    c.message("response_sent", id="1")
    response(c).receipt(parent="mtc_000000000000abc0", mcp_request_id=1)
    c = request(Case("a task that nobody saw end"), id="1", tool="x")
    response(c, result_type="task").receipt(mcp_request_id=1, outcome_reason="task")
    c.event("call_lost", reason="task_unobserved")
    c.receipt(parent="mtc_000000000000abc0", mcp_request_id=1, outcome_reason="task_unobserved")


def policies():
    decided = {"verdict": "allowed", "policy_ref": "allowlist[2]", "policy_hash": POLICY}
    c = request(Case("allowed"), id="1", tool="x").event("policy_decided", **decided)
    at = time(c.ms)
    response(c).receipt(mcp_request_id=1, policy_decided_at=at, policy_verdict="allowed",
                        policy_ref="allowlist[2]", policy_hash=POLICY)
    decided.update(verdict="denied", policy_ref="denylist[0]", reason="on the list")
    said = {"policy_verdict": "denied", "policy_ref": "denylist[0]",
            "policy_reason": "on the list", "policy_hash": POLICY}
    c = request(Case("denied"), id="1", tool="x").event("policy_decided", **decided)
    at = time(c.ms)
    c.message("request_denied", reason_codes=["denylist"], policy_ref="denylist[0]")
    c.receipt(mcp_request_id=1, outcome="denied", policy_decided_at=at, **said)
    c = request(Case("denied by an advisory policy, forwarded"), id="1", tool="x")
    c.event("policy_decided", **decided)
    at = time(c.ms)
    response(c).receipt(mcp_request_id=1, policy_decided_at=at, **said)
    c = request(Case("refused unread"), id="1", tool="x")
    c.message("request_denied", reason_codes=["malformed"], policy_ref="malformed")
    c.receipt(mcp_request_id=1, outcome="denied", policy_decided_at=time(c.ms),
              policy_verdict="denied", policy_ref="malformed")
    c = request(Case("refused by no policy"), id="1", tool="x")
    c.message("request_denied", reason_codes=["evidence_failure", "other"])
    c.receipt(mcp_request_id=1, outcome="denied", outcome_reason="evidence_failure",
              policy_decided_at=time(c.ms))
    decided = {"verdict": "allowed", "policy_ref": "default", "policy_hash": POLICY}
    c = request(Case("allowed, and refused by no policy"), id="1", tool="x")
    c.event("policy_decided", **decided)
    at = time(c.ms)
    c.message("request_denied", reason_codes=["evidence_failure"])
    c.receipt(mcp_request_id=1, outcome="denied", outcome_reason="evidence_failure",
              policy_decided_at=at, policy_verdict="allowed", policy_ref="default",
              policy_hash=POLICY)


def foreign():
    for text, shown in [('7', 7), ('"7"', "7"), ('-0', "-0"), ('7.0', "7.0"), ('1e3', "1e3"),
                        ('9007199254740991', 9007199254740991),
                        ('9007199254740992', "9007199254740992"),
                        ('-9007199254740991', -9007199254740991),
                        ('-9007199254740992', "-9007199254740992"), ('null', "null"),
                        ('[1]', "[1]"), ('"a\\"\\u00e9\\ud83d\\ude00"', 'a"é😀'),
                        ('"\\ud800"', '"\\ud800"'), ('""', "")]:
        c = request(Case("id " + text), id=text, tool="x")
        response(c).receipt(mcp_request_id=shown)
    for text, shown in [('a\\"b\\u2028', 'a"b\u2028'), ('\\ud800', '\\ud800'), ('', ''),
                        ('line\\nend', 'line\nend'), ('é', 'é'), ('\\u0000', '\u0000')]:
        c = request(Case("tool " + canonical(text)), id="1", tool=text)
        response(c).receipt(mcp_request_id=1, tool_name=shown)
    long = 'x' * 250 + '\\u00…'
    c = request(Case("a tool name that was cut"), id="1", tool=long, tool_sha256=ZERO)
    response(c).receipt(mcp_request_id=1, tool_name=long)
    c = request(Case("an id that was cut"), id='"' + long, id_sha256=ZERO, tool="x")
    response(c).receipt(mcp_request_id='"' + long)
    c = request(Case("no tool name"), id="1")
    response(c).receipt(mcp_request_id=1)
    c = request(Case("a trace of its own"), id="1", tool="x", trace="00-aa-bb-01")
    response(c).receipt(mcp_request_id=1, trace_id="00-aa-bb-01")
    c = request(Case("a raw hash says why"), id="1", tool="x", raw_reason="duplicate member")
    response(c).receipt(mcp_request_id=1, outcome_reason="duplicate member")
    c = request(Case("an operator changed it"), id="1", tool="x")
    c.event("message_modified", actor={"pid": 1, "uid": 2}, action="edit")
    response(c).receipt(mcp_request_id=1, modified=True)
    c = request(Case("the leg before is named"), id="1", tool="x")
    response(c).receipt(mcp_request_id=1, parent="mtc_00000000000000ee")


def metadata():
    base = {"type": "session_metadata", "receipt_id": "smd_00000000000000aa",
            "timestamp": time(1773574260000), "schema_version": "3.0", "seq": 5,
            "session_id": SESSION, "trace_id": SESSION, "client_transport": "stdio",
            "profile": "guard", "integration_source": "assay.mcp_proxy",
            "started_at": time(1773574200000), "requests": 9, "calls": 4, "denied": 1,
            "lost": 2, "interventions": 3, "undelivered": 1, "events": 77, "log_from": 10,
            "log_to": 200}
    base.update(FACTS)
    final = dict(base, session_complete=True, reason="client_eof", ended_at=time(1773574259999),
                 part=2, final=True, policy_hash=POLICY, previous_pack_root_sha256="ab" * 32,
                 calls_open=0)
    part = dict(base, session_complete=False, reason=None, ended_at=None, part=1, final=False,
                policy_hash=None, previous_pack_root_sha256=None, calls_open=3)
    for name, m in (("final", final), ("part", part)):
        print("M", name)
        finish(canonical(m))


def contents():
    raw = lambda text: json.dumps(text, ensure_ascii=False)
    for text, stored in [
            ('{ "b" : 1, "a" : [ 1.50, 1e21, 1e-7, -0.0 ] }', '{"a":[1.5,1E21,1E-7,0],"b":1}'),
            ('"\\u00e9\\/"', '"é/"'), ('null', 'null'), ('[]', '[]'),
            ('{"é":1}', None), ('{"\\u00e9":1}', None), ('{"a":[{"ü":1}]}', None),
            ('{"\\u0061":1}', '{"a":1}'),
            ('9007199254740991', '9007199254740991'), ('9007199254740992', None),
            ('-9007199254740991', '-9007199254740991'), ('-9007199254740992', None),
            ('[123456789012345678901234567890]', None),
            ('1e20', None), ('9007199254740993.0', None), ('1e21', '1E21'), ('1e400', None),
            ('{"a":1,"a":2}', None), ('"\\ud800"', None), ('{"\\udc00":1}', None),
            ('[' * 127 + ']' * 127, '[' * 127 + ']' * 127), ('[' * 128 + ']' * 128, None)]:
        print("K", text + "\t" + (raw(text) if stored is None else stored))


calls()
tasks()
policies()
foreign()
metadata()
contents()
