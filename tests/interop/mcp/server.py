# SPDX-License-Identifier: Apache-2.0
"""A server on the Python SDK, over stdio; over HTTP (TRANSPORT) where PORT is set."""
import os
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

server = MCPServer("python", version="1.0.0")


@server.tool()
def echo(message: str) -> str:
    """Say it again."""
    return "Echo: " + message


@server.tool()
def sum(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def place(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})] = 1,
) -> str:
    """Arguments that stand in headers as well (2026-07-28)."""
    return "%d in %s" % (count, region)


@server.tool()
def fail() -> str:
    """Fail, as asked."""
    raise ValueError("as asked")


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Tell how far it is."""
    for i in range(count):
        await ctx.report_progress(i + 1, count)
        await anyio.sleep(0.1)  # clients lose progress that comes together with the answer
    return "done"


@server.tool()
async def touch(ctx: Context) -> str:
    """Say that the note is another one."""
    await ctx.notify_resource_updated("note://one")
    return "touched"


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "a note"


if "PORT" in os.environ:
    server.run(os.environ.get("TRANSPORT", "streamable-http"), port=int(os.environ["PORT"]))
else:
    server.run("stdio")
