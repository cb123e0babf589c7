#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server on strings: puppet.py DIR. What it reads goes to DIR/got as it is; what it does
is told through the pipe DIR/do, a line each: say TEXT, exit STATUS, close, deaf, echo,
huge BEFORE BYTES AFTER, and stubborn (it stays, whatever comes)."""
import json
import os
import signal
import sys
import threading

got = os.open(sys.argv[1] + "/got", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
strings = os.open(sys.argv[1] + "/do", os.O_RDWR)
echoes = stays = False


def say(data):
    while data:
        data = data[os.write(1, data):]


def answer(line):
    message = json.loads(line)
    if "id" in message:
        say(json.dumps({"result": message.get("params"), "id": message["id"]}).encode() + b"\n")


def listen():
    try:
        for line in iter(sys.stdin.buffer.readline, b""):
            os.write(got, line)
            if echoes:
                answer(line)
    except OSError:
        return  # deaf
    if not stays:
        os._exit(0)


def huge(before, size, after):
    block = b"y" * (1 << 20)
    say(before)
    for at in range(0, int(size), len(block)):
        say(block[:int(size) - at])
    say(after + b"\n")


threading.Thread(target=listen, daemon=True).start()
for command in os.fdopen(strings, "rb", 0):
    word, _, rest = command.rstrip(b"\n").partition(b" ")
    if word == b"say":
        say(rest + b"\n")
    elif word == b"exit":
        os._exit(int(rest))
    elif word == b"close":
        os.close(1)
    elif word == b"deaf":
        os.close(0)
    elif word == b"echo":
        echoes = True
    elif word == b"huge":
        huge(*rest.split(b" "))
    elif word == b"stubborn":
        stays = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
