"""Compare the exported checkpoint with transformers' GptOssForCausalLM:  python check.py CHECKPOINT [DIALOGUES]

Both compute in float32 on the CPU (transformers dequantises the experts); printed is the largest difference of the
logits over all positions of fresh dialogues, and whether both choose the same tokens.
"""

import random
import sys

import torch
from transformers import GptOssForCausalLM, Mxfp4Config

from dialogues import UNKNOWN, group, set_phase
from model import Cache
from runner import Runner


@torch.inference_mode()
def main():
    torch.set_num_threads(1)
    set_phase("last")
    path, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    run, r = Runner(path), random.Random(4321)
    m = run.m
    reference = (
        GptOssForCausalLM.from_pretrained(
            path, dtype=torch.float32, quantization_config=Mxfp4Config(dequantize=True), attn_implementation="eager"
        )
        .float()
        .eval()
    )
    worst, largest, same, positions = 0.0, 0.0, 0, 0
    for _ in range(count):
        prefix, branches = group(r)
        ids = [t for t in list(prefix) + list(branches[0][0]) if t != UNKNOWN]
        want = reference(torch.tensor([ids])).logits[0]
        short = m.logits(
            m.hidden(run.index[torch.tensor(ids)], torch.arange(len(ids)), Cache(m.c.layers, m.c.window))
        )
        got = torch.zeros_like(want)
        got[:, run.ids[1 : m.c.out]] = short[:, 1:]
        worst, largest = max(worst, (got - want).abs().max().item()), max(largest, want.abs().max().item())
        same += (got.argmax(-1) == want.argmax(-1)).sum().item()
        positions += len(ids)
    print(
        f"{positions} positions: largest logit difference {worst:.2e} (largest logit {largest:.1f}), same choice in"
        f" {same}"
    )


if __name__ == "__main__":
    main()
