"""A compact gpt-oss in PyTorch, made to train a tiny model on a CPU. Equal to transformers' GptOss (see check.py).

Ids here are indices into a short list of the o200k_harmony ids that occur. Index 0 stands for every other token, whose
embedding row and logit are exactly 0. The first `out` rows are also the output matrix (tied): only tokens that the
model may ever write have logits, all other rows of lm_head are zero in the exported checkpoint.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from kernels import Attention as Attend
from kernels import FakeMXFP4, Gated, RMSNorm, Rope, linear

FULL_VOCAB = 201088
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
EDGES = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])


@dataclass
class Config:
    hidden: int = 192
    intermediate: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    experts: int = 8
    top_k: int = 2
    window: int = 128
    vocab: int = 8192  # rows of the embedding, index 0 = every unknown token
    out: int = 4096  # rows of the output matrix


def mxfp4_codes(w):
    """w [..., n] -> (magnitude index 0..7, sign, exponent) per block of 32 along the last axis."""
    b = w.float().unflatten(-1, (-1, 32))
    amax = b.abs().amax(-1, keepdim=True)
    e = torch.where(amax > 0, torch.frexp(amax / 7.0).exponent, -20)
    e = e.clamp(-20, 20).float()  # amax/2^e in [3.5, 7): at most 1 of 7 is clipped
    return torch.bucketize((b * torch.exp2(-e)).abs_(), EDGES), b < 0, e


def rope_inv_freq(c):
    """YaRN as published: theta 150000, factor 32, beta 32/1, 4096 initial positions, no truncation."""
    d, base, factor, orig = c.head_dim, 150000.0, 32.0, 4096
    freq = base ** (torch.arange(0, d, 2, dtype=torch.float) / d)
    corr = lambda rot: d * math.log(orig / (rot * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(corr(32.0), 0), min(corr(1.0), d - 1)
    keep = 1 - ((torch.arange(d // 2) - low) / (high - low)).clamp(0, 1)
    return (1 / (factor * freq)) * (1 - keep) + (1 / freq) * keep


def rope_tables(c, pos):
    a = pos.float()[:, None] * rope_inv_freq(c)
    s = 0.1 * math.log(32.0) + 1
    return a.cos() * s, a.sin() * s  # [N,D/2]


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return RMSNorm.apply(x, self.weight)


class Linear(nn.Linear):
    def forward(self, x):
        return linear(x, self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.c, self.sliding = c, i % 2 == 0
        q, k = c.heads * c.head_dim, c.kv_heads * c.head_dim
        self.q_proj, self.k_proj, self.v_proj = (Linear(c.hidden, n) for n in (q, k, k))
        self.o_proj = Linear(q, c.hidden)
        self.sinks = nn.Parameter(torch.zeros(c.heads))

    def forward(self, x, cos, sin, core):
        """x [N,H] -> [N,H]; `core` knows which rows see which (Grouped for training, Cache for generation)."""
        c, N = self.c, len(x)
        q = Rope.apply(self.q_proj(x).view(N, c.heads, -1), cos, sin) * c.head_dim**-0.5
        k = Rope.apply(self.k_proj(x).view(N, c.kv_heads, -1), cos, sin)
        v = self.v_proj(x).view(N, c.kv_heads, -1)
        return self.o_proj(core.attend(q, k, v, self.sinks, self.sliding, c).reshape(N, -1))


def softmax_sink(s, sinks):
    """s [B,kv,g,T,S], one more logit per head that only takes probability away."""
    b, kv, g, t, _ = s.shape
    z = torch.cat((s, sinks.view(1, kv, g, 1, 1).expand(b, kv, g, t, 1)), -1)
    return z.softmax(-1)[..., :-1]


class Grouped:
    """The rows of a training batch, flat: all prefixes, then all branches. Branches see their prefix and themselves."""

    def __init__(self, prefixes, branches, window):
        self.n_prefix, self.window = sum(map(len, prefixes)), window
        segments, pos, begin, row = [], [], 0, self.n_prefix
        for p in prefixes:
            segments.append((begin, len(p), 0, 0))
            pos.append(torch.arange(len(p)))
            begin += len(p)
        for (begin, length, _, _), bs in zip(list(segments), branches):
            for b in bs:
                segments.append((row, len(b), begin, length))
                pos.append(torch.arange(length, length + len(b)))
                row += len(b)
        self.segments, self.pos = torch.tensor(segments, dtype=torch.int32), torch.cat(pos)

    def attend(self, q, k, v, sinks, sliding, c):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        return Attend.apply(q, k, v, sinks, self.segments, self.window if sliding else 1 << 30)


class Cache:
    """Keys and values of one sequence, for generation. Call next_layer order: layers attend one after the other."""

    def __init__(self, layers, window):
        self.kv, self.i, self.window, self.length = [None] * layers, 0, window, 0

    def attend(self, q, k, v, sinks, sliding, c):
        if self.kv[self.i] is not None:
            k, v = torch.cat((self.kv[self.i][0], k)), torch.cat((self.kv[self.i][1], v))
        self.kv[self.i] = (k, v)
        self.i = (self.i + 1) % len(self.kv)
        S, T, g = len(k), len(q), c.heads // c.kv_heads
        d = torch.arange(S - T, S)[:, None] - torch.arange(S)
        bad = (d < 0) | (d >= (self.window if sliding else 1 << 30))
        qh = q.view(T, c.kv_heads, g, -1).permute(1, 2, 0, 3)  # [kv,g,T,D]
        s = (qh @ k.permute(1, 2, 0)[:, None]).masked_fill(bad, -1e9)
        o = softmax_sink(s[None], sinks)[0] @ v.permute(1, 0, 2)[:, None]
        return o.permute(2, 0, 1, 3)


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.quant = c, False
        self.router = nn.Linear(c.hidden, c.experts)
        self.gate_up = nn.Parameter(torch.randn(c.experts, 2 * c.intermediate, c.hidden) * c.hidden**-0.5)
        self.gate_up_bias = nn.Parameter(torch.zeros(c.experts, 2 * c.intermediate))
        self.down = nn.Parameter(torch.randn(c.experts, c.hidden, c.intermediate) * c.intermediate**-0.5)
        self.down_bias = nn.Parameter(torch.zeros(c.experts, c.hidden))
        self.balance = 0

    def forward(self, x):
        c = self.c
        logits = self.router(x)
        top, idx = logits.topk(c.top_k, -1)
        w = top.softmax(-1)
        if self.training:  # Switch-style balance loss
            load = idx.flatten().bincount(minlength=c.experts).float() / idx.numel()
            self.balance = c.experts * (load * logits.softmax(-1).mean(0)).sum()
        gu_w, d_w = (
            (FakeMXFP4.apply(self.gate_up), FakeMXFP4.apply(self.down)) if self.quant else (self.gate_up, self.down)
        )
        order = idx.flatten().argsort(stable=True)
        rows = order // c.top_k
        counts = idx.flatten().bincount(minlength=c.experts).tolist()
        ys, weights = [], zip(*(w.unbind(0) for w in (gu_w, self.gate_up_bias, d_w, self.down_bias)))
        for xe, (gu, gu_bias, down, down_bias) in zip(x[rows].split(counts), weights):
            h = Gated.apply(linear(xe, gu, gu_bias))  # rows interleaved: gate, up, gate, up ...
            ys.append(linear(h, down, down_bias))
        y = torch.cat(ys) * w.flatten()[order, None]
        return torch.zeros_like(x).index_add_(0, rows, y)


class Block(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.n1, self.n2 = Norm(c.hidden), Norm(c.hidden)
        self.attn, self.mlp = Attention(c, i), Experts(c)

    def forward(self, x, cos, sin, core):
        x = x + self.attn(self.n1(x), cos, sin, core)
        return x + self.mlp(self.n2(x))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Parameter(torch.randn(c.vocab, c.hidden) * 0.5)
        self.blocks = nn.ModuleList(Block(c, i) for i in range(c.layers))
        self.norm = Norm(c.hidden)
        nn.init.constant_(self.norm.weight, 0.15)
        for n, p in self.named_parameters():
            if n.endswith("proj.weight"):
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
            if n.endswith("o_proj.weight") or n.endswith("mlp.down"):
                p.data /= math.sqrt(2 * c.layers)
            if n.endswith("proj.bias") or n.endswith("router.bias"):
                nn.init.zeros_(p)

    @torch.no_grad()
    def relate_words(self, texts):
        """Start the rows of "Paris", " Paris" and "paris" alike, so that copying in another form is easy to learn.

        texts[i] is the text of row i, or None. A row becomes 0.8 of a vector of the bare lower-case word, a vector for
        its form (leading space, capital) and some noise of its own.
        """
        g, base, form = torch.Generator().manual_seed(7), {}, {}
        H = self.c.hidden
        for i, t in enumerate(texts):
            if t and t.strip().isalpha() and len(t.strip()) > 1:
                word, shape = t.strip().lower(), (t[0] == " ", t.strip()[0].isupper(), t.strip().isupper())
                for d, k in ((base, word), (form, shape)):
                    if k not in d:
                        d[k] = torch.randn(H, generator=g) * 0.5
                self.embed[i] = 0.8 * base[word] + 0.45 * form[shape] + 0.4 * self.embed[i]
        self.embed[0] = 0

    @torch.no_grad()
    def spell_words(self, spellings, share=0.5):
        """Add to the row of " Lisbon" the rows of "Lis" and "bon", each turned by its own fixed rotation.

        spellings: row -> the rows of the pieces that the word is made of without its leading space. The norm stays.
        """
        g, H = torch.Generator().manual_seed(11), self.c.hidden
        turn = [torch.linalg.qr(torch.randn(H, H, generator=g))[0] for _ in range(3)]
        old = self.embed.clone()
        mean = old[1:].mean(0)
        for row, pieces in spellings.items():
            new = old[row] + sum(share * turn[k] @ (old[p] - mean) for k, p in enumerate(pieces))
            self.embed[row] = new * (old[row].norm() / new.norm())

    def hidden(self, ids, pos, core):
        cos, sin = rope_tables(self.c, pos)
        x = F.embedding(ids, self.embed)
        for b in self.blocks:
            x = b(x, cos, sin, core)
        return self.norm(x)

    def logits(self, h):
        return F.linear(h, self.embed[: self.c.out])

    def loss(self, ids, core, rows, targets, weights, sample=0):
        """Cross entropy at the flat positions `rows` over the FULL vocabulary.

        Every token without an output row has logit exactly 0: index 0 stands for one of them, the rest add log(n).
        Row 0 of the embedding gets no gradient (the trainer clears it), so it stays zero. With `sample`, only the rows
        of this batch's targets and that many others, drawn at random and weighted up, stand for all rows.
        """
        h = self.hidden(ids, core.pos, core)[rows]
        if sample:
            used = torch.zeros(self.c.out, dtype=torch.bool)
            used[targets] = True
            own, other = used.nonzero().flatten(), (~used[1:]).nonzero().flatten() + 1
            drawn = other[torch.randperm(len(other))[:sample]]
            z = F.linear(h, self.embed[torch.cat((own, drawn))])
            z = torch.cat((z[:, : len(own)], z[:, len(own) :] + math.log(len(other) / len(drawn))), 1)
            place = torch.zeros(self.c.out, dtype=torch.long)
            place[own] = torch.arange(len(own))
            targets, rest = place[targets], FULL_VOCAB - self.c.out + 1
        else:
            z, rest = self.logits(h), FULL_VOCAB - self.c.out
        z = torch.cat((z, torch.full((len(z), 1), math.log(rest))), 1)
        return (F.cross_entropy(z, targets, reduction="none") * weights).sum() / weights.sum()

    def set_quant(self, on):
        for b in self.blocks:
            b.mlp.quant = on
