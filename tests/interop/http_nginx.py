# SPDX-License-Identifier: Apache-2.0
"""Our HTTP codec beside nginx: http_nginx.py HELPER quick|soak

Every stream ends with one more request that asks to close. It is sent to nginx, which
reads each body to its end, passes it to a second server of its own and tells what it saw
(method, target, length of the body), and to HELPER, which tells what our codec reads.

  - What nginx refuses, we refuse, there or before.
  - What we do not refuse, nginx sees as the same requests with the same bodies.
  - What real clients sent (tests/data/http) both take.

We refuse more than nginx does (bare LF, dot segments, unusual versions ...): that is not a
difference that this test looks for. How often we do is printed.
"""
import collections
import concurrent.futures
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

END = b"GET /end HTTP/1.1\r\nHost: end\r\nConnection: close\r\n\r\n"
STREAMS = {"quick": 2000, "soak": 30000}
PARALLEL = 24

# What nginx refuses and we take: status, beginning of the request, reason.
EXCEPTIONS = [
    ("405", "TRACE ", "well formed; which methods are served is not the codec's affair"),
]

# Where one of the two reads on and the other does not: we follow the words of all Connection
# headers, as RFC 9112 (9.3) has it; nginx looks for these letters anywhere in the last one.
LIFE = re.compile(rb"\nconnection:[^\r\n]*(close|keep-alive)", re.I)

CONFIG = """
daemon off;
master_process off;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/error.log crit;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    client_header_timeout 1s;
    client_body_timeout 1s;
    keepalive_timeout 1s;
    client_max_body_size 0;
    large_client_header_buffers 8 17k;
    server {{
        listen unix:{dir}/front;
        location / {{
            rewrite ^ /seen? break;
            proxy_pass http://unix:{dir}/back;
            proxy_http_version 1.1;
            proxy_pass_request_headers off;
            proxy_set_header X-Target $request_uri;
            proxy_set_header X-Method $request_method;
            proxy_method POST;
        }}
    }}
    server {{
        listen unix:{dir}/back;
        location / {{
            add_header X-Seen "$http_x_method $http_x_target $http_content_length.";
            return 200 "";
        }}
    }}
}}
"""

count = failures = 0


def ok(good, what, *more):
    global count, failures
    count += 1
    print(f"{'' if good else 'not '}ok {count} - {what}")
    if not good:
        failures += 1
        for line in more:
            print(f"# {line}")


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}")


# nginx

class Nginx:
    def __init__(self, directory):
        self.dir = directory
        with open(f"{directory}/nginx.conf", "w", encoding="ascii") as f:
            f.write(CONFIG.format(dir=directory))
        self.log = open(f"{directory}/said", "wb")
        self.process = subprocess.Popen(
            ["nginx", "-p", directory, "-c", f"{directory}/nginx.conf", "-e",
             f"{directory}/error.log"], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)

    def is_up(self):
        for _ in range(100):
            try:
                with self.connect():
                    return True
            except OSError:
                if self.process.poll() is not None:
                    return False
                time.sleep(0.05)
        return False

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(8)
        s.connect(f"{self.dir}/front")
        return s

    def said(self):
        self.log.flush()
        with open(f"{self.dir}/said", encoding="utf-8", errors="replace") as f:
            return f.read().strip().replace("\n", "; ")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def converse(nginx, stream):
    """All that nginx answers to a stream, and whether it closed the connection."""
    answer = b""
    with nginx.connect() as s:
        try:
            s.sendall(stream)
        except OSError:
            pass  # refused before the end of it
        try:
            while True:
                more = s.recv(65536)
                if not more:
                    return answer, True
                answer += more
        except TimeoutError:
            return answer, False
        except OSError:
            return answer, True


def nginx_reads(nginx, stream):
    """The requests that nginx saw, and how it ended: closed, a status, cut, raw."""
    answer, closed = converse(nginx, stream)
    seen = []
    while answer:
        head, gap, rest = answer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        if not gap or not lines[0].startswith("HTTP/1.1 "):
            return seen, "raw"  # an answer without a head, as to HTTP/0.9
        status = int(lines[0].split(" ")[1])
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        exact = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        answer = rest
        if status == 100:
            continue
        if "x-seen" not in headers:
            return seen, "cut" if status == 408 else str(status)
        method, target, length = exact["X-Seen"].split(" ", 2)
        seen.append(f"{method} {target} {length[:-1] or 0}")
        if method != "HEAD":
            answer = answer[int(headers.get("content-length", 0)):]
        if headers.get("connection") == "close":
            return seen, "closed" if not answer else "raw"
    return seen, "cut" if closed else "stuck"


# ours

def ours_read(helper, streams):
    text = "".join(s.hex() + "\n" for s in streams)
    done = subprocess.run([helper], input=text.encode(), stdout=subprocess.PIPE, check=False)
    found = []
    for block in done.stdout.decode("latin-1").split("\n.\n")[:-1]:
        *lines, end = block.split("\n")
        if end == "refused CUT 400":
            found.append((lines[:-1], "cut"))
        elif lines and end.startswith("refused") and lines[-1].count(" ") == 1:
            found.append((lines[:-1], end))  # the head of the refused body
        else:
            found.append((lines, end))
    return found if done.returncode == 0 and len(found) == len(streams) else None


# streams

def request(method="POST", target="/mcp", version="HTTP/1.1", headers=(), body=b""):
    lines = [f"{method} {target} {version}"] + [f"{n}: {v}" for n, v in headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


HOST = ("Host", "localhost:8080")
CHUNKED = ("Transfer-Encoding", "chunked")


def shapes():
    """Known ways to make two readers disagree."""
    hello, chunks = b"hello", b"5\r\nhello\r\n0\r\n\r\n"
    for coding in ["chunked", "Chunked", " chunked", "\tchunked", "chunked ", "xchunked",
                   "chunked, identity", "identity, chunked", "gzip, chunked", "identity",
                   "chunked;a=b", '"chunked"', "chunked,", ",chunked", "\x0bchunked", "",
                   "chunked\x00", "ch\u00fcnked"]:
        yield request(headers=[HOST, ("Transfer-Encoding", coding)], body=chunks)
        yield request(headers=[HOST, ("Transfer-Encoding", coding), ("Content-Length", 5)],
                      body=chunks)
        yield request(version="HTTP/1.0", headers=[HOST, ("Transfer-Encoding", coding)],
                      body=chunks)
        yield request(headers=[HOST, CHUNKED, ("Transfer-Encoding", coding)], body=chunks)
    for length in ["5", "05", "+5", "-5", "0x5", "5 ", "5,5", "5, 5", "5, 6", "", "5.0",
                   "5a", "a", " 5", "\t5", "18446744073709551621", "99999999999999999999",
                   "9223372036854775808", "5 5", '"5"', "5;a", "5\x00", "5\x0b"]:
        yield request(headers=[HOST, ("Content-Length", length)], body=hello)
        yield request(headers=[HOST, ("Content-Length", 5), ("Content-Length", length)],
                      body=hello)
        yield request(headers=[HOST, ("Content-Length", length), CHUNKED], body=chunks)
    for name in ["Content-Length ", "Content-Length\t", " Content-Length", "Content-Length:",
                 "Content_Length", "CONTENT-LENGTH", "Content-Length\x00", "Content Length",
                 "\x0bContent-Length", "Content-Length\u00a0"]:
        yield request(headers=[HOST, (name, 5)], body=hello)
        yield request(headers=[HOST, (name, 5), ("Content-Length", 5)], body=hello)
    for host in ["a", "a:80", "a:", "a:b", "", "a b", "a,b", "a/b", "a@b", "[::1]", "[::1",
                 "a..b", ".a", "a.", "a\x00", "a\\b", "a%00", "\u00e9", "a#b", "a?b"]:
        yield request(headers=[("Host", host)])
        yield request(headers=[("Host", host), HOST])
        yield request(target="http://localhost:8080/mcp", headers=[("Host", host)])
        yield request(target=f"http://{host}/mcp", headers=[("Host", host)])
    yield request()
    yield request(version="HTTP/1.0")
    for target in ["/", "*", "", "mcp", "/a b", "/a\tb", "/../a", "/a/../../b", "/a/../b",
                   "/%2e%2e/a", "/a%2f..%2f..", "/%00", "/%", "/%zz", "/a#b", "/a?b#c",
                   "/\u00e9", "/a\x00", "/a\x7f", "http://", "http:/a", "ftp://a/",
                   "//a/b", "/a\\..\\..", "/a?%", "/a?b c", "localhost:8080", "?a",
                   "http://localhost:8080", "HTTP://LOCALHOST:8080/a", "/..", "/."]:
        for method in ["GET", "OPTIONS", "CONNECT"]:
            yield request(method, target, headers=[HOST])
    for version in ["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/0.9", "HTTP/2.0", "HTTP/1",
                    "HTTP/1.10", "HTTP/1.1 ", " HTTP/1.1", "http/1.1", "HTTP/1.1\t", "",
                    "HTTP/01.1", "HTTP/1.1x", "HTP/1.1", "HTTP/1.", "HTTP/+1.1"]:
        yield request(version=version, headers=[HOST])
        yield request(version=version, headers=[HOST, ("Content-Length", 5)], body=hello)
    for method in ["get", "GeT", "G E T", "GET\t", " GET", "", "M-SEARCH", "A_B", "G\x00ET",
                   "G\u00c9T", "POST1", "TRACE", "PRI", "X" * 40]:
        yield request(method, headers=[HOST])
    for body in [b"5\r\nhello\r\n0\r\n\r\n", b"5\nhello\n0\n\n", b"0x5\r\nhello\r\n0\r\n\r\n",
                 b"+5\r\nhello\r\n0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n", b"05\r\nhello\r\n00\r\n\r\n",
                 b" 5\r\nhello\r\n0\r\n\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b"5;a=b\r\nhello\r\n0;c\r\n\r\n",
                 b'5;a="b;c"\r\nhello\r\n0\r\n\r\n', b"5;a\nhello\r\n0\r\n\r\n", b"5;\rhello\r\n0\r\n\r\n",
                 b"5\r\nhello0\r\n\r\n", b"5\r\nhello!\r\n0\r\n\r\n",
                 b"5\r\nhello!\n0\r\n\r\n", b"5\r\nhell\r\n0\r\n\r\n",
                 b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r0\r\n\r\n", b"5\r\rhello\r\n0\r\n\r\n",
                 b"0\r\nA: b\r\n\r\n", b"0\r\nA: b\r\nC: d\r\n\r\n", b"0\r\nContent-Length: 9\r\n\r\n",
                 b"0\r\nA\r\n\r\n", b"0\r\n A: b\r\n\r\n", b"0\r\nA: b\n\r\n", b"0\r\nA: \x00\r\n\r\n",
                 b"0\r\n\n", b"0\n\r\n", b"0\r\n\r", b"\r\n0\r\n\r\n", b"", b"g\r\n", b"5",
                 b"ffffffffffffffff\r\nhello\r\n", b"10000000000000005\r\nhello\r\n0\r\n\r\n",
                 b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n", b"A\r\n0123456789\r\n0\r\n\r\n",
                 b"5,\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0 \r\n\r\n", b"5\r\nhello\r\n0x\r\n\r\n"]:
        yield request(headers=[HOST, CHUNKED], body=body)
    for line in [" folded", "\tfolded", "X", ": x", "X : y", "X\t: y", "X Y: z", "X:", "X: \t ",
                 "X\r: y", "X: y\rz", "X: y\r", "X\n: y", "X: y\nZ: a", "(X): y", "X: \x01",
                 "X: \x7f", "X: \u00e9", "\u00e9: y", "X: \x00", "\x00", " ", "Expect: 100-continue",
                 "Expect: x", "Connection: close", "Connection: x, close", "Connection: keep-alive",
                 "Connection: Content-Length", "Upgrade: h2c", "Keep-Alive: x", "X: " + "y" * 9000]:
        for place in (0, 1):
            lines = ["Host: a", "Content-Length: 5"]
            lines.insert(place, line)
            yield ("POST / HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\nhello").encode("latin-1")
    for front in [b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\x00", b"\xef\xbb\xbf", b"hello"]:
        yield front + request(headers=[HOST])
        yield request(headers=[HOST, ("Content-Length", 5)], body=hello + front)
    yield b"GET /a HTTP/1.1\nHost: a\n\n"
    yield b"GET /a HTTP/1.1\r\nHost: a\n\r\n"
    yield b"GET /a HTTP/1.1\r\nHost: a\r\n\n"
    yield b"GET /a HTTP/1.1\rHost: a\r\r"
    yield b"GET /a\r\n"
    yield b"GET /a\r\nHost: a\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


PIECES = [b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b",", b";", b"0", b"5", b"\x7f", b"\xff",
          b"\x0b", b"chunked", b"Host: a\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"\r\n\r\n", b"HTTP/1.1",
          b"0\r\n\r\n", b"5\r\nhello\r\n", b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", b"%2e", b"/../"]


def mutate(rng, stream):
    """One to three small faults."""
    b = bytearray(stream)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(b) + 1)
        kind = rng.randrange(7)
        if kind == 0:
            b[at:at] = rng.choice(PIECES)
        elif kind == 1:
            del b[at:at + rng.choice([1, 1, 2, 5])]
        elif kind == 2 and at < len(b):
            b[at] = rng.randrange(256)
        elif kind == 3 and at < len(b):
            b[at] ^= 0x20
        elif kind == 4:
            lines = bytes(b).split(b"\r\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            b = bytearray(b"\r\n".join(lines))
        elif kind == 5:
            lines = bytes(b).split(b"\r\n")
            rng.shuffle(lines)
            b = bytearray(b"\r\n".join(lines))
        else:
            ends = [i for i in range(len(b) - 1) if b[i:i + 2] == b"\r\n"]
            if ends:
                i = rng.choice(ends)
                b[i:i + 2] = rng.choice([b"\n", b"\r", b"\r\n ", b"\r\n\t", b"\r\r\n", b" \r\n"])
    return bytes(b)


def compose(rng):
    """A request that is in order, mostly."""
    body = bytes(rng.randrange(256) for _ in range(rng.randrange(60)))
    headers = [HOST]
    for _ in range(rng.randrange(6)):
        name = rng.choice(["Accept", "X-A", "mcp-session-id", "Cookie", "a!b", "X_Y", "Te"])
        headers.append((name, rng.choice(["", "a", "a, b", "\u00ff", '"q,"', "a:b", "text/html;q=1"])))
    if rng.randrange(4) == 0:
        headers.append(("Connection", rng.choice(["keep-alive", "x", "Keep-Alive, y"])))
    way = rng.randrange(3)
    if way == 0:
        headers.append(("Content-Length", len(body)))
    elif way == 1:
        headers.append(CHUNKED)
        body = chunk(rng, body)
    else:
        body = b""
    rng.shuffle(headers)
    target = rng.choice(["/", "/mcp", "/a/b?c=d", "/%41?%", "/a//b", "/.well-known/x", "/a;b",
                         "http://localhost:8080/x", "/sse?a={b}|c^d%60", "/..."])
    method = rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
    version = "HTTP/1.0" if way != 1 and rng.randrange(10) == 0 else "HTTP/1.1"
    return request(method, target, version, headers, body)


def chunk(rng, body):
    out = b""
    while body:
        n = rng.randrange(1, len(body) + 1)
        size = rng.choice(["%x", "%X", "0%x", "%x;a=b"]) % n
        out += size.encode() + b"\r\n" + body[:n] + b"\r\n"
        body = body[n:]
    return out + rng.choice([b"0\r\n\r\n", b"000\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"0;x\r\n\r\n"])


def generate(rng, good, wanted):
    streams = [("shape", s + END) for s in shapes()]
    while len(streams) < wanted:
        whole = b"".join(compose(rng) for _ in range(rng.randrange(1, 4)))
        if rng.randrange(4) == 0:
            streams.append(("composed", whole + END))
        else:
            source = rng.choice(good) if rng.randrange(2) else whole
            streams.append(("mutant", mutate(rng, source) + END))
    return streams


# comparing

def is_excepted(line, status):
    return any(status == s and line.startswith(begin) for s, begin, _ in EXCEPTIONS)


def difference(stream, ours, theirs):
    """None, or what is wrong with two readings of one stream; "" for an exception."""
    (mine, my_end), (seen, end) = ours, theirs
    refused = my_end.startswith("refused")
    short = min(len(mine), len(seen))
    if mine[:short] != seen[:short]:
        return "the requests differ"
    if end.isdigit() and not (refused and len(mine) <= len(seen)):
        if len(mine) > len(seen) and is_excepted(mine[len(seen)], end):
            return ""
        if my_end == "closed" and len(mine) <= len(seen) and LIFE.search(stream):
            return ""
        return f"nginx refuses with {end} what we take"
    if len(mine) > len(seen) or not refused and len(mine) < len(seen):
        earlier = end if len(mine) > len(seen) else my_end
        return "" if earlier == "closed" and LIFE.search(stream) else "one reads more"
    if refused or my_end == end or my_end.startswith("open") and end == "cut":
        return None
    return f"we end with '{my_end}', nginx with '{end}'"


def compare(nginx, helper, streams):
    ours = ours_read(helper, [s for _, s in streams])
    if ours is None:
        return None
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        theirs = list(pool.map(lambda s: nginx_reads(nginx, s[1]), streams))
    return list(zip(streams, ours, theirs))


def check_differences(rows, mode):
    tally = collections.Counter()
    wrong = []
    for (kind, stream), ours, theirs in rows:
        tally[kind] += 1
        tally["both refuse" if theirs[1].isdigit() and ours[1].startswith("refused")
              else "only we refuse" if ours[1].startswith("refused")
              else "both take"] += 1
        why = difference(stream[:-len(END)], ours, theirs)
        tally["exceptions"] += why == ""
        if why:
            wrong.append(f"{why}: {stream!r}: ours {ours}, nginx {theirs}")
    print("# " + ", ".join(f"{what}: {n}" for what, n in sorted(tally.items())))
    ok(not wrong, f"{len(rows)} streams ({mode}): what nginx refuses we refuse, and what "
       "we take nginx reads as we do", *wrong[:20])
    ok(tally["exceptions"] * 100 <= len(rows), "exceptions are rare")
    for what in ("both take", "both refuse", "only we refuse"):
        ok(tally[what] >= 50, f"there are streams that {what}" if what[0] == "b"
           else "there are streams that only we refuse")


def check_clients(helper, nginx, good):
    names = sorted(good)
    for name, (stream, ours, theirs) in zip(
            names, compare(nginx, helper, [("good", good[n] + END) for n in names])):
        both = ours == theirs and ours[1] == "closed"
        ok(both and len(ours[0]) >= 1, f"{name} is taken by both", ours, theirs)
    together = b"".join(good[n] for n in names
                        if b"HTTP/1.0" not in good[n] and b": close" not in good[n])
    _, ours, theirs = compare(nginx, helper, [("good", together + END)])[0]
    ok(ours == theirs and len(ours[0]) > 20, f"{len(ours[0])} of them on one connection",
       ours, theirs)


def check_ours_alone(helper, good):
    for name, ours in zip(sorted(good), ours_read(helper, [good[n] + END for n in sorted(good)])):
        ok(ours[1] == "closed", f"{name} is taken", ours)


def main():
    helper, mode = sys.argv[1], sys.argv[2]
    data = "tests/data/http"
    good = {}
    for name in sorted(os.listdir(data)):
        with open(f"{data}/{name}", "rb") as f:
            good[name] = f.read()
    if not shutil.which("nginx"):
        check_ours_alone(helper, good)
        skip("beside nginx", "nginx is not installed")
        return
    seed = int(os.environ.get("SEED", "1" if mode == "quick" else str(time.time_ns() % 10**9)))
    print(f"# SEED={seed}")
    with tempfile.TemporaryDirectory(prefix="http_nginx.") as directory:
        nginx = Nginx(directory)
        try:
            if not nginx.is_up():
                check_ours_alone(helper, good)
                skip("beside nginx", f"nginx does not start: {nginx.said()}")
                return
            check_clients(helper, nginx, good)
            rng = random.Random(seed)
            rows = compare(nginx, helper, generate(rng, list(good.values()), STREAMS[mode]))
            ok(rows is not None, "ours read the same however a stream is cut")
            if rows:
                check_differences(rows, mode)
        finally:
            nginx.stop()


main()
print(f"1..{count}")
sys.exit(failures != 0)
