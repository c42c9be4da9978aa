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
    e = torch.where(amax > 0, torch.floor(torch.log2(amax.clamp_min(1e-30) / 7.0)) + 1, torch.full_like(amax, -20.0))
    e = e.clamp(-20, 20)  # amax/2^e in (3.5, 7]: at most 1 of 7 is clipped
    return torch.bucketize((b * torch.exp2(-e)).abs_(), EDGES), b < 0, e


def mxfp4_round(w):
    i, s, e = mxfp4_codes(w)
    v = FP4[i] * torch.exp2(e)
    return torch.where(s, -v, v).flatten(-2).to(w.dtype)


def fake_mxfp4(w):  # the gradient passes straight through
    return w + (mxfp4_round(w.detach()) - w.detach())


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
    return (a.cos() * s)[:, None], (a.sin() * s)[:, None]  # [N,1,D/2]


def rope(x, cos, sin):  # x [N,heads,D]
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.c, self.sliding = c, i % 2 == 0
        q, k = c.heads * c.head_dim, c.kv_heads * c.head_dim
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(c.hidden, n) for n in (q, k, k))
        self.o_proj = nn.Linear(q, c.hidden)
        self.sinks = nn.Parameter(torch.zeros(c.heads))

    def forward(self, x, cos, sin, core):
        """x [N,H] -> [N,H]; `core` knows which rows see which (Grouped for training, Cache for generation)."""
        c, N = self.c, len(x)
        q = rope(self.q_proj(x).view(N, c.heads, -1), cos, sin) * c.head_dim**-0.5
        k = rope(self.k_proj(x).view(N, c.kv_heads, -1), cos, sin)
        v = self.v_proj(x).view(N, c.kv_heads, -1)
        return self.o_proj(core.attend(q, k, v, self.sinks, self.sliding, c).reshape(N, -1))


def softmax_sink(s, sinks):
    """s [B,kv,g,T,S], one more logit per head that only takes probability away."""
    b, kv, g, t, _ = s.shape
    z = torch.cat((s, sinks.view(1, kv, g, 1, 1).expand(b, kv, g, t, 1)), -1)
    return z.softmax(-1)[..., :-1]


class Grouped:
    """The rows of a training batch: G prefixes of up to P tokens, then for each B branches of up to L tokens.

    Branches see their prefix and themselves. All positions that are not padding lie flat behind each other.
    """

    def __init__(self, prefixes, branches, window):
        G, B = len(prefixes), len(branches[0])
        P, L = max(map(len, prefixes)), max(len(b) for bs in branches for b in bs)
        self.shape = G, B, P, L
        plen = torch.tensor([len(p) for p in prefixes])
        blen = torch.tensor([[len(b) for b in bs] for bs in branches])
        p, l = torch.arange(P), torch.arange(L)
        self.p_rows = (p < plen[:, None]).flatten().nonzero().flatten()  # flat -> padded [G*P]
        self.b_rows = (l < blen[..., None]).flatten().nonzero().flatten()  # flat -> padded [G*B*L]
        self.n_prefix = len(self.p_rows)
        self.pos = torch.cat((self.p_rows % P, plen[self.b_rows // (B * L)] + self.b_rows % L))
        d_pp, d_ll = p[:, None] - p, l[:, None] - l
        d_bp = plen[:, None, None] + l[:, None] - p  # [G,L,P]
        self.masks = []
        for w in (1 << 30, window):
            big = lambda bad: torch.zeros(bad.shape).masked_fill_(bad, -1e9)
            pp = big((d_pp < 0) | (d_pp >= w))
            bp = big((d_bp >= w) | (p >= plen[:, None, None])).repeat(1, B, 1)  # [G,B*L,P]
            ll = big((d_ll < 0) | (d_ll >= w))
            self.masks.append((pp, bp[:, None, None], ll))

    def attend(self, q, k, v, sinks, sliding, c):
        G, B, P, L = self.shape
        kv, g, D = c.kv_heads, c.heads // c.kv_heads, c.head_dim
        pp, bp, ll = self.masks[sliding]
        n = self.n_prefix

        def pad(x, rows, size):  # flat -> [size, heads, D]
            return x.new_zeros(size, *x.shape[1:]).index_copy(0, rows, x)

        split = lambda x, t: x.view(-1, t, kv, x.shape[-2] // kv, D).permute(0, 2, 3, 1, 4)  # [*,kv,g,t,D]
        qp, kp, vp = (split(pad(x[:n], self.p_rows, G * P), P) for x in (q, k, v))
        qb, kb, vb = (split(pad(x[n:], self.b_rows, G * B * L), L) for x in (q, k, v))  # [G*B,...,L,D]
        kp, vp, kb, vb = (x[:, :, 0] for x in (kp, vp, kb, vb))  # [*,kv,t,D]
        s = (qp.reshape(G, kv, g * P, D) @ kp.transpose(2, 3)).view(G, kv, g, P, P) + pp
        o = softmax_sink(s, sinks).view(G, kv, g * P, P) @ vp
        op = o.view(G, kv, g, P, D).permute(0, 3, 1, 2, 4).reshape(G * P, kv * g, D)[self.p_rows]
        qg = qb.reshape(G, B, kv, g, L, D).permute(0, 2, 3, 1, 4, 5)  # [G,kv,g,B,L,D]
        s1 = (qg.reshape(G, kv, g * B * L, D) @ kp.transpose(2, 3)).view(G, kv, g, B * L, P) + bp
        s2 = (qb.reshape(G * B, kv, g * L, D) @ kb.transpose(2, 3)).view(G, B, kv, g, L, L) + ll
        s2 = s2.permute(0, 2, 3, 1, 4, 5).reshape(G, kv, g, B * L, L)
        w = softmax_sink(torch.cat((s1, s2), -1), sinks)
        o1 = (w[..., :P].reshape(G, kv, g * B * L, P) @ vp).view(G, kv, g, B, L, D)
        w2 = w[..., P:].reshape(G, kv, g, B, L, L).permute(0, 3, 1, 2, 4, 5)  # [G,B,kv,g,L,L]
        o2 = (w2.reshape(G * B, kv, g * L, L) @ vb).view(G, B, kv, g, L, D)
        o = o1.permute(0, 3, 4, 1, 2, 5) + o2.permute(0, 1, 4, 2, 3, 5)  # [G,B,L,kv,g,D]
        ob = o.reshape(G * B * L, kv * g, D)[self.b_rows]
        return torch.cat((op, ob))


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
        gu_w, d_w = (fake_mxfp4(self.gate_up), fake_mxfp4(self.down)) if self.quant else (self.gate_up, self.down)
        order = idx.flatten().argsort(stable=True)
        rows = order // c.top_k
        counts = idx.flatten().bincount(minlength=c.experts).tolist()
        ys = []
        for e, xe in enumerate(x[rows].split(counts)):
            h = F.linear(xe, gu_w[e], self.gate_up_bias[e])
            gate, up = h.view(-1, c.intermediate, 2).unbind(-1)  # interleaved rows: gate, up, gate, up ...
            gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
            ys.append(F.linear((up + 1) * gate * torch.sigmoid(1.702 * gate), d_w[e], self.down_bias[e]))
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
