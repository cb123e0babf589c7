# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: a place, the driver, and the judgement afterwards."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("ASSAY_BUILD", "build")
DRIVER = os.path.join(BUILD, "fault-driver")
PACKER = os.path.join(BUILD, "fault-packer")
SHIM = os.path.join(BUILD, "libfault-shim.so")
TIMEOUT = 20  # seconds; a run that takes longer hangs
AFTER = 900_000_000  # the mark of the append that comes after the fault


def workplace(fast=True):
    """A new directory: in memory when only the calls matter, on disk otherwise."""
    where = os.environ.get("TMPDIR")
    if not where and fast and os.access("/dev/shm", os.W_OK):
        if shutil.disk_usage("/dev/shm").free > 256 << 20:
            where = "/dev/shm"
    return os.path.realpath(tempfile.mkdtemp(prefix="assay-faults-", dir=where))


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, what, *why):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {what}")
        for line in [] if good else why:
            print(f"# {line}")
        sys.stdout.flush()
        return good

    def skip(self, what, why):
        self.count += 1
        print(f"ok {self.count} - {what} # SKIP {why}", flush=True)

    def finish(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


class Run:
    """One run of the driver: how it ended and what it said."""

    def __init__(self, status, out):
        self.status = status
        self.out = out
        self.lines = out.splitlines()

    def numbers(self, word):
        """The numbers of lines `word N …`; a line cut by death does not count."""
        whole = self.lines if self.out.endswith("\n") else self.lines[:-1]
        found = (line.split() for line in whole)
        return [int(f[1]) for f in found if len(f) > 1 and f[0] == word]

    def said(self, *words):
        return [line for line in self.lines if line.split(" ", 1)[0] in words]


def run(command, env=None, timeout=TIMEOUT):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout,
                              env=dict(os.environ, **(env or {})))
    except subprocess.TimeoutExpired as late:
        return Run("hangs", (late.stdout or b"").decode(errors="replace"))
    return Run(done.returncode, done.stdout.decode(errors="replace"))


def driver(*args, **kwargs):
    return run([DRIVER, *map(str, args)], **kwargs)


def packer(*args, **kwargs):
    return run([PACKER, *map(str, args)], **kwargs)


def judge_packs(root, calls):
    """Finish what the dead left; what is wrong with the packs then."""
    wrong = []
    rescued = packer("rescue", root)
    if rescued.status != 0:
        wrong.append(f"is not rescued: {rescued.status} {rescued.out[-300:]}")
    left = glob.glob(root + "/audit/live/w_*")
    if left:
        wrong.append(f"{len(left)} dead writers are left")
    found = packer("verify", root)
    if found.status != 0 or found.said("finding"):
        wrong.append(f"a pack is not sound: {found.status} {found.out[-300:]}")
    packed = set()
    for line in found.said("pack"):
        with open(line.split(" ", 1)[1] + "/receipt_pack.jsonl", encoding="utf-8") as f:
            packed |= {int(n) for n in re.findall(r'"t(\d+)"', f.read())}
    if calls - packed:
        wrong.append(f"acknowledged calls are in no pack: {sorted(calls - packed)[:5]}")
    return wrong


def judge(root, acked, runs=(), mark=AFTER):
    """Go on where the fault left the log; all that is wrong with it, as sentences."""
    wrong = []
    again = driver("append", root, 1, f"first={mark}")
    if again.status != 0 or again.numbers("ack") != [mark]:
        wrong.append(f"does not go on: {again.status} {again.out.strip()[-300:]}")
    acked = acked | set(again.numbers("ack"))
    found = driver("check", root, timeout=120)
    if found.status != 0:
        wrong.append(f"is not sound: {found.status} "
                     + "; ".join(found.said("finding", "unchecked"))[-300:])
    marks = found.numbers("mark")
    if len(marks) != len(set(marks)):
        wrong.append("holds an event twice")
    missing = sorted(acked - set(marks))
    if missing:
        wrong.append(f"lost {len(missing)} acknowledged events: {missing[:5]}")
    for r in runs:
        undead = sorted(set(r.numbers("lost")) & set(marks))
        if undead:
            wrong.append(f"holds events that were said to be lost: {undead[:5]}")
        # what was lost is in a gap event, or the end of the driver said so
        total = sum(r.numbers("total"))
        if total and not r.said("unclosed") and total != sum(found.numbers("gap")):
            wrong.append(f"lost {total}, but the gaps say {found.numbers('gap')}")
    return wrong
