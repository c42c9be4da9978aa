"""How likely a training state misunderstands each phrase of the grammars:  python doubt.py STATE.pt OUT.json [DRAWINGS]

For DOUBT=OUT.json of dialogues.py and train.py: what is known is then drawn less often. A question counts as
understood by the probability of the thought's first sentence, which names the intent.
"""

import json
import random
import sys

import torch

from dialogues import INTENTS, MESSAGE, message, set_phase
from evaluate import prompt
from model import Grouped
from phrases import ask_intent
from validate import load


@torch.inference_mode()
def understood(m, index, items):
    """items: (question, first sentence) -> the probability of each sentence, many questions behind one prefix."""
    prefix, out = index[torch.tensor(prompt({"effort": "low", "messages": []})[:-2])], []
    for i in range(0, len(items), 64):
        asked = [message("user", q) for q, _ in items[i : i + 64]]
        all_ids = [a + message("assistant", s, channel="analysis")[:-1] for a, (_, s) in zip(asked, items[i : i + 64])]
        rows = [index[torch.tensor(ids)] for ids in all_ids]
        core = Grouped([prefix], [rows], m.c.window)
        h, at = m.hidden(torch.cat([prefix] + rows), core.pos, core), len(prefix)
        for ids, row in zip(all_ids, rows):
            first = len(ids) - 1 - ids[::-1].index(MESSAGE) + 1
            z = m.logits(h[at + first - 1 : at + len(ids) - 1])[:, 1:].log_softmax(-1)
            out.append(z.gather(1, row[first:, None] - 1).sum().exp().item())
            at += len(ids)
    return out


def main():
    torch.set_num_threads(1)
    set_phase("learn")
    m, _, index, step = load(sys.argv[1])
    r, drawings = random.Random(step), int(sys.argv[3]) if len(sys.argv) > 3 else 4
    phrases, items = [], []
    for name, t in INTENTS.items():
        for kind in ("q", "vp", "np"):
            for p in t[kind]:
                INTENTS[name] = {**t, "q": [], "vp": [], "np": [], kind: [p]}
                for _ in range(drawings):
                    q, port = ask_intent(r, name)
                    phrases.append(p)
                    items.append((q, t["think"][0].replace("$P", port)))
        INTENTS[name] = t
    doubt = dict.fromkeys(phrases, 0)
    for p, x in zip(phrases, understood(m, index, items)):
        doubt[p] += (1 - x) / drawings
    with open(sys.argv[2], "w") as f:
        json.dump({p: round(x, 3) for p, x in doubt.items()}, f, indent=0)
    print(f"step {step}: {len(doubt)} phrases, misunderstood {100 * sum(doubt.values()) / len(doubt):.1f} %")


if __name__ == "__main__":
    main()
