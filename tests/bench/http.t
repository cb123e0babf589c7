#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a recorder costs clients over HTTP: small calls through it, beside those through a
plain reverse proxy and through other people's proxies. All on one core and in turns, so
that only the ratios count. Then idle streams, and sessions that nobody ends.

    BENCH_ROUNDS, BENCH_CALLS   how much is measured (8 rounds of 3000 calls)
    BENCH_CONNECTIONS           clients at once, each with a session of its own (16)
    BENCH_STREAMS               idle streams (5000)
    BENCH_SESSIONS              abandoned sessions (10000)
    BENCH_PEERS=0               leave other people's proxies out
    BENCH_KEEP=1                leave what was recorded
"""
import json, os, re, resource, shutil, signal, socket, ssl, statistics, subprocess, sys, tempfile, time
import urllib.parse

build = os.path.abspath(os.environ.get("ASSAY_BUILD", "build"))
assay = os.path.abspath(os.environ.get("ASSAY", build + "/assay"))
client, upstream, stdio_server = (f"{build}/bench-{n}" for n in ("http_client", "http_server", "server"))


def number(name, default):
    return int(os.environ.get("BENCH_" + name, default))


rounds, calls, connections = number("ROUNDS", 8), number("CALLS", 3000), number("CONNECTIONS", 16)
streams, sessions = number("STREAMS", 5000), number("SESSIONS", 10000)
work = tempfile.mkdtemp(prefix="bench-http.")
env = dict(os.environ, ASSAY_HOME=work + "/home", HOME=work, npm_config_update_notifier="false")
env["PATH"] += ":/usr/sbin"
sys.stdout.reconfigure(line_buffering=True)
core = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})  # and all that we start
files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
PATIENCE = 60  # s for a listener, and for an end
ANSWER = 10  # s for an answer; less than what keeps a stream alive
IDLE = 20  # s of watching what idle streams cost
running = []

NGINX = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
    keepalive_requests 1000000000;
    upstream behind {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""


# who is measured

class Front:
    """What listens on a port, and the processes of it that are not the server behind."""

    def __init__(self, command, port, path="/mcp"):
        self.command, self.port, self.path = command, port, path
        self.said = open(f"{work}/said.{len(running)}", "wb+")
        self.process = subprocess.Popen(command, env=env, cwd=work, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.said)
        running.append(self)

    def wait(self):
        """Whether it listens; the port may be known only by then."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            self.port = self.port or listening_port(self.read())
            try:
                if self.port:
                    socket.create_connection(("127.0.0.1", self.port)).close()
                    return True
            except OSError:
                pass
            time.sleep(0.05)
        return False

    def read(self):
        with open(self.said.name, "rb") as f:
            return f.read()

    def stop(self):
        running.remove(self)
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def tree(self):
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += children(pid)
        return [p for p in found if not is_server(p)]

    def cpu(self):
        """s of all of them so far"""
        return sum(cpu_of(p) for p in self.tree())

    def servers(self):
        """How many servers run as children of it."""
        return sum(map(is_server, children(self.process.pid)))

    def rss(self):
        """KiB"""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def listening_port(said):
    """The port in the line {"event":"listening","url":...} of what assay said, else None."""
    for line in said.splitlines():
        if line.startswith(b'{"event":"listening"'):
            return urllib.parse.urlsplit(json.loads(line)["url"]).port
    return None


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def is_server(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") == stdio_server
    except OSError:
        return False


def cpu_of(pid):
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    except OSError:
        return 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_upstream():
    p = subprocess.Popen([upstream], stdout=subprocess.PIPE)
    return p, int(p.stdout.readline())


def nginx(behind):
    if not shutil.which("nginx", path=env["PATH"]):
        return None
    place, port = f"{work}/nginx", free_port()
    os.mkdir(place)
    with open(place + "/conf", "w", encoding="ascii") as f:
        f.write(NGINX.format(dir=place, port=port, upstream=behind))
    return Front(["nginx", "-p", place, "-c", place + "/conf", "-e", place + "/error.log"], port)


def recorder(name, behind, *flags):
    """`behind` is a port, or the command of a stdio server."""
    to = ["--", *behind] if isinstance(behind, list) else [
        "--upstream-url", f"http://127.0.0.1:{behind}/mcp"]
    return Front([assay, "mcp-proxy", "--json", "--audit-dir", f"{work}/{name}", "--no-auto-pack",
                  *flags, "--listen", "127.0.0.1:0", *to], None)


def has_listen():
    return "--listen" in subprocess.run([assay, "mcp-proxy", "--help"], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def npm(behind):
    """Those of the registry, by its own client, into the build directory; none goes from
    HTTP to HTTP by itself."""
    if os.environ.get("BENCH_PEERS") == "0":
        return {}
    place = build + "/bench-npm"
    at = place + "/node_modules/.bin/"
    if not os.path.exists(at + "supergateway") and subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, "mcp-proxy",
             "supergateway", "mcp-remote"], env=env, timeout=240).returncode:
        return {}
    ports = [free_port() for _ in range(3)]
    serve = [at + "mcp-proxy", "--host", "127.0.0.1", "--server", "stream", "--port"]
    return {
        "npm mcp-proxy, to stdio": Front([*serve, str(ports[0]), "--", stdio_server], ports[0]),
        "npm supergateway, to stdio": Front(
            [at + "supergateway", "--logLevel", "none", "--stdio", stdio_server, "--port", str(ports[1]),
             "--outputTransport", "streamableHttp", "--stateful"], ports[1]),
        "npm mcp-proxy + mcp-remote": Front(
            [*serve, str(ports[2]), "--", at + "mcp-remote", f"http://127.0.0.1:{behind}/mcp",
             "--allow-http", "--silent"], ports[2]),
    }


# calls

class Load:
    def __init__(self, port, path, connections, calls):
        self.process = subprocess.Popen(
            [client, str(port), path, str(connections), str(calls)], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ready = self.process.stdout.readline() == "ready\n"

    def run(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return [float(x) for x in self.process.stdout.readline().split()]

    def end(self):
        _, said = self.process.communicate("end\n", timeout=PATIENCE)
        return said


def turn(front, port, path, calls):
    """calls/s, p50, p99, CPU us per call; or why not"""
    load = Load(port, path, connections, calls)
    if not load.ready:
        return load.end().strip()[:300] or "no answer"
    before = front.cpu() if front else 0
    values = load.run()
    used = front.cpu() - before if front else 0
    said = load.end()
    return [*values, used / calls * 1e6] if values else said.strip()[:300]


def measure(rows):
    """Medians of all rounds: {name: [calls/s, p50, p99, CPU]}"""
    found, failed = {name: [] for name in rows}, {}
    for name, (front, port, path) in rows.items():  # warm
        turn(front, port, path, connections * 4)
    for _ in range(rounds):
        for name, (front, port, path) in rows.items():
            if name in failed:
                continue
            got = turn(front, port, path, calls // 4 if name.startswith("npm") else calls)
            if isinstance(got, str):
                failed[name] = got
            else:
                found[name].append(got)
    return {n: [statistics.median(v) for v in zip(*rs)] for n, rs in found.items() if rs}, failed


def table(rows):
    found, failed = measure(rows)
    plain = found.get("nginx", found["direct"])
    peers = [v[0] for n, v in found.items() if n.startswith("npm")]
    print(f"medians of {rounds} rounds of {calls} calls, {connections} clients at once, all on one core; "
          "us\nCPU: of all processes of the proxy, per call")
    print(f"{'':30}{'calls/s':>9}{'x nginx':>9}{'x best npm':>12}{'p50':>9}{'p99':>9}{'CPU':>9}{'x nginx':>9}")
    for name, (rate, p50, p99, cpu) in found.items():
        print(f"{name:30}{rate:9.0f}{rate / plain[0]:9.2f}"
              + (f"{rate / max(peers):12.1f}" if peers else f"{'':12}")
              + f"{p50:9.0f}{p99:9.0f}{cpu:9.1f}"
              + (f"{cpu / plain[3]:9.2f}" if plain[3] and cpu else ""))
    for name, why in failed.items():
        print(f"{name:30} does not answer: {why}")
    for name in (n for n in found if n.startswith("assay")):
        if peers:
            judge(f"{name}: calls/s of the best npm peer", found[name][0] / max(peers), "x", 5, at_least=True)
        if plain[3]:
            judge(f"{name}: CPU per call of nginx", found[name][3] / plain[3], "x", 1.5)


def judge(what, value, unit, limit, at_least=False):
    good = value >= limit if at_least else value <= limit
    print(f"  {'ok    ' if good else 'MISSED'} {what}: {value:.2f} {unit} "
          f"({'at least' if at_least else 'at most'} {limit:g})")


# sessions, one by one

HEADS = "Host: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
MODERN = "2026-07-28"


class Connection:
    def __init__(self, port, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")

    def ask(self, method, message=None, heads="", stream=False):
        body = json.dumps({"jsonrpc": "2.0", **message}) if message else ""
        self.socket.sendall(f"{method} /mcp HTTP/1.1\r\n{HEADS}{heads}Content-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        data = b""
        while not is_whole(data, stream):
            piece = self.socket.recv(65536)
            data += piece
            if not piece:
                break
        if not data.startswith(b"HTTP/1.1 20"):
            raise OSError(data[:400].decode(errors="replace") or "closed")
        return data

    def close(self):
        self.socket.close()


class Session(Connection):
    """A connection with a session of its own; closed without a word."""

    def __init__(self, port, tls=None):
        super().__init__(port, tls)
        self.heads = "MCP-Protocol-Version: 2025-06-18\r\n"
        head = self.post({"id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}})
        found = re.search(rb"(?i)\r\nmcp-session-id:\s*(\S+)", head)
        self.heads += f"Mcp-Session-Id: {found.group(1).decode()}\r\n" if found else ""
        self.post({"method": "notifications/initialized"})

    def post(self, message):
        return self.ask("POST", message, self.heads)

    def call(self):
        return self.post({"id": 1, "method": "tools/call", "params": {"name": "small", "arguments": {}}})

    def listen(self):
        return self.ask("GET", None, self.heads, stream=True)


class Subscriber(Connection):
    """The same in the era without sessions."""

    def listen(self):
        meta = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        return self.ask("POST", {"id": 1, "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": True},
            "_meta": {"io.modelcontextprotocol/" + k: v for k, v in meta.items()}}},
            f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: subscriptions/listen\r\n", stream=True)


def is_whole(data, stream):
    head, end, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length:\s*(\d+)", head)
    if not end or stream:
        return end != b""
    if length:
        return len(body) >= int(length.group(1))
    return b"chunked" not in head.lower() or body.endswith(b"0\r\n\r\n")


def certificate():
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                           "-nodes", "-keyout", work + "/key.pem", "-out", work + "/cert.pem", "-subj",
                           "/CN=localhost", "-days", "2"], stderr=subprocess.DEVNULL)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context if made.returncode == 0 else None


def idle_streams(name, front, limit, who=Session, tls=None):
    if not front.wait():
        return print(f"{streams} idle streams, {name}: does not listen: {front.read()[-300:]}")
    held = [who(front.port, tls)]
    held[0].listen()
    before = front.rss()  # with what there is only once
    try:
        for _ in range(streams):
            held.append(who(front.port, tls))
            held[-1].listen()
    except OSError as e:
        return print(f"  MISSED {streams} idle streams, {name}: number {len(held)}: {e}")
    grown = (front.rss() - before) / streams
    start, used = time.monotonic(), front.cpu()
    time.sleep(IDLE)
    share = (front.cpu() - used) / (time.monotonic() - start) * 100
    print(f"{streams} idle streams, {name}: {front.rss()} KiB in all")
    judge(f"{name}: RSS per stream", grown, "KiB", limit)
    judge(f"{name}: CPU of all of them", share, "%", 1)
    for s in held:
        s.close()
    front.stop()
    return None


def abandoned(name, front, count, with_child):
    """Memory after half of the sessions and after all of them, and who is left."""
    if not front.wait():
        return print(f"{count} abandoned sessions, {name}: does not listen: {front.read()[-300:]}")
    seen, most = [], 0
    try:
        for i in range(1, count + 1):
            s = Session(front.port)
            s.call()
            s.close()
            if i % (count // 20 or 1) == 0:
                most = max(most, front.servers())
            if i in (count // 2, count):
                time.sleep(2)
                seen.append(front.rss())
    except OSError as e:
        return print(f"  MISSED {count} abandoned sessions, {name}: number {i}: {e}")
    print(f"{count} abandoned sessions, {name}: {seen[0]} KiB after half, {seen[1]} KiB after all"
          + (f"; {most} children at most, {front.servers()} at the end" if with_child else ""))
    judge(f"{name}: the second half's memory", seen[1] / seen[0], "x", 1.1)
    everyone = [p for p in children(front.process.pid)]
    status = front.stop()
    left = [p for p in everyone if os.path.exists(f"/proc/{p}") and is_server(p)]
    judge(f"{name}: children left when it has ended (status {status})", len(left), "", 0)
    return None


def main():
    server, behind = start_upstream()
    try:
        rows = {"direct": (None, behind, "/mcp")}
        fronts = {"nginx": nginx(behind)}
        if has_listen():
            fronts |= {"assay, to HTTP": recorder("http", behind),
                       "assay, to stdio": recorder("stdio", [stdio_server])}
        else:
            print("assay: # SKIP it has no --listen")
        fronts |= npm(behind)
        for name, front in fronts.items():
            if front and front.wait():
                rows[name] = (front, front.port, front.path)
            else:
                print(f"  {name}: # SKIP " + ("does not listen: " + front.read()[-300:].decode(errors="replace")
                                              if front else "is not installed"))
        table(rows)
        for name, front in fronts.items():
            if front:
                print(f"  {name}: {' '.join(front.command)}".replace(build, "$BUILD").replace(work, "$TMP"))
                front.stop()
        if has_listen():
            idle_streams("each with a session", recorder("idle", behind), 4)
            idle_streams("without sessions", recorder("listen", behind), 4, Subscriber)
            tls = certificate()
            if tls:
                secret = ["--tls-cert", work + "/cert.pem", "--tls-key", work + "/key.pem"]
                idle_streams("TLS, each with a session", recorder("tls", behind, *secret), 24, Session, tls)
            abandoned("to HTTP", recorder("left", behind), sessions, False)
            abandoned("to stdio", recorder("leftstdio", [stdio_server]), sessions, True)
    finally:
        server.kill()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
try:
    main()
finally:
    for front in list(running):
        front.stop()
    if not os.environ.get("BENCH_KEEP"):
        shutil.rmtree(work, ignore_errors=True)
