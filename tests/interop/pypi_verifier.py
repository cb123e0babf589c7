#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare `assay verify-pack` (ours, $ASSAY) with the public Python verifier.

    pypi_verifier.py PUBLIC_ASSAY [DIR...]

Over tests/data and every directory given. A pack that ours accepts must be accepted by the
public tool. A pack that ours refuses may be accepted by it only for a reason in STRICTER.
Reports that ours writes must fit the public tool's schema. Speaks TAP.
"""
import json
import os
import subprocess
import sys
import tempfile

# Where we are stricter on purpose, and why.
STRICTER = {
    "bad/manifest-duplicate-member": "readers disagree on a duplicate member",
    "bad/manifest-version-with-newline": "the other public verifier refuses it",
    "bad/receipt-big-integer": "the other public verifier computes another hash",
    "bad/receipt-big-integer-not-last": "the same, before the last receipt",
    "bad/receipt-duplicate-member": "readers disagree on a duplicate member",
    "bad/receipt-integrity-honest-fail": "the other public verifier refuses it",
    "bad/receipts-not-listed": "nothing signs such receipts",
}
REPORTS = ("good/minimal", "good/ci-binding", "good/claims-failed", "bad/file-changed",
           "bad/manifest-is-not-json")
ours = os.environ.get("ASSAY", "build/assay")
count = failures = 0


def ok(good, what):
    global count, failures
    count += 1
    failures += not good
    print("%sok %d - %s" % ("" if good else "not ", count, what), flush=True)


def run(program, path, *more):
    done = subprocess.run([program, "verify-pack", path, "--json", *more], capture_output=True)
    return done.returncode, done.stdout


def packs(names):
    with open("tests/data/expect.tsv") as f:
        for line in f:
            name, code = line.split("\t")[:2]
            yield name, os.path.join("tests/data", name), int(code)
    for path in names:
        yield path, path, None


# Run by the public tool's Python: its verifier over many packs, its schema over reports.
PUBLIC = """
import json, pathlib, sys
from assay.manifest_schema import validate_verify_report
from assay.proof_pack import verify_proof_pack
job, answer = json.load(sys.stdin), {"packs": {}, "reports": {}}
for path in job["packs"]:
    try:
        manifest = json.loads((pathlib.Path(path) / "pack_manifest.json").read_text())
        answer["packs"][path] = verify_proof_pack(manifest, pathlib.Path(path), None).passed
    except Exception as fault:  # it raises on what is not JSON and on odd receipts
        answer["packs"][path] = False
for path, report in job["reports"].items():
    answer["reports"][path] = validate_verify_report(report)
json.dump(answer, sys.stdout)
"""


def ask_public(public, job):
    python = os.path.join(os.path.dirname(public), "python")
    done = subprocess.run([python, "-c", PUBLIC], input=json.dumps(job).encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def report_of(path):
    with tempfile.TemporaryDirectory() as work:
        name = os.path.join(work, "report.json")
        run(ours, path, "--out", name)
        with open(name) as f:
            return json.load(f)


def main():
    public, rows = sys.argv[1], list(packs(sys.argv[2:]))
    job = {
        "packs": [path for _, path, _ in rows],
        "reports": {p: report_of("tests/data/" + p) for p in REPORTS},
    }
    answer = ask_public(public, job)
    for name, path, code in rows:
        mine, theirs = run(ours, path)[0], answer["packs"][path]
        if code is not None and mine != code:
            ok(False, "%s: ours says %d, the table %d" % (name, mine, code))
        elif mine == 0:
            ok(theirs, "%s: both accept it" % name)
        elif theirs:
            ok(name in STRICTER, "%s: only ours refuses it: %s" % (name, STRICTER.get(name, "why?")))
        else:
            ok(True, "%s: both refuse it" % name)
    for path, faults in answer["reports"].items():
        ok(not faults, "the report of %s fits the public schema %s" % (path, faults or ""))
    for path in ["tests/data/good/minimal", "tests/data/bad/file-changed"] + sys.argv[2:]:
        mine, theirs = run(ours, path)[0], run(public, path)[0]
        ok(mine == theirs, "%s: both commands exit with %d, %d" % (path, mine, theirs))
    print("1..%d" % count)
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
