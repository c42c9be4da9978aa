"""Responses and their events held to the Open Responses document, by the types that its project publishes.

What is OpenAI's own and has no type there (the text of reasoning, built-in tools) is held to OpenAI's document by the Go
tests. So is the echo of a JSON schema: the published type allows no schema but null.
"""

import inspect
import json
import urllib.request

import openresponses_types as types
import pytest

ASK = "What is the weather in Paris?"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "get_weather", "description": "Weather of a city", "parameters": WEATHER, "strict": False}
LONG = 400  # tokens
BODIES = {
    "plain": {},
    "background": {"background": True},
    "tools": {"tools": [TOOL]},
    "required call": {"tools": [TOOL], "tool_choice": "required"},
    "named call": {"tools": [TOOL], "tool_choice": {"type": "function", "name": "get_weather"}},
    "allowed tools": {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}},
    "logprobs": {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
    "echo": {"metadata": {"k": "v"}, "safety_identifier": "s", "prompt_cache_key": "k", "truncation": "auto", "max_tool_calls": 3,
             "text": {"verbosity": "low"}, "instructions": "Be brief.", "temperature": 0.5},
    "cut off": {"max_output_tokens": 1},
}


def event_types():
    for _, event in inspect.getmembers(types, inspect.isclass):
        field = getattr(event, "model_fields", {}).get("type")
        if field and event.__name__.endswith("StreamingEvent"):
            for name in field.annotation:  # an enumeration of one
                yield name.value, event


EVENTS = dict(event_types())


@pytest.fixture(scope="module")
def http(base_url, api_key):
    def ask(path, data=None):
        request = urllib.request.Request(f"{base_url}/{path}", data and json.dumps(data).encode(),
                                         {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as r:  # raises where the status is not 200
            return r.read().decode()

    return ask


def body(model, extra):
    return {"model": model, "input": ASK, "max_output_tokens": LONG, "reasoning": {"effort": "low"}, **extra}


@pytest.mark.parametrize("name", BODIES)
def test_resource(http, model, name):
    r = json.loads(http("responses", body(model, BODIES[name])))
    types.ResponseResource.model_validate(r)
    types.ResponseResource.model_validate_json(http("responses/" + r["id"]))


@pytest.mark.parametrize("name", BODIES)
def test_events(http, model, name):
    known = 0
    for line in http("responses", {**body(model, BODIES[name]), "stream": True}).split("\n"):
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            if event["type"] in EVENTS:
                EVENTS[event["type"]].model_validate(event)
                known += 1
    assert known >= 3 and event["type"] in ("response.completed", "response.incomplete")
