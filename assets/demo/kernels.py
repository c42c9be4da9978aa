"""The operators of kernels.cpp as PyTorch functions; the library is built on first use, beside the sources."""

import ctypes
import os
import subprocess

import torch
import torch.nn.functional as F

SHORT_FLOATS = os.environ.get("BF16") == "1"
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE, LIBRARY = os.path.join(HERE, "kernels.cpp"), os.path.join(HERE, "libkernels.so")


def load():
    if not os.path.exists(LIBRARY) or os.path.getmtime(LIBRARY) < os.path.getmtime(SOURCE):
        made = f"{LIBRARY}.{os.getpid()}"
        subprocess.run(
            ["g++", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", SOURCE, "-o", made], check=True
        )
        os.replace(made, LIBRARY)
    lib = ctypes.CDLL(LIBRARY)
    lib.attention_size.restype = ctypes.c_long
    return lib


LIB = load()


def at(*tensors):
    """The addresses of tensors, which must be contiguous."""
    assert all(t.is_contiguous() for t in tensors)
    return [ctypes.c_void_p(t.data_ptr()) for t in tensors]


class Attention(torch.autograd.Function):
    """q [N,heads,64], k and v [N,kv,64], sinks [heads], segments int32 [n,4] -> [N,heads,64]"""

    @staticmethod
    def forward(ctx, q, k, v, sinks, segments, window):
        shape = (*at(segments), len(segments), window, q.shape[1])
        o, w = torch.empty_like(q), torch.empty(LIB.attention_size(*shape))
        LIB.attention_forward(*shape, k.shape[1], *at(q, k, v, sinks, o, w))
        ctx.save_for_backward(q, k, v, w, segments)
        ctx.window = window
        return o

    @staticmethod
    def backward(ctx, go):
        q, k, v, w, segments = ctx.saved_tensors
        go = go.contiguous()
        dq, dk, dv, ds = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v), torch.zeros(q.shape[1])
        LIB.attention_backward(
            *at(segments), len(segments), ctx.window, q.shape[1], k.shape[1], *at(q, k, v, w, go, dq, dk, dv, ds)
        )
        return dq, dk, dv, ds, None, None


class Gated(torch.autograd.Function):
    """[n,2m] -> [n,m], the experts' activation"""

    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        y = h.new_empty(len(h), h.shape[1] // 2)
        LIB.gated_forward(ctypes.c_long(y.numel()), *at(h, y))
        return y

    @staticmethod
    def backward(ctx, gy):
        (h,) = ctx.saved_tensors
        gy, gh = gy.contiguous(), torch.empty_like(h)
        LIB.gated_backward(ctypes.c_long(gy.numel()), *at(h, gy, gh))
        return gh


class Rope(torch.autograd.Function):
    """x [N,heads,64] turned by cos and sin [N,32]"""

    @staticmethod
    def turn(x, cos, sin, sign):
        x = x.contiguous()
        y = torch.empty_like(x)
        LIB.rope(ctypes.c_long(len(x)), x.shape[1], ctypes.c_float(sign), *at(x, cos, sin, y))
        return y

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return Rope.turn(x, cos, sin, 1)

    @staticmethod
    def backward(ctx, gy):  # the angles' transpose: the tables' common scale stays
        return Rope.turn(gy, *ctx.saved_tensors, -1), None, None


class RMSNorm(torch.autograd.Function):
    """x [N,H] / rms(x) * weight, epsilon 1e-5"""

    @staticmethod
    def forward(ctx, x, weight):
        y, scale = torch.empty_like(x), x.new_empty(len(x))
        LIB.norm_forward(ctypes.c_long(len(x)), x.shape[1], *at(x, weight, y, scale))
        ctx.save_for_backward(x, weight, scale)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, weight, scale = ctx.saved_tensors
        gy, gx, gw = gy.contiguous(), torch.empty_like(x), torch.zeros_like(weight)
        LIB.norm_backward(ctypes.c_long(len(x)), x.shape[1], *at(x, weight, scale, gy, gx, gw))
        return gx, gw


class FakeMXFP4(torch.autograd.Function):
    """The nearest MXFP4 values; the gradient passes straight through."""

    @staticmethod
    def forward(ctx, w):
        out = torch.empty_like(w)
        LIB.mxfp4_round(ctypes.c_long(w.numel()), *at(w, out))
        return out

    @staticmethod
    def backward(ctx, g):
        return g


def rounded(x):
    """x [N,n] in BF16, with rows of zeros up to a multiple of 128: oneDNN builds a kernel for every new shape."""
    y = x.new_empty((len(x) + 127) // 128 * 128, x.shape[1], dtype=torch.bfloat16)
    y[: len(x)], y[len(x) :] = x, 0
    return y


class Linear16(torch.autograd.Function):
    """x [N,n] w[m,n]^T, rounded to BF16 before and after: twice as fast on a CPU with AVX-512 BF16."""

    @staticmethod
    def forward(ctx, x, w):
        n, x, w = len(x), rounded(x), w.to(torch.bfloat16)
        ctx.save_for_backward(x, w)
        return (x @ w.T)[:n].float()

    @staticmethod
    def backward(ctx, gy):
        x, w = ctx.saved_tensors
        n, gy = len(gy), rounded(gy)
        return (gy @ w)[:n].float(), (gy.T @ x).float()


def linear(x, w, b):
    """As F.linear; while a gradient is wanted and BF16=1 in lower precision."""
    if SHORT_FLOATS and torch.is_grad_enabled():
        return Linear16.apply(x, w) + b
    return F.linear(x, w, b)
