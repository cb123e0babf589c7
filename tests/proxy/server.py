#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The servers that tests/proxy drives: server.py MODE [ARGUMENT]; one function each."""
import hashlib
import json
import os
import signal
import sys
import time

out = sys.stdout.buffer


def say(text):
    out.write(text if isinstance(text, bytes) else text.encode())
    out.flush()


def lines():
    return iter(sys.stdin.buffer.readline, b"")


def answer(message, result):
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n"


def sleep_for_ever():
    while True:
        time.sleep(60)


def echo(_):
    """Every request is answered with its params."""
    for line in lines():
        message = json.loads(line)
        many = message if isinstance(message, list) else [message]
        answers = [answer(m, {"echo": m.get("params")}) for m in many if "id" in m]
        if isinstance(message, list):
            say("[" + ",".join(a.strip() for a in answers) + "]\n")
        else:
            say("".join(answers))


def slow(seconds):
    """The same, but it takes SECONDS to begin."""
    time.sleep(float(seconds))
    echo(None)


def swap(count):
    """Answer only when COUNT requests are there, the last one first."""
    waiting = []
    for line in lines():
        waiting.append(json.loads(line))
        if len(waiting) == int(count):
            say("".join(answer(m, {"n": m["params"]["arguments"]}) for m in waiting[::-1]))
            waiting = []


def fifo(count):
    """The same, but in order."""
    waiting = []
    for line in lines():
        waiting.append(json.loads(line))
        if len(waiting) == int(count):
            say("".join(answer(m, {"n": m["params"]["arguments"]}) for m in waiting))
            waiting = []


def asks(_):
    """Asks the client something under the id of the client's own call."""
    for line in lines():
        message = json.loads(line)
        if message.get("method") == "tools/call":
            call = message
            say(json.dumps({"jsonrpc": "2.0", "id": call["id"], "method": "roots/list"}) + "\n")
        else:
            say(answer(call, {"roots": message["result"]}))


def tee(paths):
    """IN,OUT: keeps what it reads in IN and says what is in OUT."""
    kept, told = paths.split(",")
    with open(told, "rb") as f:
        say(f.read())
    with open(kept, "wb") as f:
        while True:
            data = os.read(0, 1 << 16)
            if not data:
                break
            f.write(data)


def huge(size):
    """Answers with one string of SIZE bytes; tells the hash of each line it got."""
    block = b"y" * (1 << 20)
    for _ in range(int(os.environ.get("LINES", "1"))):
        digest, first, last = hashlib.sha256(), b"", b""
        while not last.endswith(b"\n"):
            last = os.read(0, 1 << 20)
            if not last:
                return
            first = first or last[:64]
            digest.update(last)
        sys.stderr.write(f"server read {digest.hexdigest()}\n")
        sys.stderr.flush()
        say(b'{"jsonrpc":"2.0","id":1,"result":{"s":"')
        left = int(size)
        while left:
            n = min(left, len(block))
            out.write(block[:n])
            left -= n
        say(b'"}}\n')
    for _ in lines():
        pass


def chatty(_):
    """Writes log lines where only messages should be."""
    say("Server starting...\nc is for chatty\n\xff\xfe no UTF-8\n\n".encode("latin-1"))
    echo(None)


def mute(_):
    """Closes its stdout and lives on, deaf to EOF."""
    os.close(1)
    sleep_for_ever()


def deaf(_):
    """Answers, and does not end when its stdin does."""
    echo(None)
    sleep_for_ever()


def stubborn(_):
    """Nor on SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    deaf(None)


def silent(_):
    for _ in lines():
        pass


def silent_deaf(_):
    """Never answers, notes each signal on stderr with the time."""
    def note(number, _):
        sys.stderr.write(f"server got {number} at {time.monotonic():.3f}\n")
        sys.stderr.flush()
        if number != signal.SIGINT or os.environ.get("DIE_ON_INT"):
            os._exit(0)
    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGINT, note)
    sleep_for_ever()


def dies(how):
    """Answers the first call and dies with the second: by a signal, or with a status."""
    for n, line in enumerate(lines()):
        if n == 0:
            say(answer(json.loads(line), {}))
            continue
        if how.startswith("-"):
            say('{"half":')
            os.kill(os.getpid(), int(how[1:]))
        os._exit(int(how))


def grandchild(kind):
    """Leaves a process behind that holds the pipes."""
    if os.fork() == 0:
        if kind == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sleep_for_ever()
    for line in lines():
        say(answer(json.loads(line), {}))
        if kind == "at-once":
            os._exit(0)


def never_reads(_):
    sleep_for_ever()


def flood(size):
    """Answers the first line, then talks without pause: SIZE bytes of notifications."""
    say(answer(json.loads(next(lines())), {}))
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}\n' % (
        b"z" * 4000)
    left = int(size)
    while left > 0:
        out.write(line)
        left -= len(line)
    out.flush()
    os._exit(0)


def late(_):
    """Answers a call only when it has been cancelled."""
    call = None
    for line in lines():
        message = json.loads(line)
        if message.get("method") == "tools/call":
            call = message
        elif message.get("method") == "notifications/cancelled":
            say(answer(call, {"late": True}))


def told(path):
    """Says a line of the file PATH for each notification."""
    with open(path, "rb") as f:
        for line in lines():
            if "id" not in json.loads(line):
                say(f.readline())


def rounds(_):
    """A call in two legs, linked by requestState."""
    for line in lines():
        message = json.loads(line)
        if "requestState" in message["params"]:
            say(answer(message, {"resultType": "complete", "content": []}))
        else:
            say('{"id":%s,"result":{"resultType":"input_required","requestState":"a/b\\u00e9"}}\n'
                % json.dumps(message["id"]))


def tasks(_):
    """Calls become tasks. t-1 ends by tasks/get, t-2 by a notification, t-3 by
    tasks/result, the others not at all."""
    made = 0
    for line in lines():
        m = json.loads(line)
        if m["method"] == "tools/call":
            made += 1
            task = {"taskId": f"t-{made}", "status": "working"}
            say(answer(m, {"task": task} if made == 3 else dict(task, resultType="task")))
            if made == 2:
                say(json.dumps({"jsonrpc": "2.0", "method": "notifications/tasks",
                                "params": {"taskId": "t-2", "status": "failed",
                                           "error": {"code": 1, "message": "no"}}}) + "\n")
        elif m["method"] == "tasks/get" and m["params"]["taskId"] == "t-3":
            say(answer(m, {"taskId": "t-3", "status": "completed"}))
        elif m["method"] == "tasks/get":
            say(answer(m, {"taskId": m["params"]["taskId"], "status": "completed",
                           "result": {"content": [1]}}))
        else:
            say(answer(m, {"content": [3]}))


def raw(text):
    """Says TEXT after each line it reads."""
    for _ in lines():
        say(text.encode().decode("unicode_escape").encode("latin-1") + b"\n")


def recorder(path):
    """Keeps every byte it gets in PATH and answers every request in it, as far as it can
    be read: the last member counts."""
    sys.set_int_max_str_digits(0)
    with open(path, "ab", 0) as f:
        for line in lines():
            f.write(line)
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            many = message if isinstance(message, list) else [message]
            answers = [answer(m, {}).strip() for m in many
                       if isinstance(m, dict) and "method" in m and "id" in m]
            if answers:
                say(("[%s]\n" if isinstance(message, list) else "%s\n") % ",".join(answers))


def asker(path):
    """Asks its client something, and keeps what it gets in PATH."""
    say('{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{}}\n')
    with open(path, "ab", 0) as f:
        for line in lines():
            f.write(line)


def lister(path):
    """PATH is a JSON object of results by cursor ("" is the first), as texts: tools/list is
    answered with one of them, byte for byte, and all else with {}."""
    def result(message):
        if message["method"] != "tools/list":
            return "{}"
        with open(path) as f:
            return json.load(f)[(message.get("params") or {}).get("cursor", "")]

    def one(message):
        return '{"jsonrpc":"2.0","id":%s, "result" :%s}' % (json.dumps(message["id"]),
                                                            result(message))

    for line in lines():
        message = json.loads(line)
        if isinstance(message, list):
            say("[ " + " ,".join(one(m) for m in message if "id" in m) + "]\n")
        elif "id" in message:
            say(one(message) + "\n")


def tools(path):
    """A server whose tools do what they are called. What it reads goes to PATH, if given."""
    asked = {}  # its own requests: the calls that wait for them

    def tell(method, params, number=None):
        head = {"jsonrpc": "2.0", "method": method, "params": params}
        say(json.dumps(dict(head, id=number) if number else head) + "\n")

    def do_call(m):
        name, arguments = m["params"]["name"], m["params"].get("arguments", {})
        token = m["params"].get("_meta", {}).get("progressToken")
        if name == "echo":
            return {"content": [], "echo": arguments}
        if name == "pid":
            return {"pid": os.getpid()}
        if name == "big":
            say('{"jsonrpc":"2.0","id":%s,"result":{"content":"' % json.dumps(m["id"]))
            for _ in range(arguments["mib"]):
                say(b"y" * (1 << 20))
            return say('"}}\n')
        if name == "progress":
            for n in range(arguments["count"]):
                tell("notifications/progress", {"progressToken": token, "progress": n})
            return {"content": []}
        if name == "tell":
            for n in range(arguments["count"]):
                tell("notifications/message", {"level": "info", "data": "z" * arguments["size"]})
            return {"content": []}
        if name == "latin":  # an answer that is not UTF-8
            return say(b'{"jsonrpc":"2.0","id":%d,"result":{"content":"caf\xe9"}}\n' % m["id"])
        if name == "roots":
            asked[f"q{len(asked)}"] = m
            return tell("roots/list", {}, f"q{len(asked) - 1}")
        if name == "die":
            say((arguments.get("saying", "") * arguments.get("times", 1)))
            os._exit(3)
        return None  # hold

    def do(m):
        if m.get("method") == "tools/call":
            return do_call(m)
        if m.get("method") == "initialize":
            return {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {},
                    "serverInfo": {"name": "tools", "version": "1"}}
        if m.get("method") == "tools/list":
            return {"tools": [{"name": n, "inputSchema": {"type": "object"}}
                              for n in ("echo", "pid", "hold")]}
        return {}

    for line in lines():
        if path:
            with open(path, "ab", 0) as f:
                f.write(line)
        message = json.loads(line)
        is_batch = isinstance(message, list)
        answers = []
        for m in message if is_batch else [message]:
            if "method" not in m and m["id"] in asked:
                say(answer(asked[m["id"]], {"roots": m["result"]}))
            elif "id" in m and "method" in m and (result := do(m)) is not None:
                answers.append(answer(m, result).strip())
        if answers:
            say(("[%s]\n" if is_batch else "%s\n") % ",".join(answers))


if "LAB_READY" in os.environ:  # lab.py waits for it
    open(os.environ["LAB_READY"], "w").close()
globals()[sys.argv[1].replace("-", "_")](sys.argv[2] if len(sys.argv) > 2 else None)
