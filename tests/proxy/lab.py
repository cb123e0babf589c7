# SPDX-License-Identifier: Apache-2.0
"""What the scripts of tests/proxy share: TAP, audit directories, servers, the end.

A script defines functions case_<name>(c) and ends in run_cases(globals()). Its arguments:
- [soak], and a word that runs only the cases whose names begin with it.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ASSAY = os.path.abspath(os.environ["ASSAY"])
SERVER = os.path.join(HERE, "server.py")
SOAK = "soak" in sys.argv[2:3]
ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
WORK = os.path.realpath(tempfile.mkdtemp(prefix="assay-proxy-"))
MEMORY = 64 << 10  # KiB of RssAnon + RssShmem that a proxy may have
HURRY = 60  # seconds; whatever takes longer hangs
for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
    del os.environ[name]  # our servers are here
os.environ["ASSAY_HOME"] = os.path.join(WORK, "home")
os.environ["ASSAY_CASE"] = WORK  # our servers are known by it, whoever their parent is
# What the sanitizers need is not what the proxy needs.
SANITIZED = b"__asan_init" in open(ASSAY, "rb").read()


class Tap:
    count = failed = 0

    def ok(self, good, what, *why):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {what}")
        for line in [] if good else why:
            for part in str(line)[:2000].splitlines():
                print(f"# {part}")
        sys.stdout.flush()
        return good

    def same(self, got, want, what):
        return self.ok(got == want, what, f"got  {got!r:.900}", f"want {want!r:.900}")

    def skip(self, what, why):
        self.count += 1
        print(f"ok {self.count} - {what} # SKIP {why}", flush=True)


tap = Tap()


def call(number, tool="t", arguments=None, **more):
    """A tools/call as a line; `number` is the id's JSON text, None for none."""
    params = {"name": tool}
    if arguments is not None:
        params["arguments"] = arguments
    params.update(more)
    head = "" if number is None else f'"id":{number},'
    return (f'{{"jsonrpc":"2.0",{head}"method":"tools/call","params":'
            f"{json.dumps(params)}}}\n").encode()


def note(method, **params):
    return (json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
            + "\n").encode()


def assay(*args):
    return subprocess.run([ASSAY, *args], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=HURRY * 4)


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Case:
    """An audit directory and what ran on it."""

    def __init__(self, name):
        self.name = name
        self.dir = os.path.join(WORK, name)
        self.ready = self.dir + ".ready"  # made by the server when it has started
        self.started = []
        self.inside = []  # what the proxy is run by: unshare …

    def command(self, mode, *flags, argument=None):
        server = [sys.executable, SERVER, mode] + ([argument] if argument else [])
        return [*self.inside, ASSAY, "mcp-proxy", "--audit-dir", self.dir, *flags, "--",
                *server]

    def start(self, mode, *flags, argument=None, env=None, stdin=subprocess.PIPE,
              stdout=subprocess.PIPE, **more):
        p = subprocess.Popen(self.command(mode, *flags, argument=argument), stdin=stdin,
                             stdout=stdout, stderr=subprocess.PIPE, bufsize=0,
                             env=dict(os.environ, **(env or {})), **more)
        self.started.append(p)
        return p

    def run(self, data, mode, *flags, argument=None, env=None, timeout=HURRY):
        """All of `data`, then EOF. Returns status, stdout, stderr."""
        p = self.start(mode, *flags, argument=argument, env=dict(env or {}, LAB_READY=self.ready))
        self.wait_until_ready(p)
        try:
            out, err = p.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            return "hangs", out, err
        return p.returncode, out, err

    def wait_until_ready(self, p):
        """The server is given half a second after EOF, which to start may take on a busy
        machine."""
        end = time.monotonic() + HURRY
        while not os.path.exists(self.ready) and p.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        if os.path.exists(self.ready):
            os.unlink(self.ready)

    def packs(self):
        return sorted(glob.glob(self.dir + "/packs/proof_pack_*"))

    def events(self):
        found = []
        for path in sorted(glob.glob(self.dir + "/log/segments/*.jsonl")):
            with open(path, "rb") as f:
                found += [json.loads(line) for line in f]
        return found

    def receipts(self, kind="mcp_tool_call"):
        found = []
        for path in sorted(glob.glob(self.dir + "/receipts/*.jsonl")):
            with open(path, "rb") as f:
                for line in f:
                    try:
                        found.append(json.loads(line))
                    except ValueError:
                        pass  # half a line of a killed writer stays, and is void
        return [r for r in found if r["type"] == kind]

    def complete(self):
        return [e["complete"] for e in self.events() if e["type"] == "session_end"]

    def judge(self, packs=1):
        """The log and the packs verify; nobody is left."""
        verdict = assay("log", "verify", self.dir)
        tap.ok(verdict.returncode == 0, f"{self.name}: the log verifies", verdict.stdout,
               verdict.stderr)
        found = self.packs()
        if packs is not None:
            tap.same(len(found), packs, f"{self.name}: packs")
        for path in found[:20]:
            verdict = assay("verify-pack", path)
            if verdict.returncode:
                tap.ok(False, f"{self.name}: {path} verifies", verdict.stdout, verdict.stderr)
        tap.same(left_over(), [], f"{self.name}: nobody is left")


def processes():
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            yield int(entry)


def left_over(patience=2.0):
    """Processes of ours that still run (zombies included, if they are our children's)."""
    end = time.monotonic() + patience
    while True:
        found = []
        for pid in processes():
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = WORK.encode() in f.read()
                with open(f"/proc/{pid}/comm") as f:
                    name = f.read().strip()
                if ours:
                    found.append((pid, name))
            except OSError:
                continue
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.02)


def memory(pid):
    """RssAnon + RssShmem in KiB."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return sum(int(n) for n in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", f.read()))
    except OSError:
        return 0


class Watch(threading.Thread):
    """The most memory that a process had."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.on = pid, 0, True
        self.start()

    def run(self):
        while self.on:
            self.most = max(self.most, memory(self.pid))
            time.sleep(0.02)

    def flat(self, what):
        self.on = False
        if SANITIZED:
            tap.skip(what, "the sanitizers need memory themselves")
        else:
            tap.ok(0 < self.most <= MEMORY, f"{what}: memory", f"{self.most} KiB")


def read_line(p):
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(p.stdout.fileno(), 1 << 16)
        if not byte:
            break
        line += byte
    return line


def wait(p, timeout=HURRY):
    """Its status, and the seconds until then."""
    began = time.monotonic()
    try:
        status = p.wait(timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        status = "hangs"
    return status, time.monotonic() - began


def end(p, timeout=HURRY):
    """EOF, the rest of the output, the status."""
    p.stdin.close()
    p.stdin = None
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        return "hangs", out, err
    return p.returncode, out, err


def run_cases(names, kind=Case):
    """Every case with a directory of its own. Does not return."""
    cases = [(name[5:], f) for name, f in names.items() if name.startswith("case_")]
    try:
        for name, run in cases:
            if not name.startswith(ONLY):
                continue
            began = time.monotonic()
            c = kind(name)
            try:
                run(c)
            except Exception as e:  # a case that breaks must not hide the others
                tap.ok(False, f"{name}: runs", traceback.format_exc(), e)
            for p in c.started:
                if p.poll() is None:
                    p.kill()
                    p.wait()
                for f in (p.stdin, p.stdout, p.stderr):
                    if f:
                        f.close()
            if "-v" in sys.argv:
                print(f"# {name}: {time.monotonic() - began:.1f} s")
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    print(f"1..{tap.count}")
    sys.exit(1 if tap.failed else 0)
