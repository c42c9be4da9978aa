"""Writes the adapters beside this file and what PEFT computes with them, for TestAdaptersArePEFTs:
NAME/adapter_config.json and adapter_model.safetensors as save_pretrained writes them, and
NAME/golden with logits of testdata/model/T1. The numbers are drawn, not trained.

"merged" are logits of the model that merge_and_unload gives, its weights rounded to bfloat16 once,
which is what ossrun computes with; "unmerged" those of PEFT's forward pass in float32, with the
adapter beside the weights: they differ by that rounding.

experts/merged.safetensors has, for ossrun import --lora, every eighth row of some experts' matrices
[in, out] as merge_and_unload gives them, merged in float64.

    pip install torch==2.13.0 transformers==5.19.0 peft==0.21.2 && python3 oracle.py
"""

import copy
import json
import pathlib

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Mxfp4Config

HERE = pathlib.Path(__file__).resolve().parent
T1 = HERE.parents[2] / "testdata/model/T1"
POSITIONS = [0, 9, 18, 30]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]

VARIANTS = {
    "q": dict(target_modules=["q_proj"]),
    "k": dict(target_modules=["k_proj"]),
    "v": dict(target_modules=["v_proj"]),
    "o": dict(target_modules=["o_proj"]),
    "router": dict(target_parameters=["mlp.router.weight"]),
    "lm_head": dict(target_modules=["lm_head"]),
    "patterns": dict(target_modules=ATTENTION, use_rslora=True,
                     rank_pattern={"q_proj": 2, r"model\.layers\.[13]\.self_attn\.v_proj": 3},
                     alpha_pattern={"o_proj": 3, "layers.0.self_attn.k_proj": 11.5}),
    "saved": dict(target_modules=["v_proj"], modules_to_save=["lm_head", "norm"]),
    "bias": dict(target_modules=["q_proj", "o_proj"], bias="lora_only"),
}


def base():
    model = AutoModelForCausalLM.from_pretrained(
        T1 / "checkpoint", quantization_config=Mxfp4Config(dequantize=True),
        dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    return model.float().eval()


def drawn(model, seed):
    """Gives every number that training would change another value."""
    random = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        noise = torch.randn(p.shape, generator=random)
        with torch.no_grad():
            if ".lora_" in name:
                p.copy_(noise * 0.3 / p.shape[-1] ** 0.5)
            else:
                p.add_(noise * 0.02)
    return model


@torch.no_grad()
def logits(model, tokens):
    return model(torch.tensor([tokens.tolist()]), use_cache=False).logits[0, POSITIONS].float()


def merged(model, **options):
    """PEFT's own merge, in float64 so that no sum's order decides a rounding to bfloat16."""
    model = copy.deepcopy(model).double().merge_and_unload(**options)
    for p in model.parameters():
        p.data = p.data.bfloat16()
    return model.float()


def write(name, tokens, after, unmerged):
    golden = HERE / name / "golden"
    golden.mkdir(parents=True, exist_ok=True)
    none = torch.zeros(0)
    arrays = {}
    for case, values in {"merged": after, "unmerged": unmerged}.items():
        arrays |= {f"{case}.tokens": tokens, f"{case}.greedy": none.int(),
                   f"{case}.positions": torch.tensor(POSITIONS, dtype=torch.int32),
                   f"{case}.logits": values.contiguous(), f"{case}.greedy_gap": none.float()}
    save_file({k: v.clone() for k, v in arrays.items()}, golden / "logits.safetensors")
    (golden / "cases.json").write_text(
        json.dumps({"cases": [{"name": "merged"}, {"name": "unmerged"}]}) + "\n")


@torch.no_grad()
def experts():
    config = LoraConfig(r=2, lora_alpha=6, task_type="CAUSAL_LM", target_modules=["q_proj"],
                        target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
                        rank_pattern={"experts.down_proj": 3}, alpha_pattern={"experts.down_proj": 4})
    model = drawn(get_peft_model(base(), config), 77).eval()
    model.peft_config["default"].base_model_name_or_path = "T1"
    folder = HERE / "experts"
    model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_model.safetensors"
    path.chmod(0o644)
    save_file({k: v.bfloat16() for k, v in load_file(path).items()}, path)
    for name, value in load_file(path).items():
        if ".layers.0." in name:
            print(name, list(value.shape))
    model = PeftModel.from_pretrained(base(), folder).eval()
    model = model.double().merge_and_unload()
    kept = {}
    for layer in (0, 3):
        of = model.model.layers[layer].mlp.experts
        for expert in (0, 7):
            for matrix in ("gate_up_proj", "down_proj"):
                kept[f"{layer}.{expert}.{matrix}"] = getattr(of, matrix)[expert, ::8].float().contiguous()
    save_file(kept, folder / "merged.safetensors")


def main():
    tokens = load_file(T1 / "golden/logits.safetensors")["len31.tokens"].int()
    before = logits(base(), tokens)
    for seed, (name, options) in enumerate(VARIANTS.items()):
        config = LoraConfig(r=4, lora_alpha=6, task_type="CAUSAL_LM", **options)
        model = drawn(get_peft_model(base(), config), seed).eval()
        model.peft_config["default"].base_model_name_or_path = "T1"
        model.save_pretrained(HERE / name, save_embedding_layers=False)
        (HERE / name / "README.md").unlink(missing_ok=True)
        path = HERE / name / "adapter_model.safetensors"
        path.chmod(0o644)
        if name == "saved":  # half the size
            save_file({k: v.bfloat16() for k, v in load_file(path).items()}, path)
            model = PeftModel.from_pretrained(base(), HERE / name).eval()
        unmerged = logits(model, tokens)
        after = logits(merged(model), tokens)
        print(name, "changes logits by", (unmerged - before).abs().max().item(),
              "rounding by", (unmerged - after).abs().max().item())
        write(name, tokens, after, unmerged)

    # two adapters at once, one of them halved
    model = PeftModel.from_pretrained(base(), HERE / "q", adapter_name="one")
    model.load_adapter(HERE / "patterns", adapter_name="two")
    model.base_model.set_adapter(["one", "two"])
    for module in model.modules():
        scaling = getattr(module, "scaling", None)
        if isinstance(scaling, dict) and "two" in scaling:
            scaling["two"] *= 0.5
    model.eval()
    unmerged = logits(model, tokens)
    after = logits(merged(model, adapter_names=["one", "two"]), tokens)
    write("q-and-half-patterns", tokens, after, unmerged)


if __name__ == "__main__":
    experts()
    main()
