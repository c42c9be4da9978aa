#!/usr/bin/env bash
# ptxas.sh [--write]: assembles the shipped PTX for cards that may be given it, with NVIDIA's own assembler from PyPI,
# the newest, and fails where it is refused, a kernel spills registers, or products by warpgroups are serialized.
# Prints the tables of the cubins' registers and of the instructions that experts' weights take; with --write puts
# them into docs/gpu-kernels.md, else wants them to be there already. The tests of disassembly find the tools that it
# fetches. That the cubins spill nothing is the build's to see (generate).
set -euo pipefail
cd "$(dirname "$0")"
tools=$(./assembler.sh check)
command -v llvm-objdump-22 > /dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends llvm-22; }
kernels=../../assets/kernels page=../../docs/gpu-kernels.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The card, and the PTX that is loaded on it.
for pair in sm_80:sm_80 sm_87:sm_80 sm_90:sm_80 sm_110:sm_80 sm_120:sm_120 sm_121:sm_120; do
  arch=${pair%:*} from=${pair#*:}
  gzip -dc "$kernels/$from.ptx.gz" > "$work/$from.ptx"
  "$tools/ptxas" -v -arch="$arch" "$work/$from.ptx" -o "$work/$arch.cubin" > "$work/$arch.log" 2>&1 ||
    { cat "$work/$arch.log" >&2; echo "ptxas refuses $from.ptx for $arch" >&2; exit 1; }
  ! grep 'bytes spill' "$work/$arch.log" | grep -v ' 0 bytes spill stores, 0 bytes spill loads' ||
    { echo "$from.ptx spills registers on $arch" >&2; exit 1; }
done
# Where products by warpgroups may not be under way together, ptxas has them wait for each other, and only says so in
# its notes. A text in which a sum is read too early shows that it does. sm_90a's text is not shipped, so it is compiled
# here; the cubin's bytes show that it is that one.
go run ./generate -texts "$work" sm_90a
ship=$(./assembler.sh ship)
serialized() {
  "$ship/ptxas" -v -arch=sm_90a "$1" -o "$work/wgmma.cubin" 2>&1 | grep -E 'wgmma.* serialized|warpgroup.wait is injected' >&2
}
perl -0pe 's/(wgmma\.mma_async\S+ \{(%f\d+),[^;]*;(?:\s*\/\/.*)*\s*wgmma\.commit_group\S+;)(?=(?:\s*\/\/.*)*\s*wgmma\.wait_group\S+ 1;)/$1\n\tadd.f32 $2, $2, $2;/' \
  "$work/sm_90a.ptx" > "$work/broken.ptx"
serialized "$work/broken.ptx" 2> /dev/null || { echo "ptxas does not say that it serializes products" >&2; exit 1; }
! serialized "$work/sm_90a.ptx" || exit 1
gzip -dc "$kernels/sm_90a.cubin.gz" | cmp - "$work/wgmma.cubin"
python3 - "$kernels" "$page" "${1:-}" "$tools/nvdisasm" "$work" <<'PYTHON'
import gzip, pathlib, re, struct, subprocess, sys

kernels, page, mode = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
archs = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"]
table = {}
for arch in archs:
    elf = gzip.decompress((kernels / f"{arch}.cubin.gz").read_bytes())
    at, = struct.unpack_from("<Q", elf, 40)
    count, named = struct.unpack_from("<HH", elf, 60)
    sections = [struct.unpack_from("<IIQQQQII", elf, at + 64 * i) for i in range(count)]
    word = lambda table, i: elf[table[4] + i:elf.index(b"\0", table[4] + i)].decode()
    found = {word(sections[named], s[0]): s for s in sections}
    symbols, info = found[".symtab"], found[".nv.info"]
    i = info[4]
    while i < info[4] + info[5]:  # form, attribute, size; of form 4 the value follows
        form, attribute, size = struct.unpack_from("<BBH", elf, i)
        if form == 4 and attribute == 0x2f:  # registers: of which symbol, how many
            symbol, registers = struct.unpack_from("<II", elf, i + 4)
            name, = struct.unpack_from("<I", elf, symbols[4] + 24 * symbol)
            table.setdefault(word(found[".strtab"], name), {})[arch] = str(registers)
        i += 4 + (size if form == 4 else 0)
text = "| kernel | " + " | ".join(archs) + " |\n|---" * 1 + "|---" * len(archs) + "|\n"
for name in sorted(table):
    text += f"| {name} | " + " | ".join(table[name].get(a, "-") for a in archs) + " |\n"

# The experts' kernels: tokens that a unit of work serves; its weights of rows of 2,880, of a warp; rounds of its loop.
counted = {"decode_gate_up": (1, 2 * 2880, 1), "decode_down": (1, 4 * 2880, 3)}
for form, tokens in {"8": 8, "16": 16, "32": 32, "8_2": 4}.items():
    for name in "gate_up", "down":
        counted[f"stream_{name}_{form}"] = tokens, 16 * 2880 // 4, 2
for tokens in 16, 24, 32:
    for name in "gate_up", "down":
        counted[f"stream_{name}_wgmma_{tokens}"] = tokens, 16 * 2880, 7.5

def loops(part):
    code, labels, found = [], {}, []
    for line in part.split("\n"):
        if m := re.match(r"\s*(\.L_x_\d+):", line):
            labels[m[1]] = len(code)
        elif m := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@\S+\s+)?(.*?);", line):
            code.append(m[1])
            to = re.search(r"BRA.*?`\((\.L_x_\d+)\)", m[1])
            if to and to[1] in labels:
                found.append((labels[to[1]], len(code)))
    return code, found

def count(part, rounds):
    """Instructions of a unit in the loop over weights, and in all, without those that stage its activations."""
    code, found = loops(part)
    inside = lambda a, b: a != b and b[0] <= a[0] and a[1] <= b[1]
    has = lambda a, *words: sum(any(code[i].startswith(w) for w in words) for i in range(*a))
    products = ["HGMMA"] if has((0, len(code)), "HGMMA") else ["HMMA", "FFMA"]
    inner = [a for a in found if not any(inside(b, a) for b in found) and has(a, *products)]
    main = max(inner, key=lambda a: a[1] - a[0])
    outer = min((a for a in found if inside(main, a)), key=lambda a: a[1] - a[0])
    others = [a for a in found if inside(a, outer) and a != main and not has(a, "STG")]
    others = [a for a in others if not any(inside(a, b) for b in others)]
    loop = main[1] - main[0]
    rest = outer[1] - outer[0] - loop - sum(a[1] - a[0] for a in others)
    # the last round may have a place of its own, behind the loop
    own = has(outer, *products) > 1.9 * has(main, *products)
    again = -(-rounds // 1) - 1 if own else rounds
    return rounds * loop, again * loop + rest

some, table = ["sm_80", "sm_90a", "sm_100a", "sm_120a"], {}
for arch in some:
    file = pathlib.Path(sys.argv[5], arch + "-shipped.cubin")
    file.write_bytes(gzip.decompress((kernels / f"{arch}.cubin.gz").read_bytes()))
    sass = subprocess.run([sys.argv[4], "-c", file], capture_output=True, text=True, check=True).stdout
    for part in ("\n" + sass).split("\n.text.")[1:]:
        name = part[:part.index(":")]
        if name in counted:
            tokens, weights, rounds = counted[name]
            table.setdefault(name, {})[arch] = ", ".join(str(round(n * 1024 / weights)) for n in count(part, rounds))
        elif name in ("prefill_gate_up_wgmma", "prefill_down_wgmma"):  # a loop for each width: 256 of k by 16 rows
            code, found = loops(part)
            widths = sorted(a for a in found if any(c.startswith("HGMMA") for c in code[slice(*a)]))
            for tokens, (i, j) in zip((128, 96, 64, 32), widths, strict=True):
                counted[f"{name}, {tokens}"] = tokens, 0, 0
                table.setdefault(f"{name}, {tokens}", {})[arch] = str(round((j - i) * 1024 / 4096))
text += "\nWarp instructions for 1,024 of the experts' weights, in the loop and in all, with tokens served:\n\n"
text += "| kernel | tokens | " + " | ".join(some) + " |\n|---" + "|---" * (len(some) + 1) + "|\n"
for name in sorted(table):
    text += f"| {name} | {counted[name][0]} | " + " | ".join(table[name].get(a, "-") for a in some) + " |\n"
print(text, end="")
begin, end = "<!-- registers -->\n", "<!-- end of registers -->\n"
have = page.read_text()
i, j = have.index(begin) + len(begin), have.index(end)
if mode == "--write":
    page.write_text(have[:i] + text + have[j:])
elif have[i:j] != text:
    sys.exit("the table in docs/gpu-kernels.md is not this one: run gpu/kernels/ptxas.sh --write")
PYTHON
