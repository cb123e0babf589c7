#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the proof packs of tests/data/good and tests/data/bad.

An independent writer of the public format: the standard library and, for Ed25519, the
`cryptography` package. Deterministic: the key is SHA-256("assay test packs") and every
time is fixed, so that running it again changes nothing. Each bad pack is a good one with
one thing wrong; its directory name says what, and `expect.tsv` says what a verifier
must find:  <directory> <exit code> <E_ code or -> <field or ->
"""
import base64
import copy
import hashlib
import json
import os
import shutil
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HERE = os.path.dirname(os.path.abspath(__file__))
START, END = "2025-06-01T10:00:00.000Z", "2025-06-01T10:00:02.000Z"


def key_of(text):
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(text.encode()).digest())


KEY = key_of("assay test packs")
OTHER = key_of("somebody else")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def number(x):
    if isinstance(x, int):
        return str(x)
    text = repr(x)
    if x == int(x) and abs(x) < 1e21:
        return str(int(x))
    return text.replace("e+", "E").replace("e-0", "E-").replace("e", "E")


def canonical(v):
    if v is None or v is True or v is False:
        return json.dumps(v)
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False)
    if isinstance(v, (int, float)):
        return number(v)
    if isinstance(v, list):
        return "[" + ",".join(canonical(x) for x in v) + "]"
    names = sorted(v, key=lambda k: k.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(canonical(k) + ":" + canonical(v[k]) for k in names) + "}"


def project(receipt):
    drop = ("signature", "signatures", "cose_signature", "receipt_hash", "anchor")
    return {k: v for k, v in receipt.items() if k not in drop}


def receipts():
    return [
        {
            "type": "mcp_tool_call", "receipt_id": "mtc_%016x" % i, "seq": i,
            "timestamp": "2025-06-01T10:00:0%d.000Z" % i, "schema_version": "3.0",
            "tool_name": "search", "outcome": "forwarded", "duration_ms": 12 + i,
            "ratio": 0.5, "note": "gr\u00fc\u00df \u4f60\u597d",
        }
        for i in range(2)
    ] + [
        {
            "type": "session_metadata", "receipt_id": "mtc_00000000000000ff", "seq": 2,
            "timestamp": END, "schema_version": "3.0", "session_complete": True,
        }
    ]


class Pack:
    """A pack under construction; every part may be bent before or after signing."""

    def __init__(self, rows=None, lines=None, head=None):
        self.rows = receipts() if rows is None else rows
        self.lines = lines
        self.head = head
        self.key = KEY
        self.attest = {}
        self.before = []  # functions on the manifest, before signing
        self.after = []  # and after
        self.extra = {}  # more files, name -> bytes
        self.listed = []  # of them, those in files[]
        self.count = None

    def jsonl(self):
        if self.lines is not None:
            return self.lines
        return "".join(canonical(project(r)) + "\n" for r in self.rows).encode()

    def head_hash(self):
        if self.head is not None:
            return self.head
        return sha(canonical(project(self.rows[-1])).encode() if self.rows else b"empty")

    def attestation(self):
        a = {
            "pack_format_version": "0.1.0", "fingerprint_version": 1,
            "pack_id": "pack_20250601T100000_0badcafe", "run_id": "run_test",
            "suite_id": "manual", "suite_hash": sha(b"manual"),
            "verifier_version": "0.1.0", "canon_version": "jcs-rfc8785",
            "canon_impl": "make_packs.py", "canon_impl_version": "1",
            "policy_hash": sha(b"default-policy-v0"), "claim_set_id": "none",
            "claim_set_hash": sha(b"none"), "receipt_integrity": "PASS",
            "claim_check": "N/A", "discrepancy_fingerprint": None,
            "assurance_level": "L0", "proof_tier": "signed-pack", "mode": "shadow",
            "head_hash": self.head_hash(),
            "head_hash_algorithm": "last-receipt-digest-v0",
            "time_authority": "local_clock", "n_receipts": len(self.rows),
            "timestamp_start": START, "timestamp_end": END, "ci_binding": None,
            "valid_until": None, "superseded_by": None,
        }
        a.update(self.attest)
        return {k: v for k, v in a.items() if v is not ...}

    def write(self, path):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        files = {
            "receipt_pack.jsonl": self.jsonl(),
            "verify_report.json": b'{\n  "passed": true\n}',
            "verify_transcript.md": b"# Transcript\n",
        }
        files.update(self.extra)
        covered = ["receipt_pack.jsonl", "verify_report.json", "verify_transcript.md"]
        covered += self.listed
        pub = self.key.public_key().public_bytes_raw()
        a = self.attestation()
        m = {
            "pack_id": "pack_20250601T100000_0badcafe", "pack_version": "0.1.0",
            "manifest_version": "1.0.0", "hash_alg": "sha256", "attestation": a,
            "attestation_sha256": sha(canonical(a).encode()),
            "suite_hash": sha(b"manual"), "claim_set_id": "none",
            "claim_set_hash": sha(b"none"),
            "receipt_count_expected": len(self.rows) if self.count is None else self.count,
            "files": [{"path": n, "sha256": sha(files[n]), "bytes": len(files[n])} for n in covered],
            "expected_files": covered + ["pack_manifest.json", "pack_signature.sig"],
            "signer_id": "test-signer", "signer_pubkey": base64.b64encode(pub).decode(),
            "signer_pubkey_sha256": sha(pub), "signature_alg": "ed25519",
            "signature_scope": "JCS(pack_manifest_excluding_signature_and_pack_root_sha256)",
        }
        for bend in self.before:
            bend(m)
        signature = self.key.sign(canonical(m).encode())
        m["signature"] = base64.b64encode(signature).decode()
        m["pack_root_sha256"] = m.get("attestation_sha256", "0" * 64)
        files["pack_signature.sig"] = signature
        for bend in self.after:
            bend(m)
        files["pack_manifest.json"] = json.dumps(m, indent=2).encode()
        for name, data in files.items():
            if data is None:
                continue
            full = os.path.join(path, name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as f:
                f.write(data)


class NoSecret:
    """A point of small order as key, and a signature that anybody can write down."""

    def __init__(self, point, r):
        self.point, self.r = point, r

    def public_key(self):
        return self

    def public_bytes_raw(self):
        return self.point

    def sign(self, _):
        return self.r + bytes(32)


EXPECT = []


def emit(name, pack, code=0, finding="-", field="-", patch=None):
    path = os.path.join(HERE, name)
    pack.write(path)
    if patch:
        patch(path)
    EXPECT.append("%s\t%d\t%s\t%s\n" % (name, code, finding, field))


def bent(before=None, after=None, **attest):
    p = Pack()
    p.attest.update(attest)
    if before:
        p.before.append(before)
    if after:
        p.after.append(after)
    return p


def row(change, at=-1):
    """A pack whose receipt `at` was changed; signed over the changed receipts."""
    rows = receipts()
    change(rows[at])
    return Pack(rows)


def raw_last(line, head=None):
    """A pack whose last line is these bytes."""
    keep = Pack(receipts()[:2]).jsonl()
    p = Pack(receipts(), keep + line + b"\n", head)
    return p


def last_line(**more):
    r = dict(receipts()[2])
    r.update(more)
    return canonical(r).encode()


def replace(name, old, new):
    def patch(path):
        full = os.path.join(path, name)
        with open(full, "rb") as f:
            data = f.read()
        assert old in data, (name, old)
        with open(full, "wb") as f:
            f.write(data.replace(old, new, 1))

    return patch


def overwrite(name, data):
    def patch(path):
        with open(os.path.join(path, name), "wb") as f:
            f.write(data)

    return patch


def remove(name):
    return lambda path: os.unlink(os.path.join(path, name))


def link(name, target):
    def patch(path):
        os.unlink(os.path.join(path, name))
        os.symlink(target, os.path.join(path, name))

    return patch


def good():
    emit("good/minimal", Pack())
    emit("good/no-receipts", Pack([]))
    p = Pack()
    p.extra = {"extra/notes.txt": b"signed too\n", "_unsigned/PACK_SUMMARY.md": b"# Summary\n"}
    p.listed = ["extra/notes.txt"]
    emit("good/extra-signed-file", p)
    emit("good/legacy-signature-scope",
         bent(lambda m: m.update(signature_scope="JCS(pack_manifest_without_signature)")))
    p = Pack()
    p.extra = {"PACK_SUMMARY.md": b"# Summary\n"}
    emit("good/legacy-root-summary", p)
    emit("good/crlf-and-blank-lines",
         Pack(receipts(), b"\r\n" + Pack().jsonl().replace(b"\n", b"\r\n") + b"\n \t\n"))
    emit("good/not-canonical-lines",
         Pack(receipts(), "".join(json.dumps(r) + "\n" for r in receipts()).encode()))
    emit("good/last-line-without-newline", Pack(receipts(), Pack().jsonl()[:-1]))
    line = last_line(text="a\u2028b").replace("\u2028".encode(), b"\\u2028")
    r = receipts()
    r[2]["text"] = "a\u2028b"
    emit("good/line-separator-escaped", Pack(r, Pack(r[:2]).jsonl() + line + b"\n"))
    emit("good/root-signature-members-dropped",
         Pack(receipts(), Pack(receipts()[:2]).jsonl()
              + canonical(dict(receipts()[2], signature="x", anchor={"a": 1})).encode() + b"\n"))
    emit("good/numbers", row(lambda r: r.update(a=1e21, b=1e-7, c=-0.0, d=2.5, e=9007199254740991)))
    emit("good/namespaced-type", row(lambda r: r.update(type="mcp.tool_requested/v1")))
    emit("good/date-only-timestamp", row(lambda r: r.update(timestamp="2025-06-01")))
    emit("good/redaction-policy", bent(lambda m: m.update(redaction_policy_sha256="a" * 64)))
    emit("good/claims-failed", bent(claim_check="FAIL", discrepancy_fingerprint="b" * 64))
    emit("good/claims-passed", bent(claim_check="PASS"))
    emit("good/ci-binding", bent(ci_binding={
        "provider": "github_actions", "commit_sha": "c" * 40, "repo": "o/r", "run_id": "7"}))
    emit("good/session-incomplete", row(lambda r: r.update(session_complete=False)))
    hostile = "<script>alert(1)</script>|`\u001b[31m\u202e"
    p = bent(lambda m: m.update(signer_id=hostile, pack_id=hostile))
    p.attest.update(pack_id=hostile, run_id=hostile)
    emit("good/hostile-names", p)
    emit("good/size-differs", bent(lambda m: m["files"][2].update(bytes=1)))
    emit("good/n-receipts-differs", bent(n_receipts=7))


def bad_manifest():
    def schema(name, before=None, **attest):
        emit("bad/manifest-" + name, bent(before, **attest), 2, "E_MANIFEST_TAMPER", "pack_manifest.json")

    emit("bad/manifest-is-not-json", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         overwrite("pack_manifest.json", b'{"pack_id": '))
    emit("bad/manifest-is-empty", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         overwrite("pack_manifest.json", b""))
    emit("bad/manifest-is-an-array", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         overwrite("pack_manifest.json", b"[]"))
    emit("bad/manifest-is-not-utf8", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         replace("pack_manifest.json", b"test-signer", b"test-\xffsigner"))
    emit("bad/manifest-has-nul-bytes", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         replace("pack_manifest.json", b"test-signer", b"test-\0signer"))
    emit("bad/manifest-nested-too-deep", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         overwrite("pack_manifest.json", b"[" * 2000 + b"]" * 2000))
    emit("bad/manifest-duplicate-member", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         replace("pack_manifest.json", b'"signer_id"', b'"signer_id": "x",\n  "signer_id"'))
    emit("bad/manifest-lone-surrogate", Pack(), 2, "E_MANIFEST_TAMPER", "pack_manifest.json",
         replace("pack_manifest.json", b"test-signer", b"test-\\ud800"))
    schema("lacks-pack-id", lambda m: m.pop("pack_id"))
    schema("extra-member", lambda m: m.update(session_complete=True))
    schema("bad-hash-alg", lambda m: m.update(hash_alg="md5"))
    schema("bad-signature-alg", lambda m: m.update(signature_alg="rsa"))
    schema("bad-scope", lambda m: m.update(signature_scope="everything"))
    schema("bad-version", lambda m: m.update(pack_version="0.1.0 beta"))
    schema("version-with-newline", lambda m: m.update(pack_version="0.1.0\n"))
    schema("bad-hex", lambda m: m.update(suite_hash="A" * 64))
    schema("short-hex", lambda m: m.update(suite_hash="a" * 63))
    schema("empty-signer", lambda m: m.update(signer_id=""))
    schema("count-is-text", lambda m: m.update(receipt_count_expected="3"))
    schema("count-is-negative", lambda m: m.update(receipt_count_expected=-1))
    schema("count-is-huge", lambda m: m.update(receipt_count_expected=2**53))
    schema("too-few-files", lambda m: m.update(files=m["files"][:2]))
    schema("file-entry-extra", lambda m: m["files"][0].update(mode="0644"))
    schema("file-bytes-text", lambda m: m["files"][0].update(bytes="1"))
    schema("too-few-expected", lambda m: m.update(expected_files=m["expected_files"][:4]))
    schema("expected-empty-name", lambda m: m["expected_files"].append(""))
    schema("attestation-extra", None, signer_identity="x")
    schema("attestation-lacks-proof-tier", None, proof_tier=...)
    schema("attestation-bad-proof-tier", None, proof_tier="notarised")
    schema("attestation-bad-mode", None, mode="quiet")
    schema("attestation-null-mode", None, mode=None)
    schema("attestation-bad-release", None, pack_format_version="0.1")
    schema("attestation-fingerprint-zero", None, fingerprint_version=0)
    schema("time-with-space", None, timestamp_end="2025-06-01 10:00:02Z")
    schema("time-lower-case", None, timestamp_end="2025-06-01t10:00:02z")
    schema("time-without-zone", None, timestamp_end="2025-06-01T10:00:02")
    schema("time-no-such-day", None, timestamp_end="2025-02-30T10:00:02Z")
    schema("valid-until-text", None, valid_until="tomorrow")
    schema("superseded-empty", None, superseded_by="")
    schema("ci-provider", None, ci_binding={"provider": "mine", "commit_sha": "c" * 40})
    schema("ci-commit", None, ci_binding={"provider": "local", "commit_sha": "C" * 40})
    schema("ci-lacks-commit", None, ci_binding={"provider": "local"})
    schema("ci-extra", None, ci_binding={"provider": "local", "commit_sha": "c" * 40, "x": "y"})


def bad_files():
    emit("bad/file-missing", Pack(), 2, "E_MANIFEST_TAMPER", "verify_report.json", remove("verify_report.json"))
    emit("bad/file-changed", Pack(), 2, "E_MANIFEST_TAMPER", "verify_transcript.md",
         overwrite("verify_transcript.md", b"# Transcripts\n"))
    emit("bad/receipts-changed", Pack(), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl",
         replace("receipt_pack.jsonl", b"forwarded", b"forwarder"))
    emit("bad/receipts-missing", Pack(), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl", remove("receipt_pack.jsonl"))
    emit("bad/expected-missing",
         bent(lambda m: m["expected_files"].append("not_there.txt")), 2, "E_MANIFEST_TAMPER", "not_there.txt")
    emit("bad/receipts-not-listed", bent(lambda m: m["files"].__setitem__(0, dict(m["files"][1]))),
         2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")

    def names(name, path):
        emit("bad/path-" + name, bent(lambda m: m["files"].append(
            {"path": path, "sha256": "a" * 64, "bytes": 1})), 2, "E_PATH_ESCAPE", path)

    names("traversal", "../../../etc/passwd")
    names("absolute", "/etc/passwd")
    names("dotdot-inside", "a/../receipt_pack.jsonl")
    names("backslash", "..\\..\\etc\\passwd")
    emit("bad/path-expected-traversal",
         bent(lambda m: m["expected_files"].append("../x")), 2, "E_PATH_ESCAPE", "../x")
    emit("bad/path-with-nul", bent(lambda m: m["files"].append(
        {"path": "verify_report.json\0", "sha256": "a" * 64, "bytes": 1})), 2, "E_PATH_ESCAPE")
    emit("bad/path-symlink-out", Pack(), 2, "E_PATH_ESCAPE", "verify_transcript.md",
         link("verify_transcript.md", "../../good/minimal/verify_transcript.md"))
    emit("bad/path-symlink-inside", Pack(), 2, "E_PATH_ESCAPE", "verify_transcript.md",
         link("verify_transcript.md", "verify_report.json"))
    emit("bad/path-manifest-symlink", Pack(), 2, "E_PATH_ESCAPE", "pack_manifest.json",
         link("pack_manifest.json", "../../good/minimal/pack_manifest.json"))

    def directory(path):
        os.unlink(os.path.join(path, "verify_report.json"))
        os.mkdir(os.path.join(path, "verify_report.json"))
        with open(os.path.join(path, "verify_report.json", "keep"), "w") as f:
            f.write("\n")  # git keeps no empty directory

    emit("bad/file-is-a-directory", Pack(), 2, "E_MANIFEST_TAMPER", "verify_report.json", directory)


def bad_receipts():
    p = Pack()
    p.count = 2
    emit("bad/receipt-count", p, 2, "E_PACK_OMISSION_DETECTED", "receipt_count_expected")
    emit("bad/receipt-duplicate-id", row(lambda r: r.update(receipt_id="mtc_%016x" % 0)),
         2, "E_DUPLICATE_ID", "receipt_id")
    emit("bad/receipt-duplicate-id-escaped",
         raw_last(last_line(receipt_id="mtc_%016x" % 0).replace(b'"mtc_', b'"\\u006dtc_'),
                  sha(last_line(receipt_id="mtc_%016x" % 0))), 2, "E_DUPLICATE_ID", "receipt_id")
    for f in ("receipt_id", "type", "timestamp"):
        emit("bad/receipt-lacks-" + f.replace("_", "-"), row(lambda r: r.pop(f)), 2, "E_SCHEMA_UNKNOWN", f)
        emit("bad/receipt-empty-" + f.replace("_", "-"), row(lambda r: r.update({f: ""})), 2, "E_SCHEMA_UNKNOWN", f)
    emit("bad/receipt-zero-id", row(lambda r: r.update(receipt_id=0)), 2, "E_SCHEMA_UNKNOWN", "receipt_id")
    emit("bad/receipt-timestamp", row(lambda r: r.update(timestamp="yesterday")), 2, "E_TIMESTAMP_INVALID", "timestamp")
    emit("bad/receipt-timestamp-number", row(lambda r: r.update(timestamp=1748772000)), 2, "E_TIMESTAMP_INVALID", "timestamp")
    emit("bad/receipt-type-unknown", row(lambda r: r.update(type="mcp_tool_executed")), 2, "E_SCHEMA_UNKNOWN", "type")
    emit("bad/receipt-type-loom", row(lambda r: r.update(type="loom.anything")), 2, "E_SCHEMA_UNKNOWN", "type")
    emit("bad/receipt-type-upper-case", row(lambda r: r.update(type="Mcp.tool")), 2, "E_SCHEMA_UNKNOWN", "type")
    emit("bad/receipt-big-integer", row(lambda r: r.update(n=2**53 + 1)), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-big-integer-not-last", row(lambda r: r.update(n=[{"x": -(2**60)}]), 0), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-name-not-ascii", row(lambda r: r.update({"s\u0456gnature": 1})), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-name-not-ascii-escaped",
         raw_last(last_line()[:-1] + b',"x":{"\\u0456":1}}', "0" * 64), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-duplicate-member", raw_last(last_line()[:-1] + b',"seq":3}', sha(last_line(seq=3))), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-lone-surrogate", raw_last(last_line()[:-1] + b',"x":"\\udc00"}', "0" * 64), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-number-too-large", raw_last(last_line()[:-1] + b',"x":1e999}', "0" * 64), 2, "E_CANON_MISMATCH")
    emit("bad/receipt-nested-too-deep",
         raw_last(last_line()[:-1] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}", "0" * 64), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    for name, line in (("array", b"[1]"), ("number", b"7"), ("null", b"null")):
        emit("bad/receipt-is-%s" % name, raw_last(line, "0" * 64), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-not-json", raw_last(b'{"a":', "0" * 64), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-not-utf8", raw_last(last_line()[:-1] + b',"x":"\xff"}', "0" * 64), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-nul-byte", raw_last(last_line() + b"\0", sha(last_line())), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-nan", raw_last(last_line()[:-1] + b',"x":NaN}', "0" * 64), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-two-on-a-line", raw_last(last_line() + b" " + last_line(), sha(last_line())), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-carriage-return-inside", raw_last(last_line().replace(b",", b",\r", 1), sha(last_line())), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    for name, c in (("next-line", "\u0085"), ("line-separator", "\u2028"), ("paragraph-separator", "\u2029")):
        r = receipts()
        r[2]["text"] = "a%sb" % c
        emit("bad/receipt-raw-" + name, Pack(r), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipts-byte-order-mark", Pack(receipts(), b"\xef\xbb\xbf" + Pack().jsonl()), 2, "E_MANIFEST_TAMPER", "receipt_pack.jsonl")
    emit("bad/receipt-integrity-says-fail", bent(receipt_integrity="FAIL"), 2, "E_MANIFEST_TAMPER", "receipt_integrity")
    p = row(lambda r: r.pop("timestamp"))
    p.attest = {"receipt_integrity": "FAIL"}
    emit("bad/receipt-integrity-honest-fail", p, 2, "E_SCHEMA_UNKNOWN", "timestamp")
    emit("bad/head-hash", Pack(head="1" * 64), 2, "E_MANIFEST_TAMPER", "head_hash")
    emit("bad/head-hash-of-none", Pack([], head="1" * 64), 2, "E_MANIFEST_TAMPER", "head_hash")


def bad_signature():
    emit("bad/attestation-changed", Pack(), 2, "E_MANIFEST_TAMPER", "attestation_sha256",
         replace("pack_manifest.json", b'"mode": "shadow"', b'"mode": "enforced"'))
    emit("bad/attestation-hash", bent(lambda m: m.update(attestation_sha256="0" * 64)), 2, "E_MANIFEST_TAMPER", "attestation_sha256")
    emit("bad/root-is-not-attestation", bent(None, lambda m: m.update(pack_root_sha256="0" * 64)), 2, "E_MANIFEST_TAMPER", "pack_root_sha256")
    emit("bad/manifest-changed", Pack(), 2, "E_PACK_SIG_INVALID", "signer_pubkey",
         replace("pack_manifest.json", b"test-signer", b"best-signer"))
    emit("bad/signature-is-not-base64", bent(None, lambda m: m.update(signature="***")), 2, "E_PACK_SIG_INVALID", "signature")
    emit("bad/signature-too-short", bent(None, lambda m: m.update(signature="AAAA")), 2, "E_PACK_SIG_INVALID", "signature")
    emit("bad/signature-file-missing", Pack(), 2, "E_PACK_SIG_INVALID", "pack_signature.sig", remove("pack_signature.sig"))
    emit("bad/signature-file-differs", Pack(), 2, "E_PACK_SIG_INVALID", "pack_signature.sig",
         overwrite("pack_signature.sig", b"\0" * 64))
    emit("bad/signature-file-longer", Pack(), 2, "E_PACK_SIG_INVALID", "pack_signature.sig",
         lambda path: open(os.path.join(path, "pack_signature.sig"), "ab").write(b"\n"))
    pub = OTHER.public_key().public_bytes_raw()
    emit("bad/key-of-somebody-else", bent(None, lambda m: m.update(
        signer_pubkey=base64.b64encode(pub).decode(), signer_pubkey_sha256=sha(pub))), 2, "E_PACK_SIG_INVALID", "signer_pubkey")
    one = bytes([1]) + bytes(31)
    p = Pack()
    p.key = NoSecret(one, one)
    emit("bad/key-of-small-order", p, 2, "E_PACK_SIG_INVALID", "signer_pubkey")
    emit("bad/key-too-short", bent(lambda m: m.update(signer_pubkey="AAAA")), 2, "E_PACK_SIG_INVALID", "signer_pubkey")
    emit("bad/key-fingerprint", bent(lambda m: m.update(signer_pubkey_sha256="a" * 64)), 2, "E_PACK_SIG_INVALID", "signer_pubkey_sha256")
    emit("bad/time-in-the-future", bent(timestamp_end="2999-01-01T00:00:00Z"), 2, "E_TIMESTAMP_INVALID", "timestamp_end")


def main():
    for name in ("good", "bad"):
        shutil.rmtree(os.path.join(HERE, name), ignore_errors=True)
    good()
    bad_manifest()
    bad_files()
    bad_receipts()
    bad_signature()
    with open(os.path.join(HERE, "expect.tsv"), "w") as f:
        f.writelines(sorted(EXPECT))
    print("%d packs" % len(EXPECT))


if __name__ == "__main__":
    sys.exit(main())
