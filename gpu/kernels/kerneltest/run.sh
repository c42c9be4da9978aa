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
export HEADERS="*.h ../emulator/emulator.h"
# shellcheck disable=SC2086 # several words
objects=$(../../../runtime/cpu/kerneltest/objects.sh $flags -- *.cpp)
program=$(mktemp -t kerneltest.XXXXXX)
trap 'rm -f "$program"' EXIT
# shellcheck disable=SC2086 # several words
${CXX:-g++} $flags $objects "$kernels" -pthread -o "$program"
"$program" "$@"
