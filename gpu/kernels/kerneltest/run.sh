#!/usr/bin/env bash
# run.sh LAYOUT [asan] [name...]: builds the kernel tests with the kernels of a layout (host.sh) and
# runs them: all, or those whose names contain one of the words. Objects are kept as host.sh does.
set -euo pipefail
cd "$(dirname "$0")"
layout=$1
shift
asan=
if [ "${1:-}" = asan ]; then asan=asan; shift; fi
kernels=$(../host.sh "$layout" $asan)
flags="-std=c++17 -O1 -Wall -Wextra"
[ -z "$asan" ] || flags="$flags -g1 -fsanitize=address,undefined"
cxx=${CXX:-g++}
cache=${KERNELS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ossrun-kernels}
headers=$({ echo "$flags"; $cxx --version | head -1; cat -- *.h ../emulator/emulator.h; } | sha256sum)
objects=() stale=()
for source in *.cpp; do
  hash=$({ echo "$headers"; cat -- "$source"; } | sha256sum | cut -c1-16)
  object=$cache/test-$source-$hash.o
  objects+=("$object")
  [ -f "$object" ] || stale+=("$source" "$object")
done
if [ ${#stale[@]} -gt 0 ]; then
  printf '%s\0' "${stale[@]}" | xargs -0 -P "$(nproc)" -n 2 \
    sh -c "$cxx $flags -c \"\$0\" -o \"\$1.\$\$\" && mv \"\$1.\$\$\" \"\$1\""
fi
touch "${objects[@]}"
program=$(mktemp "$cache/kerneltest.XXXXXX")
trap 'rm -f "$program"' EXIT
$cxx $flags "${objects[@]}" "$kernels" -pthread -o "$program"
"$program" "$@"
