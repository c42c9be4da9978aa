"""Judge an exported checkpoint.

  python evaluate.py CHECKPOINT greedy [WRONG.txt] [QUESTIONS.jsonl]
  python evaluate.py CHECKPOINT sampled TURNS [SEED]

greedy  answers every turn of heldout.jsonl at temperature 0 and checks what a right answer must hold
sampled plays TURNS turns at temperature 1 (held-out turns and fresh drawings of the training grammars), sampling from
        all 201088 tokens without any mask, and counts turns that are not legal Harmony
"""

import json
import random
import re
import sys
from collections import defaultdict

import torch
from openai_harmony import Conversation, DeveloperContent, Message, Role, SystemContent, ToolDescription

from dialogues import CALL, CHANNEL, EFFORTS, ENC, HELD, MESSAGE, RETURN, START, enc, group, message, set_phase
from runner import Runner

UNKNOWN_DATE = "2026-11-21"


def prompt(h):
    """The tokens of a held-out turn, up to and with <|start|>assistant."""
    s = SystemContent.new().with_reasoning_effort(EFFORTS[h["effort"]]).with_conversation_start_date(UNKNOWN_DATE)
    if h.get("python"):
        s = s.with_python_tool()
    out = [Message.from_role_and_content(Role.SYSTEM, s)]
    if h.get("tools") or h.get("instructions"):
        d = DeveloperContent.new()
        if h.get("instructions"):
            d = d.with_instructions(h["instructions"])
        if h.get("tools"):
            d = d.with_function_tools(
                [ToolDescription.new(t["name"], t["description"], t["parameters"]) for t in h["tools"]]
            )
        out.append(Message.from_role_and_content(Role.DEVELOPER, d))
    ids = list(ENC.render_conversation(Conversation.from_messages(out)))
    for m in h["messages"]:
        if m["role"] == "user":
            ids += message("user", m["content"])
        elif m["role"] == "tool":
            ids += message(
                m["name"],
                m["content"],
                header=" to=assistant",
                channel="analysis" if m["name"] == "python" else "commentary",
            )
        elif m.get("recipient") == "python":
            ids += message("assistant", m["content"], CALL, channel="analysis to=python code")
        elif m.get("recipient"):
            ids += [
                START,
                *enc("assistant"),
                CHANNEL,
                *enc(f"commentary to={m['recipient']} "),
                200003,
                *enc("json"),
                MESSAGE,
                *enc(m["content"]),
                CALL,
            ]
        else:
            ids += message("assistant", m["content"], channel="final")
    return ids + [START, *enc("assistant")]


def parse(out):
    """-> (messages, "") of a legal turn, else (None, why).

    Legal: strict Harmony, thought first, then one final or call.
    """
    if out[-1] not in (RETURN, CALL):
        return None, "no stop"
    try:
        got = ENC.parse_messages_from_completion_tokens(out, Role.ASSISTANT, strict=True)
    except Exception as e:
        return None, f"parse: {e}"
    shape = [(m.channel, m.recipient) for m in got]
    if shape[:-1] != [("analysis", None)] or len(got) != 2:
        return None, f"order {shape}"
    last = got[-1]
    final = last.channel == "final" and not last.recipient and out[-1] == RETURN
    call = (
        bool(last.recipient)
        and out[-1] == CALL
        and (
            last.channel == "commentary"
            and last.recipient.startswith("functions.")
            or last.channel == "analysis"
            and last.recipient == "python"
        )
    )
    return (got, "") if final or call else (None, f"end {shape}")


def text(m):
    return m.content[0].text


def judge(h, got):
    """-> "" if right, else what was said instead"""
    last = got[-1]
    if "call" in h:
        want = h["call"]
        if want["name"] == "python":
            ok = last.recipient == "python" and text(last) in [f"print({c})" for c in want["code"]]
        else:
            ok = last.recipient == "functions." + want["name"]
            try:
                ok = ok and json.loads(text(last)) == want["arguments"]
            except ValueError:
                ok = False
        return "" if ok else f"{last.recipient}: {text(last)}"
    said = text(last)
    if (
        last.recipient
        or not all(re.search(m, said) for m in h["must"])
        or any(re.search(m, said) for m in h.get("must_not", []))
    ):
        return f"{last.recipient or ''} {said}"
    return ""


def greedy(run, wrong, questions):
    results, thought, illegal = defaultdict(list), defaultdict(list), 0
    for h in questions:
        out = run.generate(prompt(h))
        got, why = parse(out)
        illegal += got is None
        said = judge(h, got) if got else f"ILLEGAL {why}: {ENC.decode(out)[:300]}"
        results[h["category"]].append(not said)
        if got:
            thought[h["effort"]].append(len(ENC.encode(text(got[0]))))
        if said:
            wrong.write(
                f"{h['id']} {h['category']}: {h['messages'][-1]['content']!r}\n   "
                f" {text(got[0])[:90] if got else ''}\n    -> {said}\n"
            )
    total = [x for v in results.values() for x in v]
    for k, v in results.items():
        print(f"| {k} | {sum(v)}/{len(v)} | {100 * sum(v) / len(v):.0f} % |")
    print(f"| all | {sum(total)}/{len(total)} | {100 * sum(total) / len(total):.1f} % |")
    print("illegal", illegal, "| thought tokens (mean):", {k: round(sum(v) / len(v), 1) for k, v in thought.items()})


def fresh_prompts(r):
    """New drawings of the training grammars: before the turn, and after the tool result where there is one."""
    while True:
        prefix, branches = group(r)
        ids, flags = r.choice(branches)
        starts = [
            k
            for k in range(len(ids) - 2)
            if ids[k] == START and not flags[k] and ids[k + 2] == CHANNEL and flags[k + 2]
        ]
        k = r.choice(starts)
        yield list(prefix) + list(ids[: k + 2])


def sampled(run, turns, seed):
    set_phase("last")
    r, bad = random.Random(seed), []
    fresh = fresh_prompts(r)
    for n in range(turns):
        p = prompt(HELD[(n // 2 + 125 * seed) % len(HELD)]) if n % 2 else next(fresh)
        out = run.generate(p, 1.0)
        got, why = parse(out)
        if not got:
            bad.append(why)
            print("illegal:", why, repr(ENC.decode(out)[:400]), flush=True)
    print(f"temperature 1: {turns - len(bad)} of {turns} turns legal, {len(bad)} illegal")


def main():
    torch.set_num_threads(1)
    seed = int(sys.argv[4]) if sys.argv[2] == "sampled" and len(sys.argv) > 4 else 1
    run = Runner(sys.argv[1], seed)
    if sys.argv[2] == "greedy":
        questions = HELD
        if len(sys.argv) > 4:
            with open(sys.argv[4]) as f:
                questions = [json.loads(line) for line in f]
        with open(sys.argv[3] if len(sys.argv) > 3 else "/dev/null", "w") as f:
            greedy(run, f, questions)
    else:
        sampled(run, int(sys.argv[3]), seed)


if __name__ == "__main__":
    main()
