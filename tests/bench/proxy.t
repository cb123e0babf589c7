#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a recorder costs: round trips of small calls through it, beside those through a
relay that does nothing else. All on one core and in turns, so that only the ratios count.

    BENCH_ROUNDS, BENCH_CALLS   how much is measured (40 rounds of 500 calls)
    BENCH_MANY                  calls before RssAnon is read again (200000)
    BENCH_PEERS=0               leave other people's proxies out
"""
import os, shutil, subprocess, sys, tempfile

build = os.path.abspath(os.environ.get("ASSAY_BUILD", "build"))
assay = os.path.abspath(os.environ.get("ASSAY", build + "/assay"))
client, server, relay = (f"{build}/bench-{n}" for n in ("client", "server", "relay"))
rounds, calls = os.environ.get("BENCH_ROUNDS", "40"), os.environ.get("BENCH_CALLS", "500")
many = os.environ.get("BENCH_MANY", "200000")
work = tempfile.mkdtemp(prefix="bench-proxy.")
env = dict(os.environ, ASSAY_HOME=work + "/home", HOME=work, npm_config_update_notifier="false")
sys.stdout.reconfigure(line_buffering=True)
core = max(os.sched_getaffinity(0))

# Only what goes from stdio to stdio can stand in the same place.
APART = {
    "npm mcp-proxy": "serves HTTP and SSE in front of a stdio server",
    "npm supergateway": "one side is always HTTP, SSE or WebSocket",
    "npm mcp-remote": "from stdio to HTTP only",
    "PyPI mcp-proxy": "from stdio to SSE or HTTP, or the other way",
}


def run(*args, **more):
    return subprocess.run([str(a) for a in args], env=env, cwd=work, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def pinned(*args):
    done = run("taskset", "-c", core, client, *args)
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, args))}: {done.stderr}")
    return {row[0]: row[1:] for row in (l.split("\t") for l in done.stdout.splitlines())}


def join(commands):
    return [w for name, c in commands.items() for w in ("++", name, *c)]


def recorder(directory, *flags):
    return [assay, "mcp-proxy", "--audit-dir", f"{work}/{directory}", "--no-auto-pack",
            *flags, "--", server]


def ours():
    rows = {"assay, write": recorder("write")}
    said = run(assay, "mcp-proxy", "--help").stdout
    for mode in ("group", "strict") if "--durability" in said else ():
        rows[f"assay, {mode}"] = recorder(mode, "--durability", mode)
    return rows


def pypi():
    """The proxy of the package assay-ai, if it has one."""
    venv = build + "/bench-pypi"
    if not os.path.exists(venv + "/bin/assay"):
        shutil.rmtree(venv, ignore_errors=True)
        try:
            done = run("python3", "-m", "venv", venv, timeout=60).returncode or run(
                venv + "/bin/pip", "install", "--quiet", "--disable-pip-version-check",
                "assay-ai", timeout=180).returncode
        except subprocess.TimeoutExpired:
            done = 1
        if done:
            shutil.rmtree(venv, ignore_errors=True)
            return None, "the package cannot be installed here"
    said = run(venv + "/bin/assay", "mcp-proxy", "--help")
    if said.returncode:
        return None, "its program has no mcp-proxy for stdio"
    return [venv + "/bin/assay", "mcp-proxy", "--audit-dir", f"{work}/pypi", "--", server], ""


def peers():
    skipped = dict(APART)
    if os.environ.get("BENCH_PEERS") == "0":
        return {}, {"PyPI assay-ai": "left out by BENCH_PEERS", **skipped}
    command, why = pypi()
    if command:
        return {"PyPI assay-ai": command}, skipped
    return {}, {"PyPI assay-ai": why, **skipped}


def table(commands):
    times = pinned("time", rounds, calls, *join(commands))
    starts = pinned("start", 21, *join(commands))
    base = [float(x) for x in times["relay"]]
    hashing = float(times["relay, two hashes"][-1])
    print(f"{'':18}{'p50':>8}{'p99':>9}{'x relay':>8}{'calls/s':>9}{'64':>9}{'x relay':>8}"
          f"{'CPU us':>8}{'start ms':>9}{'RssAnon KiB':>13}{'1 MiB us':>10}{'x hashes':>9}")
    for name in commands:
        if times[name][0] == "-":
            print(f"{name:18} does not answer")
            continue
        p50, p99, one, deep, cpu, idle, after, big = (float(x) for x in times[name])
        print(f"{name:18}{p50:8.1f}{p99:9.1f}{p50 / base[0]:8.2f}{one:9.0f}{deep:9.0f}"
              f"{deep / base[3]:8.2f}{cpu:8.1f}{float(starts[name][0]) / 1e3:9.1f}"
              f"{idle:7.0f}{after:6.0f}{big:10.0f}{big / hashing:9.2f}")
    for name, command in commands.items():
        print(f"  {name}: {' '.join(command)}".replace(build, "$BUILD").replace(work, "$TMP"))


def traced(count, depth):
    """System calls of the recorder alone: the server is not followed."""
    out = f"{work}/strace"
    done = run(client, "calls", count, depth, "++", "assay", "strace", "-c", "-o", out,
               *recorder(f"traced{count}.{depth}"))
    if done.returncode:
        return None, done.stderr
    rows = (l.split() for l in open(out))
    return {r[-1]: int(r[3]) for r in rows if len(r) > 4 and r[3].isdigit()}, ""


def system_calls():
    if not shutil.which("strace"):
        print("system calls per call # SKIP strace is not here")
        return
    for depth, few, lot in ((1, 500, 2500), (64, 1000, 11000)):
        (a, why), (b, why_too) = traced(few, depth), traced(lot, depth)
        if not a or not b:
            print(f"system calls per call # SKIP {why or why_too}".strip())
            return
        per = {k: (b[k] - a.get(k, 0)) / (lot - few) for k in b}
        total = per.pop("total", 0)
        parts = ", ".join(f"{k} {v:.2f}" for k, v in sorted(per.items(), key=lambda x: -x[1])
                          if v >= 0.01)
        print(f"system calls per call, {depth} in flight: {total:.2f} ({parts})")


def counted(count):
    out = f"{work}/callgrind"
    done = run(client, "calls", count, 1, "++", "assay", "valgrind", "--tool=callgrind",
               "--trace-children=no", f"--callgrind-out-file={out}.%p",
               *recorder(f"counted{count}"))
    totals = [int(l.split()[1]) for f in os.listdir(work) if f.startswith("callgrind")
              for l in open(f"{work}/{f}") if l.startswith(("summary:", "totals:"))]
    for f in os.listdir(work):
        if f.startswith("callgrind"):
            os.unlink(f"{work}/{f}")
    return (max(totals, default=0), "") if done.returncode == 0 else (0, done.stderr)


def instructions():
    if not shutil.which("valgrind"):
        print("instructions per call # SKIP valgrind is not here")
        return
    (a, why), (b, why_too) = counted(500), counted(2500)
    if not a or not b:
        print(f"instructions per call # SKIP {(why or why_too or 'no count').splitlines()[-1]}")
        return
    print(f"instructions per call by callgrind: {(b - a) / 2000:.0f}")


def memory():
    idle, after = pinned("calls", many, 64, "++", "assay", *recorder("many"))["assay"]
    print(f"RssAnon after {many} calls: {after} KiB ({idle} KiB before)")


def main():
    others, skipped = peers()
    run(client, "calls", 10, 1, "++", "first", *recorder("write"))  # an existing log
    table({"direct": [server], "relay": [relay, server],
           "relay, two hashes": [relay, "--hash", server], **ours(), **others})
    for name, why in skipped.items():
        print(f"  {name}: # SKIP {why}")
    system_calls()
    instructions()
    memory()


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
