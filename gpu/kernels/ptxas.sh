#!/usr/bin/env bash
# ptxas.sh [--write]: assembles the shipped PTX for cards that may be given it, with NVIDIA's own
# assembler from PyPI, the newest, and fails where it is refused or a kernel spills registers. Prints the
# table of the cubins' registers; with --write puts it into docs/gpu-kernels.md, else wants it to be there
# already. The tests of disassembly find the tools that it fetches. That the cubins spill nothing is the
# build's to see (generate).
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
python3 - "$kernels" "$page" "${1:-}" <<'PYTHON'
import gzip, pathlib, struct, sys

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
print(text, end="")
begin, end = "<!-- registers -->\n", "<!-- end of registers -->\n"
have = page.read_text()
i, j = have.index(begin) + len(begin), have.index(end)
if mode == "--write":
    page.write_text(have[:i] + text + have[j:])
elif have[i:j] != text:
    sys.exit("the table in docs/gpu-kernels.md is not this one: run gpu/kernels/ptxas.sh --write")
PYTHON
