"""vLLM's enable_response_messages: the messages of prompt and answer, as openai-harmony reads them."""

import os

import openai
from openai_harmony import Message

REQUEST = dict(model="demo", input="Hello there", instructions="Be brief.", max_output_tokens=40)


def test_response_messages():
    client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], timeout=120)
    extra = {"enable_response_messages": True}
    whole = client.responses.create(**REQUEST, extra_body=extra)
    events = list(client.responses.create(**REQUEST, extra_body=extra, stream=True))
    assert events[0].response.input_messages == events[0].response.output_messages == []
    streamed = events[-1].response
    for response in (whole, streamed, client.responses.retrieve(whole.id)):
        system, developer, user = map(Message.from_dict, response.input_messages)
        assert [m.author.role.value for m in (system, developer, user)] == ["system", "developer", "user"]
        assert "Be brief." in developer.content[0].text and user.content[0].text == "Hello there"
        answer = [Message.from_dict(m) for m in response.output_messages]
        assert answer and {m.author.role.value for m in answer} == {"assistant"}
    assert not hasattr(client.responses.create(**REQUEST), "input_messages")
