"""OpenAI's Agents SDK: a loop with a tool on both APIs, streamed and not."""

import asyncio

import agents
import openai
import pytest

agents.set_tracing_disabled(True)
CALL = '[[think A tool knows.]] [[call get_weather {"city":"Paris"}]] [[think Once more.]] [[call get_weather {"city":"Rome"}]] [[say Sunny in both.]]'


@pytest.mark.parametrize("api", [agents.OpenAIResponsesModel, agents.OpenAIResponsesWSModel, agents.OpenAIChatCompletionsModel])
@pytest.mark.parametrize("streamed", [False, True])
def test_tool_loop(base_url, api_key, api, streamed):
    asked = []

    @agents.function_tool
    def get_weather(city: str) -> str:
        """Weather of a city."""
        asked.append(city)
        return "sunny"

    async def run():
        client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=60)
        agent = agents.Agent(name="a", instructions="Use tools.", tools=[get_weather], model=api(model="gpt-oss:20b", openai_client=client))
        if not streamed:
            return await agents.Runner.run(agent, CALL)
        result = agents.Runner.run_streamed(agent, CALL)
        async for _ in result.stream_events():
            pass
        return result

    result = asyncio.run(run())
    assert result.final_output == "Sunny in both." and asked == ["Paris", "Rome"]
    usage = result.context_wrapper.usage
    assert usage.requests == 3 and (streamed and api is agents.OpenAIChatCompletionsModel or usage.total_tokens > 0)


class Editor:
    """Applies the SDK's own diffs to files in a dictionary."""

    def __init__(self, files):
        self.files = files

    def create_file(self, operation):
        self.files[operation.path] = agents.apply_diff("", operation.diff, mode="create")

    def update_file(self, operation):
        self.files[operation.path] = agents.apply_diff(self.files[operation.path], operation.diff)

    def delete_file(self, operation):
        del self.files[operation.path]


def patch(text):
    return f"[[call apply_patch *** Begin Patch\n{text}\n*** End Patch]] "


@pytest.mark.parametrize("streamed", [False, True])
def test_tools_that_the_sdk_runs(base_url, api_key, streamed):
    """Shell, local shell and patches: each is called, and its result leads to the next turn."""
    files, ran = {"a.txt": "one\ntwo\n", "old.txt": "x"}, []

    def shell(request):
        ran.append(request.data.action.commands)
        return agents.ShellResult(output=[agents.ShellCommandOutput(stdout="a.txt", outcome=agents.ShellCallOutcome(type="exit", exit_code=3))])

    def local_shell(request):
        ran.append(request.data.action.command)
        return "a.txt"

    def run(tool, text):
        async def steps():
            client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=60)
            agent = agents.Agent(name="a", tools=[tool], model=agents.OpenAIResponsesModel(model="gpt-oss:20b", openai_client=client))
            if not streamed:
                return await agents.Runner.run(agent, text)
            result = agents.Runner.run_streamed(agent, text)
            async for _ in result.stream_events():
                pass
            return result

        result = asyncio.run(steps())
        assert result.final_output == "Done."
        assert not any(w in str(result.raw_responses) for w in ("ApplyPatchError", "invalid"))

    run(agents.ShellTool(executor=shell), '[[think I look.]] [[call shell {"commands":["ls","pwd"]}]] [[say Done.]]')
    run(agents.LocalShellTool(executor=local_shell), '[[call local_shell {"command":["ls","-l"]}]] [[say Done.]]')
    assert ran == [["ls", "pwd"], ["ls", "-l"]]
    run(agents.ApplyPatchTool(editor=Editor(files)), patch("*** Update File: a.txt\n@@\n one\n-two\n+three")
        + patch("*** Add File: b.txt\n+new\n+file") + patch("*** Delete File: old.txt") + "[[say Done.]]")
    assert {k: v.rstrip("\n") for k, v in files.items()} == {"a.txt": "one\nthree", "b.txt": "new\nfile"}


@pytest.mark.parametrize("execution", [None, "client"])
def test_tool_search(client, execution):
    """By default all deferred tools can be called at once; a client's search decides which."""
    def tool(name):
        return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, "defer_loading": True}

    tools = [tool("found"), tool("other"), {"type": "tool_search"} | ({"execution": execution} if execution else {})]
    text = '[[call other {}]] [[call tool_search {"query":"mail"}]] [[call found {}]] [[say Done.]]'
    r = client.responses.create(model="gpt-oss:20b", input=text, tools=tools)
    call = r.output[-1]
    if not execution:
        assert (call.type, call.name) == ("function_call", "other")
        return
    assert (call.type, call.execution, call.arguments) == ("tool_search_call", "client", {"query": "mail"})
    found = {"type": "tool_search_output", "call_id": call.call_id, "execution": "client", "status": "completed", "tools": [tool("found")]}
    r = client.responses.create(model="gpt-oss:20b", previous_response_id=r.id, input=[found], tools=tools)
    assert (r.output[-1].type, r.output[-1].name) == ("function_call", "found")


def test_deferred_tools_of_the_sdk(base_url, api_key):
    asked = []

    @agents.function_tool(defer_loading=True)
    def get_weather(city: str) -> str:
        """Weather of a city."""
        asked.append(city)
        return "sunny"

    async def run():
        client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=60)
        agent = agents.Agent(name="a", tools=[get_weather, agents.ToolSearchTool()],
                             model=agents.OpenAIResponsesModel(model="gpt-oss:20b", openai_client=client))
        return await agents.Runner.run(agent, CALL)

    assert asyncio.run(run()).final_output == "Sunny in both." and asked == ["Paris", "Rome"]
