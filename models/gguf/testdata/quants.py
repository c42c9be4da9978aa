"""Writes quants.txt: blocks of each quantised type, and the values that PyPI's gguf package decodes
them to, for TestDecode. Bytes are random, so that every code and scale occurs; half-precision
scales are finite.

    pip install gguf==0.19.0 && python3 quants.py > quants.txt
"""

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.IQ4_NL: [0],
          T.IQ4_XS: [0], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2],
          T.Q6_K: [208], T.MXFP4: [], T.NVFP4: []}

random = np.random.default_rng(7)
print("# gguf 0.19.0: type, blocks in hexadecimal, float32 values in hexadecimal")
for kind, at in HALVES.items():
    values, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (512 // values, size), dtype=np.uint8)
    for offset in at:
        scales = random.uniform(-2, 2, len(blocks)).astype("<f2")
        scales[0] = 6e-8 * 5  # subnormal
        blocks[:, offset:offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    decoded = quants.dequantize(blocks, kind).astype("<f4")
    print(kind.name, blocks.tobytes().hex(), decoded.tobytes().hex())
