#!/usr/bin/env bash
# amd.sh [NAME...]: the shipped code objects of AMD's, all or those named, run instruction by
# instruction through all cases of kerneltest, which hold every kernel to a reference in double;
# then BREAKS (40) instructions of the first are broken, one at a time, and a case should notice.
# Needs llvm-22. By hand: 15 minutes of a processor. The last results stand in docs/gpu-kernels.md.
set -euo pipefail
export KERNELS=norm.cu # of the host none that an image might lack
cd "$(dirname "$0")"
images=../../../assets/kernels
[ $# -gt 0 ] || set -- $(cd "$images" && ls gfx*.co | sed 's/\.co$//')
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT
failed=0 breaks=${BREAKS:-40}
for name; do
  text=$texts/$name layout=cdna
  case $name in gfx11*) layout=gfx11 ;; gfx12*) layout=gfx12 ;; esac
  { llvm-readelf-22 --notes --symbols "$images/$name.co" &&
    llvm-objdump-22 -s -j .rodata "$images/$name.co" &&
    llvm-objdump-22 -d "$images/$name.co"; } > "$text"
  out=$(OSSRUN_AMD=$text ./run.sh "$layout" 2>&1) || failed=1
  printf '%s: %s cases right, %s wrong. %s\n' "$name" "$(grep -c '^ok ' <<< "$out")" \
    "$(grep -c '^FAIL ' <<< "$out" || true)" "$(grep '^AMD: ' <<< "$out" || true)"
  grep -v -e '^ok ' -e '^AMD: ' <<< "$out" || true
  [ "$breaks" = 0 ] || OSSRUN_AMD_BREAK=$breaks OSSRUN_AMD=$text ./run.sh "$layout" |
    grep --line-buffered -i '^break' || failed=1
  breaks=0
done
exit $failed
