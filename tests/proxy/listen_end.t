#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a proxy with clients over HTTP ends when somebody does not do his part: a client that
does not read, or nobody who takes what we say.

    listen_end.t - [quick|soak [CASE]]    a CASE runs only those whose names begin so

Afterwards every log and every pack verifies.
"""
import contextlib
import fcntl
import json
import os
import signal
import socket
import time

import lab
from lab import run_cases, tap
from web import Case, soon, tool

ok, same = tap.ok, tap.same


def flooded(c, *flags):
    """A client that does not read its stream, of which the server has more than fits."""
    c.listen("tools", *flags)
    client = c.client()
    stream = client.send("GET")
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    call = client.send("POST", tool(1, "tell", count=20000, size=4000))
    time.sleep(1)
    return [stream, call]


def case_unread(c):
    """It has the time that calls have to end, not as much again."""
    held = flooded(c, "--shutdown-timeout", "8")
    c.process.send_signal(signal.SIGTERM)
    status, seconds = lab.wait(c.process)
    ok(status == 2 and 8 <= seconds < 14, "a client that does not read: the end", status, seconds)
    same([r["outcome"] for r in c.receipts()], ["timeout"], "the receipt")
    del held
    c.judge()


def end_twice(c, *flags):
    held = flooded(c, "--shutdown-timeout", "40", *flags)
    c.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    ok(c.process.poll() is None, "it waits for the call")
    c.process.send_signal(signal.SIGTERM)
    status, seconds = lab.wait(c.process)
    ok(status == 2 and seconds < 20, "and after a second signal no more", status, seconds)
    same([r["outcome"] for r in c.receipts()], ["timeout"], "the receipt")
    del held
    c.judge()


def case_twice_unread(c):
    end_twice(c)


def case_twice_unread_shared(c):
    """What waits for it is in our memory then."""
    end_twice(c, "--share-child")


class Deaf(Case):
    def hear(self, file, place):
        """Up to where it listens, and no more."""
        fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, 4096)
        said = {"event": None}
        while said["event"] != "listening":
            said = json.loads(file.readline())
        place.put(said["url"])


def case_nobody_reads_stderr(c):
    """The sessions do not wait for who should take what is said of them."""
    c = Deaf(c.name)  # in the same directory
    c.listen("tools", "--share-child")
    for n in range(60):
        client = c.client()
        client.call(1, n=n)
        client.close()
    ok(soon(lambda: len(c.packs()) == 60), "all packs are there", len(c.packs()))
    same(c.client().call(1)["id"], 1, "one more call")
    c.process.send_signal(signal.SIGTERM)
    same(lab.wait(c.process)[0], 0, "SIGTERM: status 0")
    c.judge(packs=61)


def case_signal_while_stderr_is_full(c):
    """It comes while a line waits for its reader."""
    c = Deaf(c.name)
    c.listen("tools")
    client = c.client()
    same(client.call(1)["id"], 1, "a call")
    full = os.open(f"/proc/{c.process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(full, b"x"):
            pass
    os.close(full)
    client.close()
    ok(soon(c.packs), "its pack")
    time.sleep(0.3)
    c.process.send_signal(signal.SIGTERM)
    same(lab.wait(c.process, 20)[0], 0, "SIGTERM: status 0")
    c.judge()


run_cases(globals(), Case)
