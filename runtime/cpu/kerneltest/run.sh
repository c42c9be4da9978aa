#!/bin/sh
# Builds the kernel tests and runs them: as released (-O2), then under AddressSanitizer and
# UndefinedBehaviorSanitizer. CXX chooses the compiler (g++ by default); `run.sh bench` measures, `run.sh arm`
# runs the tables for ARM, built with Debian's cross compiler, under qemu-user.
set -eu
cd "$(dirname "$0")"
cxx=${CXX:-g++}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c++17 -g1 -Wall -Wextra -Werror"
kernels=$(ls ../kernels_*.cpp)

if [ "${1:-}" = bench ]; then
  shift
  $cxx $flags -O2 -o "$out/bench" bench.cpp $kernels
  "$out/bench" "$@"
  exit
fi
if [ "${1:-}" = arm ]; then
  shift
  cross=${CROSS:-aarch64-linux-gnu-g++}
  for portable in portable16 portable_amx; do # not run here, and slow to optimise
    $cross $flags -O0 -c -o "$out/$portable.o" $portable.cpp
  done
  $cross $flags -O2 -static -o "$out/kernel_test_arm" main.cpp schedule_test.cpp matmul_test.cpp rows_test.cpp \
    attention_test.cpp same_bits_test.cpp emulated_vnni.cpp emulated_amx.cpp "$out"/portable*.o $kernels
  emulator=${EMULATOR:-qemu-aarch64}
  # What is chosen where: a core without the dot product, one without matrix products, one with all.
  for pair in "cortex-a72:" "neoverse-n1:neon" "max:neon i8mm bf16"; do
    have=$("$emulator" -cpu "${pair%%:*}" "$out/kernel_test_arm" list | sed '/^scalar$/d; /^portable/d' | paste -sd ' ')
    [ "$have" = "${pair#*:}" ] || { echo "${pair%%:*} has \"$have\", not \"${pair#*:}\"" >&2; exit 1; }
  done
  for table in ${*:-neon i8mm bf16}; do "$emulator" -cpu max "$out/kernel_test_arm" "$table"; done
  exit
fi
sources="main.cpp schedule_test.cpp matmul_test.cpp rows_test.cpp attention_test.cpp same_bits_test.cpp portable16.cpp emulated_vnni.cpp
portable_amx.cpp emulated_amx.cpp $kernels"

# build NAME FLAGS...: the tests as an executable, its sources compiled on every core.
build() {
  name=$1
  shift
  mkdir "$out/$name.d"
  for source in $sources; do echo "$source"; done | xargs -P "$(nproc)" -I{} sh -c \
    'dir=$1; source=$2; shift 2; exec "$@" -c -o "$dir/$(basename "$source" .cpp).o" "$source"' - "$out/$name.d" {} $cxx $flags "$@"
  $cxx "$@" -o "$out/$name" "$out/$name.d"/*.o
}
build kernel_test -O2
"$out/kernel_test" "$@"
build kernel_test_asan -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-sanitize=alignment
"$out/kernel_test_asan" "$@"
