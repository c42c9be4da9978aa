#!/bin/sh
# Builds the engine's C++ alone and replays whole steps of the small goldens through it: under AddressSanitizer and
# UndefinedBehaviorSanitizer, then under ThreadSanitizer. Every buffer is an allocation of its own, so a read or write beyond one is seen.
# CXX chooses the compiler (g++ by default).
set -eu
cd "$(dirname "$0")"
cxx=${CXX:-g++}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for model in T1 T2; do
  for compute in exact int8; do
    go run ./dump -compute "$compute" "../../../testdata/model/$model" > "$out/$model.$compute"
  done
  go run ./dump -compute int8 -dense q8 "../../../testdata/model/$model" > "$out/$model.q8"
  go run ./dump -kv fp8 "../../../testdata/model/$model" > "$out/$model.fp8"
done
# Weights lie at odd addresses here on purpose, which kernels read byte by byte or with unaligned loads.
# (gcc 12 sees uninitialised values in its own AVX-512 header once a sanitizer is on.)
tables=$(cd ../kerneltest && printf "$PWD/%s.cpp " portable16 portable_amx emulated_vnni elsewhere) # AMX's tiles
build() { # NAME FLAGS...
  name=$1
  shift
  objects=$(../kerneltest/objects.sh "$@" -- replay.cpp ../*.cpp $tables)
  $cxx "$@" -Wl,--wrap=kernels_amx -o "$out/$name" $objects
}
flags=$(cat ../kerneltest/sanitize.flags)
build address $flags
build thread ${flags%%-fsanitize*} -fsanitize=thread
for isa in scalar avx2 avx512 amx; do
  for threads in 1 3; do
    "$out/address" "$isa" "$threads" "$out"/T1.* "$out"/T2.*
  done
  TSAN_OPTIONS=halt_on_error=1 "$out/thread" "$isa" 3 "$out"/T2.*
done
