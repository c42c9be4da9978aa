"""The anthropic package against known turns."""

import json

import anthropic
import anthropic.lib.tools
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


SEARCH = '[[think I look.]] [[call browser.search {"query":"ossrun","topn":3}]] [[call browser.open {"id":0}]] [[say It is so【1】.]]'
RUN = "[[think I compute.]] [[call python print(6*7)]] [[say It is 42.]]"
WEB = {"type": "web_search_20250305", "name": "web_search"}
FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
CODE = {"type": "code_execution_20250825", "name": "code_execution"}


def ask(claude, streamed, **more):
    more = dict(model=MODEL, max_tokens=4000, **more)
    if not streamed:
        return claude.messages.create(**more)
    with claude.messages.stream(**more) as s:
        return s.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_web_search(claude, streamed):
    r = ask(claude, streamed, messages=user(SEARCH), tools=[WEB])
    assert [b.type for b in r.content] == ["server_tool_use", "web_search_tool_result", "text"] and r.stop_reason == "end_turn"
    call, result, text = r.content
    assert (call.name, call.input["query"], result.tool_use_id) == ("web_search", "ossrun", call.id)
    assert [(type(x).__name__, x.url, x.title) for x in result.content] == [("WebSearchResultBlock", "https://example.org/", "Example")]
    assert [(type(c).__name__, c.url) for c in text.citations] == [("CitationsWebSearchResultLocation", "https://example.org/")]
    assert (r.usage.server_tool_use.web_search_requests, r.usage.server_tool_use.web_fetch_requests) == (1, 0)
    then = ask(claude, streamed, messages=user(SEARCH) + [{"role": "assistant", "content": r.content}] + user("[[say On.]]"), tools=[WEB])
    assert then.content[0].text == "On." and then.usage.server_tool_use.web_search_requests == 0


@pytest.mark.parametrize("streamed", [False, True])
def test_web_fetch(claude, streamed):
    messages = user('[[think I look.]] [[call browser.open {"id":"https://example.org/"}]] [[say It is so.]]')
    r = ask(claude, streamed, messages=messages, tools=[FETCH])
    assert [b.type for b in r.content] == ["server_tool_use", "web_fetch_tool_result", "text"]
    call, result, _ = r.content
    assert (call.name, call.input["url"], result.tool_use_id) == ("web_fetch", "https://example.org/", call.id)
    assert result.content.url == "https://example.org/" and result.content.content.source.data == "[1] Example (https://example.org/)"
    assert r.usage.server_tool_use.web_fetch_requests == 1
    messages += [{"role": "assistant", "content": r.content}] + user("[[say On.]]")
    then = ask(claude, streamed, messages=messages, tools=[FETCH])
    # the call and the page are the tokens that were cached
    assert then.content[0].text == "On." and then.usage.input_tokens < 96
    r = ask(claude, streamed, messages=user(SEARCH), tools=[FETCH])  # it offers no search
    assert r.content[0].type == "server_tool_use" and r.content[1].content.type == "web_search_tool_result_error"


@pytest.mark.parametrize("streamed", [False, True])
def test_code_execution(claude, streamed):
    r = ask(claude, streamed, messages=user(RUN), tools=[CODE])
    assert [b.type for b in r.content] == ["server_tool_use", "code_execution_tool_result", "text"]
    call, result, _ = r.content
    assert (call.name, call.input) == ("code_execution", {"code": "print(6*7)"})
    assert (result.content.type, result.content.stdout, result.content.return_code) == ("code_execution_result", "ran: print(6*7)", 0)
    then = ask(claude, streamed, messages=user(RUN) + [{"role": "assistant", "content": r.content}] + user("[[say On.]]"), tools=[CODE])
    assert then.content[0].text == "On."


def test_uses_are_bounded(claude):
    twice = '[[call browser.search {"query":"a"}]] [[call browser.search {"query":"b"}]] [[say Two.]]'
    r = ask(claude, False, messages=user(twice), tools=[WEB | {"max_uses": 1}])
    first, second = [b.content for b in r.content if b.type == "web_search_tool_result"]
    assert first[0].url == "https://example.org/" and second.error_code == "max_uses_exceeded"


EDITOR = "str_replace_based_edit_tool"
CALLS = [
    ({"type": "bash_20250124", "name": "bash"}, "bash", {"command": "ls"}, {"command": "ls"}),
    ({"type": "bash_20250124", "name": "bash"}, "bash", {"restart": True}, {"restart": True}),
    ({"type": "text_editor_20250728", "name": EDITOR}, EDITOR, {"command": "view", "path": "/a", "view_range": [1, -1]}, None),
    ({"type": "text_editor_20250728", "name": EDITOR}, EDITOR, {"command": "insert", "path": "/a", "insert_line": 2, "insert_text": "x"}, None),
    ({"type": "text_editor_20250124", "name": "str_replace_editor"}, "str_replace_editor", {"command": "undo_edit", "path": "/a"}, None),
    ({"type": "memory_20250818", "name": "memory"}, "memory", {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}, None),
]


@pytest.mark.parametrize("tool, name, call, want", CALLS)
def test_tools_that_the_client_runs(claude, tool, name, call, want):
    messages = user(f"[[call {name} {json.dumps(call, separators=(',', ':'))}]] [[say Ran.]]")
    r = ask(claude, False, messages=messages, tools=[tool])
    assert r.stop_reason == "tool_use" and (r.content[0].name, r.content[0].input) == (name, want or call)
    messages += [{"role": "assistant", "content": r.content},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": r.content[0].id, "content": "ok"}]}]
    assert ask(claude, True, messages=messages, tools=[tool]).content[0].text == "Ran."


def test_calls_have_what_their_command_needs(claude):
    r = ask(claude, False, messages=user('[[call memory {"command":"create","path":"/memories/a"}]]'),
            tools=[{"type": "memory_20250818", "name": "memory"}])
    assert "file_text" in r.content[0].input


class Memory(anthropic.lib.tools.BetaAbstractMemoryTool):
    """Keeps one file, by the SDK's own class."""

    files = {}

    def create(self, command):
        self.files[command.path] = command.file_text
        return "created"

    def view(self, command):
        return self.files.get(command.path, "none")

    str_replace = insert = delete = rename = clear_all_memory = None


def test_memory_by_the_tool_runner(claude):
    text = '[[call memory {"command":"create","path":"/memories/a","file_text":"x = 1"}]] [[call memory {"command":"view","path":"/memories/a"}]] [[say Noted.]]'
    runner = claude.beta.messages.tool_runner(model=MODEL, max_tokens=4000, messages=user(text), tools=[Memory()])
    final = runner.until_done()
    assert final.content[-1].text == "Noted." and Memory.files == {"/memories/a": "x = 1"}


def test_deferred_tools(claude):
    def tool(name, **more):
        return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}

    tools = [tool("ToolSearch"), tool("Found", defer_loading=True), tool("NotYet", defer_loading=True)]
    messages = user("[[call ToolSearch {}]] [[call NotYet {}]] [[call Found {}]] [[say No.]]")
    r = ask(claude, False, messages=messages, tools=tools)
    assert r.content[0].name == "ToolSearch"
    messages += [{"role": "assistant", "content": r.content}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": r.content[0].id, "content": [{"type": "tool_reference", "tool_name": "Found"}]}]}]
    r = ask(claude, False, messages=messages, tools=tools)
    assert r.content[0].name == "Found"  # NotYet cannot be called: the script skips it
    r = ask(claude, False, messages=user("[[call NotYet {}]]"), tools=tools + [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}])
    assert r.content[0].name == "NotYet"


def test_mcp_servers_are_refused(claude):
    with pytest.raises(anthropic.BadRequestError, match="mcp.json"):
        claude.beta.messages.create(model=MODEL, max_tokens=9, messages=user("x"), mcp_servers=[{"type": "url", "name": "a", "url": "https://example.org/"}])
