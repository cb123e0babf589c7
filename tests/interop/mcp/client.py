# SPDX-License-Identifier: Apache-2.0
"""A plan, carried out by the Python SDK's client:  client.py MODE PLAN COMMAND|URL [ARG...]

As client.mjs: one line of JSON per answer.
"""
import asyncio
import json
import os
import re
import sys
import time
import warnings

from mcp import Client, StdioServerParameters, stdio_client
from mcp import types
from mcp.client.sse import sse_client

mode, plan, command, *args = sys.argv[1:]
HEARING = 10  # s until we do not wait for a notification any more
TRIES = 5  # to see progress, on a machine that is busy
asked, heard = [], []
warnings.simplefilter("ignore")  # what the newest version has not


def plain(answer):
    if isinstance(answer, (list, tuple)):
        return [plain(a) for a in answer]
    if hasattr(answer, "model_dump"):
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return answer


def expand(value):
    if isinstance(value, dict) and "repeat" in value:
        return value["repeat"][0] * value["repeat"][1]
    return {k: expand(v) for k, v in value.items()} if isinstance(value, dict) else value


# What a server may ask us: always the same answer, and a note that it did.
async def sample(context, params):
    asked.append("sampling/createMessage")
    return types.CreateMessageResult(model="none", role="assistant",
                                     content=types.TextContent(type="text", text="sampled ü"))


async def elicit(context, params):
    asked.append("elicitation/create")
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def list_roots(context):
    asked.append("roots/list")
    root = os.environ.get("PLAN_ROOT")
    return types.ListRootsResult(roots=[types.Root(uri="file://" + root)] if root else [])


async def note_it(message):
    if not isinstance(message, Exception):
        heard.append(message.model_dump_json(by_alias=True, exclude_none=True))


async def hear(c, pattern, verb, *rest):
    """Do it, and wait for the notification that matches."""
    start, end = len(heard), time.monotonic() + HEARING
    answer = await VERBS[verb](c, *rest)
    while not (found := [n for n in heard[start:] if re.search(pattern, n)]) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    return answer, json.loads(found[0]) if found else None


async def watch(c, uri, name, given):
    """2026-07-28."""
    async with c.listen(resource_subscriptions=[uri]) as events:
        answer = await c.call_tool(name, given)
        return answer, str(await asyncio.wait_for(anext(events), HEARING))


async def cancel(c, name, given):
    """When the server has it: over HTTP, what cancels may overtake what it cancels."""
    begun = asyncio.Event()

    async def note(done, total, message):
        begun.set()

    work = asyncio.ensure_future(c.call_tool(name, given, progress_callback=note))
    work.add_done_callback(lambda _: begun.set())
    await begun.wait()
    return await asyncio.wait_for(work, 0)


async def many(c, times, name, given):
    return await asyncio.gather(*(c.call_tool(name, {**given, "a": i}) for i in range(times)))


async def progress(c, name, given):
    seen = []

    async def note(done, total, message):
        seen.append([done, total])

    for _ in range(TRIES):  # what comes together with the answer comes too late
        answer = await c.call_tool(name, given, progress_callback=note)
        if seen:
            break
    return answer, seen[:1]


async def server(c):
    return c.protocol_version, c.server_info, c.server_capabilities


VERBS = {
    "server": server,
    "ping": lambda c: c.send_ping(),
    "tools": lambda c: c.list_tools(),
    "call": lambda c, name, given: c.call_tool(name, expand(given)),
    "many": many,
    "progress": progress,
    "cancel": cancel,
    "level": lambda c, level: c.set_logging_level(level),
    "subscribe": lambda c, uri: c.subscribe_resource(uri),
    "hear": hear,
    "watch": watch,
    "prompts": lambda c: c.list_prompts(),
    "prompt": lambda c, name, given: c.get_prompt(name, given),
    "resources": lambda c: c.list_resources(),
    "read": lambda c, uri: c.read_resource(uri),
}


async def main():
    parameters = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    with open(plan) as f:
        steps = json.load(f)
    with open(os.devnull, "w") as nowhere:
        if command.startswith("http"):
            server = sse_client(command) if command.endswith("/sse") else command
        else:
            server = stdio_client(parameters, errlog=nowhere)
        async with Client(server, mode=mode, sampling_callback=sample, elicitation_callback=elicit,
                          list_roots_callback=list_roots, message_handler=note_it) as client:
            for verb, *rest in steps:
                try:
                    answer = plain(await VERBS[verb](client, *rest))
                except Exception as fault:
                    answer = {"failed": "%s: %s" % (type(fault).__name__, fault)}
                print(json.dumps([verb, rest, answer], sort_keys=True))
            print(json.dumps(["asked", sorted(set(asked))]))
            started = time.monotonic()
    print(json.dumps({"close_ms": round(1000 * (time.monotonic() - started))}), file=sys.stderr)


asyncio.run(main())
