"""Read an exported checkpoint back into the compact model (float32) and generate over the full vocabulary.

  python runner.py CHECKPOINT OUT.pt   makes of released weights a run that train.py takes as INIT
"""

import json
import math
import sys

import torch
from safetensors.torch import load_file

from model import FP4, FULL_VOCAB, Cache, Config, Model

STOP = (200002, 200012, 199999)


def dequantise(blocks, scales):
    code = torch.stack((blocks & 15, blocks >> 4), -1).flatten(-2).long()
    v = FP4[code & 7] * torch.where(code > 7, -1.0, 1.0) * torch.exp2(scales.float() - 127)[..., None]
    return v.flatten(-2)


def load(path):
    """-> (model, o200k id of every row; row 0 stands for all tokens without one)"""
    with open(f"{path}/config.json") as f:
        h = json.load(f)
    t = load_file(f"{path}/model.safetensors")
    embed, head = t["model.embed_tokens.weight"], t["lm_head.weight"]
    written = head.float().abs().sum(1).nonzero().flatten()
    assert torch.equal(embed[written], head[written])
    read = embed.float().abs().sum(1)
    read[written] = 0
    ids = [-1] + written.tolist() + read.nonzero().flatten().tolist()
    c = Config(
        h["hidden_size"],
        h["intermediate_size"],
        h["num_hidden_layers"],
        h["num_attention_heads"],
        h["num_key_value_heads"],
        h["head_dim"],
        h["num_local_experts"],
        h["num_experts_per_tok"],
        h["sliding_window"],
        len(ids),
        1 + len(written),
    )
    s = {
        "norm.weight": t["model.norm.weight"],
        "embed": torch.cat((torch.zeros(1, c.hidden), embed[ids[1:]].float())),
    }
    for i in range(c.layers):
        p, b = f"model.layers.{i}.", f"blocks.{i}."
        s[b + "n1.weight"], s[b + "n2.weight"] = (
            t[p + "input_layernorm.weight"],
            t[p + "post_attention_layernorm.weight"],
        )
        for x in "qkvo":
            for k in ("weight", "bias"):
                s[b + f"attn.{x}_proj.{k}"] = t[p + f"self_attn.{x}_proj.{k}"]
        s[b + "attn.sinks"] = t[p + "self_attn.sinks"]
        for k in ("weight", "bias"):
            s[b + f"mlp.router.{k}"] = t[p + f"mlp.router.{k}"]
        e = p + "mlp.experts."
        s[b + "mlp.gate_up_bias"], s[b + "mlp.down_bias"] = t[e + "gate_up_proj_bias"], t[e + "down_proj_bias"]
        s[b + "mlp.gate_up"] = dequantise(t[e + "gate_up_proj_blocks"], t[e + "gate_up_proj_scales"])
        s[b + "mlp.down"] = dequantise(t[e + "down_proj_blocks"], t[e + "down_proj_scales"])
    m = Model(c)
    m.load_state_dict({k: v.float() for k, v in s.items()})
    return m.eval(), ids


class Runner:
    def __init__(self, path, seed=0):
        self.m, self.ids = load(path)
        self.index = torch.zeros(FULL_VOCAB, dtype=torch.long)
        self.index[torch.tensor(self.ids[1:])] = torch.arange(1, len(self.ids))
        out = self.m.c.out
        self.silent = torch.ones(FULL_VOCAB, dtype=torch.bool)  # tokens whose logit is exactly 0
        self.silent[torch.tensor(self.ids[1:out])] = False
        self.silent = self.silent.nonzero().flatten()
        self.g = torch.Generator().manual_seed(seed)

    @torch.inference_mode()
    def generate(self, prompt, temperature=0.0, limit=300):
        """Sample from all 201088 tokens, without any mask."""
        m, out = self.m, []
        cache, x = Cache(m.c.layers, m.c.window), self.index[torch.tensor(prompt)]
        while len(out) < limit:
            pos = torch.arange(cache.length, cache.length + len(x))
            cache.length += len(x)
            z = m.logits(m.hidden(x, pos, cache)[-1])
            z = torch.cat((z[1:], torch.zeros(1)))  # last: the tokens with logit 0
            if temperature == 0:
                i = int(z.argmax())
            else:
                z = z / temperature
                z[-1] += math.log(len(self.silent))
                i = int(torch.multinomial(z.softmax(-1), 1, generator=self.g))
            if i + 1 < m.c.out:
                t = self.ids[i + 1]
            else:
                t = int(self.silent[torch.randint(len(self.silent), (1,), generator=self.g)])
            out.append(t)
            if t in STOP:
                break
            x = self.index[torch.tensor([t])]
        return out


def main():
    m, ids = load(sys.argv[1])
    ids[0] = 201087  # as train.py names the row of all unknown tokens
    torch.save({"cfg": m.c.__dict__, "vocab": ids, "average": m.state_dict()}, sys.argv[2])


if __name__ == "__main__":
    main()
