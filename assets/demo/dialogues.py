"""Make the training data: groups of dialogues in exact o200k_harmony tokens.

  TIKTOKEN_ENCODINGS_BASE=DIR python dialogues.py SEED GROUPS OUT.pkl PHASE

The same arguments make the same file; the last phase, `agents`, also draws from the docs and programs of this tree.

A group is one prefix (system, developer, earlier turns) with several different last turns. The trainer computes the
prefix once for all its branches, which halves the work. No question of heldout.jsonl, blind.jsonl or valid.jsonl is ever
produced.
"""

import json
import os
import pickle
import random
import re
import sys
from array import array
from functools import lru_cache

from openai_harmony import (
    Conversation,
    DeveloperContent,
    HarmonyEncodingName,
    Message,
    ReasoningEffort,
    Role,
    SystemContent,
    ToolDescription,
    load_harmony_encoding,
)

import more
from facts import INTENTS
from drills import Drill, ask_drill
from functions import Function, ask_function, free_word, function_result
from arithmetic import ask_python
from intents import lines
from names import ADJECTIVES, WORDS
from topics import FREE_NAMES, FUNCS, NO_DESCRIPTION
from phrases import DOUBT, PROPER, SYNONYMS, TWICE, WHOLE, ask_intent, ask_other, doubt, expand

ENC = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
START, END, MESSAGE, CHANNEL, CONSTRAIN, RETURN, CALL = 200006, 200007, 200008, 200005, 200003, 200002, 200012
UNKNOWN = 201087  # stands for "any token outside the vocabulary": its rows are zero
BRANCHES = [8, 8]  # of a group with and without tools
KINDS, OFFERED = [], []  # shares, see PHASES
LONG = [0.0]  # share of groups with as much text before the question as coding agents send
EFFORTS = {"low": ReasoningEffort.LOW, "medium": ReasoningEffort.MEDIUM, "high": ReasoningEffort.HIGH}
HERE = os.path.dirname(os.path.abspath(__file__))


def plain(s):
    return re.sub(r"[^a-z0-9]+", " ", s.lower()).strip()


with open(os.path.join(HERE, "heldout.jsonl")) as f:
    HELD = [json.loads(line) for line in f]
with open(os.path.join(HERE, "blind.jsonl")) as f:
    BLIND = [json.loads(line) for line in f]
HELD_QUESTIONS = {plain(m["content"]) for h in HELD + BLIND for m in h["messages"] if m["role"] == "user"}
for name in ("valid.jsonl", "guide.jsonl"):
    with open(os.path.join(HERE, name)) as f:
        HELD_QUESTIONS |= {plain(json.loads(line)["question"]) for line in f}
HELD_NAMES = {t["name"] for h in HELD for t in h.get("tools", [])}
HELD_VALUES = {
    (h["topic"], str(v))
    for h in HELD
    if "topic" in h
    for v in h["call"]["arguments"].values()
    if v not in ("on", "off", "fahrenheit")
}

OTHER_THINK = (
    "This is not about ossrun.",
    "I am a tiny demonstration model and do not know this.",
    "I must not invent an answer.",
)
OTHER_SAY = (
    "I am only a tiny demonstration model and do not know that. Run `ossrun pull 20b` and then `ossrun chat` for a"
    " real answer."
)
INSTRUCTIONS = """
you are a helpful assistant.; be brief; be concise and friendly.; answer briefly.; always answer in english.; be
polite.; use short sentences.; you help users of ossrun.; you are the assistant of ossrun.; {you are|act
as|you're|imagine you are} {a|the|an} {<adj>|helpful|friendly|professional|expert|senior|}
{assistant|bot|expert|guide|helper|agent|teacher|chatbot|weather bot|support agent|travel agent|butler|robot|shop
assistant|tutor|secretary|<w> expert|<w> bot}{| for <w>| from <place>| called <person>| of a company in <place>| who
loves <w>}.; {answer|reply|respond|write|speak} {in one sentence|politely|shortly|clearly|in simple words|with care|in
plain english|step by step|like a friend|without jokes|only when you are sure}.; {the user is|the user lives in|you
talk to} {<person>|<place>|a <adj> customer|a child|an engineer}.; {never|always|please} {mention|talk
about|avoid|think of} <w>{| and <w>}.; today the topic is <w>.; do not {lie|invent things|use emojis|talk too
much|repeat yourself|discuss <w>}.; {use|call} {the tools|the functions|a tool|functions} {when needed|if they help|to
answer|where possible|only if needed}.; help the user with {<w>|weather questions|the tools|questions}.
"""
INSTRUCTIONS = lines(INSTRUCTIONS)
IDENTITIES = [
    "You are ossrun, a helpful assistant.",
    "You are a helpful assistant.",
    "You are gpt-oss, a large language model.",
    "You are a tiny demonstration model.",
    "You are Bob, a friendly bot.",
]


@lru_cache(maxsize=200000)
def enc(text):
    return tuple(ENC.encode(text, disallowed_special=()))


def message(role, text, end=END, header="", channel=None):
    """<|start|>role header<|channel|>channel<|message|>text<end>, as a list of tokens."""
    out = [START, *enc(role + header)]
    if channel:
        out += [CHANNEL, *enc(channel)]
    return out + [MESSAGE, *enc(text), end]


def head(r, effort, functions, python, text):
    """System and developer message, rendered by openai-harmony itself."""
    s = SystemContent.new().with_reasoning_effort(EFFORTS[effort])
    if r.random() < 0.85:
        s = s.with_conversation_start_date(f"{r.randint(2024, 2032)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}")
    if r.random() < 0.12:
        s = s.with_model_identity(r.choice(IDENTITIES))
    if python:
        s = s.with_python_tool()
    if r.random() < 0.02:
        s = s.with_browser_tool()
    out = [Message.from_role_and_content(Role.SYSTEM, s)]
    if text or functions:
        d = DeveloperContent.new()
        if text:
            d = d.with_instructions(text)
        if functions:
            d = d.with_function_tools([ToolDescription.new(f.name, f.description, f.parameters) for f in functions])
        out.append(Message.from_role_and_content(Role.DEVELOPER, d))
    ids = list(ENC.render_conversation(Conversation.from_messages(out)))
    if len(out) == 2 and r.random() < 0.35:  # words it has never seen, in descriptions and instructions
        begin, comment = len(ids) - ids[::-1].index(START), False
        for k in range(begin + 2, len(ids) - 1):
            t = ENC.decode([ids[k]])
            if comment and "\n" not in t and r.random() < 0.3:
                ids[k] = UNKNOWN
            comment = "\n" not in t and (comment or "//" in t)
    return ids


@lru_cache
def sources():
    """The texts that stand for an agent's instructions: docs and programs of this tree."""
    root = os.path.join(HERE, "..", "..")
    names = [os.path.join(d, f) for top in ("docs", "runtime", "ui") for d, _, fs in os.walk(os.path.join(root, top)) for f in fs]
    out = []
    for n in sorted(n for n in names if n.endswith((".md", ".go"))):
        with open(n) as f:
            out.append(f.read())
    return [t for t in out if len(t) > 4000]


def passage(r):
    """100 to 6,000 tokens of one of them, more often few than many."""
    size = int(400 * 60 ** r.random())
    t = r.choice(sources())
    begin = r.randrange(max(1, len(t) - size))
    return t[begin : begin + size].strip()


def think(effort, s):
    """Low effort says one sentence, medium two, high all of them and a check."""
    return {
        "low": s[0],
        "medium": f"{s[0]} {s[1]}",
        "high": f"{s[0]} {s[1]} {s[2]} Let me check this once more. {s[1]} I answer now in a clear and short way.",
    }[effort]


def question_text(r, tools):
    """-> (question, three sentences of thought, answer, how much of the question may be replaced by unknown tokens)"""
    if r.random() < 0.27:
        return ask_other(r, tools), OTHER_THINK, OTHER_SAY, r.choice([0, 0, 0, 0.15, 0.3, 0.5])
    names = [n for n in INTENTS if n != "sums" or not tools]
    k = r.choices(names, [INTENTS[n]["weight"] for n in names])[0]
    q, port = (ask_python(r)[0], "") if k == "sums" else ask_intent(r, k)
    t = INTENTS[k]
    noise = 0 if k in ("serve_p", "sums") else r.choice([0] * 8 + [0.06, 0.12])
    return q, [x.replace("$P", port) for x in t["think"]], t["say"].replace("$P", port), noise


class Turn:
    """One turn under construction: tokens and which of them the model itself must write."""

    def __init__(self):
        self.ids, self.flags = [], []

    def add(self, ids, flag=0, skip=0):
        """flag 1: all but the first `skip` tokens are targets."""
        self.ids += ids
        self.flags += [0] * skip + [flag] * (len(ids) - skip) if flag else [0] * len(ids)

    def user(self, text, r=None, noise=0):
        ids = message("user", text)
        if noise:
            ids = [UNKNOWN if 3 <= k < len(ids) - 1 and r.random() < noise else t for k, t in enumerate(ids)]
        self.add(ids)

    def done(self):
        return array("i", self.ids), bytes(self.flags)


def text_turn(r, effort, tools):
    q, s, answer, noise = question_text(r, tools)
    t = Turn()
    t.user(q, r, noise)
    t.add(message("assistant", think(effort, s), channel="analysis"), 1, 2)
    t.add(message("assistant", answer, RETURN, channel="final"), 1)
    return t, q, answer


def call_tokens(r, name, args_text, python, foreign):
    """The call in our own form, or as openai-harmony renders it (recipient before the channel): only in histories."""
    if python:
        return (
            message("assistant", args_text, CALL, " to=python", "analysis code")
            if foreign
            else message("assistant", args_text, CALL, "", "analysis to=python code")
        )
    to = f" to=functions.{name}"
    out = [START, *enc("assistant")]
    out += [*enc(to), CHANNEL, *enc("commentary ")] if foreign else [CHANNEL, *enc("commentary" + to + " ")]
    return out + [CONSTRAIN, *enc("json"), MESSAGE, *enc(args_text), CALL]


def tool_turn(r, effort, q, what, s, after, call, result, answer):
    """user, thought, call | result, thought, answer. `call(foreign)` gives the tokens of the call."""
    t = Turn()
    t.user(q)
    x = r.random()
    given = x < 0.3  # the call comes from the history, not from the model now
    if not (given and r.random() < 0.5):  # clients often do not send the reasoning back
        t.add(message("assistant", what, channel="analysis"), 0 if given else 1, 2)
        t.add(call(given and x < 0.2), 0 if given else 1)
    else:
        t.add(call(x < 0.2))
    t.add(result)
    t.add(message("assistant", after, channel="analysis"), 1, 2)
    t.add(message("assistant", answer, RETURN, channel="final"), 1)
    return t, q, answer


def function_turn(r, effort, functions):
    f = r.choice(functions)
    q, args, vals = ask_function(r, f, HELD_VALUES)
    if r.random() < 0.5:
        q = q[0].upper() + q[1:]
    if r.random() < 0.12:
        q = (
            r.choice(
                [
                    "Hi, ",
                    "hello, ",
                    "Please: ",
                    "hey ",
                    "One question: ",
                    "ok, ",
                    "Hello! ",
                    "so ",
                    "and ",
                    "Thanks. ",
                ]
            )
            + q
        )
    if r.random() < 0.08:
        q = q.rstrip("?.!") + r.choice([" please", " thanks", ", please?", " for me", " now?"])
    values = " and ".join(map(str, args.values()))
    subject = f.topic.replace("restaurants", "a restaurant").replace("convert", "a currency").replace("play", "music")
    do = f"I call {f.name} with {values}."
    what = {
        "low": do,
        "medium": f"The question is about {subject}. {do}",
        "high": (
            f"The question is about {subject}. The function {f.name} fits. "
            + " ".join(f"The argument {k} is {v}." for k, v in args.items())
            + " "
            + do
        ),
    }[effort]
    after = {
        "low": "I have the result.",
        "medium": f"I have the result for {vals[0]}.",
        "high": f"I have the result for {vals[0]}. It is about {subject}. I report it in one sentence.",
    }[effort]
    res, answer = function_result(r, f, vals)
    body = json.dumps(args, separators=(",", ":"), ensure_ascii=False)
    result = message("functions." + f.name, res, END, " to=assistant", "commentary")
    return tool_turn(
        r, effort, q, what, None, after, lambda foreign: call_tokens(r, f.name, body, False, foreign), result, answer
    )


def drill_turn(r, effort, functions):
    d = r.choice(functions)
    q, args = ask_drill(r, d)
    do = f"I call {d.name} with {' and '.join(map(str, args.values()))}."
    fits = f"The function {d.name} fits. " + " ".join(f"The argument {k} is {v}." for k, v in args.items())
    what = {"low": do, "medium": f"The question is about {d.name}. {do}", "high": f"{fits} {do}"}[effort]
    t = Turn()
    t.user(q)
    t.add(message("assistant", what, channel="analysis"), 1, 2)
    t.add(call_tokens(r, d.name, json.dumps(args, separators=(",", ":"), ensure_ascii=False), False, False), 1)
    return t, q, ""


def python_turn(r, effort):
    q, e, res = ask_python(r)
    do = f"I compute {e} with python."
    what = {
        "low": do,
        "medium": f"The user wants a number. {do}",
        "high": f"The user wants a number. The tool is exact, so I print the value. {do}",
    }[effort]
    after = {
        "low": "I have the result.",
        "medium": "I have the result. I report it.",
        "high": f"I have the result of {e}. I report it in one line.",
    }[effort]
    result = message("python", res + r.choice(["", "\n"]), END, " to=assistant", "analysis")
    return tool_turn(
        r,
        effort,
        q,
        what,
        None,
        after,
        lambda foreign: call_tokens(r, "", f"print({e})", True, foreign),
        result,
        f"{e} = {res}",
    )


def finished(r, turn, q, answer):
    """A turn as later prompts hold it: no reasoning; calls and results mostly stay."""
    ids, out, k = turn.ids, [], 0
    cuts = [i for i, t in enumerate(ids) if t == START] + [len(ids)]
    keep_tools = r.random() < 0.7
    for a, b in zip(cuts, cuts[1:]):
        part = ids[a:b]
        channel = ENC.decode(part[part.index(CHANNEL) + 1 : part.index(MESSAGE)]) if CHANNEL in part else ""
        if channel.startswith("analysis") or (channel.startswith("commentary") and not keep_tools):
            continue
        out += part[:-1] + [END if part[-1] == RETURN else part[-1]]
    return out


def group(r):
    """One prefix and its branches."""
    while True:
        effort = r.choices(list(EFFORTS), [0.42, 0.36, 0.22])[0]
        kind = r.choices(["plain", "func", "py", "drill"], KINDS)[0]
        python = kind == "py" or r.random() < 0.02
        functions = []
        if kind == "func" or (kind == "py" and r.random() < 0.15):
            functions = [
                Function(r, t, HELD_NAMES) for t in r.sample(list(FUNCS), r.choices([1, 2, 3, 4], OFFERED)[0])
            ]
        if kind == "drill":
            functions = [Drill(r, free_word) for _ in range(r.choice([1, 2, 3]))]
        if len({f.name for f in functions}) < len(functions):
            continue
        text = None
        if r.random() < (0.25 if functions else 0.2):
            text = " ".join(
                (
                    expand(r, r.choice(INSTRUCTIONS)).capitalize()
                    if r.random() < 0.2
                    else (lambda s: s[0].upper() + s[1:])(expand(r, r.choice(INSTRUCTIONS)))
                )
                for _ in range(r.choice([1, 1, 1, 2, 3]))
            )

        def turn():
            while True:
                x = r.random()
                if kind == "drill":
                    t = drill_turn(r, effort, functions)
                elif kind == "func" and x < 0.68:
                    t = function_turn(r, effort, functions)
                elif kind == "py" and x < 0.65:
                    t = python_turn(r, effort)
                else:
                    t = text_turn(r, effort, bool(functions) or python)
                if plain(t[1]) not in HELD_QUESTIONS:
                    return t

        long = r.random() < LONG[0]
        if long and r.random() < 0.7:
            text = passage(r) + ("\n\n" + text if text else "")
        prefix = head(r, effort, functions, python, text)
        if long and r.random() < 0.5:
            prefix += message("user", passage(r))
        turns = 0 if kind == "drill" else r.choices([0, 1, 2, 3, 6], [0.62, 0.2, 0.11, 0.05, 0.02])[0]
        for _ in range(turns):
            prefix += finished(r, *turn())
        branches = [turn()[0].done() for _ in range(BRANCHES[kind == "plain"])]
        if len(prefix) <= (8000 if long else 640) and max(len(b[0]) for b in branches) <= 320:
            return array("i", prefix), branches


# What a training phase draws: shares of the kinds of groups (no tools, functions, python, drills in copying), share of
# function names that can only be copied, shares of 1 to 4 functions offered, parts of more.py, and how much more often
# the intents of RARE are drawn.
FEW, MANY = [0.45, 0.3, 0.17, 0.08], [0.2, 0.3, 0.3, 0.2]
PHASES = {
    "first": ([0.5, 0.35, 0.15, 0], 0.0, FEW, "", 1),
    "more": ([0.36, 0.46, 0.18, 0], 0.5, FEW, "abc", 1),
    "polish": ([0.42, 0.42, 0.16, 0], 0.35, FEW, "abc", 2),
    "drill": ([0.22, 0.25, 0.08, 0.45], 0.5, FEW, "abc", 1),
    "broad": ([0.5, 0.29, 0.09, 0.12], 0.4, MANY, "abcdef", 1.6),
    "last": ([0.56, 0.29, 0.09, 0.06], 0.3, MANY, "abcdefg", 1.4),
    "plain": ([0.5, 0.36, 0.09, 0.05], 0.2, FEW, "abcdefg", 1.4),
    "wide": ([0.7, 0.2, 0.07, 0.03], 0.2, FEW, "abcdefgh", 1.4),
    "asked": ([0.55, 0.3, 0.1, 0.05], 0.2, FEW, "abcdefghi", 1.4),
    "agents": ([0.55, 0.3, 0.1, 0.05], 0.2, FEW, "abcdefghi", 1.4),
    "learn": ([0.63, 0.24, 0.09, 0.04], 0.2, FEW, "abcdefghi", 1.4),
}
RARE = ("greet", "thanks", "bye", "who", "start", "what", "vllm", "harmonycmd", "hardware")


def set_phase(name):
    KINDS[:], FREE_NAMES[0], OFFERED[:], parts, often = PHASES[name]
    NO_DESCRIPTION[0] = 0.4 if name in ("plain", "wide", "asked", "agents", "learn") else 0.0
    asked = name in ("asked", "agents", "learn")
    LONG[0] = {"agents": 0.2, "learn": 0.05}.get(name, 0.0)
    BRANCHES[1], WHOLE[0], SYNONYMS[0], TWICE[0] = (24, 14, 0.3, 0.06) if asked else (8, 4, 0.0, 0.0)
    PROPER[0] = 0.5 if asked else 0.0
    more.add(parts)
    for k in RARE:
        INTENTS[k]["weight"] *= often
    if os.environ.get("DOUBT"):
        with open(os.environ["DOUBT"]) as f:
            DOUBT.update(json.load(f))
        for t in INTENTS.values():
            w = doubt(t["q"] + t["vp"] + t["np"])
            t["weight"] *= 0.1 + sum(w) / len(w)


def main():
    seed, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    set_phase(sys.argv[4])
    r = random.Random(seed)
    groups = [group(r) for _ in range(count)]
    with open(path, "wb") as f:
        pickle.dump(groups, f)
    n_prefix = sum(len(p) for p, _ in groups)
    n_branch = sum(len(i) for _, bs in groups for i, _ in bs)
    targets = sum(sum(f) for _, bs in groups for _, f in bs)
    print(
        f"{count} groups, {sum(len(bs) for _, bs in groups)} dialogues: {n_prefix} prefix tokens, {n_branch} branch tokens, {targets}"
        " targets"
    )


if __name__ == "__main__":
    main()
