#!/usr/bin/env bash
# host.sh [nv|cdna|gfx11|gfx12] [asan]: builds the kernels and the emulator for the host and prints
# the path of one relocatable object, kernels.o, to link with -pthread. Its C face is
# emulator/emulator.h. The layout chooses the lanes of a warp and the matrix fragments that are
# emulated. Objects are kept in the user's cache under the hash of their sources and flags, so a
# second call only prints the path. KERNELS_CACHE: a folder to use instead of the cache. KERNELS: only
# these sources.
set -euo pipefail
cd "$(dirname "$0")"
layout=${1:-nv}
case $layout in
  nv) define="-DMATRIX_NV -DWARP=32" ;;
  cdna) define="-DMATRIX_CDNA -DWARP=64" ;;
  gfx11) define="-DMATRIX_GFX11 -DWARP=32" ;;
  gfx12) define="-DMATRIX_GFX12 -DWARP=32" ;;
  *) echo "host.sh: no layout $layout: nv, cdna, gfx11 or gfx12" >&2; exit 2 ;;
esac
cxx=${CXX:-g++}
flags="-std=c++17 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off -fno-strict-aliasing"
# fmaf as an instruction, where this machine has it; the bits are the same. The flags are in each
# object's name, so a cache that several machines share holds both.
if grep -qsw avx2 /proc/cpuinfo && grep -qsw fma /proc/cpuinfo; then flags="$flags -mavx2 -mfma"; fi
if [ "${2:-}" = asan ]; then
  flags="$flags -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined"
fi
flags="$flags $define -DEMULATED_LAYOUT=$layout -I."
cache=${KERNELS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ossrun-kernels}
mkdir -p "$cache"
find "$cache" -mindepth 1 -mtime +14 -delete 2>/dev/null || true

headers=$({ echo "$flags"; $cxx --version | head -1; cat -- *.h emulator/*.h; } | sha256sum)
look() { # sets objects, and stale: those to make
  objects=() stale=()
  local source hash object
  for source in ${KERNELS:-*.cu} emulator/*.cpp; do
    [ "$source" = kernels.cu ] && continue
    hash=$({ echo "$headers"; cat -- "$source"; } | sha256sum | cut -c1-16)
    object=$cache/$layout-$(basename "$source")-$hash.o
    objects+=("$object")
    [ -f "$object" ] || stale+=("$source" "$object")
  done
}
look
if [ ${#stale[@]} -gt 0 ] && command -v flock > /dev/null; then
  # One build of a layout at a time: the tests of several packages begin at once, and those that waited
  # find the objects made. A build that is killed gives the lock back.
  exec 9> "$cache/lock-$layout"
  flock 9
  look
fi
if [ ${#stale[@]} -gt 0 ]; then # into a name of its own first: another build never sees half a file
  printf '%s\0' "${stale[@]}" | xargs -0 -P "$(nproc)" -n 2 \
    sh -c "$cxx $flags -x c++ -c \"\$0\" -o \"\$1.\$\$\" && mv \"\$1.\$\$\" \"\$1\""
fi
all=$cache/$layout-$(printf '%s' "${objects[*]}" | sha256sum | cut -c1-16)/kernels.o
if [ ! -f "$all" ]; then
  mkdir -p "$(dirname "$all")"
  ld -r -o "$all.$$" "${objects[@]}"
  mv "$all.$$" "$all"
fi
touch "$all" "${objects[@]}"
echo "$all"
