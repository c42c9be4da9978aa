"""Every type of tool of both makers' packages has a row in docs/api-fields.md, and does what its row says."""

import pathlib
import re
import typing

import anthropic
import anthropic.types.beta
import openai
import pytest
from openai.types.responses import tool_param

MODEL = "gpt-oss:20b"
PAGE = pathlib.Path(__file__).parents[5] / "docs/api-fields.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| (run here.*|called by.*|400.*) \|$", PAGE.read_text(), re.M))
DATE = re.compile(r"_20\d\d_?\d\d_?\d\d$")
# what a type needs besides itself
MORE = {"function": {"name": "f", "parameters": None, "strict": None}, "custom": {"name": "f"},
        "namespace": {"name": "n", "description": "d", "tools": [{"type": "function", "name": "f"}]},
        "mcp": {"server_label": "sums", "require_approval": "never"}, "code_interpreter": {"container": {"type": "auto"}},
        "tool_search": {"execution": "client"}}


def types(union):
    """The values of type in the members of a union of TypedDicts, and the names that they fix."""
    for member in typing.get_args(union):
        hints = typing.get_type_hints(member)
        name = typing.get_args(hints["name"])[:1] if "name" in hints else ()
        for t in typing.get_args(hints["type"]) if "type" in hints else ():
            for t in typing.get_args(t) or [t]:
                if isinstance(t, str):
                    yield t, name[0] if name else "f"


OPENAI = sorted(set(types(tool_param.ToolParam)))
ANTHROPIC = sorted({t for u in (anthropic.types.ToolUnionParam, anthropic.types.beta.BetaToolUnionParam) for t in types(u)})


def test_the_unions_are_read():
    assert len(OPENAI) > 15 and len(ANTHROPIC) > 25 and len(ROWS) > 25, (OPENAI, ANTHROPIC, ROWS)


@pytest.mark.parametrize("typ", sorted({t for t, _ in OPENAI}))
def test_openai(client, typ):
    row = ROWS[DATE.sub("", typ)]
    ask = dict(model=MODEL, input="[[say Hello.]]", tools=[{"type": typ} | MORE.get(typ, {})])
    if row.startswith("400") or "/v1/messages only" in row:
        with pytest.raises(openai.BadRequestError, match=typ):
            client.responses.create(**ask)
        return
    r = client.responses.with_raw_response.create(**ask)
    assert not r.headers.get("x-ossrun-ignored") and [t.type for t in r.parse().tools] == [typ]


@pytest.mark.parametrize("typ, name", [(t, n) for t, n in ANTHROPIC if t != "custom"])
def test_anthropic(root_url, api_key, typ, name):
    row = ROWS[DATE.sub("", typ)]
    with anthropic.Anthropic(base_url=root_url, api_key=api_key, max_retries=0) as claude:
        def ask():
            return claude.messages.with_raw_response.create(
                model=MODEL, max_tokens=4000, messages=[{"role": "user", "content": "[[say Hello.]]"}], tools=[{"type": typ, "name": name}])
        if row.startswith("400"):
            with pytest.raises(anthropic.BadRequestError, match=typ):
                ask()
        else:
            assert not ask().headers.get("x-ossrun-ignored")
