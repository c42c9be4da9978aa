#!/usr/bin/env bash
# Builds the engine's C++ alone and replays whole steps of the small goldens through it: under AddressSanitizer and
# UndefinedBehaviorSanitizer, then under ThreadSanitizer with one table, since tables have no threads. Every buffer is an
# allocation of its own, so a read or write beyond one is seen. CXX chooses the compiler (g++ by default).
set -euo pipefail
cd "$(dirname "$0")"
cxx=${CXX:-g++}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
go build -o "$out/dump" ./dump
for model in T1 T2; do
  dump() { "$out/dump" "${@:2}" "../../../testdata/model/$model" > "$out/$model.$1"; }
  dump exact -compute exact
  dump int8 -compute int8
  dump q8 -compute int8 -dense q8
  dump fp8 -kv fp8
  dump tiles-int8 -compute int8 -tiles
  dump tiles-q8 -compute int8 -dense q8 -tiles
done
# build NAME LINK-FLAGS SOURCES FLAGS...
build() {
  # shellcheck disable=SC2086,SC2046 # several words
  $cxx "${@:4}" $2 -o "$out/$1" $(../kerneltest/objects.sh "${@:4}" -- replay.cpp $3)
}
# Weights lie at odd addresses here on purpose, which kernels read byte by byte or with unaligned loads.
# (gcc 12 sees uninitialised values in its own AVX-512 header once a sanitizer is on.)
read -ra flags < ../kerneltest/sanitize.flags
tables=$(printf "../kerneltest/%s.cpp " portable16 portable_amx emulated_vnni elsewhere) # AMX's tiles
build address -Wl,--wrap=kernels_amx "$(ls ../*.cpp) $tables" "${flags[@]}"
# The tables that are left out are null, as ARM's are on this machine.
left_out=$(printf -- "-Wl,--defsym=kernels_%s=kernels_neon " avx512 vbmi avxvnni amx)
# shellcheck disable=SC2086 # several words
build thread "$left_out" "$(ls ../*.cpp | grep -v -e avx512 -e vbmi -e avxvnni -e amx)" ${flags[*]%-f*sanitize*} -fsanitize=thread
for isa in scalar avx2 avx512 amx; do
  dumps=$(ls "$out"/T[12].*)
  [ "$isa" = amx ] || dumps=$(grep -v tiles <<< "$dumps")
  # shellcheck disable=SC2086 # several words
  for threads in 1 3; do "$out/address" "$isa" "$threads" $dumps; done
done
TSAN_OPTIONS=halt_on_error=1 "$out/thread" avx2 3 "$out"/T2.[eifq]* | tee "$out/log"
grep -q 'avx2, 3 threads: ' "$out/log"
