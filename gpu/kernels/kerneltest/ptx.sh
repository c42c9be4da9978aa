#!/usr/bin/env bash
# ptx.sh [NAME...]: the PTX of every architecture, or of those named, made anew (clang-19 and clang-22)
# and run instruction by instruction through all cases of kerneltest, which hold every kernel to a
# reference in double. By hand: 10 minutes of a processor. The last results stand in docs/gpu-kernels.md.
set -euo pipefail
cd "$(dirname "$0")"
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT
(cd .. && go run ./generate -texts "$texts" "$@")
failed=0
for text in "$texts"/*.ptx; do
  out=$(OSSRUN_PTX=$text ./run.sh nv 2>&1) || failed=1
  printf '%s: %s cases right. %s\n' "$(basename "$text")" "$(grep -c '^ok ' <<< "$out")" "$(grep '^PTX: ' <<< "$out" || true)"
  grep -v -e '^ok ' -e '^PTX: ' <<< "$out" || true
done
exit $failed
