"""Pack a safetensors file without loss:  python pack.py pack IN OUT | unpack IN OUT

The pack is one gzip stream (level 9, no name, time 0) of: magic OSSPACK1, u64 length of the unpacked file, its SHA-256
(32 bytes), then records until the length is reached: u8 kind, u64 n and
  0 literal  n bytes follow
  1 zeros    n zero bytes
  2 copy     u64 source offset earlier in the output, n bytes from there
  3 planes   n bytes of 16-bit little-endian values follow as n/2 low bytes, then n/2 high bytes
All numbers are little-endian. Zeros stand for the rows of unused tokens, copies for the rows that lm_head shares with
the embedding, planes for BF16 data (the high bytes compress much better apart).
"""

import gzip
import hashlib
import json
import struct
import sys

import numpy as np

MAGIC = b"OSSPACK1"


def runs(values):
    """[(value, begin, end)] of equal neighbours."""
    cut = np.flatnonzero(np.diff(values)) + 1
    edges = [0, *cut.tolist(), len(values)]
    return [(values[a], a, b) for a, b in zip(edges, edges[1:])]


def planes(b):
    return np.frombuffer(b, np.uint8).reshape(-1, 2).T.tobytes()


def records(data):
    """Yield (kind, n, payload) for the whole file."""
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + n])
    tensors = sorted(
        (t["data_offsets"][0] + 8 + n, t["data_offsets"][1] + 8 + n, name, t)
        for name, t in head.items()
        if name != "__metadata__"
    )
    yield 0, 8 + n, data[: 8 + n]
    at, rows = 8 + n, {}  # rows: content of an embedding row -> its offset
    for begin, end, name, t in tensors:
        assert begin == at, "the tensors must lie without gaps"
        at, raw = end, data[begin:end]
        if t["dtype"] != "BF16":
            yield 0, len(raw), raw
        elif "embed_tokens" not in name and "lm_head" not in name:
            yield 3, len(raw), planes(raw)
        else:
            count, size = t["shape"][0], len(raw) // t["shape"][0]
            table = np.frombuffer(raw, np.uint8).reshape(count, size)
            used = table.any(1)
            # offset of an equal earlier row minus this row's offset; equal for neighbours that can be copied together
            kind = np.zeros(count, np.int64)
            for i in np.flatnonzero(used):
                b, here = table[i].tobytes(), begin + int(i) * size
                kind[i] = rows.get(b, here) - here or 1  # 0 unused, negative: copy from there, 1: its own data
                rows.setdefault(b, here)
            for k, a, b in runs(kind):
                n = (b - a) * size
                if k == 0:
                    yield 1, n, b""
                elif k < 0:
                    yield 2, n, struct.pack("<Q", begin + a * size + int(k))
                else:
                    yield 3, n, planes(raw[a * size : b * size])
    assert at == len(data)


def pack(data):
    out = [MAGIC, struct.pack("<Q", len(data)), hashlib.sha256(data).digest()]
    for kind, n, payload in records(data):
        out += [struct.pack("<BQ", kind, n), payload]
    return gzip.compress(b"".join(out), 9, mtime=0)


def unpack(packed):
    b = gzip.decompress(packed)
    if b[:8] != MAGIC:
        raise ValueError("not an ossrun pack")
    length, digest, at, out = struct.unpack("<Q", b[8:16])[0], b[16:48], 48, bytearray()
    while len(out) < length:
        kind, n = struct.unpack("<BQ", b[at : at + 9])
        at += 9
        if kind == 0:
            out += b[at : at + n]
            at += n
        elif kind == 1:
            out += bytes(n)
        elif kind == 2:
            source = struct.unpack("<Q", b[at : at + 8])[0]
            at += 8
            if source + n > len(out):
                raise ValueError("copy from beyond the output")
            out += out[source : source + n]
        elif kind == 3:
            out += np.frombuffer(b[at : at + n], np.uint8).reshape(2, -1).T.tobytes()
            at += n
        else:
            raise ValueError(f"unknown record {kind}")
    if len(out) != length or hashlib.sha256(out).digest() != digest or at != len(b):
        raise ValueError("the unpacked data is wrong")
    return bytes(out)


def main():
    what, source, target = sys.argv[1:4]
    with open(source, "rb") as f:
        data = f.read()
    result = pack(data) if what == "pack" else unpack(data)
    if what == "pack":
        assert unpack(result) == data
    with open(target, "wb") as f:
        f.write(result)
    small = result if what == "pack" else data
    print(
        f"{what}: {len(data)} -> {len(result)} bytes; gzip header {small[:10].hex()}; SHA-256"
        f" {hashlib.sha256(result).hexdigest()}"
    )


if __name__ == "__main__":
    main()
