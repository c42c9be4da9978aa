"""Compare the tokenizer's speed with Python tiktoken: same text, same machine, one run after the other, one thread each.

    pip install tiktoken==0.14.0
    python harmony/token/testdata/compare_tiktoken.py        (from the repository's root)

The text is about 5 MB: sources of Go and Python as installed here, Markdown of the Go module cache, generated JSON, and the
hand-written goldens in many scripts. tiktoken needs its rank file; that is written out
from the vocabulary that this package embeds, and tiktoken checks the hash of it. Both report the best of 5 passes in
MB per second of computing time of the process (a machine with other work to do makes the clock useless), and the number
of ids, which must be equal.
"""
import base64, glob, gzip, hashlib, json, os, random, re, subprocess, sys, tempfile, time

root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
golden = os.path.join(root, "testdata/tokenizer/encode.jsonl.gz")


def files(patterns, budget):
    paths = sorted(p for pattern in patterns for p in glob.glob(pattern, recursive=True) if os.path.isfile(p))
    random.Random(1).shuffle(paths)
    out = []
    for path in paths:
        try:
            text = open(path, encoding="utf-8", newline="").read(200_000)
        except UnicodeDecodeError:
            continue
        out.append(text)
        budget -= len(text)
        if budget < 0:
            break
    return out


def mixed_text():
    go = subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()
    cache = subprocess.check_output(["go", "env", "GOMODCACHE"], text=True).strip()
    docs = files([go + "/src/**/*.go"], 1_300_000)
    docs += files([os.path.dirname(os.__file__) + "/*.py"], 1_300_000)
    docs += files([cache + "/**/*.md"], 1_300_000)
    r = random.Random(2)
    for k in range(60):
        row = lambda: {"id": r.randrange(10**9), "name": "".join(r.choices("abcdefghij kl", k=12)), "ok": r.random() < 0.5, "x": r.random()}
        docs.append(json.dumps([row() for _ in range(60)], indent=k % 3 or None))
    hand = []
    for line in gzip.open(golden, "rt", encoding="utf-8"):
        c = json.loads(line)
        if "text" in c and not c["group"].startswith(("fuzz", "vocab", "special", "whitespace")):
            hand.append(c["text"])
    docs += ["\n".join(hand)] * 8
    r.shuffle(docs)
    return docs


def rank_file(folder):
    raw = gzip.open(os.path.join(root, "assets/vocab/merges.bin.gz")).read()
    tokens, planes, n = [bytes([b]) for b in raw[:256]], raw[256:], (len(raw) - 256) // 6
    at = lambda p, i: planes[p * n + i] | planes[(p + 1) * n + i] << 8 | planes[(p + 2) * n + i] << 16
    for i in range(n):
        tokens.append(tokens[at(0, i)] + tokens[at(3, i)])
    path = os.path.join(folder, "o200k_base.tiktoken")
    with open(path, "wb") as f:
        for rank, token in enumerate(tokens):
            f.write(base64.b64encode(token) + b" %d\n" % rank)
    return path


def main():
    import tiktoken, tiktoken.load
    import tiktoken_ext.openai_public as public

    with tempfile.TemporaryDirectory() as folder:
        ranks = rank_file(folder)
        public.load_tiktoken_bpe = lambda *a, **k: tiktoken.load.load_tiktoken_bpe(ranks, k.get("expected_hash"))
        enc = tiktoken.Encoding(**public.o200k_harmony())
        docs = mixed_text()
        text = "\n".join(docs)
        size = len(text.encode())
        path = os.path.join(folder, "mixed.txt")
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        best = 1e9
        for _ in range(5):
            start = time.process_time()
            ids = enc.encode_ordinary(text)
            best = min(best, time.process_time() - start)
        ours = subprocess.check_output(
            ["go", "test", "./harmony/token", "-run", "^TestCountIDs$", "-v", "-count=1", "-text", path],
            text=True, cwd=root)
        count, speed = re.search(r"(\d+) ids, best of 5: ([\d.]+) MB/CPU-s", ours).groups()
        python = size / 1e6 / best
        print(f"text: {size / 1e6:.2f} MB, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}")
        print(f"tiktoken {tiktoken.__version__}: {len(ids)} ids, {python:.1f} MB/CPU-s")
        print(f"ossrun: {count} ids, {speed} MB/CPU-s, {float(speed) / python:.2f} times as fast")
        sys.exit(int(count) != len(ids))


main()
