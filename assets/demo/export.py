"""Write the trained model as a Hugging Face gpt-oss checkpoint:  python export.py run.pt OUT_DIR

Expert weights become MXFP4 blocks and scales (exactly the values trained with), all else BF16. embed_tokens and lm_head
have all 201088 rows: rows of unknown tokens are zero in both, rows of tokens that are only read are zero in lm_head.
The embedding keeps 5 of the 7 mantissa bits of BF16, so that the packed file is smaller; the evaluation
reads that file.
"""

import json
import os
import sys
import textwrap

import torch
from safetensors.torch import save_file

from model import FULL_VOCAB, Config, mxfp4_codes


def bf16(x, bits=7):
    """Round to BF16; fewer bits: round to that many mantissa bits (still BF16)."""
    if bits < 7:
        drop = 23 - bits
        i = x.float().contiguous().view(torch.int32)
        x = ((i + (1 << (drop - 1))) >> drop << drop).view(torch.float32)
    return x.to(torch.bfloat16).contiguous()


def mxfp4(w):
    i, s, e = mxfp4_codes(w)
    code = (i + 8 * (s & (i > 0))).to(torch.uint8)  # [.., blocks, 32]
    return (code[..., 0::2] | code[..., 1::2] << 4).contiguous(), (e.squeeze(-1) + 127).to(torch.uint8).contiguous()


def config(c):
    return {
        "architectures": ["GptOssForCausalLM"],
        "attention_bias": True,
        "attention_dropout": 0.0,
        "eos_token_id": 200002,
        "experts_per_token": c.top_k,
        "head_dim": c.head_dim,
        "hidden_act": "silu",
        "hidden_size": c.hidden,
        "initial_context_length": 4096,
        "initializer_range": 0.02,
        "intermediate_size": c.intermediate,
        "layer_types": ["sliding_attention" if i % 2 == 0 else "full_attention" for i in range(c.layers)],
        "max_position_embeddings": 131072,
        "model_type": "gpt_oss",
        "num_attention_heads": c.heads,
        "num_experts_per_tok": c.top_k,
        "num_hidden_layers": c.layers,
        "num_key_value_heads": c.kv_heads,
        "num_local_experts": c.experts,
        "output_router_logits": False,
        "pad_token_id": 199999,
        "quantization_config": {
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
            "quant_method": "mxfp4",
        },
        "rms_norm_eps": 1e-05,
        "rope_scaling": {
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "factor": 32.0,
            "original_max_position_embeddings": 4096,
            "rope_type": "yarn",
            "truncate": False,
        },
        "rope_theta": 150000,
        "router_aux_loss_coef": 0.9,
        "sliding_window": c.window,
        "swiglu_limit": 7.0,
        "tie_word_embeddings": False,
        "transformers_version": "4.55.0.dev0",
        "use_cache": True,
        "vocab_size": FULL_VOCAB,
    }


GENERATION = {
    "bos_token_id": 199998,
    "do_sample": True,
    "eos_token_id": [200002, 199999, 200012],
    "pad_token_id": 199999,
    "transformers_version": "4.55.0.dev0",
}


def vocabulary(ids, out):
    """The tokens that have a row, as text: those the model can write (and so copy), then those it only reads."""
    from dialogues import ENC

    text = "The tokens of o200k_harmony that the demo model knows, as JSON strings. All others look alike to it.\n"
    for title, part in (("It can read and write", ids[1:out]), ("It can only read", ids[out:])):
        words = sorted(json.dumps(ENC.decode([t]), ensure_ascii=False) for t in part)
        text += (
            f"\n{title} ({len(words)}):\n"
            + textwrap.fill(" ".join(w.replace(" ", "\0") for w in words), 118).replace("\0", " ")
            + "\n"
        )
    return text


def main():
    run, out = torch.load(sys.argv[1]), sys.argv[2]
    c, ids, s, t = Config(**run["cfg"]), run["vocab"], run["average"], {}
    for i in range(c.layers):
        p, b = f"model.layers.{i}.", f"blocks.{i}."
        t[p + "input_layernorm.weight"], t[p + "post_attention_layernorm.weight"] = (
            s[b + "n1.weight"],
            s[b + "n2.weight"],
        )
        for x in "qkvo":
            for k in ("weight", "bias"):
                t[p + f"self_attn.{x}_proj.{k}"] = s[b + f"attn.{x}_proj.{k}"]
        t[p + "self_attn.sinks"] = s[b + "attn.sinks"]
        for k in ("weight", "bias"):
            t[p + f"mlp.router.{k}"] = s[b + f"mlp.router.{k}"]
        t[p + "mlp.experts.gate_up_proj_bias"], t[p + "mlp.experts.down_proj_bias"] = (
            s[b + "mlp.gate_up_bias"],
            s[b + "mlp.down_bias"],
        )
    t["model.norm.weight"] = s["norm.weight"]
    t = {k: bf16(v) for k, v in t.items()}
    rows = bf16(s["embed"][1:], 5)
    embed = torch.zeros(FULL_VOCAB, c.hidden, dtype=torch.bfloat16)
    embed[ids[1:]] = rows
    head = torch.zeros(FULL_VOCAB, c.hidden, dtype=torch.bfloat16)
    head[ids[1 : c.out]] = rows[: c.out - 1]
    t["model.embed_tokens.weight"], t["lm_head.weight"] = embed, head
    for i in range(c.layers):
        for old, new in (("gate_up", "gate_up_proj"), ("down", "down_proj")):
            k = f"model.layers.{i}.mlp.experts.{new}"
            t[k + "_blocks"], t[k + "_scales"] = mxfp4(s[f"blocks.{i}.mlp.{old}"])
    os.makedirs(out, exist_ok=True)
    save_file(t, f"{out}/model.safetensors", {"format": "pt"})
    for name, obj in (("config.json", config(c)), ("generation_config.json", GENERATION)):
        with open(f"{out}/{name}", "w") as f:
            f.write(json.dumps(obj, indent=2) + "\n")
    with open(f"{out}/vocabulary.txt", "w") as f:
        f.write(vocabulary(ids, c.out))
    print(f"step {run['step']}, {run['seen']} tokens seen, {len(ids) - 1} rows, {c.out - 1} of them written")


if __name__ == "__main__":
    main()
