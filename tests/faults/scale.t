#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a log costs does not grow with it.

    scale.t - [soak]    quick: 100,000 and 200,000 events; soak: 1 and 10 million

At both sizes: the system calls and the instructions of an append, and the writer's
memory. At the larger one: memory and CPU time of `assay log verify`, beside sha256sum of
the same files and a bare parse of the same lines; CPU time of proofs; tiles that were
deleted are rebuilt to the same bytes.
"""
import collections
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faultlab import DRIVER, Tap, driver, run, skip_all, workplace

ASSAY = os.environ.get("ASSAY", "build/assay")
EVENT_BYTES = 400  # of disk, with its part of the tiles; generous
SAMPLE = 1000  # appends that are counted
VERIFY_KIB = 64 << 10
PROOF_SECONDS = 0.050


def cost(command):
    """(status, CPU seconds, peak KiB) of a command; its output goes nowhere."""
    with open(os.devnull, "wb") as null:
        child = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def append_cost(root, tool, count):
    return run([*tool, DRIVER, "append", root, str(count)], timeout=600)


def syscalls(root, place):
    """How often an append makes each call: two runs and a difference, to a tenth, so that
    a tile that becomes full in one of them does not count."""
    trace = f"{place}/calls"
    counts = []
    for count in (0, SAMPLE):
        append_cost(root, ["strace", "-f", "-c", "-S", "name", "-o", trace], count)
        found = collections.Counter()
        with open(trace, encoding="utf-8") as lines:
            for line in lines:
                row = re.match(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*?(\w+)$", line)
                if row and row[2] != "total":
                    found[row[2]] += int(row[1])
        counts.append(found)
    each = {c: round((counts[1][c] - counts[0][c]) / SAMPLE, 1) for c in counts[1]}
    return {c: n for c, n in each.items() if n}


def instructions(root):
    """Instructions inside log_append(), each."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
            "--toggle-collect=log_append"]
    found = re.search(r"Collected : (\d+)", append_cost(root, tool, SAMPLE).out)
    return int(found[1]) / SAMPLE if found else 0


def anonymous_memory(root):
    """KiB of a writer's own memory after its appends."""
    writer = subprocess.Popen([DRIVER, "append", root, str(SAMPLE), "hold=1"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in writer.stdout:
        if line == b"ready\n":
            break
    with open(f"/proc/{writer.pid}/status", encoding="utf-8") as status:
        found = re.search(r"RssAnon:\s+(\d+)", status.read())
    writer.communicate(b"\n")
    return int(found[1])


def measure(root, place):
    return {"calls": syscalls(root, place) if shutil.which("strace") else None,
            "instructions": instructions(root) if shutil.which("valgrind") else None,
            "memory": anonymous_memory(root)}


def compare(tap, small, large):
    if small["calls"] is None:
        tap.skip("the same system calls", "strace is not installed")
    else:
        tap.ok(small["calls"] == large["calls"] and small["calls"],
               f"the same system calls: {large['calls']}", small["calls"])
    a, b = small["instructions"], large["instructions"]
    if a is None:
        tap.skip("the same instructions", "valgrind is not installed")
    else:
        tap.ok(a > 0 and abs(b - a) <= 0.02 * a,
               f"the same instructions within 2%: {a:.0f} and {b:.0f}")
    a, b = small["memory"], large["memory"]
    tap.ok(b <= a + 256, f"the same memory: {a} and {b} KiB")


def verify(tap, root):
    files = sorted(glob.glob(root + "/audit/log/segments/*.jsonl"))
    status, cpu, peak = cost([ASSAY, "log", "verify", "--audit-dir", root + "/audit"])
    _, hashing, _ = cost(["sha256sum", *files])
    _, parsing, _ = cost([DRIVER, "parse", root])
    tap.ok(status == 0, "log verify: sound")
    tap.ok(peak < VERIFY_KIB, f"log verify: {peak} KiB at most")
    tap.ok(cpu <= 3 * hashing + parsing,
           f"log verify: {cpu:.2f} s of CPU; sha256sum takes {hashing:.2f} s, "
           f"the parse {parsing:.2f} s")


def prove(tap, root, events):
    prove = [ASSAY, "log", "prove", "--audit-dir", root + "/audit"]
    for what, args in {"inclusion": [str(events // 3)],
                       "consistency": ["--from", str(events // 3)]}.items():
        status, cpu, _ = min((cost([*prove, *args]) for _ in range(3)),
                             key=lambda c: c[1])
        tap.ok(status == 0 and cpu < PROOF_SECONDS,
               f"a proof of {what}: {1000 * cpu:.0f} ms of CPU, exit {status}")


def tiles(root):
    top = root + "/audit/log/tile"
    found = {}
    for path in glob.glob(top + "/**", recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                found[path[len(top):]] = hashlib.sha256(f.read()).hexdigest()
    return found


def rebuild(tap, root):
    before = tiles(root)
    shutil.rmtree(root + "/audit/log/tile")
    status, _, _ = cost([ASSAY, "log", "rebuild", "--audit-dir", root + "/audit"])
    after = tiles(root)
    # partial tiles of sizes that were signed before may stay away
    gone = [p for p in before if p not in after and ".p/" not in p]
    tap.ok(status == 0 and after and not gone
           and all(before.get(p) == after[p] for p in after),
           f"{len(after)} tiles, deleted and rebuilt, are the same", gone[:5])
    status, _, _ = cost([ASSAY, "log", "verify", "--audit-dir", root + "/audit"])
    tap.ok(status == 0, "and the log is sound")


def main():
    soak = sys.argv[2:] == ["soak"]
    small, large = (1_000_000, 10_000_000) if soak else (100_000, 200_000)
    place = workplace(fast=False)
    if shutil.disk_usage(place).free < 2 * large * EVENT_BYTES:
        os.rmdir(place)
        skip_all(f"less than {2 * large * EVENT_BYTES >> 20} MiB free")
    root = place + "/scale"
    os.environ["ASSAY_HOME"] = root + "/home"
    os.mkdir(root)
    tap = Tap()
    try:
        tap.ok(driver("grow", root, small, timeout=3600).status == 0, f"{small} events")
        before = measure(root, place)
        tap.ok(driver("grow", root, large - small, timeout=3600).status == 0,
               f"{large} events")
        compare(tap, before, measure(root, place))
        verify(tap, root)
        prove(tap, root, large)
        rebuild(tap, root)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    tap.finish()


main()
