"""OpenAI's Agents SDK: a loop with a tool on both APIs, streamed and not."""

import asyncio

import agents
import openai
import pytest

agents.set_tracing_disabled(True)
CALL = '[[think A tool knows.]] [[call get_weather {"city":"Paris"}]] [[think Once more.]] [[call get_weather {"city":"Rome"}]] [[say Sunny in both.]]'


@pytest.mark.parametrize("api", [agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel])
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
