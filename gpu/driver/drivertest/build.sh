#!/usr/bin/env bash
# build.sh CUDA|HIP: builds the fake driver of an API with the kernels of the layout that its cards have, and prints the
# library's path. It is kept in the user's cache under the hash of all that goes into it, as its objects are.
set -euo pipefail
cd "$(dirname "$0")/library"
case ${1:-} in
  CUDA) layout=nv name=libcuda other=hip.cpp ;;
  HIP) layout=cdna name=libamdhip64 other=cuda.cpp ;;
  *) echo "build.sh CUDA|HIP" >&2; exit 2 ;;
esac
kernels=$(../../../kernels/host.sh $layout)
mapfile -t sources < <(printf '%s\n' *.cpp | grep -vx $other)
export HEADERS="*.h ../../../kernels/emulator/emulator.h"
objects=$(../../../../runtime/cpu/kerneltest/objects.sh -std=c++17 -O1 -g1 -Wall -Wextra -fPIC -fvisibility=hidden \
  -pthread -I ../../../kernels -- "${sources[@]}")
library=$(dirname "${objects%%$'\n'*}")/$name-$(printf '%s' "$kernels $objects" | sha256sum | cut -c1-16).so
if [ ! -f "$library" ]; then
  # shellcheck disable=SC2086 # several words
  g++ -shared -pthread -o "$library.$$" "$kernels" $objects
  mv "$library.$$" "$library"
fi
touch "$library"
echo "$library"
