# SPDX-License-Identifier: Apache-2.0
"""A plan, carried out by the Python SDK's client:  client.py MODE PLAN COMMAND|URL [ARG...]

As client.mjs: one line of JSON per answer.
"""
import asyncio
import json
import os
import sys
import time

from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client

mode, plan, command, *args = sys.argv[1:]


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


async def many(c, times, name, given):
    return await asyncio.gather(*(c.call_tool(name, {**given, "a": i}) for i in range(times)))


async def progress(c, name, given):
    seen = []

    async def note(done, total, message):
        seen.append([done, total])

    return await c.call_tool(name, given, progress_callback=note), seen[:1]


async def server(c):
    return c.protocol_version, c.server_info, c.server_capabilities


VERBS = {
    "server": server,
    "ping": lambda c: c.send_ping(),
    "tools": lambda c: c.list_tools(),
    "call": lambda c, name, given: c.call_tool(name, expand(given)),
    "many": many,
    "progress": progress,
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
        async with Client(server, mode=mode) as client:
            for verb, *rest in steps:
                if verb not in VERBS:
                    continue
                try:
                    answer = plain(await VERBS[verb](client, *rest))
                except Exception as fault:
                    answer = {"failed": str(fault)}
                print(json.dumps([verb, rest, answer], sort_keys=True))
            started = time.monotonic()
    print(json.dumps({"close_ms": round(1000 * (time.monotonic() - started))}), file=sys.stderr)


asyncio.run(main())
