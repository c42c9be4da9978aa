"""Conversations with pictures, and calls that a client changed or gave up, through the SDKs of three APIs.

A picture next to text, and everything before the user's last message, never ends a conversation.
"""

import anthropic
import ollama
import openai
import pytest

MODEL = "gpt-oss:20b"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LINK = "data:image/png;base64," + PIXEL
SAY = "[[say Fine.]]"
AFTER = "[[call f {}]] " + SAY  # a result follows


def text(kind, words=SAY):
    return {"type": kind, "text": words}


IMAGE = {"type": "image_url", "image_url": {"url": LINK}}
INPUT_IMAGE = {"type": "input_image", "image_url": LINK, "detail": "auto"}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


@pytest.fixture(scope="module")
def claude(root_url, api_key):
    with anthropic.Anthropic(base_url=root_url, api_key=api_key, max_retries=0, timeout=60) as c:
        yield c


@pytest.fixture(scope="module")
def llama(root_url, api_key):
    return ollama.Client(host=root_url, headers={"Authorization": "Bearer " + api_key}, timeout=60)


# each asks one API with a history and returns the answer's text and what was ignored


@pytest.fixture
def ask(client, claude, llama):
    def chat(*messages):
        r = client.chat.completions.with_raw_response.create(model=MODEL, messages=list(messages))
        return r.parse().choices[0].message.content, r.headers.get("x-ossrun-ignored", "")

    def responses(*items):
        r = client.responses.with_raw_response.create(model=MODEL, input=list(items))
        return r.parse().output_text, r.headers.get("x-ossrun-ignored", "")

    def messages(*list_):
        r = claude.messages.with_raw_response.create(model=MODEL, max_tokens=4000, messages=list(list_))
        return "".join(b.text for b in r.parse().content if b.type == "text"), r.headers.get("x-ossrun-ignored", "")

    def local(*list_):
        return llama.chat(model=MODEL, messages=list(list_)).message.content, "image"  # it shows no headers

    return {"chat": chat, "responses": responses, "messages": messages, "ollama": local}


def user(content, **more):
    return {"role": "user", "content": content, **more}


def assistant(content="Nice.", **more):
    return {"role": "assistant", "content": content, **more}


PICTURES = {
    "chat": lambda words: user([text("text", words), IMAGE]),
    "responses": lambda words: user([text("input_text", words), INPUT_IMAGE]),
    "messages": lambda words: user([text("text", words), BLOCK]),
    "ollama": lambda words: user(words, images=[PIXEL]),
}


@pytest.mark.parametrize("api", PICTURES)
def test_pictures(ask, api):
    picture = PICTURES[api]
    said, ignored = ask[api](picture(SAY))
    assert said == "Fine." and "image" in ignored
    # older ones, with and without words, and two messages of the user in a row
    said, _ = ask[api](picture("Look."), assistant(), picture(" "), user(SAY))
    assert said == "Fine."
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError, ollama.ResponseError), match="reads text only"):
        ask[api](user("Hi"), assistant(), picture(" "))


def test_calls_of_chat_completions(ask):
    def call(**more):
        return assistant(None, tool_calls=[{"id": "c", "type": "function", **more}])

    for calls in (call(function={"name": "f", "arguments": '{"a": '}), call(function={"name": "f", "arguments": {"a": 1}}),
                  call(function={"name": "f", "arguments": None}), call(), call(function={"name": "größe", "arguments": "{}"})):
        for result in ({"role": "tool", "tool_call_id": "c", "content": 4}, {"role": "tool", "tool_call_id": "", "content": None}):
            assert ask["chat"](user("Go"), calls, result, user(SAY))[0] == "Fine."
            assert ask["chat"](user(AFTER), calls, result)[0] == "Fine."
        assert ask["chat"](user("Go"), calls, user(SAY))[0] == "Fine."


def test_calls_of_responses(ask):
    for arguments in ('{"a": ', {"a": 1}, None, [1]):
        call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}
        output = {"type": "function_call_output", "call_id": "c", "output": 4}
        for items in ([call, output, user(SAY)], [call, user(SAY)], [call, user(AFTER), output], [output, user(SAY)],
                      [user(AFTER), {**call, "call_id": None}, {**output, "call_id": None}]):
            assert ask["responses"](user("Go"), *items)[0] == "Fine."


def test_calls_of_messages(ask):
    for given in ({"a": 1}, '{"a": ', None, [1]):
        use = assistant([{"type": "tool_use", "id": "t", "name": "f", "input": given}])
        result = user([{"type": "tool_result", "tool_use_id": "t", "content": [BLOCK]}])
        for list_ in ([use, result, user(SAY)], [use, user(SAY)], [result, user(SAY)], [user(AFTER), use, result]):
            assert ask["messages"](user("Go"), *list_)[0] == "Fine."


def test_calls_of_ollama(ask):
    call = assistant("", tool_calls=[{"function": {"name": "f", "arguments": {"a": 1}}}])
    result = {"role": "tool", "content": "4", "tool_name": "f"}
    for list_ in ([call, result, user(SAY)], [call, user(SAY)], [result, user(SAY)], [user(AFTER), call, result]):
        assert ask["ollama"](user("Go"), *list_)[0] == "Fine."
