"""A client of `polyphony mcp`: does what an agent would, and prints what it was answered as JSON."""
import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main(tiny):
    server = StdioServerParameters(command=sys.executable, args=["-m", "polyphony", "mcp"], env=dict(os.environ))
    said = {"progress": []}
    async with Client(server) as client:
        said["instructions"] = client.instructions
        said["tools"] = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

        async def progress(done, total, message):
            said["progress"].append((done, total, message))

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments, progress_callback=progress)
            return {"error": result.is_error, "text": result.content[0].text, "answer": result.structured_content}

        asked = said["ask"] = await call("ask", model=["llama-3.1-8b"], gpus="8xH100", top=2)
        resource = await client.read_resource(asked["answer"]["full_answer"])
        said["whole"] = json.loads(resource.contents[0].text)
        first = asked["answer"]["rows"][0]
        said["simulate"] = await call("simulate", scenario=asked["answer"]["scenario"], layout=first["layout_form"])
        for tool in ("plan", "why", "sweep"):
            said[tool] = await call(tool, scenario=tiny)
        said["changed"] = await call("simulate", scenario=tiny, changes={"layout.microbatches": 2})
        said["explain"] = await call("explain", key="microbatches")
        said["unknown"] = await call("explain", key="microbatchs")
        said["wrong"] = await call("simulate", scenario=tiny, layout={"placement": "homogenous"})
        said["too_large"] = await call("ask", model=["llama-3.1-70b"], gpus="1xH100")
        said["schema"] = json.loads((await client.read_resource("polyphony://schema/simulate")).contents[0].text)
        # Two questions at once.
        said["both"] = await asyncio.gather(call("why", scenario=tiny), call("plan", scenario=tiny))
    print(json.dumps(said))


asyncio.run(main(sys.argv[1]))
