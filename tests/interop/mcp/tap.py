# SPDX-License-Identifier: Apache-2.0
"""Copies what passes:  tap.py PREFIX COMMAND [ARG...]

Runs the command between our stdin and stdout; the bytes go on as they come, and into
PREFIX.<pid>.in and PREFIX.<pid>.out.
"""
import os
import signal
import subprocess
import sys
import threading

prefix = "%s.%d" % (sys.argv[1], os.getpid())
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())


def write(to, data):
    while data:
        data = data[os.write(to, data):]


def copy(source, to, name):
    with open(name, "wb", buffering=0) as kept:
        try:
            while data := os.read(source, 65536):
                kept.write(data)
                write(to, data)
        except OSError:
            pass
    os.close(to)


threading.Thread(target=copy, args=(0, child.stdin.fileno(), prefix + ".in"), daemon=True).start()
copy(child.stdout.fileno(), 1, prefix + ".out")
status = child.wait()
os._exit(status if status >= 0 else 128 - status)
