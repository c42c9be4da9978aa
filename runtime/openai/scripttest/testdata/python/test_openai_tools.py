"""Tools of Responses that the server runs, and custom ones, as openai-python decodes them.

The tools are scripted too (scripttest/tools.go): python says what it was to run, the browser finds https://example.org/, the
MCP server "sums" adds.
"""

import pytest
from openai.types import responses as t

MODEL = "gpt-oss:20b"
WEB = '[[think I look.]] [[call browser.search {"query":"ossrun"}]] [[think Found.]] [[say It is so【1】.]]'
CODE = "[[think I compute.]] [[call python print(6*7)]] [[say It is 42.]]"
ADD = '[[think I add.]] [[call sums_add {"a":2,"b":3}]] [[say Five.]]'
PATCH = "[[think I patch.]] [[call apply_patch *** Begin\n+x {\n*** End]] [[say Patched.]]"
SUMS = {"type": "mcp", "server_label": "sums", "server_url": "https://example.org/", "require_approval": "never"}
PYTHON = {"type": "code_interpreter", "container": {"type": "auto"}}
CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Patches."}


def ask(client, stream, text, tools, **more):
    """The response and the events that made it; what a stream's deltas say is compared with what it ends in."""
    if not stream:
        return client.responses.create(model=MODEL, input=text, tools=tools, **more), []
    with client.responses.stream(model=MODEL, input=text, tools=tools, **more) as s:
        events = list(s)
        r = s.get_final_response()
    added = [e.item for e in events if e.type == "response.output_item.added"]
    done = [e.item for e in events if e.type == "response.output_item.done"]
    assert [i.id for i in added] == [i.id for i in done] == [i.id for i in r.output]
    return r, events


def kinds(events, word):
    seen = [e.type.removeprefix("response.") for e in events if word in e.type]
    return [k for i, k in enumerate(seen) if i == 0 or seen[i - 1] != k]


def deltas(events, kind):
    return "".join(e.delta for e in events if e.type == f"response.{kind}.delta")


@pytest.mark.parametrize("stream", [False, True])
def test_web_search(client, stream):
    r, events = ask(client, stream, WEB, [{"type": "web_search"}])
    thought, call, _, message = r.output
    assert isinstance(call, t.ResponseFunctionWebSearch) and call.status == "completed"
    assert call.action.type == "search" and call.action.query == "ossrun"
    text = message.content[0]
    assert [type(a).__name__ for a in text.annotations] == ["AnnotationURLCitation"]
    a = text.annotations[0]
    assert (a.url, a.title, text.text[a.start_index:a.end_index]) == ("https://example.org/", "Example", "【1】")
    if stream:
        assert kinds(events, "web_search_call") == [f"web_search_call.{k}" for k in ("in_progress", "searching", "completed")]
        assert len(kinds(events, "annotation.added")) == 1
    then = client.responses.create(model=MODEL, previous_response_id=r.id, input="[[say And on.]]", tools=[{"type": "web_search"}])
    assert then.output_text == "And on."


@pytest.mark.parametrize("stream", [False, True])
def test_code_interpreter(client, stream):
    r, events = ask(client, stream, CODE, [PYTHON], include=["code_interpreter_call.outputs"])
    call = r.output[1]
    assert isinstance(call, t.ResponseCodeInterpreterToolCall) and call.status == "completed"
    assert call.code == "print(6*7)" and call.container_id
    assert [(o.type, o.logs) for o in call.outputs] == [("logs", "ran: print(6*7)")]
    assert r.output_text == "It is 42."
    if stream:
        assert deltas(events, "code_interpreter_call_code") == "print(6*7)"
        assert kinds(events, "code_interpreter") == [
            "code_interpreter_call.in_progress", "code_interpreter_call_code.delta", "code_interpreter_call_code.done",
            "code_interpreter_call.interpreting", "code_interpreter_call.completed"]


@pytest.mark.parametrize("stream", [False, True])
def test_mcp(client, stream):
    r, events = ask(client, stream, ADD, [SUMS])
    listed, _, call, message = r.output
    assert listed.type == "mcp_list_tools" and [x.name for x in listed.tools] == ["add"]
    assert listed.tools[0].input_schema["required"] == ["a", "b"]
    assert call.type == "mcp_call" and (call.name, call.server_label, call.output, call.error) == ("add", "sums", "5", None)
    assert call.arguments == '{"a":2,"b":3}' and message.content[0].text == "Five."
    if stream:
        assert deltas(events, "mcp_call_arguments") == call.arguments
        assert kinds(events, "mcp_") == [
            "mcp_list_tools.in_progress", "mcp_list_tools.completed", "mcp_call.in_progress", "mcp_call_arguments.delta",
            "mcp_call_arguments.done", "mcp_call.completed"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approve", [False, True])
def test_mcp_approval(client, stream, approve):
    tools = [{**SUMS, "require_approval": "always"}]
    r, _ = ask(client, stream, ADD, tools)
    request = r.output[-1]
    assert request.type == "mcp_approval_request" and (request.name, request.arguments) == ("add", '{"a":2,"b":3}')
    answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
    r, _ = ask(client, stream, [answer], tools, previous_response_id=r.id)
    calls = [i for i in r.output if i.type == "mcp_call"]
    assert [(c.output, c.approval_request_id) for c in calls] == ([("5", request.id)] if approve else [])
    assert r.output_text == "Five."


@pytest.mark.parametrize("stream", [False, True])
def test_custom(client, stream):
    r, events = ask(client, stream, PATCH, [CUSTOM])
    call = r.output[-1]
    assert isinstance(call, t.ResponseCustomToolCall) and (call.name, call.input) == ("apply_patch", "*** Begin\n+x {\n*** End")
    if stream:
        assert deltas(events, "custom_tool_call_input") == call.input
        assert kinds(events, "custom_tool_call_input") == ["custom_tool_call_input.delta", "custom_tool_call_input.done"]
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}
    r, _ = ask(client, stream, [result], [CUSTOM], previous_response_id=r.id)
    assert r.output_text == "Patched."
