# SPDX-License-Identifier: Apache-2.0
"""Messages, good and hostile, and what a guard must do with each: an oracle that shares no
code with the guard.

    lines(seed, count)    the messages, with their line ends
    expect(line, may)     what must come of one; `may` says which tools may be called
"""
import json
import random
import re
import sys

sys.setrecursionlimit(20000)  # of the decoder

DEPTH = 128  # levels that a message may have
OUTLINE = 4  # what is deeper is not looked into once a message is too deep
HALF = re.compile("[\ud800-\udfff]")
CALL_NAMES = ["good", "read_file", "read_", "shell_exec", "file_delete", "unknown", "Good",
              "good ", "", "shell_exec\u0000", "gооd", "x" * 300, "read_\u00e9\u4e2d"]


# --- the oracle ---


class Number(str):
    """A number as it was written."""


class Members(list):
    """The members of an object, in order, as they came."""

    def get(self, name):
        return next((value for key, value in self if key == name), None)

    def has(self, name):
        return any(key == name for key, _ in self)


def no_constant(_):
    raise ValueError("no JSON")


DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=Number, parse_float=Number,
                           parse_constant=no_constant)


def is_plain(value):
    """No member twice, no half of a surrogate pair, at any depth."""
    if isinstance(value, Members):
        names = [key for key, _ in value]
        return (len(set(names)) == len(names) and all(map(is_plain, names)) and
                all(is_plain(v) for _, v in value))
    if isinstance(value, list):
        return all(map(is_plain, value))
    return not isinstance(value, str) or not HALF.search(value)


def depth_of(text):
    deepest = depth = 0
    inside = escaped = False
    for c in text:
        if inside:
            inside = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            inside = True
        elif c in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif c in "]}":
            depth -= 1
    return deepest


def level_of(value):
    if isinstance(value, Members):
        return 1 + max([level_of(v) for _, v in value], default=0)
    if isinstance(value, list):
        return 1 + max(map(level_of, value), default=0)
    return 0


class Fate:
    """What must become of one element."""

    def __init__(self, raw):
        self.raw = raw
        self.kind = "invalid"  # request notification response invalid
        self.goes = False
        self.code = None  # of the error that the client gets
        self.id = None  # JSON text of the id
        self.tool = None  # of a tools/call, if it can be told
        self.is_call = False

    def refuse(self, code):
        self.goes = False
        self.code = code if self.kind in ("request", "invalid") else None
        if self.kind == "invalid":
            self.id = "null"
        return self

    @property
    def is_unread(self):
        """Refused without asking the policy."""
        return not self.goes and self.tool is None


def kind_of(m):
    if not isinstance(m, Members) or len({k for k, _ in m}) != len(m):
        return "invalid"
    method, answers = m.get("method"), m.has("result") or m.has("error")
    if not m.has("method"):
        return "response" if answers else "invalid"
    if answers or not isinstance(method, str) or isinstance(method, Number):
        return "invalid"
    if not m.has("id"):
        return "notification"
    return "request" if isinstance(m.get("id"), str) else "invalid"


def id_text(raw):
    """The id as it was written: the value of the member of the outermost object."""
    at, text = 1, raw
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
        key, at = DECODER.raw_decode(text, at)
        at = text.index(":", at) + 1
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
        _, end = DECODER.raw_decode(text, at)
        if key == "id":
            return text[at:end]
        at = end


def has_lookalikes(m):
    def among(members, names):
        return any(k.casefold() in names and k not in names for k, _ in members)

    params = m.get("params")
    return (among(m, ("jsonrpc", "id", "method", "params", "result", "error")) or
            m.get("method") == "tools/call" and isinstance(params, Members) and
            among(params, ("name", "arguments")))


def names_in(value):
    if isinstance(value, Members):
        for k, v in value:
            yield k
            yield from names_in(v)
    elif isinstance(value, list):
        for v in value:
            yield from names_in(v)


def has_nul(m):
    """A server in C reads a text up to its first NUL."""
    params, method = m.get("params"), m.get("method")
    names = [k for k, _ in m] + [method if isinstance(method, str) else ""]
    if method == "tools/call":
        tool = params.get("name") if isinstance(params, Members) else None
        names += [*names_in(m), tool if isinstance(tool, str) else ""]
    return any("\0" in n for n in names)


def judge(raw, value, clear, may):
    fate = Fate(raw)
    fate.kind = kind_of(value)
    if fate.kind == "request":
        fate.id = id_text(raw)
    fate.is_call = (fate.kind in ("request", "notification") and
                    value.get("method") == "tools/call")
    # A server that ends lines at CR, or does not mind case, would read something else.
    if (fate.kind == "invalid" or not clear or not is_plain(value) or "\r" in raw or
            has_lookalikes(value) or has_nul(value)):
        return fate.refuse(-31004)
    if not fate.is_call:
        fate.goes = True
        return fate
    params = value.get("params")
    name = params.get("name") if isinstance(params, Members) else None
    if not isinstance(name, str) or isinstance(name, Number) or not name:
        return fate.refuse(-31004)
    arguments = params.get("arguments")
    if not isinstance(arguments, (Members, type(None))):
        return fate.refuse(-31004)
    fate.tool = name
    if not may(name):
        return fate.refuse(-31001)
    fate.goes = True
    return fate


def elements_of(text):
    """The elements of an array, as they were written."""
    at, found = text.index("[") + 1, []
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
        if text[at] == "]":
            return found
        _, end = DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = end


class Expected:
    def __init__(self, line, fates, is_batch):
        self.line, self.fates, self.is_batch = line, fates, is_batch

    @property
    def goes_whole(self):
        return all(f.goes for f in self.fates)

    @property
    def rest(self):
        return [f.raw for f in self.fates if f.goes]


def expect(line, may):
    body = line[:-1] if line.endswith(b"\n") else line
    if not body.strip(b" \t\r\n"):
        return Expected(line, [], False)  # a blank line says nothing
    try:
        text = body.decode()
        if text.startswith("\ufeff"):
            raise ValueError("a BOM")
        deep = text.count("[") + text.count("{") > DEPTH and depth_of(text) > DEPTH
        value, end = DECODER.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))
        if text[end:].strip(" \t\r\n"):
            raise ValueError("more behind it")
    except ValueError:
        return Expected(line, [Fate(body).refuse(-31004)], False)
    if isinstance(value, Members) or not isinstance(value, list) or not value:
        raw = text.strip(" \t\r\n")
        clear = not deep or level_of(value) <= OUTLINE
        return Expected(line, [judge(raw, value, clear, may)], False)
    fates = [judge(raw, v, not deep or level_of(v) <= OUTLINE - 1, may)
             for raw, v in zip(elements_of(text), value)]
    return Expected(line, fates, True)


# --- the messages ---


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.next = 0

    def some_id(self):
        self.next += 1
        n = self.next
        return self.rng.choice([str(n)] * 8 + [
            f'"{n}"', f"-{n}", f"{n}.5", f"{n}e3", f'"\\u0069d-{n}"', f'"id \\"{n}\\""',
            f"9007199254740{n:06}", "1" * 40 + str(n), f'"{"i" * 3000}{n}"', f'"é中{n}"'])

    def escaped(self, text):
        """A JSON string of it, some characters by their number."""
        out = []
        for c in text:
            if ord(c) > 0xffff or self.rng.random() < 0.6:
                out.append(json.dumps(c)[1:-1])
            elif c == "/":
                out.append("\\/")
            else:
                out.append(f"\\u{ord(c):04{self.rng.choice('xX')}}")
        return '"' + "".join(out) + '"'

    def text(self, text):
        return self.escaped(text) if self.rng.random() < 0.3 else json.dumps(
            text, ensure_ascii=self.rng.random() < 0.5)

    def space(self):
        return self.rng.choice(["", "", "", "", " ", "  ", "\t", " \t "])

    def join(self, members):
        """An object of (name, text) pairs."""
        if self.rng.random() < 0.3:
            self.rng.shuffle(members)
        s = self.space
        return "{" + s() + ("," + s()).join(
            f"{self.text(k)}{s()}:{s()}{v}" for k, v in members) + s() + "}"

    def value(self, depth=0):
        r = self.rng
        kind = r.randrange(9 if depth < 4 else 6)
        if kind == 6:
            return "[" + ",".join(self.value(depth + 1) for _ in range(r.randrange(4))) + "]"
        if kind > 6:
            return self.join([(f"k{i}", self.value(depth + 1)) for i in range(r.randrange(4))])
        return r.choice(["null", "true", "false", "0", "-0", "1.10", "1E400",
                         "9007199254740993", '""', '"\\ud83d\\ude00"', '"\\u0000"',
                         self.text("shell_exec"), '"tools/call"'])

    def arguments(self):
        return self.join([(k, self.value()) for k in
                          self.rng.sample(["a", "b", "name", "method", "id", "params"],
                                          self.rng.randrange(4))])

    def name(self):
        return self.rng.choice(CALL_NAMES + ["good", "read_file", "shell_exec"] * 6)

    def params(self, name=None):
        members = [("name", self.text(self.name() if name is None else name))]
        if self.rng.random() < 0.8:
            members.append(("arguments", self.arguments()))
        if self.rng.random() < 0.2:
            members.append(("_meta", '{"progressToken":7}'))
        return self.join(members)

    def call(self, **more):
        members = {"jsonrpc": '"2.0"', "id": self.some_id(), "method": self.text("tools/call"),
                   "params": self.params()}
        members.update(more)
        return self.join([(k, v) for k, v in members.items() if v is not None])

    def other(self):
        r = self.rng
        return self.join(r.choice([
            [("jsonrpc", '"2.0"'), ("id", self.some_id()), ("method", '"ping"')],
            [("method", self.text("notifications/progress")), ("params", self.arguments())],
            [("id", self.some_id()), ("result", self.arguments())],
            [("id", self.some_id()), ("error", '{"code":1,"message":"no"}')],
            [("id", self.some_id()), ("method", '"tools/calls"'), ("params", self.params())],
            [("id", self.some_id()), ("method", '"Tools/Call"'), ("params", self.params())],
        ]))

    # Each of these is one line.

    def twice(self):
        """A member twice, somewhere."""
        r = self.rng
        name = r.choice(["method", "id", "params", "jsonrpc", "deep", "name", "arguments"])
        if name == "deep":
            twice = '{"a":1,"b":[{"x":{"k":1,"\\u006b":2}}]}'
            return self.call(params='{"name":"good","arguments":%s}' % twice)
        if name == "name":
            return self.call(params='{"name":"good",%s:"shell_exec"}' % self.text("name"))
        if name == "arguments":
            return self.call(params='{"name":"good","arguments":{},"arguments":{"a":1}}')
        if r.random() < 0.3:
            alike = {name.upper(), name.title(), name.replace("s", "\u017f")} - {name}
            return self.call(**{r.choice(sorted(alike)): self.value()})
        second = {"method": '"tools/call"', "id": self.some_id(), "jsonrpc": '"2.0"',
                  "params": self.params("shell_exec")}[name]
        first = self.rng.choice([self.call(params=self.params("good")), self.other()])
        return first[:-1] + f",{self.text(name)}:{second}" + "}"

    def odd_params(self):
        r = self.rng
        return self.call(params=r.choice([
            None, "[]", '["shell_exec"]', '"shell_exec"', "null", "7", "{}", '{"name":7}',
            '{"name":null}', '{"name":"good","Name":"shell_exec"}', '{"NAME":"good","name":"good"}',
            '{"name":"good","argument\\u017f":{}}', '{"name":"good","names":1}', '{"name":["good"]}', '{"name":{"good":1}}', '{"Name":"good"}',
            '{"arguments":{"name":"good"}}', '{"name":"good","arguments":[]}',
            '{"name":"good","arguments":null}', '{"name":"good","arguments":"x"}']))

    def odd_id(self):
        return self.call(id=self.rng.choice([None, None, "null", "true", "[]", "{}", "[1]",
                                             '{"id":1}', "-0", '""']))

    def odd_shape(self):
        r = self.rng
        return r.choice([
            "[]", "{}", "null", "7", '"tools/call"', "[[]]", "[null]", "[1,2]", '{"id":1}',
            self.call(result="{}"), self.call(method="7"), self.call(method="null"),
            self.call(method='["tools/call"]'), self.call(jsonrpc=None),
            self.call(jsonrpc='"1.0"'), "[" + self.call() + ",]", "[" + self.call(),
            self.call()[:-1], self.call()[1:], self.call() + "}", self.call() + ",",
            self.call() + self.call(), self.call() + " " + self.call(),
            self.call().replace('"', "'"), "/**/" + self.call(), self.call() + "//x",
            self.call(params='{"name":"good","arguments":{"a":NaN}}'),
            self.call(params='{"name":"good","arguments":{"a":-Infinity}}'),
            self.call(params='{"name":"good","arguments":{"a":01}}'),
            self.call(params='{"name":"good","arguments":{"a":1,}}'),
            self.call(params='{"name":"good\t"}'), self.call(params='{"name":"\\x67ood"}'),
            self.call(params='{"name":"good","arguments":{"a":"\\ud800"}}'),
            self.call(params='{"name":"good","arguments":{"\\udc00\\ud800":1}}'),
            self.call(params='{"name":"good\\ud800"}'), self.call(id='"\\ud800"')])

    def batch(self):
        r = self.rng
        return "[" + self.space() + ("," + self.space()).join(
            r.choice([self.call, self.call, self.call, self.other, self.twice, self.odd_id,
                      self.odd_params, lambda: "[" + self.call() + "]", lambda: "7"])()
            for _ in range(r.randrange(1, 6))) + self.space() + "]"

    def nested(self):
        inner = self.rng.choice([self.batch(), "[" + self.call() + "]", "[]"])
        return "[" + self.rng.choice([inner, f"{self.call()},{inner}", f"[{inner}]"]) + "]"

    def deep(self):
        n = self.rng.choice([100, 124, 125, 126, 127, 128, 200, 2000])
        open_, close = self.rng.choice([("[", "]"), ('{"a":', "}")])
        value = open_ * n + ("1" if open_ != "[" else "") + close * n
        line = self.call(params='{"name":%s,"arguments":{"x":%s}}'
                         % (self.text(self.name()), value))
        return self.rng.choice([line, "[%s,%s]" % (self.call(), line)])

    def long(self):
        pad = json.dumps("p" * self.rng.choice([65000, 65536, 70000, 140000]))
        line = self.call(params='{"arguments":{"pad":%s},"name":%s}'
                         % (pad, self.text(self.name())))
        return self.rng.choice([line, "[%s,%s,%s]" % (self.call(), line, self.call())])

    def bytes(self):
        """What is no text, or not only text."""
        r = self.rng
        line = self.call().encode()
        at = r.randrange(len(line))
        return r.choice([
            b"\xef\xbb\xbf" + line, b"\xff\xfe" + line.decode().encode("utf-16-le"),
            line + b"\0", b"\0" + line, line[:at] + b"\0" + line[at:],
            line[:at] + b"\xff" + line[at:], line[:at] + b"\xc0\xaf" + line[at:],
            line[:at] + b"\xed\xa0\x80" + line[at:], line[:at] + b"\x0c" + line[at:],
            line + b"\r", line + b" \r", b"\r" + line, line + b"\r" + line,
            b'{"id":%d,"method":"ping","params":{"x":\r%s\r}}' % (self.next, line),
            b"[\r" + line + b"\r]", b"\x1e" + line, b"\x0b" + line, b"", b"\r", b"  \t",
            b"Content-Length: %d\r" % len(line)])

    def line(self):
        r = self.rng.random()
        for share, make in ((0.45, self.call), (0.08, self.other), (0.1, self.twice),
                            (0.06, self.odd_params), (0.05, self.odd_id),
                            (0.06, self.odd_shape), (0.07, self.batch), (0.03, self.nested),
                            (0.01, self.deep), (0.002, self.long)):
            if r < share:
                return make().encode()
            r -= share
        return self.bytes()


def lines(seed, count):
    maker = Maker(seed)
    made = [maker.line() for _ in range(count)]
    return [line + b"\n" for line in made if b"\n" not in line]
