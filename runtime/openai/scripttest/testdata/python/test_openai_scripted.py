"""openai-python against known turns: what the package makes of each is compared, not only that it decodes."""

import time
from typing import Literal

import openai
import pydantic
import pytest

MODEL = "gpt-oss:20b"
CALL = '[[think A tool knows.]] [[note I look.]] [[call get_weather {"city":"Paris","unit":"c"}]] [[think So.]] [[say Sunny.]]'
SAY = "[[think They greet.]] [[say Hello to you.]]"
LOOP = "[[loop again]]"


class get_weather(pydantic.BaseModel):
    city: str
    unit: Literal["c", "f"]


class Day(pydantic.BaseModel):
    name: str
    warm: bool
    degrees: list[int]


DAY = '{"name":"Monday","warm":true,"degrees":[20,21]}'
CHAT_TOOL = openai.pydantic_function_tool(get_weather)
TOOL = {"type": "function", **CHAT_TOOL["function"]}


def user(text):
    return [{"role": "user", "content": text}]


# Chat completions


def test_chat(client):
    r = client.chat.completions.create(model=MODEL, messages=user(SAY))
    m = r.choices[0].message
    assert (m.content, m.reasoning, r.choices[0].finish_reason) == ("Hello to you.", "They greet.", "stop")
    assert r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens
    assert 0 < r.usage.completion_tokens_details.reasoning_tokens < r.usage.completion_tokens
    assert r._request_id.startswith("req_")


def test_chat_cut(client):
    r = client.chat.completions.create(model=MODEL, messages=user("[[say One two three four five.]]"), max_completion_tokens=5)
    assert r.choices[0].finish_reason == "length" and "One two three four five.".startswith(r.choices[0].message.content)
    assert r.usage.completion_tokens == 5
    r = client.chat.completions.create(model=MODEL, messages=user("[[say One two STOP three]]"), stop=["STOP"])
    assert (r.choices[0].finish_reason, r.choices[0].message.content) == ("stop", "One two ")


def test_chat_several(client):
    r = client.chat.completions.create(model=MODEL, messages=user(SAY), n=3, logprobs=True, top_logprobs=2)
    assert [c.message.content for c in r.choices] == ["Hello to you."] * 3
    for c in r.choices:
        assert "".join(t.token for t in c.logprobs.content) == "Hello to you."
        assert all(len(t.top_logprobs) == 2 for t in c.logprobs.content)


def test_chat_stream_helper(client):
    kinds = []
    with client.chat.completions.stream(model=MODEL, messages=user(CALL), tools=[CHAT_TOOL], stream_options={"include_usage": True}) as s:
        for event in s:
            kinds.append(event.type)
        final = s.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds and "tool_calls.function.arguments.done" in kinds
    call = final.choices[0].message.tool_calls[0]
    assert call.function.parsed_arguments == get_weather(city="Paris", unit="c")
    assert final.choices[0].finish_reason == "tool_calls" and final.choices[0].message.content == "I look."
    assert final.usage.total_tokens == final.usage.prompt_tokens + final.usage.completion_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_chat_tool_loop(client, stream):
    messages, seen = user(CALL), []
    for _ in range(2):
        if stream:
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=[CHAT_TOOL]) as s:
                m = s.get_final_completion().choices[0].message
        else:
            m = client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL]).choices[0].message
        messages.append(m.model_dump(exclude_none=True))
        seen.append(m.content)
        for c in m.tool_calls or []:
            messages.append({"role": "tool", "tool_call_id": c.id, "content": "sunny"})
    assert seen == ["I look.", "Sunny."]


def test_chat_parse(client):
    r = client.chat.completions.parse(model=MODEL, messages=user(f"[[say {DAY}]]"), response_format=Day)
    assert r.choices[0].message.parsed == Day(name="Monday", warm=True, degrees=[20, 21])
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(model=MODEL, messages=user(f"[[say {DAY}]]"), response_format=Day, max_tokens=8)


def test_chat_loop(client):
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=user(LOOP))
    assert "repeated" in raw.headers["x-ossrun-loop"] and raw.parse().choices[0].finish_reason == "stop"


def test_chat_failure(client):
    with pytest.raises(openai.InternalServerError) as e:
        client.chat.completions.create(model=MODEL, messages=user("[[fail]]"))
    assert e.value.code == "non_finite_logits"
    with pytest.raises(openai.APIError) as e:
        for _ in client.chat.completions.create(model=MODEL, messages=user("[[think Hm.]] [[fail]]"), stream=True):
            pass
    assert e.value.code == "non_finite_logits"


# Responses


def check_usage(u):
    assert u.total_tokens == u.input_tokens + u.output_tokens > 0
    assert u.input_tokens_details.cached_tokens <= u.input_tokens
    assert u.output_tokens_details.reasoning_tokens <= u.output_tokens


def test_response(client):
    r = client.responses.create(model=MODEL, input=SAY, metadata={"k": "v"}, include=["message.output_text.logprobs"], top_logprobs=1)
    assert (r.output_text, r.status, r.metadata) == ("Hello to you.", "completed", {"k": "v"})
    assert [i.type for i in r.output] == ["reasoning", "message"]
    assert r.output[0].content[0].text == "They greet." and r.output[0].encrypted_content
    assert "".join(t.token for t in r.output[1].content[0].logprobs) == "Hello to you."
    check_usage(r.usage)
    again = client.responses.retrieve(r.id)
    assert again.output_text == r.output_text and again.usage == r.usage
    items = client.responses.input_items.list(r.id)
    assert [i.content[0].text for i in items] == [SAY]
    client.responses.delete(r.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(r.id)


def test_response_stream_helper(client):
    text, reasoning = "", ""
    with client.responses.stream(model=MODEL, input=SAY) as s:
        for e in s:
            text += e.delta if e.type == "response.output_text.delta" else ""
            reasoning += e.delta if e.type == "response.reasoning_text.delta" else ""
        final = s.get_final_response()
    assert (text, reasoning) == ("Hello to you.", "They greet.") and final.output_text == text
    check_usage(final.usage)


def test_response_cut_call(client):
    r = client.responses.create(model=MODEL, input=CALL, tools=[TOOL], max_output_tokens=24)
    assert r.status == "incomplete" and r.incomplete_details.reason == "max_output_tokens"
    assert "function_call" not in [i.type for i in r.output]


def test_response_loop(client):
    r = client.responses.create(model=MODEL, input=LOOP)
    assert r.status == "failed" and r.error.code == "invalid_prompt" and "repeated" in r.error.message
    last = list(client.responses.create(model=MODEL, input=LOOP, stream=True))[-1]
    assert last.type == "response.failed" and "repeated" in last.response.error.message


def test_response_failure(client):
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model=MODEL, input="[[fail]]")
    last = list(client.responses.create(model=MODEL, input="[[think x]] [[fail]]", stream=True))[-1]
    assert last.type == "response.failed" and last.response.error.code == "server_error"


def test_response_parse(client):
    r = client.responses.parse(model=MODEL, input=f"[[say {DAY}]]", text_format=Day)
    assert r.output_parsed.degrees == [20, 21]
    with client.responses.stream(model=MODEL, input=f"[[say {DAY}]]", text_format=Day) as s:
        assert s.get_final_response().output_parsed.name == "Monday"


@pytest.mark.parametrize("how", ["items", "previous", "conversation"])
def test_response_tool_loop(client, how):
    talk = client.conversations.create(metadata={"a": "b"}) if how == "conversation" else None
    more = {"conversation": talk.id} if talk else {}
    r = client.responses.parse(model=MODEL, input=CALL, tools=[TOOL], **more)
    call = r.output[-1]
    assert [i.type for i in r.output] == ["reasoning", "message", "function_call"]
    assert call.parsed_arguments["city"] == "Paris" if isinstance(call.parsed_arguments, dict) else call.parsed_arguments.city == "Paris"
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    if how == "items":
        dumped = [i.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for i in r.output]
        for item in dumped:
            for part in item.get("content") or []:
                part.pop("parsed", None)
        r = client.responses.create(model=MODEL, input=user(CALL) + dumped + [result], tools=[TOOL])
    elif how == "previous":
        r = client.responses.create(model=MODEL, previous_response_id=r.id, input=[result], tools=[TOOL])
    else:
        r = client.responses.create(model=MODEL, input=[result], tools=[TOOL], **more)
        kinds = [i.type for i in client.conversations.items.list(talk.id, order="asc")]
        assert kinds == ["message", "reasoning", "message", "function_call", "function_call_output", "reasoning", "message"]
        client.conversations.delete(talk.id)
    assert r.output_text == "Sunny."


def wait(client, response, *states):
    for _ in range(600):
        if (r := client.responses.retrieve(response.id)).status in states:
            return r
        time.sleep(0.02)
    raise AssertionError(f"{r.status}, not {states}")


def test_background(client):
    r = client.responses.create(model=MODEL, input="[[slow 5ms]] " + CALL, tools=[TOOL], background=True)
    assert r.status == "queued" and r.background
    r = wait(client, r, "completed")
    assert r.output[-1].type == "function_call"
    check_usage(r.usage)


def test_background_cancelled(client):
    r = client.responses.create(model=MODEL, input="[[slow 20ms]] " + LOOP, background=True, extra_body={"detect_loops": False})
    wait(client, r, "in_progress")
    assert client.responses.cancel(r.id).status == "cancelled"
    assert client.responses.retrieve(r.id).status == "cancelled"


def test_background_stream_resumed(client):
    """The connection is left after a few events; the rest is read from there on."""
    seen, name = [], None
    with client.responses.create(model=MODEL, input="[[slow 10ms]] [[think They greet.]] [[say One two three four five six.]]", background=True,
                                 stream=True) as stream:
        for event in stream:
            seen.append(event)
            name = event.response.id if event.type == "response.created" else name
            if event.type == "response.reasoning_text.delta":
                break
    for event in client.responses.retrieve(name, stream=True, starting_after=seen[-1].sequence_number):
        seen.append(event)
    assert [e.sequence_number for e in seen] == list(range(len(seen)))
    assert "".join(e.delta for e in seen if e.type == "response.output_text.delta") == "One two three four five six."
    assert seen[-1].type == "response.completed"


def test_count_and_compact(client):
    n = client.responses.input_tokens.count(model=MODEL, input=SAY, instructions="Be brief.").input_tokens
    assert n == client.responses.create(model=MODEL, input=SAY, instructions="Be brief.").usage.input_tokens
    short = client.responses.compact(model=MODEL, input=user(SAY))
    assert short.output[-1].type == "compaction"
    r = client.responses.create(model=MODEL, input=[i.model_dump(exclude_none=True) for i in short.output] + user("[[say Still here.]]"))
    assert r.output_text == "Still here."


def test_conversation(client):
    c = client.conversations.create(items=[{"type": "message", "role": "user", "content": "Hi"}])
    client.conversations.update(c.id, metadata={"topic": "x"})
    assert client.conversations.retrieve(c.id).metadata == {"topic": "x"}
    items = client.conversations.items.create(c.id, items=[{"type": "message", "role": "user", "content": SAY}])
    one = client.conversations.items.retrieve(items.data[0].id, conversation_id=c.id)
    assert one.content[0].text == SAY
    client.conversations.items.delete(one.id, conversation_id=c.id)
    assert len(list(client.conversations.items.list(c.id))) == 1
    assert client.conversations.delete(c.id).deleted


def test_completions(client):
    r = client.completions.create(model=MODEL, prompt="[[say x]]", max_tokens=4)
    assert r.usage.completion_tokens <= 4 and r.object == "text_completion"


def test_errors(client):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="llama3", messages=user("x"))
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.create(model=MODEL, input=SAY, temperature=9)
    assert e.value.param == "temperature"
