"""An MCP client of the official package: lists a server's tools, calls each, prints JSON.

    python mcp_client.py COMMAND [ARGUMENT…]    a server that it starts, over stdio
    MCP_TOKEN=… python mcp_client.py URL        a server that runs, over streamable HTTP
"""

import asyncio
import contextlib
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def call(session, name, arguments):
    result = await session.call_tool(name, arguments)
    content = []
    for part in result.content:
        if part.type == "text":
            content.append({"type": "text", "text": part.text})
        else:
            mime = getattr(part, "mimeType", None) or getattr(part, "mime_type", None)
            content.append({"type": part.type, "mime": mime, "bytes": len(part.data)})
    error = getattr(result, "isError", None)
    if error is None:
        error = getattr(result, "is_error", None)
    return {"content": content, "error": bool(error)}


@contextlib.asynccontextmanager
async def connection():
    if not sys.argv[1].startswith("http"):
        async with stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])) as streams:
            yield streams
        return
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": "Bearer " + os.environ["MCP_TOKEN"]}
    async with create_mcp_http_client(headers=headers) as client:
        async with streamable_http_client(sys.argv[1], http_client=client) as streams:
            yield streams


async def main():
    async with connection() as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        report = {"tools": sorted(tool.name for tool in tools.tools)}
        report["list_nodes"] = await call(session, "list_nodes", {"filter_type": "names"})
        code = "__execResult = {'sum': 40 + 2, 'text': 'größe 頭部'}"
        report["execute_python_code"] = await call(session, "execute_python_code", {"code": code})
        wrong = await call(session, "execute_python_code", {"code": "raise ValueError('no')"})
        report["failing_code"] = wrong
        report["capture_screenshot"] = await call(session, "capture_screenshot", {"view_type": "slice", "view_name": "Red"})
        for name, arguments in [
            ("get_status", {}), ("get_node_properties", {"ids": ["vtkMRMLSliceNodeRed"]}),
            ("load_sample_data", {"name": "MRHead"}), ("undo_last_run", {}),
        ]:
            report[name] = await call(session, name, arguments)
        report["resources"] = [str(one.uri) for one in (await session.list_resources()).resources]
        templates = await session.list_resource_templates()
        report["templates"] = len(getattr(templates, "resource_templates", None) or templates.resourceTemplates)
        scene = await session.read_resource("slicer://scene")
        report["scene"] = json.loads(scene.contents[0].text)
        # This client takes no event of more than 1 MB over HTTP, so the large result goes over stdio only.
        result = "len(x)" if sys.argv[1].startswith("http") else "x"
        code = "x = '%s'\n__execResult = %s" % ("a" * 20_000_000, result)
        large = json.loads((await session.call_tool("execute_python_code", {"code": code})).content[0].text)["message"]
        report["large"] = large if isinstance(large, int) else len(large)
        print(json.dumps(report))


asyncio.run(main())
