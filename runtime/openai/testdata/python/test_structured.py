"""Everything that is held while it is sampled, by the parse helpers of the real openai package against a running server.

The mix is that of runtime/session's random turns: tools, schemas and every tool_choice, on both APIs, whole and streamed, at temperature 1. Any weights must
pass: what is finished parses and validates by pydantic; what the limit cuts says so (length, incomplete) and is counted apart.
"""

import datetime
import json
import re
from typing import Annotated, Literal, Optional, Union

import openai
import pydantic
import pytest
from pydantic import Field

ASK = [{"role": "user", "content": "How do I serve an OpenAI API?"}]
SEEDS = range(3)
SPECIAL = re.compile(r"<\|[a-z_0-9]+\|>")
FIELDS = {"max_reasoning_tokens": 24}  # a small model would reason until the limit


class Line(pydantic.BaseModel):
    sku: Literal["a", "b", "c"]
    count: Annotated[int, Field(ge=1, le=99)]


class Order(pydantic.BaseModel):
    id: Annotated[str, Field(pattern="^[A-Z]{2}-[0-9]{3}$")]
    lines: Annotated[list[Line], Field(min_length=1, max_length=3)]
    note: Optional[Annotated[str, Field(max_length=20)]]


class Weather(pydantic.BaseModel, extra="forbid"):
    city: Annotated[str, Field(max_length=30)]
    days: Annotated[int, Field(ge=1, le=14)]


class Answer(pydantic.BaseModel):
    ok: bool
    reason: Union[datetime.date, Annotated[float, Field(ge=-5, le=5)]]


class Tree(pydantic.BaseModel):
    name: Annotated[str, Field(max_length=12)]
    children: Annotated[list["Tree"], Field(max_length=2)]


class order(Order):
    """Orders something."""


class get_weather(Weather):
    """The weather of a city."""


MODELS = {"order": order, "get_weather": get_weather}
TOOLS = [openai.pydantic_function_tool(m) for m in MODELS.values()]
NAMED_CHAT = {"type": "function", "function": {"name": "order"}}
NAMED = {"type": "function", "name": "order"}
FORMS = [Order, Weather, Answer, Tree]
CHOICES = ["auto", "required", "named", "none"]

cut = []  # what the limit has cut


def clean(*texts):
    for text in texts:
        assert not SPECIAL.search(text or ""), text


def check_arguments(name, arguments):
    clean(name, arguments)
    return MODELS[name].model_validate_json(arguments)


def check_chat(completion, form=None, choice=None):
    """Holds a parsed chat completion to what was asked; None if the limit cut it."""
    c = completion.choices[0]
    calls = c.message.tool_calls or []
    clean(c.message.content, (c.message.model_extra or {}).get("reasoning"))
    assert c.finish_reason in ("stop", "tool_calls", "length")
    if c.finish_reason == "length":
        return cut.append(completion)
    assert (c.finish_reason == "tool_calls") == bool(calls)
    assert c.message.content or calls, "an empty answer"
    for call in calls:
        assert call.function.parsed_arguments == check_arguments(call.function.name, call.function.arguments)
    if choice in ("required", "named"):
        assert calls
    if choice == "named":
        assert {call.function.name for call in calls} == {"order"}
    if choice in ("none", None):
        assert not calls
    if form and not calls:
        assert isinstance(c.message.parsed, form)
    return completion


def check_response(r, form=None, choice=None):
    assert r.status in ("completed", "incomplete")
    calls = [i for i in r.output if i.type == "function_call"]
    for item in r.output:
        if item.type == "reasoning":
            clean(*[part.text for part in item.content])
    clean(r.output_text)
    if r.status == "incomplete":
        assert r.incomplete_details.reason == "max_output_tokens"
        return cut.append(r)
    assert r.output_text or calls, "an empty answer"
    for call in calls:
        assert call.parsed_arguments == check_arguments(call.name, call.arguments)
    if choice in ("required", "named"):
        assert calls
    if choice == "named":
        assert {call.name for call in calls} == {"order"}
    if choice in ("none", None):
        assert not calls
    if form and not calls:
        assert isinstance(r.output_parsed, form)
    return r


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", FORMS)
def test_chat_form(client, model, form, seed):
    try:
        check_chat(client.chat.completions.parse(model=model, messages=ASK, response_format=form, max_tokens=400, seed=seed, extra_body=FIELDS), form)
    except openai.LengthFinishReasonError as e:
        cut.append(e)


@pytest.mark.parametrize("form", FORMS)
def test_chat_form_streamed(client, model, form):
    try:
        with client.chat.completions.stream(model=model, messages=ASK, response_format=form, max_tokens=400, seed=5, extra_body=FIELDS) as stream:
            for event in stream:
                if event.type == "content.delta":
                    clean(event.delta)
            check_chat(stream.get_final_completion(), form)
    except openai.LengthFinishReasonError as e:
        cut.append(e)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("choice", CHOICES)
def test_chat_choice(client, model, choice, seed):
    try:
        check_chat(client.chat.completions.parse(model=model, messages=ASK, tools=TOOLS, tool_choice=NAMED_CHAT if choice == "named" else choice,
                                                 response_format=Answer, max_tokens=400, seed=seed, extra_body=FIELDS), Answer, choice)
    except openai.LengthFinishReasonError as e:
        cut.append(e)


@pytest.mark.parametrize("choice", CHOICES)
def test_chat_choice_streamed(client, model, choice):
    try:
        with client.chat.completions.stream(model=model, messages=ASK, tools=TOOLS, tool_choice=NAMED_CHAT if choice == "named" else choice,
                                            response_format=Answer, max_tokens=400, seed=6, extra_body=FIELDS) as stream:
            for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    clean(event.name, event.arguments_delta)
            check_chat(stream.get_final_completion(), Answer, choice)
    except openai.LengthFinishReasonError as e:
        cut.append(e)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", FORMS)
def test_response_form(client, model, form, seed):
    try:
        check_response(client.responses.parse(model=model, input=ASK, text_format=form, max_output_tokens=400, extra_body=FIELDS | {"seed": seed}), form)
    except pydantic.ValidationError as e:  # the helper parses what the limit has cut, too
        assert all("json_invalid" == problem["type"] for problem in e.errors())
        cut.append(e)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("choice", CHOICES)
def test_response_choice(client, model, choice, seed):
    check_response(client.responses.parse(model=model, input=ASK, tools=TOOLS, tool_choice=NAMED if choice == "named" else choice, max_output_tokens=400,
                                          extra_body=FIELDS | {"seed": seed}), None, choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_response_choice_streamed(client, model, choice):
    with client.responses.stream(model=model, input=ASK, tools=TOOLS, tool_choice=NAMED if choice == "named" else choice, max_output_tokens=400,
                                 extra_body=FIELDS | {"seed": 7}) as stream:
        for event in stream:
            if event.type in ("response.function_call_arguments.delta", "response.output_text.delta"):
                clean(event.delta)
            if event.type == "response.incomplete":
                return cut.append(event)
        check_response(stream.get_final_response(), None, choice)


@pytest.mark.parametrize("seed", SEEDS)
def test_json_object(client, model, seed):
    c = client.chat.completions.create(model=model, messages=ASK, response_format={"type": "json_object"}, max_tokens=160, seed=seed, extra_body=FIELDS).choices[0]
    r = client.responses.create(model=model, input=ASK, text={"format": {"type": "json_object"}}, max_output_tokens=160, extra_body=FIELDS | {"seed": seed})
    clean(c.message.content, r.output_text)
    if c.finish_reason == "stop":
        assert isinstance(json.loads(c.message.content), dict)
    else:
        assert c.finish_reason == "length"
    if r.status == "completed":
        assert isinstance(json.loads(r.output_text), dict)
    else:
        assert r.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize("seed", SEEDS)
def test_guided(client, model, seed):
    def ask(**fields):
        c = client.chat.completions.create(model=model, messages=ASK, max_tokens=400, seed=seed, extra_body=FIELDS | fields).choices[0]
        assert c.finish_reason == "stop"
        return c.message.content

    animals = "(yes|no), [0-9]{1,3} (cats|dogs)"
    assert re.fullmatch(animals, ask(guided_regex=animals))
    assert re.fullmatch(animals, ask(guided_grammar='start: ("yes" | "no") ", " /[0-9]{1,3}/ " " animal\nanimal: "cats" | "dogs"'))
    assert ask(guided_choice=["cats", "dogs", "neither"]) in ("cats", "dogs", "neither")
    Weather.model_validate_json(ask(guided_json=Weather.model_json_schema()))
    assert re.fullmatch(animals, ask(structured_outputs={"regex": animals}))


def test_most_turns_end():
    """Runs last: what the limit has cut proves nothing about the rest."""
    assert len(cut) <= 20, f"{len(cut)} turns were cut by the limit"
