#!/usr/bin/env bash
# assembler.sh check|ship: fetches NVIDIA's assembler from PyPI, once, and prints the folder that it is in.
#
# check is the newest, with the disassembler: it knows every card, and ptxas.sh holds the PTX to it. ship is
# what the cubins in assets/kernels are made with: the last of CUDA 12, because a driver refuses cubins of a
# newer CUDA than itself (13's have another version of the file format) and takes those of an older one.
set -euo pipefail
case ${1:-} in
  check) packages="nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37" programs="ptxas nvdisasm" version=13.5.37 ;;
  ship) packages="nvidia-cuda-nvcc-cu12==12.9.86" programs=ptxas version=12.9.86 ;;
  *) echo "assembler.sh check|ship" >&2; exit 2 ;;
esac
tools=${XDG_CACHE_HOME:-$HOME/.cache}/ossrun-ci/ptxas-$version
for program in $programs; do
  [ ! -x "$tools/bin/$program" ] || continue
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work/venv"
  # shellcheck disable=SC2086 # several words
  "$work/venv/bin/pip" install -q --no-deps --target "$work/wheel" $packages
  mkdir -p "$tools/bin"
  for each in $programs; do # moved into its place whole: another start never sees half of it
    install -m 755 "$(find "$work/wheel" -name "$each" -type f | head -1)" "$tools/bin/.$each.$$"
    mv "$tools/bin/.$each.$$" "$tools/bin/$each"
  done
  break
done
echo "$tools/bin"
