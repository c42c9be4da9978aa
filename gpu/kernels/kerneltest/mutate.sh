#!/usr/bin/env bash
# mutate.sh [N]: breaks the kernels on purpose, one line at a time, and wants a test to notice each. mutations.txt lists
# them. With N only every N-th is tried, beginning with one that the sources choose: the sample is another after a change
# of them, and the same at another time. Nothing in the tree is changed: every mutation is built in a copy.
set -euo pipefail
cd "$(dirname "$0")"
every=${1:-1}
first=$(($(cat ../*.cu ../*.h ../emulator/* ./*.cpp ./*.h mutations.txt | cksum | cut -d ' ' -f 1) % every))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/gpu" "$work/runtime/cpu"
cp -r .. "$work/gpu/kernels"
ln -s "$(realpath ../../../runtime/cpu/kerneltest)" "$work/runtime/cpu/kerneltest"
cd "$work/gpu/kernels/kerneltest"
tried=0 survived=0 at=0
export KERNELS_CACHE=$work/cache
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  line=${line//'\|'/$'\x01'} # \| is a bar that separates nothing
  IFS='|' read -r file from to layout kernels cases <<< "$line"
  from=${from//$'\x01'/|} to=${to//$'\x01'/|}
  from=${from//'\n'/$'\n'} to=${to//'\n'/$'\n'}
  at=$((at + 1))
  [ $(((at + first) % every)) = 0 ] || continue
  tried=$((tried + 1))
  cp "../$file" "$work/original"
  FROM=$from TO=$to perl -0pi -e '
    my ($f, $t) = @ENV{qw(FROM TO)};
    my $i = index($_, $f);
    die "mutations.txt: not in the source any more: $f\n" if $i < 0;
    substr($_, $i, length $f) = $t;' "../$file"
  export KERNELS=${kernels// /.cu }.cu
  # A kernel that does not compile proves nothing: the build comes first, by itself.
  ../host.sh "$layout" > "$work/object" || { echo "does not compile: $file: $from -> $to"; exit 1; }
  # shellcheck disable=SC2086 # several words
  if timeout 900 ./run.sh "$layout" $cases > "$work/out" 2>&1; then
    echo "SURVIVED: $file: $from -> $to ($layout: $cases)"
    survived=$((survived + 1))
  elif ! grep -qE '^FAIL|Segmentation|core dumped|Aborted' "$work/out"; then
    echo "no case failed, but the run did: $file: $from -> $to" && cat "$work/out" && exit 1
  fi
  cp "$work/original" "../$file"
done < mutations.txt
echo "$tried of $at mutations (every $every. from $first on), $survived survived"
[ "$survived" = 0 ] && [ "$tried" -gt 0 ]
