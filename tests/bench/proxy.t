#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a recorder costs: round trips of small calls through it, beside those through a
relay that does nothing else. All on one core and in turns, so that only the ratios count.

    BENCH_ROUNDS, BENCH_CALLS   how much is measured (40 rounds of 500 calls)
    BENCH_MANY                  calls before RssAnon is read again (200000)
    BENCH_PEERS=0               leave other people's proxies out
    BENCH_KEEP=1                leave what was recorded

Those are measured in a run of their own, which is shorter, beside the relay again. One that
does not go from stdio to stdio stands in a chain of two that does (chain.py).
"""
import os, shutil, subprocess, sys, tempfile

build = os.path.abspath(os.environ.get("ASSAY_BUILD", "build"))
assay = os.path.abspath(os.environ.get("ASSAY", build + "/assay"))
here = os.path.dirname(os.path.abspath(__file__))
client, server, relay = (f"{build}/bench-{n}" for n in ("client", "server", "relay"))
rounds, calls = os.environ.get("BENCH_ROUNDS", "40"), os.environ.get("BENCH_CALLS", "500")
many = os.environ.get("BENCH_MANY", "200000")
work = tempfile.mkdtemp(prefix="bench-proxy.")
env = dict(os.environ, ASSAY_HOME=work + "/home", HOME=work, npm_config_update_notifier="false")
sys.stdout.reconfigure(line_buffering=True)
core = max(os.sched_getaffinity(0))

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


HEADER = """us and calls/s, medians; "x relay" is against the relay of the same run
  p50, p99, calls/s   one call in flight
  64 at once          64 in flight; all that may go goes in one write, and is answered in one
  64 each             64 in flight; a write for each call and one for each answer, as SDKs do
  CPU, RssAnon        of the first process only: of a chain, the half at the client"""


def install(place, found, *commands):
    """The packages of a registry, by its own client, into the build directory."""
    if os.path.exists(f"{place}/{found}"):
        return True
    shutil.rmtree(place, ignore_errors=True)
    for command in commands:
        try:
            if run(*command, timeout=180).returncode == 0:
                continue
        except (OSError, subprocess.TimeoutExpired):
            pass
        shutil.rmtree(place, ignore_errors=True)
        return False
    return True


def npm():
    place = build + "/bench-npm"
    if not install(place, "node_modules/.bin/supergateway",
                   ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place,
                    "mcp-proxy", "supergateway", "mcp-remote"]):
        return {}, {"npm mcp-proxy, supergateway, mcp-remote": "cannot be installed here"}
    at = place + "/node_modules/.bin/"
    remote = [at + "mcp-remote", "http://127.0.0.1:{port}/mcp", "--allow-http", "--silent"]
    gateway = [at + "supergateway", "--logLevel", "none"]
    serves = [*gateway, "--stdio", server, "--port", "{port}"]
    return {
        "npm mcp-remote + mcp-proxy": chain(
            [at + "mcp-proxy", "--host", "127.0.0.1", "--port", "{port}", "--", server], remote),
        "npm mcp-remote + supergateway": chain(
            [*serves, "--outputTransport", "streamableHttp", "--stateful"], remote),
        "npm supergateway, twice": chain(
            serves, [*gateway, "--sse", "http://127.0.0.1:{port}/sse"]),
    }, {}


def pypi(package, program):
    place = f"{build}/bench-pypi-{package}"
    if install(place, "bin/" + program, ["python3", "-m", "venv", place],
               [place + "/bin/pip", "install", "--quiet", "--disable-pip-version-check", package]):
        return f"{place}/bin/{program}"
    return None


def pypi_proxy():
    at = pypi("mcp-proxy", "mcp-proxy")
    if not at:
        return {}, {"PyPI mcp-proxy": "cannot be installed here"}
    quiet = [at, "--log-level", "ERROR"]
    return {"PyPI mcp-proxy, twice": chain(
        [*quiet, "--port", "{port}", server],
        [*quiet, "--transport", "streamablehttp", "http://127.0.0.1:{port}/mcp"])}, {}


def pypi_assay():
    at = pypi("assay-ai", "assay")
    if not at:
        return {}, {"PyPI assay-ai": "cannot be installed here"}
    if run(at, "mcp-proxy", "--help").returncode:
        return {}, {"PyPI assay-ai": "its program has no mcp-proxy for stdio"}
    return {"PyPI assay-ai": [at, "mcp-proxy", "--audit-dir", f"{work}/pypi", "--", server]}, {}


def chain(back, front):
    return [sys.executable, os.path.join(here, "chain.py"), *back, "--then", *front]


def peers():
    if os.environ.get("BENCH_PEERS") == "0":
        return {}, {"other people's proxies": "left out by BENCH_PEERS"}
    commands, skipped = {}, {}
    for found, missed in (npm(), pypi_proxy(), pypi_assay()):
        commands.update(found)
        skipped.update(missed)
    return commands, skipped


def row(name, values, start, base, hashing):
    if values[0] == "-":
        print(f"{name:30} does not answer")
        return
    p50, p99, one, deep, each, cpu, idle, after, big = (float(x) for x in values)
    print(f"{name:30}{p50:9.1f}{p99:9.1f}{p50 / base[0]:8.2f}{one:9.0f}{deep:11.0f}"
          f"{deep / base[3]:8.2f}{each:9.0f}{each / base[4]:8.2f}{cpu:9.1f}{start / 1e3:9.1f}"
          f"{idle:7.0f}{after:7.0f}"
          + (f"{big:10.0f}{big / hashing:9.2f}" if big > 0 else f"{'none':>10}"))


def rows(commands, rounds, calls, starts, hide=()):
    times = pinned("time", rounds, calls, *join(commands))
    shown = {name: c for name, c in commands.items() if name not in hide}
    first = pinned("start", starts, *join(shown))
    base = [float(x) for x in times["relay"]]
    hashing = float(times["relay, two hashes"][-1])
    for name in shown:
        row(name, times[name], float(first[name][0]), base, hashing)


def table(others):
    relays = {"relay": [relay, server], "relay, two hashes": [relay, "--hash", server]}
    commands = {"direct": [server], **relays, **ours()}
    print(HEADER)
    print(f"{'':30}{'p50':>9}{'p99':>9}{'x relay':>8}{'calls/s':>9}{'64 at once':>11}"
          f"{'x relay':>8}{'64 each':>9}{'x relay':>8}{'CPU us':>9}{'start ms':>9}"
          f"{'RssAnon KiB':>14}{'1 MiB us':>10}{'x hashes':>9}")
    rows(commands, rounds, calls, 21)
    if others:
        rows({**relays, **others}, 5, 100, 3, hide=relays)
    for name, command in {**commands, **others}.items():
        print(f"  {name}: {' '.join(command)}".replace(build, "$BUILD").replace(work, "$TMP")
              .replace(here, "tests/bench").replace(sys.executable, "python3"))


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
    table(others)
    for name, why in skipped.items():
        print(f"  {name}: # SKIP {why}")
    system_calls()
    instructions()
    memory()


try:
    main()
finally:
    if not os.environ.get("BENCH_KEEP"):
        shutil.rmtree(work, ignore_errors=True)
