"""The anthropic package against known turns."""

import anthropic
import pytest

MODEL = "gpt-oss:20b"
TOOLS = [{"name": "get_weather", "description": "Weather of a city", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]
CALL = '[[think A tool knows.]] [[call get_weather {"city":"Paris"}]] [[think So.]] [[say Sunny.]]'
SAY = "[[think They greet.]] [[say Hello to you.]]"
THINKING = {"type": "enabled", "budget_tokens": 2048}


@pytest.fixture(scope="module")
def claude(root_url, api_key):
    with anthropic.Anthropic(base_url=root_url, api_key=api_key, max_retries=0, timeout=60) as c:
        yield c


def user(text):
    return [{"role": "user", "content": text}]


def test_message(claude):
    r = claude.messages.create(model=MODEL, max_tokens=4000, messages=user(SAY), system="Be brief.")
    assert [b.type for b in r.content] == ["text"] and r.content[0].text == "Hello to you."
    assert r.stop_reason == "end_turn" and r.usage.input_tokens > 0 and r.usage.output_tokens > 0


def test_thinking(claude):
    r = claude.messages.create(model=MODEL, max_tokens=4000, messages=user(SAY), thinking=THINKING)
    assert [b.type for b in r.content] == ["thinking", "text"]
    assert r.content[0].thinking == "They greet." and r.content[0].signature
    again = claude.messages.create(model=MODEL, max_tokens=4000, thinking=THINKING,
                                   messages=user(SAY) + [{"role": "assistant", "content": r.content}] + user("[[say Again.]]"))
    assert again.content[-1].text == "Again."


def test_stream(claude):
    with claude.messages.stream(model=MODEL, max_tokens=4000, messages=user(SAY), thinking=THINKING) as s:
        kinds = [e.type for e in s]
        final = s.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop" and "thinking" in kinds and "text" in kinds and "signature" in kinds
    assert final.content[0].thinking == "They greet." and final.content[1].text == "Hello to you." and final.usage.output_tokens > 0


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_loop(claude, streamed):
    messages, stops = user(CALL), []
    for _ in range(2):
        ask = dict(model=MODEL, max_tokens=4000, messages=messages, tools=TOOLS, thinking=THINKING)
        if streamed:
            with claude.messages.stream(**ask) as s:
                r = s.get_final_message()
        else:
            r = claude.messages.create(**ask)
        stops.append(r.stop_reason)
        messages.append({"role": "assistant", "content": r.content})
        results = [{"type": "tool_result", "tool_use_id": b.id, "content": "sunny"} for b in r.content if b.type == "tool_use"]
        if results:
            assert r.content[-1].name == "get_weather" and r.content[-1].input == {"city": "Paris"}
            messages.append({"role": "user", "content": results})
    assert stops == ["tool_use", "end_turn"] and r.content[-1].text == "Sunny."


def test_tool_choice(claude):
    r = claude.messages.create(model=MODEL, max_tokens=4000, messages=user("Hi"), tools=TOOLS, tool_choice={"type": "tool", "name": "get_weather"})
    assert r.stop_reason == "tool_use" and isinstance(r.content[-1].input["city"], str)
    r = claude.messages.create(model=MODEL, max_tokens=4000, messages=user("Hi"), tools=TOOLS, tool_choice={"type": "none"})
    assert r.stop_reason == "end_turn"


def test_stop_and_length(claude):
    r = claude.messages.create(model=MODEL, max_tokens=4000, messages=user("[[say One two STOP three]]"), stop_sequences=["STOP"])
    assert (r.stop_reason, r.stop_sequence, r.content[0].text) == ("stop_sequence", "STOP", "One two ")
    r = claude.messages.create(model=MODEL, max_tokens=5, messages=user("[[say One two three four five six]]"))
    assert r.stop_reason == "max_tokens" and r.usage.output_tokens == 5


def test_count(claude):
    n = claude.messages.count_tokens(model=MODEL, messages=user(SAY), tools=TOOLS).input_tokens
    u = claude.messages.create(model=MODEL, max_tokens=4000, messages=user(SAY), tools=TOOLS).usage
    assert n == u.input_tokens + (u.cache_read_input_tokens or 0)


def test_errors(claude):
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.create(model="none", max_tokens=10, messages=user("x"))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: [0-9]+ tokens > [0-9]+ maximum"):
        claude.messages.create(model=MODEL, max_tokens=10, messages=user("word " * 200_000))
    with pytest.raises(anthropic.InternalServerError):
        claude.messages.create(model=MODEL, max_tokens=10, messages=user("[[fail]]"))
