"""Mix the averaged weights of two training states:  python mix.py A.pt B.pt SHARE OUT.pt

OUT is SHARE of A and the rest of B, in A's rows; a token that B has no row for keeps A's. What was trained long on few
authors and what was trained before often understand strangers better together than each alone.
"""

import sys

import torch


def main():
    a, b, share = torch.load(sys.argv[1]), torch.load(sys.argv[2]), float(sys.argv[3])
    row = {t: i for i, t in enumerate(b["vocab"])}
    both = [(i, row[t]) for i, t in enumerate(a["vocab"]) if t in row]
    mine, theirs = (torch.tensor(x) for x in zip(*both))
    mixed = {}
    for name, w in a["average"].items():
        v = b["average"][name]
        if name == "embed":
            mixed[name] = w.clone()
            mixed[name][mine] = w[mine].lerp(v[theirs], 1 - share)
        else:
            mixed[name] = w.lerp(v, 1 - share)
    torch.save({"cfg": a["cfg"], "vocab": a["vocab"], "average": mixed, "step": a["step"], "seen": a["seen"]}, sys.argv[4])


if __name__ == "__main__":
    main()
