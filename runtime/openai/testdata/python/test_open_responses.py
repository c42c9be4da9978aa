"""Bodies whose responses and events are held to the Open Responses document as they come; open_responses.py says what is
not, and checks what the other tests receive."""

import json
import urllib.request

import openresponses_types as types
import pydantic
import pytest
from open_responses import check, check_event

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
            known += check_event(event)
    assert known >= 3 and event["type"] in ("response.completed", "response.incomplete")


def test_all_that_the_client_gets_is_checked(client, model):
    """The check of every other test's answers (conftest.py) looks at them."""
    before = client.watch.checked
    r = client.responses.create(model=model, input=ASK, max_output_tokens=1)
    client.responses.retrieve(r.id)
    assert client.watch.checked == before + 2
    n = len(list(client.responses.create(model=model, input=ASK, max_output_tokens=9, stream=True)))
    assert before + 2 + n // 2 <= client.watch.checked <= before + 2 + n
    for method, path, text in [("POST", "/v1/responses", '{"output": []}'), ("GET", "/v1/responses/resp_1", '{"output": []}'),
                               ("POST", "/v1/responses/compact", "{}"),
                               ("POST", "/v1/responses", 'event: response.created\ndata: {"type": "response.created"}\n')]:
        with pytest.raises(pydantic.ValidationError):
            check(method, path, text)
