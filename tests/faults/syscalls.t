#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file system call of a writer fails once, in every way; the log must stand it.

    syscalls.t - [soak]     quick: a sample of the calls; soak: each one
    FAULTS_ONLY=…           one scene, or "torn writes"

The driver runs once under strace to list its calls, then once per call with an error or
SIGKILL put in its place. After each run a driver without faults goes on with the same
log, and it must verify and hold every event that was acknowledged. Interrupted calls must
leave no trace at all.
"""
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faultlab import (DRIVER, PACKER, SHIM, Tap, driver, judge, judge_packs, packer, run,
                      skip_all, workplace)

CALLS = """open openat creat read pread64 readv write pwrite64 writev lseek fsync fdatasync
sync_file_range ftruncate truncate fallocate flock fcntl close mmap msync link linkat
unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir stat fstat lstat newfstatat
statx access faccessat faccessat2 chmod fchmod fchmodat chown fchown fchownat getdents64
readlink readlinkat symlinkat utimensat copy_file_range sendfile""".split()
TRACE = "trace=" + ",".join(CALLS)
# The calls that may be interrupted on a local file system, by signal(7).
INTERRUPTIBLE = set("""open openat creat read pread64 readv write pwrite64 writev fsync
fdatasync ftruncate truncate fallocate flock close""".split())
FAULTS = ["EIO", "ENOSPC", "EINTR", "KILL", "EIO+"]  # +: from then on, every time
WITHOUT_EFFECT = {"lseek", "fcntl"}  # EINTR there is not a thing

# what: (how the log came to be, what is disturbed, a fault that comes before the fault)
APPEND = ["append", "8", "segment=1500", "every=3"]
SCENES = {
    "first start": ([], APPEND, None),
    "going on": ([["append", "5", "first=100"]], APPEND, None),
    "group": ([["append", "5", "first=100"]],
              ["append", "4", "segment=900", "durability=group"], None),
    "strict": ([["append", "2", "first=100"]],
               ["append", "3", "segment=900", "durability=strict"], None),
    "full tile": ([["append", "250", "first=100"]], ["append", "9", "every=4"], None),
    "new key": ([["append", "2", "first=100"]], ["append", "3", "rotate=2"], None),
    "torn tail": ([["append", "3", "first=100"], "die:4:40"], ["append", "2"], None),
    "lost head": ([["append", "3", "first=100"], "die:4:40", "no head"],
                  ["append", "2"], None),
    "lost head of a log without checkpoint": (["die:10:40", "no head"],
                                              ["append", "2"], None),
    "lost tiles": ([["append", "3", "first=100"], "no tiles"], ["append", "2"], None),
    "failed sync": ([["append", "3", "first=100"]],
                    ["append", "6", "segment=700", "durability=group"], "fdatasync:3"),
    "failed sync of a checkpoint": ([["append", "3", "first=100"]],
                                    ["append", "6", "segment=700"], "fdatasync:1"),
    "failed sync over segments": ([["append", "3", "first=100"]],
                                  ["append", "6", "segment=700", "every=6"],
                                  "fdatasync:1"),
    "session and pack": ([["append", "3", "first=100"]], ["record", "2", "10"], None),
    "rescue": ([["append", "3", "first=100"], ["record", "1", "10"], "pack die:14:30"],
               ["rescue"], None),
}


class Scene:
    def __init__(self, place, name):
        self.place, self.name = place, name
        steps, self.args, self.before = SCENES[name]
        self.root = os.path.join(place, name.replace(" ", "-"))
        self.acked, self.calls_acked = set(), set()
        self.packs = self.args[0] in ("record", "rescue")
        os.mkdir(self.root)
        for step in steps:
            self.prepare(step)

    def prepare(self, step):
        if step == "no head":
            os.unlink(self.root + "/audit/log/head")
        elif step == "no tiles":
            shutil.rmtree(self.root + "/audit/log/tile")
        elif isinstance(step, str):  # a writer that died in the middle of a write
            env = {"LD_PRELOAD": SHIM, "SHIM_DIR": self.root,
                   "SHIM_FAULT": step.split()[-1]}
            if step.startswith("pack"):
                r = packer("record", self.root, 5, 20, env=env)
                self.calls_acked |= set(r.numbers("ack"))
            else:
                r = driver("append", self.root, 9, "first=200", env=env)
                self.acked |= set(r.numbers("ack"))
            assert r.status == -9, r.out
        elif step[0] == "record":
            r = packer(step[0], self.root, *step[1:])
            assert r.status == 0, r.out
            self.calls_acked |= set(r.numbers("ack"))
        else:
            r = driver(step[0], self.root, *step[1:])
            assert r.status == 0, r.out
            self.acked |= set(r.numbers("ack"))

    def strace(self, root, trace, *options):
        command = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-o", trace, "-e", TRACE]
        if self.before:
            call, when = self.before.split(":")
            command += ["-e", f"inject={call}:error=EIO:when={when}"]
        command += [x for o in options for x in ("-e", o)]
        program = PACKER if self.packs else DRIVER
        return run([*command, program, self.args[0], root, *self.args[1:]])

    def calls(self):
        """(call, n): the nth of all calls of this name touches our files."""
        root = os.path.join(self.place, "list-" + os.path.basename(self.root))
        shutil.copytree(self.root, root)
        r = self.strace(root, root + ".trace")
        if r.status not in (0, 2):
            raise RuntimeError(r.out[-300:])
        found, seen = [], collections.Counter()
        with open(root + ".trace", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                call = re.match(r"^(?:\d+ +)?(\w+)\(", line)
                if not call:
                    continue
                seen[call[1]] += 1
                first = self.before and f"{call[1]}:{seen[call[1]]}" == self.before
                if root in line and not first:
                    found.append((call[1], seen[call[1]]))
        shutil.rmtree(root)
        wrong = []
        if not self.before and r.status != 0:
            wrong.append(f"without any fault: {r.status} {r.out[-300:]}")
        return found, wrong

    def disturb(self, call, when, fault):
        """What is wrong after this one fault: a list of sentences."""
        root = f"{self.place}/case-{os.path.basename(self.root)}-{call}-{when}-{fault}"
        shutil.copytree(self.root, root)
        kind = "signal=KILL" if fault == "KILL" else f"error={fault.rstrip('+')}"
        inject = f"inject={call}:{kind}:when={when}{'+' * fault.endswith('+')}"
        if self.before and self.before.startswith(call + ":"):
            # strace has one rule per call: the later fault ends a run of failures
            start = min(when, int(self.before.split(":")[1]))
            end = "+" if fault.endswith("+") else f"..{when}"
            inject = f"inject={call}:{kind}:when={start}{end}"
        r = self.strace(root, "/dev/null", inject)
        wrong = self.ended(r, call, fault)
        if self.packs:
            wrong += judge_packs(root, self.calls_acked | set(r.numbers("ack")))
            wrong += judge(root, self.acked)
        else:
            wrong += judge(root, self.acked | set(r.numbers("ack")), [r])
        if wrong and os.environ.get("FAULTS_KEEP"):
            wrong.append(f"kept: {root}")
        else:
            shutil.rmtree(root)
        return [f"{call} {when} {fault}: {w}" for w in wrong]

    def ended(self, r, call, fault):
        allowed = [0, 2, 3] + [-9] * (fault == "KILL")
        if r.status not in allowed:
            return [f"ends with {r.status}: {r.out[-200:]}"]
        trouble = r.said("lost", "unsettled", "unsigned", "unrotated", "closed",
                         "unclosed", "failed")
        if fault == "EINTR" and call in INTERRUPTIBLE and trouble:
            return [f"an interrupted call was seen: {trouble[:2]}"]
        if r.status == 0 and trouble or r.status in (2, 3) and not trouble:
            return [f"ends with {r.status}, but said {trouble[:2]}"]
        return []


def sample(calls, share):
    """Every `share`th instance of each call, with its first and its last."""
    chosen = []
    groups = collections.defaultdict(list)
    for call, when in calls:
        groups[call].append(when)
    for number, (call, whens) in enumerate(sorted(groups.items())):
        kept = {w for i, w in enumerate(whens) if i % share == number % share}
        kept |= {whens[-1]} if len(whens) > 1 else {whens[0]}
        chosen += [(call, w) for w in sorted(kept)]
    return chosen


def strace_works(place):
    if not shutil.which("strace"):
        return "strace is not installed"
    probe = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e",
             "inject=getppid:error=EIO", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, cwd=place)
    return None if done.returncode == 0 else f"strace cannot trace here: {done.stderr[:90]}"


def torn_writes(tap, pool, place, soak):
    """Writes that do half of their work, then go on, fail, or die."""
    for kind in ["short", "full", "die"]:
        cases = [(kind, when, part) for when in range(1, 40)
                 for i, part in enumerate((1, 0, 10**6)) if soak or (when + i) % 3 == 0]
        wrong = [w for found in pool.map(lambda c: torn_write(place, *c), cases)
                 for w in found]
        tap.ok(not wrong, f"a write that is cut ({kind}): {len(cases)} cases", *wrong[:9])


def torn_write(place, kind, when, part):
    root = f"{place}/torn-{kind}-{when}-{part}"
    os.mkdir(root)
    env = {"LD_PRELOAD": SHIM, "SHIM_DIR": root, "SHIM_FAULT": f"{kind}:{when}:{part}"}
    r = driver("append", root, *APPEND[1:], env=env)
    wrong = []
    if kind == "short" and (r.status or len(r.numbers("ack")) != 8):
        wrong.append(f"a short write was not continued: {r.out[-200:]}")
    if r.status not in ([0, 2, 3, -9] if kind == "die" else [0, 2, 3]):
        wrong.append(f"ends with {r.status}: {r.out[-200:]}")
    wrong += judge(root, set(r.numbers("ack")), [r])
    if not (wrong and os.environ.get("FAULTS_KEEP")):
        shutil.rmtree(root)
    return [f"{kind} {when} {part}: {w}" for w in wrong]


def scene_tests(tap, pool, scene, share):
    calls, wrong = scene.calls()
    tap.ok(calls and not wrong, f"{scene.name}: {len(calls)} calls are listed", *wrong)
    for turn, fault in enumerate(FAULTS):
        chosen = sample(calls, share) if share > 1 else calls
        if share > 1:  # one fault for each
            chosen = [c for i, c in enumerate(chosen) if i % len(FAULTS) == turn]
        if fault == "EINTR":
            chosen = [c for c in chosen if c[0] not in WITHOUT_EFFECT]
        wrong = [w for found in pool.map(lambda c: scene.disturb(*c, fault), chosen)
                 for w in found]
        tap.ok(not wrong, f"{scene.name}: {fault} at {len(chosen)} calls", *wrong[:40])


def main():
    soak = sys.argv[2:] == ["soak"]
    only = os.environ.get("FAULTS_ONLY")
    place = workplace()
    why = strace_works(place)
    if why:
        os.rmdir(place)
        skip_all(why)
    tap = Tap()
    try:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            if only in (None, "torn writes"):
                torn_writes(tap, pool, place, soak)
            for name in SCENES:
                if not only or only == name:
                    scene_tests(tap, pool, Scene(place, name), 1 if soak else 8)
    finally:
        if not os.environ.get("FAULTS_KEEP"):
            shutil.rmtree(place, ignore_errors=True)
    tap.finish()


main()
