#!/usr/bin/env bash
# Builds the kernel tests and runs them: the kernels as released, which the go command has compiled, then all and the
# tables that only tests have under AddressSanitizer and UndefinedBehaviorSanitizer. CXX chooses the compiler (g++ by
# default); `run.sh bench` measures, `run.sh arm` runs the tables for ARM, built with Debian's cross compiler, under
# qemu-user.
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c++20 -g1 -Wall -Wextra -Werror -O1"
kernels=$(ls ../kernels_*.cpp)
tests="main.cpp schedule_test.cpp matmul_test.cpp dense_test.cpp rows_test.cpp attention_test.cpp same_bits_test.cpp tiles_test.cpp"
tables="portable16.cpp emulated_vnni.cpp portable_amx.cpp emulated_amx.cpp"

# released AR: a library of the objects in the package's archive.
released() {
  local package
  package=$(cd .. && go list -export -f '{{.Export}}' .)
  (cd "$out" && ar x "$package" && "$1" rcs released.a _x*.o)
}

# shellcheck disable=SC2086 # several words
case ${1:-} in
  bench)
    released ar
    ${CXX:-g++} $flags -O2 -o "$out/bench" bench.cpp "$out/released.a"
    "$out/bench" "${@:2}"
    ;;
  arm)
    export GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc CXX=${CROSS:-aarch64-linux-gnu-g++}
    released aarch64-linux-gnu-ar
    $CXX -static -o "$out/kernel_test" $(./objects.sh $flags -- $tests) "$out/released.a"
    emulator=${EMULATOR:-qemu-aarch64}
    # What is chosen where: a core without the dot product, one without matrix products, one with all.
    for pair in "cortex-a72:" "neoverse-n1:neon" "max:neon i8mm bf16"; do
      have=$("$emulator" -cpu "${pair%%:*}" "$out/kernel_test" list | sed '/^scalar$/d' | paste -sd ' ')
      [ "$have" = "${pair#*:}" ] || { echo "${pair%%:*} has \"$have\", not \"${pair#*:}\"" >&2; exit 1; }
    done
    for table in ${2:-neon i8mm bf16}; do "$emulator" -cpu max "$out/kernel_test" "$table"; done
    ;;
  *)
    released ar
    ${CXX:-g++} -o "$out/kernel_test" $(./objects.sh $flags -- $tests) "$out/released.a"
    "$out/kernel_test" "$@"
    flags=$(cat sanitize.flags)
    ${CXX:-g++} $flags -o "$out/kernel_test_asan" $(./objects.sh $flags -- $tests $tables $kernels)
    "$out/kernel_test_asan" "$@"
    ;;
esac
