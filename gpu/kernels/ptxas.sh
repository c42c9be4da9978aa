#!/usr/bin/env bash
# ptxas.sh [--write]: assembles the shipped PTX for the cards it is meant for, with NVIDIA's own
# assembler from PyPI, and fails where it is refused or a kernel spills registers. Prints the table of
# registers; with --write puts it into docs/gpu-kernels.md, else wants it to be there already. Then the
# disassembly test, which needs NVIDIA's disassembler (PyPI) and LLVM's, and must not be skipped here.
set -euo pipefail
cd "$(dirname "$0")"
tools=$(./assembler.sh check)
command -v llvm-objdump-22 > /dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends llvm-22; }
ptx=../../assets/kernels page=../../docs/gpu-kernels.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The card, and the PTX that is loaded on it.
for pair in sm_80:sm_80 sm_86:sm_80 sm_89:sm_80 sm_90a:sm_90a sm_100a:sm_100a sm_103a:sm_103a sm_120a:sm_120a sm_121a:sm_121a; do
  arch=${pair%:*} from=${pair#*:}
  "$tools/ptxas" -v -arch="$arch" "$ptx/$from.ptx" -o "$work/$arch.cubin" > "$work/$arch.log" 2>&1 ||
    { cat "$work/$arch.log" >&2; echo "ptxas refuses $from.ptx for $arch" >&2; exit 1; }
  # What it says when it makes warpgroup products wait for each other.
  ! grep 'Potential Performance Loss' "$work/$arch.log" >&2 || exit 1
done
python3 - "$work" "$page" "${1:-}" <<'PYTHON'
import pathlib, re, sys

work, page, mode = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
archs = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"]
table, spilled = {}, []
for arch in archs:
    name = None
    for line in (work / f"{arch}.log").read_text().splitlines():
        if m := re.search(r"Compiling entry function '(\w+)'", line):
            name = m[1]
        elif m := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if m[1] != "0" or m[2] != "0":
                spilled.append(f"{name} on {arch}: {line.strip()}")
        elif m := re.search(r"Used (\d+) registers", line):
            table.setdefault(name, {})[arch] = m[1]
text = "| kernel | " + " | ".join(archs) + " |\n|---" * 1 + "|---" * len(archs) + "|\n"
for name in sorted(table):
    text += f"| {name} | " + " | ".join(table[name].get(a, "-") for a in archs) + " |\n"
print(text, end="")
if spilled:
    sys.exit("these kernels spill registers:\n" + "\n".join(spilled))
begin, end = "<!-- registers -->\n", "<!-- end of registers -->\n"
have = page.read_text()
i, j = have.index(begin) + len(begin), have.index(end)
if mode == "--write":
    page.write_text(have[:i] + text + have[j:])
elif have[i:j] != text:
    sys.exit("the table in docs/gpu-kernels.md is not this one: run gpu/kernels/ptxas.sh --write")
PYTHON
seen=$(go test -count=1 -v -run 'TestDisassembly|TestCodeObjects' . 2>&1) || { echo "$seen" >&2; exit 1; }
! grep -q -e '--- SKIP' <<< "$seen" || { echo "$seen" >&2; exit 1; }
