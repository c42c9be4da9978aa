"""openai's stored chat completions: create with store, list, retrieve, update, messages, delete."""

import os

import openai
import pytest

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hello"}]}]


@pytest.fixture
def completions():
    return openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], timeout=120).chat.completions


def create(completions, **extra):
    return completions.create(model="demo", max_tokens=8, messages=MESSAGES, **extra)


def test_stored_completions(completions):
    run = os.urandom(8).hex()
    made = [create(completions, store=True, n=2, metadata={"run": run, "i": str(i)}) for i in range(3)]
    unstored = create(completions, metadata={"run": run})
    chunks = list(create(completions, store=True, metadata={"run": run, "i": "streamed"}, stream=True))
    ids = {c.id for c in made} | {chunks[0].id}
    assert {c.id for c in completions.list(metadata={"run": run})} == ids
    assert {c.id for c in completions.list(metadata={"run": run}, model="demo", limit=1)} == ids  # four pages
    assert [c.id for c in completions.list(metadata={"run": run, "i": "1"}, order="desc")] == [made[1].id]
    assert completions.list(metadata={"run": run}, model="another").data == []
    got = completions.retrieve(made[0].id)
    assert got.object == "chat.completion" and got.choices == made[0].choices and got.usage == made[0].usage and got.metadata == {"run": run, "i": "0"}
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert completions.retrieve(chunks[0].id).choices[0].message.content == text
    changed = completions.update(made[0].id, metadata={"run": run, "topic": "a"})
    assert changed.metadata == completions.retrieve(made[0].id).metadata == {"run": run, "topic": "a"}
    messages = completions.messages.list(made[0].id).data
    assert [m.role for m in messages] == ["system", "user"] and messages[0].content == "Be brief." and messages[0].id == made[0].id + "-0"
    assert messages[1].content is None and messages[1].content_parts[0].text == "Hello"
    assert [m.id for m in completions.messages.list(made[0].id, limit=1, after=messages[0].id)] == [messages[1].id]
    assert completions.delete(made[0].id).deleted
    for call in (completions.retrieve, completions.delete, completions.messages.list):
        for gone in (made[0].id, unstored.id):
            with pytest.raises(openai.NotFoundError):
                list(call(gone))
