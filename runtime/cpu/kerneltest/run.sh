#!/bin/sh
# Builds the kernel tests and runs them: as released (-O2), then under AddressSanitizer and
# UndefinedBehaviorSanitizer. CXX chooses the compiler (g++ by default); `run.sh bench` measures, `run.sh arm`
# runs the tables for ARM, built with Debian's cross compiler, under qemu-user.
set -eu
cd "$(dirname "$0")"
cxx=${CXX:-g++}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c++20 -g1 -Wall -Wextra -Werror"
kernels=$(ls ../kernels_*.cpp)
tests="main.cpp schedule_test.cpp matmul_test.cpp dense_test.cpp rows_test.cpp attention_test.cpp same_bits_test.cpp"
# Tables that only tests have: with -O1 they compile in less than half the time of -O2.
tables="portable16.cpp emulated_vnni.cpp portable_amx.cpp emulated_amx.cpp"

if [ "${1:-}" = bench ]; then
  shift
  $cxx $flags -O2 -o "$out/bench" bench.cpp $kernels
  "$out/bench" "$@"
  exit
fi
if [ "${1:-}" = arm ]; then
  shift
  export CXX=${CROSS:-aarch64-linux-gnu-g++}
  objects=$(./objects.sh $flags -O2 -- $tests $kernels && ./objects.sh $flags -O0 -- $tables)
  $CXX -static -o "$out/kernel_test_arm" $objects
  emulator=${EMULATOR:-qemu-aarch64}
  # What is chosen where: a core without the dot product, one without matrix products, one with all.
  for pair in "cortex-a72:" "neoverse-n1:neon" "max:neon i8mm bf16"; do
    have=$("$emulator" -cpu "${pair%%:*}" "$out/kernel_test_arm" list | sed '/^scalar$/d; /^portable/d' | paste -sd ' ')
    [ "$have" = "${pair#*:}" ] || { echo "${pair%%:*} has \"$have\", not \"${pair#*:}\"" >&2; exit 1; }
  done
  for table in ${*:-neon i8mm bf16}; do "$emulator" -cpu max "$out/kernel_test_arm" "$table"; done
  exit
fi
objects=$(./objects.sh $flags -O2 -- $tests $kernels && ./objects.sh $flags -O1 -- $tables)
$cxx -o "$out/kernel_test" $objects
"$out/kernel_test" "$@"
flags=$(cat sanitize.flags)
objects=$(./objects.sh $flags -- $tests $tables $kernels)
$cxx $flags -o "$out/kernel_test_asan" $objects
"$out/kernel_test_asan" "$@"
