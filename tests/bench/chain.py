#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two proxies that only meet over HTTP, as one command from stdio to stdio:

    chain.py BACK... --then FRONT...

BACK serves a stdio server over HTTP; when its port answers, this process becomes FRONT.
{port} in either is a free port. BACK ends when FRONT does.
"""
import os, select, signal, socket, subprocess, sys, time

PATIENCE = 20  # seconds until the port must answer


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def keep(back, parent):
    """Run BACK until `parent` is gone; in a process that holds none of its pipes."""
    front = os.pidfd_open(parent)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    # A pipe that stays open: some read EOF on stdin as a wish to end.
    child = subprocess.Popen(back, stdin=subprocess.PIPE, stdout=null, stderr=null,
                             start_new_session=True)
    select.select([front], [], [])
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def main():
    port = free_port()
    words = [w.replace("{port}", str(port)) for w in sys.argv[1:]]
    back, front = words[:words.index("--then")], words[words.index("--then") + 1:]
    parent = os.getpid()
    if os.fork() == 0:
        os.setsid()
        keep(back, parent)
        os._exit(0)
    end = time.monotonic() + PATIENCE
    while not answers(port):
        if time.monotonic() > end:
            sys.exit(f"chain: {back[0]} does not listen")
        time.sleep(0.02)
    os.execv(front[0], front)


main()
