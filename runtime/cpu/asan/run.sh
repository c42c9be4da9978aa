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
flags="-std=c++20 -g1 -O1 -Wall -Wextra -Werror -Wno-uninitialized -Wno-maybe-uninitialized -pthread"
portable=$(cd ../kerneltest && printf "$PWD/%s.cpp " portable16 portable_amx emulated_vnni elsewhere) # AMX's tiles
build() { # NAME SANITIZERS...
  name=$1
  shift
  for source in replay.cpp ../*.cpp $portable; do
    $cxx $flags "$@" -c -o "$out/$name.$(basename "$source").o" "$source"
  done
  $cxx $flags "$@" -Wl,--wrap=kernels_amx -o "$out/$name" "$out/$name".*.o
}
build address -fsanitize=address,undefined -fno-sanitize-recover=all -fno-sanitize=alignment
build thread -fsanitize=thread
for isa in scalar avx2 avx512 amx; do
  for threads in 1 3; do
    "$out/address" "$isa" "$threads" "$out"/T1.* "$out"/T2.*
  done
  TSAN_OPTIONS=halt_on_error=1 "$out/thread" "$isa" 3 "$out"/T2.*
done
