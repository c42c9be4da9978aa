"""The ollama package against known turns."""

import json

import ollama
import pytest

MODEL = "gpt-oss:20b"
SAY = "[[think They greet.]] [[say Hello to you.]]"
CALL = '[[think A tool knows.]] [[call get_weather {"city":"Paris"}]] [[say Sunny.]]'


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
      city: its name
    """
    return f"sunny in {city}"


@pytest.fixture(scope="module")
def llama(root_url, api_key):
    return ollama.Client(host=root_url, timeout=60, headers={"Authorization": f"Bearer {api_key}"})


def user(text):
    return [{"role": "user", "content": text}]


def test_chat(llama):
    r = llama.chat(MODEL, user(SAY), think="low")
    assert (r.message.content, r.message.thinking, r.done_reason) == ("Hello to you.", "They greet.", "stop")
    assert r.prompt_eval_count > 0 and r.eval_count > 0
    assert not llama.chat(MODEL, user(SAY), think=False).message.thinking


def test_stream(llama):
    parts = list(llama.chat(MODEL, user(SAY), stream=True, think=True))
    assert "".join(p.message.content or "" for p in parts) == "Hello to you."
    assert "".join(p.message.thinking or "" for p in parts) == "They greet."
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True]


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop(llama, stream):
    messages = user(CALL)
    for _ in range(2):
        r = llama.chat(MODEL, messages, tools=[get_weather], stream=stream)
        parts = list(r) if stream else [r]
        calls = [c for p in parts for c in p.message.tool_calls or []]
        text = "".join(p.message.content or "" for p in parts)
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for c in calls:
            assert c.function.name == "get_weather"
            messages.append({"role": "tool", "tool_name": c.function.name, "content": get_weather(**c.function.arguments)})
    assert text == "Sunny." and len(messages) == 4


def test_format(llama):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    r = llama.chat(MODEL, user('[[say {"a":7}]]'), format=schema)
    assert json.loads(r.message.content) == {"a": 7}
    assert isinstance(json.loads(llama.generate(MODEL, "Hi", format="json").response), dict)


def test_generate(llama):
    r = llama.generate(MODEL, SAY, system="Be brief.", think="high")
    assert (r.response, r.thinking, r.done) == ("Hello to you.", "They greet.", True)
    assert "".join(p.response for p in llama.generate(MODEL, SAY, stream=True)) == "Hello to you."
    assert llama.generate(MODEL, SAY, options={"num_predict": 4}).done_reason == "length"


def test_models(llama):
    assert MODEL in [m.model for m in llama.list().models]
    assert MODEL in [m.model for m in llama.ps().models]
    assert "tools" in llama.show(MODEL).capabilities
    assert llama.pull(MODEL).status == "success"
    with pytest.raises(ollama.ResponseError):
        llama.chat("none", user("x"))
