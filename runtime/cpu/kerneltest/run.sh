#!/bin/sh
# Builds the kernel tests and runs them: as released (-O2), then under AddressSanitizer and
# UndefinedBehaviorSanitizer. CXX chooses the compiler (g++ by default); `run.sh bench` measures.
set -eu
cd "$(dirname "$0")"
cxx=${CXX:-g++}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c++17 -g -Wall -Wextra -Werror"
kernels=$(ls ../kernels_*.cpp)

if [ "${1:-}" = bench ]; then
  shift
  $cxx $flags -O2 -o "$out/bench" bench.cpp $kernels
  "$out/bench" "$@"
  exit
fi
sources="main.cpp matmul_test.cpp rows_test.cpp attention_test.cpp portable16.cpp $kernels"
$cxx $flags -O2 -o "$out/kernel_test" $sources
"$out/kernel_test" "$@"
$cxx $flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-sanitize=alignment \
  -o "$out/kernel_test_asan" $sources
"$out/kernel_test_asan" "$@"
