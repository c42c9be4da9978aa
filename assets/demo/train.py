"""Train on the files of dialogues.py:  python train.py STEPS OUT.pt FILE.pkl...

Two processes with one thread each (faster on two cores than one process with two threads), gradients averaged with
gloo. Everything follows the seed and the step count, never the clock. OUT.pt is written every SAVE steps with the
optimizer, so the same command goes on where it stopped. INIT=other.pt starts from another run's averaged weights;
words that are new in the files get rows of their own (PRUNE=1: and words that are rare now lose theirs). WIDTH and
LAYERS let it grow: the new parts add nothing at first. In place of files a phase of dialogues.py may be named: then
new groups are drawn all the time, and none is seen twice. PAUSE=FILE: no step begins while another holds a lock on it.
"""

import collections
import fcntl
import json
import math
import os
import pickle
import random
import re
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

from kernels import SHORT_FLOATS
from model import Config, Grouped, Model

UNKNOWN = 201087
WORLD = int(os.environ.get("WORLD", 2))  # processes
LR = float(os.environ.get("LR", 2e-3))
SEED = int(os.environ.get("SEED", 1))
TOKENS = int(os.environ.get("TOKENS", 2000))  # positions per step and process, without padding
QUANT_AT = int(os.environ.get("QUANT_AT", 800))  # from this step on the experts are in MXFP4
AVERAGE_AT = int(os.environ.get("AVERAGE_AT", QUANT_AT))  # from this step on the weights are averaged
DECAY_AT = int(os.environ.get("DECAY_AT", 1 << 30))  # from this step on the rate falls linearly until the last step
SHORT = float(os.environ.get("SHORT", 0.65))  # share of the groups whose turns are cut by `shorten`
CUT = int(os.environ.get("CUT", 20))  # tokens that `shorten` leaves after the question; 5 are the header
FULL_UNTIL = int(os.environ.get("FULL_UNTIL", 200))  # the first and last steps use the full softmax
WEIGH = os.environ.get("WEIGH") == "1"  # calls count more, see `weigh`
KEEP = float(os.environ.get("KEEP", 1))  # share of the groups without any call that is used
PRUNE = os.environ.get("PRUNE") == "1"  # words that are only read keep a row if they are often read or in asked_*.txt
FULL_LAST = int(os.environ.get("FULL_LAST", 300))
SPELL = os.environ.get("SPELL") == "1"  # give the rows of words their spelling, see `spell_words`
EMBED = float(os.environ.get("EMBED", 1))  # the embedding's share of the learning rate
MUON = os.environ.get("MUON") == "1"  # for the experts too
WIDTH = int(os.environ.get("WIDTH", 0))  # of the experts; 0: as INIT has it, or the default
LAYERS = int(os.environ.get("LAYERS", 0))
PAUSE = os.environ.get("PAUSE")
SAMPLE = 600  # softmax over this many random rows in the middle of the run
SAVE = 100


def vocabulary(groups, names, init):
    """-> o200k ids: index 0 unknown, then what the model may write, then what it only reads."""
    read, write = collections.Counter(), collections.Counter()
    for prefix, branches in groups:
        read.update(prefix)
        for ids, flags in branches:
            read.update(ids)
            write.update(t for t, f in zip(ids, flags) if f)
    old = init["vocab"][1:] if init else []
    spoken = grammar_tokens() if PRUNE else set()
    out = set(t for t, n in write.items() if n >= 5) | set(names) | set(old[: init["cfg"]["out"] - 1] if init else [])
    if PRUNE:
        more = set(t for t, n in read.items() if n >= 16 or n >= 3 and t in spoken)
    else:
        more = set(t for t, n in read.items() if n >= 12) | set(old)
    return [UNKNOWN] + sorted(out - {UNKNOWN}) + sorted(more - out - {UNKNOWN}), 1 + len(out - {UNKNOWN})


def grammar_tokens():
    """Tokens of the words in asked_*.txt and synonyms.py: rare in the data, but what users say."""
    from dialogues import ENC
    from more import asked
    from synonyms import GROUPS, NAMES

    ids = set()
    for w in set(re.findall(r"[A-Za-z][A-Za-z'-]*", " ".join(line for text in asked().values() for line in text) + GROUPS + NAMES)):
        ids.update(ENC.encode(" " + w))
        for form in (w, w.capitalize(), " " + w.capitalize()):
            if len(ENC.encode(form)) == 1:
                ids.update(ENC.encode(form))
    return ids


def name_tokens(enc):
    """Tokens of everything that may have to be copied, with and without a leading space, and all numbers."""
    from names import ITEMS, PEOPLE, PLACES, WORDS
    from topics import COMPANIES, CURRENCY, ROOMS, SKY, SONGS

    ids = set()
    for n in PLACES + PEOPLE + ITEMS + WORDS + ROOMS + SKY + COMPANIES + CURRENCY + SONGS:
        ids.update(enc.encode(n) + enc.encode(" " + n))
    for n in range(1000):
        ids.update(enc.encode(str(n)) + enc.encode(f"{n:02d}") + enc.encode(f"{n:03d}"))
    return ids


def spellings(enc, index, vocab, n_out):
    """Rows of words that are one token with a leading space and two or three without -> the rows of those pieces."""
    out = {}
    for row in range(1, len(vocab)):
        text = enc.decode([vocab[row]]) if vocab[row] < 199998 else ""
        if text[:1] == " " and text[1:].isalpha():
            pieces = [int(index[t]) for t in enc.encode(text[1:])]
            if 2 <= len(pieces) <= 3 and all(0 < p < n_out for p in pieces):
                out[row] = pieces
    return out


def batch(groups, window):
    """-> (ids, layout, flat rows whose next token is a target, those targets, their weights)"""
    core = Grouped([p for p, _ in groups], [[b[0] for b in bs] for _, bs in groups], window)
    ids = np.concatenate([p for p, _ in groups] + [b[0] for _, bs in groups for b in bs])
    flags = np.concatenate([np.zeros(core.n_prefix, np.uint8)] + [b[1] for _, bs in groups for b in bs])
    at = np.flatnonzero((flags > 0) & (ids > 0))  # the token before a target is never of another branch: flags[0] = 0
    return (
        torch.from_numpy(ids),
        core,
        torch.from_numpy(at - 1),
        torch.from_numpy(ids[at]),
        torch.from_numpy(flags[at]).float(),
    )


def batches(pools, rng, tokens):
    """Groups of similar length together; the order depends on the seed alone."""
    size = lambda g: len(g[0]) + sum(len(b[0]) for b in g[1])
    for pool in pools:
        pool = sorted(pool, key=lambda g: (len(g[0]) // 40, max(len(b[0]) for b in g[1])))
        out, now, n = [], [], 0
        for g in pool:
            if now and n + size(g) > tokens:
                out.append(now)
                now, n = [], 0
            now.append(g)
            n += size(g)
        out.append(now)
        rng.shuffle(out)
        yield from out


def shuffled(groups, rng):
    """The groups of the files, 600 at a time, without end."""
    while True:
        rng.shuffle(groups)
        for i in range(0, len(groups), 600):
            yield groups[i : i + 600]


def drawn(rng, ready):
    """New groups, 600 at a time, without end."""
    from dialogues import group

    while True:
        yield [ready(*group(rng), rng) for _ in range(600)]


def shorten(ids, flags):
    """The beginning of a turn, up to what is hard to learn: the first words of the thought, or a call with its thought.

    The answers are few and soon known by heart; most of the time is better spent on telling questions apart.
    """
    call = np.flatnonzero((ids == 200012) & flags)
    if len(call):
        end = call[0] + 1
    elif (ids == 200012).any():
        return ids, flags  # the call was given, so what is asked for is the answer
    else:
        ends = np.flatnonzero(ids == 200007)
        end = min(ends[1] + 9, ends[0] + CUT)
    return ids[:end], flags[:end]


def weigh(ids, flags):
    """How much each target counts: in turns with a call the thought and answer double, the call's body six times."""
    w = flags.astype(np.uint8)
    if (ids == 200012).any():
        w *= 2
        for k in np.flatnonzero(ids == 200008):  # <|message|> after `json` or ` code`: the body of a call
            if ids[k - 1] in (4108, 3490):
                w[k + 1 : k + 2 + np.flatnonzero(ids[k:] == 200012)[0]] *= 3
    return w


def grow(cfg, state, model):
    """INIT's weights in a model with wider experts or more layers: what is new writes zeros at first."""
    new = model.state_dict()
    for name, w in state.items():
        if new[name].shape == w.shape:
            new[name] = w
        else:  # the experts' new units: random weights in, zero out
            if name.endswith("mlp.down"):
                new[name].zero_()
            new[name][tuple(slice(k) for k in w.shape)] = w
    for i in range(cfg["layers"], model.c.layers):
        for part in ("attn.o_proj.weight", "mlp.down"):
            new[f"blocks.{i}.{part}"].zero_()
    model.load_state_dict(new)


class Muon:
    """Momentum with an orthogonal update (Newton-Schulz), for matrices; shapes [n, rows, columns].

    Every process does its share of the matrices, then they exchange the updates.
    """

    def __init__(self, stacks):
        self.stacks, self.m = stacks, [[torch.zeros_like(p) for p in s] for s in stacks]
        self.flat = torch.zeros(sum(p.numel() for s in stacks for p in s))
        sizes = [len(s) * s[0].numel() for s in stacks]
        self.updates = [f.view(len(s), *s[0].shape) for s, f in zip(stacks, self.flat.split(sizes))]

    @torch.no_grad()
    def step(self, lr, decay, rank):
        self.flat.zero_()
        for s, ms, update in zip(self.stacks, self.m, self.updates):
            for p, m in zip(s, ms):
                m.mul_(0.95).add_(p.grad)
            x = torch.stack([p.grad + 0.95 * m for p, m in zip(s[rank::WORLD], ms[rank::WORLD])])
            tall = x.shape[1] > x.shape[2]
            x = x.mT if tall else x
            x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
            if SHORT_FLOATS:
                x = x.to(torch.bfloat16)
            for a, b, c in ((3.4445, -4.7750, 2.0315),) * 5:
                y = x @ x.mT
                x = a * x + (b * y + c * y @ y) @ x
            update[rank::WORLD] = x.mT if tall else x
        dist.all_reduce(self.flat)
        for s, update in zip(self.stacks, self.updates):
            for p, u in zip(s, update):
                p.mul_(1 - lr * decay).add_(u, alpha=-lr * 0.2 * max(p.shape) ** 0.5)

    def state_dict(self):
        return self.m

    def load_state_dict(self, m):
        self.m = m


def main():
    steps, out, files = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    groups, fresh = [], not files[0].endswith(".pkl")
    if fresh:
        from dialogues import group, set_phase

        set_phase(files[0])
        r = random.Random(SEED)
        if not os.path.exists(out):
            groups = [group(r) for _ in range(3500)]  # which words have a row
    else:
        for f in files:
            with open(f, "rb") as h:
                groups += pickle.load(h)
    init = torch.load(os.environ["INIT"]) if os.environ.get("INIT") else None
    from dialogues import ENC

    if os.path.exists(out):  # an earlier run of this command
        run = torch.load(out)
        vocab, n_out = run["vocab"], run["cfg"]["out"]
    else:
        vocab, n_out = vocabulary(groups, name_tokens(ENC), init)
    index = np.zeros(201088, np.int64)
    index[vocab] = np.arange(len(vocab))
    rng = random.Random(SEED)
    if KEEP < 1:
        groups = [g for g in groups if any(200012 in i for i, _ in g[1]) or rng.random() < KEEP]

    def ready(prefix, bs, rng):
        short, out = rng.random() < SHORT, []
        for i, f in bs:
            i, f = np.array(i), np.frombuffer(f, np.uint8).astype(bool)
            if short:
                i, f = shorten(i, f)
            w = weigh(i, f) if WEIGH else f.astype(np.uint8)
            i = index[i]
            out.append((i, w * (i < n_out)))  # tokens that cannot be written are no targets
        return index[np.array(prefix)], out

    for n, g in enumerate([] if fresh else groups):
        groups[n] = ready(*g, rng)
    rank = 0
    for k in range(1, WORLD):
        if rank == 0 and os.fork() == 0:
            rank = k
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    sync = f"{os.path.abspath(out)}.sync{os.getppid() if rank else os.getpid()}"
    dist.init_process_group("gloo", init_method="file://" + sync, rank=rank, world_size=WORLD)
    groups = groups[rank::WORLD]
    say = print if rank == 0 else lambda *a, **k: None

    old = init["cfg"] if init else {}
    cfg = Config(**{**old, "vocab": len(vocab), "out": n_out})
    cfg.intermediate, cfg.layers = WIDTH or cfg.intermediate, LAYERS or cfg.layers
    model = Model(cfg)
    model.relate_words([None] + [ENC.decode([t]) for t in vocab[1:]])
    if init:
        embed = model.embed.detach().clone()
        kept = np.array([k for k, t in enumerate(init["vocab"]) if index[t]])
        embed[index[np.array(init["vocab"])[kept]]] = init["average"]["embed"][kept]
        grow(old, {**init["average"], "embed": embed}, model)
    if SPELL:
        model.spell_words(spellings(ENC, index, vocab, n_out))
    say(cfg, sum(p.numel() for p in model.parameters()), "parameters,", len(groups) * WORLD, "groups", flush=True)

    named = dict(model.named_parameters())
    params = list(named.values())
    flat = torch.zeros(sum(p.numel() for p in params))
    for p, g in zip(params, flat.split([p.numel() for p in params])):
        p.grad = g.view_as(p)  # all gradients in one vector: one all-reduce a step
    stacks = collections.defaultdict(list)
    chosen = set()
    for n, p in named.items():
        if n.endswith("proj.weight"):
            chosen.add(id(p))
            stacks[tuple(p.shape)].append(p)
        elif MUON and n.endswith(("mlp.gate_up", "mlp.down")):
            chosen.add(id(p))
            for w, g in zip(p.detach(), p.grad):
                w.grad = g
                stacks[tuple(w.shape)].append(w)
    muon = Muon(list(stacks.values()))
    decay = [p for n, p in named.items() if p.ndim >= 2 and n != "embed" and "bias" not in n and id(p) not in chosen]
    rest = [p for p in params if id(p) not in {id(d) for d in decay} | chosen and p is not model.embed]
    opt = torch.optim.AdamW(
        [
            {"params": decay, "weight_decay": 0.05},
            {"params": rest, "weight_decay": 0},
            {"params": [model.embed], "weight_decay": 0, "share": EMBED},
        ],
        lr=LR,
        betas=(0.9, 0.98),
        fused=True,
    )
    step, seen, average, n_average = 0, 0, None, 0
    if os.path.exists(out):
        model.load_state_dict(run["model"])
        opt.load_state_dict(run["opt"])
        muon.load_state_dict(run["muon"])
        step, seen, average, n_average = run["step"], run["seen"], run["average"], run["n_average"]
        say("going on at step", step, flush=True)

    def save():
        if rank == 0:
            torch.save(
                {
                    "cfg": cfg.__dict__,
                    "vocab": vocab,
                    "model": model.state_dict(),
                    "opt": opt.state_dict(),
                    "muon": muon.state_dict(),
                    "step": step,
                    "seen": seen,
                    "average": average or model.state_dict(),
                    "n_average": n_average,
                },
                out + ".tmp",
            )
            os.replace(out + ".tmp", out)

    rng = random.Random(SEED * 1000 + rank + step * 1000003 * fresh)
    stream = batches(drawn(rng, ready) if fresh else shuffled(groups, rng), rng, TOKENS)
    for _ in range(0 if fresh else step):  # skip what an earlier run of this command has seen
        next(stream)
    lock = open(PAUSE, "a") if PAUSE else None
    start, first, avg = time.time(), seen, None
    model.train()
    while step < int(os.environ.get("STOP", steps)):  # STOP: end earlier than the schedule says
        if lock and rank == 0:
            fcntl.flock(lock, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)
        model.set_quant(step >= QUANT_AT)
        ids, core, rows, targets, weights = batch(next(stream), cfg.window)
        torch.manual_seed((SEED * 1000003 + step) * WORLD + rank)
        loss = model.loss(ids, core, rows, targets, weights, SAMPLE if FULL_UNTIL <= step < steps - FULL_LAST else 0)
        (loss + 0.01 * sum(b.mlp.balance for b in model.blocks) / cfg.layers).backward()
        model.embed.grad[0] = 0
        dist.all_reduce(flat)
        flat.div_(WORLD)
        norm = flat.norm().item()
        flat.mul_(min(1, 1 / (norm + 1e-6)))
        left = (steps - step) / max(1, steps - DECAY_AT) if step >= DECAY_AT else 1
        lr = LR * min(1, (step + 1) / 60) * max(0.01, left)  # warm-up, a plateau, then linearly down
        for g in opt.param_groups:
            g["lr"] = lr * g.get("share", 1)
        opt.step()
        muon.step(lr, 0.05, rank)
        flat.zero_()
        step += 1
        seen += WORLD * len(ids)
        if step % 10 == 0 and step > AVERAGE_AT:  # running average of the weights over about 200 steps
            s = {k: v.detach().clone() for k, v in model.state_dict().items()}
            if average is None:
                average = s
            else:
                n_average += 1
                for k, v in average.items():
                    v.lerp_(s[k], 1 / min(20, n_average + 1))
        avg = loss.item() if avg is None else 0.98 * avg + 0.02 * loss.item()
        if step % 50 == 0:
            t = time.time() - start
            say(
                f"step {step} {t:.0f} s {(seen - first) / t:.0f} tok/s {seen / 1e6:.2f} Mtok lr {lr:.5f} loss"
                f" {avg:.4f} norm {norm:.2f} balance"
                f" {sum(b.mlp.balance.item() for b in model.blocks) / cfg.layers:.2f}",
                flush=True,
            )
        if step % SAVE == 0:
            save()
    save()
    say(json.dumps({"steps": step, "tokens": seen, "seconds": round(time.time() - start), "loss": avg}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
