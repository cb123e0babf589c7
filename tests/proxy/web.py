# SPDX-License-Identifier: Apache-2.0
"""HTTP for the scripts of tests/proxy: a server and a client of a few lines of sockets,
because what they do no library would do, and assay with --listen between them."""
import json
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import lab
from lab import ASSAY, HURRY, SERVER, WORK, tap

# --- a server ---


class Request:
    def __init__(self, file):
        line = file.readline().decode()
        if not line.strip():
            raise EOFError
        self.method, self.target, _ = line.split()
        self.headers = {}
        while (line := file.readline().decode("latin-1").strip()):
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.body = file.read(int(self.headers.get("content-length", 0)))
        self.message = json.loads(self.body) if self.body else None


class Server:
    """handle(server, request, connection) for each request; it may close it."""

    def __init__(self, handle, tls=None, family=socket.AF_INET):
        self.handle, self.tls, self.seen, self.connections = handle, tls, [], 0
        self.socket = socket.socket(family)
        self.socket.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, host="127.0.0.1"):
        return f"http{'s' if self.tls else ''}://{host}:{self.port}/mcp"

    def accept(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            if self.tls:
                s = self.tls.wrap_socket(s, server_side=True)
            file = s.makefile("rb")
            while True:
                request = Request(file)
                self.seen.append(request)
                if self.handle(self, request, s) is False:
                    break
        except (OSError, EOFError, ValueError):
            pass
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        s.close()

    def close(self):
        self.socket.close()


def reply(s, body, status="200 OK", kind="application/json", *headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    head += [f"Content-Type: {kind}"] if body else []
    s.sendall(("\r\n".join(head + list(headers)) + "\r\n\r\n").encode() + body)


def stream(s, *headers):
    s.sendall(("\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/event-stream",
                            "Transfer-Encoding: chunked", *headers]) + "\r\n\r\n").encode())


def chunk(s, data):
    data = data if isinstance(data, bytes) else data.encode()
    s.sendall(b"%x\r\n%s\r\n" % (len(data), data))


def event(s, message, **fields):
    lines = [f"{k}: {v}\n" for k, v in fields.items()]
    chunk(s, "".join(lines) + "data: " + json.dumps(message) + "\n\n")


def result(request, value=None):
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": value or {"content": []}}


def begin(server, request, s, session="s1"):
    """What every server does; True when it was that."""
    if request.method == "DELETE":
        reply(s, b"")
        return True
    if request.method == "GET":
        reply(s, b"", "405 Method Not Allowed")
        return True
    if "id" not in request.message or "method" not in request.message:
        reply(s, b"", "202 Accepted")
        return True
    if request.message["method"] == "initialize":
        more = [f"Mcp-Session-Id: {session}"] if session else []
        reply(s, result(request, {"protocolVersion": "2025-06-18", "capabilities": {},
                                  "serverInfo": {"name": "x", "version": "1"}}),
              "200 OK", "application/json", *more)
        return True
    return False


def plain(server, request, s):
    begin(server, request, s) or reply(s, result(request))


def certificate(name, *subject):
    path = os.path.join(WORK, name + ".pem")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path + ".key",
                           "-out", path, "-days", "2", "-subj", "/CN=x", "-addext",
                           "subjectAltName=" + ",".join(subject)], capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if made.returncode == 0:
        context.load_cert_chain(path, path + ".key")
    return (path, context) if made.returncode == 0 else (None, None)


# --- a client ---


class Cut(Exception):
    """The connection ended inside of an answer."""


class Answer:
    def __init__(self, file, is_head=False):
        line = file.readline()
        if not line:
            raise EOFError
        self.file, self.version = file, line.split()[0].decode()
        self.status = int(line.split()[1])
        self.raw, self.headers, self.is_head = [], {}, is_head
        while (line := file.readline().decode("latin-1").strip()):
            name, _, value = line.partition(":")
            self.raw.append((name, value.strip()))
            self.headers[name.lower()] = value.strip()
        self.kind = self.headers.get("content-type", "").partition(";")[0]

    def pieces(self):
        """The body as it comes."""
        if self.is_head or self.status in (100, 204, 304):
            return
        if self.headers.get("transfer-encoding") == "chunked":
            while True:
                line = self.file.readline()
                if not line.endswith(b"\n"):
                    raise Cut
                size = int(line, 16)
                data = self.file.read(size + 2)
                if len(data) != size + 2:
                    raise Cut
                if size == 0:
                    return
                yield data[:-2]
        elif "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left:
                data = self.file.read1(min(left, 1 << 16))
                if not data:
                    raise Cut
                left -= len(data)
                yield data
        else:
            while data := self.file.read1(1 << 16):
                yield data

    def body(self):
        return b"".join(self.pieces())

    def blocks(self):
        """The blocks of a stream of events, as they came."""
        held = b""
        for piece in self.pieces():
            held += piece
            while b"\n\n" in held:
                block, held = held.split(b"\n\n", 1)
                yield block.decode()
        if held:
            raise Cut

    def messages(self):
        """The messages of it, however they came."""
        if self.kind == "text/event-stream":
            for block in self.blocks():
                data = [l[6:] for l in block.split("\n") if l.startswith("data: ")]
                if any(data):
                    yield json.loads("\n".join(data))
        else:
            body = self.body()
            if self.kind == "application/json":
                yield json.loads(body)

    def message(self):
        """The last one."""
        return list(self.messages())[-1]

    def code(self):
        return self.message()["error"]["code"]


class Conn:
    """A connection to `place`, (host, port)."""

    def __init__(self, place, tls=None, name=None):
        self.socket = socket.create_connection(place, HURRY / 3)
        self.host = f"{'[%s]' if ':' in place[0] else '%s'}:%d" % place[:2]
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=name or place[0])
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def ask(self, method, target="/mcp", body=None, headers=None):
        """Header None leaves one out."""
        given = {"Host": self.host, "Accept": "application/json, text/event-stream"}
        if body is not None:
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            given.update({"Content-Type": "application/json",
                          "Content-Length": str(len(body))})
        given.update(headers or {})
        head = [f"{k}: {v}\r\n" for k, v in given.items() if v is not None]
        self.send(f"{method} {target} HTTP/1.1\r\n{''.join(head)}\r\n".encode()
                  + (body or b""))

    def answer(self, is_head=False):
        return Answer(self.file, is_head)

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.file.close()
        self.socket.close()

    def ended(self):
        """Has the other side closed it?"""
        try:
            return self.file.read(1) == b""
        except OSError:
            return True


def ask(number, method, **params):
    m = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    if number is None:
        del m["id"]
    return m


def tool(number, name="echo", meta=None, **arguments):
    more = {"_meta": meta} if meta else {}
    return ask(number, "tools/call", name=name, arguments=arguments, **more)


def initialize(version="2025-06-18"):
    return ask(0, "initialize", protocolVersion=version, capabilities={},
               clientInfo={"name": "c", "version": "1"})


class Client:
    """A client of Streamable HTTP; each request has a connection of its own."""

    def __init__(self, place, version="2025-06-18", tls=None, **headers):
        self.place, self.version, self.tls, self.headers = place, version, tls, headers
        self.session = None

    def connect(self):
        return Conn(self.place, self.tls)

    def post(self, message, **headers):
        return self.send("POST", message, **headers).answer()

    def send(self, method, message=None, **headers):
        given = dict(self.headers)
        if self.session:
            given["Mcp-Session-Id"] = self.session
            given["MCP-Protocol-Version"] = self.version
        given.update({k.replace("_", "-"): v for k, v in headers.items()})
        conn = self.connect()
        conn.ask(method, "/mcp", message, given)
        return conn

    def open(self):
        answer = self.post(initialize(self.version))
        self.session = answer.headers.get("mcp-session-id")
        self.hello = answer.message()
        self.post(ask(None, "notifications/initialized"))
        return self

    def call(self, number, name="echo", **arguments):
        return self.post(tool(number, name, **arguments)).message()

    def close(self):
        return self.send("DELETE").answer().status


MODERN = "2026-07-28"


class Modern(Client):
    """One of 2026-07-28: it has no session, and says in headers what the body says."""

    def __init__(self, place, **headers):
        super().__init__(place, MODERN, **headers)

    def send(self, method, message=None, **headers):
        params = message.setdefault("params", {})
        params.setdefault("_meta", {}).update({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {}})
        given = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        if "name" in params:
            given["Mcp-Name"] = params["name"]
        given.update({k.replace("_", "-"): v for k, v in headers.items()})
        return super().send(method, message, **given)


# --- assay between ---


class Case(lab.Case):
    """It is given a mode of server.py, a URL, or a command."""

    def listen(self, server, *flags, argument=None, host="127.0.0.1", env=None):
        if isinstance(server, list):
            to = ["--", *server]
        elif "://" in server:
            to = ["--upstream-url", server]
        else:
            to = ["--", sys.executable, SERVER, server] + ([argument] if argument else [])
        p = subprocess.Popen([*self.inside, ASSAY, "mcp-proxy", "--audit-dir", self.dir,
                              "--listen", f"{host}:0", "--json", *flags, *to],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, env=dict(os.environ, **(env or {})))
        self.started.append(p)
        self.process, self.said, place = p, [], queue.Queue()
        self.ear = threading.Thread(target=self.hear, args=(p.stderr, place), daemon=True)
        self.ear.start()
        self.url = place.get(timeout=HURRY)
        if self.url is None:
            raise RuntimeError(f"it does not listen: {self.said}")
        name, port = self.url.split("/")[2].rsplit(":", 1)
        self.place = (name.strip("[]"), int(port))
        return p

    def hear(self, file, place):
        for line in file:
            try:
                said = json.loads(line)
            except ValueError:
                said = {"event": "server", "message": line.decode("utf-8", "replace")}
            self.said.append(said)
            if said["event"] == "listening":
                place.put(said["url"])
        place.put(None)

    def client(self, *given, **headers):
        return Client(self.place, *given, **headers).open()

    def conn(self):
        return Conn(self.place)

    def stop(self, number=signal.SIGTERM):
        """Its status, when all is heard that it said."""
        self.process.send_signal(number)
        status = lab.wait(self.process)[0]
        self.ear.join(HURRY)
        return status

    def told(self, event):
        return [s for s in self.said if s["event"] == event]

    def of(self, kind):
        return [e for e in self.events() if e["type"] == kind]

    def outcomes(self):
        """How many calls ended how."""
        found = {}
        for r in self.receipts():
            key = r["outcome"] + (":" + r["outcome_reason"] if r["outcome_reason"] else "")
            found[key] = found.get(key, 0) + 1
        return found


def all_at_once(count, run):
    """run(n) in a thread each, all begun before any goes on; what they return."""
    gate, found = threading.Barrier(count), [None] * count

    def one(n):
        gate.wait(HURRY)
        try:
            found[n] = run(n)
        except Exception as e:  # it is what the caller looks at
            found[n] = e
    threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(HURRY)
    return found


def soon(good, patience=10.0):
    """Does it come true?"""
    end = time.monotonic() + patience
    while not good():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
