"""Holds every response and event that an SDK's client receives to the Open Responses document, by the types that its
project publishes: Watch is the client's transport, and keeps what is wrong in faults.

What is OpenAI's own and has no type there (the text of reasoning, built-in and custom tools) is held to OpenAI's document
by the Go tests. So is the echo of a JSON schema: the published type allows no schema but null, and wants a description that
OpenAI's document does not allow to be null.
"""

import inspect
import json
import re

import httpx2  # the one that openai is made with
import openresponses_types as types
import pydantic

ITEMS = {"message", "function_call", "function_call_output", "reasoning", "compaction"}
RESOURCE = re.compile(r"/responses(/resp_\w+(/cancel)?)?$")


def event_types():
    for _, event in inspect.getmembers(types, inspect.isclass):
        field = getattr(event, "model_fields", {}).get("type")
        if field and event.__name__.endswith("StreamingEvent"):
            for name in field.annotation:  # an enumeration of one
                yield name.value, event


EVENTS = dict(event_types())


def typed(resource):
    """A response without what the document has no type for."""
    r = {**resource, "output": [i for i in resource["output"] if i["type"] in ITEMS]}
    r["tools"] = [t for t in resource.get("tools", []) if t["type"] == "function"]
    choice = resource.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] not in ("function", "allowed_tools"):
        r["tool_choice"] = "auto"
    form = resource.get("text", {}).get("format", {})
    if form.get("type") == "json_schema":
        r["text"] = {**resource["text"], "format": {"description": None, **form, "schema": None}}
    return r


def check_event(event):
    """Tells whether the document knows the event; raises where it is not as it says."""
    if event["type"] not in EVENTS or event.get("item", {}).get("type", "message") not in ITEMS:
        return False
    if "response" in event:
        event = {**event, "response": typed(event["response"])}
    EVENTS[event["type"]].model_validate(event)
    return True


def check(method, path, body):
    """Checks the body of an answer; returns how many resources and events were."""
    if body.startswith("event: ") or body.startswith("data: "):
        lines = [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: {")]
        return sum(check_event(json.loads(line)) for line in lines)
    if method != "DELETE" and RESOURCE.search(path):
        types.ResponseResource.model_validate(typed(json.loads(body)))
    elif path.endswith("/responses/compact"):
        types.CompactResource.model_validate(json.loads(body))
    else:
        return 0
    return 1


class Watch(httpx2.HTTPTransport):
    def __init__(self):
        super().__init__()
        self.faults, self.checked = [], 0

    def handle_request(self, request):
        response = super().handle_request(request)
        if "/responses" in request.url.path and response.status_code == 200:
            response.stream = Copy(response.stream, lambda body: self.check(request, body))
        return response

    def check(self, request, body):
        try:
            self.checked += check(request.method, request.url.path, body)
        except pydantic.ValidationError as e:
            self.faults.append(f"{request.method} {request.url}: {e}\nin {body[:3000]}")


class Copy(httpx2.SyncByteStream):
    """A body that is read as it comes, and handed on when it is closed. A stream that was left ends at its last whole event."""

    def __init__(self, stream, done):
        self.stream, self.done, self.parts, self.whole = stream, done, [], False

    def __iter__(self):
        for part in self.stream:
            self.parts.append(part)
            yield part
        self.whole = True

    def close(self):
        self.stream.close()
        body = b"".join(self.parts)
        if not self.whole:
            body = body[:body.rfind(b"\n\n") + 1]
        self.parts = []
        if body:
            self.done(body.decode().lstrip())
