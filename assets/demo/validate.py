"""How many questions of valid.jsonl a training state understands:  python validate.py STATE.pt [WRONG.txt [QUESTIONS.jsonl]]

valid.jsonl is one question and its intent a line ("other": nothing about ossrun), written before the phrasings of
asked_*.py by the same author and never produced by the generator. Only the first sentence of the thought is generated
and compared: it names the intent. For choices while training; heldout.jsonl and blind.jsonl measure what is released.
"""

import json
import os
import re
import sys
from collections import Counter

import torch

from dialogues import HERE, INTENTS, OTHER_THINK, enc
from evaluate import prompt
from model import Cache, Config, Model

LONGEST = 30  # tokens of a thought's first sentence, and a few more


def load(path):
    run = torch.load(path)
    m = Model(Config(**run["cfg"]))
    m.load_state_dict(run["average"])
    m.set_quant(True)
    index = torch.zeros(201088, dtype=torch.long)
    index[run["vocab"]] = torch.arange(len(run["vocab"]))
    index[run["vocab"][0]] = 0
    return m.eval(), run["vocab"], index, run["step"]


@torch.inference_mode()
def first_sentence(m, vocab, index, ids, ends):
    cache, x, out = Cache(m.c.layers, m.c.window), index[torch.tensor(ids)], []
    while len(out) < LONGEST:
        pos = torch.arange(cache.length, cache.length + len(x))
        cache.length += len(x)
        z = m.logits(m.hidden(x, pos, cache)[-1])
        x = z[1:].argmax()[None] + 1
        out.append(vocab[int(x)])
        if out[-1] in ends:
            break
    return out


def main():
    torch.set_num_threads(1)
    m, vocab, index, step = load(sys.argv[1])
    want = {n: t["think"][0] for n, t in INTENTS.items()} | {"other": OTHER_THINK[0]}
    from dialogues import ENC

    ends = {enc("a.")[1], enc("\n")[0], 200007}
    right, total, wrong = 0, 0, Counter()
    out = open(sys.argv[2] if len(sys.argv) > 2 else os.devnull, "w")
    with open(sys.argv[3] if len(sys.argv) > 3 else os.path.join(HERE, "valid.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    for h in rows:
        p = prompt({"effort": "low", "messages": [{"role": "user", "content": h["question"]}]})
        said = ENC.decode(first_sentence(m, vocab, index, p, ends)).split("<|message|>")[-1]
        said = re.sub(r"<\|.*", "", said)
        goal = want[h["intent"]].replace("$P", "".join(re.findall(r"\d", h["question"])))
        total += 1
        if said.strip().rstrip(".") == goal.rstrip("."):
            right += 1
        else:
            wrong[h["intent"] == "other"] += 1
            out.write(f"{h['intent']}: {h['question']}\n    -> {said}\n")
    print(f"step {step}: {right}/{total} = {100 * right / total:.1f} % (wrong: {wrong[0]} of ossrun, {wrong[1]} other)")


if __name__ == "__main__":
    main()
