"""A server made with PyPI's mcp, for the tests:  python3 server.py [PORT]

Without a port it speaks over its pipes, with one streamable HTTP at /mcp of 127.0.0.1.
"""
import asyncio
import os
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("snake")
values = []


@server.tool()
def keep(value: int) -> str:
    """Keeps a value and tells all."""
    values.append(value)
    return f"kept {values}"


@server.tool()
async def steps(n: int, context: Context) -> str:
    """Tells how far it is."""
    for i in range(n):
        await context.report_progress(i + 1, n, f"step {i + 1}")
    await asyncio.sleep(0.3)  # the answer may overtake what was told before it
    return "stepped"


@server.tool()
def structured(city: str) -> dict[str, int]:
    """Answers with an object."""
    return {city: 21}


@server.tool()
def fail() -> str:
    """Raises an error."""
    raise ValueError("no such thing")


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


@server.tool()
async def grow(context: Context) -> str:
    """Adds a tool."""

    def new_one() -> str:
        return "new"

    server.add_tool(new_one)
    await context.session.send_tool_list_changed()
    return "grown"


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
