"""responses.connect(): several responses in turn on one connection, as events that the Open Responses document knows."""

import contextlib
import time

import openai
import pytest
import websockets
from open_responses import check_event

ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


def turn(connection, model, **members):
    """Sends a response.create and returns its last event; every event is checked."""
    connection.response.create(model=model, max_output_tokens=64, reasoning={"effort": "low"}, **members)
    types = []
    for event in connection:
        if event.type != "error":
            check_event(event.to_dict())
        types.append(event.type)
        if event.type in ENDS:
            assert event.type == "error" or types[:2] == ["response.created", "response.in_progress"]
            return event


def test_turns(client, model):
    with client.responses.connect() as c:
        first = turn(c, model, input="What is ossrun?", store=False)
        assert first.type in ENDS[:2] and not first.response.store
        second = turn(c, model, input="And who made it?", store=False, previous_response_id=first.response.id)
        assert second.response.previous_response_id == first.response.id
        # the second prompt has the first with its answer, and the cache has what they share
        grown = second.response.usage.input_tokens - first.response.usage.input_tokens
        assert grown > len("And who made it?".split()) and second.response.usage.input_tokens_details.cached_tokens > 0
        stored = turn(c, model, input="Hello")
        assert client.responses.retrieve(stored.response.id).output_text == stored.response.output_text
    with client.responses.connect() as c:
        lost = turn(c, model, input="x", store=False, previous_response_id=second.response.id)
        assert (lost.status, lost.error.code) == (400, "previous_response_not_found")
        assert turn(c, model, input="Hello", previous_response_id=stored.response.id).type in ENDS[:2]


def test_prepared(client, model):
    with client.responses.connect() as c:
        ready = turn(c, model, input="What is ossrun?", store=False, generate=False)
        assert ready.type == "response.completed" and ready.response.output == [] and ready.response.usage.output_tokens == 0
        said = turn(c, model, input=[], store=False, previous_response_id=ready.response.id, stream_id="a lane")
        assert said.response.output and said.stream_id == "a lane"
        assert said.response.usage.input_tokens == ready.response.usage.input_tokens


def test_faults(client, model):
    with client.responses.connect() as c:
        assert turn(c, model, input="x", temperature=9).error.param == "temperature"
        assert turn(c, "no-such-model", input="x").status == 404
        c.send({"type": "response.crate"})
        assert c.recv().error.param == "type"
        assert turn(c, model, input="Hello").type in ENDS[:2]


def test_closing_cancels(client, model):
    with client.responses.connect() as c:
        c.send({"type": "response.create", "model": model, "input": "Count.", "ignore_eos": True, "max_output_tokens": 3000})
        response = c.recv().response
    r = None
    while r is None:
        with contextlib.suppress(openai.NotFoundError):  # it is stored when it has ended
            r = client.responses.retrieve(response.id)
        time.sleep(0.05)
    assert r.status == "cancelled" and r.usage.output_tokens < 3000


def test_wrong_key(base_url, api_key):
    if api_key:
        wrong = openai.OpenAI(base_url=base_url, api_key="wrong", max_retries=0)
        with pytest.raises(websockets.exceptions.InvalidStatus) as e, wrong.responses.connect():
            pass
        assert e.value.response.status_code == 401
