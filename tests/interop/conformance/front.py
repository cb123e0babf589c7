# SPDX-License-Identifier: Apache-2.0
"""What stands between a client and a server: nobody, nginx, or `assay mcp-proxy` ($ASSAY).

    front.py KIND DIRECTORY COMMAND... URL

is a client for the conformance suite: it puts KIND in front of URL and runs COMMAND with the
URL of that. The suite says in its environment which scenario this is.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlsplit

PATIENCE = 20  # seconds for a listener to be there, and for a proxy to go

NGINX = """
daemon off;
master_process off;
pid {dir}/pid;
error_log {dir}/error.log crit;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    client_max_body_size 0;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://{upstream};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


def start_nginx(upstream, directory):
    """Any reverse proxy that leaves everything as it is: the control."""
    at, port = urlsplit(upstream), free_port()
    with open(directory + "/nginx.conf", "w", encoding="ascii") as f:
        f.write(NGINX.format(dir=directory, port=port, upstream=f"127.0.0.1:{at.port}"))
    process = subprocess.Popen(
        ["nginx", "-p", directory, "-c", directory + "/nginx.conf", "-e", directory + "/error.log"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not wait_for(port, process):
        raise RuntimeError("nginx does not listen")
    return process, f"http://localhost:{port}{at.path}"


def start_assay(upstream, directory, *flags):
    """`upstream` is a URL, or a list: the command of a stdio server."""
    behind = ["--", *upstream] if isinstance(upstream, list) else ["--upstream-url", upstream]
    process = subprocess.Popen(
        [os.environ["ASSAY"], "mcp-proxy", "--json", "--audit-dir", directory + "/audit", *flags,
         "--listen", "127.0.0.1:0", *behind],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = b""
    for line in process.stderr:
        said += line
        port = listening_port(line)
        if port:
            drain(process.stderr, directory)
            return process, f"http://localhost:{port}/mcp"
    raise RuntimeError("assay does not listen: " + said.decode(errors="replace")[:500])


def listening_port(line):
    """The port in the line {"event":"listening","url":...}, else None."""
    said = json.loads(line) if line.startswith(b"{") else {}
    return urlsplit(said["url"]).port if said.get("event") == "listening" else None


def drain(pipe, directory):
    """What it says further goes into a file, without us."""
    subprocess.Popen(["tee", directory + "/said"], stdin=pipe, stdout=subprocess.DEVNULL)


STARTS = {"nginx": start_nginx, "assay": start_assay}


@contextlib.contextmanager
def front(kind, upstream, directory, *flags):
    """The URL of `kind` in front of `upstream`."""
    if kind == "direct":
        yield upstream
        return
    os.makedirs(directory, exist_ok=True)
    process, url = STARTS[kind](upstream, directory, *flags)
    try:
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def is_there(kind):
    if kind == "nginx":
        return shutil.which("nginx") is not None
    told = subprocess.run([os.environ["ASSAY"], "mcp-proxy", "--help"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return b"--listen" in told.stdout


def main():
    kind, directory, *command, url = sys.argv[1:]
    place = tempfile.mkdtemp(prefix="client-", dir=directory)
    with front(kind, url if urlsplit(url).path else url + "/", place) as seen:
        # The suite ends us with SIGTERM: whoever we started must not stay.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        if seen.endswith("/") and not urlsplit(url).path:
            seen = seen[:-1]
        return subprocess.run([*command, seen], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
