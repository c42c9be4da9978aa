#!/bin/sh
# goldens.sh [demo]: the golden checkpoints, or the demo model's answers, on instruction sets that this machine may lack:
# AVX-512's templates through the portable 16 lanes, AMX's through portable tiles, AVX-VNNI with its one instruction
# emulated, and ARM's tables, built with Debian's cross compiler, under qemu-user. Prompts to 200 tokens; every length,
# and the demo's answers on ARM too, with OSSRUN_LONG=1.
set -eu
cd "$(dirname "$0")"
here=$PWD
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
short=-test.short
[ -z "${OSSRUN_LONG:-}" ] || short=

# passed LOG TESTS...: all of them ran there; a skipped test is a failure here.
passed() {
  log=$1
  shift
  for name in "$@"; do
    grep -q "^ *--- PASS: $name " "$log" || { grep -e '--- ' "$log"; echo "goldens: $name did not pass" >&2; exit 1; }
  done
}

tables=$(./objects.sh -std=c++20 -g1 -Wall -Wextra -Werror -O1 -- \
  portable16.cpp emulated_vnni.cpp portable_amx.cpp elsewhere.cpp | paste -sd ' ')
wrapped="-linkmode external -extldflags '-Wl,--wrap=kernels_avx512 -Wl,--wrap=kernels_vbmi -Wl,--wrap=kernels_avxvnni -Wl,--wrap=kernels_amx $tables'"
if [ "${1:-}" = demo ]; then
  cd ../../../ui/cli
  go test -vet=off -c -ldflags "$wrapped" -o "$out/cli.test" .
  "$out/cli.test" -test.v -test.run 'TestDemoOnEachISA$' > "$out/log" || { cat "$out/log"; exit 1; }
  passed "$out/log" TestDemoOnEachISA
  grep -e 'answers are those' "$out/log"
else
  go test -vet=off -c -ldflags "$wrapped" -o "$out/cpu.test" ..
  (cd .. && "$out/cpu.test" $short -test.v -test.run 'TestGolden(DenseQ8)?$/^(avx(512|vnni)|amx)$|TestTiles') > "$out/log" || { cat "$out/log"; exit 1; }
  passed "$out/log" TestGolden/avx512/T1 TestGolden/avx512/T2 TestGolden/avxvnni/T1 TestGolden/avxvnni/T2 \
    TestGoldenDenseQ8/avx512/T1 TestGoldenDenseQ8/avx512/T2 TestGoldenDenseQ8/avxvnni/T1 TestGoldenDenseQ8/avxvnni/T2 \
    TestGolden/amx/T1 TestGolden/amx/T2 TestGoldenDenseQ8/amx/T1 TestGoldenDenseQ8/amx/T2 TestTilesDoNotSeeNeighbours
  grep -e '  all ' "$out/log"
fi

cd "$here/.."
export GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++
static="-linkmode external -extldflags -static"
emulator=${EMULATOR:-qemu-aarch64}
if [ "${1:-}" = demo ]; then
  [ -z "$short" ] || exit 0
  cd ../../ui/cli
  go test -vet=off -c -ldflags "$static" -o "$out/cli.test" .
  "$emulator" "$out/cli.test" -test.v -test.run 'TestDemoOnEachISA$' > "$out/log" || { cat "$out/log"; exit 1; }
  passed "$out/log" TestDemoOnEachISA
  grep -e 'answers are those' "$out/log"
  exit
fi
go test -vet=off -c -ldflags "$static" -o "$out/arm.test" .
for table in neon i8mm bf16; do
  # The others are the table before them but for their products, which these use.
  case $table in
    neon) run='TestGolden(DenseQ8)?$/^neon$' tests="TestGolden/neon/T1 TestGolden/neon/T2 TestGoldenDenseQ8/neon/T1 TestGoldenDenseQ8/neon/T2" ;;
    i8mm) run='TestGoldenDenseQ8$/^i8mm$' tests="TestGoldenDenseQ8/i8mm/T1 TestGoldenDenseQ8/i8mm/T2" ;;
    bf16) run='TestGolden$/^bf16$/^T2$' tests=TestGolden/bf16/T2 ;;
  esac
  "$emulator" -cpu max "$out/arm.test" $short -test.v -test.run "$run" > "$out/log" || { cat "$out/log"; exit 1; }
  passed "$out/log" $tests
  grep -e '  all ' -e 'PASS: TestGoldenDenseQ8/' "$out/log"
done
