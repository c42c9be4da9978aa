"""The real openai package against a running server.

  ossrun serve --model demo --port 8000 &
  BASE_URL=http://127.0.0.1:8000/v1 pytest test_openai_sdk.py

What the model says does not matter: a model may call a tool or not, and may stop early or use up its tokens. What is
tested is that the package decodes every answer and that streamed and whole answers have the same form.
"""

import json
import re
from typing import Literal

import openai
import pydantic
import pytest

ASK = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": WEATHER}}
TOOL = {"type": "function", "name": "get_weather", "description": "Weather of a city", "parameters": WEATHER, "strict": False}
SHORT = 64  # tokens


def check_chat_usage(usage):
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 <= usage.prompt_tokens_details.cached_tokens <= usage.prompt_tokens
    assert 0 <= usage.completion_tokens_details.reasoning_tokens <= usage.completion_tokens


def check_usage(usage):
    assert usage.input_tokens > 0 and usage.output_tokens > 0
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert 0 <= usage.input_tokens_details.cached_tokens <= usage.input_tokens
    assert 0 <= usage.output_tokens_details.reasoning_tokens <= usage.output_tokens


def reasoning_of(message):
    return (message.model_extra or {}).get("reasoning") or ""


# Models


def test_models(client, model):
    names = [m.id for m in client.models.list()]
    assert model in names
    for name in names:
        assert client.models.retrieve(name).id == name


# Chat completions


def test_chat(client, model):
    r = client.chat.completions.create(model=model, messages=ASK, max_tokens=SHORT)
    assert r.object == "chat.completion" and r.id and len(r.choices) == 1
    choice = r.choices[0]
    assert choice.message.role == "assistant"
    assert choice.finish_reason in ("stop", "length")
    assert choice.message.content or reasoning_of(choice.message)
    check_chat_usage(r.usage)
    assert r.usage.completion_tokens <= SHORT


def test_chat_stream(client, model):
    content = reasoning = finish = ""
    usage = None
    ids = set()
    with client.chat.completions.create(model=model, messages=ASK, max_tokens=SHORT, stream=True, stream_options={"include_usage": True}) as stream:
        for chunk in stream:
            ids.add(chunk.id)
            assert usage is None, "a chunk after the usage"
            if not chunk.choices:
                usage = chunk.usage
                continue
            choice = chunk.choices[0]
            content += choice.delta.content or ""
            reasoning += (choice.delta.model_extra or {}).get("reasoning") or ""
            finish += choice.finish_reason or ""
    assert finish in ("stop", "length") and len(ids) == 1
    assert content or reasoning
    check_chat_usage(usage)


def test_chat_stream_is_the_whole_answer(client, model):
    """A seed and temperature 0 give the same text, streamed and not."""
    same = dict(model=model, messages=ASK, max_tokens=SHORT, temperature=0, seed=7)
    whole = client.chat.completions.create(**same).choices[0].message
    content = reasoning = ""
    for chunk in client.chat.completions.create(**same, stream=True):
        content += chunk.choices[0].delta.content or ""
        reasoning += (chunk.choices[0].delta.model_extra or {}).get("reasoning") or ""
    assert content == (whole.content or "")
    assert reasoning == reasoning_of(whole)


def test_chat_without_reasoning(client, model):
    r = client.chat.completions.create(model=model, messages=ASK, max_tokens=SHORT, extra_body={"include_reasoning": False})
    assert not reasoning_of(r.choices[0].message)


def test_chat_several(client, model):
    r = client.chat.completions.create(model=model, messages=ASK, max_tokens=8, n=3)
    assert [c.index for c in r.choices] == [0, 1, 2]
    assert r.usage.completion_tokens <= 24


def test_chat_logprobs(client, model):
    r = client.chat.completions.create(model=model, messages=ASK, max_tokens=256, logprobs=True, top_logprobs=3, temperature=0)
    choice = r.choices[0]
    if choice.message.content:
        tokens = choice.logprobs.content
        assert "".join(bytes(b for t in tokens for b in t.bytes).decode(errors="replace")) == choice.message.content
        for t in tokens:
            assert t.logprob <= 0 and len(t.top_logprobs) <= 3


def test_chat_prediction(client, model):
    ask = dict(model=model, messages=ASK, max_tokens=SHORT, seed=5, temperature=0)
    plain = client.chat.completions.create(**ask)
    expected = {"type": "content", "content": plain.choices[0].message.content or "Hello."}
    r = client.chat.completions.create(prediction=expected, **ask)
    assert r.choices[0].message.content == plain.choices[0].message.content
    details = r.usage.completion_tokens_details
    assert details.accepted_prediction_tokens >= 0 and details.rejected_prediction_tokens >= 0
    assert details.accepted_prediction_tokens <= r.usage.completion_tokens
    assert plain.usage.completion_tokens_details.accepted_prediction_tokens is None


def test_chat_stop(client, model):
    r = client.chat.completions.create(model=model, messages=ASK, max_tokens=256, stop=["e", "a", "i", "o", "u"])
    assert not set("eaiou") & set(r.choices[0].message.content or "")


def test_chat_tools_round_trip(client, model):
    messages = [{"role": "developer", "content": "Use tools."}, *ASK]
    r = client.chat.completions.create(model=model, messages=messages, tools=[CHAT_TOOL], max_tokens=SHORT)
    message = r.choices[0].message
    assert (r.choices[0].finish_reason == "tool_calls") == bool(message.tool_calls) or r.choices[0].finish_reason == "length"
    messages.append(message)
    for call in message.tool_calls or []:
        assert call.type == "function" and call.id and call.function.name
        json.loads(call.function.arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "sunny"})
    if not message.tool_calls:  # the model did not call; a conversation with a call is accepted all the same
        messages[-1:] = [
            {"role": "assistant", "content": None, "reasoning": "A tool knows.", "tool_calls": [
                {"id": "call_x", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}]},
            {"role": "tool", "tool_call_id": "call_x", "content": "sunny"}]
    r = client.chat.completions.create(model=model, messages=messages, tools=[CHAT_TOOL], max_tokens=SHORT)
    check_chat_usage(r.usage)


def test_chat_tools_stream(client, model):
    calls, finish = {}, None
    for chunk in client.chat.completions.create(model=model, messages=ASK, tools=[CHAT_TOOL], max_tokens=SHORT, stream=True):
        for piece in chunk.choices[0].delta.tool_calls or []:
            call = calls.setdefault(piece.index, {"id": piece.id, "name": piece.function.name, "arguments": ""})
            call["arguments"] += piece.function.arguments or ""
        finish = chunk.choices[0].finish_reason or finish
    assert finish in ("stop", "length", "tool_calls")
    if finish == "tool_calls":
        assert calls and all(c["id"] and c["name"] for c in calls.values())
        for c in calls.values():
            json.loads(c["arguments"])


# Responses


def check_output(r):
    assert r.status in ("completed", "incomplete")
    if r.status == "incomplete":
        assert r.incomplete_details.reason == "max_output_tokens"
    for item in r.output:
        assert item.id
        if item.type == "reasoning":
            assert item.content[0].type == "reasoning_text" and item.encrypted_content and item.summary == []
    check_usage(r.usage)


def test_responses(client, model):
    r = client.responses.create(model=model, input="What is the weather in Paris?", instructions="Be brief.", max_output_tokens=SHORT)
    check_output(r)
    assert r.instructions == "Be brief." and r.max_output_tokens == SHORT
    stored = client.responses.retrieve(r.id)
    assert stored.output == r.output and stored.status == r.status
    client.responses.delete(r.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(r.id)


def test_responses_stream(client, model):
    text, last, sequence = "", None, []
    for event in client.responses.create(model=model, input=ASK, max_output_tokens=SHORT, stream=True):
        assert last is None, "an event after the last one"
        sequence.append(event.sequence_number)
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            last = event.response
    assert sequence == list(range(len(sequence)))
    check_output(last)
    assert last.output_text == text


def test_responses_stream_helper(client, model):
    """The helper rebuilds the response from the events and fails on any that is missing or out of place."""
    with client.responses.stream(model=model, input=ASK, max_output_tokens=2000) as stream:
        last = [event.type for event in stream][-1]
        if last == "response.completed":  # else the model used up its tokens
            check_output(stream.get_final_response())
    assert last in ("response.completed", "response.incomplete")


def test_responses_tools_round_trip(client, model):
    r = client.responses.create(model=model, input=ASK, tools=[TOOL], max_output_tokens=SHORT)
    check_output(r)
    items = [*ASK, *r.output]
    called = [i for i in r.output if i.type == "function_call"]
    if not called:
        items = [*ASK, {"type": "function_call", "call_id": "call_x", "name": "get_weather", "arguments": '{"city":"Paris"}'},
                 {"type": "function_call_output", "call_id": "call_x", "output": "sunny"}]
    for call in called:
        if call.status == "completed":
            json.loads(call.arguments)
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    check_output(client.responses.create(model=model, input=items, tools=[TOOL], max_output_tokens=SHORT))


def test_responses_previous(client, model):
    first = client.responses.create(model=model, input=ASK, max_output_tokens=SHORT)
    second = client.responses.create(model=model, input="And tomorrow?", previous_response_id=first.id, max_output_tokens=SHORT)
    check_output(second)
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.input_tokens


# Errors


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.chat.completions.create(model="no-such-model", messages=ASK)
    assert e.value.code == "model_not_found" and e.value.param == "model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_bad_request(client, model):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=model, messages=ASK, temperature=9)
    assert e.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.create(model=model, input=[{"role": "bot", "content": "x"}])
    assert e.value.param == "input[0].role"


def test_too_long(client, model):
    long = "word " * 1_000_000
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": long}])
    assert e.value.code == "context_length_exceeded" and "maximum context length is" in e.value.message


def test_unknown_response(client):
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_none")
    with pytest.raises(openai.BadRequestError):
        client.responses.create(input="hi", previous_response_id="resp_none")


def test_wrong_key(base_url, api_key):
    if not api_key:
        pytest.skip("the server has no key")
    with openai.OpenAI(base_url=base_url, api_key="wrong", max_retries=0) as c, pytest.raises(openai.AuthenticationError):
        c.models.list()


# Forms that the grammar holds. These do not depend on what the model knows: any weights give text that fits.


class Verdict(pydantic.BaseModel):
    """Every field is bounded, so that a weak model cannot talk itself out of tokens."""

    kind: Literal["question", "order", "other"]
    polite: bool
    words: Literal[1, 2, 3]


LONG = 4000  # tokens; reasoning is bounded, so far fewer are used
BRIEF = {"max_reasoning_tokens": 32, "temperature": 0}  # so that a small model does not ramble


class get_weather(pydantic.BaseModel):
    city: Literal["Paris", "Rome"]
    days: Literal[1, 2]


def test_chat_parse(client, model):
    r = client.chat.completions.parse(model=model, messages=ASK, response_format=Verdict, max_tokens=LONG, extra_body=BRIEF)
    assert r.choices[0].finish_reason == "stop"
    assert isinstance(r.choices[0].message.parsed, Verdict)


def test_chat_parse_stream(client, model):
    with client.chat.completions.stream(model=model, messages=ASK, response_format=Verdict, max_tokens=LONG, extra_body=BRIEF) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Verdict)


def test_responses_parse(client, model):
    r = client.responses.parse(model=model, input=ASK, text_format=Verdict, max_output_tokens=LONG, extra_body=BRIEF)
    assert r.status == "completed"
    assert isinstance(r.output_parsed, Verdict)
    assert r.text.format.type == "json_schema" and r.text.format.name == "Verdict" and r.text.format.strict


def test_chat_parse_strict_call(client, model):
    r = client.chat.completions.parse(model=model, messages=ASK, tools=[openai.pydantic_function_tool(get_weather)], tool_choice="required",
                                      max_tokens=LONG, extra_body=BRIEF)
    assert r.choices[0].finish_reason == "tool_calls"
    assert isinstance(r.choices[0].message.tool_calls[0].function.parsed_arguments, get_weather)


def test_chat_named_call(client, model):
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}
    choice = {"type": "function", "function": {"name": "other"}}
    r = client.chat.completions.create(model=model, messages=ASK, tools=[CHAT_TOOL, other], tool_choice=choice, max_tokens=LONG, extra_body=BRIEF)
    assert [c.function.name for c in r.choices[0].message.tool_calls] == ["other"]
    assert json.loads(r.choices[0].message.tool_calls[0].function.arguments) == {}


def test_responses_required_call(client, model):
    tool = openai.pydantic_function_tool(get_weather)["function"]
    r = client.responses.parse(model=model, input=ASK, tools=[{"type": "function", **tool}], tool_choice="required", max_output_tokens=LONG, extra_body=BRIEF)
    called = [i for i in r.output if i.type == "function_call"]
    assert called and r.tool_choice == "required"
    assert get_weather.model_validate_json(called[0].arguments)


def test_guided(client, model):
    def ask(**fields):
        r = client.chat.completions.create(model=model, messages=ASK, max_tokens=LONG, extra_body=BRIEF | fields)
        return r.choices[0].message.content

    assert ask(guided_choice=["sunny", "rainy"]) in ("sunny", "rainy")
    assert re.fullmatch("[0-9]{2} degrees", ask(guided_regex="[0-9]{2} degrees"))
    assert json.loads(ask(guided_json={"enum": [1, 2]})) in (1, 2)
    assert re.fullmatch("(sun|rain), [0-9]+", ask(guided_grammar='root ::= ("sun" | "rain") ", " [0-9]+'))


def test_completions(client, model):
    r = client.completions.create(model=model, prompt=["The capital of France is", "Two and two"], n=2, max_tokens=4, echo=True, temperature=0)
    assert [c.index for c in r.choices] == [0, 1, 2, 3]
    assert r.choices[0].text.startswith("The capital of France is") and r.choices[2].text.startswith("Two and two")
    assert r.usage.completion_tokens <= 16 and r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens
    whole = client.completions.create(model=model, prompt=[976, 9029], max_tokens=4, logprobs=2, seed=3)
    l = whole.choices[0].logprobs
    assert len(l.tokens) == len(l.token_logprobs) == len(l.top_logprobs) == len(l.text_offset) and "".join(l.tokens) == whole.choices[0].text
    pieces = client.completions.create(model=model, prompt=[976, 9029], max_tokens=4, seed=3, stream=True)
    assert "".join(c.text for p in pieces for c in p.choices) == whole.choices[0].text
    held = client.completions.create(model=model, prompt="x", max_tokens=LONG, extra_body={"guided_choice": ["yes", "no"]})
    assert held.choices[0].text in ("yes", "no")


def test_no_reasoning(client, model):
    r = client.chat.completions.create(model=model, messages=ASK, max_tokens=SHORT, extra_body={"max_reasoning_tokens": 0})
    assert r.choices[0].message.content and not reasoning_of(r.choices[0].message)
    assert r.usage.completion_tokens_details.reasoning_tokens == 0


def test_forms_that_cannot_be(client, model):
    beyond = {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}

    def refused(param, **fields):
        with pytest.raises(openai.BadRequestError) as e:
            client.chat.completions.create(model=model, messages=ASK, **fields)
        assert e.value.param == param
        return e.value.message

    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": beyond}}
    raw = client.chat.completions.with_raw_response.create(model=model, messages=ASK, max_tokens=SHORT, response_format=form)
    assert "#/properties/a" in raw.headers["x-ossrun-relaxed"]
    form["json_schema"]["strict"] = True
    assert "#/properties/a" in refused("response_format.json_schema.schema", response_format=form)
    refused("tool_choice", tool_choice="required")
    refused("guided_grammar", extra_body={"guided_grammar": "root ::= x"})
    refused("guided_structural_tag", extra_body={"guided_structural_tag": "{}"})
    tool = {"type": "function", "function": {"name": "f", "parameters": beyond}}
    raw = client.chat.completions.with_raw_response.create(model=model, messages=ASK, max_tokens=SHORT, tools=[tool])
    assert raw.headers["x-ossrun-relaxed"].startswith("f: ")
    tool["function"]["strict"] = True
    assert "#/properties/a" in refused("tools[0].function.parameters", tools=[tool])
